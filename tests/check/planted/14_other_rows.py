# SPDX-License-Identifier: Apache-2.0
"""Step 14: the other rows keep the staged data (03 7.3)."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, SIZE, Accepted, arrays, host

EXPECT = [Accepted()]
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
    data = pld.tensor.reduce_scatter(data, signal, op=pld.ReduceOp.Sum)
    out = pl.load(data, [(me + 1) % nranks, 0], [1, SIZE])
    y = pl.store(out, [0, 0], y)
    return y


def build(nranks):
    x, y = arrays(nranks, nranks, 1)
    return (
        host(kernel, x_rows=NR, data_rows=NR),
        [x, y],
        {1: np.stack([x[r, [(r + 1) % nranks]] for r in range(nranks)])},
    )
