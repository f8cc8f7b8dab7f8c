# SPDX-License-Identifier: Apache-2.0
"""Distributed algorithms that move data between ranks in every shape, as their authors would write them."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from everywhere import everywhere, noise

NR = pl.dynamic("NR")
C = 64
RNG = np.random.default_rng(62)


# ---------------------------------------------------------------- pipeline: micro-batches through stages, with credits


MICRO, DEPTH = 6, 2


@pl.jit.incore
def stage(
    x: pl.Tensor[[MICRO, C], pl.FP32],
    bias: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[MICRO, C], pl.FP32]],
    queue: pld.DistributedTensor[[DEPTH, C], pl.FP32],
    filled: pld.DistributedTensor[[1, 1], pl.INT32],
    drained: pld.DistributedTensor[[1, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(queue)
    me = pld.rank(ctx)
    last = pld.nranks(ctx) - 1
    b = pl.load(bias, [0, 0], [1, C])
    for m in pl.range(MICRO):
        slot = m % DEPTH
        t = pl.load(x, [m, 0], [1, C])
        if me > 0:
            pld.system.wait(filled, [0, 0], m + 1, cmp=pld.WaitCmp.Ge)
            t = pl.load(queue, [slot, 0], [1, C])
            pld.system.notify(drained, me - 1, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        out = pl.add(pl.mul(t, 0.5), b)
        if me < last:
            if m >= DEPTH:
                pld.system.wait(drained, [0, 0], m - DEPTH + 1, cmp=pld.WaitCmp.Ge)
            pld.tile.remote_store(out, queue, me + 1, [slot, 0])
            pld.system.notify(filled, me + 1, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        else:
            y = pl.store(out, [m, 0], y)
    return y


@pl.jit
def stage_on_device(
    x: pl.Tensor[[MICRO, C], pl.FP32],
    bias: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[MICRO, C], pl.FP32]],
    queue: pld.DistributedTensor[[DEPTH, C], pl.FP32],
    filled: pld.DistributedTensor[[1, 1], pl.INT32],
    drained: pld.DistributedTensor[[1, 1], pl.INT32],
):
    return stage(x, bias, y, queue, filled, drained)


@pl.jit.host
def pipeline(
    x: pl.Tensor[[MICRO, C], pl.FP32],
    bias: pl.Tensor[[NR, 1, C], pl.FP32],
    y: pl.InOut[pl.Tensor[[NR, MICRO, C], pl.FP32]],
):
    qb = pld.alloc_window_buffer([DEPTH, C], dtype=pl.FP32)
    fb = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    db = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        queue = pld.window(qb, [DEPTH, C], dtype=pl.FP32)
        filled = pld.window(fb, [1, 1], dtype=pl.INT32)
        drained = pld.window(db, [1, 1], dtype=pl.INT32)
        stage_on_device(x, bias[r], y[r], queue, filled, drained, device=r)


@pytest.mark.parametrize("p", [1, 2, 3, 5])
def test_pipeline_with_credits(p):
    x, bias, y = noise(RNG, MICRO, C), noise(RNG, p, 1, C), np.full((p, MICRO, C), 7, np.float32)
    t = x
    for r in range(p):
        t = t * 0.5 + bias[r]
    want = y.copy()
    want[-1] = t
    everywhere(pipeline, [x, bias, y], p, {2: want})


# ---------------------------------------------------------------- halo exchange: a stencil over several steps


W, STEPS = 32, 5  # cells per rank


@pl.jit.incore
def stencil(
    x: pl.Tensor[[8, W], pl.FP32],
    y: pl.Out[pl.Tensor[[8, W], pl.FP32]],
    halo: pld.DistributedTensor[[32, 8], pl.FP32],
    signal: pld.DistributedTensor[[2, 1], pl.INT32],
):
    """Eight rows; columns are split over the ranks. Slots of two steps: rows 0-7 from the left, 8-15 from the right."""
    ctx = pld.get_comm_ctx(halo)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    left = (me + n - 1) % n
    right = (me + 1) % n
    for i in pl.range(8):
        for j in pl.range(W):
            pl.write(y, [i, j], pl.read(x, [i, j]))
    for step in pl.range(STEPS):
        at = (step % 2) * 16
        pld.tensor.put(halo, right, y, [at, 0], [0, W - 8], [8, 8])  # my last columns
        pld.tensor.put(halo, left, y, [at + 8, 0], [0, 0], [8, 8])  # my first columns
        pld.system.notify(signal, right, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        pld.system.notify(signal, left, [1, 0], 1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(signal, [0, 0], step + 1, cmp=pld.WaitCmp.Ge)
        pld.system.wait(signal, [1, 0], step + 1, cmp=pld.WaitCmp.Ge)
        for i in pl.range(8):
            before = pl.read(halo, [at + i, 7])
            for j in pl.range(W):
                here = pl.read(y, [i, j])
                after = pl.read(halo, [at + 8 + i, 0])
                if j < W - 1:
                    after = pl.read(y, [i, j + 1])
                pl.write(y, [i, j], (before + here + after) / 3.0)
                before = here
    return y


@pl.jit
def stencil_on_device(
    x: pl.Tensor[[8, W], pl.FP32],
    y: pl.Out[pl.Tensor[[8, W], pl.FP32]],
    halo: pld.DistributedTensor[[32, 8], pl.FP32],
    signal: pld.DistributedTensor[[2, 1], pl.INT32],
):
    return stencil(x, y, halo, signal)


@pl.jit.host
def halo_exchange(x: pl.Tensor[[NR, 8, W], pl.FP32], y: pl.Out[pl.Tensor[[NR, 8, W], pl.FP32]]):
    hb = pld.alloc_window_buffer([32, 8], dtype=pl.FP32)
    sb = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        halo = pld.window(hb, [32, 8], dtype=pl.FP32)
        signal = pld.window(sb, [2, 1], dtype=pl.INT32)
        stencil_on_device(x[r], y[r], halo, signal, device=r)


@pytest.mark.filterwarnings("ignore:.*X-27")  # float arithmetic on scalars
@pytest.mark.parametrize("p", [1, 2, 4])
def test_halo_exchange(p):
    x = noise(RNG, p, 8, W)
    t = np.concatenate(list(x), axis=1).astype(np.float64)
    for _ in range(STEPS):
        t = (np.roll(t, 1, axis=1) + t + np.roll(t, -1, axis=1)) / 3
    everywhere(halo_exchange, [x, noise(RNG, p, 8, W)], p, {1: np.stack(np.split(t, p, axis=1))})


# ---------------------------------------------------------------- Cannon's product on a square grid of ranks


BL = 16


def cannon(side):
    @pl.jit.incore
    def kernel(
        a: pl.Tensor[[BL, BL], pl.FP32],
        b: pl.Tensor[[BL, BL], pl.FP32],
        c: pl.Out[pl.Tensor[[BL, BL], pl.FP32]],
        a_box: pld.DistributedTensor[[side * BL, BL], pl.FP32],
        b_box: pld.DistributedTensor[[side * BL, BL], pl.FP32],
        arrived: pld.DistributedTensor[[side, 2], pl.INT32],
    ):
        me = pld.rank(pld.get_comm_ctx(a_box))
        i = me // side
        j = me % side
        # Skew: block (i, j) of A goes i to the left, of B j upwards.
        pld.tensor.put(a_box, i * side + (j + side - i) % side, a, [0, 0], [0, 0], [BL, BL])
        pld.system.notify(arrived, i * side + (j + side - i) % side, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        pld.tensor.put(b_box, (i + side - j) % side * side + j, b, [0, 0], [0, 0], [BL, BL])
        pld.system.notify(arrived, (i + side - j) % side * side + j, [0, 1], 1, op=pld.NotifyOp.AtomicAdd)
        to_left = i * side + (j + side - 1) % side
        to_above = (i + side - 1) % side * side + j
        acc = pl.create_tile([BL, BL], dtype=pl.FP32, target_memory=pl.MemorySpace.Acc)
        for s in pl.range(side):
            pld.system.wait(arrived, [s, 0], 1, cmp=pld.WaitCmp.Ge)
            pld.system.wait(arrived, [s, 1], 1, cmp=pld.WaitCmp.Ge)
            if s < side - 1:
                pld.tensor.put(a_box, to_left, a_box, [(s + 1) * BL, 0], [s * BL, 0], [BL, BL])
                pld.system.notify(arrived, to_left, [s + 1, 0], 1, op=pld.NotifyOp.AtomicAdd)
                pld.tensor.put(b_box, to_above, b_box, [(s + 1) * BL, 0], [s * BL, 0], [BL, BL])
                pld.system.notify(arrived, to_above, [s + 1, 1], 1, op=pld.NotifyOp.AtomicAdd)
            at = pl.load(a_box, [s * BL, 0], [BL, BL], target_memory=pl.MemorySpace.Mat)
            bt = pl.load(b_box, [s * BL, 0], [BL, BL], target_memory=pl.MemorySpace.Mat)
            if s == 0:
                acc = pl.matmul(at, bt)
            else:
                acc = pl.matmul_acc(acc, at, bt)
        c = pl.store(acc, [0, 0], c)
        return c

    @pl.jit
    def on_device(
        a: pl.Tensor[[BL, BL], pl.FP32],
        b: pl.Tensor[[BL, BL], pl.FP32],
        c: pl.Out[pl.Tensor[[BL, BL], pl.FP32]],
        a_box: pld.DistributedTensor[[side * BL, BL], pl.FP32],
        b_box: pld.DistributedTensor[[side * BL, BL], pl.FP32],
        arrived: pld.DistributedTensor[[side, 2], pl.INT32],
    ):
        return kernel(a, b, c, a_box, b_box, arrived)

    @pl.jit.host
    def program(
        a: pl.Tensor[[side, side, BL, BL], pl.FP32],
        b: pl.Tensor[[side, side, BL, BL], pl.FP32],
        c: pl.Out[pl.Tensor[[side, side, BL, BL], pl.FP32]],
    ):
        ab = pld.alloc_window_buffer([side * BL, BL], dtype=pl.FP32)
        bb = pld.alloc_window_buffer([side * BL, BL], dtype=pl.FP32)
        sb = pld.alloc_window_buffer([side, 2], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            a_box = pld.window(ab, [side * BL, BL], dtype=pl.FP32)
            b_box = pld.window(bb, [side * BL, BL], dtype=pl.FP32)
            arrived = pld.window(sb, [side, 2], dtype=pl.INT32)
            on_device(
                a[r // side, r % side], b[r // side, r % side], c[r // side, r % side], a_box, b_box, arrived, device=r
            )

    return program


@pytest.mark.filterwarnings("ignore:.*X-57")
@pytest.mark.parametrize("side", [1, 2, 3])
def test_cannon(side):
    a, b = noise(RNG, side, side, BL, BL), noise(RNG, side, side, BL, BL)

    def whole(m):
        return m.swapaxes(1, 2).reshape(side * BL, side * BL)

    want = (whole(a) @ whole(b)).reshape(side, BL, side, BL).swapaxes(1, 2)
    everywhere(cannon(side), [a, b, noise(RNG, side, side, BL, BL)], side * side, {2: want}, checks="default")


# ---------------------------------------------------------------- trees: reduce to a root, broadcast from it


@pl.jit.incore
def tree(
    x: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[1, C], pl.FP32]],
    data: pld.DistributedTensor[[8, C], pl.FP32],
    up: pld.DistributedTensor[[8, 1], pl.INT32],
    down: pld.DistributedTensor[[1, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    acc = pl.load(x, [0, 0], [1, C])
    step = pl.const(1, pl.INT32)
    level = pl.const(0, pl.INT32)
    sent = pl.const(0, pl.INT32)
    while step < n:
        if sent == 0:
            if me % (2 * step) == step:
                pld.tile.remote_store(acc, data, me - step, [level, 0])
                pld.system.notify(up, me - step, [level, 0], 1, op=pld.NotifyOp.AtomicAdd)
                sent = pl.const(1, pl.INT32)
            else:
                if me + step < n:
                    pld.system.wait(up, [level, 0], 1, cmp=pld.WaitCmp.Ge)
                    acc = pl.add(acc, pl.load(data, [level, 0], [1, C]))
        step = pl.cast(step * 2, pl.INT32)
        level = pl.cast(level + 1, pl.INT32)
    # And down again: whoever has the sum passes it on.
    if me > 0:
        pld.system.wait(down, [0, 0], 1, cmp=pld.WaitCmp.Ge)
        acc = pl.load(data, [7, 0], [1, C])
    while step > 1:
        step = pl.cast(step // 2, pl.INT32)
        if me % (2 * step) == 0 and me + step < n:
            pld.tile.remote_store(acc, data, me + step, [7, 0])
            pld.system.notify(down, me + step, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    y = pl.store(acc, [0, 0], y)
    return y


@pl.jit
def tree_on_device(
    x: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[1, C], pl.FP32]],
    data: pld.DistributedTensor[[8, C], pl.FP32],
    up: pld.DistributedTensor[[8, 1], pl.INT32],
    down: pld.DistributedTensor[[1, 1], pl.INT32],
):
    return tree(x, y, data, up, down)


@pl.jit.host
def tree_allreduce(x: pl.Tensor[[NR, 1, C], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, C], pl.FP32]]):
    tb = pld.alloc_window_buffer([8, C], dtype=pl.FP32)
    ub = pld.alloc_window_buffer([8, 1], dtype=pl.INT32)
    nb = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(tb, [8, C], dtype=pl.FP32)
        up = pld.window(ub, [8, 1], dtype=pl.INT32)
        down = pld.window(nb, [1, 1], dtype=pl.INT32)
        tree_on_device(x[r], y[r], data, up, down, device=r)


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 7, 8])
def test_tree_reduce_and_broadcast(p):
    x = noise(RNG, p, 1, C)
    everywhere(tree_allreduce, [x, noise(RNG, p, 1, C)], p, {1: np.broadcast_to(x.sum(axis=0), x.shape)})


# ---------------------------------------------------------------- parameter server: atomic gradients, versions


ITER = 4


@pl.jit.incore
def server_or_worker(
    grads: pl.Tensor[[ITER, C], pl.FP32],
    y: pl.Out[pl.Tensor[[1, C], pl.FP32]],
    weights: pld.DistributedTensor[[1, C], pl.FP32],
    sums: pld.DistributedTensor[[2, C], pl.FP32],
    pushed: pld.DistributedTensor[[1, 1], pl.INT32],
    version: pld.DistributedTensor[[1, 1], pl.INT32],
):
    """Rank 0 serves and works as well; a version is the number of updates made."""
    ctx = pld.get_comm_ctx(weights)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    for it in pl.range(ITER):
        if it > 0:
            pld.system.wait(version, [0, 0], it, cmp=pld.WaitCmp.Ge)
        g = pl.load(grads, [it, 0], [1, C])
        pld.tile.remote_store(g, sums, 0, [it % 2, 0], atomic=pld.AtomicType.Add)
        pld.system.notify(pushed, 0, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        if me == 0:
            pld.system.wait(pushed, [0, 0], (it + 1) * n, cmp=pld.WaitCmp.Ge)
            total = pl.load(sums, [it % 2, 0], [1, C])
            weights = pl.store(pl.sub(pl.load(weights, [0, 0], [1, C]), pl.mul(total, 0.25)), [0, 0], weights)
            sums = pl.store(pl.tile.full([1, C], dtype=pl.FP32, value=0.0), [it % 2, 0], sums)
            for q in pl.range(n):
                pld.system.notify(version, q, [0, 0], it + 1, op=pld.NotifyOp.Set)
    pld.system.wait(version, [0, 0], ITER, cmp=pld.WaitCmp.Ge)
    y = pl.store(pld.tile.remote_load(weights, 0, [0, 0], [1, C]), [0, 0], y)
    return y


@pl.jit
def server_on_device(
    grads: pl.Tensor[[ITER, C], pl.FP32],
    y: pl.Out[pl.Tensor[[1, C], pl.FP32]],
    weights: pld.DistributedTensor[[1, C], pl.FP32],
    sums: pld.DistributedTensor[[2, C], pl.FP32],
    pushed: pld.DistributedTensor[[1, 1], pl.INT32],
    version: pld.DistributedTensor[[1, 1], pl.INT32],
):
    return server_or_worker(grads, y, weights, sums, pushed, version)


@pl.jit.host
def parameter_server(grads: pl.Tensor[[NR, ITER, C], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, C], pl.FP32]]):
    wb = pld.alloc_window_buffer([1, C], dtype=pl.FP32)
    sb = pld.alloc_window_buffer([2, C], dtype=pl.FP32)
    pb = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    vb = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        weights = pld.window(wb, [1, C], dtype=pl.FP32)
        sums = pld.window(sb, [2, C], dtype=pl.FP32)
        pushed = pld.window(pb, [1, 1], dtype=pl.INT32)
        version = pld.window(vb, [1, 1], dtype=pl.INT32)
        server_on_device(grads[r], y[r], weights, sums, pushed, version, device=r)


@pytest.mark.parametrize("p", [1, 2, 4])
def test_parameter_server(p):
    grads = noise(RNG, p, ITER, C)
    want = np.broadcast_to(-0.25 * grads.sum(axis=(0, 1)), (p, 1, C))
    everywhere(parameter_server, [grads, noise(RNG, p, 1, C)], p, {1: want}, exact=False)


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


# ---------------------------------------------------------------- histogram by remote INT32 adds; inclusive scan


BINS = 32


@pl.jit.incore
def histogram_and_scan(
    values: pl.Tensor[[C], pl.INT32],
    bins: pl.Out[pl.Tensor[[1, BINS], pl.INT32]],
    before: pl.Out[pl.Tensor[[1, BINS], pl.INT32]],
    owned: pld.DistributedTensor[[1, BINS], pl.INT32],
    scan: pld.DistributedTensor[[2, BINS], pl.INT32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(owned)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    counts = pl.array.create(BINS, pl.INT32)
    for i in pl.range(C):
        v = pl.read(values, [i])
        counts[v] = counts[v] + 1
    row = pl.tile.full([1, BINS], dtype=pl.INT32, value=0)
    for b in pl.range(BINS):
        pl.tile.write(row, [0, b], counts[b])
    for q in pl.range(n):
        pld.tile.remote_store(row, owned, q, [0, 0], atomic=pld.AtomicType.Add)
    # Inclusive scan over the ranks: in step d add what the rank d before me has.
    scan = pl.store(row, [0, 0], scan)
    signal = pld.tensor.barrier(signal)
    d = pl.const(1, pl.INT32)
    turn = pl.const(0, pl.INT32)
    while d < n:
        acc = pl.load(scan, [turn, 0], [1, BINS])
        if me >= d:
            acc = pl.add(acc, pld.tile.remote_load(scan, me - d, [turn, 0], [1, BINS]))
        scan = pl.store(acc, [1 - turn, 0], scan)
        signal = pld.tensor.barrier(signal)
        turn = pl.cast(1 - turn, pl.INT32)
        d = pl.cast(d * 2, pl.INT32)
    bins = pl.store(pl.load(owned, [0, 0], [1, BINS]), [0, 0], bins)
    before = pl.store(pl.sub(pl.load(scan, [turn, 0], [1, BINS]), row), [0, 0], before)
    return bins, before


@pl.jit
def histogram_on_device(
    values: pl.Tensor[[C], pl.INT32],
    bins: pl.Out[pl.Tensor[[1, BINS], pl.INT32]],
    before: pl.Out[pl.Tensor[[1, BINS], pl.INT32]],
    owned: pld.DistributedTensor[[1, BINS], pl.INT32],
    scan: pld.DistributedTensor[[2, BINS], pl.INT32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    bins, before = histogram_and_scan(values, bins, before, owned, scan, signal)
    return bins, before


@pl.jit.host
def histogram(
    values: pl.Tensor[[NR, C], pl.INT32],
    bins: pl.Out[pl.Tensor[[NR, 1, BINS], pl.INT32]],
    before: pl.Out[pl.Tensor[[NR, 1, BINS], pl.INT32]],
):
    ob = pld.alloc_window_buffer([1, BINS], dtype=pl.INT32)
    cb = pld.alloc_window_buffer([2, BINS], dtype=pl.INT32)
    gb = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        owned = pld.window(ob, [1, BINS], dtype=pl.INT32)
        scan = pld.window(cb, [2, BINS], dtype=pl.INT32)
        signal = pld.window(gb, [pld.world_size(), 1], dtype=pl.INT32)
        histogram_on_device(values[r], bins[r], before[r], owned, scan, signal, device=r)


@pytest.mark.parametrize("p", [1, 2, 3, 6])
def test_histogram_and_scan(p):
    values = RNG.integers(0, BINS, (p, C)).astype(np.int32)
    counts = np.stack([np.bincount(v, minlength=BINS) for v in values])
    exclusive = np.cumsum(counts, axis=0) - counts
    empty = np.full((p, 1, BINS), -1, np.int32)
    want = {1: np.broadcast_to(counts.sum(axis=0), (p, 1, BINS)), 2: exclusive[:, None]}
    everywhere(histogram, [values, empty, empty], p, want, 0)


# ---------------------------------------------------------------- double-buffered ring all-reduce of chunks


CH = 32


@pl.jit.incore
def ring_two_slots(
    x: pl.Tensor[[NR, CH], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, CH], pl.FP32]],
    slots: pld.DistributedTensor[[2, CH], pl.FP32],
    filled: pld.DistributedTensor[[2, 1], pl.INT32],
    emptied: pld.DistributedTensor[[2, 1], pl.INT32],
):
    """Chunks are pushed to the right into one of two slots; nobody reads a peer's memory."""
    ctx = pld.get_comm_ctx(slots)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    right = (me + 1) % n
    left = (me + n - 1) % n
    carry = pl.load(x, [me, 0], [1, CH])
    y = pl.store(carry, [me, 0], y)
    for k in pl.range(2 * (n - 1)):
        slot = k % 2
        round_of_slot = k // 2
        pld.system.wait(emptied, [slot, 0], round_of_slot, cmp=pld.WaitCmp.Ge)
        pld.tile.remote_store(carry, slots, right, [slot, 0])
        pld.system.notify(filled, right, [slot, 0], 1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(filled, [slot, 0], round_of_slot + 1, cmp=pld.WaitCmp.Ge)
        came = pl.load(slots, [slot, 0], [1, CH])
        pld.system.notify(emptied, left, [slot, 0], 1, op=pld.NotifyOp.AtomicAdd)
        g = (me + 2 * n - k - 1) % n
        if k < n - 1:
            carry = pl.add(pl.load(x, [g, 0], [1, CH]), came)
        else:
            carry = came
        y = pl.store(carry, [g, 0], y)
    return y


@pl.jit
def ring_two_slots_on_device(
    x: pl.Tensor[[NR, CH], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, CH], pl.FP32]],
    slots: pld.DistributedTensor[[2, CH], pl.FP32],
    filled: pld.DistributedTensor[[2, 1], pl.INT32],
    emptied: pld.DistributedTensor[[2, 1], pl.INT32],
):
    return ring_two_slots(x, y, slots, filled, emptied)


