# SPDX-License-Identifier: Apache-2.0
"""What end-to-end programs need of kernels with windows: one test per need of 03 section 13 (P-12 - P-22, P-24)."""

import ml_dtypes
import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions, last_report

NR = pl.dynamic("NR")
C = 64
RNG = np.random.default_rng(14)
DTYPES = {
    "FP32": np.float32,
    "FP16": np.float16,
    "BF16": ml_dtypes.bfloat16,
    "INT32": np.int32,
    "INT8": np.int8,
}


def noise(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def run(program, *args, p, checks="strict", **sim):
    for platform, more in (("a2a3sim", {}), ("a5sim", {"schedule": "explore", "seed": p, "delay_remote": True})):
        given = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        config = RunConfig(
            platform=platform,
            distributed_config=DistributedConfig(device_ids=list(range(p))),
            sim=SimOptions(checks=checks, **more, **sim),
        )
        program(*given, config=config)
        assert [d for d in last_report().diagnostics if d.severity != "note"] == []
    return given


def host(kernel, data_shape=(1, C), dtype=pl.FP32, x_rows=1, y_rows=1, cells=(NR, 1), cols=C):
    """`kernel(x, y, data, signal)` on every rank; NR in a shape is the rank count."""
    d0, d1 = data_shape
    s0, s1 = cells
    dn, sn = int(d0 is NR), int(s0 is NR)
    db, sb = (0 if dn else d0), (0 if sn else s0)

    @pl.jit
    def on_device(
        x: pl.Tensor[[x_rows, cols], dtype],
        y: pl.Out[pl.Tensor[[y_rows, cols], dtype]],
        data: pld.DistributedTensor[[d0, d1], dtype],
        signal: pld.DistributedTensor[[s0, s1], pl.INT32],
    ):
        y = kernel(x, y, data, signal)
        return y

    @pl.jit.host
    def program(x: pl.Tensor[[NR, x_rows, cols], dtype], y: pl.Out[pl.Tensor[[NR, y_rows, cols], dtype]]):
        data_buf = pld.alloc_window_buffer([dn * pld.world_size() + db, d1], dtype=dtype)
        signal_buf = pld.alloc_window_buffer([sn * pld.world_size() + sb, s1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [dn * pld.world_size() + db, d1], dtype=dtype)
            signal = pld.window(signal_buf, [sn * pld.world_size() + sb, s1], dtype=pl.INT32)
            on_device(x[r], y[r], data, signal, device=r)

    return program


# ---------------------------------------------------------------- P-12: how windows are passed


@pl.jit.incore
def stage_out(x: pl.Tensor[[1, C], pl.FP32], w: pl.Out[pld.DistributedTensor[[1, C], pl.FP32]]):
    w = pl.store(pl.load(x, [0, 0], [1, C]), [0, 0], w)
    return w


@pl.jit.incore
def double_in_out(w: pl.InOut[pld.DistributedTensor[[1, C], pl.FP32]]):
    pl.store(pl.mul(pl.load(w, [0, 0], [1, C]), 2.0), [0, 0], w)


@pl.jit.incore
def show_plain(
    y: pl.Out[pl.Tensor[[1, C], pl.FP32]], w: pld.DistributedTensor[[1, C], pl.FP32]
) -> pl.Tensor[[1, C], pl.FP32]:
    return pl.store(pl.load(w, [0, 0], [1, C]), [0, 0], y)


@pl.jit.incore
def both_back(
    y: pl.Out[pl.Tensor[[1, C], pl.FP32]], w: pld.DistributedTensor[[1, C], pl.FP32]
) -> tuple[pl.Tensor[[1, C], pl.FP32], pld.DistributedTensor[[1, C], pl.FP32]]:
    w = pl.store(pl.add(pl.load(w, [0, 0], [1, C]), 1.0), [0, 0], w)
    y = pl.store(pl.load(w, [0, 0], [1, C]), [0, 0], y)
    return y, w


@pl.jit
def passed_around(
    x: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[1, C], pl.FP32]],
    data: pl.InOut[pld.DistributedTensor[[1, C], pl.FP32]],
    signal: pl.Out[pld.DistributedTensor[[NR, 1], pl.INT32]],
):
    data = stage_out(x, data)
    double_in_out(data)
    y = show_plain(y, data)
    y, again = both_back(y, data)
    double_in_out(again)
    y = show_plain(y, again)
    return y, data


