# SPDX-License-Identifier: Apache-2.0
"""What models need: one test per need of 03 section 13 (P-32 - P-38, P-40 - P-42, and deferred waits of P-27)."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions, last_report

NR = pl.dynamic("NR")
C = 64
RNG = np.random.default_rng(15)


def noise(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def run(program, *args, p, platforms=("a2a3sim", "a5sim"), notes=()):
    for k, platform in enumerate(platforms):
        given = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        more = {"schedule": "explore", "seed": p, "delay_remote": True} if k else {}
        config = RunConfig(
            platform=platform,
            distributed_config=DistributedConfig(device_ids=list(range(p))),
            sim=SimOptions(checks="strict", **more),
        )
        program(*given, config=config)
        assert [d.message for d in last_report().diagnostics if d.severity != "note"] == []
    return given


# ---------------------------------------------------------------- P-32: inline functions with windows and scalars


@pl.jit.inline
def stage_row(t, window, row: pl.Scalar[pl.INT32]):
    window = pl.store(t, [row, 0], window)
    return window


@pl.jit.inline
def peers_of(window, step: pl.Scalar[pl.INT32]):
    ctx = pld.get_comm_ctx(window)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    return (me + step) % n, (me + n - step) % n


@pl.jit.incore
def inlined(
    x: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[2, C], pl.FP32]],
    data: pld.DistributedTensor[[2, C], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
    epoch: pl.Scalar[pl.INT32],
):
    t = pl.load(x, [0, 0], [1, C])
    data = stage_row(t, data, 0)
    data = stage_row(pl.mul(t, pl.cast(epoch, pl.FP32)), data, 1)
    pld.tensor.barrier(signal)
    after, before = peers_of(data, 1)
    y = pl.store(pld.remote_load(data, after, [0, 0], [1, C]), [0, 0], y)
    y = pl.store(pld.remote_load(data, before, [1, 0], [1, C]), [1, 0], y)
    return y


@pl.jit.inline(auto_scope=False)
def both_phases(x, y, data, signal, epoch):
    y = inlined(x, y, data, signal, epoch)
    return y


@pl.jit
def inlined_on_device(
    x: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[2, C], pl.FP32]],
    data: pld.DistributedTensor[[2, C], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
    epoch: pl.Scalar[pl.INT32],
):
    y = both_phases(x, y, data, signal, epoch)
    return y


@pl.jit.host
def inlined_host(
    x: pl.Tensor[[NR, 1, C], pl.FP32], y: pl.Out[pl.Tensor[[NR, 2, C], pl.FP32]], epoch: pl.Scalar[pl.INT32]
):
    data_buf = pld.alloc_window_buffer([2, C], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [2, C], dtype=pl.FP32)
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        inlined_on_device(x[r], y[r], data, signal, epoch, device=r)


@pytest.mark.parametrize("p", [1, 3])
def test_inline_functions_with_windows(p):  # P-32, D-20
    x, y = noise(p, 1, C), noise(p, 2, C)
    y = run(inlined_host, x, y, 7, p=p)[1]
    want = np.concatenate([np.roll(x, -1, axis=0), 7 * np.roll(x, 1, axis=0)], axis=1)
    np.testing.assert_allclose(y, want, rtol=1e-6)


def many_windows(count, tmp_path):
    """A dispatch with `count` windows, each in its own role."""
    names = [f"w{i}" for i in range(count)]
    text = f"""import pypto.language as pl
import pypto.language.distributed as pld
NR = pl.dynamic("NR")

