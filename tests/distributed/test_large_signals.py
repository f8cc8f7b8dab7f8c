# SPDX-License-Identifier: Apache-2.0
"""Signals of many pages whose cells are also plain memory: notifies, waits and data operations see the same bytes."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from everywhere import everywhere
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions

NR = pl.dynamic("NR")
ROWS, COLUMNS = 96, 1024  # 384 KiB: a row is a page
RNG = np.random.default_rng(96)


def both_ways(world):
    """Every rank notifies cells of the next one, which reads them, writes others, and waits for those."""

    @pl.jit.incore
    def kernel(
        x: pl.Tensor[[ROWS, COLUMNS], pl.INT32],
        y: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.INT32]],
        cells: pld.DistributedTensor[[ROWS, COLUMNS], pl.INT32],
        done: pld.DistributedTensor[[4, 1], pl.INT32],
    ):
        ctx = pld.get_comm_ctx(cells)
        me = pld.rank(ctx)
        n = pld.nranks(ctx)
        right = (me + 1) % n
        # Cells of signals only, of rows that are written below, of rows that are read below.
        for k in pl.range(ROWS):
            pld.system.notify(
                cells, peer=right, offsets=[k, (k * 37) % COLUMNS], value=k + 1, op=pld.NotifyOp.AtomicAdd
            )
        pld.system.notify(done, peer=right, offsets=[0, 0], value=1, op=pld.NotifyOp.AtomicAdd)
        for k in pl.range(ROWS):
            pld.system.wait(cells, offsets=[k, (k * 37) % COLUMNS], expected=k + 1, cmp=pld.WaitCmp.Eq)
        pld.system.wait(done, offsets=[0, 0], expected=1, cmp=pld.WaitCmp.Ge)
        # Rows 0 .. 7: read, with what the notifies left; rows 8 .. 15: replaced as a whole.
        y = pl.store(pl.load(cells, [0, 0], [8, COLUMNS]), [0, 0], y)
        cells = pl.store(pl.load(x, [8, 0], [8, COLUMNS]), [8, 0], cells)
        for k in pl.range(8, 16):
            pld.system.wait(cells, offsets=[k, 5], expected=pl.read(x, [k, 5]), cmp=pld.WaitCmp.Eq)
            pld.system.notify(cells, peer=me, offsets=[k, 5], value=1000, op=pld.NotifyOp.AtomicAdd)
            pld.system.wait(cells, offsets=[k, 5], expected=pl.read(x, [k, 5]) + 1000, cmp=pld.WaitCmp.Eq)
        # Row 20: one element, between cells of the same page.
        pl.write(cells, [20, 7], 77)
        pld.system.wait(cells, offsets=[20, 7], expected=77, cmp=pld.WaitCmp.Eq)
        pld.system.wait(cells, offsets=[20, (20 * 37) % COLUMNS], expected=21, cmp=pld.WaitCmp.Eq)
        # Row 30: set, cleared, set again, never read before the end.
        for v in pl.range(3):
            pld.system.notify(cells, peer=me, offsets=[30, 9], value=v * 50, op=pld.NotifyOp.Set)
            pld.system.wait(cells, offsets=[30, 9], expected=v * 50, cmp=pld.WaitCmp.Eq)
        pld.tensor.put(cells, me, x, dst_offsets=[40, 8], src_offsets=[40, 8], shape=[2, 500])
        pld.system.wait(cells, offsets=[41, 507], expected=pl.read(x, [41, 507]), cmp=pld.WaitCmp.Eq)
        y = pl.store(pl.load(cells, [8, 0], [40, COLUMNS]), [8, 0], y)
        pld.tensor.get(
            y,
            me,
            cells,
            dst_offsets=[48, 0],
            src_offsets=[48, 0],
            shape=[48, COLUMNS],
            chunk_rows=24,
            chunk_cols=COLUMNS,
        )
        return y

    @pl.jit
    def on_device(
        x: pl.Tensor[[ROWS, COLUMNS], pl.INT32],
        y: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.INT32]],
        cells: pld.DistributedTensor[[ROWS, COLUMNS], pl.INT32],
        done: pld.DistributedTensor[[4, 1], pl.INT32],
    ):
        return kernel(x, y, cells, done)

    @pl.jit.host
    def program(x: pl.Tensor[[NR, ROWS, COLUMNS], pl.INT32], y: pl.Out[pl.Tensor[[NR, ROWS, COLUMNS], pl.INT32]]):
        cells_buf = pld.alloc_window_buffer([ROWS, COLUMNS], dtype=pl.INT32)
        done_buf = pld.alloc_window_buffer([4, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            cells = pld.window(cells_buf, [ROWS, COLUMNS], dtype=pl.INT32)
            done = pld.window(done_buf, [4, 1], dtype=pl.INT32)
            on_device(x[r], y[r], cells, done, device=r)

    return program


def model(x):
    want = np.zeros_like(x)
    rows = np.arange(ROWS)
    want[:, rows, rows * 37 % COLUMNS] = rows + 1
    want[:, 8:16] = x[:, 8:16]
    want[:, 8:16, 5] += 1000
    want[:, 20, 7] = 77
    want[:, 30, 9] = 100
    want[:, 40:42, 8:508] = x[:, 40:42, 8:508]
    return want


@pytest.mark.parametrize("p", [1, 2, 3])
def test_cells_are_bytes_of_the_window(p):  # W-21, O-20, M-23
    x = RNG.integers(-(2**20), 2**20, (p, ROWS, COLUMNS), dtype=np.int32)
    everywhere(both_ways(p), [x, np.full_like(x, -7)], p, {1: model(x)})


def counting(world):
    """Adds to one far cell in every call, and shows its neighbourhood when asked to."""

    @pl.jit.incore
    def kernel(
        show: pl.Tensor[[1, 8], pl.INT32],
        y: pl.Out[pl.Tensor[[1, COLUMNS], pl.INT32]],
        cells: pld.DistributedTensor[[ROWS, COLUMNS], pl.INT32],
    ):
        me = pld.rank(pld.get_comm_ctx(cells))
        pld.system.notify(cells, peer=me, offsets=[50, 11], value=1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(cells, offsets=[50, 11], expected=1, cmp=pld.WaitCmp.Ge)
        if pl.read(show, [0, 0]) > 0:
            y = pl.store(pl.load(cells, [50, 0], [1, COLUMNS]), [0, 0], y)
        return y

    @pl.jit
    def on_device(
        show: pl.Tensor[[1, 8], pl.INT32],
        y: pl.Out[pl.Tensor[[1, COLUMNS], pl.INT32]],
        cells: pld.DistributedTensor[[ROWS, COLUMNS], pl.INT32],
    ):
        return kernel(show, y, cells)

    @pl.jit.host
    def program(show: pl.Tensor[[1, 8], pl.INT32], y: pl.Out[pl.Tensor[[NR, 1, COLUMNS], pl.INT32]]):
        cells_buf = pld.alloc_window_buffer([ROWS, COLUMNS], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            cells = pld.window(cells_buf, [ROWS, COLUMNS], dtype=pl.INT32)
            on_device(show, y[r], cells, device=r)

    return program


@pytest.mark.parametrize("reset", [False, True])
def test_persistent_cells(reset):  # W-13, W-31, DST-28, DST-29
    hide, show = np.zeros((1, 8), np.int32), np.ones((1, 8), np.int32)
    y = np.zeros((2, 1, COLUMNS), np.int32)
    config = RunConfig(platform="a2a3sim", distributed_config=DistributedConfig(device_ids=[0, 1]))
    compiled = counting(2).compile(hide, y, config=config)
    with compiled.prepare(persistent=True, reset_persistent_windows=reset) as rt:
        for flag in (hide, hide, show, hide, show):
            rt(flag, y)
    want = np.zeros_like(y)
    want[:, 0, 11] = 1 if reset else 5
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("checks", ["off", "default"])
def test_windows_of_a_later_call_are_zero(checks):  # W-13
    """A call fills a large window, the next one shows what it finds in one, with a notify beside it."""
    world = 3

    @pl.jit.incore
    def kernel(
        x: pl.Tensor[[ROWS, COLUMNS], pl.INT32],
        y: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.INT32]],
        cells: pld.DistributedTensor[[ROWS, COLUMNS], pl.INT32],
    ):
        me = pld.rank(pld.get_comm_ctx(cells))
        if pl.read(x, [0, 0]) > 0:
            pld.tensor.put(cells, me, x)
        else:
            pld.system.wait(cells, offsets=[70, 3], expected=0, cmp=pld.WaitCmp.Eq)
            pld.system.notify(cells, peer=me, offsets=[70, 3], value=5, op=pld.NotifyOp.AtomicAdd)
            pld.system.wait(cells, offsets=[70, 3], expected=5, cmp=pld.WaitCmp.Eq)
            pl.write(cells, [20, 9], 7)
        pld.tensor.get(y, me, cells)
        return y

    @pl.jit
    def on_device(
        x: pl.Tensor[[ROWS, COLUMNS], pl.INT32],
        y: pl.Out[pl.Tensor[[ROWS, COLUMNS], pl.INT32]],
        cells: pld.DistributedTensor[[ROWS, COLUMNS], pl.INT32],
    ):
        return kernel(x, y, cells)

    @pl.jit.host
    def program(x: pl.Tensor[[ROWS, COLUMNS], pl.INT32], y: pl.Out[pl.Tensor[[NR, ROWS, COLUMNS], pl.INT32]]):
        cells_buf = pld.alloc_window_buffer([ROWS, COLUMNS], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            cells = pld.window(cells_buf, [ROWS, COLUMNS], dtype=pl.INT32)
            on_device(x, y[r], cells, device=r)

    full = RNG.integers(1, 1000, (ROWS, COLUMNS), dtype=np.int32)
    y = np.zeros((world, ROWS, COLUMNS), np.int32)
    config = RunConfig(platform="a2a3sim", distributed_config=DistributedConfig(device_ids=list(range(world))))
    compiled = program.compile(full, y, config=config)
    want = np.zeros_like(full)
    want[70, 3], want[20, 9] = 5, 7
    for _ in range(2):
        compiled(full, y, config=RunConfig(sim=SimOptions(checks=checks)))
        np.testing.assert_array_equal(y, np.tile(full, (world, 1, 1)))
        compiled(np.zeros_like(full), y, config=RunConfig(sim=SimOptions(checks=checks)))
        np.testing.assert_array_equal(y, np.tile(want, (world, 1, 1)))


@pytest.mark.parametrize("checks", ["off", "strict"])
def test_a_ring_of_many(checks):  # C-22, Z-13: a page for each cell of its signal
    world, n = 96, 200

    @pl.jit.incore
    def kernel(
        x: pl.Tensor[[1, n], pl.FP32],
        y: pl.Out[pl.Tensor[[1, n], pl.FP32]],
        data: pld.DistributedTensor[[1, n], pl.FP32],
        signal: pld.DistributedTensor[[2 * (world - 1), world], pl.INT32],
    ):
        for _ in pl.range(2):
            data = pl.store(pl.load(x, [0, 0], [1, n]), [0, 0], data)
            data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum, mode="ring")
        y = pl.store(pl.load(data, [0, 0], [1, n]), [0, 0], y)
        return y

    @pl.jit
    def on_device(
        x: pl.Tensor[[1, n], pl.FP32],
        y: pl.Out[pl.Tensor[[1, n], pl.FP32]],
        data: pld.DistributedTensor[[1, n], pl.FP32],
        signal: pld.DistributedTensor[[2 * (world - 1), world], pl.INT32],
    ):
        return kernel(x, y, data, signal)

    @pl.jit.host
    def program(x: pl.Tensor[[NR, 1, n], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, n], pl.FP32]]):
        data_buf = pld.alloc_window_buffer([1, n], dtype=pl.FP32)
        signal_buf = pld.alloc_window_buffer([2 * (world - 1), world], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [1, n], dtype=pl.FP32)
            signal = pld.window(signal_buf, [2 * (world - 1), world], dtype=pl.INT32)
            on_device(x[r], y[r], data, signal, device=r)

    x = RNG.integers(-99, 99, (world, 1, n)).astype(np.float32)  # sums are exact in any order
    y = np.zeros_like(x)
    config = RunConfig(platform="a2a3sim", distributed_config=DistributedConfig(device_ids=list(range(world))))
    compiled = program.compile(x, y, config=config)
    compiled(x, y, config=RunConfig(sim=SimOptions(checks=checks)))
    np.testing.assert_array_equal(y, np.broadcast_to(x.sum(axis=0), y.shape))
