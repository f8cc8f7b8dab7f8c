# SPDX-License-Identifier: Apache-2.0
"""Distributed algorithms that add or broadcast over ranks by hand and by collectives, as their authors would write them."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from everywhere import everywhere, noise

NR = pl.dynamic("NR")
C = 64
RNG = np.random.default_rng(63)


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
