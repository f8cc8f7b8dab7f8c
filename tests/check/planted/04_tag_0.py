# SPDX-License-Identifier: Apache-2.0
"""Step 04: a wait for Ge 0, which is always satisfied."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, Accepted, Report, Warns, signals_only

EXPECT = [Warns("X-69"), Accepted()]
STRICT = [Warns("X-69"), Report("X-69")]
P = (2, 4)


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
            pld.system.wait(signal, [src, 0], 0, cmp=pld.WaitCmp.Ge)  # <- here
    for i in pl.range(nranks):
        pl.write(y, [i, 0], 7)
    return y


def build(nranks):
    y = np.full((nranks, nranks, 1), -1, dtype=np.int32)
    return signals_only(kernel), [y], {0: np.full_like(y, 7)}
