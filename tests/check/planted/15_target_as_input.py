# SPDX-License-Identifier: Apache-2.0
"""Step 15: the target is passed as the input, too, in a kernel."""

import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, SIZE, Rejected, arrays, host

EXPECT = [Rejected(Exception, "X-30")]
P = (2, 4)


@pl.jit.incore
def kernel(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[NR, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    data = pld.tensor.all_to_all(data, data, signal)  # <- here
    back = pl.load(data, [0, 0], [1, SIZE])
    y = pl.store(back, [0, 0], y)
    return y


def build(nranks):
    x, y = arrays(nranks, nranks, nranks)
    return host(kernel, x_rows=NR, y_rows=NR, data_rows=NR), [x, y], None
