# SPDX-License-Identifier: Apache-2.0
"""Context-parallel attention: keys and values travel round a ring of ranks."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from everywhere import everywhere, noise

NR = pl.dynamic("NR")
RNG = np.random.default_rng(65)


T, D = 16, 32  # tokens per rank, head size


@pl.jit.incore
def stage_blocks(
    k: pl.Tensor[[D, T], pl.FP32],
    v: pl.Tensor[[T, D], pl.FP32],
    k_box: pld.DistributedTensor[[2 * D, T], pl.FP32],
    v_box: pld.DistributedTensor[[2 * T, D], pl.FP32],
    row_max: pl.Out[pl.Tensor[[T, 1], pl.FP32]],
    row_sum: pl.Out[pl.Tensor[[T, 1], pl.FP32]],
    acc: pl.Out[pl.Tensor[[T, D], pl.FP32]],
):
    k_box = pl.store(pl.load(k, [0, 0], [D, T]), [0, 0], k_box)
    v_box = pl.store(pl.load(v, [0, 0], [T, D]), [0, 0], v_box)
    row_max = pl.store(pl.tile.full([T, 1], dtype=pl.FP32, value=-1e30), [0, 0], row_max)
    row_sum = pl.store(pl.tile.full([T, 1], dtype=pl.FP32, value=0.0), [0, 0], row_sum)
    acc = pl.store(pl.tile.full([T, D], dtype=pl.FP32, value=0.0), [0, 0], acc)
    return row_max, row_sum, acc


@pl.jit.incore
def attend(
    q: pl.Tensor[[T, D], pl.FP32],
    row_max: pl.InOut[pl.Tensor[[T, 1], pl.FP32]],
    row_sum: pl.InOut[pl.Tensor[[T, 1], pl.FP32]],
    acc: pl.InOut[pl.Tensor[[T, D], pl.FP32]],
    k_box: pld.DistributedTensor[[2 * D, T], pl.FP32],
    v_box: pld.DistributedTensor[[2 * T, D], pl.FP32],
    full: pld.DistributedTensor[[1, 1], pl.INT32],
    step: pl.Scalar[pl.INT32],
):
    """One block of keys and values; the softmax is kept up online."""
    if step > 0:
        pld.system.wait(full, [0, 0], step, cmp=pld.WaitCmp.Ge)
    slot = step % 2
    tmp = pl.create_tile([T, T], dtype=pl.FP32, target_memory=pl.MemorySpace.Vec)
    qt = pl.load(q, [0, 0], [T, D], target_memory=pl.MemorySpace.Mat)
    kt = pl.load(k_box, [slot * D, 0], [D, T], target_memory=pl.MemorySpace.Mat)
    scores = pl.move(pl.matmul(qt, kt), target_memory=pl.MemorySpace.Vec)
    old_max = pl.load(row_max, [0, 0], [T, 1])
    new_max = pl.maximum(old_max, pl.row_max(scores, tmp))
    scale = pl.exp(pl.sub(old_max, new_max))
    weights = pl.exp(pl.row_expand_sub(scores, new_max))
    total = pl.add(pl.mul(pl.load(row_sum, [0, 0], [T, 1]), scale), pl.row_sum(weights, tmp))
    vt = pl.load(v_box, [slot * T, 0], [T, D], target_memory=pl.MemorySpace.Mat)
    wt = pl.move(weights, target_memory=pl.MemorySpace.Mat)
    part = pl.move(pl.matmul(wt, vt), target_memory=pl.MemorySpace.Vec)
    acc = pl.store(pl.add(pl.row_expand_mul(pl.load(acc, [0, 0], [T, D]), scale), part), [0, 0], acc)
    row_max = pl.store(new_max, [0, 0], row_max)
    row_sum = pl.store(total, [0, 0], row_sum)
    return row_max, row_sum, acc


@pl.jit.incore
def pass_on(
    k_box: pld.DistributedTensor[[2 * D, T], pl.FP32],
    v_box: pld.DistributedTensor[[2 * T, D], pl.FP32],
    full: pld.DistributedTensor[[1, 1], pl.INT32],
    free: pld.DistributedTensor[[1, 1], pl.INT32],
    step: pl.Scalar[pl.INT32],
):
    """Keys and values travel to the right, two slots each. Vector work only: its notifies are one each (O-25)."""
    ctx = pld.get_comm_ctx(k_box)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    right = (me + 1) % n
    slot = step % 2
    nxt = (step + 1) % 2
    if step > 0:
        pld.system.wait(free, [0, 0], step, cmp=pld.WaitCmp.Ge)
    pld.tensor.put(k_box, right, k_box, [nxt * D, 0], [slot * D, 0], [D, T])
    pld.tensor.put(v_box, right, v_box, [nxt * T, 0], [slot * T, 0], [T, D])
    pld.system.notify(full, right, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.notify(free, (me + n - 1) % n, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)


@pl.jit.incore
def normalise(
    row_sum: pl.Tensor[[T, 1], pl.FP32],
    acc: pl.Tensor[[T, D], pl.FP32],
    y: pl.Out[pl.Tensor[[T, D], pl.FP32]],
):
    y = pl.store(pl.row_expand_div(pl.load(acc, [0, 0], [T, D]), pl.load(row_sum, [0, 0], [T, 1])), [0, 0], y)
    return y


@pl.jit
def ring_attention_on_device(
    q: pl.Tensor[[T, D], pl.FP32],
    k: pl.Tensor[[D, T], pl.FP32],
    v: pl.Tensor[[T, D], pl.FP32],
    y: pl.Out[pl.Tensor[[T, D], pl.FP32]],
    k_box: pld.DistributedTensor[[2 * D, T], pl.FP32],
    v_box: pld.DistributedTensor[[2 * T, D], pl.FP32],
    full: pld.DistributedTensor[[1, 1], pl.INT32],
    free: pld.DistributedTensor[[1, 1], pl.INT32],
):
    row_max = pl.create_tensor([T, 1], dtype=pl.FP32)
    row_sum = pl.create_tensor([T, 1], dtype=pl.FP32)
    acc = pl.create_tensor([T, D], dtype=pl.FP32)
    row_max, row_sum, acc = stage_blocks(k, v, k_box, v_box, row_max, row_sum, acc)
    n = pld.nranks(pld.get_comm_ctx(k_box))
    for step in pl.range(n):
        row_max, row_sum, acc = attend(q, row_max, row_sum, acc, k_box, v_box, full, step)
        if step < n - 1:
            pass_on(k_box, v_box, full, free, step)
    return normalise(row_sum, acc, y)


@pl.jit.host
def context_parallel(
    q: pl.Tensor[[NR, T, D], pl.FP32],
    k: pl.Tensor[[NR, D, T], pl.FP32],
    v: pl.Tensor[[NR, T, D], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, T, D], pl.FP32]],
):
    kb = pld.alloc_window_buffer([2 * D, T], dtype=pl.FP32)
    vb = pld.alloc_window_buffer([2 * T, D], dtype=pl.FP32)
    fb = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    eb = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        k_box = pld.window(kb, [2 * D, T], dtype=pl.FP32)
        v_box = pld.window(vb, [2 * T, D], dtype=pl.FP32)
        full = pld.window(fb, [1, 1], dtype=pl.INT32)
        free = pld.window(eb, [1, 1], dtype=pl.INT32)
        ring_attention_on_device(q[r], k[r], v[r], y[r], k_box, v_box, full, free, device=r)


@pytest.mark.parametrize("p", [1, 2, 3, 5])
def test_context_parallel_attention(p):
    q, k, v = noise(RNG, p, T, D) / 4, noise(RNG, p, D, T), noise(RNG, p, T, D)
    keys = np.concatenate(list(k), axis=1)
    scores = q.reshape(p * T, D).astype(np.float64) @ keys
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    want = (weights @ v.reshape(p * T, D)).reshape(p, T, D)
    everywhere(context_parallel, [q, k, v, noise(RNG, p, T, D)], p, {3: want})
