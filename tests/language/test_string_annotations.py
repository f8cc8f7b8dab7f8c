# SPDX-License-Identifier: Apache-2.0
"""Annotations as strings, by the future import or one by one, and every form of annotation (01 L-25 - L-27)."""

from __future__ import annotations

import types

import numpy as np
import pypto.language as pl
import pytest
from pypto import ir
from pypto.runtime import RunConfig

SIM = RunConfig(platform="a2a3sim")
RNG = np.random.default_rng(41)
SHAPE = (16, 64)
DT = pl.FP32
LAYOUT = pl.ND
VEC = pl.Mem.Vec
CFG = types.SimpleNamespace(rows=16, cols=64, dt=pl.FP32, n=pl.dynamic("CFG_N"))


def f32(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


def run(kernel, *inputs, shape=(16, 64)):
    out = np.zeros(shape, np.float32)
    kernel(*inputs, out, config=SIM)
    return out


def test_annotations_see_globals_and_closures():  # L-26, L-27
    def make(rows, dt):
        local = pl.dynamic("LOCAL")

        @pl.jit.incore
        def k(x: pl.Tensor[[local, CFG.cols], dt], r: pl.Scalar[pl.INDEX], o: pl.Out[pl.Tensor]):
            t: pl.Tile[[rows, CFG.cols], dt, VEC] = pl.load(x, [r, 0], [rows, CFG.cols])
            return pl.store(pl.add(t, 1.0), [r, 0], o)

        @pl.jit
        def main(x: pl.Tensor[[CFG.n, CFG.cols], CFG.dt], o: pl.Out[pl.Tensor[[CFG.n, CFG.cols], CFG.dt]]):
            for r in pl.range(0, CFG.n, rows):
                o = k(x, r, o)
            return o

        return main

    for rows, total in ((4, 12), (8, 24)):
        x = f32(total, 64)
        np.testing.assert_array_equal(run(make(rows, pl.FP32), x, shape=(total, 64)), x + 1)


def test_every_form_of_a_tensor():  # L-25
    view = pl.TensorView(layout=pl.TensorLayout.ND)

    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def one(
            self,
            a: pl.Tensor[SHAPE, DT],
            b: pl.Tensor[[16, 64], pl.FP32, pl.TensorLayout.ND],
            c: pl.Tensor([16, 64], pl.FP32),
            d: pl.Tensor[[16, 64], pl.FP32, LAYOUT],
            s: pl.Scalar[pl.FP32],
            o: pl.Out[pl.Tensor[[16, 64], pl.FP32, pl.TensorView(layout=pl.TensorLayout.ND)]],
            p: pl.InOut[pl.Tensor[[16, 64], pl.FP32, view]],
        ) -> pl.Tuple[pl.Tensor[[16, 64], pl.FP32], pl.Tensor[[16, 64], pl.FP32]]:
            t: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec, pl.TileView(blayout=pl.TileLayout.row_major)] = pl.load(
                a, [0, 0], [16, 64]
            )
            u: pl.Tile[[16, 64], pl.FP32] = pl.load(b, [0, 0], [16, 64])
            v: pl.Tile([16, 64], pl.FP32) = pl.load(c, [0, 0], [16, 64])
            w = pl.load(d, [0, 0], [16, 64])
            k: pl.Scalar[pl.INT32] = 3
            arr: pl.Array[2, pl.INT32] = pl.array.create(2, pl.INT32)
            arr[1] = k
            x = pl.add(pl.add(t, u), pl.add(v, w))
            x = pl.add(pl.mul(x, s), pl.cast(arr[1], pl.FP32))
            o = pl.store(x, [0, 0], o)
            p = pl.store(pl.add(pl.load(p, [0, 0], [16, 64]), x), [0, 0], p)
            return o, p

        @pl.function(type=pl.FunctionType.InCore)
        def nothing(self, a: pl.Tensor[SHAPE, DT], p: pl.InOut[pl.Tensor[SHAPE, DT]]) -> None:
            pl.store(pl.add(pl.load(p, [0, 0], [16, 64]), 1.0), [0, 0], p)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, a: pl.Tensor[SHAPE, DT], o: pl.Out[pl.Tensor[SHAPE, DT]], p: pl.InOut[pl.Tensor[SHAPE, DT]]
        ) -> tuple[pl.Tensor[SHAPE, DT], pl.Tensor[SHAPE, DT]]:
            o, p = self.one(a, a, a, a, 0.5, o, p)
            self.nothing(a, p)
            return o, p

    a, o, p = f32(16, 64), np.zeros((16, 64), np.float32), f32(16, 64)
    before = p.copy()
    ir.compile(P, platform="a2a3sim")(a, o, p)
    np.testing.assert_allclose(o, a * 2 + 3, rtol=1e-6)
    np.testing.assert_allclose(p, before + (a * 2 + 3) + 1, rtol=1e-6)


