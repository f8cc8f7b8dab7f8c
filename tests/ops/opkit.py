# SPDX-License-Identifier: Apache-2.0
"""Small programs made from text, their operands, and distances between results: shared by the tests of operations."""

from __future__ import annotations

import itertools
import tempfile
import textwrap
from pathlib import Path

import ml_dtypes
import numpy as np
from pypto.runtime import RunConfig

NUMPY = {
    "FP32": np.float32,
    "FP16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "UINT64": np.uint64,
    "FP8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FP8E5M2": ml_dtypes.float8_e5m2,
    "FP8E8M0": ml_dtypes.float8_e8m0fnu,
    "BOOL": np.bool_,
}
NAMES = {np.dtype(t): name for name, t in NUMPY.items()}
FLOATS = ("FP32", "FP16", "BF16")
INTEGERS = ("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64")
PLATFORMS = ("a2a3sim", "a5sim")

_folder = tempfile.TemporaryDirectory(prefix="ops")
_counter = itertools.count()


def define(text: str) -> dict[str, object]:
    """Run `text` as a module that lies in a file of its own; returns its names."""
    path = Path(_folder.name) / f"case_{next(_counter)}.py"
    path.write_text("import pypto.language as pl\n" + textwrap.dedent(text))
    scope: dict[str, object] = {"__name__": path.stem}
    exec(compile(path.read_text(), str(path), "exec"), scope)
    return scope


def source(body: str, arrays: dict[str, object], scalars: dict[str, str], dtypes: dict[str, str]) -> str:
    """The program `f` whose region has this body; arrays named `o...` are its outputs, `io...` are updated."""
    parameters, outputs = [], []
    for name, array in arrays.items():
        dtype = dtypes.get(name) or NAMES[np.dtype(array.dtype)]
        shape = list(array.shape)
        if dtype in ("FP4", "INT4", "UINT4"):
            shape[-1] *= 2
        text = f"pl.Tensor[{shape}, pl.{dtype}]"
        if name.startswith("io"):
            text = f"pl.InOut[{text}]"
        elif name.startswith("o"):
            text = f"pl.Out[{text}]"
        if name.startswith(("io", "o")):
            outputs.append(name)
        parameters.append(f"{name}: {text}")
    # A number given to a JIT function is a constant of its body (01 L-68), one read from memory is not.
    parameters += [f"{name}_: pl.Tensor[[1], pl.{dtype}]" for name, dtype in scalars.items()]
    body = "\n".join([f"{name} = pl.read({name}_, [0])" for name in scalars] + [textwrap.dedent(body).strip("\n")])
    return f"""
@pl.jit
def f({", ".join(parameters)}):
    with pl.at(level=pl.Level.CORE_GROUP):
{textwrap.indent(body, " " * 8)}
    return {", ".join(outputs)}
"""


def run(body: str, platform: str = "a2a3sim", scalars: dict[str, tuple[str, object]] | None = None,
        dtypes: dict[str, str] | None = None, **arrays):  # fmt: skip
    """Compile and run one region over `arrays`; `scalars` are run-time scalars: name -> (dtype, value)."""
    scalars = scalars or {}
    text = source(textwrap.dedent(body), arrays, {k: d for k, (d, _) in scalars.items()}, dtypes or {})
    f = define(text)["f"]
    numbers = [np.array([v]).astype(NUMPY[d]) for d, v in scalars.values()]
    f(*arrays.values(), *numbers, config=RunConfig(platform=platform))


# ---------------------------------------------------------------- operands

EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 3.0, 1e-3, -7.75, 100.0, np.inf, -np.inf, np.nan]
LIMITS = {
    "FP32": [3.4028235e38, -3.4028235e38, 1.1754944e-38, -1.1754944e-38, 1e-45, -1e-45, 1e-40, 88.7, 89.0, -87.5, -104.0],
    "FP16": [65504.0, -65504.0, 6.104e-05, -6.104e-05, 6e-08, -6e-08, 3e-6, 11.0, 11.1, -9.7, -17.5],
    "BF16": [3.3895314e38, -3.3895314e38, 1.1754944e-38, -1.1754944e-38, 9.2e-41, -9.2e-41, 1e-39, 88.5, 89.0, -87.5, -92.5],
}  # fmt: skip


