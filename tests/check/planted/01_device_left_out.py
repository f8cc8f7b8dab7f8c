# SPDX-License-Identifier: Apache-2.0
"""Step 01: device= left out; no windows, so the runtime places the dispatch (03 D-33)."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, Accepted, arrays

EXPECT = [Accepted()]
P = (2,)


@pl.jit.incore
def add_rank(
    x: pl.Tensor[[8, 8], pl.FP32],
    y: pl.Out[pl.Tensor[[8, 8], pl.FP32]],
    rank: pl.Scalar[pl.INT32],
):
    tile = pl.load(x, [0, 0], [8, 8])
    y = pl.store(pl.add(tile, pl.cast(rank, pl.FP32)), [0, 0], y)
    return y


@pl.jit
def per_rank(
    x: pl.Tensor[[8, 8], pl.FP32],
    y: pl.Out[pl.Tensor[[8, 8], pl.FP32]],
    rank: pl.Scalar[pl.INT32],
):
    y = add_rank(x, y, rank)
    return y


@pl.jit.host
def program(
    x: pl.Tensor[[NR, 8, 8], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, 8, 8], pl.FP32]],
):
    for r in pl.range(pld.world_size()):
        per_rank(x[r], y[r], r)


def build(nranks):
    x, y = arrays(nranks, 8, 8, size=8)
    return program, [x, y], {1: x + np.arange(nranks, dtype=np.float32)[:, None, None]}