@pl.jit.incore
def kernel(
    x: pl.Tensor[[1, 32], pl.FP32], y: pl.Out[pl.Tensor[[1, 32], pl.FP32]],
    {", ".join(f"{n}: pld.DistributedTensor[[1, 32], pl.FP32]" for n in names)},
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(w0)
    right = (pld.rank(ctx) + 1) % pld.nranks(ctx)
    t = pl.load(x, [0, 0], [1, 32])
    {"; ".join(f"pld.remote_store(pl.add(t, {i}.0), {n}, right, [0, 0])" for i, n in enumerate(names))}
    signal = pld.tensor.barrier(signal)
    acc = pl.load(w0, [0, 0], [1, 32])
    {"; ".join(f"acc = pl.add(acc, pl.load({n}, [0, 0], [1, 32]))" for n in names[1:])}
    y = pl.store(acc, [0, 0], y)
    return y

@pl.jit
def on_device(
    x: pl.Tensor[[1, 32], pl.FP32], y: pl.Out[pl.Tensor[[1, 32], pl.FP32]],
    {", ".join(f"{n}: pld.DistributedTensor[[1, 32], pl.FP32]" for n in names)},
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    return kernel(x, y, {", ".join(names)}, signal)

@pl.jit.host
def program(x: pl.Tensor[[NR, 1, 32], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, 32], pl.FP32]]):
    {"; ".join(f"b{n} = pld.alloc_window_buffer([1, 32], dtype=pl.FP32)" for n in names)}
    sb = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        {"; ".join(f"{n} = pld.window(b{n}, [1, 32], dtype=pl.FP32)" for n in names)}
        signal = pld.window(sb, [pld.world_size(), 1], dtype=pl.INT32)
        on_device(x[r], y[r], {", ".join(names)}, signal, device=r)
