# SPDX-License-Identifier: Apache-2.0
"""Operands whose extents only the run knows: what does not fit is a located fault, never a stray access (02 O-115)."""

from __future__ import annotations

import linecache

import numpy as np
import pypto.language as pl  # noqa: F401  (what the texts import)
import pytest
from pypto.runtime import RunConfig

TEXT = """import pypto.language as pl
@pl.jit
def k(x: pl.Tensor[[16, 64], pl.FP32], i: pl.Tensor[[16, 64], pl.INT32], n: pl.Tensor[[1, 4], pl.INT32],
      o: pl.Out[pl.Tensor[[16, 64], pl.DT]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.read(n, [0, 0])
        b = pl.read(n, [0, 1])
        c = pl.read(n, [0, 2])
        d = pl.read(n, [0, 3])
        X = x[0:a, 0:b]
        Y = pl.add(x[1 : c + 1, 0:d], 0.0)
        I = i[0:c, 0:d]
        U = i[0:a, 0:b]
        r = EXPR
        o = pl.assemble(o, r, [0, 0])
    return o
"""


def run(expr: str, extents, dt: str = "FP32"):
    name = f"<run-time extents {expr} {dt}>"
    text = TEXT.replace("EXPR", expr).replace("DT", dt)
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope: dict = {}
    exec(compile(text, name, "exec"), scope)
    rng = np.random.default_rng(3)
    x = rng.standard_normal((16, 64)).astype(np.float32)
    i = rng.integers(0, 3, (16, 64)).astype(np.int32)
    o = np.zeros((16, 64), np.float32 if dt == "FP32" else np.int32)
    scope["k"](x, i, np.array([extents], np.int32), o, config=RunConfig(platform="a2a3sim"))
    return x, i, o


TALL, WIDE, SMALL = (4, 8, 6, 8), (4, 8, 4, 10), (4, 8, 3, 5)

MISFITS = [
    *[(f"pl.{op}(X, Y)", e) for op in ("add", "div", "maximum", "cmp", "part_add") for e in (TALL, WIDE, SMALL)],
    *[(f"pl.{op}(X, Y)", e) for op in ("row_expand_mul", "row_expand_add", "row_expand") for e in (TALL, WIDE, (4, 8, 6, 1))],
    *[(f"pl.{op}(X, Y)", e) for op in ("col_expand_sub", "col_expand") for e in (TALL, WIDE, (4, 8, 1, 9))],
    ("pl.exp(pl.add(pl.mul(X, 2.0), Y))", TALL),
    ("pl.mul(pl.row_expand_sub(X, Y), 2.0)", (4, 8, 6, 1)),
    ("pl.add(pl.full([4, 8], dtype=pl.FP32, value=2.0), Y)", TALL),
    ("pl.gather(X, 1, I)", (4, 8, 6, 8)),
    ("pl.gather(X, 0, I)", (4, 8, 4, 10)),
    ("pl.gather(X, mask_pattern=1)", (4, 7, 4, 7)),
    ("pl.scatter(X, 1, I, Y)", TALL),
    ("pl.scatter(X, 1, I, Y)", WIDE),
    ("pl.scatter(Y, 1, I, X)", TALL),
    ("pl.scatter(X, mask_pattern=1, dst=Y)", (4, 8, 4, 8)),
    ("pl.scatter(X, mask_pattern=2, dst=Y)", (4, 8, 1, 16)),
    ("pl.scatter_update(pl.add(x, 0.0), -2, i[0:1, 0:a], Y)", (4, 8, 6, 64)),
    ("pl.scatter_update(X, -2, i[0:1, 0:c], Y)", (4, 8, 4, 10)),
    ("pl.sort32(X, I)", (4, 32, 6, 32)),
    ("pl.mrgsort(X, Y)", (4, 8, 6, 8)),
    ("pl.mrgsort(X, block_len=64)", (4, 7, 4, 7)),
    ("pl.fillpad_expand(X, [8, 16])", (4, 32, 4, 8)),
    ("pl.matmul(X, Y)", (4, 8, 6, 8)),
    ("pl.concat(X, Y)", TALL),
]  # fmt: skip


@pytest.mark.parametrize(("expr", "extents"), MISFITS)
def test_extents_that_do_not_fit(expr, extents):  # O-901, O-902, O-1601, O-1902, O-1920, O-1921, O-1923, O-2001, O-1704
    with pytest.raises(Exception) as caught:
        run(expr, extents)
    text = str(caught.value)
    assert "<run-time extents" in text and "kernel" in text, text
    assert "does not fit" in text or "have different" in text or "columns" in text or "valid rows" in text, text


