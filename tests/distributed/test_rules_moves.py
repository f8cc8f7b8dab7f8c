# SPDX-License-Identifier: Apache-2.0
"""Moves of every form, to peers and to oneself: what lands, what stays, in which order, and what is counted."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from everywhere import everywhere, noise
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, last_report

NR = pl.dynamic("NR")
R, C = 6, 64
RNG = np.random.default_rng(3051)


def program_of(kernel, dtype=pl.FP32):
    """x and y of R rows per rank, a window of the same shape, a signal of a row per rank; `shift` is the peer's distance."""

    @pl.jit
    def on_device(
        x: pl.Tensor[[R, C], dtype],
        y: pl.Out[pl.Tensor[[R, C], dtype]],
        w: pld.DistributedTensor[[R, C], dtype],
        v: pld.DistributedTensor[[R, C], dtype],
        s: pld.DistributedTensor[[NR, 1], pl.INT32],
        shift: pl.Scalar[pl.INT32],
    ):
        return kernel(x, y, w, v, s, shift)

    @pl.jit.host
    def program(x: pl.Tensor[[NR, R, C], dtype], y: pl.Out[pl.Tensor[[NR, R, C], dtype]], shift: pl.Scalar[pl.INT32]):
        wb = pld.alloc_window_buffer([R, C], dtype=dtype)
        vb = pld.alloc_window_buffer([R, C], dtype=dtype)
        sb = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            w = pld.window(wb, [R, C], dtype=dtype)
            v = pld.window(vb, [R, C], dtype=dtype)
            s = pld.window(sb, [pld.world_size(), 1], dtype=pl.INT32)
            on_device(x[r], y[r], w, v, s, shift, device=r)

    return program


