# SPDX-License-Identifier: Apache-2.0
"""More small cases that real kernels tripped over (two carries, bare returns, wrapping rings, every instruction set)."""

import numpy as np
import pypto.language as pl
import pytest
from pypto import _core, ir
from pypto.language.parser.diagnostics import ScopeIsolationError
from pypto.runtime import RunConfig

SIM = RunConfig(platform="a2a3sim")
RNG = np.random.default_rng(30)


def f32(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


@pytest.mark.parametrize("level", ["tile", "tensor"])
def test_k5_two_accumulators_in_one_loop(level):
    if level == "tile":

        @pl.jit
        def k(
            x: pl.Tensor[[4, 32], pl.FP32],
            a: pl.Out[pl.Tensor[[4, 32], pl.FP32]],
            b: pl.Out[pl.Tensor[[4, 32], pl.FP32]],
        ):
            with pl.at(level=pl.Level.CORE_GROUP):
                s = pl.load(x, [0, 0], [4, 32])
                t = pl.load(x, [0, 0], [4, 32])
                for _ in pl.range(4):
                    s = pl.add(s, 1.0)
                    t = pl.add(t, 10.0)
                a = pl.store(s, [0, 0], a)
                b = pl.store(t, [0, 0], b)
            return a, b
    else:

        @pl.jit
        def k(
            x: pl.Tensor[[4, 32], pl.FP32],
            a: pl.Out[pl.Tensor[[4, 32], pl.FP32]],
            b: pl.Out[pl.Tensor[[4, 32], pl.FP32]],
        ):
            with pl.at(level=pl.Level.CORE_GROUP):
                s = pl.mul(x, 1.0)
                t = pl.mul(x, 1.0)
                for _ in pl.range(4):
                    s = pl.add(s, 1.0)
                    t = pl.add(t, 10.0)
                a[:] = s
                b[:] = t
            return a, b

    for x in (np.zeros((4, 32), np.float32), np.arange(128, dtype=np.float32).reshape(4, 32)):
        a, b = np.full_like(x, -1), np.full_like(x, -2)
        k(x, a, b, config=SIM)
        np.testing.assert_array_equal(a, x + 4)
        np.testing.assert_array_equal(b, x + 40)


@pl.program
class Direct:
    @pl.function(type=pl.FunctionType.InCore)
    def add(
        self, a: pl.Tensor[[8, 32], pl.FP32], b: pl.InOut[pl.Tensor[[8, 32], pl.FP32]]
    ) -> pl.Tensor[[8, 32], pl.FP32]:
        b = pl.store(pl.add(pl.load(a, [0, 0], [8, 32]), pl.load(b, [0, 0], [8, 32])), [0, 0], b)
        return b

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[[8, 32], pl.FP32], b: pl.InOut[pl.Tensor[[8, 32], pl.FP32]]
    ) -> pl.Tensor[[8, 32], pl.FP32]:
        return self.add(a, b)


@pl.program
class Bound:
    @pl.function(type=pl.FunctionType.InCore)
    def add(
        self, a: pl.Tensor[[8, 32], pl.FP32], b: pl.InOut[pl.Tensor[[8, 32], pl.FP32]]
    ) -> pl.Tensor[[8, 32], pl.FP32]:
        b = pl.store(pl.add(pl.load(a, [0, 0], [8, 32]), pl.load(b, [0, 0], [8, 32])), [0, 0], b)
        return b

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[[8, 32], pl.FP32], b: pl.InOut[pl.Tensor[[8, 32], pl.FP32]]
    ) -> pl.Tensor[[8, 32], pl.FP32]:
        for _, (c,) in pl.range(3, init_values=(b,)):
            d = self.add(a, c)
            (r,) = pl.yield_(d)
        return r


@pl.program
class Loop:
    @pl.function(type=pl.FunctionType.InCore)
    def add(
        self, a: pl.Tensor[[8, 32], pl.FP32], b: pl.InOut[pl.Tensor[[8, 32], pl.FP32]]
    ) -> pl.Tensor[[8, 32], pl.FP32]:
        b = pl.store(pl.add(pl.load(a, [0, 0], [8, 32]), pl.load(b, [0, 0], [8, 32])), [0, 0], b)
        return b

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[[8, 32], pl.FP32], b: pl.InOut[pl.Tensor[[8, 32], pl.FP32]]
    ) -> pl.Tensor[[8, 32], pl.FP32]:
        for _, (c,) in pl.range(3, init_values=(b,)):
            (r,) = pl.yield_(self.add(a, c))
        return r


@pytest.mark.parametrize("program,trips", [(Direct, 1), (Bound, 3), (Loop, 3)])
def test_k7_call_returned_or_carried_without_a_name(program, trips):
    a, b = f32(8, 32), f32(8, 32)
    want = b.copy()
    for _ in range(trips):
        want = a + want
    ir.compile(program)(a, b)
    np.testing.assert_array_equal(b, want)


def test_k7_jit_body_that_is_one_return():
    @pl.jit.incore
    def add(a: pl.Tensor, b: pl.InOut[pl.Tensor]):
        b = pl.store(pl.add(pl.load(a, [0, 0], [8, 32]), pl.load(b, [0, 0], [8, 32])), [0, 0], b)
        return b

    @pl.jit
    def main(a: pl.Tensor[[8, 32], pl.FP32], b: pl.InOut[pl.Tensor[[8, 32], pl.FP32]]):
        return add(a, b)

    a, b = f32(8, 32), f32(8, 32)
    want = a + b
    main(a, b, config=SIM)
    np.testing.assert_array_equal(b, want)


