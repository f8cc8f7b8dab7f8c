# SPDX-License-Identifier: Apache-2.0
"""Step 14: data in INT8."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, SIZE, Rejected

EXPECT = [Rejected(Exception, "X-30", "target dtype must be FP16 or FP32 or BF16 or INT32, got")]
P = (2, 4)


@pl.jit.incore
def kernel(
    y: pl.Out[pl.Tensor[[1, SIZE], pl.INT8]],
    data: pld.DistributedTensor[[NR, SIZE], pl.INT8],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    data = pld.tensor.reduce_scatter(data, signal, op=pld.ReduceOp.Sum)  # <- here
    out = pl.load(data, [0, 0], [1, SIZE])
    y = pl.store(out, [0, 0], y)
    return y


@pl.jit
def on_device(
    y: pl.Out[pl.Tensor[[1, SIZE], pl.INT8]],
    data: pld.DistributedTensor[[NR, SIZE], pl.INT8],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    y = kernel(y, data, signal)
    return y


@pl.jit.host
def program(y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.INT8]]):
    data_buf = pld.alloc_window_buffer([pld.world_size(), SIZE], dtype=pl.INT8)
    signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [pld.world_size(), SIZE], dtype=pl.INT8)
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        on_device(y[r], data, signal, device=r)


def build(nranks):
    return program, [np.zeros((nranks, 1, SIZE), dtype=np.int8)], None
