# SPDX-License-Identifier: Apache-2.0
"""Distributed algorithms over groups of ranks, turns and token counts, as their authors would write them."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from everywhere import everywhere, noise

NR = pl.dynamic("NR")
C = 64
RNG = np.random.default_rng(64)


# ---------------------------------------------------------------- token ring: one at a time changes a shared row


LAPS = 3


@pl.jit.incore
def token_ring(
    y: pl.Out[pl.Tensor[[1, 8], pl.INT32]],
    ledger: pld.DistributedTensor[[1, 8], pl.INT32],
    token: pld.DistributedTensor[[1, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(ledger)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    if me == 0:
        pld.system.notify(token, 0, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    for lap in pl.range(LAPS):
        pld.system.wait(token, [0, 0], lap + 1, cmp=pld.WaitCmp.Ge)
        row = pld.tile.remote_load(ledger, 0, [0, 0], [1, 8])
        row = pl.add(pl.mul(row, 3), pl.cast(me + 1, pl.INT32))  # does not commute: the order shows
        pld.tile.remote_store(row, ledger, 0, [0, 0])
        pld.system.notify(token, (me + 1) % n, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    if me == 0:
        pld.system.wait(token, [0, 0], LAPS + 1, cmp=pld.WaitCmp.Ge)
        y = pl.store(pl.load(ledger, [0, 0], [1, 8]), [0, 0], y)
    return y


@pl.jit
def token_on_device(
    y: pl.Out[pl.Tensor[[1, 8], pl.INT32]],
    ledger: pld.DistributedTensor[[1, 8], pl.INT32],
    token: pld.DistributedTensor[[1, 1], pl.INT32],
):
    return token_ring(y, ledger, token)


@pl.jit.host
def ring_of_tokens(y: pl.InOut[pl.Tensor[[NR, 1, 8], pl.INT32]]):
    lb = pld.alloc_window_buffer([1, 8], dtype=pl.INT32)
    tb = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        ledger = pld.window(lb, [1, 8], dtype=pl.INT32)
        token = pld.window(tb, [1, 1], dtype=pl.INT32)
        token_on_device(y[r], ledger, token, device=r)


@pytest.mark.parametrize("p", [1, 2, 4])
def test_token_ring(p):
    value = 0
    for _ in range(LAPS):
        for r in range(p):
            value = 3 * value + r + 1
    want = np.full((p, 1, 8), -5, np.int64)
    want[0] = value
    everywhere(ring_of_tokens, [np.full((p, 1, 8), -5, np.int32)], p, {0: want}, 0)


# ---------------------------------------------------------------- dynamic token counts with all_to_all_v, both rails


CAP, WIDTH = 5, 32


def dispatch_in_kernel(n):
    @pl.jit.incore
    def kernel(
        x: pl.Tensor[[n * CAP, WIDTH], pl.FP32],
        send: pl.Tensor[[n], pl.INT32],
        y: pl.Out[pl.Tensor[[n * CAP, WIDTH], pl.FP32]],
        out: pld.DistributedTensor[[n * CAP, WIDTH], pl.FP32],
        got: pld.DistributedTensor[[n, 1], pl.INT32],
        back: pld.DistributedTensor[[n * CAP, WIDTH], pl.FP32],
        got_back: pld.DistributedTensor[[n, 1], pl.INT32],
        z: pl.Out[pl.Tensor[[n * CAP, WIDTH], pl.FP32]],
        signal: pld.DistributedTensor[[n, 1], pl.INT32],
    ):
        out = pld.tensor.all_to_all_v(x, out, signal, send, got)
        for q in pl.range(n):
            for i in pl.range(pl.read(got, [q, 0])):
                row = pl.load(out, [q * CAP + i, 0], [1, WIDTH])
                z = pl.store(pl.mul(row, 2.0), [q * CAP + i, 0], z)
        back = pld.tensor.all_to_all_v(z, back, signal, got, got_back)
        for q in pl.range(n):
            for i in pl.range(pl.read(got_back, [q, 0])):
                y = pl.store(pl.load(back, [q * CAP + i, 0], [1, WIDTH]), [q * CAP + i, 0], y)
        return y, z

    @pl.jit
    def on_device(
        x: pl.Tensor[[n * CAP, WIDTH], pl.FP32],
        send: pl.Tensor[[n], pl.INT32],
        y: pl.Out[pl.Tensor[[n * CAP, WIDTH], pl.FP32]],
        out: pld.DistributedTensor[[n * CAP, WIDTH], pl.FP32],
        got: pld.DistributedTensor[[n, 1], pl.INT32],
        back: pld.DistributedTensor[[n * CAP, WIDTH], pl.FP32],
        got_back: pld.DistributedTensor[[n, 1], pl.INT32],
        signal: pld.DistributedTensor[[n, 1], pl.INT32],
    ):
        z = pl.create_tensor([n * CAP, WIDTH], dtype=pl.FP32, init_value=0.0)
        y, z = kernel(x, send, y, out, got, back, got_back, z, signal)
        return y

    @pl.jit.host
    def program(
        x: pl.Tensor[[n, n * CAP, WIDTH], pl.FP32],
        send: pl.Tensor[[n, n], pl.INT32],
        y: pl.InOut[pl.Tensor[[n, n * CAP, WIDTH], pl.FP32]],
    ):
        ob = pld.alloc_window_buffer([n * CAP, WIDTH], dtype=pl.FP32)
        bb = pld.alloc_window_buffer([n * CAP, WIDTH], dtype=pl.FP32)
        gb = pld.alloc_window_buffer([n, 1], dtype=pl.INT32)
        hb = pld.alloc_window_buffer([n, 1], dtype=pl.INT32)
        sb = pld.alloc_window_buffer([n, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            out = pld.window(ob, [n * CAP, WIDTH], dtype=pl.FP32)
            back = pld.window(bb, [n * CAP, WIDTH], dtype=pl.FP32)
            got = pld.window(gb, [n, 1], dtype=pl.INT32)
            got_back = pld.window(hb, [n, 1], dtype=pl.INT32)
            signal = pld.window(sb, [n, 1], dtype=pl.INT32)
            on_device(x[r], send[r], y[r], out, got, back, got_back, signal, device=r)

    return program


@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_tokens_there_and_back(p):
    x, y = noise(RNG, p, p * CAP, WIDTH), np.full((p, p * CAP, WIDTH), 9, np.float32)
    send = RNG.integers(0, CAP + 1, (p, p)).astype(np.int32)
    send[0, -1] = 0
    want = y.copy()
    for r in range(p):
        for d in range(p):
            rows = slice(d * CAP, d * CAP + send[r, d])
            want[r, rows] = 2 * x[r, rows]
    everywhere(dispatch_in_kernel(p), [x, send, y], p, {2: want})


# ---------------------------------------------------------------- a 2-D mesh of ranks: rows gather, columns add


COLS_OF_RANKS = 2


@pl.jit.incore
def row_then_column(
    x: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[COLS_OF_RANKS, C], pl.FP32]],
    row: pld.DistributedTensor[[COLS_OF_RANKS, C], pl.FP32],
    total: pld.DistributedTensor[[COLS_OF_RANKS, C], pl.FP32],
    in_row: pld.DistributedTensor[[1, 1], pl.INT32],
    in_column: pld.DistributedTensor[[1, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(row)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    i = me // COLS_OF_RANKS
    j = me % COLS_OF_RANKS
    height = n // COLS_OF_RANKS
    for k in pl.range(COLS_OF_RANKS):
        peer = i * COLS_OF_RANKS + k
        pld.tensor.put(row, peer, x, [j, 0], [0, 0], [1, C])
        pld.system.notify(in_row, peer, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(in_row, [0, 0], COLS_OF_RANKS, cmp=pld.WaitCmp.Ge)
    for k in pl.range(height):
        peer = k * COLS_OF_RANKS + j
        pld.tensor.put(total, peer, row, atomic=pld.AtomicType.Add)
        pld.system.notify(in_column, peer, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(in_column, [0, 0], height, cmp=pld.WaitCmp.Ge)
    y = pl.store(pl.load(total, [0, 0], [COLS_OF_RANKS, C]), [0, 0], y)
    return y


@pl.jit
def mesh_on_device(
    x: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[COLS_OF_RANKS, C], pl.FP32]],
    row: pld.DistributedTensor[[COLS_OF_RANKS, C], pl.FP32],
    total: pld.DistributedTensor[[COLS_OF_RANKS, C], pl.FP32],
    in_row: pld.DistributedTensor[[1, 1], pl.INT32],
    in_column: pld.DistributedTensor[[1, 1], pl.INT32],
):
    return row_then_column(x, y, row, total, in_row, in_column)


@pl.jit.host
def mesh_of_ranks(x: pl.Tensor[[NR, 1, C], pl.FP32], y: pl.Out[pl.Tensor[[NR, COLS_OF_RANKS, C], pl.FP32]]):
    rb = pld.alloc_window_buffer([COLS_OF_RANKS, C], dtype=pl.FP32)
    tb = pld.alloc_window_buffer([COLS_OF_RANKS, C], dtype=pl.FP32)
    ab = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    bb = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        row = pld.window(rb, [COLS_OF_RANKS, C], dtype=pl.FP32)
        total = pld.window(tb, [COLS_OF_RANKS, C], dtype=pl.FP32)
        in_row = pld.window(ab, [1, 1], dtype=pl.INT32)
        in_column = pld.window(bb, [1, 1], dtype=pl.INT32)
        mesh_on_device(x[r], y[r], row, total, in_row, in_column, device=r)


@pytest.mark.parametrize("p", [2, 4, 6])
def test_mesh_of_ranks(p):
    x = noise(RNG, p, 1, C)
    want = np.broadcast_to(x.reshape(p // 2, 2, C).sum(axis=0), (p, 2, C))
    everywhere(mesh_of_ranks, [x, noise(RNG, p, 2, C)], p, {1: want}, exact=False)


# ---------------------------------------------------------------- subset domains that meet in a world-wide one


@pl.jit.incore
def average_in(
    x: pl.Tensor[[1, C], pl.FP32],
    group: pld.DistributedTensor[[1, C], pl.FP32],
    group_signal: pld.DistributedTensor[[2, 1], pl.INT32],
    world: pld.DistributedTensor[[4, C], pl.FP32],
    first: pl.Scalar[pl.INT32],
):
    group = pl.store(pl.load(x, [0, 0], [1, C]), [0, 0], group)
    group = pld.tensor.allreduce(group, group_signal, op=pld.ReduceOp.Sum)
    lane = pld.rank(pld.get_comm_ctx(group))
    me = pld.rank(pld.get_comm_ctx(world))
    t = pl.mul(pl.load(group, [0, 0], [1, C]), pl.cast(first + lane + 1, pl.FP32))
    for q in pl.range(4):
        pld.tile.remote_store(t, world, q, [me, 0])
    return world


@pl.jit
def average_on_device(
    x: pl.Tensor[[1, C], pl.FP32],
    group: pld.DistributedTensor[[1, C], pl.FP32],
    group_signal: pld.DistributedTensor[[2, 1], pl.INT32],
    world: pld.DistributedTensor[[4, C], pl.FP32],
    first: pl.Scalar[pl.INT32],
):
    return average_in(x, group, group_signal, world, first)


@pl.jit.incore
def show_all(y: pl.Out[pl.Tensor[[4, C], pl.FP32]], world: pld.DistributedTensor[[4, C], pl.FP32]):
    y = pl.store(pl.load(world, [0, 0], [4, C]), [0, 0], y)
    return y


@pl.jit
def show_on_device(y: pl.Out[pl.Tensor[[4, C], pl.FP32]], world: pld.DistributedTensor[[4, C], pl.FP32]):
    return show_all(y, world)


@pl.jit.host
def groups_in_a_world(x: pl.Tensor[[4, 1, C], pl.FP32], y: pl.Out[pl.Tensor[[4, 4, C], pl.FP32]]):
    low_buf = pld.alloc_window_buffer([1, C], dtype=pl.FP32)
    low_sig = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    high_buf = pld.alloc_window_buffer([1, C], dtype=pl.FP32)
    high_sig = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    world_buf = pld.alloc_window_buffer([4, C], dtype=pl.FP32)
    world_sig = pld.alloc_window_buffer([pld.world_size()], dtype=pl.INT32)
    world = pld.window(world_buf, [4, C], dtype=pl.FP32)
    for r in pl.range(2):
        low = pld.window(low_buf, [1, C], dtype=pl.FP32)
        low_signal = pld.window(low_sig, [2, 1], dtype=pl.INT32)
        average_on_device(x[r], low, low_signal, world, 0, device=r)
    for r in pl.range(2, 4):
        high = pld.window(high_buf, [1, C], dtype=pl.FP32)
        high_signal = pld.window(high_sig, [2, 1], dtype=pl.INT32)
        average_on_device(x[r], high, high_signal, world, 2, device=r)
    signal = pld.window(world_sig, [pld.world_size()], dtype=pl.INT32)
    pld.tensor.barrier(signal)
    for r in pl.range(pld.world_size()):
        show_on_device(y[r], world, device=r)


def test_subset_domains_meet_in_the_world():
    x = noise(RNG, 4, 1, C)
    sums = np.stack([x[:2].sum(axis=0)[0]] * 2 + [x[2:].sum(axis=0)[0]] * 2) * np.arange(1, 5)[:, None]
    everywhere(groups_in_a_world, [x, noise(RNG, 4, 4, C)], 4, {1: np.broadcast_to(sums, (4, 4, C))})
