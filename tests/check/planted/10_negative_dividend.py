# SPDX-License-Identifier: Apache-2.0
"""Step 10: (me - k - 2) % P without 2 * P: right, but with a negative dividend (01 L-17)."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, SIZE, Accepted, Report, arrays, host

EXPECT = [Report("W-NEGATIVE-DIVIDEND", ("here",), "warning"), Accepted()]
STRICT = [Report("W-NEGATIVE-DIVIDEND"), Accepted()]
P = (2, 4)


@pl.jit.incore
def kernel(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[NR, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[1, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    left = (me + nranks - 1) % nranks
    right = (me + 1) % nranks
    for q in pl.range(nranks):
        row = pl.load(x, [q, 0], [1, SIZE])
        data = pl.store(row, [q, 0], data)
    pld.system.notify(signal, right, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    for k in pl.range(2 * (nranks - 1)):
        pld.system.wait(signal, [0, 0], k + 1, cmp=pld.WaitCmp.Ge)
        g = (me - k - 2) % nranks  # <- here
        theirs = pld.tile.remote_load(data, peer=left, offsets=[g, 0], shape=[1, SIZE])
        if k < nranks - 1:
            own = pl.load(data, [g, 0], [1, SIZE])
            data = pl.store(pl.add(own, theirs), [g, 0], data)
        else:
            data = pl.store(theirs, [g, 0], data)
        if k < 2 * nranks - 3:
            pld.system.notify(signal, right, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    for q in pl.range(nranks):
        row = pl.load(data, [q, 0], [1, SIZE])
        y = pl.store(row, [q, 0], y)
    return y


def build(nranks):
    x, y = arrays(nranks, nranks, nranks)
    return (
        host(kernel, x_rows=NR, y_rows=NR, data_rows=NR, signal_rows=1),
        [x, y],
        {1: np.broadcast_to(x.sum(axis=0), x.shape)},
    )
