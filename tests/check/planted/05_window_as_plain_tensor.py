# SPDX-License-Identifier: Apache-2.0
"""Step 05: the window parameter is annotated as a plain tensor."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.language.parser.diagnostics import InvalidOperationError
from worlds import NR, SIZE, Rejected, arrays, host

EXPECT = [Rejected(InvalidOperationError, "X-3", "DistributedTensor")]
P = (2, 4)


@pl.jit.incore
def kernel(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pl.Tensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)  # <- here
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    local = pl.load(x, [0, 0], [1, SIZE])
    data = pl.store(local, [0, 0], data)
    signal = pld.tensor.barrier(signal)
    recv = pld.tile.remote_load(data, peer=(me + 1) % nranks, offsets=[0, 0], shape=[1, SIZE])
    y = pl.store(recv, [0, 0], y)
    return y


def build(nranks):
    x, y = arrays(nranks)
    return host(kernel), [x, y], {1: np.roll(x, -1, axis=0)}
