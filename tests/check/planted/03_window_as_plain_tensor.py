# SPDX-License-Identifier: Apache-2.0
"""Step 03: a window is passed for a plain tensor."""

import pypto.language as pl
import pypto.language.distributed as pld
from pypto.language.parser.diagnostics import ParserTypeError
from worlds import NR, Rejected, arrays

EXPECT = [Rejected(ParserTypeError, "X-3", "DistributedTensor")]
P = (2, 4)


@pl.jit.incore
def roundtrip(
    x: pl.Tensor[[1, 256], pl.FP32],
    y: pl.Out[pl.Tensor[[1, 256], pl.FP32]],
    data: pl.Tensor[[1, 256], pl.FP32],
):
    local = pl.load(x, [0, 0], [1, 256])
    data = pl.store(local, [0, 0], data)
    back = pl.load(data, [0, 0], [1, 256])
    y = pl.store(back, [0, 0], y)
    return y


@pl.jit
def per_rank(
    x: pl.Tensor[[1, 256], pl.FP32],
    y: pl.Out[pl.Tensor[[1, 256], pl.FP32]],
    data: pld.DistributedTensor[[1, 256], pl.FP32],
):
    y = roundtrip(x, y, data)  # <- here
    return y


@pl.jit.host
def program(
    x: pl.Tensor[[NR, 1, 256], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, 1, 256], pl.FP32]],
):
    data_buf = pld.alloc_window_buffer([1, 256], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [1, 256], dtype=pl.FP32)
        per_rank(x[r], y[r], data, device=r)


def build(nranks):
    x, y = arrays(nranks, size=256)
    return program, [x, y], {1: x.copy()}
