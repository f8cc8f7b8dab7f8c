# SPDX-License-Identifier: Apache-2.0
"""Corners of the distributed namespace that small programs reach: views, ranks of tensors, domains, forms of calls."""

import ml_dtypes
import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from everywhere import everywhere, noise
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions, last_report

NR = pl.dynamic("NR")
C = 64
RNG = np.random.default_rng(63)


# ---------------------------------------------------------------- views of one buffer in two dtypes (W-21)


@pl.jit.incore
def bits_kernel(
    x: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[1, C], pl.INT32]],
    as_float: pld.DistributedTensor[[1, C], pl.FP32],
    as_int: pld.DistributedTensor[[1, C], pl.INT32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(as_int)
    as_float = pl.store(pl.load(x, [0, 0], [1, C]), [0, 0], as_float)
    pld.tensor.barrier(signal)
    y = pl.store(pld.remote_load(as_int, (pld.rank(ctx) + 1) % pld.nranks(ctx), [0, 0], [1, C]), [0, 0], y)
    return y


@pl.jit
def bits_on_device(
    x: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[1, C], pl.INT32]],
    as_float: pld.DistributedTensor[[1, C], pl.FP32],
    as_int: pld.DistributedTensor[[1, C], pl.INT32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    return bits_kernel(x, y, as_float, as_int, signal)


@pl.jit.host
def bits(x: pl.Tensor[[NR, 1, C], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, C], pl.INT32]]):
    buf = pld.alloc_window_buffer(C * 4)
    sig = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        as_float = pld.window(buf, [1, C], dtype=pl.FP32)
        as_int = pld.window(buf, [1, C], dtype=pl.INT32)
        signal = pld.window(sig, [pld.world_size(), 1], dtype=pl.INT32)
        bits_on_device(x[r], y[r], as_float, as_int, signal, device=r)


@pytest.mark.parametrize("p", [1, 3])
def test_two_views_alias_byte_for_byte(p):  # W-21
    x = noise(RNG, p, 1, C)
    want = np.roll(x, -1, axis=0).view(np.int32).astype(np.float64)
    everywhere(bits, [x, np.zeros((p, 1, C), np.int32)], p, {1: want}, 0)


# ---------------------------------------------------------------- windows of higher rank, valid shapes, columns


