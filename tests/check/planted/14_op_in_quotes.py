# SPDX-License-Identifier: Apache-2.0
"""Step 14: op is text, not a member of ReduceOp."""

import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, SIZE, Rejected, arrays, host

EXPECT = [Rejected(Exception, "", "ReduceOp.Sum, Max, Min, or Prod")]
P = (2, 4)


@pl.jit.incore
def kernel(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[NR, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    for q in pl.range(nranks):
        row = pl.load(x, [q, 0], [1, SIZE])
        data = pl.store(row, [q, 0], data)
    data = pld.tensor.reduce_scatter(data, signal, op="max")  # <- here
    out = pl.load(data, [me, 0], [1, SIZE])
    y = pl.store(out, [0, 0], y)
    return y


def build(nranks):
    x, y = arrays(nranks, nranks, 1)
    return host(kernel, x_rows=NR, data_rows=NR), [x, y], None
