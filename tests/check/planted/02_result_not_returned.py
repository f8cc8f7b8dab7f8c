# SPDX-License-Identifier: Apache-2.0
"""Step 02: the kernel's result is not returned; the write reached the output (01 L-50)."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, Accepted, arrays

EXPECT = [Accepted()]
P = (2,)


@pl.jit.incore
def scale(
    x: pl.Tensor[[8, 8], pl.FP32],
    y: pl.Out[pl.Tensor[[8, 8], pl.FP32]],
    factor: pl.Scalar[pl.INT32],
):
    tile = pl.load(x, [0, 0], [8, 8])
    y = pl.store(pl.mul(tile, pl.cast(factor, pl.FP32)), [0, 0], y)
    return y


@pl.jit
def on_device(
    x: pl.Tensor[[8, 8], pl.FP32],
    y: pl.Out[pl.Tensor[[8, 8], pl.FP32]],
    factor: pl.Scalar[pl.INT32],
):
    scale(x, y, factor)


@pl.jit.host
def program(
    x: pl.Tensor[[NR, 8, 8], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, 8, 8], pl.FP32]],
):
    for r in pl.range(pld.world_size()):
        on_device(x[r], y[r], r + 1, device=r)


def build(nranks):
    x, y = arrays(nranks, 8, 8, size=8)
    return program, [x, y], {1: x * (1 + np.arange(nranks, dtype=np.float32))[:, None, None]}