"""
    path = tmp_path / "many_windows.py"
    path.write_text(text)
    import importlib.util

    spec = importlib.util.spec_from_file_location("many_windows", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.program


def test_more_than_twenty_windows(tmp_path):  # P-32
    x, y = noise(2, 1, 32), noise(2, 1, 32)
    y = run(many_windows(24, tmp_path), x, y, p=2)[1]
    np.testing.assert_allclose(y, 24 * np.roll(x, 1, axis=0) + sum(range(24)), rtol=1e-5)


# ---------------------------------------------------------------- P-33, P-40, P-41, P-42: blocks, counts, anchors


BLOCKS, ROWS = 4, 8


@pl.jit
def blocks_push(
    x: pl.Tensor[[ROWS, C], pl.FP32],
    y: pl.Out[pl.Tensor[[NR * ROWS, C], pl.FP32]],
    recv: pld.DistributedTensor[[NR * ROWS, C], pl.FP32],
    arrived: pld.DistributedTensor[[NR, 1], pl.INT32],
    epoch: pl.Scalar[pl.INT32],
):
    ctx = pld.get_comm_ctx(recv)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    with pl.manual_scope():
        with pl.spmd(BLOCKS, name_hint="push") as pushed:
            b = pl.tile.get_block_idx()
            for i in pl.range(ROWS // BLOCKS):
                row = b * (ROWS // BLOCKS) + i
                for q in pl.range(n):
                    pld.tensor.put(recv, q, x, [me * ROWS + row, 0], [row, 0], [1, C])
            for q in pl.range(n):
                pld.system.notify(arrived, q, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="hold", deps=[pushed], allow_early_resolve=True) as waited:
            anchor = pl.read(x, [0, 0])
            for q in pl.range(n):
                pld.system.wait(arrived, [q, 0], epoch * BLOCKS, cmp=pld.WaitCmp.Ge)
        gate = pl.system.task_dummy(deps=[waited])
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="collect", deps=[gate]):
            for q in pl.range(n):
                for i in pl.range(ROWS):
                    t = pl.load(recv, [q * ROWS + i, 0], [1, C])
                    y = pl.store(pl.mul(t, 2.0), [q * ROWS + i, 0], y)
    return y


@pl.jit.host
def blocks_host(x: pl.Tensor[[NR, ROWS, C], pl.FP32], y: pl.Out[pl.Tensor[[NR, NR * ROWS, C], pl.FP32]]):
    recv_buf = pld.alloc_window_buffer([pld.world_size() * ROWS, C], dtype=pl.FP32)
    arrived_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        recv = pld.window(recv_buf, [pld.world_size() * ROWS, C], dtype=pl.FP32)
        arrived = pld.window(arrived_buf, [pld.world_size(), 1], dtype=pl.INT32)
        blocks_push(x[r], y[r], recv, arrived, 1, device=r)


@pytest.mark.parametrize("p", [1, 2, 4])
def test_blocks_that_put_and_notify(p):  # P-33, P-40, P-41, P-42
    x, y = noise(p, ROWS, C), noise(p, p * ROWS, C)
    y = run(blocks_host, x, y, p=p)[1]
    np.testing.assert_array_equal(y, np.broadcast_to(2 * x.reshape(1, p * ROWS, C), y.shape))


# ---------------------------------------------------------------- P-34: sub-groups with generations


G = 2


@pl.jit.incore
def grouped(
    x: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[1, C], pl.FP32]],
    data: pld.DistributedTensor[[1, C], pl.FP32],
    signal: pld.DistributedTensor[[G, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    base = me // G * G
    lane = me % G
    data = pl.store(pl.load(x, [0, 0], [1, C]), [0, 0], data)
    for i in pl.range(G):
        pld.system.notify(signal, base + i, [lane, 0], 1, op=pld.NotifyOp.AtomicAdd)
    for i in pl.range(G):
        pld.system.wait(signal, [i, 0], 1, cmp=pld.WaitCmp.Ge)
    acc = pl.load(data, [0, 0], [1, C])
    for i in pl.range(G):
        if i != lane:
            acc = pl.add(acc, pld.remote_load(data, base + i, [0, 0], [1, C]))
    for i in pl.range(G):
        pld.system.notify(signal, base + i, [lane, 0], 1, op=pld.NotifyOp.AtomicAdd)
    for i in pl.range(G):
        pld.system.wait(signal, [i, 0], 2, cmp=pld.WaitCmp.Ge)
    for i in pl.range(G):
        pld.system.notify(signal, me, [i, 0], -2, op=pld.NotifyOp.AtomicAdd)
    data = pl.store(acc, [0, 0], data)
    y = pl.store(acc, [0, 0], y)
    return y


@pl.jit
def grouped_on_device(
    x: pl.Tensor[[2, C], pl.FP32],
    y: pl.Out[pl.Tensor[[2, C], pl.FP32]],
    data: pld.DistributedTensor[[1, C], pl.FP32],
    signal: pld.DistributedTensor[[G, 1], pl.INT32],
):
    for k in pl.range(2):  # twice on the same cells
        grouped(x[k : k + 1, :], y[k : k + 1, :], data, signal)
    return y


@pl.jit.host
def grouped_host(x: pl.Tensor[[NR, 2, C], pl.FP32], y: pl.Out[pl.Tensor[[NR, 2, C], pl.FP32]]):
    data_buf = pld.alloc_window_buffer([1, C], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([G, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [1, C], dtype=pl.FP32)
        signal = pld.window(signal_buf, [G, 1], dtype=pl.INT32)
        grouped_on_device(x[r], y[r], data, signal, device=r)


@pytest.mark.parametrize("p", [2, 4, 6])
def test_sub_groups_with_generations(p):  # P-34, D-55
    x, y = noise(p, 2, C), noise(p, 2, C)
    y = run(grouped_host, x, y, p=p)[1]
    sums = x.reshape(p // G, G, 2, C).sum(axis=1)
    np.testing.assert_allclose(y, np.repeat(sums, G, axis=0), rtol=1e-5)


# ---------------------------------------------------------------- P-35: ready and consumed counters


EPOCHS = 5


@pl.jit.incore
def credits(
    x: pl.Tensor[[EPOCHS, C], pl.FP32],
    y: pl.Out[pl.Tensor[[EPOCHS, C], pl.FP32]],
    slot: pld.DistributedTensor[[1, C], pl.FP32],
    ready: pld.DistributedTensor[[1, 1], pl.INT32],
    consumed: pld.DistributedTensor[[1, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(slot)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    right = (me + 1) % n
    left = (me + n - 1) % n
    for e in pl.range(EPOCHS):
        if e > 0:
            pld.system.wait(consumed, [0, 0], e, cmp=pld.WaitCmp.Ge)
        pld.tensor.put(slot, right, x, [0, 0], [e, 0], [1, C])
        pld.system.notify(ready, right, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(ready, [0, 0], e + 1, cmp=pld.WaitCmp.Ge)
        t = pl.load(slot, [0, 0], [1, C])
        y = pl.store(t, [e, 0], y)
        pld.system.notify(consumed, left, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    return y


@pl.jit
def credits_on_device(
    x: pl.Tensor[[EPOCHS, C], pl.FP32],
    y: pl.Out[pl.Tensor[[EPOCHS, C], pl.FP32]],
    slot: pld.DistributedTensor[[1, C], pl.FP32],
    ready: pld.DistributedTensor[[1, 1], pl.INT32],
    consumed: pld.DistributedTensor[[1, 1], pl.INT32],
):
    return credits(x, y, slot, ready, consumed)


@pl.jit.host
def credits_host(x: pl.Tensor[[NR, EPOCHS, C], pl.FP32], y: pl.Out[pl.Tensor[[NR, EPOCHS, C], pl.FP32]]):
    slot_buf = pld.alloc_window_buffer([1, C], dtype=pl.FP32)
    ready_buf = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    consumed_buf = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        slot = pld.window(slot_buf, [1, C], dtype=pl.FP32)
        ready = pld.window(ready_buf, [1, 1], dtype=pl.INT32)
        consumed = pld.window(consumed_buf, [1, 1], dtype=pl.INT32)
        credits_on_device(x[r], y[r], slot, ready, consumed, device=r)


@pytest.mark.parametrize("p", [1, 2, 3, 6])
def test_ready_and_consumed_counters(p):  # P-35, M-13, M-30
    x, y = noise(p, EPOCHS, C), noise(p, EPOCHS, C)
    y = run(credits_host, x, y, p=p)[1]
    np.testing.assert_array_equal(y, np.roll(x, 1, axis=0))


# ---------------------------------------------------------------- P-36: cube, vector and communication in one kernel


M, K, N = 32, 64, 64


@pl.jit
def fused(
    x: pl.Tensor[[M, K], pl.FP32],
    w: pl.Tensor[[K, N], pl.FP32],
    y: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    recv: pld.DistributedTensor[[M, N], pl.FP32],
    arrived: pld.DistributedTensor[[2, 1], pl.INT32],
    peer: pl.Scalar[pl.INT32],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="push"):
        c = pl.matmul(x, w)
        for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            half = pl.aiv_shard(c)
            pld.tensor.remote_store(pl.mul(half, 0.5), recv, peer, [lane * (M // 2), 0])
        for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):
            pld.system.notify(arrived, peer, [lane, 0], 1, op=pld.NotifyOp.AtomicAdd)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="take"):
        pld.system.wait(arrived, [0, 0], 1, cmp=pld.WaitCmp.Ge)
        pld.system.wait(arrived, [1, 0], 1, cmp=pld.WaitCmp.Ge)
        y[:] = pl.add(recv, 1.0)
    return y


@pl.jit.host
def fused_host(
    x: pl.Tensor[[NR, M, K], pl.FP32], w: pl.Tensor[[K, N], pl.FP32], y: pl.Out[pl.Tensor[[NR, M, N], pl.FP32]]
):
    recv_buf = pld.alloc_window_buffer([M, N], dtype=pl.FP32)
    arrived_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        recv = pld.window(recv_buf, [M, N], dtype=pl.FP32)
        arrived = pld.window(arrived_buf, [2, 1], dtype=pl.INT32)
        fused(x[r], w, y[r], recv, arrived, (r + 1) % pld.world_size(), device=r)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_fused_product_and_push(p):  # P-36, M-25
    x, w, y = noise(p, M, K), noise(K, N), noise(p, M, N)
    y = run(fused_host, x, w, y, p=p)[2]
    np.testing.assert_allclose(y, 0.5 * np.roll(x @ w, 1, axis=0) + 1, rtol=1e-4, atol=1e-4)


# ---------------------------------------------------------------- P-37: waves


WAVES, CAP = 3, 16


@pl.jit.incore
def send_waves(
    x: pl.Tensor[[CAP, C], pl.FP32],
    scale: pl.Tensor[[CAP, 8], pl.FP32],
    counts: pl.Tensor[[8], pl.INT32],
    rows: pld.DistributedTensor[[WAVES * CAP, C], pl.FP32],
    scales: pld.DistributedTensor[[WAVES * CAP, 8], pl.FP32],
    arrived: pld.DistributedTensor[[WAVES, 1], pl.INT32],
    right: pl.Scalar[pl.INT32],
):
    for w in pl.range(WAVES):
        n = pl.read(counts, [w])
        at = w * CAP
        pld.tensor.put(rows, right, x, [at, 0], [0, 0], [n, C], chunk_rows=4, chunk_cols=32, pipeline=True)
        pld.tensor.put(scales, right, scale, [at, 0], [0, 0], [n, 8], chunk_rows=8)
        pld.system.notify(arrived, right, [w, 0], n + 1, op=pld.NotifyOp.AtomicAdd)


@pl.jit.incore
def take_waves(
    y: pl.Out[pl.Tensor[[WAVES * CAP, C], pl.FP32]],
    rows: pld.DistributedTensor[[WAVES * CAP, C], pl.FP32],
    scales: pld.DistributedTensor[[WAVES * CAP, 8], pl.FP32],
    arrived: pld.DistributedTensor[[WAVES, 1], pl.INT32],
):
    for w in pl.range(WAVES):
        pld.system.wait(arrived, [w, 0], 1, cmp=pld.WaitCmp.Ge)
        n = pl.read(arrived, [w, 0]) - 1
        for i in pl.range(n):
            row = pl.load(rows, [w * CAP + i, 0], [1, C])
            s = pl.load(scales, [w * CAP + i, 0], [1, 8])
            factor = pl.tile.read(s, [0, w])
            y = pl.store(pl.mul(row, factor), [w * CAP + i, 0], y)
        pl.write(arrived, [w, 0], pl.const(0, pl.INT32))
    return y


@pl.jit
def waves(
    x: pl.Tensor[[CAP, C], pl.FP32],
    scale: pl.Tensor[[CAP, 8], pl.FP32],
    counts: pl.Tensor[[8], pl.INT32],
    y: pl.Out[pl.Tensor[[WAVES * CAP, C], pl.FP32]],
    rows: pld.DistributedTensor[[WAVES * CAP, C], pl.FP32],
    scales: pld.DistributedTensor[[WAVES * CAP, 8], pl.FP32],
    arrived: pld.DistributedTensor[[WAVES, 1], pl.INT32],
    right: pl.Scalar[pl.INT32],
):
    send_waves(x, scale, counts, rows, scales, arrived, right)
    y = take_waves(y, rows, scales, arrived)
    return y


@pl.jit.host
def waves_host(
    x: pl.Tensor[[NR, CAP, C], pl.FP32],
    scale: pl.Tensor[[NR, CAP, 8], pl.FP32],
    counts: pl.Tensor[[NR, 8], pl.INT32],
    y: pl.InOut[pl.Tensor[[NR, WAVES * CAP, C], pl.FP32]],
):
    rows_buf = pld.alloc_window_buffer([WAVES * CAP, C], dtype=pl.FP32)
    scales_buf = pld.alloc_window_buffer([WAVES * CAP, 8], dtype=pl.FP32)
    arrived_buf = pld.alloc_window_buffer([WAVES, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        rows = pld.window(rows_buf, [WAVES * CAP, C], dtype=pl.FP32)
        scales = pld.window(scales_buf, [WAVES * CAP, 8], dtype=pl.FP32)
        arrived = pld.window(arrived_buf, [WAVES, 1], dtype=pl.INT32)
        waves(x[r], scale[r], counts[r], y[r], rows, scales, arrived, (r + 1) % pld.world_size(), device=r)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_waves_of_dynamic_rows(p):  # P-37, P-38
    x, scale, y = noise(p, CAP, C), noise(p, CAP, 8), np.full((p, WAVES * CAP, C), 7, np.float32)
    counts = RNG.integers(0, CAP + 1, (p, 8)).astype(np.int32)
    counts[0, 0] = 0
    out = run(waves_host, x, scale, counts, y, p=p)[3]
    want = y.copy()
    for r in range(p):
        for w in range(WAVES):
            n = counts[r, w]
            want[(r + 1) % p, w * CAP : w * CAP + n] = x[r, :n] * scale[r, :n, w : w + 1]
    np.testing.assert_allclose(out, want, rtol=1e-6)


# ---------------------------------------------------------------- deferred waits


WAITERS = 60  # more than there are vector cores


@pl.jit.incore
def take_one(
    y: pl.Out[pl.Tensor[[WAITERS, C], pl.FP32]],
    inbox: pld.DistributedTensor[[WAITERS, C], pl.FP32],
    i: pl.Scalar[pl.INDEX],
):
    y = pl.store(pl.load(inbox, [i, 0], [1, C]), [i, 0], y)
    return y


@pl.jit.incore
def push_one(
    x: pl.Tensor[[WAITERS, C], pl.FP32],
    inbox: pld.DistributedTensor[[WAITERS, C], pl.FP32],
    signal: pld.DistributedTensor[[WAITERS, 1], pl.INT32],
    i: pl.Scalar[pl.INDEX],
    peer: pl.Scalar[pl.INT32],
):
    pld.tensor.put(inbox, peer, x, [i, 0], [i, 0], [1, C])
    pld.system.notify(signal, peer, [i, 0], 1, op=pld.NotifyOp.AtomicAdd)


@pl.jit
def deferred(
    x: pl.Tensor[[WAITERS, C], pl.FP32],
    y: pl.Out[pl.Tensor[[WAITERS, C], pl.FP32]],
    inbox: pld.DistributedTensor[[WAITERS, C], pl.FP32],
    signal: pld.DistributedTensor[[WAITERS, 1], pl.INT32],
    peer: pl.Scalar[pl.INT32],
):
    with pl.manual_scope():
        for i in pl.range(WAITERS):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="waiter") as arrived:
                pld.system.defer_wait(signal, [i, 0], 1, cmp=pld.WaitCmp.Ge)
            y, _ = pl.submit(take_one, y, inbox, i, deps=[arrived])
        for i in pl.range(WAITERS):
            _, _sent = pl.submit(push_one, x, inbox, signal, WAITERS - 1 - i, peer)
    return y


@pl.jit.host
def deferred_host(x: pl.Tensor[[NR, WAITERS, C], pl.FP32], y: pl.Out[pl.Tensor[[NR, WAITERS, C], pl.FP32]]):
    inbox_buf = pld.alloc_window_buffer([WAITERS, C], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([WAITERS, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        inbox = pld.window(inbox_buf, [WAITERS, C], dtype=pl.FP32)
        signal = pld.window(signal_buf, [WAITERS, 1], dtype=pl.INT32)
        deferred(x[r], y[r], inbox, signal, (r + 1) % pld.world_size(), device=r)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_deferred_waiters_of_every_core(p):  # P-27, O-27, O-28
    x, y = noise(p, WAITERS, C), noise(p, WAITERS, C)
    y = run(deferred_host, x, y, p=p)[1]
    np.testing.assert_array_equal(y, np.roll(x, 1, axis=0))
