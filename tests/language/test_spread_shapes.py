# SPDX-License-Identifier: Apache-2.0
"""`[P, *SHAPE]`: a compile-time tuple, or the shape of a tensor, spread into a list (01 L-14, L-15, L-27)."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig

NR = pl.dynamic("NR")
SHAPE = (4, 24)
ZEROS = [0] * len(SHAPE)


@pl.jit
def pass_on(
    x: pl.Tensor[[*SHAPE], pl.FP32],
    y: pl.Out[pl.Tensor[[*SHAPE], pl.FP32]],
    box: pld.DistributedTensor[[2, *SHAPE], pl.FP32],
    sig: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        ctx = pld.get_comm_ctx(box)
        tile = pl.load(x, ZEROS, [*x.shape])
        pld.tile.remote_store(tile, box, (pld.rank(ctx) + 1) % pld.nranks(ctx), [1, *ZEROS])
        sig = pld.tensor.barrier(sig)
        y[:] = box[1]
    return y


@pl.jit.host
def ring(x: pl.Tensor[[NR, *SHAPE], pl.FP32], y: pl.Out[pl.Tensor[[*(NR,), *SHAPE], pl.FP32]]):
    box_buf = pld.alloc_window_buffer([2, *SHAPE], dtype=pl.FP32)
    sig_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        box = pld.window(box_buf, [2, *SHAPE], dtype=pl.FP32)
        pass_on(x[r], y[r], box, pld.window(sig_buf, [pld.world_size(), 1], dtype=pl.INT32), device=r)


def config(ranks):
    return RunConfig(platform="a2a3sim", distributed_config=DistributedConfig(device_ids=list(range(ranks))))


def test_values():
    for ranks in (1, 3):
        x = np.random.default_rng(ranks).standard_normal((ranks, *SHAPE), dtype=np.float32)
        y = np.zeros_like(x)
        ring(x, y, config=config(ranks))
        np.testing.assert_array_equal(y, np.roll(x, 1, axis=0))


def test_a_symbol_beside_a_spread_shape_stays_dynamic():  # L-69
    @pl.jit
    def copy(x: pl.Tensor[[*SHAPE], pl.FP32], y: pl.Out[pl.Tensor[[*SHAPE], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.mul(x, 2.0)
        return y

    @pl.jit.host
    def each(x: pl.Tensor[[*SHAPE[:0], NR, *SHAPE], pl.FP32], y: pl.Out[pl.Tensor[[NR, *SHAPE], pl.FP32]]):
        for r in pl.range(pld.world_size()):
            copy(x[r], y[r], device=r)

    for rows in (2, 5):
        x = np.random.default_rng(rows).standard_normal((rows, *SHAPE), dtype=np.float32)
        y = np.zeros_like(x)
        each(x, y, config=config(2))
        np.testing.assert_array_equal(y[:2], 2 * x[:2])
        assert not y[2:].any()
    assert len(each._cache) == 1
