# SPDX-License-Identifier: Apache-2.0
"""Step 15, --ragged: one row more than was received is read."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from worlds import Report, arrays

EXPECT = []
STRICT = [Report("X-67", ("here",), "warning")]
P = (2, 4)


M = 4  # rows per block


def make_program(nranks):
    rows = nranks * M

    @pl.jit.incore
    def kernel(
        x: pl.Tensor[[rows, 32], pl.FP32],
        counts: pl.Tensor[[nranks], pl.INT32],
        y: pl.Out[pl.Tensor[[rows, 32], pl.FP32]],
        data: pld.DistributedTensor[[rows, 32], pl.FP32],
        signal: pld.DistributedTensor[[nranks, 1], pl.INT32],
        recv_counts: pld.DistributedTensor[[nranks, 1], pl.INT32],
    ):
        data = pld.tensor.all_to_all_v(x, data, signal, counts, recv_counts)
        for q in pl.range(nranks):
            n = pl.read(recv_counts, [q, 0])
            for i in pl.range(n + 1):
                row = pl.load(data, [q * M + i, 0], [1, 32])  # <- here
                y = pl.store(row, [q * M + i, 0], y)
        return y

    @pl.jit
    def on_device(
        x: pl.Tensor[[rows, 32], pl.FP32],
        counts: pl.Tensor[[nranks], pl.INT32],
        y: pl.Out[pl.Tensor[[rows, 32], pl.FP32]],
        data: pld.DistributedTensor[[rows, 32], pl.FP32],
        signal: pld.DistributedTensor[[nranks, 1], pl.INT32],
        recv_counts: pld.DistributedTensor[[nranks, 1], pl.INT32],
    ):
        y = kernel(x, counts, y, data, signal, recv_counts)
        return y

    @pl.jit.host
    def program(
        x: pl.Tensor[[nranks, rows, 32], pl.FP32],
        counts: pl.Tensor[[nranks, nranks], pl.INT32],
        y: pl.Out[pl.Tensor[[nranks, rows, 32], pl.FP32]],
    ):
        data_buf = pld.alloc_window_buffer([rows, 32], dtype=pl.FP32)
        signal_buf = pld.alloc_window_buffer([nranks, 1], dtype=pl.INT32)
        count_buf = pld.alloc_window_buffer([nranks, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [rows, 32], dtype=pl.FP32)
            signal = pld.window(signal_buf, [nranks, 1], dtype=pl.INT32)
            recv_counts = pld.window(count_buf, [nranks, 1], dtype=pl.INT32)
            on_device(x[r], counts[r], y[r], data, signal, recv_counts, device=r)

    return program


def build(nranks):
    x, y = arrays(nranks, nranks * M, nranks * M, size=32)
    counts = np.full((nranks, nranks), 2, dtype=np.int32)
    return make_program(nranks), [x, counts, y], None
