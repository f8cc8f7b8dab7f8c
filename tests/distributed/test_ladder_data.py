# SPDX-License-Identifier: Apache-2.0
"""Every entry point of the ladder with random data, random sizes and rank counts from 1, against goldens of this file.

The sizes and (01-06) the rank count are constants of the programs: each is run from a copy with others in their place.
"""

import importlib.util
import pathlib
import re
import sys

import numpy as np
import pytest
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions, last_report

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"
STEPS = {path.name[:2]: path for path in (EXAMPLES / "distributed").glob("[0-9]*.py")}
WORLDS = [1, 2, 3, 4, 5, 8]


def load(path, folder, constants):
    """Imports a copy of a program in which some constants are replaced."""
    text = path.read_text()
    for pattern, value in constants.items():
        text, found = re.subn(pattern, value, text, count=1, flags=re.M)
        assert found, pattern
    copy = folder / path.name
    copy.write_text(text)
    spec = importlib.util.spec_from_file_location(f"{folder.name}_{path.stem}", copy)
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def noise(rng, *shape):
    return (rng.standard_normal(shape) * 10.0 ** rng.integers(-2, 3)).astype(np.float32)


def total(x):
    return np.broadcast_to(x.astype(np.float64).sum(axis=0), x.shape)


def one(step, entry, x_shape, golden, y_shape=None):
    """An entry `(x, y)`; its golden of x."""

    def make(module, p, n, rng):
        x, y = noise(rng, *x_shape(p, n)), noise(rng, *(y_shape or x_shape)(p, n))
        return getattr(module, entry), [x, y], {1: golden(x)}

    return f"{step}-{entry}", step, make


def barrier_by_hand(module, p, n, rng):
    return module.program, [np.full((p, p, 1), -4, np.int32)], {0: (1 - np.eye(p, dtype=np.int32))[:, :, None]}


def reveal(mode, index):
    def make(module, p, n, rng):
        x, y = noise(rng, p, 1, n), noise(rng, p, 1, n)
        cells = np.full((p, p, 1) if mode == "mesh" else (p, 2 * (p - 1), p), -4, np.int32)
        program = module.make_program(module.KERNELS[mode][index], mode == "ring")
        return program, [x, y, cells], {1: total(x), 2: np.zeros_like(cells)}

    return f"11-{mode}-{'builtin' if index else 'hand'}", "11", make


def broadcast(builtin):
    def make(module, p, n, rng):
        x, y, root = noise(rng, p, 1, n), noise(rng, p, 1, n), int(rng.integers(p))
        return module.make_program(root, builtin), [x, y], {1: np.broadcast_to(x[root], x.shape)}

    return f"12-{'builtin' if builtin else 'hand'}", "12", make


def ragged(module, p, n, rng):
    m = module.M
    x, y = noise(rng, p, p * m, module.COLS), noise(rng, p, p * m, module.COLS)
    counts = rng.integers(0, m + 1, (p, p)).astype(np.int32)
    received = np.full((p, p, 1), -4, np.int32)
    want = y.copy()
    for r in range(p):
        for q in range(p):
            for i in range(counts[q, r]):
                want[r, q * m + i] = x[q, r * m + i]
    return module.make_ragged_program(p), [x, counts, y, received], {2: want, 3: counts.T[:, :, None]}


def composed(module, p, n, rng):
    w, x, y, z = noise(rng, p, 1, n), noise(rng, p, 1, n), noise(rng, p, p, n), noise(rng, p, 1, n)
    s = w[0, 0].astype(np.float64) * x[:, 0].sum(axis=0, dtype=np.float64)
    multiples = np.arange(1, p + 1)[:, None] * s
    return module.program, [w, x, y, z], {2: np.broadcast_to(multiples, y.shape), 3: multiples[:, None]}


def back(x):
    return np.roll(x, 1, axis=0)


def ahead(x):
    return np.roll(x, -1, axis=0)


def vector(p, n):
    return p, 1, n


def matrix(p, n):
    return p, p, n


ENTRIES = [
    one("01", "program", lambda p, n: (p, 8, n), lambda x: x + np.arange(len(x))[:, None, None]),
    one("02", "program", lambda p, n: (p, 16, n), lambda x: x * (1.0 + np.arange(len(x)))[:, None, None]),
    one("03", "program", vector, lambda x: x),
    ("04-program", "04", barrier_by_hand),
    one("04", "builtin_program", vector, ahead),
    one("05", "load_program", vector, ahead),
    one("05", "store_program", vector, back),
    one("06", "put_program", vector, back),
    one("06", "get_program", vector, ahead),
    one("07", "put_program", vector, back),
    one("07", "get_program", vector, ahead),
    one("08", "program", vector, total),
    one("09", "program", matrix, total),
    one("10", "program", matrix, total),
    *[reveal(mode, index) for mode in ("mesh", "ring") for index in (0, 1)],
    *[broadcast(builtin) for builtin in (False, True)],
    *[
        one(step, entry, x_shape, golden, y_shape)
        for entry in ("program", "builtin_program")
        for step, x_shape, golden, y_shape in (
            ("13", vector, lambda x: np.broadcast_to(x[:, 0], (len(x), *x[:, 0].shape)), matrix),
            ("14", matrix, lambda x: x.sum(axis=0, dtype=np.float64)[:, None], vector),
            ("15", matrix, lambda x: x.swapaxes(0, 1), matrix),
        )
    ],
    ("15-ragged", "15", ragged),
    ("16-program", "16", composed),
]

