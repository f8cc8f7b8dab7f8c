# SPDX-License-Identifier: Apache-2.0
"""Step 04: one tally cell, Ge 1, then every peer's data."""

import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, SIZE, arrays, host, race

EXPECT = [race("X-40/X-45")]
P = (3, 4)


@pl.jit.incore
def kernel(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    local = pl.load(x, [0, 0], [1, SIZE])
    data = pl.store(local, [0, 0], data)  # <- here
    for peer in pl.range(nranks):
        if peer != me:
            pld.system.notify(signal, peer, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)
    for src in pl.range(nranks):
        theirs = pld.tile.remote_load(data, peer=src, offsets=[0, 0], shape=[1, SIZE])  # <- and here
        y = pl.store(theirs, [src, 0], y)
    return y


def build(nranks):
    x, y = arrays(nranks, 1, nranks)
    return host(kernel, y_rows=NR), [x, y], None
