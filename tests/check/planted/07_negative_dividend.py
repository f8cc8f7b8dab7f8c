# SPDX-License-Identifier: Apache-2.0
"""Step 07: (me - 1) % nranks in the kernel: right, but with a negative dividend (01 L-17)."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from worlds import SIZE, Accepted, Report, arrays, two_windows

EXPECT = [Report("W-NEGATIVE-DIVIDEND", ("here",), "warning"), Accepted()]
STRICT = [Report("W-NEGATIVE-DIVIDEND"), Accepted()]
P = (2, 4)


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
    left = (me - 1) % nranks  # <- here
    local = pl.load(x, [0, 0], [1, SIZE])
    src = pl.store(local, [0, 0], src)
    pld.tensor.put(dst, left, src, atomic=pld.AtomicType.None_)
    pld.system.notify(signal, left, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)
    back = pl.load(dst, [0, 0], [1, SIZE])
    y = pl.store(back, [0, 0], y)
    return y


def build(nranks):
    x, y = arrays(nranks)
    return two_windows(kernel), [x, y], {1: np.roll(x, -1, axis=0)}
