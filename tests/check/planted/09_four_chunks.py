# SPDX-License-Identifier: Apache-2.0
"""Step 09: four chunks whatever P: chunk 3 has no owner."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, SIZE, Mismatch, arrays

EXPECT = [Mismatch()]
P = (3,)


@pl.jit.incore
def kernel(
    x: pl.Tensor[[4, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[4, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[4, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    for q in pl.range(4):
        row = pl.load(x, [q, 0], [1, SIZE])
        data = pl.store(row, [q, 0], data)
    signal = pld.tensor.barrier(signal)
    acc = pl.load(data, [me, 0], [1, SIZE])
    for q in pl.range(nranks):
        if q != me:
            theirs = pld.tile.remote_load(data, peer=q, offsets=[me, 0], shape=[1, SIZE])
            acc = pl.add(acc, theirs)
    data = pl.store(acc, [me, 0], data)
    signal = pld.tensor.barrier(signal)
    for q in pl.range(4):
        if q == me:
            y = pl.store(acc, [q, 0], y)
        else:
            reduced = pld.tile.remote_load(data, peer=q % nranks, offsets=[q, 0], shape=[1, SIZE])
            y = pl.store(reduced, [q, 0], y)
    return y


@pl.jit
def on_device(
    x: pl.Tensor[[4, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[4, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[4, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    y = kernel(x, y, data, signal)
    return y


@pl.jit.host
def program(
    x: pl.Tensor[[NR, 4, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, 4, SIZE], pl.FP32]],
):
    data_buf = pld.alloc_window_buffer([4, SIZE], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [4, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        on_device(x[r], y[r], data, signal, device=r)


def build(nranks):
    x, y = arrays(nranks, 4, 4)
    return program, [x, y], {1: np.broadcast_to(x.sum(axis=0), x.shape)}
