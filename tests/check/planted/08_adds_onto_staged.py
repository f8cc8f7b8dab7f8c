# SPDX-License-Identifier: Apache-2.0
"""Step 08: remote adds into a peer's slice with no barrier after its staging."""

import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, SIZE, arrays, host, race

EXPECT = [race("X-40/X-61")]
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
    data = pl.store(local, [0, 0], data)  # <- here
    for q in pl.range(nranks):
        if q != me:
            pld.tile.remote_store(local, data, peer=q, offsets=[0, 0], atomic=pld.AtomicType.Add)  # <- and here
    signal = pld.tensor.barrier(signal)
    back = pl.load(data, [0, 0], [1, SIZE])
    y = pl.store(back, [0, 0], y)
    return y


def build(nranks):
    x, y = arrays(nranks)
    return host(kernel), [x, y], None
