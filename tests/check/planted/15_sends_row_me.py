# SPDX-License-Identifier: Apache-2.0
"""Step 15: row me of x is sent into row me."""

import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, SIZE, Mismatch, arrays, host

EXPECT = [Mismatch()]
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
    for d in pl.range(nranks):
        pld.tensor.put(data, d, x, dst_offsets=[me, 0], src_offsets=[me, 0], shape=[1, SIZE])
    signal = pld.tensor.barrier(signal)
    for q in pl.range(nranks):
        row = pl.load(data, [q, 0], [1, SIZE])
        y = pl.store(row, [q, 0], y)
    return y


def build(nranks):
    x, y = arrays(nranks, nranks, nranks)
    return host(kernel, x_rows=NR, y_rows=NR, data_rows=NR), [x, y], {1: x.swapaxes(0, 1)}
