# SPDX-License-Identifier: Apache-2.0
"""Cube and vector parts of one kernel: automatic crossings, split_aiv, hand-written channels, barriers, launches."""

import numpy as np
import pypto.language as pl
import pytest
from pypto import ir
from pypto.runtime import RunConfig

RNG = np.random.default_rng(31)
PLATFORMS = ["a2a3sim", "a5sim"]


def f32(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("mode", [pl.SplitMode.NONE, pl.SplitMode.UP_DOWN, pl.SplitMode.LEFT_RIGHT])
def test_split_hint_changes_no_result(platform, mode):  # 01 L-129, L-170
    @pl.jit
    def k(a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32], o: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(mode)]):
            c = pl.matmul(a, b)
            o[:] = pl.maximum(pl.mul(c, 0.5), 0.0)
        return o

    a, b = f32(32, 64), f32(64, 32)
    o = np.zeros((32, 32), np.float32)
    k(a, b, o, config=RunConfig(platform=platform))
    np.testing.assert_allclose(o, np.maximum(a @ b * 0.5, 0), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [32, 17])
def test_split_aiv_up_down(rows):  # 01 L-122, L-125, L-127
    @pl.jit
    def k(
        a: pl.Tensor[[rows, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32], o: pl.Out[pl.Tensor[[rows, 32], pl.FP32]]
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            c = pl.matmul(pl.load(a, [0, 0], [rows, 64]), pl.load(b, [0, 0], [64, 32]))
            for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                part = pl.aiv_shard(c)
                o = pl.store(pl.mul(part, 3.0), [lane * ((rows + 1) // 2), 0], o)
        return o

    a, b = f32(rows, 64), f32(64, 32)
    o = np.zeros((rows, 32), np.float32)
    k(a, b, o, config=RunConfig(platform="a2a3sim"))
    np.testing.assert_allclose(o, 3 * (a @ b), rtol=1e-4, atol=1e-4)


def test_gather_back_to_the_cube():  # 01 L-125
    @pl.jit
    def k(a: pl.Tensor[[32, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32], o: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            ta = pl.load(a, [0, 0], [32, 32])
            tb = pl.load(b, [0, 0], [32, 32])
            c = pl.matmul(ta, tb)
            for _ in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                half = pl.aiv_shard(c)
                back = pl.aic_gather(pl.add(half, 1.0))
            d = pl.matmul(back, tb)
            o = pl.store(d, [0, 0], o)
        return o

    a, b = f32(32, 32), f32(32, 32)
    o = np.zeros((32, 32), np.float32)
    k(a, b, o, config=RunConfig(platform="a2a3sim"))
    np.testing.assert_allclose(o, (a @ b + 1) @ b, rtol=1e-3, atol=1e-3)


def make_ring(trips):
    """A two-way cube/vector ring in a Group: the vector side scales, the cube multiplies."""

    @pl.program
    class Ring:
        @pl.function(type=pl.FunctionType.AIV)
        def feeder(
            self,
            x: pl.Tensor[[16 * trips, 16], pl.FP32],
            out: pl.Out[pl.Tensor[[16 * trips, 16], pl.FP32]],
        ) -> pl.Tensor[[16 * trips, 16], pl.FP32]:
            back = pl.reserve_buffer(name="c2v", size=2 * 1024, base=pl.AUTO)
            peer = pl.import_peer_buffer(name="v2c", peer_func="mul")
            pl.aiv_initialize_pipe(back, peer, dir_mask=3, slot_size=1024, slot_num=2)
            for i in pl.range(trips):
                pl.tpush_to_aic(pl.mul(pl.load(x, [i * 16, 0], [16, 16]), 2.0), split=0)
                p: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)
                out = pl.store(pl.add(p, 1.0), [i * 16, 0], out)
                pl.tfree_to_aic(p)
            return out

        @pl.function(type=pl.FunctionType.AIC)
        def mul(self, w: pl.Tensor[[16, 16], pl.FP32]):
            ring = pl.reserve_buffer(name="v2c", size=2 * 1024, base=pl.AUTO)
            peer = pl.import_peer_buffer(name="c2v", peer_func="feeder")
            pl.aic_initialize_pipe(peer, ring, dir_mask=3, slot_size=1024, slot_num=2)
            right = pl.load(w, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
            for _ in pl.range(trips):
                s: pl.Tile[[16, 16], pl.FP32, pl.Mem.Mat] = pl.tpop_from_aiv(split=0)
                p = pl.matmul(s, right)
                pl.tfree_to_aiv(s)
                pl.tpush_to_aiv(p, split=0)

        @pl.function(type=pl.FunctionType.Group)
        def pair(
            self,
            x: pl.Tensor[[16 * trips, 16], pl.FP32],
            w: pl.Tensor[[16, 16], pl.FP32],
            out: pl.Out[pl.Tensor[[16 * trips, 16], pl.FP32]],
        ) -> pl.Tensor[[16 * trips, 16], pl.FP32]:
            self.mul(w)
            out = self.feeder(x, out)
            return out

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            x: pl.Tensor[[16 * trips, 16], pl.FP32],
            w: pl.Tensor[[16, 16], pl.FP32],
            out: pl.Out[pl.Tensor[[16 * trips, 16], pl.FP32]],
        ) -> pl.Tensor[[16 * trips, 16], pl.FP32]:
            out = self.pair(x, w, out)
            return out

    return Ring


@pytest.mark.parametrize("trips", [1, 7])
def test_two_way_ring(trips, tmp_path):  # case K30, 01 L-173, 02 O-2103
    x, w = f32(16 * trips, 16), f32(16, 16)
    out = np.zeros_like(x)
    ir.compile(make_ring(trips), output_dir=tmp_path / "b", dump_passes=False)(x, w, out)
    np.testing.assert_allclose(out, (2 * x) @ w + 1, rtol=1e-4, atol=1e-4)


def test_soft_barrier_between_blocks():  # 01 L-169
    @pl.jit
    def k(
        x: pl.Tensor[[8, 32], pl.FP32],
        tmp: pl.Out[pl.Tensor[[8, 32], pl.FP32]],
        ws: pl.InOut[pl.Tensor[[16], pl.INT32]],
        o: pl.Out[pl.Tensor[[8, 32], pl.FP32]],
    ):
        for i in pl.spmd(8, name_hint="reverse"):
            tmp = pl.store(pl.mul(pl.load(x, [i, 0], [1, 32]), 2.0), [i, 0], tmp)
            pl.system.syncall(core_type="aiv_only", mode="soft", gm_workspace=ws, used_cores=8)
            o = pl.store(pl.load(tmp, [7 - i, 0], [1, 32]), [i, 0], o)
        return tmp, o

    x = f32(8, 32)
    tmp, o = np.zeros_like(x), np.zeros_like(x)
    k(x, tmp, np.zeros(16, np.int32), o, config=RunConfig(platform="a2a3sim"))
    np.testing.assert_array_equal(o, 2 * x[::-1])


def test_blocks_without_a_barrier_race():  # 01 L-119, L-175
    @pl.jit
    def k(
        x: pl.Tensor[[8, 32], pl.FP32],
        tmp: pl.Out[pl.Tensor[[8, 32], pl.FP32]],
        o: pl.Out[pl.Tensor[[8, 32], pl.FP32]],
    ):
        for i in pl.spmd(8):
            tmp = pl.store(pl.mul(pl.load(x, [i, 0], [1, 32]), 2.0), [i, 0], tmp)
            o = pl.store(pl.load(tmp, [7 - i, 0], [1, 32]), [i, 0], o)
        return tmp, o

    x = f32(8, 32)
    with pytest.raises(RuntimeError, match="race"):
        k(x, np.zeros_like(x), np.zeros_like(x), config=RunConfig(platform="a2a3sim"))


def test_wrong_participant_count_is_a_deadlock():  # case B-30, 01 L-176
    @pl.jit
    def k(
        x: pl.Tensor[[4, 32], pl.FP32], ws: pl.InOut[pl.Tensor[[16], pl.INT32]], o: pl.Out[pl.Tensor[[4, 32], pl.FP32]]
    ):
        for i in pl.spmd(4):
            t = pl.load(x, [i, 0], [1, 32])
            pl.system.syncall(core_type="aiv_only", mode="soft", gm_workspace=ws, used_cores=5)
            o = pl.store(t, [i, 0], o)
        return o

    x = f32(4, 32)
    with pytest.raises(RuntimeError):
        k(x, np.zeros(16, np.int32), np.zeros_like(x), config=RunConfig(platform="a2a3sim"))


def test_blocks_beyond_the_cores_run_in_waves():  # 01 L-117
    @pl.jit
    def k(x: pl.Tensor[[200, 32], pl.FP32], o: pl.Out[pl.Tensor[[200, 32], pl.FP32]]):
        for i in pl.spmd(200):
            o = pl.store(pl.neg(pl.load(x, [i, 0], [1, 32])), [i, 0], o)
        return o

    x = f32(200, 32)
    o = np.zeros_like(x)
    k(x, o, config=RunConfig(platform="a2a3sim"))
    np.testing.assert_array_equal(o, -x)


def test_predicate_skips_a_task(tmp_path):  # 01 L-136
    @pl.program
    class Conditional:
        @pl.function(type=pl.FunctionType.InCore)
        def fill(
            self, x: pl.Tensor[[8, 32], pl.FP32], o: pl.Out[pl.Tensor[[8, 32], pl.FP32]]
        ) -> pl.Tensor[[8, 32], pl.FP32]:
            o = pl.store(pl.load(x, [0, 0], [8, 32]), [0, 0], o)
            return o

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            x: pl.Tensor[[8, 32], pl.FP32],
            flags: pl.Tensor[[2], pl.INT32],
            a: pl.Out[pl.Tensor[[8, 32], pl.FP32]],
            b: pl.Out[pl.Tensor[[8, 32], pl.FP32]],
        ):
            a, _ = pl.submit(self.fill, x, a, predicate=(flags[0] > 2))
            b, _ = pl.submit(self.fill, x, b, predicate=(flags[1] > 2))

    compiled = ir.compile(Conditional, output_dir=tmp_path / "b", dump_passes=False)
    x = f32(8, 32)
    a, b = np.full_like(x, 9), np.full_like(x, 9)
    compiled(x, np.array([3, 2], np.int32), a, b)
    np.testing.assert_array_equal(a, x)
    np.testing.assert_array_equal(b, 9)


def test_explicit_while():  # 01 L-102
    @pl.jit
    def k(n: pl.Tensor[[1], pl.INT32], o: pl.Out[pl.Tensor[[1, 8], pl.INT32]]):
        start = pl.cast(pl.read(n, [0]), pl.INDEX)
        with pl.at(level=pl.Level.CORE_GROUP):
            zero = pl.const(0, pl.INDEX)
            for value, steps in pl.while_(init_values=(start, zero)):
                pl.cond(value > 1)
                if value % 2 == 0:
                    nxt = value // 2
                else:
                    nxt = value * 3 + 1
                value, steps = pl.yield_(nxt, steps + 1)
            pl.write(o, [0, 0], pl.cast(steps, pl.INT32))
        return o

    o = np.zeros((1, 8), np.int32)
    k(np.array([27], np.int32), o, config=RunConfig(platform="a2a3sim"))
    assert o[0, 0] == 111  # Collatz
