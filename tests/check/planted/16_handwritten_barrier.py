# SPDX-License-Identifier: Apache-2.0
"""Step 16: a hand-written barrier on the shared signal, without a reset."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, SIZE, Report, arrays, race

EXPECT = [Report("X-52"), Report("X-40/X-45"), race("X-40/X-43", "gather", "copy")]
P = (2, 4)


@pl.jit.incore
def kernel(
    w: pl.Tensor[[1, SIZE], pl.FP32],
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    z: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    wbuf: pld.DistributedTensor[[1, SIZE], pl.FP32],
    acc: pld.DistributedTensor[[1, SIZE], pl.FP32],
    out: pld.DistributedTensor[[NR, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(wbuf)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    if me == 0:
        own_w = pl.load(w, [0, 0], [1, SIZE])
        wbuf = pl.store(own_w, [0, 0], wbuf)
    wbuf = pld.tensor.broadcast(wbuf, signal, root=0)
    weights = pl.load(wbuf, [0, 0], [1, SIZE])
    own_x = pl.load(x, [0, 0], [1, SIZE])
    acc = pl.store(pl.mul(own_x, weights), [0, 0], acc)
    for peer in pl.range(nranks):
        if peer != me:
            pld.system.notify(signal, peer, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)
    for src in pl.range(nranks):
        if src != me:
            pld.system.wait(signal, [src, 0], 1, cmp=pld.WaitCmp.Ge)
    acc = pld.tensor.allreduce(acc, signal, op=pld.ReduceOp.Sum)  # <- here
    total = pl.load(acc, [0, 0], [1, SIZE])
    z = pl.store(pl.mul(total, pl.cast(me + 1, pl.FP32)), [0, 0], z)
    out = pld.tensor.allgather(z, out, signal)  # <- gather
    for q in pl.range(nranks):
        row = pl.load(out, [q, 0], [1, SIZE])  # <- copy
        y = pl.store(row, [q, 0], y)
    return y, z


@pl.jit
def on_device(
    w: pl.Tensor[[1, SIZE], pl.FP32],
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    z: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    wbuf: pld.DistributedTensor[[1, SIZE], pl.FP32],
    acc: pld.DistributedTensor[[1, SIZE], pl.FP32],
    out: pld.DistributedTensor[[NR, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    y, z = kernel(w, x, y, z, wbuf, acc, out, signal)
    return y, z


@pl.jit.host
def program(
    w: pl.Tensor[[NR, 1, SIZE], pl.FP32],
    x: pl.Tensor[[NR, 1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.FP32]],
    z: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]],
):
    wbuf_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    acc_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    out_buf = pld.alloc_window_buffer([pld.world_size(), SIZE], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        wbuf = pld.window(wbuf_buf, [1, SIZE], dtype=pl.FP32)
        acc = pld.window(acc_buf, [1, SIZE], dtype=pl.FP32)
        out = pld.window(out_buf, [pld.world_size(), SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        on_device(w[r], x[r], y[r], z[r], wbuf, acc, out, signal, device=r)


def build(nranks):
    x, y = arrays(nranks, 1, nranks)
    w = np.random.default_rng(16).standard_normal(x.shape, dtype=np.float32)
    total = w[0, 0] * x[:, 0].sum(axis=0)
    golden = np.broadcast_to(np.arange(1, nranks + 1, dtype=np.float32)[:, None] * total, y.shape)
    return program, [w, x, y, np.zeros_like(x)], {2: golden}
