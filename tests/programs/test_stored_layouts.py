# SPDX-License-Identifier: Apache-2.0
"""How arguments are stored (NZ, DN, strides), packed 4-bit arguments, and kernels that both lanes run."""

import numpy as np
import pypto.language as pl
import pytest
from pypto import ir
from pypto.runtime import RunConfig

SIM = RunConfig(platform="a2a3sim")
PLATFORMS = ["a2a3sim", "a5sim"]
RNG = np.random.default_rng(23)


def f32(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


def fractals(a):
    """The bytes of a matrix in blocks of 16 rows and 32 bytes, block columns first."""
    m, n = a.shape
    c0 = 32 // a.itemsize
    return np.ascontiguousarray(a.reshape(m // 16, 16, n // c0, c0).transpose(2, 0, 1, 3)).reshape(m, n)


@pl.jit
def weights(
    a: pl.Tensor[[32, 64], pl.FP16],
    w: pl.Tensor[[64, 48], pl.FP16, pl.NZ],
    o: pl.Out[pl.Tensor[[32, 48], pl.FP32]],
    c: pl.Out[pl.Tensor[[16, 48], pl.FP16]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        o[:] = pl.matmul(a, w, out_dtype=pl.FP32)
    with pl.at(level=pl.Level.CORE_GROUP):
        c = pl.store(pl.load(w, [8, 0], [16, 48]), [0, 0], c)
    return o, c


@pytest.mark.parametrize("platform", PLATFORMS)
def test_nz_argument_is_read_as_the_matrix_it_holds(platform):  # L-35
    a, w = f32(32, 64).astype(np.float16), f32(64, 48).astype(np.float16)
    o, c = np.zeros((32, 48), np.float32), np.zeros((16, 48), np.float16)
    given = fractals(w)
    before = given.copy()
    weights(a, given, o, c, config=RunConfig(platform=platform))
    np.testing.assert_array_equal(c, w[8:24])
    np.testing.assert_allclose(o, a.astype(np.float32) @ w.astype(np.float32), atol=1e-3)
    np.testing.assert_array_equal(given, before)


@pl.jit.incore
def put_rows(x: pl.Tensor, cache: pl.InOut[pl.Tensor]):
    return pl.store(pl.load(x, [0, 0], [16, 64]), [1, 16, 0], cache)


@pl.jit
def cached(x: pl.Tensor[[16, 64], pl.INT8], cache: pl.InOut[pl.Tensor[[2, 32, 64], pl.INT8, pl.TensorLayout.NZ]]):
    cache = put_rows(x, cache)
    return cache


def test_nz_argument_is_written_in_its_layout():  # L-35: the last two dimensions
    x = RNG.integers(-100, 100, (16, 64)).astype(np.int8)
    cache = RNG.integers(-100, 100, (2, 32, 64)).astype(np.int8)
    stored = np.stack([fractals(m) for m in cache])
    cached(x, stored, config=SIM)
    cache[1, 16:] = x
    np.testing.assert_array_equal(stored, np.stack([fractals(m) for m in cache]))


def test_nz_needs_whole_blocks():  # L-35
    @pl.jit
    def k(x: pl.Tensor[[8, 64], pl.FP32, pl.NZ], o: pl.Out[pl.Tensor[[8, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o[:] = pl.exp(x)
        return o

    with pytest.raises(ValueError, match="'x' has layout NZ.*multiples of 16 and of 8|layout NZ"):
        k(f32(8, 64), f32(8, 64), config=SIM)


def column_major(view):
    @pl.program
    class P:
        @pl.function(type=pl.FunctionType.InCore)
        def k(
            self, x: pl.Tensor[[32, 64], pl.FP32, view], o: pl.InOut[pl.Tensor[[32, 64], pl.FP32, view]]
        ) -> pl.Tensor[[32, 64], pl.FP32, view]:
            return pl.store(pl.exp(pl.load(x, [0, 0], [16, 64])), [16, 0], o)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: pl.Tensor[[32, 64], pl.FP32, view], o: pl.InOut[pl.Tensor[[32, 64], pl.FP32, view]]
        ) -> pl.Tensor[[32, 64], pl.FP32, view]:
            return self.k(x, o)

    return P


@pytest.mark.parametrize(
    "view",
    [
        pl.TensorView(layout=pl.TensorLayout.DN),
        pl.TensorView(stride=[1, 32], layout=pl.TensorLayout.DN),
        pl.TensorView(stride=[1, 32], layout=pl.TensorLayout.ND),
    ],
    ids=["DN", "DN-strides", "strides"],
)
def test_column_major_arguments(view):  # L-25, L-35, L-36
    x, o = f32(32, 64), f32(32, 64)
    stored = np.ascontiguousarray(o.T)
    ir.compile(column_major(view), platform="a2a3sim")(
        np.ascontiguousarray(x.T).reshape(32, 64), stored.reshape(32, 64)
    )
    np.testing.assert_allclose(stored.T[16:], np.exp(x[:16]), rtol=1e-5)
    np.testing.assert_array_equal(stored.T[:16], o[:16])


def test_strides_stay_within_the_array():  # L-36
    program = column_major(pl.TensorView(stride=[128, 1], layout=pl.TensorLayout.ND))
    with pytest.raises(ValueError, match="strides"):
        ir.compile(program, platform="a2a3sim")(f32(32, 64), f32(32, 64))


VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)


def halves(first, last):
    @pl.jit
    def k(x: pl.Tensor[[4, 64], pl.FP4], o: pl.Out[pl.Tensor[[4, last - first], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o[:] = pl.cast(x[:, first:last], pl.FP32)
        return o

    return k


def test_packed_arguments_count_elements_and_are_cut_at_bytes():  # L-10
    codes = RNG.integers(0, 256, (4, 32)).astype(np.uint8)
    table = np.concatenate([VALUES, -VALUES])
    whole = np.stack([table[codes & 15], table[codes >> 4]], -1).reshape(4, 64)
    o = np.zeros((4, 32), np.float32)
    halves(16, 48)(codes, o, config=RunConfig(platform="a5sim"))
    np.testing.assert_array_equal(o, whole[:, 16:48])
    with pytest.raises(Exception, match="even"):
        halves(15, 47)(codes, o, config=RunConfig(platform="a5sim"))
    with pytest.raises(Exception, match=r"fp4|FP4"):
        halves(16, 48)(codes, o, config=SIM)


@pl.program
class BothLanes:
    @pl.function(type=pl.FunctionType.AIV)
    def halve(
        self, x: pl.Tensor[[32, 32], pl.FP32], o: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        pl.func_attr({"dual_aiv_dispatch": True})
        lane = pl.tile.get_subblock_idx()
        t = pl.load(x, [lane * 16, 0], [16, 32])
        return pl.store(pl.mul(t, 2.0), [lane * 16, 0], o)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[32, 32], pl.FP32], o: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        return self.halve(x, o)


@pl.program
class LanesOfPair:
    @pl.function(type=pl.FunctionType.AIC)
    def cube(self, a: pl.Tensor[[32, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32]):
        peer = pl.import_peer_buffer(name="c2v", peer_func="vec")
        pl.aic_initialize_pipe(peer, 0, dir_mask=1, slot_size=4096)
        x = pl.load(a, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
        y = pl.load(b, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
        pl.tpush_to_aiv(pl.matmul(x, y), split=1)

    @pl.function(type=pl.FunctionType.AIV, attrs={"dual_aiv_dispatch": True})
    def vec(self, o: pl.Out[pl.Tensor[[32, 32], pl.FP32]]) -> pl.Tensor[[32, 32], pl.FP32]:
        ring = pl.reserve_buffer(name="c2v", size=8 * 4096, base=pl.AUTO)
        pl.aiv_initialize_pipe(ring, 0, dir_mask=1, slot_size=4096)
        lane = pl.tile.get_subblock_idx()
        p: pl.Tile[[16, 32], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=1)
        e = pl.add(p, 1.0)
        pl.tfree_to_aic(p, split=1)
        return pl.store(e, [lane * 16, 0], o)

    @pl.function(type=pl.FunctionType.Group)
    def pair(
        self,
        a: pl.Tensor[[32, 32], pl.FP32],
        b: pl.Tensor[[32, 32], pl.FP32],
        o: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        self.cube(a, b)
        o = self.vec(o)
        return o

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[32, 32], pl.FP32],
        b: pl.Tensor[[32, 32], pl.FP32],
        o: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        return self.pair(a, b, o)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_dual_dispatch_runs_both_lanes(platform):  # L-56, L-174
    a, b = f32(32, 32), f32(32, 32)
    o = np.zeros_like(a)
    compiled = ir.compile(BothLanes, platform=platform)
    compiled(a, o)
    np.testing.assert_array_equal(o, a * 2)
    o = np.zeros_like(a)
    ir.compile(LanesOfPair, platform=platform)(a, b, o)
    np.testing.assert_allclose(o, a @ b + 1, atol=1e-4)
