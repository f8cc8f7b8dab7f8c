# SPDX-License-Identifier: Apache-2.0
"""Step 04: every rank waits before it notifies."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, Report, signals_only

EXPECT = [Report("X-46")]
P = (2, 4)


@pl.jit.incore
def kernel(
    y: pl.Out[pl.Tensor[[NR, 1], pl.INT32]],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(signal)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    for src in pl.range(nranks):
        if src != me:
            pld.system.wait(signal, [src, 0], 1, cmp=pld.WaitCmp.Ge)  # <- here
    for peer in pl.range(nranks):
        if peer != me:
            pld.system.notify(signal, peer, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)
    for i in pl.range(nranks):
        pl.write(y, [i, 0], pl.read(signal, [i, 0]))
    return y


def build(nranks):
    y = np.full((nranks, nranks, 1), -1, dtype=np.int32)
    return signals_only(kernel), [y], None