SIZES = {"01": r"^ROWS = COLS = 8", "02": r"^ROWS, COLS = 16, 32", "09": r"^CH = \d+", "10": r"^CH = \d+"}


def constants(step, p, n):
    new = {"01": f"ROWS, COLS = 8, {n}", "02": f"ROWS, COLS = 16, {n}"}.get(step)
    new = new or (f"CH = {n}" if step in SIZES else f"SIZE = {n}")
    out = {SIZES.get(step, r"^SIZE = \d+"): new}
    if step == "15":
        out |= {r"^M = 4": f"M = {n % 5 + 1}", r"^COLS = 32": f"COLS = {n}"}
    if int(step) <= 6:
        out[r"^N_RANKS = 2"] = f"N_RANKS = {p}"
    return out


def test_every_entry_point_is_here():
    """A program object of the ladder that no row runs would go unnoticed."""
    for step, path in STEPS.items():
        found = set(re.findall(r"^@pl\.jit\.host\ndef (\w+)", path.read_text(), flags=re.M))
        ids = [e[0] for e in ENTRIES if e[1] == step]
        assert ids and found <= {i.split("-", 1)[1] for i in ids}, step


CASES = [(*entry, p) for entry in ENTRIES for p in WORLDS if (entry[0], p) != ("11-ring-hand", 1)]  # L-6: P >= 2


@pytest.mark.parametrize("name,step,make,p", CASES, ids=[f"{c[0]}-{c[3]}" for c in CASES])
def test_random_data_and_sizes(name, step, make, p, tmp_path):  # 03 G-9, D-57
    rng = np.random.default_rng([p, *name.encode()])
    for turn, n in enumerate([int(rng.integers(1, 400)), 8 * int(rng.integers(1, 60))]):
        folder = tmp_path / str(turn)
        folder.mkdir()
        module = load(STEPS[step], folder, constants(step, p, n))
        program, given, goldens = make(module, p, n, rng)
        kept = [a.copy() for a in given]
        sim = {"schedule": "explore", "seed": p} if turn else {}
        config = RunConfig(
            platform=["a2a3sim", "a5sim"][(p + turn) % 2],
            distributed_config=DistributedConfig(device_ids=[int(d) for d in rng.permutation(20)[:p]]),
            sim=SimOptions(checks="strict", **sim),
        )
        program(*given, config=config)
        # Rows that do not start at a multiple of 32 bytes move slowly on devices: said in strict checking.
        found = [d for d in last_report().diagnostics if n % 8 == 0 or (d.id, d.severity) != ("X-55", "warning")]
        assert found == [], (name, p, n)
        for i, before in enumerate(kept):
            if i not in goldens:
                np.testing.assert_array_equal(given[i], before)
        scale = max(float(np.abs(a).max(initial=0)) for a in kept)
        for i, want in goldens.items():
            exact = want.dtype == np.int32
            np.testing.assert_allclose(
                given[i], want, rtol=1e-5, atol=0 if exact else 1e-5 * scale * p, err_msg=str((p, n))
            )


@pytest.mark.parametrize("p", WORLDS)
def test_moe_on_random_routes(p, tmp_path):
    rng = np.random.default_rng(p)
    tokens = int(rng.integers(1, 40))
    module = load(
        EXAMPLES / "models" / "moe_dispatch_combine.py",
        tmp_path,
        {r"^TOKENS, TOP_K, HIDDEN = 24, 2, 64": f"TOKENS, TOP_K, HIDDEN = {tokens}, {min(p, 2)}, 64"},
    )
    given = module.make_inputs(p, seed=100 + p)
    x, route, gates, weight = (given[k] for k in ("x", "route", "gates", "weight"))
    want = np.zeros(x.shape)
    for r in range(p):
        for t in range(tokens):
            for k in range(route.shape[2]):
                want[r, t] += gates[r, t * route.shape[2] + k, 0] * (x[r, t].astype(float) @ weight[route[r, t, k]])
    y = noise(rng, *x.shape)
    config = RunConfig(
        platform="a5sim",
        distributed_config=DistributedConfig(device_ids=list(range(p))),
        sim=SimOptions(checks="strict", schedule="explore", seed=p),
    )
    module.program(*given.values(), y, config=config)
    assert last_report().diagnostics == []
    np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-4)
