# SPDX-License-Identifier: Apache-2.0
"""Small distributed cases that real kernels tripped over: delays, reuse, one signal for everything, lost credits."""

import ml_dtypes
import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from pypto import DeadlockError
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions, last_report
from worlds import NR, SIZE, arrays, host

SCHEDULES = [{}, {"threads": 1}, *({"schedule": "explore", "seed": s} for s in range(4))]
MANY = [*SCHEDULES, *({"schedule": "explore", "seed": s, "delay_remote": True} for s in range(3))]


def compile_for(program, world, *args):
    config = RunConfig(platform="a2a3sim", distributed_config=DistributedConfig(device_ids=list(range(world))))
    return program.compile(*args, config=config)


def run(compiled, *args, **sim):
    compiled(*args, config=RunConfig(platform="a2a3sim", sim=SimOptions(**sim)))
    return last_report().diagnostics


# ---------------------------------------------------------------- D1, D9, D13


@pl.jit.incore
def compute_send_wait(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[1, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    a = pl.mul(pl.load(x, [0, 0], [1, SIZE]), 2.0)
    pld.tile.remote_store(a, data, peer=(me + 1) % nranks, offsets=[0, 0])
    pld.system.notify(signal, (me + 1) % nranks, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    b = pl.add(a, 1.0)
    pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)
    y = pl.store(pl.add(b, pl.load(data, [0, 0], [1, SIZE])), [0, 0], y)
    return y


@pytest.mark.parametrize("sim", MANY, ids=str)
@pytest.mark.parametrize("world", [2, 3, 5])
def test_d1_compute_send_compute_wait(world, sim):
    x, y = arrays(world)
    assert run(compile_for(host(compute_send_wait, signal_rows=1), world, x, y), x, y, **sim) == []
    np.testing.assert_allclose(y, 2 * x + 1 + 2 * np.roll(x, 1, axis=0), rtol=1e-6)


@pl.jit.incore
def meet_and_update(
    y: pl.InOut[pl.Tensor[[1, SIZE], pl.FP32]],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    own = pl.load(y, [0, 0], [1, SIZE])
    signal = pld.tensor.barrier(signal)
    y = pl.store(pl.mul(own, 3.0), [0, 0], y)
    return y


@pl.jit
def meet_on_device(
    y: pl.InOut[pl.Tensor[[1, SIZE], pl.FP32]],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    y = meet_and_update(y, signal)
    return y


@pl.jit.host
def meet(y: pl.InOut[pl.Tensor[[NR, 1, SIZE], pl.FP32]]):
    signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        meet_on_device(y[r], signal, device=r)


@pytest.mark.parametrize("sim", SCHEDULES, ids=str)
def test_d9_slices_of_one_tensor_meet(sim):
    x, _ = arrays(4)
    y = x.copy()
    assert run(compile_for(meet, 4, y), y, **sim) == []
    np.testing.assert_allclose(y, 3 * x, rtol=1e-6)


@pl.jit.incore
def slow_start(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    me = pld.rank(pld.get_comm_ctx(data))
    acc = pl.load(x, [0, 0], [1, SIZE])
    if me == 0:
        pld.tile.remote_store(acc, data, peer=1, offsets=[0, 0])
        pld.system.notify(signal, 1, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    if me == 1:
        for i in pl.range(100000):  # longer than a quantum: rank 0 has ended long before the wait
            acc = pl.add(acc, 0.0)
        pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)
        acc = pl.load(data, [0, 0], [1, SIZE])
    y = pl.store(acc, [0, 0], y)
    return y


def test_d13_the_signal_comes_before_the_slow_rank():
    x, y = arrays(2)
    assert run(compile_for(host(slow_start), 2, x, y), x, y) == []
    np.testing.assert_array_equal(y, np.stack([x[0], x[0]]))


# ---------------------------------------------------------------- D2, D3, D18


def allreduces(size, lengths, ring, dtype=pl.FP32):
    """All-reduces back to back on one signal; round k takes row k of x, `lengths[k]` elements."""
    rounds = len(lengths)
    mode = "ring" if ring else "mesh"
    if lengths[0] == lengths[-1]:
        n0 = n1 = n2 = lengths[0]
    else:
        n0, n1, n2 = lengths

    def make(world):
        rows, cols = (2 * (world - 1), world) if ring else (world, 1)

        @pl.jit.incore
        def kernel(
            x: pl.Tensor[[rounds, size], dtype],
            y: pl.Out[pl.Tensor[[rounds, size], dtype]],
            cells: pl.Out[pl.Tensor[[rows, cols], pl.INT32]],
            d0: pld.DistributedTensor[[1, n0], dtype],
            d1: pld.DistributedTensor[[1, n1], dtype],
            d2: pld.DistributedTensor[[1, n2], dtype],
            signal: pld.DistributedTensor[[rows, cols], pl.INT32],
        ):
            d0 = pl.store(pl.load(x, [0, 0], [1, n0]), [0, 0], d0)
            d0 = pld.tensor.allreduce(d0, signal, op=pld.ReduceOp.Sum, mode=mode)
            y = pl.store(pl.load(d0, [0, 0], [1, n0]), [0, 0], y)
            d1 = pl.store(pl.load(x, [1, 0], [1, n1]), [0, 0], d1)
            d1 = pld.tensor.allreduce(d1, signal, op=pld.ReduceOp.Sum, mode=mode)
            y = pl.store(pl.load(d1, [0, 0], [1, n1]), [1, 0], y)
            d2 = pl.store(pl.load(x, [2, 0], [1, n2]), [0, 0], d2)
            d2 = pld.tensor.allreduce(d2, signal, op=pld.ReduceOp.Sum, mode=mode)
            y = pl.store(pl.load(d2, [0, 0], [1, n2]), [2, 0], y)
            for i in pl.range(rows):
                for j in pl.range(cols):
                    pl.write(cells, [i, j], pl.read(signal, [i, j]))
            return y, cells

        @pl.jit
        def on_device(
            x: pl.Tensor[[rounds, size], dtype],
            y: pl.Out[pl.Tensor[[rounds, size], dtype]],
            cells: pl.Out[pl.Tensor[[rows, cols], pl.INT32]],
            d0: pld.DistributedTensor[[1, n0], dtype],
            d1: pld.DistributedTensor[[1, n1], dtype],
            d2: pld.DistributedTensor[[1, n2], dtype],
            signal: pld.DistributedTensor[[rows, cols], pl.INT32],
        ):
            y, cells = kernel(x, y, cells, d0, d1, d2, signal)
            return y, cells

        @pl.jit.host
        def program(
            x: pl.Tensor[[NR, rounds, size], dtype],
            y: pl.Out[pl.Tensor[[NR, rounds, size], dtype]],
            cells: pl.Out[pl.Tensor[[NR, rows, cols], pl.INT32]],
        ):
            buf0 = pld.alloc_window_buffer([1, n0], dtype=dtype)
            buf1 = pld.alloc_window_buffer([1, n1], dtype=dtype)
            buf2 = pld.alloc_window_buffer([1, n2], dtype=dtype)
            signal_buf = pld.alloc_window_buffer([rows, cols], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                d0 = pld.window(buf0, [1, n0], dtype=dtype)
                d1 = pld.window(buf1, [1, n1], dtype=dtype)
                d2 = pld.window(buf2, [1, n2], dtype=dtype)
                signal = pld.window(signal_buf, [rows, cols], dtype=pl.INT32)
                on_device(x[r], y[r], cells[r], d0, d1, d2, signal, device=r)

        shape = (world, rows, cols)
        return program, shape

    return make


def check_allreduces(world, lengths, ring, dtype=pl.FP32, numpy_dtype=np.float32, **sim):
    size = max(lengths) + 24  # a tail that must stay as it is
    program, cells_shape = allreduces(size, lengths, ring, dtype)(world)
    values = np.random.default_rng(world).integers(-9, 10, (world, 3, size))
    x = values.astype(numpy_dtype)
    y = np.full_like(x, -77)
    cells = np.full(cells_shape, 5, dtype=np.int32)
    compiled = compile_for(program, world, x, y, cells)
    assert run(compiled, x, y, cells, checks="strict", **sim) == []
    want = np.full_like(x, -77)
    for k, n in enumerate(lengths):
        want[:, k, :n] = values[:, k, :n].sum(axis=0).astype(numpy_dtype)
    np.testing.assert_array_equal(y, want)
    assert not cells.any()


@pytest.mark.parametrize("sim", [{}, {"schedule": "explore", "seed": 1}], ids=str)
@pytest.mark.parametrize("ring", [False, True], ids=["mesh", "ring"])
@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("weight", [2, 3, 50])
def test_d2_one_signal_and_a_late_rank(weight, world, ring, sim):
    check_allreduces(world, (64, 64, 64), ring, rank_weights={1: weight}, **sim)


@pytest.mark.parametrize("sim", SCHEDULES, ids=str)
@pytest.mark.parametrize("ring", [False, True], ids=["mesh", "ring"])
@pytest.mark.parametrize("world,sums", [(2, (3, 30)), (4, (10, 100))])
def test_d2_two_allreduces_on_one_signal(world, sums, ring, sim):
    program, cells_shape = allreduces(64 + 24, (64, 64, 64), ring)(world)
    x = np.zeros((world, 3, 88), dtype=np.float32)
    y, cells = np.full_like(x, -77), np.full(cells_shape, 5, dtype=np.int32)
    for r in range(world):
        x[r, 0], x[r, 1] = r + 1, 10 * (r + 1)
    compiled = compile_for(program, world, x, y, cells)
    assert run(compiled, x, y, cells, checks="strict", rank_weights={1: 4}, **sim) == []
    assert (y[:, 0, :64] == sums[0]).all() and (y[:, 1, :64] == sums[1]).all()
    assert not cells.any()


DTYPES = {"FP32": np.float32, "FP16": np.float16, "BF16": ml_dtypes.bfloat16, "INT32": np.int32}


@pytest.mark.parametrize("length", [1, 7, 257, 5000])
@pytest.mark.parametrize("ring", [False, True], ids=["mesh", "ring"])
@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("dtype", DTYPES)
def test_d3_lengths_and_dtypes(world, ring, length, dtype):
    check_allreduces(world, (length,) * 3, ring, getattr(pl, dtype), DTYPES[dtype])


def with_tail(world, n, dtype, ring):
    """An all-reduce of the first n elements of a window of n + 24; the whole window comes out."""
    rows, cols = (2 * (world - 1), world) if ring else (world, 1)
    mode = "ring" if ring else "mesh"
    whole = n + 24

    @pl.jit.incore
    def kernel(
        x: pl.Tensor[[1, whole], dtype],
        y: pl.Out[pl.Tensor[[1, whole], dtype]],
        data: pld.DistributedTensor[[1, whole], dtype],
        head: pld.DistributedTensor[[1, n], dtype],
        signal: pld.DistributedTensor[[rows, cols], pl.INT32],
    ):
        data = pl.store(pl.load(x, [0, 0], [1, whole]), [0, 0], data)
        head = pld.tensor.allreduce(head, signal, op=pld.ReduceOp.Sum, mode=mode)
        y = pl.store(pl.load(data, [0, 0], [1, whole]), [0, 0], y)
        return y

    @pl.jit
    def on_device(
        x: pl.Tensor[[1, whole], dtype],
        y: pl.Out[pl.Tensor[[1, whole], dtype]],
        data: pld.DistributedTensor[[1, whole], dtype],
        head: pld.DistributedTensor[[1, n], dtype],
        signal: pld.DistributedTensor[[rows, cols], pl.INT32],
    ):
        y = kernel(x, y, data, head, signal)
        return y

    @pl.jit.host
    def program(x: pl.Tensor[[NR, 1, whole], dtype], y: pl.Out[pl.Tensor[[NR, 1, whole], dtype]]):
        buf = pld.alloc_window_buffer([1, whole], dtype=dtype)
        signal_buf = pld.alloc_window_buffer([rows, cols], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(buf, [1, whole], dtype=dtype)
            head = pld.window(buf, [1, n], dtype=dtype)
            signal = pld.window(signal_buf, [rows, cols], dtype=pl.INT32)
            on_device(x[r], y[r], data, head, signal, device=r)

    return program


@pytest.mark.parametrize("length", [1, 7, 257, 5000])
@pytest.mark.parametrize("ring", [False, True], ids=["mesh", "ring"])
@pytest.mark.parametrize("world", [2, 4])
@pytest.mark.parametrize("dtype", DTYPES)
def test_d3_the_window_behind_the_tail_stays(world, ring, length, dtype):
    values = np.random.default_rng(length).integers(-9, 10, (world, 1, length + 24))
    x = values.astype(DTYPES[dtype])
    y = np.zeros_like(x)
    assert (
        run(compile_for(with_tail(world, length, getattr(pl, dtype), ring), world, x, y), x, y, checks="strict") == []
    )
    values[:, :, :length] = values[:, :, :length].sum(axis=0)
    np.testing.assert_array_equal(y, values.astype(DTYPES[dtype]))


@pytest.mark.parametrize("sim", [{}, {"schedule": "explore", "seed": 2}], ids=str)
def test_d18_three_rings_of_growing_length(sim):
    check_allreduces(4, (3, 64, 20000), True, rank_weights={2: 5}, **sim)


# ---------------------------------------------------------------- D5


@pl.jit.incore
def set_own_cell(
    y: pl.Out[pl.Tensor[[NR, 1], pl.INT32]],
    cells: pld.DistributedTensor[[NR, 1], pl.INT32],
    done: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(cells)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    for i in pl.range(50):
        pld.system.notify(cells, 0, [me, 0], 1000 * (me + 1) + i, op=pld.NotifyOp.Set)
    done = pld.tensor.barrier(done)
    if me == 0:
        for i in pl.range(nranks):
            pl.write(y, [i, 0], pl.read(cells, [i, 0]))
    return y


@pl.jit
def set_on_device(
    y: pl.Out[pl.Tensor[[NR, 1], pl.INT32]],
    cells: pld.DistributedTensor[[NR, 1], pl.INT32],
    done: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    y = set_own_cell(y, cells, done)
    return y


@pl.jit.host
def sets(y: pl.Out[pl.Tensor[[NR, NR, 1], pl.INT32]]):
    cells_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    done_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        cells = pld.window(cells_buf, [pld.world_size(), 1], dtype=pl.INT32)
        done = pld.window(done_buf, [pld.world_size(), 1], dtype=pl.INT32)
        set_on_device(y[r], cells, done, device=r)


@pytest.mark.parametrize("sim", SCHEDULES, ids=str)
def test_d5_sets_of_adjacent_cells(sim):
    y = np.zeros((5, 5, 1), dtype=np.int32)
    assert run(compile_for(sets, 5, y), y, **sim) == []
    assert y[0, :, 0].tolist() == [1049, 2049, 3049, 4049, 5049]


# ---------------------------------------------------------------- D7

ROWS, WIDE = 16, 16384  # 16 pieces of 64 KiB


def pushes(by_put):
    @pl.jit.incore
    def kernel(
        x: pl.Tensor[[ROWS, WIDE], pl.FP32],
        y: pl.Out[pl.Tensor[[ROWS, WIDE], pl.FP32]],
        data: pld.DistributedTensor[[ROWS, WIDE], pl.FP32],
        signal: pld.DistributedTensor[[1, 1], pl.INT32],
    ):
        me = pld.rank(pld.get_comm_ctx(data))
        if me == 0:
            if by_put:
                pld.tensor.put(data, 1, x)
            else:
                for i in pl.range(ROWS):
                    pld.tile.remote_store(pl.load(x, [i, 0], [1, WIDE]), data, peer=1, offsets=[i, 0])
            back = pld.tile.remote_load(data, peer=1, offsets=[5, 0], shape=[1, WIDE])
            y = pl.store(back, [5, 0], y)
            pld.system.notify(signal, 1, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        if me == 1:
            pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)
            for i in pl.range(ROWS):
                y = pl.store(pl.load(data, [i, 0], [1, WIDE]), [i, 0], y)
        return y

    @pl.jit
    def on_device(
        x: pl.Tensor[[ROWS, WIDE], pl.FP32],
        y: pl.Out[pl.Tensor[[ROWS, WIDE], pl.FP32]],
        data: pld.DistributedTensor[[ROWS, WIDE], pl.FP32],
        signal: pld.DistributedTensor[[1, 1], pl.INT32],
    ):
        y = kernel(x, y, data, signal)
        return y

    @pl.jit.host
    def program(
        x: pl.Tensor[[NR, ROWS, WIDE], pl.FP32],
        y: pl.Out[pl.Tensor[[NR, ROWS, WIDE], pl.FP32]],
    ):
        data_buf = pld.alloc_window_buffer([ROWS, WIDE], dtype=pl.FP32)
        signal_buf = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [ROWS, WIDE], dtype=pl.FP32)
            signal = pld.window(signal_buf, [1, 1], dtype=pl.INT32)
            on_device(x[r], y[r], data, signal, device=r)

    return program


@pytest.mark.parametrize("by_put", [False, True], ids=["remote_store", "put"])
@pytest.mark.parametrize(
    "sim", [{}, *({"schedule": "explore", "seed": s, "delay_remote": True} for s in range(3))], ids=str
)
def test_d7_a_mebibyte_in_pieces(by_put, sim):
    rng = np.random.default_rng(7)
    x = rng.standard_normal((2, ROWS, WIDE), dtype=np.float32)
    y = np.zeros_like(x)
    assert run(compile_for(pushes(by_put), 2, x, y), x, y, **sim) == []
    np.testing.assert_array_equal(y[1], x[0])
    np.testing.assert_array_equal(y[0, 5], x[0, 5])  # the pusher sees its own


# ---------------------------------------------------------------- D11, D17


@pl.jit.incore
def gather_own_rows(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[NR, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    data = pl.store(pl.load(x, [0, 0], [1, SIZE]), [me, 0], data)
    signal = pld.tensor.barrier(signal)
    for q in pl.range(nranks):
        y = pl.store(pld.tile.remote_load(data, peer=q, offsets=[q, 0], shape=[1, SIZE]), [q, 0], y)
    return y


@pytest.mark.parametrize("sim", SCHEDULES, ids=str)
def test_d11_own_rows_gathered(sim):
    x, y = arrays(4, 1, 4)
    program = host(gather_own_rows, y_rows=NR, data_rows=NR)
    assert run(compile_for(program, 4, x, y), x, y, checks="strict", **sim) == []
    np.testing.assert_array_equal(y, np.broadcast_to(x[:, 0], y.shape))


@pl.jit.incore
def two_broadcasts(
    x: pl.Tensor[[2, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[2, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    me = pld.rank(pld.get_comm_ctx(data))
    for k in pl.range(2):
        if me == 0:
            data = pl.store(pl.load(x, [k, 0], [1, SIZE]), [0, 0], data)
        data = pld.tensor.broadcast(data, signal, root=0)
        y = pl.store(pl.load(data, [0, 0], [1, SIZE]), [k, 0], y)
    return y


@pl.jit
def broadcasts_on_device(
    x: pl.Tensor[[2, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[2, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    y = two_broadcasts(x, y, data, signal)
    return y


@pl.jit.host
def broadcasts(
    x: pl.Tensor[[NR, 2, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, 2, SIZE], pl.FP32]],
):
    data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        broadcasts_on_device(x[r], y[r], data, signal, device=r)


@pytest.mark.parametrize("sim", [{}, {"schedule": "explore", "seed": 3}], ids=str)
def test_d17_two_broadcasts_and_a_slow_reader(sim):
    x, y = arrays(3, 2, 2)
    compiled = compile_for(broadcasts, 3, x, y)
    assert run(compiled, x, y, checks="strict", rank_weights={2: 6}, **sim) == []
    np.testing.assert_array_equal(y, np.broadcast_to(x[0], y.shape))


# ---------------------------------------------------------------- D15


@pl.jit.incore
def wait_for_nobody(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    me = pld.rank(pld.get_comm_ctx(data))
    if me == 1:
        pld.system.notify(signal, 1, [1, 0], 2, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(signal, [1, 0], 5, cmp=pld.WaitCmp.Ge)
    y = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], y)
    return y


def test_d15_a_wait_that_nobody_satisfies():
    x, y = arrays(3)
    compiled = compile_for(host(wait_for_nobody), 3, x, y)
    with pytest.raises(DeadlockError) as caught:
        run(compiled, x, y)
    (wait,) = caught.value.diagnostic.waits
    line = next(i for i, text in enumerate(open(__file__), 1) if "[1, 0], 5, cmp" in text)
    assert (wait.rank, wait.seen, wait.needed, wait.line) == (1, 2, 5, line)
    assert "deadlock" in str(caught.value) and "[1, 0]" in str(caught.value)


# ---------------------------------------------------------------- D19


def tally(threshold):
    @pl.jit.incore
    def kernel(
        x: pl.Tensor[[1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
        data: pld.DistributedTensor[[NR, SIZE], pl.FP32],
        signal: pld.DistributedTensor[[NR, 1], pl.INT32],
    ):
        ctx = pld.get_comm_ctx(data)
        me = pld.rank(ctx)
        if me > 0:
            pld.tensor.put(data, 0, x, dst_offsets=[me, 0], src_offsets=[0, 0], shape=[1, SIZE])
            pld.system.notify(signal, 0, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        if me == 0:
            pld.system.wait(signal, [0, 0], threshold, cmp=pld.WaitCmp.Ge)
            for q in pl.range(1, 4):
                y = pl.store(pl.load(data, [q, 0], [1, SIZE]), [q, 0], y)
        return y

    return host(kernel, y_rows=NR, data_rows=NR)


@pytest.mark.parametrize("sim", [*SCHEDULES, *({"schedule": "explore", "seed": s} for s in range(4, 40))], ids=str)
def test_d19_two_of_three_arrivals(sim):  # 03 M-30, X-45
    x, y = arrays(4, 1, 4)
    found = run(compile_for(tally(2), 4, x, y), x, y, collect=True, **sim)
    assert {d.id for d in found} == {"X-40/X-45"}
    assert all("order-dependent" in f"{d.title} {d.message}" for d in found)
    assert run(compile_for(tally(3), 4, x, y), x, y, checks="strict", **sim) == []
    np.testing.assert_array_equal(y[0, 1:], x[1:, 0])