@pl.jit.incore
def ranks_kernel(
    x: pl.Tensor[[2, 3, 8, 32], pl.FP32],
    y: pl.Out[pl.Tensor[[2, 3, 8, 32], pl.FP32]],
    column: pl.Out[pl.Tensor[[8, 1], pl.INT32]],
    data: pld.DistributedTensor[[2, 3, 8, 32], pl.FP32],
    cells: pld.DistributedTensor[[NR, 2, 4], pl.INT32],
    flat: pld.DistributedTensor[[8, 1], pl.INT32],
    line: pld.DistributedTensor[[16], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    right = (me + 1) % n
    left = (me + n - 1) % n
    pld.tensor.put(data, right, x, [0, 0, 0, 0], [0, 0, 0, 0], [2, 3, 8, 32])
    pld.system.notify(cells, right, [me, 1, 3], 5, op=pld.NotifyOp.AtomicAdd)
    pld.system.notify(line, right, [15], 2, op=pld.NotifyOp.Set)
    for i in pl.range(8):
        pld.system.notify(flat, right, [i, 0], 10 * me + i, op=pld.NotifyOp.Set)
    pld.system.notify(line, right, [3], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(cells, [left, 1, 3], 5, cmp=pld.WaitCmp.Eq)
    pld.system.wait(line, [15], 2, cmp=pld.WaitCmp.Ge)
    pld.system.wait(line, [3], 1, cmp=pld.WaitCmp.Ge)
    column = pl.store(pl.load(flat, [0, 0], [8, 1]), [0, 0], column)
    pld.tensor.get(y, me, data, [0, 1, 0, 0], [0, 1, 0, 0], [2, 2, 8, 32])
    row = pld.tile.remote_load(data, me, [1, 0, 2, 0], [1, 1, 4, 32])
    y = pl.store(row, [1, 0, 2, 0], y)
    part = pld.tile.remote_load(data, me, [0, 0, 0, 0], [1, 1, 8, 32], valid_shape=[1, 1, 3 + me, 20])
    y = pl.store(part, [0, 0, 0, 0], y)
    return y, column


@pl.jit
def ranks_on_device(
    x: pl.Tensor[[2, 3, 8, 32], pl.FP32],
    y: pl.Out[pl.Tensor[[2, 3, 8, 32], pl.FP32]],
    column: pl.Out[pl.Tensor[[8, 1], pl.INT32]],
    data: pld.DistributedTensor[[2, 3, 8, 32], pl.FP32],
    cells: pld.DistributedTensor[[NR, 2, 4], pl.INT32],
    flat: pld.DistributedTensor[[8, 1], pl.INT32],
    line: pld.DistributedTensor[[16], pl.INT32],
):
    y, column = ranks_kernel(x, y, column, data, cells, flat, line)
    return y, column


@pl.jit.host
def higher_ranks(
    x: pl.Tensor[[NR, 2, 3, 8, 32], pl.FP32],
    y: pl.InOut[pl.Tensor[[NR, 2, 3, 8, 32], pl.FP32]],
    column: pl.Out[pl.Tensor[[NR, 8, 1], pl.INT32]],
):
    db = pld.alloc_window_buffer([2, 3, 8, 32], dtype=pl.FP32)
    cb = pld.alloc_window_buffer([pld.world_size(), 2, 4], dtype=pl.INT32)
    fb = pld.alloc_window_buffer([8, 1], dtype=pl.INT32)
    lb = pld.alloc_window_buffer([16], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(db, [2, 3, 8, 32], dtype=pl.FP32)
        cells = pld.window(cb, [pld.world_size(), 2, 4], dtype=pl.INT32)
        flat = pld.window(fb, [8, 1], dtype=pl.INT32)
        line = pld.window(lb, [16], dtype=pl.INT32)
        ranks_on_device(x[r], y[r], column[r], data, cells, flat, line, device=r)


@pytest.mark.parametrize("p", [1, 2, 4])
def test_higher_ranks_and_valid_shapes(p):  # O-20, O-30 - O-35, O-55
    x, y = noise(RNG, p, 2, 3, 8, 32), np.full((p, 2, 3, 8, 32), 9, np.float32)
    came = np.roll(x, 1, axis=0)
    want = y.copy()
    want[:, :, 1:] = came[:, :, 1:]
    want[:, 1, 0, 2:6] = came[:, 1, 0, 2:6]
    for r in range(p):
        want[r, 0, 0, : 3 + r, :20] = came[r, 0, 0, : 3 + r, :20]
    left = (np.arange(p) - 1) % p
    column = (10 * left[:, None] + np.arange(8))[:, :, None]
    everywhere(higher_ranks, [x, y, np.zeros((p, 8, 1), np.int32)], p, {1: want, 2: column}, 0)


# ---------------------------------------------------------------- collectives at tensor level, one-block spmd, returned


@pl.jit.incore
def returns_barrier(signal: pld.DistributedTensor[[NR, 1], pl.INT32]):
    return pld.tensor.barrier(signal)


@pl.jit.incore
def returns_sum(data: pld.DistributedTensor[[1, C], pl.FP32], signal: pld.DistributedTensor[[NR, 1], pl.INT32]):
    return pld.tensor.allreduce(data, signal)


@pl.jit
def regions(
    x: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[4, C], pl.FP32]],
    data: pld.DistributedTensor[[1, C], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    me = pld.rank(pld.get_comm_ctx(data))
    with pl.at(level=pl.Level.CORE_GROUP):
        data[:, :] = pl.mul(x, 2.0)
        data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Max)
        y[0:1, :] = data
    with pl.spmd(1):
        pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum)
        y[1:2, :] = pl.add(data, pl.cast(pl.get_block_idx(), pl.FP32))
    signal = returns_barrier(signal)
    with pl.at(level=pl.Level.CORE_GROUP):
        data[:, :] = pl.mul(x, pl.cast(me + 1, pl.FP32))
    total = returns_sum(data, signal)
    with pl.at(level=pl.Level.CORE_GROUP):
        y[2:3, :] = total
        if me == 0:
            data[:, :] = x
        pld.tensor.broadcast(data, signal, root=0)
        y[3:4, :] = pl.add(data, 1.0)
    return y


@pl.jit.host
def tensor_level(x: pl.Tensor[[NR, 1, C], pl.FP32], y: pl.Out[pl.Tensor[[NR, 4, C], pl.FP32]]):
    db = pld.alloc_window_buffer([1, C], dtype=pl.FP32)
    sb = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(db, [1, C], dtype=pl.FP32)
        signal = pld.window(sb, [pld.world_size(), 1], dtype=pl.INT32)
        regions(x[r], y[r], data, signal, device=r)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_collectives_in_regions(p):  # 6.1, C-1, C-10
    x = noise(RNG, p, 1, C)
    top = 2 * x.max(axis=0)
    weighted = (x * np.arange(1, p + 1)[:, None, None]).sum(axis=0)
    want = np.concatenate([top, p * top, weighted, x[0] + 1])
    everywhere(tensor_level, [x, noise(RNG, p, 4, C)], p, {1: np.broadcast_to(want, (p, 4, C))})


# ---------------------------------------------------------------- data movers of every dtype; targets larger than needed


def mover(kind, dtype, extra):
    rows = extra

    @pl.jit.incore
    def kernel(
        x: pl.Tensor[[NR, C], dtype],
        y: pl.Out[pl.Tensor[[rows, C], dtype]],
        data: pld.DistributedTensor[[rows, C], dtype],
        signal: pld.DistributedTensor[[rows, 1], pl.INT32],
    ):
        me = pld.rank(pld.get_comm_ctx(data))
        if kind == "allgather":
            data = pld.tensor.allgather(x[me : me + 1, :], data, signal)
        if kind == "all_to_all":
            data = pld.tensor.all_to_all(x, data, signal)
        if kind == "broadcast":
            data = pl.store(pl.load(x, [me, 0], [1, C]), [rows - 1, 0], data)
            data = pld.tensor.broadcast(data, signal, root=1)
        y = pl.store(pl.load(data, [0, 0], [rows, C]), [0, 0], y)
        return y

    @pl.jit
    def on_device(
        x: pl.Tensor[[NR, C], dtype],
        y: pl.Out[pl.Tensor[[rows, C], dtype]],
        data: pld.DistributedTensor[[rows, C], dtype],
        signal: pld.DistributedTensor[[rows, 1], pl.INT32],
    ):
        return kernel(x, y, data, signal)

    @pl.jit.host
    def program(x: pl.Tensor[[NR, NR, C], dtype], y: pl.Out[pl.Tensor[[NR, rows, C], dtype]]):
        db = pld.alloc_window_buffer([rows, C], dtype=dtype)
        sb = pld.alloc_window_buffer([rows, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(db, [rows, C], dtype=dtype)
            signal = pld.window(sb, [rows, 1], dtype=pl.INT32)
            on_device(x[r], y[r], data, signal, device=r)

    return program


NUMPY = {"INT8": np.int8, "UINT8": np.uint8, "INT16": np.int16, "FP16": np.float16, "BF16": ml_dtypes.bfloat16}
NUMPY |= {"FP32": np.float32, "INT32": np.int32}


@pytest.mark.parametrize("kind", ["allgather", "all_to_all", "broadcast"])
@pytest.mark.parametrize("dtype", NUMPY)
def test_movers_of_every_dtype(dtype, kind):  # C-9, C-23, C-24, C-26
    p, rows = 3, 5
    x = RNG.integers(0, 100, (p, p, C)).astype(NUMPY[dtype])
    want = np.zeros((p, rows, C))
    for r in range(p):
        for q in range(p):
            want[r, q] = {"allgather": x[q, q], "all_to_all": x[q, r], "broadcast": np.zeros(C)}[kind]
        if kind == "broadcast":
            want[r, rows - 1] = x[1, 1]
    y = np.ones((p, rows, C), NUMPY[dtype])
    if kind == "broadcast":  # rows that nobody wrote: zero, and unspecified only to strict checks of outputs
        program = mover(kind, getattr(pl, dtype), rows)
        program(x, y, config=RunConfig(platform="a5sim", distributed_config=DistributedConfig([0, 1, 2])))
        np.testing.assert_array_equal(y.astype(np.float64), want)
    else:
        everywhere(mover(kind, getattr(pl, dtype), rows), [x, y], p, {1: want}, 0)


# ---------------------------------------------------------------- two domains in one kernel (D-53)


@pl.jit.incore
def two_domains_kernel(
    x: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[3, C], pl.FP32]],
    pair: pld.DistributedTensor[[1, C], pl.FP32],
    pair_signal: pld.DistributedTensor[[2, 1], pl.INT32],
    world: pld.DistributedTensor[[1, C], pl.FP32],
    world_signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    t = pl.load(x, [0, 0], [1, C])
    in_pair = pld.rank(pld.get_comm_ctx(pair))
    in_world = pld.rank(pld.get_comm_ctx(world))
    of_world = pld.nranks(pld.get_comm_ctx(world))
    pld.remote_store(t, pair, 1 - in_pair, [0, 0])
    pld.remote_store(pl.mul(t, 2.0), world, (in_world + 1) % of_world, [0, 0])
    pld.tensor.barrier(pair_signal)
    pld.tensor.barrier(world_signal)
    y = pl.store(pl.load(pair, [0, 0], [1, C]), [0, 0], y)
    y = pl.store(pl.load(world, [0, 0], [1, C]), [1, 0], y)
    ids = pl.tile.full([1, C], dtype=pl.FP32, value=0.0)
    number = in_pair * 100 + in_world * 10 + of_world
    y = pl.store(pl.add(ids, pl.cast(number, pl.FP32)), [2, 0], y)
    return y


@pl.jit
def two_domains_on_device(
    x: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[3, C], pl.FP32]],
    pair: pld.DistributedTensor[[1, C], pl.FP32],
    pair_signal: pld.DistributedTensor[[2, 1], pl.INT32],
    world: pld.DistributedTensor[[1, C], pl.FP32],
    world_signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    return two_domains_kernel(x, y, pair, pair_signal, world, world_signal)


@pl.jit.host
def two_domains(x: pl.Tensor[[4, 1, C], pl.FP32], y: pl.Out[pl.Tensor[[4, 3, C], pl.FP32]]):
    ab = pld.alloc_window_buffer([1, C], dtype=pl.FP32)
    asb = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    bb = pld.alloc_window_buffer([1, C], dtype=pl.FP32)
    bsb = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    wb = pld.alloc_window_buffer([1, C], dtype=pl.FP32)
    wsb = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    world = pld.window(wb, [1, C], dtype=pl.FP32)
    world_signal = pld.window(wsb, [pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(0, 2):
        a = pld.window(ab, [1, C], dtype=pl.FP32)
        a_signal = pld.window(asb, [2, 1], dtype=pl.INT32)
        two_domains_on_device(x[r], y[r], a, a_signal, world, world_signal, device=r)
    for r in pl.range(2, 4):
        b = pld.window(bb, [1, C], dtype=pl.FP32)
        b_signal = pld.window(bsb, [2, 1], dtype=pl.INT32)
        two_domains_on_device(x[r], y[r], b, b_signal, world, world_signal, device=r)


def test_two_domains_in_one_kernel():  # D-52, D-53
    x = noise(RNG, 4, 1, C)
    want = np.zeros((4, 3, C))
    want[:, 0] = x[[1, 0, 3, 2], 0]
    want[:, 1] = 2 * np.roll(x, 1, axis=0)[:, 0]
    want[:, 2] = np.array([4, 114, 24, 134])[:, None]
    everywhere(two_domains, [x, noise(RNG, 4, 3, C)], 4, {1: want})


# ---------------------------------------------------------------- host slices, results, and a class


@pl.program
class Shift:
    """The class spelling: everything on `self`, collectives on both rails, results returned."""

    @pl.function(type=pl.FunctionType.InCore)
    def stage(
        self, x: pl.Tensor[[1, C], pl.FP32], data: pl.Out[pld.DistributedTensor[[1, C], pl.FP32]]
    ) -> pld.DistributedTensor[[1, C], pl.FP32]:
        data = pl.store(pl.load(x, [0, 0], [1, C]), [0, 0], data)
        return data

    @pl.function(type=pl.FunctionType.InCore)
    def fetch(
        self,
        y: pl.Out[pl.Tensor[[1, C], pl.FP32]],
        data: pld.DistributedTensor[[1, C], pl.FP32],
        peer: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[1, C], pl.FP32]:
        t = pld.tile.remote_load(data, peer, [0, 0], [1, C])
        return pl.store(t, [0, 0], y)

    @pl.function(level=pl.Level.CHIP, role=pl.Role.Orchestrator)
    def publish(self, x: pl.Tensor[[1, C], pl.FP32], data: pld.DistributedTensor[[1, C], pl.FP32]):
        self.stage(x, data)

    @pl.function(level=pl.Level.CHIP, role=pl.Role.Orchestrator)
    def collect(
        self,
        y: pl.Out[pl.Tensor[[1, C], pl.FP32]],
        data: pld.DistributedTensor[[1, C], pl.FP32],
        peer: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[1, C], pl.FP32]:
        y = self.fetch(y, data, peer)
        return y

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self, x: pl.Tensor[[NR, 1, C], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, C], pl.FP32]]
    ) -> pl.Tensor[[NR, 1, C], pl.FP32]:
        buf: pl.Ptr = pld.alloc_window_buffer([1, C], dtype=pl.FP32)
        sig = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
        data: pld.DistributedTensor[[1, C], pl.FP32] = pld.window(buf, [1, C], dtype=pl.FP32)
        signal = pld.window(sig, [pld.world_size(), 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            self.publish(x[r], data, device=r)
        signal = pld.tensor.barrier(signal)
        for r in pl.range(pld.world_size()):
            self.collect(y[r], data, peer=(r + 2) % pld.world_size(), device=r)
        return y


@pytest.mark.parametrize("p", [1, 2, 5])
def test_class_spelling(p, tmp_path):
    x, y = noise(RNG, p, 1, C), noise(RNG, p, 1, C)
    compiled = ir.compile(
        Shift,
        platform="a2a3sim",
        distributed_config=DistributedConfig(device_ids=list(range(p))),
        output_dir=tmp_path,
    )
    compiled(x, y, config=RunConfig(platform="a2a3sim", sim=SimOptions(checks="strict")))
    np.testing.assert_array_equal(y, np.roll(x, -2, axis=0))
    assert last_report().diagnostics == []
    again = pl.parse(Shift.as_python())
    compiled = ir.compile(again, platform="a5sim", distributed_config=DistributedConfig(device_ids=list(range(p))))
    y[:] = 0
    compiled(x, y)
    np.testing.assert_array_equal(y, np.roll(x, -2, axis=0))


# ---------------------------------------------------------------- host tensors order what shares them (D-38, D-40)


@pl.jit
def add_into(x: pl.Tensor[[4, C], pl.FP32], acc: pl.InOut[pl.Tensor[[4, C], pl.FP32]], k: pl.Scalar[pl.INT32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc[:, :] = pl.add(pl.mul(acc, 0.5), pl.mul(x, pl.cast(k, pl.FP32)))
    return acc


@pl.jit.host
def chain(
    x: pl.Tensor[[NR, 8, C], pl.FP32], acc: pl.InOut[pl.Tensor[[4, C], pl.FP32]], y: pl.Out[pl.Tensor[[4, C], pl.FP32]]
):
    for r in pl.range(pld.world_size()):
        add_into(x[r, 4:8], acc, r + 1, device=r)  # one after the other: they share acc
    copy = pl.create_tensor([4, C], dtype=pl.FP32)
    last = add_into(x[0, 0:4], copy, 3, device=0)
    add_into(last, y, 1, device=pld.world_size() - 1)


@pytest.mark.parametrize("p", [1, 2, 4])
def test_shared_host_tensors_order_dispatches(p):  # D-34, D-38, D-39, D-40
    x, acc, y = noise(RNG, p, 8, C), noise(RNG, 4, C), np.zeros((4, C), np.float32)
    want = acc.astype(np.float64)
    for r in range(p):
        want = want * 0.5 + x[r, 4:] * (r + 1)
    everywhere(chain, [x, acc, y], p, {1: want, 2: 3 * x[0, :4]})
