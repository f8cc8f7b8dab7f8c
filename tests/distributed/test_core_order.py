# SPDX-License-Identifier: Apache-2.0
"""Mixed kernels that synchronise: they are divided between the cores only where the pipe keeps the order that waits and
notifies give the memory of both (01 L-170; 03 O-22, O-23)."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from everywhere import everywhere, noise
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions

NR = pl.dynamic("NR")
N = 32
RNG = np.random.default_rng(97)
Block = pl.Tensor[[N, N], pl.FP32]
Box = pld.DistributedTensor[[N, N], pl.FP32]
Signal = pld.DistributedTensor[[2, 1], pl.INT32]


@pl.jit.incore
def send(a: Block, w: Block, box: Box, told: Signal):
    """What is signalled came through the pipe: the cube core is done with its memory then."""
    ctx = pld.get_comm_ctx(box)
    right = (pld.rank(ctx) + 1) % pld.nranks(ctx)
    c = pl.matmul(pl.load(a, [0, 0], [N, N]), pl.load(w, [0, 0], [N, N]))
    for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
        half = pl.mul(pl.aiv_shard(c), 0.5)
        pld.tile.remote_store(half, box, right, [lane * (N // 2), 0])
        pld.system.notify(told, right, [lane, 0], 1, op=pld.NotifyOp.AtomicAdd)


@pl.jit.incore
def receive(w: Block, y: pl.Out[Block], box: Box, told: Signal):
    """The wait guards what the cube core loads."""
    for lane in pl.range(2):
        pld.system.wait(told, [lane, 0], 1, cmp=pld.WaitCmp.Ge)
    c = pl.matmul(pl.load(box, [0, 0], [N, N]), pl.load(w, [0, 0], [N, N]))
    y = pl.store(pl.add(pl.move(c, target_memory=pl.Mem.Vec), 1.0), [0, 0], y)
    return y


@pl.jit
def on_device(a: Block, w: Block, y: pl.Out[Block], box: Box, told: Signal):
    send(a, w, box, told)
    return receive(w, y, box, told)


@pl.jit.host
def passed_on(
    a: pl.Tensor[[NR, N, N], pl.FP32],
    w: pl.Tensor[[NR, N, N], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, N, N], pl.FP32]],
):
    bb = pld.alloc_window_buffer([N, N], dtype=pl.FP32)
    tb = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        box = pld.window(bb, [N, N], dtype=pl.FP32)
        told = pld.window(tb, [2, 1], dtype=pl.INT32)
        on_device(a[r], w[r], y[r], box, told, device=r)


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize("p", [1, 3])
def test_waits_guard_both_cores(p, platform, tmp_path):  # L-170, O-22, O-23; SER-2
    a, w = noise(RNG, p, N, N), noise(RNG, p, N, N) / 4
    sent = np.roll(a @ w * np.float32(0.5), 1, axis=0)
    args = [a, w, noise(RNG, p, N, N)]
    whole = everywhere(passed_on, args, p, {2: sent @ w + 1}, tolerance=1e-3)
    world = DistributedConfig(device_ids=list(range(p)))
    lowered = passed_on.lower(config=RunConfig(platform=platform, distributed_config=world))
    names = {f.name for f in lowered.functions.values()}
    assert {"send_aic", "send_aiv", "receive"} <= names and "receive_aic" not in names
    again = ir.compile(
        pl.parse(str(lowered)), output_dir=tmp_path / "again", platform=platform, distributed_config=world
    )
    for options in ({}, {"schedule": "explore", "seed": 3, "delay_remote": True}):
        sim = SimOptions(checks="strict", **options)
        y = noise(RNG, p, N, N)
        again(a, w, y, config=RunConfig(platform=platform, distributed_config=world, sim=sim))
        np.testing.assert_array_equal(y, whole[2])