@pl.jit.incore
def pushes(
    x: pl.Tensor[[R, C], pl.FP32],
    y: pl.Out[pl.Tensor[[R, C], pl.FP32]],
    w: pld.DistributedTensor[[R, C], pl.FP32],
    v: pld.DistributedTensor[[R, C], pl.FP32],
    s: pld.DistributedTensor[[NR, 1], pl.INT32],
    shift: pl.Scalar[pl.INT32],
):
    ctx = pld.get_comm_ctx(w)
    peer = (pld.rank(ctx) + shift) % pld.nranks(ctx)
    v = pl.store(pl.load(x, [0, 0], [R, C]), [0, 0], v)
    t = pl.load(x, [0, 0], [1, C])
    pld.tile.remote_store(t, w, peer, [0, 0])
    pld.remote_store(pl.mul(t, 2.0), w, peer, [0, 0], atomic=pld.AtomicType.Add)
    pld.tensor.put(w, peer, x, [1, 0], [1, 0], [2, C])  # from a plain tensor
    pld.tensor.put(w, peer, v, [3, 0], [3, 0], [1, C], chunk_rows=1, chunk_cols=24, pipeline=True)  # from a window
    pld.tensor.put(w, peer, v, [3, 0], [4, 0], [1, C], atomic=pld.AtomicType.Add, chunk_cols=40)
    pld.tensor.put(dst=w, peer=peer, src=x, dst_offsets=[4, 8], src_offsets=[5, 0], shape=[1, 17])
    pld.tensor.put(w, peer, x, [5, 0], [5, 0], [0, C])  # nothing
    pld.system.notify(s, peer, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(s, [0, 0], 1, cmp=pld.WaitCmp.Ge)
    y = pl.store(pl.load(w, [0, 0], [R, C]), [0, 0], y)
    return y


@pl.jit.incore
def pulls(
    x: pl.Tensor[[R, C], pl.FP32],
    y: pl.Out[pl.Tensor[[R, C], pl.FP32]],
    w: pld.DistributedTensor[[R, C], pl.FP32],
    v: pld.DistributedTensor[[R, C], pl.FP32],
    s: pld.DistributedTensor[[NR, 1], pl.INT32],
    shift: pl.Scalar[pl.INT32],
):
    ctx = pld.get_comm_ctx(v)
    n = pld.nranks(ctx)
    me = pld.rank(ctx)
    v = pl.store(pl.load(x, [0, 0], [R, C]), [0, 0], v)
    pld.system.notify(s, (me + n - shift) % n, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(s, [0, 0], 1, cmp=pld.WaitCmp.Ge)
    peer = (me + shift) % n
    y = pl.store(pl.tile.full([R, C], dtype=pl.FP32, value=0.0), [0, 0], y)
    pld.tensor.get(y, peer, v, [0, 0], [0, 0], [2, C])  # into a plain tensor
    pld.tensor.get(w, peer, v)  # the whole slice, into a window
    pld.tensor.get(y, peer, v, [4, 8], [5, 0], [1, 17], chunk_rows=3, chunk_cols=5, pipeline=True)
    t = pld.tile.remote_load(v, peer, [2, 0], [1, C])
    y = pl.store(t, [2, 0], y)
    u = pld.tile.remote_load(
        w, peer=me, offsets=[3, 32], shape=[1, C], valid_shape=[1, 32]
    )  # past the end but for this
    y = pl.store(u, [3, 32], y)
    z = pld.remote_load(v, peer, [5, 0], [1, C], [1, shift + 5])
    y = pl.store(z, [5, 0], y)
    return y


def pushed(came):
    want = np.zeros_like(came)
    want[:, 0] = 3 * came[:, 0]
    want[:, 1:3] = came[:, 1:3]
    want[:, 3] = came[:, 3] + came[:, 4]
    want[:, 4, 8:25] = came[:, 5, :17]
    return want


def pulled(came, shift):
    want = np.zeros_like(came)
    want[:, :3] = came[:, :3]
    want[:, 3, 32:] = came[:, 3, 32:]
    want[:, 4, 8:25] = came[:, 5, :17]
    want[:, 5, : shift + 5] = came[:, 5, : shift + 5]
    return want


MOVES = [(1, 0), (3, 0), (2, 1), (3, 1), (5, 2)]


@pytest.mark.parametrize("p,shift", MOVES)
def test_pushes(p, shift):  # O-2, O-22, O-36, O-51, O-52, O-55, O-57 - O-59
    x = noise(RNG, p, R, C)
    everywhere(program_of(pushes), [x, noise(RNG, p, R, C), shift], p, {1: pushed(np.roll(x, shift, axis=0))})
    comm = last_report().ranks[p - 1].comm
    moved = (C + C + 2 * C + C + C + 17) * 4
    if shift:  # K-1: as written, chunks not counted; what moves nothing is no operation
        assert (comm["put"], comm["remote_store"], comm["bytes_written"], comm["self_bytes"]) == (4, 2, moved, 0)
        assert (comm["notify_remote"], comm["notify_self"]) == (1, 0)
    else:
        assert (comm["put"], comm["remote_store"], comm["bytes_written"], comm["self_bytes"]) == (0, 0, 0, moved)
        assert (comm["notify_remote"], comm["notify_self"]) == (0, 1)
    assert comm["wait"] == 1


@pytest.mark.parametrize("p,shift", MOVES)
def test_pulls(p, shift):  # O-2, O-31 - O-33, O-51, O-52, O-54, O-57, O-59
    x = noise(RNG, p, R, C)
    want = pulled(np.roll(x, -shift, axis=0), shift)
    everywhere(program_of(pulls), [x, noise(RNG, p, R, C), shift], p, {1: want})
    comm = last_report().ranks[0].comm
    far = (2 * C + R * C + 17 + C + shift + 5) * 4
    if shift:
        assert (comm["get"], comm["remote_load"], comm["bytes_read"], comm["self_bytes"]) == (3, 2, far, 32 * 4)
    else:
        assert (comm["get"], comm["remote_load"], comm["bytes_read"], comm["self_bytes"]) == (0, 0, 0, far + 32 * 4)


# ------------------------------------------------ the forms of lowered programs, and of tensor-level code


@pl.jit.incore
def staged(
    x: pl.Tensor[[R, C], pl.FP32],
    y: pl.Out[pl.Tensor[[R, C], pl.FP32]],
    w: pld.DistributedTensor[[R, C], pl.FP32],
    v: pld.DistributedTensor[[R, C], pl.FP32],
    s: pld.DistributedTensor[[NR, 1], pl.INT32],
    shift: pl.Scalar[pl.INT32],
):
    ctx = pld.get_comm_ctx(w)
    n = pld.nranks(ctx)
    me = pld.rank(ctx)
    one = pl.tile.create([1, C], dtype=pl.FP32)
    two = pl.tile.create([1, C], dtype=pl.FP32)
    peer = (me + shift) % n
    done = pld.tile.put(w, peer, x, one, [0, 0], [0, 0], [2, C])  # a list in the place of the second tile
    pld.tile.put(w, peer, x, one, two, [2, 0], [2, 0], [3, C], atomic=1)
    pld.tile.put(w, peer, x, one, dst_offsets=[5, 0], src_offsets=[5, 0], shape=[1, C])
    pld.system.notify(s, peer, [0, 0], 1, op=0)
    pld.system.wait(s, [0, 0], 1, cmp=1)
    pld.tile.get(v, me, w, one, two)
    pld.tile.get(y, me, v, one, None, [0, 0], [0, 0], [R, C])
    return y


@pytest.mark.parametrize("p,shift", MOVES[1:4])
def test_moves_of_lowered_programs(p, shift):  # O-3, O-70, D-4
    x = noise(RNG, p, R, C)
    everywhere(program_of(staged), [x, noise(RNG, p, R, C), shift], p, {1: np.roll(x, shift, axis=0)})


@pl.jit
def values_on_device(
    x: pl.Tensor[[R, C], pl.FP32],
    y: pl.Out[pl.Tensor[[R, C], pl.FP32]],
    w: pld.DistributedTensor[[R, C], pl.FP32],
    s: pld.DistributedTensor[[NR, 1], pl.INT32],
    shift: pl.Scalar[pl.INT32],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        ctx = pld.get_comm_ctx(w)
        peer = (pld.rank(ctx) + shift) % pld.nranks(ctx)
        pld.tensor.remote_store(x[0:2, :] * 2.0 + 1.0, w, peer, [0, 0])  # computed
        pld.remote_store(x[2:3, :], w, peer, [2, 0])  # of global memory
        half = pl.slice(pl.exp(x), [1, C], [3, 0], valid_shape=[1, 20])
        pld.tensor.remote_store(half, w, peer, [3, 8])
        pld.remote_store(pl.add(x[4:5, :], x[5:6, :]), w, peer, [5, 0], atomic=pld.AtomicType.Add)
        pld.tile.remote_store(pl.load(x, [4, 0], [1, C]), w, peer, [5, 0], atomic=pld.AtomicType.Add)
        pld.system.notify(s, peer, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(s, [0, 0], 1, cmp=pld.WaitCmp.Ge)
        y[:, :] = w
    return y


@pl.jit.host
def values(x: pl.Tensor[[NR, R, C], pl.FP32], y: pl.Out[pl.Tensor[[NR, R, C], pl.FP32]], shift: pl.Scalar[pl.INT32]):
    wb = pld.alloc_window_buffer([R, C], dtype=pl.FP32)
    sb = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        w = pld.window(wb, [R, C], dtype=pl.FP32)
        s = pld.window(sb, [pld.world_size(), 1], dtype=pl.INT32)
        values_on_device(x[r], y[r], w, s, shift, device=r)


@pytest.mark.parametrize("p,shift", MOVES)
def test_values_go_straight_to_the_peer(p, shift):  # O-38, O-40 - O-43
    x = noise(RNG, p, R, C)
    came = np.roll(x, shift, axis=0)
    want = np.zeros_like(came)
    want[:, :2] = came[:, :2] * 2 + 1
    want[:, 2] = came[:, 2]
    want[:, 3, 8:28] = np.exp(came[:, 3, :20])
    want[:, 5] = 2 * came[:, 4] + came[:, 5]
    everywhere(values, [x, noise(RNG, p, R, C), shift], p, {1: want})
    comm = last_report().ranks[0].comm
    assert comm["remote_store"] == (5 if shift else 0) and comm["put"] == 0


# ------------------------------------------------ symmetric bytes, and writes that are done when a task is


@pl.jit.incore
def push_bytes(w: pld.DistributedTensor[[2, C], pl.FP32], x: pl.Tensor[[2, C], pl.FP32], peer: pl.Scalar[pl.INT32]):
    pld.tile.remote_store(pl.load(x, [0, 0], [2, C]), w, peer, [0, 0])


@pl.jit.incore
def tell(
    s: pld.DistributedTensor[[1, 1], pl.INT32], w: pld.DistributedTensor[[2, C], pl.FP32], peer: pl.Scalar[pl.INT32]
):
    pld.system.notify(s, peer, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)


@pl.jit.incore
def read_bytes(
    s: pld.DistributedTensor[[1, 1], pl.INT32],
    i: pld.DistributedTensor[[4, C // 2], pl.INT32],
    y: pl.Out[pl.Tensor[[4, C // 2], pl.INT32]],
):
    pld.system.wait(s, [0, 0], 1, cmp=pld.WaitCmp.Ge)
    y = pl.store(pl.load(i, [0, 0], [4, C // 2]), [0, 0], y)
    return y


@pl.jit
def bytes_on_device(
    x: pl.Tensor[[2, C], pl.FP32],
    y: pl.Out[pl.Tensor[[4, C // 2], pl.INT32]],
    w: pld.DistributedTensor[[2, C], pl.FP32],
    i: pld.DistributedTensor[[4, C // 2], pl.INT32],
    s: pld.DistributedTensor[[1, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(i)
    peer = (pld.rank(ctx) + 1) % pld.nranks(ctx)
    with pl.manual_scope():
        _, pushed = pl.submit(push_bytes, w, x, peer)
        _, told = pl.submit(tell, s, w, peer, deps=[pushed])
        y, got = pl.submit(read_bytes, s, i, y, deps=[told])
    return y


@pl.jit.host
def views(x: pl.Tensor[[NR, 2, C], pl.FP32], y: pl.Out[pl.Tensor[[NR, 4, C // 2], pl.INT32]]):
    first = pld.alloc_window_buffer([5, C], dtype=pl.FP32)
    one = pld.alloc_window_buffer([1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        w = pld.window(first, [2, C], dtype=pl.FP32)
        i = pld.window(first, [4, C // 2], dtype=pl.INT32)
        s = pld.window(one, [1], dtype=pl.INT32)
        bytes_on_device(x[r], y[r], w, i, s, device=r)


@pytest.mark.parametrize("p", [1, 2, 3, 5])
def test_the_same_bytes_on_every_rank(p):  # W-10, W-21, W-23, M-2, M-11, M-26
    x = noise(RNG, p, 2, C)
    y = np.zeros((p, 4, C // 2), np.int32)
    want = np.roll(x, 1, axis=0).view(np.int32).reshape(p, 4, C // 2)
    got = everywhere(views, [x, y], p, {})
    assert got == {}
    for platform in ("a2a3sim", "a5sim"):
        world = DistributedConfig(device_ids=list(range(p)))
        views(x, y, config=RunConfig(platform=platform, distributed_config=world))
        np.testing.assert_array_equal(y, want)
        y[:] = 0
