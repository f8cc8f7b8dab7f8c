# SPDX-License-Identifier: Apache-2.0
"""Step 12: the root puts, and tells nobody."""

import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, SIZE, arrays, host, race

EXPECT = [race("X-40/X-60")]
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
    if me == 0:
        for q in pl.range(nranks):
            pld.tensor.put(data, q, x)  # <- here
    back = pl.load(data, [0, 0], [1, SIZE])  # <- and here
    y = pl.store(back, [0, 0], y)
    return y


def build(nranks):
    x, y = arrays(nranks)
    return host(kernel), [x, y], None
