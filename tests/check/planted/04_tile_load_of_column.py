# SPDX-License-Identifier: Apache-2.0
"""Step 04: a tile load of the column of cells is stored padded (03 O-34)."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, Accepted, signals_only

EXPECT = [Accepted()]
P = (2,)


@pl.jit.incore
def kernel(
    y: pl.Out[pl.Tensor[[NR, 1], pl.INT32]],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(signal)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    for peer in pl.range(nranks):
        if peer != me:
            pld.system.notify(signal, peer, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)
    for src in pl.range(nranks):
        if src != me:
            pld.system.wait(signal, [src, 0], 1, cmp=pld.WaitCmp.Ge)
    column = pl.load(signal, [0, 0], [2, 1])
    y = pl.store(column, [0, 0], y)
    return y


def build(nranks):
    y = np.full((nranks, nranks, 1), -1, dtype=np.int32)
    return signals_only(kernel), [y], {0: (1 - np.eye(nranks, dtype=np.int32))[:, :, None]}
