# SPDX-License-Identifier: Apache-2.0
"""Orders of 03 section 8 that hold and that do not: host order, task ends, reads of the control plane, exact bytes."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions, last_report

NR = pl.dynamic("NR")
C = 64
RNG = np.random.default_rng(8)
SCHEDULES = [{}, {"schedule": "explore", "seed": 5}, {"schedule": "timed"}, {"checks": "off"}]


def run(program, args, p, platform="a2a3sim", **sim):
    """Runs it; the diagnostics."""
    world = DistributedConfig(device_ids=[2 * r for r in range(p)])
    program(*args, config=RunConfig(platform=platform, distributed_config=world, sim=SimOptions(**sim)))
    return [d for d in last_report().diagnostics if d.severity != "note"]


# ------------------------------------------------ host order: kept by the simulator, an edge only through a collective


@pl.jit.incore
def stage(x: pl.Tensor[[1, C], pl.FP32], w: pld.DistributedTensor[[1, C], pl.FP32]):
    w = pl.store(pl.load(x, [0, 0], [1, C]), [0, 0], w)
    return w


@pl.jit
def publish(x: pl.Tensor[[1, C], pl.FP32], w: pld.DistributedTensor[[1, C], pl.FP32]):
    w = stage(x, w)
    return w


@pl.jit.incore
def fetch(y: pl.Out[pl.Tensor[[1, C], pl.FP32]], w: pld.DistributedTensor[[1, C], pl.FP32]):
    ctx = pld.get_comm_ctx(w)
    t = pld.remote_load(w, (pld.rank(ctx) + 1) % pld.nranks(ctx), [0, 0], [1, C])
    y = pl.store(t, [0, 0], y)
    return y


@pl.jit
def consume(y: pl.Out[pl.Tensor[[1, C], pl.FP32]], w: pld.DistributedTensor[[1, C], pl.FP32]):
    return fetch(y, w)


@pl.jit.host
def by_host_order(x: pl.Tensor[[2, NR, 1, C], pl.FP32], y: pl.Out[pl.Tensor[[2, NR, 1, C], pl.FP32]]):
    buf = pld.alloc_window_buffer([1, C], dtype=pl.FP32)
    w = pld.window(buf, [1, C], dtype=pl.FP32)
    for k in pl.range(2):
        for r in pl.range(pld.world_size()):
            publish(x[k, r], w, device=r)
        for r in pl.range(pld.world_size()):
            consume(y[k, r], w, device=r)


@pl.jit.host
def by_barriers(x: pl.Tensor[[2, NR, 1, C], pl.FP32], y: pl.Out[pl.Tensor[[2, NR, 1, C], pl.FP32]]):
    buf = pld.alloc_window_buffer([1, C], dtype=pl.FP32)
    cells = pld.alloc_window_buffer([pld.world_size()], dtype=pl.INT32)
    w = pld.window(buf, [1, C], dtype=pl.FP32)
    signal = pld.window(cells, [pld.world_size()], dtype=pl.INT32)
    for k in pl.range(2):
        for r in pl.range(pld.world_size()):
            publish(x[k, r], w, device=r)
        pld.tensor.barrier(signal)
        for r in pl.range(pld.world_size()):
            consume(y[k, r], w, device=r)
        pld.tensor.barrier(signal)


@pytest.mark.parametrize("sim", SCHEDULES, ids=str)
@pytest.mark.parametrize("p", [1, 2, 3])
def test_host_order_of_groups(p, sim):  # M-32, M-33, M-38, M-36
    x = RNG.standard_normal((2, p, 1, C)).astype(np.float32)
    y = np.zeros_like(x)
    found = run(by_host_order, [x, y], p, **sim)
    np.testing.assert_array_equal(y, np.roll(x, -1, axis=1))
    told = p > 1 and "checks" not in sim
    assert {(d.severity, d.id) for d in found} == ({("warning", "X-40")} if told else set())
    assert all("host order" in d.message and "'buf'" in d.message for d in found)


def test_host_order_is_no_edge():  # M-33, M-37
    x = RNG.standard_normal((2, 2, 1, C)).astype(np.float32)
    with pytest.raises(RuntimeError, match="X-40.*host order only.*'buf'"):
        run(by_host_order, [x, np.zeros_like(x)], 2, checks="strict")


@pytest.mark.parametrize("sim", SCHEDULES[:3], ids=str)
@pytest.mark.parametrize("p", [1, 2, 5])
def test_a_collective_is_an_edge(p, sim):  # M-14, M-18, C-40, C-62, C-63
    x = RNG.standard_normal((2, p, 1, C)).astype(np.float32)
    y = np.zeros_like(x)
    assert run(by_barriers, [x, y], p, checks="strict", **sim) == []
    np.testing.assert_array_equal(y, np.roll(x, -1, axis=1))


# ------------------------------------------------ what the control plane reads


@pl.jit.incore
def pass_on(
    x: pl.Tensor[[1, C], pl.INT32],
    w: pld.DistributedTensor[[1, C], pl.INT32],
    s: pld.DistributedTensor[[1, 1], pl.INT32],
    came: pl.Out[pl.Tensor[[1, C], pl.INT32]],
):
    ctx = pld.get_comm_ctx(w)
    peer = (pld.rank(ctx) + 1) % pld.nranks(ctx)
    pld.tensor.put(w, peer, x)
    pld.system.notify(s, peer, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(s, [0, 0], 1, cmp=pld.WaitCmp.Ge)
    came = pl.store(pl.load(w, [0, 0], [1, C]), [0, 0], came)
    return came


@pl.jit.incore
def fill(y: pl.Out[pl.Tensor[[1, C], pl.INT32]], w: pld.DistributedTensor[[1, C], pl.INT32], n: pl.Scalar[pl.INT32]):
    t = pl.load(w, [0, 0], [1, C])
    y = pl.store(pl.mul(t, n), [0, 0], y)
    return y


@pl.jit
def decide(
    x: pl.Tensor[[1, C], pl.INT32],
    y: pl.Out[pl.Tensor[[1, C], pl.INT32]],
    w: pld.DistributedTensor[[1, C], pl.INT32],
    s: pld.DistributedTensor[[1, 1], pl.INT32],
):
    came = pl.create_tensor([1, C], dtype=pl.INT32)
    came = pass_on(x, w, s, came)
    n = pl.read(came, [0, 3])
    if n > 2:
        y = fill(y, w, n)
    else:
        y = fill(y, w, -7)
    return y


@pl.jit.host
def decisions(x: pl.Tensor[[NR, 1, C], pl.INT32], y: pl.Out[pl.Tensor[[NR, 1, C], pl.INT32]]):
    buf = pld.alloc_window_buffer([1, C], dtype=pl.INT32)
    cells = pld.alloc_window_buffer([1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        decide(x[r], y[r], pld.window(buf, [1, C], dtype=pl.INT32), pld.window(cells, [1], dtype=pl.INT32), device=r)


@pytest.mark.parametrize("p", [1, 2, 3, 5])
@pytest.mark.parametrize("sim", SCHEDULES[:3], ids=str)
def test_reads_of_the_control_plane(p, sim):  # M-27: waits for the task and acquires what it acquired
    x = RNG.integers(0, 6, (p, 1, C), dtype=np.int32)
    y = np.zeros_like(x)
    assert run(decisions, [x, y], p, checks="strict", **sim) == []
    came = np.roll(x, 1, axis=0)
    n = came[:, :, 3:4]
    np.testing.assert_array_equal(y, came * np.where(n > 2, n, -7))


# ------------------------------------------------ races are found to the byte


def writers_of(width):
    """Rank r writes elements 16 r .. 16 r + width of rank 0's row."""

    @pl.jit.incore
    def kernel(
        x: pl.Tensor[[1, width], pl.INT16],
        w: pld.DistributedTensor[[1, C], pl.INT16],
        s: pld.DistributedTensor[[NR, 1], pl.INT32],
        y: pl.Out[pl.Tensor[[1, C], pl.INT16]],
    ):
        me = pld.rank(pld.get_comm_ctx(w))
        pld.tensor.put(w, 0, x, [0, 16 * me], [0, 0], [1, width])
        s = pld.tensor.barrier(s)
        y = pl.store(pl.load(w, [0, 0], [1, C]), [0, 0], y)
        return y

    @pl.jit
    def on_device(
        x: pl.Tensor[[1, width], pl.INT16],
        w: pld.DistributedTensor[[1, C], pl.INT16],
        s: pld.DistributedTensor[[NR, 1], pl.INT32],
        y: pl.Out[pl.Tensor[[1, C], pl.INT16]],
    ):
        return kernel(x, w, s, y)

    @pl.jit.host
    def program(x: pl.Tensor[[NR, 1, width], pl.INT16], y: pl.Out[pl.Tensor[[NR, 1, C], pl.INT16]]):
        row = pld.alloc_window_buffer([1, C], dtype=pl.INT16)
        cells = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            w = pld.window(row, [1, C], dtype=pl.INT16)
            s = pld.window(cells, [pld.world_size(), 1], dtype=pl.INT32)
            on_device(x[r], w, s, y[r], device=r)

    return program