@pl.jit.host
def double_buffered_ring(x: pl.Tensor[[NR, NR, CH], pl.FP32], y: pl.Out[pl.Tensor[[NR, NR, CH], pl.FP32]]):
    sb = pld.alloc_window_buffer([2, CH], dtype=pl.FP32)
    fb = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    eb = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        slots = pld.window(sb, [2, CH], dtype=pl.FP32)
        filled = pld.window(fb, [2, 1], dtype=pl.INT32)
        emptied = pld.window(eb, [2, 1], dtype=pl.INT32)
        ring_two_slots_on_device(x[r], y[r], slots, filled, emptied, device=r)


@pytest.mark.parametrize("p", [1, 2, 3, 5])
def test_double_buffered_ring(p):
    x = noise(RNG, p, p, CH)
    everywhere(double_buffered_ring, [x, noise(RNG, p, p, CH)], p, {1: np.broadcast_to(x.sum(axis=0), x.shape)})


# ---------------------------------------------------------------- k-means: local sums, one all-reduce per iteration


POINTS, DIM, K, KITER = 32, 16, 4, 3


@pl.jit.incore
def kmeans(
    points: pl.Tensor[[POINTS, DIM], pl.FP32],
    start: pl.Tensor[[K, DIM], pl.FP32],
    y: pl.Out[pl.Tensor[[K, DIM], pl.FP32]],
    sums: pld.DistributedTensor[[2 * K, DIM], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    tmp = pl.create_tile([K, DIM], dtype=pl.FP32, target_memory=pl.MemorySpace.Vec)
    ones = pl.tile.full([1, DIM], dtype=pl.FP32, value=1.0)
    centers = pl.load(start, [0, 0], [K, DIM])
    for it in pl.range(KITER):
        sums = pl.store(pl.tile.full([2 * K, DIM], dtype=pl.FP32, value=0.0), [0, 0], sums)
        for i in pl.range(POINTS):
            point = pl.load(points, [i, 0], [1, DIM])
            away = pl.col_expand_sub(centers, point)
            distance = pl.row_sum(pl.mul(away, away), tmp)
            best = pl.const(0, pl.INT32)
            least = pl.tile.read(distance, [0, 0])
            for k in pl.range(1, K):
                d = pl.tile.read(distance, [k, 0])
                if d < least:
                    least = d
                    best = pl.cast(k, pl.INT32)
            sums = pl.store(pl.add(pl.load(sums, [best, 0], [1, DIM]), point), [best, 0], sums)
            sums = pl.store(pl.add(pl.load(sums, [K + best, 0], [1, DIM]), ones), [K + best, 0], sums)
        sums = pld.tensor.allreduce(sums, signal, op=pld.ReduceOp.Sum)
        count = pl.maximum(pl.load(sums, [K, 0], [K, DIM]), 1.0)
        centers = pl.div(pl.load(sums, [0, 0], [K, DIM]), count)
    y = pl.store(centers, [0, 0], y)
    return y


@pl.jit
def kmeans_on_device(
    points: pl.Tensor[[POINTS, DIM], pl.FP32],
    start: pl.Tensor[[K, DIM], pl.FP32],
    y: pl.Out[pl.Tensor[[K, DIM], pl.FP32]],
    sums: pld.DistributedTensor[[2 * K, DIM], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    return kmeans(points, start, y, sums, signal)


@pl.jit.host
def distributed_kmeans(
    points: pl.Tensor[[NR, POINTS, DIM], pl.FP32],
    start: pl.Tensor[[K, DIM], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, K, DIM], pl.FP32]],
):
    mb = pld.alloc_window_buffer([2 * K, DIM], dtype=pl.FP32)
    gb = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        sums = pld.window(mb, [2 * K, DIM], dtype=pl.FP32)
        signal = pld.window(gb, [pld.world_size(), 1], dtype=pl.INT32)
        kmeans_on_device(points[r], start, y[r], sums, signal, device=r)


@pytest.mark.parametrize("p", [1, 3])
def test_kmeans(p):
    points, start = noise(RNG, p, POINTS, DIM), noise(RNG, K, DIM)
    centers = start.astype(np.float64)
    flat = points.reshape(-1, DIM)
    for _ in range(KITER):
        best = ((flat[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        centers = np.stack([flat[best == k].sum(axis=0) / max(1, (best == k).sum()) for k in range(K)])
    want = np.broadcast_to(centers, (p, K, DIM))
    everywhere(distributed_kmeans, [points, start, noise(RNG, p, K, DIM)], p, {2: want}, 1e-3, exact=False)
