# SPDX-License-Identifier: Apache-2.0
"""Step 04: the builtin barrier leaves its cells at 0 (03 C-4)."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from worlds import NR, Accepted, signals_only

EXPECT = [Accepted()]
P = (2,)


@pl.jit.incore
def kernel(
    y: pl.Out[pl.Tensor[[NR, 1], pl.INT32]],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(signal)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    signal = pld.tensor.barrier(signal)
    for i in pl.range(nranks):
        pl.write(y, [i, 0], pl.read(signal, [i, 0]))
    return y


def build(nranks):
    y = np.full((nranks, nranks, 1), -1, dtype=np.int32)
    return signals_only(kernel), [y], {0: np.zeros((nranks, nranks, 1), dtype=np.int32)}
