# SPDX-License-Identifier: Apache-2.0
"""Step 09: the barrier between the phases is missing."""

import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, SIZE, arrays, host, race

EXPECT = [race("X-40")]
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
    for q in pl.range(nranks):
        row = pl.load(x, [q, 0], [1, SIZE])
        data = pl.store(row, [q, 0], data)
    signal = pld.tensor.barrier(signal)
    acc = pl.load(data, [me, 0], [1, SIZE])
    for q in pl.range(nranks):
        if q != me:
            theirs = pld.tile.remote_load(data, peer=q, offsets=[me, 0], shape=[1, SIZE])
            acc = pl.add(acc, theirs)
    data = pl.store(acc, [me, 0], data)  # <- here
    for q in pl.range(nranks):
        if q == me:
            y = pl.store(acc, [q, 0], y)
        else:
            reduced = pld.tile.remote_load(data, peer=q, offsets=[q, 0], shape=[1, SIZE])  # <- and here
            y = pl.store(reduced, [q, 0], y)
    return y


def build(nranks):
    x, y = arrays(nranks, nranks, nranks)
    return host(kernel, x_rows=NR, y_rows=NR, data_rows=NR), [x, y], None