@pl.jit.host
def passing(x: pl.Tensor[[NR, 1, C], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, C], pl.FP32]]):
    data_buf = pld.alloc_window_buffer([1, C], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [1, C], dtype=pl.FP32)
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        passed_around(x[r], y[r], data, signal, device=r)


def test_window_parameters():  # P-12, T-3, T-6, T-12
    x, y = noise(2, 1, C), noise(2, 1, C)
    _, y = run(passing, x, y, p=2)
    np.testing.assert_allclose(y, (2 * x + 1) * 2, rtol=1e-6)


# ---------------------------------------------------------------- P-13: loop-carried windows


@pl.jit.incore
def carried(
    x: pl.Tensor[[4, C], pl.FP32],
    y: pl.Out[pl.Tensor[[4, C], pl.FP32]],
    data: pld.DistributedTensor[[4, C], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    for i, (d,) in pl.range(4, init_values=(data,)):
        for j, (e,) in pl.range(C // 16, init_values=(d,)):
            block = pl.load(x, [i, j * 16], [1, 16])
            e_next = pl.store(pl.mul(block, 3.0), [i, j * 16], e)
            e_out = pl.yield_(e_next)
        d_out = pl.yield_(e_out)
    signal = pld.tensor.barrier(signal)
    ctx = pld.get_comm_ctx(d_out)
    left = (pld.rank(ctx) + pld.nranks(ctx) - 1) % pld.nranks(ctx)
    for i, (out,) in pl.range(4, init_values=(y,)):
        row = pld.tile.remote_load(d_out, left, [i, 0], [1, C])
        out_next = pl.store(row, [i, 0], out)
        y_out = pl.yield_(out_next)
    return y_out


@pytest.mark.parametrize("p", [1, 2, 3])
def test_loop_carried_windows(p):  # P-13, T-6
    x, y = noise(p, 4, C), noise(p, 4, C)
    _, y = run(host(carried, (4, C), x_rows=4, y_rows=4), x, y, p=p)
    np.testing.assert_allclose(y, 3 * np.roll(x, 1, axis=0), rtol=1e-6)


# ---------------------------------------------------------------- P-14: a ring with one row per step


@pl.jit.incore
def ring_gather(
    x: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, C], pl.FP32]],
    data: pld.DistributedTensor[[NR, C], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    right = (me + 1) % n
    data = pl.store(pl.load(x, [0, 0], [1, C]), [me, 0], data)
    for k in pl.range(n - 1):
        g = (me + n - k) % n
        pld.tensor.put(data, right, data, [g, 0], [g, 0], [1, C])
        pld.system.notify(signal, right, [k, 0], 1, op=pld.NotifyOp.Set)
        pld.system.wait(signal, [k, 0], 1, cmp=pld.WaitCmp.Eq)
    for q in pl.range(n):
        if q != me:
            y = pl.store(pl.load(data, [q, 0], [1, C]), [q, 0], y)
        else:
            y = pl.store(pl.load(x, [0, 0], [1, C]), [q, 0], y)
    return y


@pytest.mark.parametrize("p", [1, 2, 3, 5])
def test_ring_with_a_row_per_step(p):  # P-14
    x, y = noise(p, 1, C), noise(p, p, C)
    _, y = run(host(ring_gather, (NR, C), y_rows=NR), x, y, p=p)
    np.testing.assert_array_equal(y, np.broadcast_to(x[:, 0], y.shape))


# ---------------------------------------------------------------- P-15: producer and consumer kernels


@pl.jit.incore
def produce(
    x: pl.Tensor[[1, C], pl.FP32],
    inbox: pld.DistributedTensor[[NR, C], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(inbox)
    me = pld.rank(ctx)
    t = pl.load(x, [0, 0], [1, C])
    for q in pl.range(pld.nranks(ctx)):
        pld.tile.remote_store(pl.mul(t, pl.cast(q + 1, pl.FP32)), inbox, q, [me, 0])
    pld.tensor.barrier(signal)


@pl.jit.incore
def consume(y: pl.Out[pl.Tensor[[NR, C], pl.FP32]], inbox: pld.DistributedTensor[[NR, C], pl.FP32]):
    for q in pl.range(pld.nranks(pld.get_comm_ctx(inbox))):
        y = pl.store(pl.load(inbox, [q, 0], [1, C]), [q, 0], y)
    return y


@pl.jit
def produce_consume(
    x: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, C], pl.FP32]],
    inbox: pld.DistributedTensor[[NR, C], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    produce(x, inbox, signal)
    y = consume(y, inbox)
    return y


@pl.jit.host
def producer_consumer(x: pl.Tensor[[NR, 1, C], pl.FP32], y: pl.Out[pl.Tensor[[NR, NR, C], pl.FP32]]):
    inbox_buf = pld.alloc_window_buffer([pld.world_size(), C], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        inbox = pld.window(inbox_buf, [pld.world_size(), C], dtype=pl.FP32)
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        produce_consume(x[r], y[r], inbox, signal, device=r)


@pytest.mark.parametrize("p", [1, 2, 4])
def test_producer_and_consumer_kernels(p):  # P-15, M-11
    x, y = noise(p, 1, C), noise(p, p, C)
    _, y = run(producer_consumer, x, y, p=p)
    want = x[:, 0][None] * (1 + np.arange(p, dtype=np.float32))[:, None, None]
    np.testing.assert_allclose(y, want, rtol=1e-6)


# ---------------------------------------------------------------- P-16: slices of windows


@pl.jit.incore
def slices(
    x: pl.Tensor[[8, C], pl.FP32],
    y: pl.Out[pl.Tensor[[8, C], pl.FP32]],
    data: pld.DistributedTensor[[16, C], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    right = (me + 1) % pld.nranks(ctx)
    upper = data[0:8, :]
    upper = pl.store(pl.load(x, [0, 0], [8, C]), [0, 0], upper)
    head = pl.slice(data, [4, C], [2, 0])
    pld.remote_store(head, data, right, [8, 0])
    pld.tensor.barrier(signal)
    y = pl.store(pl.load(data[8:12, :], [0, 0], [4, C]), [0, 0], y)
    y[4:6, :] = data[0:2, :]
    y[6:8, :] = pl.mul(data[8:10, :], 2.0)
    return y


def test_slices_of_windows():  # P-16, T-4, T-5, O-41
    x, y = noise(3, 8, C), noise(3, 8, C)
    _, y = run(host(slices, (16, C), x_rows=8, y_rows=8), x, y, p=3)
    came = np.roll(x, 1, axis=0)[:, 2:6]
    np.testing.assert_allclose(y, np.concatenate([came, x[:, 0:2], 2 * came[:, :2]], axis=1), rtol=1e-6)


# ---------------------------------------------------------------- P-17: tags and resets


@pl.jit.incore
def tags(
    x: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[1, C], pl.FP32]],
    data: pld.DistributedTensor[[1, C], pl.FP32],
    signal: pld.DistributedTensor[[4, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    right = (me + 1) % n
    left = (me + n - 1) % n
    pld.tile.remote_store(pl.load(x, [0, 0], [1, C]), data, right, [0, 0])
    pld.system.notify(signal, right, [0, 0], 40 + me, op=pld.NotifyOp.Set)
    pld.system.wait(signal, [0, 0], 40 + left, cmp=pld.WaitCmp.Eq)
    tag = pl.read(signal, [0, 0])
    y = pl.store(pl.add(pl.load(data, [0, 0], [1, C]), pl.cast(tag, pl.FP32)), [0, 0], y)
    for k in pl.range(3):  # credits that go back to zero, with the reader's consent
        pld.system.notify(signal, right, [1, 0], 1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(signal, [1, 0], 1, cmp=pld.WaitCmp.Ge)
        pld.system.notify(signal, me, [1, 0], -1, op=pld.NotifyOp.AtomicAdd)
        pld.system.notify(signal, left, [2, 0], 1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(signal, [2, 0], k + 1, cmp=pld.WaitCmp.Ge)
    pl.write(signal, [2, 0], pl.const(0, pl.INT32))
    left_over = pl.read(signal, [1, 0]) + pl.read(signal, [2, 0])
    y = pl.store(pl.add(pl.load(y, [0, 0], [1, C]), pl.cast(left_over, pl.FP32)), [0, 0], y)
    return y


@pytest.mark.parametrize("p", [1, 2, 4])
def test_tags_and_resets(p):  # P-17, P-38, O-26
    x, y = noise(p, 1, C), noise(p, 1, C)
    _, y = run(host(tags, cells=(4, 1)), x, y, p=p)
    left = (np.arange(p) + p - 1) % p
    np.testing.assert_allclose(y, x[left] + (40 + left)[:, None, None], rtol=1e-5)


# ---------------------------------------------------------------- P-18: remote stores of every kind of value


def stores(dtype, add, platform_add):
    atomic = pld.AtomicType.Add if add else pld.AtomicType.None_

    @pl.jit.incore
    def kernel(
        x: pl.Tensor[[8, C], dtype],
        y: pl.Out[pl.Tensor[[8, C], dtype]],
        data: pld.DistributedTensor[[8, C], dtype],
        signal: pld.DistributedTensor[[NR, 1], pl.INT32],
    ):
        ctx = pld.get_comm_ctx(data)
        me = pld.rank(ctx)
        n = pld.nranks(ctx)
        row = (me % 4) * 2
        t = pl.load(x, [0, 0], [2, C])
        pld.tile.remote_store(t, data, (me + 1) % n, [row, 0], atomic=atomic)
        part = pl.load(x, [2, 0], [2, 32], valid_shape=[1, 7 + me])
        pld.remote_store(part, data, me, [(row + 2) % 8, 32], atomic=atomic)
        signal = pld.tensor.barrier(signal)
        y = pl.store(pl.load(data, [0, 0], [8, C]), [0, 0], y)
        return y

    return host(kernel, (8, C), dtype, x_rows=8, y_rows=8)


@pytest.mark.parametrize("add", [False, True], ids=["set", "add"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_remote_stores(dtype, add):  # P-18, O-35 - O-42
    p = 3
    kind = DTYPES[dtype]
    x = RNG.integers(-9, 10, (p, 8, C)).astype(kind)
    y = np.ones((p, 8, C), kind)
    program = stores(getattr(pl, dtype), add, None)
    if dtype == "BF16" and add:  # on the a2a3 family only (O-37)
        config = RunConfig(
            platform="a2a3sim",
            distributed_config=DistributedConfig(device_ids=list(range(p))),
            sim=SimOptions(checks="strict"),
        )
        program(x, y, config=config)
    else:
        _, y = run(program, x, y, p=p)
    want = np.zeros((p, 8, C), kind)
    for me in range(p):
        row = (me % 4) * 2
        to = (me + 1) % p
        want[to, row : row + 2] = (want[to, row : row + 2] if add else 0) + x[me, :2]
    for me in range(p):
        row = ((me % 4) * 2 + 2) % 8
        target = want[me, row, 32 : 32 + 7 + me]
        target[:] = (target if add else 0) + x[me, 2, : 7 + me]
    np.testing.assert_array_equal(y, want)


@pl.jit
def region_stores(
    x: pl.Tensor[[16, C], pl.FP32],
    w: pl.Tensor[[C, C], pl.FP32],
    y: pl.Out[pl.Tensor[[16, C], pl.FP32]],
    data: pld.DistributedTensor[[16, C], pl.FP32],
    acc: pld.DistributedTensor[[16, C], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
    peer: pl.Scalar[pl.INT32],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.remote_store(pl.add(x, 1.0), data, peer, [0, 0])
    with pl.at(level=pl.Level.CORE_GROUP):
        product = pl.matmul(x, w)
        pld.tensor.remote_store(product, acc, peer, [0, 0], atomic=pld.AtomicType.Add)
    with pl.at(level=pl.Level.CORE_GROUP):
        signal = pld.tensor.barrier(signal)
        y[:] = pl.add(data, acc)
    return y


@pl.jit.host
def stores_from_regions(
    x: pl.Tensor[[NR, 16, C], pl.FP32], w: pl.Tensor[[C, C], pl.FP32], y: pl.Out[pl.Tensor[[NR, 16, C], pl.FP32]]
):
    data_buf = pld.alloc_window_buffer([16, C], dtype=pl.FP32)
    acc_buf = pld.alloc_window_buffer([16, C], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [16, C], dtype=pl.FP32)
        acc = pld.window(acc_buf, [16, C], dtype=pl.FP32)
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        region_stores(x[r], w, y[r], data, acc, signal, (r + 1) % pld.world_size(), device=r)


@pytest.mark.parametrize("p", [2, 3])
def test_remote_stores_from_regions(p):  # P-18: computed and accumulator values
    x, w, y = noise(p, 16, C), noise(C, C), noise(p, 16, C)
    _, _, y = run(stores_from_regions, x, w, y, p=p)
    np.testing.assert_allclose(y, np.roll(x + 1 + x @ w, 1, axis=0), rtol=1e-4, atol=1e-4)


# ---------------------------------------------------------------- P-19: puts and gets


N = pl.dynamic("N")


def transfers(dtype, rows, cols, chunk_rows, chunk_cols, pipeline, atomic):
    @pl.jit.incore
    def kernel(
        x: pl.Tensor[[rows, cols], dtype],
        y: pl.Out[pl.Tensor[[2 * rows, cols], dtype]],
        data: pld.DistributedTensor[[2 * rows, cols], dtype],
        signal: pld.DistributedTensor[[NR, 1], pl.INT32],
    ):
        ctx = pld.get_comm_ctx(data)
        me = pld.rank(ctx)
        n = pld.nranks(ctx)
        for peer in pl.range(n):
            if peer == (me + 1) % n:
                pld.tensor.put(
                    data, peer, x, [0, 0], [0, 0], [rows, cols],
                    atomic=atomic, chunk_rows=chunk_rows, chunk_cols=chunk_cols, pipeline=pipeline,
                )  # fmt: skip
        pld.tensor.put(data, me, x, dst_offsets=[rows, 0], src_offsets=[0, 0], shape=[rows, cols])
        signal = pld.tensor.barrier(signal)
        pld.tensor.get(y, (me + 1) % n, data, chunk_rows=chunk_rows, chunk_cols=chunk_cols, pipeline=pipeline)
        return y

    return host(kernel, (2 * rows, cols), dtype, x_rows=rows, y_rows=2 * rows, cols=cols)


@pytest.mark.parametrize("atomic", [pld.AtomicType.None_, pld.AtomicType.Add], ids=["set", "add"])
@pytest.mark.parametrize(
    "rows,cols,chunk_rows,chunk_cols,pipeline",
    [(4, 64, 0, 0, False), (5, 70, 2, 32, False), (5, 70, 2, 32, True), (7, 33, 9, 99, True), (8, 64, 8, 64, False)],
)
@pytest.mark.parametrize("dtype", ["FP32", "FP16", "INT8"])
def test_transfers(dtype, rows, cols, chunk_rows, chunk_cols, pipeline, atomic):  # P-19, O-50 - O-61
    x = RNG.integers(-9, 10, (3, rows, cols)).astype(DTYPES[dtype])
    y = np.ones((3, 2 * rows, cols), DTYPES[dtype])
    program = transfers(getattr(pl, dtype), rows, cols, chunk_rows, chunk_cols, pipeline, atomic)
    aligned = rows * cols * x.itemsize % 32 == 0  # strict checks name transfers that start elsewhere
    _, y = run(program, x, y, p=3, checks="strict" if aligned else "default")
    window = np.concatenate([np.roll(x, 1, axis=0), x], axis=1)
    np.testing.assert_array_equal(y, np.roll(window, -1, axis=0))


@pl.jit.incore
def dynamic_rows(
    x: pl.Tensor[[16, C], pl.FP32],
    counts: pl.Tensor[[8], pl.INT32],
    y: pl.Out[pl.Tensor[[2, 16, C], pl.FP32]],
    data: pld.DistributedTensor[[2, 16, C], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    right = (me + 1) % pld.nranks(ctx)
    n = pl.read(counts, [0])
    flat = pl.reshape(data, [32, C])
    pld.tensor.put(flat, right, x, [16, 0], [0, 0], [n, C], chunk_rows=4, chunk_cols=C, pipeline=True)
    pld.tensor.put(data, me, data, [0, 0, 0], [1, 0, 0], [0, 16, C], chunk_rows=4)
    signal = pld.tensor.barrier(signal)
    pld.tensor.put(flat, me, x, dst_offsets=[n, 0], src_offsets=[n, 0], shape=[16 - n, C], chunk_rows=3)
    pld.tensor.get(y, me, data)
    return y


@pl.jit
def dynamic_rows_on_device(
    x: pl.Tensor[[16, C], pl.FP32],
    counts: pl.Tensor[[8], pl.INT32],
    y: pl.Out[pl.Tensor[[2, 16, C], pl.FP32]],
    data: pld.DistributedTensor[[2, 16, C], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    return dynamic_rows(x, counts, y, data, signal)


@pl.jit.host
def dynamic_put(
    x: pl.Tensor[[NR, 16, C], pl.FP32],
    counts: pl.Tensor[[NR, 8], pl.INT32],
    y: pl.Out[pl.Tensor[[NR, 2, 16, C], pl.FP32]],
):
    data_buf = pld.alloc_window_buffer([2, 16, C], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [2, 16, C], dtype=pl.FP32)
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        dynamic_rows_on_device(x[r], counts[r], y[r], data, signal, device=r)


def test_dynamic_row_counts_and_higher_shapes():  # P-19, P-37
    x = noise(3, 16, C)
    counts = np.zeros((3, 8), np.int32)
    counts[:, 0] = [0, 5, 16]
    _, _, y = run(dynamic_put, x, counts, noise(3, 2, 16, C), p=3)
    want = np.zeros_like(y)
    for r in range(3):
        want[(r + 1) % 3, 1, : counts[r, 0]] = x[r, : counts[r, 0]]
        want[r, 0, counts[r, 0] :] = x[r, counts[r, 0] :]
    np.testing.assert_array_equal(y, want)


# ---------------------------------------------------------------- P-20: counters, published counts, cumulative sums


E, T = 8, 12  # count slots, tokens


@pl.jit.incore
def exchange(
    x: pl.Tensor[[T, C], pl.FP32],
    to: pl.Tensor[[T, 8], pl.INT32],
    y: pl.Out[pl.Tensor[[NR * T, C], pl.FP32]],
    seen: pl.Out[pl.Tensor[[NR, E], pl.INT32]],
    counts: pld.DistributedTensor[[NR, E], pl.INT32],
    rows: pld.DistributedTensor[[NR * T, C], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(rows)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    sent = pl.array.create(E, pl.INT32)
    for t in pl.range(T):
        d = pl.read(to, [t, 0])
        sent[d] = sent[d] + 1
    row = pl.tile.full([1, E], dtype=pl.INT32, value=0)
    for d in pl.range(n):
        pl.tile.write(row, [0, d], sent[d])
    for q in pl.range(n):
        pld.tile.remote_store(row, counts, q, [me, 0])
    pld.tensor.barrier(signal)
    # Where my rows start at d: behind those of the ranks before me.
    start = pl.array.create(E, pl.INT32)
    for d in pl.range(n):
        for q in pl.range(n):
            if q < me:
                start[d] = start[d] + pl.read(counts, [q, d])
    for t in pl.range(T):
        d = pl.read(to, [t, 0])
        pld.tensor.put(rows, d, x, dst_offsets=[start[d], 0], src_offsets=[t, 0], shape=[1, C])
        start[d] = start[d] + 1
    pld.tensor.barrier(signal)
    total = pl.const(0, pl.INT32)
    for q in pl.range(n):
        total = total + pl.read(counts, [q, me])
        for d in pl.range(n):
            pl.write(seen, [q, d], pl.read(counts, [q, d]))
    for i in pl.range(total):
        y = pl.store(pl.load(rows, [i, 0], [1, C]), [i, 0], y)
    return y, seen


@pl.jit
def exchange_on_device(
    x: pl.Tensor[[T, C], pl.FP32],
    to: pl.Tensor[[T, 8], pl.INT32],
    y: pl.Out[pl.Tensor[[NR * T, C], pl.FP32]],
    seen: pl.Out[pl.Tensor[[NR, E], pl.INT32]],
    counts: pld.DistributedTensor[[NR, E], pl.INT32],
    rows: pld.DistributedTensor[[NR * T, C], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    y, seen = exchange(x, to, y, seen, counts, rows, signal)
    return y, seen


@pl.jit.host
def expert_exchange(
    x: pl.Tensor[[NR, T, C], pl.FP32],
    to: pl.Tensor[[NR, T, 8], pl.INT32],
    y: pl.InOut[pl.Tensor[[NR, NR * T, C], pl.FP32]],
    seen: pl.InOut[pl.Tensor[[NR, NR, E], pl.INT32]],
):
    counts_buf = pld.alloc_window_buffer([pld.world_size(), E], dtype=pl.INT32)
    rows_buf = pld.alloc_window_buffer([pld.world_size() * T, C], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        counts = pld.window(counts_buf, [pld.world_size(), E], dtype=pl.INT32)
        rows = pld.window(rows_buf, [pld.world_size() * T, C], dtype=pl.FP32)
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        exchange_on_device(x[r], to[r], y[r], seen[r], counts, rows, signal, device=r)


@pytest.mark.parametrize("p", [1, 2, 4])
def test_expert_exchange(p):  # P-20
    x, y = noise(p, T, C), np.full((p, p * T, C), 7, np.float32)
    to = np.zeros((p, T, 8), np.int32)
    to[:, :, 0] = RNG.integers(0, p, (p, T))
    _, _, y, seen = run(expert_exchange, x, to, y, np.full((p, p, E), -1, np.int32), p=p)
    for d in range(p):
        came = [x[q, t] for q in range(p) for t in range(T) if to[q, t, 0] == d]
        np.testing.assert_array_equal(y[d, : len(came)], np.stack(came))
        assert (y[d, len(came) :] == 7).all()
    want = np.array([[(to[q, :, 0] == d).sum() for d in range(p)] for q in range(p)])
    np.testing.assert_array_equal(seen[:, :, :p], np.broadcast_to(want, (p, p, p)))


# ---------------------------------------------------------------- P-21: matrix kernels on windows


@pl.jit.incore
def matmul_of_windows(
    x: pl.Tensor[[16, C], pl.FP32],
    y: pl.Out[pl.Tensor[[16, C], pl.FP32]],
    data: pld.DistributedTensor[[80, C], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    a_l1 = pl.load(data, [0, 0], [16, C], target_memory=pl.MemorySpace.Mat)
    b_l1 = pl.load(data, [16, 0], [C, C], target_memory=pl.MemorySpace.Mat)
    a = pl.move(a_l1, target_memory=pl.MemorySpace.Left)
    b = pl.move(b_l1, target_memory=pl.MemorySpace.Right)
    c = pl.matmul(a, b)
    y = pl.store(c, [0, 0], y)
    return y


@pl.jit.incore
def fill_window(
    x: pl.Tensor[[16, C], pl.FP32],
    w: pl.Tensor[[C, C], pl.FP32],
    data: pld.DistributedTensor[[80, C], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    right = (pld.rank(ctx) + 1) % pld.nranks(ctx)
    pld.tensor.put(data, right, x, [0, 0], [0, 0], [16, C])
    data = pl.store(pl.load(w, [0, 0], [C, C]), [16, 0], data)
    signal = pld.tensor.barrier(signal)
    return data


@pl.jit
def matmul_on_device(
    x: pl.Tensor[[16, C], pl.FP32],
    w: pl.Tensor[[C, C], pl.FP32],
    y: pl.Out[pl.Tensor[[16, C], pl.FP32]],
    data: pld.DistributedTensor[[80, C], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    data = fill_window(x, w, data, signal)
    y = matmul_of_windows(x, y, data, signal)
    return y


@pl.jit.host
def window_matmul(
    x: pl.Tensor[[NR, 16, C], pl.FP32],
    w: pl.Tensor[[NR, C, C], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, 16, C], pl.FP32]],
):
    data_buf = pld.alloc_window_buffer([80, C], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [80, C], dtype=pl.FP32)
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        matmul_on_device(x[r], w[r], y[r], data, signal, device=r)


@pytest.mark.parametrize("p", [1, 3])
def test_matrix_kernels_on_windows(p):  # P-21
    x, w, y = noise(p, 16, C), noise(p, C, C), noise(p, 16, C)
    _, _, y = run(window_matmul, x, w, y, p=p)
    np.testing.assert_allclose(y, np.roll(x, 1, axis=0) @ w, rtol=1e-4, atol=1e-4)


# ---------------------------------------------------------------- P-22: forms of the collectives


@pl.jit.incore
def forms(
    x: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[3, C], pl.FP32]],
    data: pld.DistributedTensor[[1, C], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    for i in pl.range(2):
        data = pl.store(pl.mul(pl.load(x, [0, 0], [1, C]), pl.cast(i + 1, pl.FP32)), [0, 0], data)
        pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Max)
        y = pl.store(pl.load(data, [0, 0], [1, C]), [i, 0], y)
    pld.tensor.barrier(signal)
    k = pl.const(0, pl.INDEX)
    while k < 2:
        if k == 1:
            signal = pld.tensor.barrier(signal)
        fresh = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum, mode="mesh", core_num=1)
        k = k + 1
    if me == 0:
        data = pl.store(pl.load(x, [0, 0], [1, C]), [0, 0], data)
    got = pld.tensor.broadcast(data, signal, root=0)
    y = pl.store(pl.load(got, [0, 0], [1, C]), [2, 0], y)
    return y


@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_forms_of_collectives(p):  # P-22, C-1, C-4
    x, y = noise(p, 1, C), noise(p, 3, C)
    _, y = run(host(forms, y_rows=3), x, y, p=p)
    for r in range(p):
        np.testing.assert_array_equal(y[r, 0], x.max(axis=0)[0])
        np.testing.assert_array_equal(y[r, 1], 2 * x.max(axis=0)[0])
        np.testing.assert_array_equal(y[r, 2], x[0, 0])
