# SPDX-License-Identifier: Apache-2.0
"""Step 15: the target is passed as the input, too, on the host."""

import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, SIZE, Rejected, arrays

EXPECT = [Rejected(Exception, "X-30")]
P = (2, 4)


@pl.jit.incore
def kernel(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[NR, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    data = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)
    back = pl.load(data, [0, 0], [1, SIZE])
    y = pl.store(back, [0, 0], y)
    return y


@pl.jit
def on_device(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[NR, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    y = kernel(x, y, data, signal)
    return y


@pl.jit.host
def program(
    x: pl.Tensor[[NR, NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.FP32]],
):
    data_buf = pld.alloc_window_buffer([pld.world_size(), SIZE], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [pld.world_size(), SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        on_device(x[r], y[r], data, signal, device=r)
    data = pld.window(data_buf, [pld.world_size(), SIZE], dtype=pl.FP32)
    signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
    data = pld.tensor.all_to_all(data, data, signal)  # <- here


def build(nranks):
    x, y = arrays(nranks, nranks, nranks)
    return program, [x, y], None
