# SPDX-License-Identifier: Apache-2.0
"""Layers of models that several ranks compute together, as their authors would write them, on both rails."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from everywhere import everywhere, noise

NR = pl.dynamic("NR")
B, H = 16, 64  # rows of activations, hidden size
RNG = np.random.default_rng(61)


# ---------------------------------------------------------------- tensor-parallel MLP: column-, then row-parallel


F = 32  # columns per rank


@pl.jit
def mlp_shard(
    x: pl.Tensor[[B, H], pl.FP32],
    w1: pl.Tensor[[H, F], pl.FP32],
    w2: pl.Tensor[[F, H], pl.FP32],
    partial: pld.DistributedTensor[[B, H], pl.FP32],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="mlp"):
        h = pl.maximum(pl.matmul(x, w1), 0.0)
        partial[:, :] = pl.matmul(h, w2)
    return partial


@pl.jit.incore
def reduce_and_add(
    x: pl.Tensor[[B, H], pl.FP32],
    y: pl.Out[pl.Tensor[[B, H], pl.FP32]],
    partial: pld.DistributedTensor[[B, H], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    partial = pld.tensor.allreduce(partial, signal, op=pld.ReduceOp.Sum)
    total = pl.load(partial, [0, 0], [B, H])
    y = pl.store(pl.add(total, pl.load(x, [0, 0], [B, H])), [0, 0], y)
    return y


@pl.jit
def mlp_layer(
    x: pl.Tensor[[B, H], pl.FP32],
    w1: pl.Tensor[[H, F], pl.FP32],
    w2: pl.Tensor[[F, H], pl.FP32],
    y: pl.Out[pl.Tensor[[B, H], pl.FP32]],
    partial: pld.DistributedTensor[[B, H], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="mlp"):
        h = pl.maximum(pl.matmul(x, w1), 0.0)
        partial[:, :] = pl.matmul(h, w2)
    y = reduce_and_add(x, y, partial, signal)
    return y


@pl.jit.host
def mlp_in_kernel(
    x: pl.Tensor[[B, H], pl.FP32],
    w1: pl.Tensor[[NR, H, F], pl.FP32],
    w2: pl.Tensor[[NR, F, H], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, B, H], pl.FP32]],
):
    buf = pld.alloc_window_buffer([B, H], dtype=pl.FP32)
    sig = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        partial = pld.window(buf, [B, H], dtype=pl.FP32)
        signal = pld.window(sig, [pld.world_size(), 1], dtype=pl.INT32)
        mlp_layer(x, w1[r], w2[r], y[r], partial, signal, device=r)


@pl.jit
def add_residual(
    x: pl.Tensor[[B, H], pl.FP32],
    y: pl.Out[pl.Tensor[[B, H], pl.FP32]],
    partial: pld.DistributedTensor[[B, H], pl.FP32],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:] = pl.add(x, partial)
    return y


@pl.jit.host
def mlp_on_host(
    x: pl.Tensor[[B, H], pl.FP32],
    w1: pl.Tensor[[NR, H, F], pl.FP32],
    w2: pl.Tensor[[NR, F, H], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, B, H], pl.FP32]],
):
    buf = pld.alloc_window_buffer([B, H], dtype=pl.FP32)
    partial = pld.window(buf, [B, H], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        mlp_shard(x, w1[r], w2[r], partial, device=r)
    partial = pld.tensor.allreduce(partial, op=pld.ReduceOp.Sum, mode="mesh", core_num=4)
    for r in pl.range(pld.world_size()):
        add_residual(x, y[r], partial, device=r)


@pytest.mark.parametrize("program", [mlp_in_kernel, mlp_on_host], ids=["kernel", "host"])
@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_tensor_parallel_mlp(program, p):
    x, w1, w2 = noise(RNG, B, H), noise(RNG, p, H, F) / 8, noise(RNG, p, F, H) / 8
    want = x + sum(np.maximum(x @ w1[r], 0) @ w2[r] for r in range(p))
    everywhere(program, [x, w1, w2, noise(RNG, p, B, H)], p, {3: np.broadcast_to(want, (p, B, H))})


# ---------------------------------------------------------------- all-gather matmul: multiply blocks as they come


@pl.jit.incore
def gather_matmul(
    x: pl.Tensor[[B, H], pl.FP32],
    w: pl.Tensor[[H, F], pl.FP32],
    y: pl.Out[pl.Tensor[[NR * B, F], pl.FP32]],
    blocks: pld.DistributedTensor[[NR * B, H], pl.FP32],
    arrived: pld.DistributedTensor[[NR, 2], pl.INT32],
):
    ctx = pld.get_comm_ctx(blocks)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    for k in pl.range(n):
        q = (me + k) % n
        for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):  # each lane sends half of the rows
            pld.tensor.put(blocks, q, x, [me * B + lane * (B // 2), 0], [lane * (B // 2), 0], [B // 2, H])
            pld.system.notify(arrived, q, [me, lane], 1, op=pld.NotifyOp.AtomicAdd)
    wt = pl.load(w, [0, 0], [H, F], target_memory=pl.MemorySpace.Mat)
    for k in pl.range(n):
        q = (me + n - k) % n
        pld.system.wait(arrived, [q, 0], 1, cmp=pld.WaitCmp.Ge)
        pld.system.wait(arrived, [q, 1], 1, cmp=pld.WaitCmp.Ge)
        xt = pl.load(blocks, [q * B, 0], [B, H], target_memory=pl.MemorySpace.Mat)
        y = pl.store(pl.matmul(xt, wt), [q * B, 0], y)
    return y


@pl.jit
def gather_matmul_on_device(
    x: pl.Tensor[[B, H], pl.FP32],
    w: pl.Tensor[[H, F], pl.FP32],
    y: pl.Out[pl.Tensor[[NR * B, F], pl.FP32]],
    blocks: pld.DistributedTensor[[NR * B, H], pl.FP32],
    arrived: pld.DistributedTensor[[NR, 2], pl.INT32],
):
    return gather_matmul(x, w, y, blocks, arrived)


@pl.jit.host
def all_gather_matmul(
    x: pl.Tensor[[NR, B, H], pl.FP32],
    w: pl.Tensor[[NR, H, F], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, NR * B, F], pl.FP32]],
):
    bb = pld.alloc_window_buffer([pld.world_size() * B, H], dtype=pl.FP32)
    ab = pld.alloc_window_buffer([pld.world_size(), 2], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        blocks = pld.window(bb, [pld.world_size() * B, H], dtype=pl.FP32)
        arrived = pld.window(ab, [pld.world_size(), 2], dtype=pl.INT32)
        gather_matmul_on_device(x[r], w[r], y[r], blocks, arrived, device=r)


@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_all_gather_matmul(p):
    x, w = noise(RNG, p, B, H), noise(RNG, p, H, F)
    want = x.reshape(1, p * B, H) @ w
    everywhere(all_gather_matmul, [x, w, noise(RNG, p, p * B, F)], p, {2: want})


# ---------------------------------------------------------------- matmul reduce-scatter: products pushed to their owner


@pl.jit
def matmul_scatter(
    x: pl.Tensor[[NR * B, H], pl.FP32],
    w: pl.Tensor[[H, F], pl.FP32],
    y: pl.Out[pl.Tensor[[B, F], pl.FP32]],
    inbox: pld.DistributedTensor[[NR * B, F], pl.FP32],
    arrived: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(inbox)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    for q in pl.range(n):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="product") as pushed:
            part = pl.matmul(x[q * B : (q + 1) * B, :], w)
            pld.tensor.remote_store(part, inbox, q, [me * B, 0])
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="tell", deps=[pushed]):
            pld.system.notify(arrived, q, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="add"):
        for q in pl.range(n):
            pld.system.wait(arrived, [q, 0], 1, cmp=pld.WaitCmp.Ge)
        acc = pl.load(inbox, [0, 0], [B, F])
        for q in pl.range(1, n):
            acc = pl.add(acc, pl.load(inbox, [q * B, 0], [B, F]))
        y = pl.store(acc, [0, 0], y)
    return y


@pl.jit.host
def matmul_reduce_scatter(
    x: pl.Tensor[[NR, NR * B, H], pl.FP32],
    w: pl.Tensor[[NR, H, F], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, B, F], pl.FP32]],
):
    bb = pld.alloc_window_buffer([pld.world_size() * B, F], dtype=pl.FP32)
    ab = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        inbox = pld.window(bb, [pld.world_size() * B, F], dtype=pl.FP32)
        arrived = pld.window(ab, [pld.world_size(), 1], dtype=pl.INT32)
        matmul_scatter(x[r], w[r], y[r], inbox, arrived, device=r)


@pytest.mark.parametrize("p", [1, 2, 4])
def test_matmul_reduce_scatter(p):
    x, w = noise(RNG, p, p * B, H), noise(RNG, p, H, F)
    want = (x @ w).sum(axis=0).reshape(p, B, F)
    everywhere(matmul_reduce_scatter, [x, w, noise(RNG, p, B, F)], p, {2: want}, tolerance=2e-4)


# ---------------------------------------------------------------- softmax over a sharded axis


@pl.jit.incore
def softmax_shard(
    x: pl.Tensor[[B, F], pl.FP32],
    y: pl.Out[pl.Tensor[[B, F], pl.FP32]],
    stat: pld.DistributedTensor[[B, 8], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    t = pl.load(x, [0, 0], [B, F])
    wide = pl.tile.full([B, 8], dtype=pl.FP32, value=0.0)
    tmp = pl.create_tile([B, F], dtype=pl.FP32, target_memory=pl.MemorySpace.Vec)
    small = pl.create_tile([B, 8], dtype=pl.FP32, target_memory=pl.MemorySpace.Vec)
    stat = pl.store(pl.row_expand_add(wide, pl.row_max(t, tmp)), [0, 0], stat)
    stat = pld.tensor.allreduce(stat, signal, op=pld.ReduceOp.Max)
    top = pl.row_max(pl.load(stat, [0, 0], [B, 8]), small)
    e = pl.exp(pl.row_expand_sub(t, top))
    stat = pl.store(pl.row_expand_add(wide, pl.row_sum(e, tmp)), [0, 0], stat)
    stat = pld.tensor.allreduce(stat, signal, op=pld.ReduceOp.Sum)
    total = pl.row_max(pl.load(stat, [0, 0], [B, 8]), small)
    y = pl.store(pl.row_expand_div(e, total), [0, 0], y)
    return y


@pl.jit
def softmax_on_device(
    x: pl.Tensor[[B, F], pl.FP32],
    y: pl.Out[pl.Tensor[[B, F], pl.FP32]],
    stat: pld.DistributedTensor[[B, 8], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    return softmax_shard(x, y, stat, signal)


@pl.jit.host
def sharded_softmax(x: pl.Tensor[[NR, B, F], pl.FP32], y: pl.Out[pl.Tensor[[NR, B, F], pl.FP32]]):
    sb = pld.alloc_window_buffer([B, 8], dtype=pl.FP32)
    gb = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        stat = pld.window(sb, [B, 8], dtype=pl.FP32)
        signal = pld.window(gb, [pld.world_size(), 1], dtype=pl.INT32)
        softmax_on_device(x[r], y[r], stat, signal, device=r)


@pytest.mark.parametrize("p", [1, 2, 5])
def test_sharded_softmax(p):
    x = noise(RNG, p, B, F) * 5
    row = np.concatenate(list(x.astype(np.float64)), axis=1)
    e = np.exp(row - row.max(axis=1, keepdims=True))
    want = np.stack(np.split(e / e.sum(axis=1, keepdims=True), p, axis=1))
    everywhere(sharded_softmax, [x, noise(RNG, p, B, F)], p, {1: want}, exact=False)


# ---------------------------------------------------------------- sequence-parallel RMSNorm on the host rail


@pl.jit.incore
def norm_rows(x: pl.Tensor[[1, B * H], pl.FP32], w: pld.DistributedTensor[[1, B * H], pl.FP32]):
    t = pl.reshape(pl.load(x, [0, 0], [1, B * H]), [B, H])
    tmp = pl.create_tile([B, H], dtype=pl.FP32, target_memory=pl.MemorySpace.Vec)
    square = pl.row_sum(pl.mul(t, t), tmp)
    scale = pl.rsqrt(pl.add(pl.mul(square, 1.0 / H), 1e-6))
    w = pl.store(pl.reshape(pl.row_expand_mul(t, scale), [1, B * H]), [0, 0], w)
    return w


@pl.jit
def norm_on_device(x: pl.Tensor[[1, B * H], pl.FP32], w: pld.DistributedTensor[[1, B * H], pl.FP32]):
    return norm_rows(x, w)


@pl.jit
def project(
    w: pl.Tensor[[H, H], pl.FP32],
    rows: pld.DistributedTensor[[NR, B * H], pl.FP32],
    parts: pld.DistributedTensor[[NR, B * H], pl.FP32],
):
    n = pl.tensor.dim(rows, 0)
    for q in pl.range(n):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="project"):
            block = pl.reshape(rows[q : q + 1, :], [B, H])
            parts[q : q + 1, :] = pl.reshape(pl.matmul(block, w), [1, B * H])
    return parts


@pl.jit
def take_row(
    y: pl.Out[pl.Tensor[[1, B * H], pl.FP32]],
    parts: pld.DistributedTensor[[NR, B * H], pl.FP32],
    r: pl.Scalar[pl.INT32],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:, :] = parts[r : r + 1, :]
    return y


@pl.jit.host
def sequence_parallel(
    x: pl.Tensor[[NR, 1, B * H], pl.FP32],
    w: pl.Tensor[[NR, H, H], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, 1, B * H], pl.FP32]],
):
    own_buf = pld.alloc_window_buffer([1, B * H], dtype=pl.FP32)
    rows_buf = pld.alloc_window_buffer([pld.world_size(), B * H], dtype=pl.FP32)
    parts_buf = pld.alloc_window_buffer([pld.world_size(), B * H], dtype=pl.FP32)
    sig_buf = pld.alloc_window_buffer([pld.world_size()], dtype=pl.INT32)
    own = pld.window(own_buf, [1, B * H], dtype=pl.FP32)
    rows = pld.window(rows_buf, [pld.world_size(), B * H], dtype=pl.FP32)
    parts = pld.window(parts_buf, [pld.world_size(), B * H], dtype=pl.FP32)
    sig = pld.window(sig_buf, [pld.world_size()], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        norm_on_device(x[r], own, device=r)
    rows = pld.tensor.allgather(own, rows, sig)
    for r in pl.range(pld.world_size()):
        project(w[r], rows, parts, device=r)
    parts = pld.tensor.reduce_scatter(parts, sig, op=pld.ReduceOp.Sum)
    for r in pl.range(pld.world_size()):
        take_row(y[r], parts, r, device=r)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_sequence_parallel_norm_and_projection(p):
    x, w = noise(RNG, p, 1, B * H), noise(RNG, p, H, H) / 8
    t = x.reshape(p, B, H).astype(np.float64)
    t = t / np.sqrt((t * t).mean(axis=2, keepdims=True) + 1e-6)
    want = (t @ w.sum(axis=0)).reshape(p, 1, B * H)
    everywhere(sequence_parallel, [x, w, noise(RNG, p, 1, B * H)], p, {2: want}, exact=False)


# ---------------------------------------------------------------- vocabulary-parallel embedding


V, TOK = 40, 12  # rows of the table per rank, tokens


@pl.jit.incore
def embed(
    tokens: pl.Tensor[[TOK], pl.INT32],
    table: pl.Tensor[[V, H], pl.FP16],
    y: pl.Out[pl.Tensor[[TOK, H], pl.FP16]],
    out: pld.DistributedTensor[[TOK, H], pl.FP16],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    me = pld.rank(pld.get_comm_ctx(out))
    first = me * V
    for t in pl.range(TOK):
        token = pl.read(tokens, [t])
        if token >= first and token < first + V:
            out = pl.store(pl.load(table, [token - first, 0], [1, H]), [t, 0], out)
        else:
            out = pl.store(pl.tile.full([1, H], dtype=pl.FP16, value=0.0), [t, 0], out)
    out = pld.tensor.allreduce(out, signal, op=pld.ReduceOp.Sum)
    y = pl.store(pl.load(out, [0, 0], [TOK, H]), [0, 0], y)
    return y


@pl.jit
def embed_on_device(
    tokens: pl.Tensor[[TOK], pl.INT32],
    table: pl.Tensor[[V, H], pl.FP16],
    y: pl.Out[pl.Tensor[[TOK, H], pl.FP16]],
    out: pld.DistributedTensor[[TOK, H], pl.FP16],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    return embed(tokens, table, y, out, signal)


@pl.jit.host
def embedding(
    tokens: pl.Tensor[[TOK], pl.INT32],
    table: pl.Tensor[[NR, V, H], pl.FP16],
    y: pl.Out[pl.Tensor[[NR, TOK, H], pl.FP16]],
):
    ob = pld.alloc_window_buffer([TOK, H], dtype=pl.FP16)
    gb = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        out = pld.window(ob, [TOK, H], dtype=pl.FP16)
        signal = pld.window(gb, [pld.world_size(), 1], dtype=pl.INT32)
        embed_on_device(tokens, table[r], y[r], out, signal, device=r)


@pytest.mark.parametrize("p", [1, 2, 4])
def test_vocabulary_parallel_embedding(p):
    table = noise(RNG, p, V, H).astype(np.float16)
    tokens = RNG.integers(0, p * V, TOK).astype(np.int32)
    want = table.reshape(p * V, H)[tokens].astype(np.float64)
    everywhere(
        embedding, [tokens, table, np.ones((p, TOK, H), np.float16)], p, {2: np.broadcast_to(want, (p, TOK, H))}, 0
    )