def test_short_and_bare_forms_of_jit():  # L-25
    @pl.jit.inline
    def note(done: pl.Array[2, pl.TASK_ID], i: pl.INDEX, tid: pl.Scalar[pl.TASK_ID]):
        done[i] = tid

    @pl.jit.inline
    def step(x: pl.Tensor, o: pl.Tensor, after: pl.TaskId) -> tuple[pl.Tensor, pl.Scalar[pl.TASK_ID]]:
        with pl.at(level=pl.Level.CORE_GROUP, deps=[after]) as tid:
            o[:] = pl.add(x, 1.0)
        return o, tid

    @pl.jit
    def k(x: pl.Tensor, n: pl.INT32, f: pl.Scalar[pl.FP32], o: pl.Out[pl.Tensor]) -> pl.Tensor:
        done = pl.array.create(2, pl.TASK_ID)
        o, tid = step(x, o, None)
        note(done, 0, tid)
        for _ in pl.range(n):
            o, tid = step(o, o, tid)
        note(done, 1, tid)
        with pl.at(level=pl.Level.CORE_GROUP, deps=[done]):
            o[:] = pl.mul(o, f)
        return o

    x = f32(16, 64)
    np.testing.assert_allclose(run(k, x, 2, 0.5), (x + 3) * 0.5, rtol=1e-6)


def test_scalars_come_from_everywhere():  # L-16
    rows = pl.dynamic("SCALAR_ROWS")

    @pl.jit.incore
    def k(
        x: pl.Tensor[[rows, 64], pl.FP32],
        n: pl.Tensor[[2, 2], pl.INT32],
        p: pl.Scalar[pl.INT32],
        o: pl.Out[pl.Tensor[[1, 16], pl.INT32]],
    ):
        arr = pl.array.create(3, pl.INT32)
        arr[2] = 40
        for i in pl.range(2, 3):
            pl.write(o, [0, 0], p)  # a parameter
            pl.write(o, [0, 1], pl.cast(i, pl.INT32))  # a loop variable
        pl.write(o, [0, 2], pl.read(n, [1, 0]))
        pl.write(o, [0, 3], n[0, 1])
        pl.write(o, [0, 4], pl.cast(pl.tensor.dim(x, 0), pl.INT32))
        pl.write(o, [0, 5], pl.cast(x.shape[1], pl.INT32))
        pl.write(o, [0, 6], pl.cast(pl.get_block_num(), pl.INT32))
        pl.write(o, [0, 7], pl.cast(x[1, 2], pl.INT32))
        pl.write(o, [0, 8], pl.const(-8, pl.INT32))
        pl.write(o, [0, 9], p * pl.const(3, pl.INT32) - pl.read(n, [0, 0]))
        pl.write(o, [0, 10], arr[2])
        pl.write(o, [0, 11], pl.cast(rows + 1, pl.INT32))
        return o

    @pl.jit
    def main(
        x: pl.Tensor[[rows, 64], pl.FP32],
        n: pl.Tensor[[2, 2], pl.INT32],
        o: pl.Out[pl.Tensor[[1, 16], pl.INT32]],
    ):
        o = k(x, n, pl.read(n, [1, 1]), o)
        return o

    x = f32(5, 64)
    x[1, 2] = -3.75
    n, o = np.array([[10, 11], [12, 13]], np.int32), np.zeros((1, 16), np.int32)
    main(x, n, o, config=SIM)
    np.testing.assert_array_equal(o[0, :12], [13, 2, 12, 11, 5, 64, 1, -3, -8, 29, 40, 6])


@pytest.mark.parametrize("dtype", ["INT8", "INT64", "BOOL"])
def test_arrays_of_integers_and_flags(dtype):  # L-25, L-132
    dt = getattr(pl, dtype)

    @pl.jit
    def k(x: pl.Tensor[SHAPE, DT], o: pl.Out[pl.Tensor[SHAPE, DT]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            arr: pl.Array[3, dt] = pl.array.create(3, dt)
            arr[1] = 1
            t = pl.load(x, [0, 0], [16, 64])
            for i in pl.range(3):
                t = pl.add(t, pl.cast(arr[i], pl.FP32))
            o = pl.store(t, [0, 0], o)
        return o

    x = f32(16, 64)
    if dtype == "BOOL":
        with pytest.raises(Exception, match="bool"):
            run(k, x)
        return
    np.testing.assert_array_equal(run(k, x), x + 1)