def test_k14_reshape_of_a_prefix_scales_the_valid_rows():
    @pl.jit
    def k(x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[16, 8], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [8, 16], valid_shape=[5, 16])
            o = pl.store(pl.reshape(t, [16, 8]), [0, 0], o)
        return o

    x = f32(8, 16)
    o = np.full((16, 8), -3.25, np.float32)
    k(x, o, config=SIM)
    np.testing.assert_array_equal(o[:10], x[:5].reshape(10, 8))
    np.testing.assert_array_equal(o[10:], -3.25)


@pytest.mark.parametrize("name", _core.instruction_sets())
@pytest.mark.parametrize("chains", [True, False])
def test_k24_row_sum_on_every_instruction_set(name, chains):  # 02 O-307, B-36
    @pl.jit
    def k(x: pl.Tensor[[8, 4], pl.FP32], o: pl.Out[pl.Tensor[[8, 1], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o[:] = pl.row_sum(pl.mul(x, 1.0))
        return o

    x = np.tile(np.array([1e8, 1, -1e8, 0], np.float32), (8, 1)) * (1 + np.arange(8, dtype=np.float32))[:, None]
    o = np.zeros((8, 1), np.float32)
    try:
        _core.use_instruction_set(name)
        _core.set_emit_debug(False, chains)
        k(x, o, config=SIM)
    finally:
        _core.use_instruction_set("")
        _core.set_emit_debug(False, True)
    np.testing.assert_array_equal(o[:, 0], 1 + np.arange(8))


@pl.program
class Wrapping:
    """Two slots each way; the producer fills both before the consumer takes one, three times around."""

    @pl.function(type=pl.FunctionType.AIV)
    def feeder(
        self, x: pl.Tensor[[96, 16], pl.FP32], out: pl.Out[pl.Tensor[[96, 16], pl.FP32]]
    ) -> pl.Tensor[[96, 16], pl.FP32]:
        peer = pl.import_peer_buffer(name="v2c", peer_func="mul")
        ring = pl.reserve_buffer(name="c2v", size=2 * 1024, base=pl.AUTO)
        pl.aiv_initialize_pipe(ring, peer, dir_mask=3, slot_size=1024, slot_num=2)
        for i in pl.range(3):
            pl.tpush_to_aic(pl.load(x, [i * 32, 0], [16, 16]), split=0)
            pl.tpush_to_aic(pl.load(x, [i * 32 + 16, 0], [16, 16]), split=0)
            for j in pl.range(2):
                p: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)
                out = pl.store(pl.add(p, 1.0), [i * 32 + j * 16, 0], out)
                pl.tfree_to_aic(p)
        return out

    @pl.function(type=pl.FunctionType.AIC)
    def mul(self, w: pl.Tensor[[16, 16], pl.FP32]):
        ring = pl.reserve_buffer(name="v2c", size=2 * 1024, base=pl.AUTO)
        peer = pl.import_peer_buffer(name="c2v", peer_func="feeder")
        pl.aic_initialize_pipe(peer, ring, dir_mask=3, slot_size=1024, slot_num=2)
        right = pl.load(w, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
        for _ in pl.range(6):
            s: pl.Tile[[16, 16], pl.FP32, pl.Mem.Mat] = pl.tpop_from_aiv(split=0)
            p = pl.matmul(s, right)
            pl.tfree_to_aiv(s)
            pl.tpush_to_aiv(p, split=0)

    @pl.function(type=pl.FunctionType.Group)
    def pair(
        self,
        x: pl.Tensor[[96, 16], pl.FP32],
        w: pl.Tensor[[16, 16], pl.FP32],
        out: pl.Out[pl.Tensor[[96, 16], pl.FP32]],
    ) -> pl.Tensor[[96, 16], pl.FP32]:
        self.mul(w)
        out = self.feeder(x, out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[96, 16], pl.FP32],
        w: pl.Tensor[[16, 16], pl.FP32],
        out: pl.Out[pl.Tensor[[96, 16], pl.FP32]],
    ) -> pl.Tensor[[96, 16], pl.FP32]:
        out = self.pair(x, w, out)
        return out


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
def test_k30_ring_that_wraps_keeps_the_order(platform):
    x, w = np.arange(96 * 16, dtype=np.float32).reshape(96, 16) % 61, np.eye(16, dtype=np.float32)[::-1].copy()
    out = np.zeros_like(x)
    ir.compile(Wrapping, platform=platform)(x, w, out)
    np.testing.assert_array_equal(out, x[:, ::-1] + 1)


def test_g2_handle_of_a_task_of_an_ended_scope():
    """A handle ends with its MANUAL scope; the edge to a task after the scope is automatic (01 L-166)."""

    def program(stated):
        @pl.jit
        def k(x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
            with pl.manual_scope():
                with pl.at(level=pl.Level.CORE_GROUP) as tid:
                    o[0:4, :] = pl.add(x[0:4, :], 1.0)
            with pl.at(level=pl.Level.CORE_GROUP, deps=[tid if stated else None]):
                o[4:8, :] = pl.add(pl.add(x[4:8, :], o[0:4, :]), 2.0)
            return o

        return k

    x, o = f32(8, 16), np.zeros((8, 16), np.float32)
    with pytest.raises(ScopeIsolationError, match="which has ended") as caught:
        program(True)(x, o, config=SIM)
    assert caught.value.span["filename"] == __file__
    program(False)(x, o, config=SIM)
    np.testing.assert_array_equal(o[:4], x[:4] + 1)
    np.testing.assert_array_equal(o[4:], x[4:] + (x[:4] + 1) + 2)