def operands(dtype: str, shape: tuple[int, ...], seed: int, nan: bool = True) -> np.ndarray:
    """Random numbers with every edge of the type among them, never in the same place for two seeds."""
    random = np.random.default_rng([seed, len(dtype), ord(dtype[0])])
    count = int(np.prod(shape))
    if dtype in FLOATS:
        values = random.standard_normal(count) * 10.0 ** random.integers(-3, 3, count)
        edges = np.array(EDGES + LIMITS[dtype])
        if not nan:
            edges = edges[~np.isnan(edges)]
    else:
        info = np.iinfo(NUMPY[dtype])
        values = random.integers(info.min, info.max, count, dtype=NUMPY[dtype], endpoint=True)
        small = random.random(count) < 0.5
        values[small] = (values[small].astype(np.int64) % 19 - (9 if info.min else 0)).astype(NUMPY[dtype])
        edges = np.array([info.min, info.max, 0, 1, info.max - 1, info.min + 1, 7], dtype=NUMPY[dtype])
    at = random.permutation(count)[: min(count, 2 * len(edges))]
    values[at] = np.resize(random.permutation(edges), len(at))
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(NUMPY[dtype]).reshape(shape)


def rounded(values: np.ndarray, dtype: str) -> np.ndarray:
    """`values` in another type, floats to nearest even, without the warnings of NumPy."""
    with np.errstate(all="ignore"):
        return np.asarray(values).astype(NUMPY[dtype])


# ---------------------------------------------------------------- distances

WORST: dict[tuple[str, str], tuple[float, int, str]] = {}


def _ordered(x: np.ndarray) -> np.ndarray:
    """Floats as integers in the order of the numbers, one apart when they are neighbours; +0 and -0 are both 0."""
    bits = x.view({2: np.int16, 4: np.int32, 1: np.int8}[x.dtype.itemsize]).astype(np.int64)
    low = np.int64(1) << (8 * x.dtype.itemsize - 1)
    return np.where(bits < 0, -(bits + low), bits)


def ulps(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Distance in units of the last place; NaN against NaN is 0, NaN against a number is infinite."""
    a, b = np.ascontiguousarray(got), np.ascontiguousarray(want)
    distance = np.abs(_ordered(a) - _ordered(b)).astype(np.float64)
    na, nb = np.isnan(a.astype(np.float32)), np.isnan(b.astype(np.float32))
    return np.where(na & nb, 0.0, np.where(na ^ nb, np.inf, distance))


def same(got, want, what: str, limit: float = 0, absolute: float = 0.0, signs: bool = True) -> None:
    """Assert equality within `limit` ulp or within `absolute`; records the worst error under `what` (operation, type)."""
    assert got.dtype == want.dtype and got.shape == want.shape, (what, got.dtype, want.dtype, got.shape, want.shape)
    name, _, form = what.partition(":")
    dtype = NAMES[np.dtype(got.dtype)]
    if dtype in INTEGERS or dtype == "BOOL":
        bad = np.argwhere(got != want)
        worst = float("nan")
    else:
        distance = ulps(got, want)
        if absolute:
            near = np.abs(got.astype(np.float64) - want.astype(np.float64)) <= absolute
            distance = np.where(near, 0.0, distance)
        bad = np.argwhere(distance > limit)
        if limit == 0 and signs:  # the sign of a zero counts
            g, w = np.signbit(got.astype(np.float32)), np.signbit(want.astype(np.float32))
            bad = np.argwhere((distance > 0) | ((g != w) & ~np.isnan(want.astype(np.float32))))
        worst = float(distance.max()) if distance.size else 0.0
    old = WORST.get((name, dtype), (0.0, 0, ""))
    key = worst if worst == worst else 0.0
    WORST[name, dtype] = (max(old[0], key), old[1] + int(got.size), "")
    assert not len(bad), (
        f"{what}: {len(bad)} of {got.size} cells differ; first at {bad[0].tolist()}: "
        f"got {got[tuple(bad[0])]!r}, want {want[tuple(bad[0])]!r}"
    )