@pytest.mark.parametrize("op", ["and_", "or_", "shl"])
def test_bitwise_extents_that_do_not_fit(op):  # O-1201
    for extents in (TALL, WIDE, SMALL):
        with pytest.raises(Exception, match="does not fit"):
            run(f"pl.{op}(U, I)", extents, "INT32")


def test_extents_that_fit():  # O-902: rows, columns and equal shapes known only to the run
    x, _, o = run("pl.sub(X, Y)", (4, 8, 4, 8))
    np.testing.assert_array_equal(o[:4, :8], x[:4, :8] - x[1:5, :8])
    x, _, o = run("pl.sub(X, Y)", (4, 8, 4, 1))
    np.testing.assert_array_equal(o[:4, :8], x[:4, :8] - x[1:5, :1])
    x, _, o = run("pl.row_expand_mul(X, Y)", (5, 9, 5, 1))
    np.testing.assert_array_equal(o[:5, :9], x[:5, :9] * x[1:6, :1])
    x, _, o = run("pl.col_expand_mul(X, Y)", (5, 9, 1, 9))
    np.testing.assert_array_equal(o[:5, :9], x[:5, :9] * x[1:2, :9])
    x, i, o = run("pl.scatter(X, 1, I, Y)", (5, 9, 3, 4))
    want = np.zeros((16, 64), np.float32)
    want[:5, :9] = x[:5, :9]
    for r in range(3):
        for c in range(4):
            want[r, i[r, c]] = x[1 + r, c]
    np.testing.assert_array_equal(o, want)
    x, _, o = run("pl.scatter(X, mask_pattern=2, dst=Y)", (4, 8, 4, 16))
    want = x[1:5, :16].copy()
    want[:, 1::2] = x[:4, :8]
    np.testing.assert_array_equal(o[:4, :16], want)
    x, _, o = run("pl.fillpad_expand(X, [8, 16])", (3, 5, 1, 1))
    np.testing.assert_array_equal(o[:3, :5], x[:3, :5])
    assert not o[3:].any() and not o[:, 5:].any()


HUGE = (2**63 - 1, -(2**63), 2**62, -1, 2**31)


@pytest.mark.parametrize(
    "write",
    [
        "pl.store(t[0:4, 0:8], [a, b], o)",
        "pl.store(t, [a, b], o, shapes=[32, 32])",
        "pl.store(t, [a, b], o, atomic=pl.AtomicType.Add)",
        "o = pl.assemble(o, pl.slice(w, [4, 8], [0, 0]), [a, b])",
        "o[0:4, 0:8] = pl.slice(w, [4, 8], [a, b])",
        "pl.store(pl.load(x, [a, b], [4, 8]), [0, 0], o)",
        "pl.store(pl.tile.extract(t, a, b, [4, 8], target_memory=pl.Mem.Vec), [0, 0], o)",
        "w = pl.gather_row(pl.create_l1([16, 64], pl.FP32), x, [a, b], [0, 0], [4, 8])\n        o[:, :] = w",
        "w = pl.gather_row(pl.create_l1([16, 64], pl.FP32), x, [0, 0], [a, b], [4, 8])\n        o[:, :] = w",
    ],
)
def test_offsets_of_any_size(write):  # O-211.4, O-404: no sum of offset and extent may wrap round
    text = (
        "import pypto.language as pl\n@pl.jit\n"
        "def k(x: pl.Tensor[[16, 64], pl.FP32], n: pl.Tensor[[1, 2], pl.INT64], "
        "o: pl.InOut[pl.Tensor[[16, 64], pl.FP32]]):\n"
        "    with pl.at(level=pl.Level.CORE_GROUP):\n"
        "        a = pl.read(n, [0, 0])\n        b = pl.read(n, [0, 1])\n"
        "        t = pl.load(x, [0, 0], [16, 64])\n        w = pl.add(x, 0.0)\n"
        f"        {write}\n    return o\n"
    )
    name = f"<huge offsets {write}>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    scope: dict = {}
    exec(compile(text, name, "exec"), scope)
    x = np.arange(1024, dtype=np.float32).reshape(16, 64)
    for first in HUGE:
        for second in (0, *HUGE):
            o = np.full((16, 64), -1, np.float32)
            with pytest.raises(Exception, match="out of bounds|reaches past|negative|outside"):
                scope["k"](x, np.array([[first, second]], np.int64), o, config=RunConfig(platform="a2a3sim"))
            assert (o == -1).all()
