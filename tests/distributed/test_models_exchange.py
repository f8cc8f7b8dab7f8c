# SPDX-License-Identifier: Apache-2.0
"""Distributed algorithms that hand data from rank to rank, as their authors would write them."""

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
        # Skew: block (i, j) of A goes i to the left, of B j upwards. One vector lane sends each matrix.
        skew_a = i * side + (j + side - i) % side
        skew_b = (i + side - j) % side * side + j
        for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):
            if lane == 0:
                pld.tensor.put(a_box, skew_a, a, [0, 0], [0, 0], [BL, BL])
                pld.system.notify(arrived, skew_a, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
            else:
                pld.tensor.put(b_box, skew_b, b, [0, 0], [0, 0], [BL, BL])
                pld.system.notify(arrived, skew_b, [0, 1], 1, op=pld.NotifyOp.AtomicAdd)
        to_left = i * side + (j + side - 1) % side
        to_above = (i + side - 1) % side * side + j
        acc = pl.create_tile([BL, BL], dtype=pl.FP32, target_memory=pl.MemorySpace.Acc)
        for s in pl.range(side):
            pld.system.wait(arrived, [s, 0], 1, cmp=pld.WaitCmp.Ge)
            pld.system.wait(arrived, [s, 1], 1, cmp=pld.WaitCmp.Ge)
            if s < side - 1:
                for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):
                    if lane == 0:
                        pld.tensor.put(a_box, to_left, a_box, [(s + 1) * BL, 0], [s * BL, 0], [BL, BL])
                        pld.system.notify(arrived, to_left, [s + 1, 0], 1, op=pld.NotifyOp.AtomicAdd)
                    else:
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


@pytest.mark.parametrize("side", [1, 2, 3])
def test_cannon(side):
    a, b = noise(RNG, side, side, BL, BL), noise(RNG, side, side, BL, BL)

    def whole(m):
        return m.swapaxes(1, 2).reshape(side * BL, side * BL)

    want = (whole(a) @ whole(b)).reshape(side, BL, side, BL).swapaxes(1, 2)
    everywhere(cannon(side), [a, b, noise(RNG, side, side, BL, BL)], side * side, {2: want})


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
