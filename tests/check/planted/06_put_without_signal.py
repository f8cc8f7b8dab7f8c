# SPDX-License-Identifier: Apache-2.0
"""Step 06: a put that nobody is told of."""

import pypto.language as pl
import pypto.language.distributed as pld
from worlds import SIZE, arrays, race, two_windows

EXPECT = [race("X-40/X-60")]
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
    left = (me + nranks - 1) % nranks
    right = (me + 1) % nranks
    local = pl.load(x, [0, 0], [1, SIZE])
    src = pl.store(local, [0, 0], src)
    pld.tensor.put(dst, right, src, atomic=pld.AtomicType.None_)  # <- here
    back = pl.load(dst, [0, 0], [1, SIZE])  # <- and here
    y = pl.store(back, [0, 0], y)
    return y


def build(nranks):
    x, y = arrays(nranks)
    return two_windows(kernel), [x, y], None
