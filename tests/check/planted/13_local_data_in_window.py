# SPDX-License-Identifier: Apache-2.0
"""Step 13: the local data of allgather is a window."""

import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, SIZE, Rejected, arrays, host

EXPECT = [Rejected(Exception, "X-30")]
P = (2, 4)


@pl.jit.incore
def kernel(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[NR, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    data = pld.tensor.allgather(data, data, signal)  # <- here
    back = pl.load(data, [0, 0], [1, SIZE])
    y = pl.store(back, [0, 0], y)
    return y


def build(nranks):
    x, y = arrays(nranks, 1, nranks)
    return host(kernel, y_rows=NR, data_rows=NR), [x, y], None
