# SPDX-License-Identifier: Apache-2.0
"""Step 13: the own row is not written."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, SIZE, Mismatch, arrays, host

EXPECT = [Mismatch()]
P = (2, 4)


@pl.jit.incore
def kernel(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[NR, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    for q in pl.range(nranks):
        if q != me:
            pld.tensor.put(data, q, x, dst_offsets=[me, 0], src_offsets=[0, 0], shape=[1, SIZE])
    signal = pld.tensor.barrier(signal)
    for q in pl.range(nranks):
        row = pl.load(data, [q, 0], [1, SIZE])
        y = pl.store(row, [q, 0], y)
    return y


def build(nranks):
    x, y = arrays(nranks, 1, nranks)
    return host(kernel, y_rows=NR, data_rows=NR), [x, y], {1: np.broadcast_to(x[:, 0], y.shape)}
