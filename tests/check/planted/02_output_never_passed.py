# SPDX-License-Identifier: Apache-2.0
"""Step 02: an output of the host function that no dispatch receives (01 L-54)."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, Mismatch, Warns, arrays

EXPECT = [Warns("y", "here"), Mismatch()]
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
    y = scale(x, y, factor)
    return y


@pl.jit.host
def program(
    x: pl.Tensor[[NR, 8, 8], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, 8, 8], pl.FP32]],  # <- here
):
    z = pl.create_tensor([2, 8, 8], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        on_device(x[r], z[r], r + 1, device=r)


def build(nranks):
    x, y = arrays(nranks, 8, 8, size=8)
    return program, [x, y], {1: x * (1 + np.arange(nranks, dtype=np.float32))[:, None, None]}
