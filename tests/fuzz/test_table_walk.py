# SPDX-License-Identifier: Apache-2.0
"""Every row of the operation table is called with legal operands, in every spelling, level and dtype (02 section 29).

What the reference interpreter knows is compared; of the rest the result must have been written.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from pypto import _core

sys.path.insert(0, str(Path(__file__).parent))
from generator import Program
from runner import difference, execute, interpret
from values import NUMPY, Illegal, is_float
from walk_makers import ELSEWHERE, MAKERS, Maker

SHAPES = {
    "a": (16, 32), "b": (16, 32), "r": (16, 1), "c": (1, 32), "p": (32, 16), "q": (2, 16, 32), "s": (2, 32, 16),
    "w": (1, 16), "i": (16, 32), "j": (16, 32), "u": (16, 32), "k": (16, 8), "n": (1, 16), "t": (1, 8), "f": (256,),
}  # fmt: skip
TENSOR_ONLY = {  # flat names promoted from one level (O-103, O-104)
    "create_tensor", "dim", "full", "arange", "random", "gather", "scatter", "paged_gather", "expand_clone", "create_l1",
    "no_dep", "dump_tag",
}  # fmt: skip


def rows() -> list[tuple[str, str]]:
    return sorted({(ns, name) for ns, name, *_ in _core.op_table() if not ns.startswith("pld")})


def levels(ns: str, name: str, m: Maker) -> list[str]:
    both = [level for level in ("tile", "tensor") if getattr(m, level) is not None]
    if ns == "pl.tile":
        return [level for level in both if level == "tile"]
    if ns == "pl.tensor":
        return [level for level in both if level == "tensor"]
    if ns == "pl" and name in TENSOR_ONLY:
        return [level for level in both if level == "tensor"]
    return both


def calls(name: str):
    """Spelling, level, dtype and platform of every call of one operation; the second family runs one dtype, and those
    that only it has."""
    m = MAKERS[name]
    for ns, other in rows():
        if other != name or (ns, name) == ("pl.array", "create"):  # called by the makers of element access
            continue
        for level in levels(ns, name, m):
            for at, dt in enumerate(m.dtypes):
                yield ns, level, dt, "a2a3sim"
                if at == 0 or dt in m.a5:
                    yield ns, level, dt, "a5sim"


def dtype_of(letter: str, dt: str) -> str:
    wide = "INT32" if dt.startswith("INT") else "FP32"
    index = "INT32" if np.dtype(NUMPY[dt]).itemsize == 4 else "INT16"
    fixed = {
        "w": wide,
        "i": "INT32",
        "j": index,
        "u": "UINT32",
        "k": "UINT32",
        "n": "INT32",
        "t": "INT32",
        "f": "INT64",
    }
    return fixed.get(letter, dt)


def value_of(letter: str, dt: str, rng) -> np.ndarray:
    shape = SHAPES[letter]
    if letter == "u":
        return np.broadcast_to(np.arange(shape[1], dtype=np.uint32), shape).copy()
    if letter == "k":
        return (rng.integers(0, 16, shape) * 32).astype(np.uint32)
    if letter in "ijn":
        return rng.integers(0, 16, shape).astype(NUMPY[dt])
    if letter == "f":
        return np.zeros(shape, np.int64)
    if letter == "t":
        return np.array([[1, 0, 3, 2, 0, 1, 2, 3]], np.int32)
    if is_float(dt):
        return (rng.standard_normal(shape) + np.where(rng.random(shape) < 0.5, 2, 0)).astype(NUMPY[dt])
    return np.where(x := rng.integers(1 if dt.startswith("U") else -9, 10, shape), x, 1).astype(NUMPY[dt])


def program(ns: str, name: str, level: str, dt: str, platform: str) -> Program:
    m = MAKERS[name]
    wide = "INT32" if dt.startswith("INT") else "FP32"
    text = getattr(m, level)
    text = re.sub(r"\bOP\b", f"{ns}.{name}", text)
    text = text.replace("TMP", "pl.create_tile([16, 32], dtype=pl.DT)").replace("pl.DT", f"pl.{dt}")
    text = text.replace("pl.WIDE", f"pl.{wide}").replace("KV", "0.5" if is_float(dt) else "1")
    used = [n for n in SHAPES if re.search(rf"\bg?{n}\b(?!\s*=)(?!:)", re.sub(r"dtype=pl\.\w+|\w+=", "", text))]
    bound = {n for line in text.split("\n") for n in re.findall(r"^(\w)(?:, (\w))? = ", line) for n in n if n}
    used = [n for n in used if n not in bound or re.search(rf"\bg{n}\b", text)]
    rng = np.random.default_rng(len(name) * 7 + len(dt))
    out_dt = m.out if level == "tile" or m.tensor_out is None else m.tensor_out
    out_dt = {"": dt, "WIDE": wide}.get(out_dt, out_dt)
    shape = tuple(n or 8 * 32 // np.dtype(NUMPY[dt]).itemsize for n in m.shape)
    params = [f"g{n}: pl.Tensor[{list(SHAPES[n])}, pl.{dtype_of(n, dt)}]" for n in used]
    arguments = [value_of(n, dtype_of(n, dt), rng) for n in used]
    if "big" in text:
        params.append(f"big: pl.InOut[pl.Tensor[[2, 16, 32], pl.{dt}]]")
        arguments.append(np.zeros((2, 16, 32), NUMPY[dt]))
    params.append(f"out: pl.Out[pl.Tensor[{list(shape)}, pl.{out_dt}]]")
    arguments.append(rng.integers(100, 127, shape).astype(NUMPY[out_dt]))
    lines = ["import pypto.language as pl", "", "@pl.jit", f"def main({', '.join(params)}):"]
    lines.append("    with pl.at(level=pl.Level.CORE_GROUP):")
    for n in used:
        if n in bound or not re.search(rf"\b{n}\b", re.sub(r"dtype=pl\.\w+|\w+=", "", text)):
            continue
        zeros = ", ".join("0" for _ in SHAPES[n])
        source = f"pl.load(g{n}, [{zeros}], {list(SHAPES[n])})" if level == "tile" else f"g{n}"
        lines.append(f"        {n} = {source}")
    *first, last = text.split("\n")
    lines += ["        " + line for line in first]
    zeros = ", ".join("0" for _ in shape)
    lines.append(f"        out = pl.{'store' if level == 'tile' else 'assemble'}(" + (
        f"{last}, [{zeros}], out)" if level == "tile" else f"out, {last}, [{zeros}])"))  # fmt: skip
    lines.append("    return out")
    return Program(f"{ns}.{name} {level} {dt}", "\n".join(lines) + "\n", "jit", platform, arguments)


def problem_of(ns: str, name: str, level: str, dt: str, platform: str) -> str | None:
    m = MAKERS[name]
    p = program(ns, name, level, dt, platform)
    refused = platform == "a2a3sim" and (dt in m.a5 or "all" in m.a5)  # O-310
    try:
        got = execute(p)
    except Exception as e:
        return None if refused and "a2a3" in str(e) else f"{p.seed} on {platform}: {e}\n{p.source}"
    if refused:
        return f"{p.seed} on {platform}: must be refused"
    try:
        views = interpret(p)
    except (AttributeError, TypeError, KeyError, AssertionError, Illegal):
        views = [None] * len(got)  # an operation that only its own tests model
    for g, v in zip(got, views, strict=True):
        text = None if v is None else difference(g, v)
        if text:
            return f"{p.seed} on {platform}: {text}\n{p.source}"
    if np.array_equal(got[-1].view(np.uint8), p.arguments[-1].view(np.uint8)):
        return f"{p.seed} on {platform}: the result was not written\n{p.source}"
    return None


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_row(name):
    found = [t for call in calls(name) if (t := problem_of(call[0], name, *call[1:]))]
    assert not found, f"{len(found)} calls fail:\n" + "\n".join(found[:3])


def test_every_row_has_a_maker(repo):
    texts = "".join(f.read_text(encoding="utf-8") for f in (repo / "tests").rglob("*.py") if f.parent.name != "fuzz")
    texts += "".join(f.read_text(encoding="utf-8") for f in (repo / "examples").rglob("*.py"))
    missing = []
    for ns, name in rows():
        if name in MAKERS or ELSEWHERE.get(name):
            continue
        if name not in ELSEWHERE:
            missing.append(f"{ns}.{name}: neither a maker in walk_makers.py nor a test of its own")
        elif not re.search(rf"\b{name}\(", texts):
            missing.append(f"{ns}.{name}: no test calls it")
    assert not missing, "\n".join(missing)
