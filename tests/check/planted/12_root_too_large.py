# SPDX-License-Identifier: Apache-2.0
"""Step 12: root >= P as the peer of the hand-written get."""

import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, SIZE, Report, arrays, host

EXPECT = [Report("X-20")]
P = (2, 4)


@pl.jit.incore
def kernel(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    root = nranks
    if me == root:
        own = pl.load(x, [0, 0], [1, SIZE])
        data = pl.store(own, [0, 0], data)
    signal = pld.tensor.barrier(signal)
    if me != root:
        pld.tensor.get(data, root, data)  # <- here
    signal = pld.tensor.barrier(signal)
    back = pl.load(data, [0, 0], [1, SIZE])
    y = pl.store(back, [0, 0], y)
    return y


def build(nranks):
    x, y = arrays(nranks)
    return host(kernel), [x, y], None
