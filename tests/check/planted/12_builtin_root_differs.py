# SPDX-License-Identifier: Apache-2.0
"""Step 12: the root differs between ranks, builtin."""

import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, SIZE, Report, Warns, arrays, host

EXPECT = [Warns("X-33"), Warns("X-33", "and here"), Report("X-51", ("here", "and here"))]
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
    local = pl.load(x, [0, 0], [1, SIZE])
    data = pl.store(local, [0, 0], data)
    if me == 0:
        data = pld.tensor.broadcast(data, signal, root=0)  # <- here
    else:
        data = pld.tensor.broadcast(data, signal, root=1)  # <- and here
    back = pl.load(data, [0, 0], [1, SIZE])
    y = pl.store(back, [0, 0], y)
    return y


def build(nranks):
    x, y = arrays(nranks)
    return host(kernel), [x, y], None
