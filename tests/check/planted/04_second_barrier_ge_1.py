# SPDX-License-Identifier: Apache-2.0
"""Step 04: a second barrier on the same cells with Ge 1, fresh data behind each."""

import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, SIZE, arrays, host, race

EXPECT = [race("X-40/X-45")]
P = (2, 4)


@pl.jit.incore
def kernel(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[NR, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    for round in pl.range(2):
        row = pl.load(x, [round, 0], [1, SIZE])
        data = pl.store(row, [round, 0], data)  # <- here
        for peer in pl.range(nranks):
            if peer != me:
                pld.system.notify(signal, peer, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)
        for src in pl.range(nranks):
            if src != me:
                pld.system.wait(signal, [src, 0], 1, cmp=pld.WaitCmp.Ge)
        theirs = pld.tile.remote_load(data, peer=(me + 1) % nranks, offsets=[round, 0], shape=[1, SIZE])  # <- and here
        y = pl.store(theirs, [round, 0], y)
    return y


def build(nranks):
    x, y = arrays(nranks, nranks, nranks)
    return host(kernel, x_rows=NR, y_rows=NR, data_rows=NR), [x, y], None
