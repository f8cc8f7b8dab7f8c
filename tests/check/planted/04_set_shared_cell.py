# SPDX-License-Identifier: Apache-2.0
"""Step 04: every rank Sets one shared cell."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, race, signals_only

EXPECT = [race("X-44", "here", "here")]
P = (3, 4)


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
            pld.system.notify(signal, peer, [0, 0], 1, op=pld.NotifyOp.Set)  # <- here
    pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)
    pl.write(y, [0, 0], 1)
    return y


def build(nranks):
    y = np.full((nranks, nranks, 1), -1, dtype=np.int32)
    return signals_only(kernel), [y], None
