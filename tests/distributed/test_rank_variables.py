# SPDX-License-Identifier: Apache-2.0
"""The rank variable and the number of ranks under other names: temporaries, casts, parts of tuples, parameters and
results of inline helpers, for dispatches that receive windows (03 D-20, D-31; 01 L-59)."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, last_report

NR = pl.dynamic("NR")
ROW = [1, 40]
WORLD = pl.Tensor[[NR, *ROW], pl.FP32]
SLICE = pl.Tensor[ROW, pl.FP32]
BOX = pld.DistributedTensor[ROW, pl.FP32]
SIGNAL = pld.DistributedTensor[[NR, 1], pl.INT32]


@pl.jit
def pass_on(x: SLICE, y: pl.Out[SLICE], box: BOX, sig: SIGNAL):
    with pl.at(level=pl.Level.CORE_GROUP):
        ctx = pld.get_comm_ctx(box)
        pld.tensor.remote_store(x, box, (pld.rank(ctx) + 1) % pld.nranks(ctx), [0, 0])
        sig = pld.tensor.barrier(sig)
        y[:] = box
    return y


@pl.jit.inline
def ring(x, y, n):
    box_buf = pld.alloc_window_buffer(ROW, dtype=pl.FP32)
    sig_buf = pld.alloc_window_buffer([n, 1], dtype=pl.INT32)
    for r in pl.range(n):
        box = pld.window(box_buf, ROW, dtype=pl.FP32)
        pass_on(x[r], y[r], box, pld.window(sig_buf, [n, 1], dtype=pl.INT32), device=r)


@pl.jit.inline
def one_rank(x, y, box, sig, r):
    pass_on(x[r], y[r], box, sig, device=r)


@pl.jit.inline
def ranks():
    return pld.world_size()


@pl.jit.host
def helper_with_the_count(x: WORLD, y: pl.Out[WORLD]):
    ring(x, y, pld.world_size())


@pl.jit.host
def helper_with_the_rank(x: WORLD, y: pl.Out[WORLD]):
    n, columns = pld.world_size(), 1
    box_buf = pld.alloc_window_buffer(ROW, dtype=pl.FP32)
    sig_buf = pld.alloc_window_buffer([n, columns], dtype=pl.INT32)
    for r in pl.range(n):
        one_rank(x, y, pld.window(box_buf, ROW, dtype=pl.FP32), pld.window(sig_buf, [n, 1], dtype=pl.INT32), r)


@pl.jit.host
def temporaries(x: WORLD, y: pl.Out[WORLD]):
    n: pl.Scalar[pl.INT64] = ranks()
    m = n
    box_buf = pld.alloc_window_buffer(ROW, dtype=pl.FP32)
    sig_buf = pld.alloc_window_buffer([m, 1], dtype=pl.INT32)
    for r in pl.parallel(0, m):
        first = r
        rank: pl.Scalar[pl.INT32] = pl.cast(first, pl.INT32)
        box = pld.window(box_buf, ROW, dtype=pl.FP32)
        pass_on(x[first], y[rank], box, pld.window(sig_buf, [m, 1], dtype=pl.INT32), device=rank)


@pl.jit
def stage(x: SLICE, box: BOX):
    with pl.at(level=pl.Level.CORE_GROUP):
        box[:] = x
    return box


@pl.jit
def fetch(y: pl.Out[SLICE], box: BOX):
    with pl.at(level=pl.Level.CORE_GROUP):
        ctx = pld.get_comm_ctx(box)
        left = (pld.rank(ctx) + pld.nranks(ctx) - 1) % pld.nranks(ctx)
        y[:] = pld.tile.remote_load(box, left, [0, 0], ROW)
    return y


@pl.jit.inline
def meet(sig):
    pld.tensor.barrier(sig)


@pl.jit.inline
def meet_again(sig):
    return pld.tensor.barrier(sig)


@pl.jit.inline
def views(box_buf, sig_buf, n):
    return pld.window(box_buf, ROW, dtype=pl.FP32), pld.window(sig_buf, [n, 1], dtype=pl.INT32)


@pl.jit.host
def collectives_in_helpers(x: WORLD, y: pl.Out[WORLD]):  # C-1: a statement of a helper is a statement
    n = pld.world_size()
    box_buf = pld.alloc_window_buffer(ROW, dtype=pl.FP32)
    sig_buf = pld.alloc_window_buffer([n, 1], dtype=pl.INT32)
    box, sig = views(box_buf, sig_buf, n)
    for r in pl.range(n):
        stage(x[r], box, device=r)
    meet(sig)
    sig = meet_again(sig)
    for r in pl.range(n):
        fetch(y[r], box, device=r)


@pl.program
class ProgramInline:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: SLICE, y: pl.Out[SLICE], box: BOX, sig: SIGNAL):
        ctx = pld.get_comm_ctx(box)
        tile = pl.load(x, [0, 0], ROW)
        pld.tile.remote_store(tile, box, (pld.rank(ctx) + 1) % pld.nranks(ctx), [0, 0])
        sig = pld.tensor.barrier(sig)
        y = pl.store(pl.load(box, [0, 0], ROW), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def device(self, x: SLICE, y: pl.Out[SLICE], box: BOX, sig: SIGNAL):
        self.kernel(x, y, box, sig)

    @pl.function(type=pl.FunctionType.Inline)
    def each(self, x: WORLD, y: WORLD, box: BOX, sig: SIGNAL, r: pl.Scalar[pl.INDEX]):
        self.device(x[r], y[r], box, sig, device=r)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def main(self, x: WORLD, y: pl.Out[WORLD]):
        box_buf = pld.alloc_window_buffer(ROW, dtype=pl.FP32)
        sig_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
        box = pld.window(box_buf, ROW, dtype=pl.FP32)
        sig = pld.window(sig_buf, [pld.world_size(), 1], dtype=pl.INT32)
        for q in pl.range(pld.world_size()):
            self.each(x, y, box, sig, q)


def config(count):
    return RunConfig(platform="a2a3sim", distributed_config=DistributedConfig(device_ids=list(range(count))))


def run(program, x, y):
    if isinstance(program, ir.Program):
        ir.compile(program, platform="a2a3sim", distributed_config=config(len(x)).distributed_config)(x, y)
    else:
        program(x, y, config=config(len(x)))


PROGRAMS = [helper_with_the_count, helper_with_the_rank, temporaries, collectives_in_helpers, ProgramInline]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: getattr(p, "__name__", None) or p.name)
@pytest.mark.parametrize("count", [1, 3])
def test_other_names(program, count):
    x = np.random.default_rng(count).standard_normal((count, *ROW), dtype=np.float32)
    y = np.zeros_like(x)
    run(program, x, y)
    np.testing.assert_array_equal(y, np.roll(x, 1, axis=0))


def test_a_race_with_a_host_collective_names_its_statement():  # X-0, M-33
    @pl.jit
    def push(x: SLICE, box: BOX):
        with pl.at(level=pl.Level.CORE_GROUP):
            ctx = pld.get_comm_ctx(box)
            pld.tensor.remote_store(x, box, (pld.rank(ctx) + 1) % pld.nranks(ctx), [0, 0])
        return box

    @pl.jit.host
    def unordered(x: WORLD):
        box_buf = pld.alloc_window_buffer(ROW, dtype=pl.FP32)
        box = pld.window(box_buf, ROW, dtype=pl.FP32)
        for r in pl.range(pld.world_size()):
            stage(x[r], box, device=r)
        pld.tensor.allreduce(box, op=pld.ReduceOp.Max)
        for r in pl.range(pld.world_size()):
            push(x[r], box, device=r)

    x = np.random.default_rng(3).standard_normal((2, *ROW), dtype=np.float32)
    unordered(x, config=config(2))
    (report,) = (d for d in last_report().diagnostics if d.id == "X-40" and d.severity == "warning")
    assert "in the dispatch of 'builtin.tensor.allreduce__max__fp32' at " in str(report)
    assert "<unknown>" not in report.message


def test_a_changed_loop_variable_is_no_rank_variable():
    @pl.jit.host
    def wrong(x: WORLD, y: pl.Out[WORLD]):
        box_buf = pld.alloc_window_buffer(ROW, dtype=pl.FP32)
        sig_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
        sig = pld.window(sig_buf, [pld.world_size(), 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            s = r
            s = s * 0
            pass_on(x[r], y[r], pld.window(box_buf, ROW, dtype=pl.FP32), sig, device=s)

    with pytest.raises(Exception, match="X-5: unsupported device= expression 's'"):
        wrong.compile(config=config(2))
