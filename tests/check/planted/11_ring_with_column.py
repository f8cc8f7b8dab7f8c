# SPDX-License-Identifier: Apache-2.0
"""Step 11: mode ring with a signal of one column."""

import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, SIZE, Rejected, arrays, host

EXPECT = [Rejected(ValueError, "X-30", "shape[1] is 1")]
P = (2, 4)


@pl.jit.incore
def kernel(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    local = pl.load(x, [0, 0], [1, SIZE])
    data = pl.store(local, [0, 0], data)
    data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum, mode="ring")  # <- here
    back = pl.load(data, [0, 0], [1, SIZE])
    y = pl.store(back, [0, 0], y)
    return y


def build(nranks):
    x, y = arrays(nranks)
    return host(kernel), [x, y], None
