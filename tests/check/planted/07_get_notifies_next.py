# SPDX-License-Identifier: Apache-2.0
"""Step 07: get mode notifies the next rank instead of its reader."""

import pypto.language as pl
import pypto.language.distributed as pld
from worlds import SIZE, arrays, race, two_windows

EXPECT = [race("X-40/X-59")]
P = (3, 4)


@pl.jit.incore
def kernel(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    src: pld.DistributedTensor[[1, SIZE], pl.FP32],
    dst: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[1, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(dst)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    left = (me + nranks - 1) % nranks
    right = (me + 1) % nranks
    local = pl.load(x, [0, 0], [1, SIZE])
    src = pl.store(local, [0, 0], src)  # <- here
    pld.system.notify(signal, right, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)
    pld.tensor.get(dst, right, src)  # <- and here
    back = pl.load(dst, [0, 0], [1, SIZE])
    y = pl.store(back, [0, 0], y)
    return y


def build(nranks):
    x, y = arrays(nranks)
    return two_windows(kernel), [x, y], None