@pytest.mark.parametrize("p", [2, 3])
def test_writers_side_by_side(p):  # M-2, M-3, M-20, M-36
    x = RNG.integers(1, 99, (p, 1, 16)).astype(np.int16)
    y = np.zeros((p, 1, C), np.int16)
    assert run(writers_of(16), [x, y], p) == []
    np.testing.assert_array_equal(y[0, 0, : 16 * p], x.reshape(-1))


def test_writers_that_share_one_element():  # M-2, M-36, X-61
    x = RNG.integers(1, 99, (2, 1, 17)).astype(np.int16)
    with pytest.raises(RuntimeError, match=r"X-40/X-61.*'row' of rank 0.*\[0, 16\].*bytes 32 to 34"):
        run(writers_of(17), [x, np.zeros((2, 1, C), np.int16)], 2)


# ------------------------------------------------ a wait keeps its core


def waiters_of(count):
    @pl.jit
    def on_device(y: pl.Out[pl.Tensor[[1, C], pl.FP32]], s: pld.DistributedTensor[[1, C], pl.INT32]):
        with pl.manual_scope():
            for i in pl.range(count):
                with pl.at(level=pl.Level.CORE_GROUP):
                    pld.system.wait(s, [0, 0], 1, cmp=pld.WaitCmp.Ge)
            with pl.at(level=pl.Level.CORE_GROUP):
                pld.system.notify(s, pld.rank(pld.get_comm_ctx(s)), [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
                y[:, :] = pl.full([1, C], dtype=pl.FP32, value=1.0)
        return y

    @pl.jit.host
    def program(y: pl.Out[pl.Tensor[[NR, 1, C], pl.FP32]]):
        cells = pld.alloc_window_buffer([1, C], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            on_device(y[r], pld.window(cells, [1, C], dtype=pl.INT32), device=r)

    return program


@pytest.mark.parametrize("platform,count,stands", [("a2a3sim", 47, False), ("a2a3sim", 48, True), ("a5sim", 71, False)])
def test_waits_hold_their_cores(platform, count, stands):  # O-24, M-31, X-49
    y = np.zeros((2, 1, C), np.float32)
    if stands:
        with pytest.raises(RuntimeError, match=f"X-49.*{count} blocked wait"):
            run(waiters_of(count), [y], 2, platform)
        return
    assert run(waiters_of(count), [y], 2, platform) == []
    assert (y == 1).all()
