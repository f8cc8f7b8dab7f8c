# SPDX-License-Identifier: Apache-2.0
"""Models whose data or calls decide what runs: layers in a host loop, received counts that bound loops and tasks,
rounds read from a tensor, lanes that publish their own parts, epochs over the calls of a worker."""

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from everywhere import everywhere, noise
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions

NR = pl.dynamic("NR")
TOKENS = pl.dynamic("TOKENS")
C = 64
CORE = pl.Level.CORE_GROUP
RNG = np.random.default_rng(66)


# ---- layers of tensor-parallel attention with residuals: one host loop, heads split over the ranks

T, D, LAYERS = 16, 64, 2


def layers(p):
    head = D // p

    @pl.jit.inline
    def norm(x):
        centred = pl.row_expand_sub(x, pl.mul(pl.row_sum(x), 1.0 / D))
        variance = pl.mul(pl.row_sum(pl.mul(centred, centred)), 1.0 / D)
        return pl.row_expand_mul(centred, pl.rsqrt(pl.add(variance, 1e-5)))

    @pl.jit
    def attend(
        h: pl.Tensor[[T, D], pl.FP32],
        w_in: pl.Tensor[[D, head], pl.FP32],
        w_out: pl.Tensor[[head, D], pl.FP32],
        part: pld.DistributedTensor[[T, D], pl.FP32],
    ):
        with pl.at(level=CORE, name_hint="attend"):
            q = pl.matmul(norm(h), w_in)
            scores = pl.mul(pl.matmul(q, q, b_trans=True), 0.125)
            e = pl.exp(pl.row_expand_sub(scores, pl.row_max(scores)))
            part[:] = pl.matmul(pl.matmul(pl.row_expand_div(e, pl.row_sum(e)), q), w_out)
        return part

    @pl.jit
    def add_back(h: pl.InOut[pl.Tensor[[T, D], pl.FP32]], part: pld.DistributedTensor[[T, D], pl.FP32]):
        with pl.at(level=CORE, name_hint="residual"):
            h[:] = pl.add(h, part)
        return h

    @pl.jit.host
    def net(
        h: pl.InOut[pl.Tensor[[p, T, D], pl.FP32]],
        w_in: pl.Tensor[[LAYERS, p, D, head], pl.FP32],
        w_out: pl.Tensor[[LAYERS, p, head, D], pl.FP32],
    ):
        part_buf = pld.alloc_window_buffer([T, D], dtype=pl.FP32)
        sig_buf = pld.alloc_window_buffer([p, 4], dtype=pl.INT32)
        part = pld.window(part_buf, [T, D], dtype=pl.FP32)
        sig = pld.window(sig_buf, [p, 4], dtype=pl.INT32)
        for layer in pl.range(LAYERS):
            for r in pl.range(p):
                attend(h[r], w_in[layer, r], w_out[layer, r], part, device=r)
            pld.tensor.allreduce(part, sig, op=pld.ReduceOp.Sum, core_num=4)
            for r in pl.range(p):
                add_back(h[r], part, device=r)

    return net


def layers_golden(h, w_in, w_out):
    h = h.astype(np.float64)
    for ins, outs in zip(w_in, w_out, strict=True):
        centred = h - h.mean(-1, keepdims=True)
        n = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        total = 0
        for a, b in zip(ins, outs, strict=True):
            q = n @ a
            e = np.exp(q @ q.T / 8)
            total = total + e / e.sum(-1, keepdims=True) @ q @ b
        h = h + total
    return h


@pytest.mark.parametrize("p", [1, 2, 4])
def test_layers_in_a_host_loop(p):
    h = noise(RNG, T, D)
    w_in, w_out = noise(RNG, LAYERS, p, D, D // p) / 8, noise(RNG, LAYERS, p, D // p, D) / 8
    want = np.broadcast_to(layers_golden(h, w_in, w_out), (p, T, D))
    # Products of the two architectures are cut differently, and so rounded.
    everywhere(layers(p), [np.repeat(h[None], p, 0), w_in, w_out], p, {0: want}, tolerance=2e-3, exact=False)


# ---- ragged messages: a streamed put of as many rows as there are tokens, read back under a valid shape


@pl.jit.incore
def send_tokens(
    x: pl.Tensor[[TOKENS, 32], pl.BF16],
    meta: pl.Tensor[[1, 8], pl.INT32],
    y: pl.InOut[pl.Tensor[[TOKENS, 32], pl.BF16]],
    box: pld.DistributedTensor[[TOKENS, 32], pl.BF16],
    box_meta: pld.DistributedTensor[[1, 8], pl.INT32],
    sig: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(box)
    me, n = pld.rank(ctx), pld.nranks(ctx)
    right, left = (me + 1) % n, (me + n - 1) % n
    rows = pl.read(meta, [0, 0])
    pld.tensor.put(box, right, x, [0, 0], [0, 0], [rows, 32], chunk_rows=4, chunk_cols=32, pipeline=True)
    pld.tensor.put(box_meta, right, meta)
    pld.system.notify(sig, right, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(sig, [left, 0], 1, cmp=pld.WaitCmp.Ge)
    got = pl.read(box_meta, [0, 0])
    for i in pl.range((got + 3) // 4):
        tile = pl.load(box, [i * 4, 0], [4, 32], valid_shape=[pl.min(got - i * 4, 4), 32])
        y = pl.store(tile, [i * 4, 0], y)
    return y


@pl.jit
def send_tokens_on_device(x: pl.Tensor, meta: pl.Tensor, y: pl.InOut[pl.Tensor], box, box_meta, sig):
    return send_tokens(x, meta, y, box, box_meta, sig)


@pl.jit.host
def ragged_ring(
    x: pl.Tensor[[NR, TOKENS, 32], pl.BF16],
    meta: pl.Tensor[[NR, 1, 8], pl.INT32],
    y: pl.InOut[pl.Tensor[[NR, TOKENS, 32], pl.BF16]],
):
    box_buf = pld.alloc_window_buffer(TOKENS * 32 * pl.BF16.get_byte())
    meta_buf = pld.alloc_window_buffer([1, 8], dtype=pl.INT32)
    sig_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        box = pld.window(box_buf, [TOKENS, 32], dtype=pl.BF16)
        box_meta = pld.window(meta_buf, [1, 8], dtype=pl.INT32)
        sig = pld.window(sig_buf, [pld.world_size(), 1], dtype=pl.INT32)
        send_tokens_on_device(x[r], meta[r], y[r], box, box_meta, sig, device=r)


@pytest.mark.parametrize("p,tokens", [(1, 5), (2, 16), (3, 33)])
def test_ragged_ring(p, tokens):
    bf16 = pytest.importorskip("ml_dtypes").bfloat16
    x = noise(RNG, p, tokens, 32).astype(bf16)
    y = noise(RNG, p, tokens, 32).astype(bf16)
    meta = np.zeros((p, 1, 8), np.int32)
    meta[:, 0, 0] = RNG.integers(0, tokens + 1, p)
    want = y.copy()
    for r in range(p):
        left = (r - 1) % p
        want[r, : meta[left, 0, 0]] = x[left, : meta[left, 0, 0]]
    everywhere(ragged_ring, [x, meta, y], p, {2: want.astype(np.float64)})


# ---- the control plane reads a received count and submits that many tasks


@pl.jit
def counted_tasks(
    x: pl.Tensor[[8, C], pl.FP32],
    count: pl.Tensor[[1, 1], pl.INT32],
    y: pl.InOut[pl.Tensor[[8, C], pl.FP32]],
    box: pld.DistributedTensor[[8, C], pl.FP32],
    counts: pld.DistributedTensor[[1, 8], pl.INT32],
    sig: pld.DistributedTensor[[1, 1], pl.INT32],
):
    with pl.at(level=CORE, name_hint="send"):
        ctx = pld.get_comm_ctx(box)
        right = (pld.rank(ctx) + 1) % pld.nranks(ctx)
        rows = pl.read(count, [0, 0])
        pld.tensor.put(box, right, x, [0, 0], [0, 0], [rows, C], chunk_rows=2)
        pld.system.notify(counts, right, [0, 3], rows, op=pld.NotifyOp.Set)
        pld.system.notify(sig, right, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    got = pl.create_tensor([1, 8], dtype=pl.INT32)
    with pl.at(level=CORE, name_hint="receive"):
        pld.system.wait(sig, [0, 0], 1, cmp=pld.WaitCmp.Ge)
        pl.write(got, [0, 0], pl.read(counts, [0, 3]))
    for i in pl.range(pl.read(got, [0, 0])):
        with pl.at(level=CORE, name_hint="use"):
            y[i : i + 1, :] = pl.add(box[i : i + 1, :], 1.0)
    return y


@pl.jit.host
def counted(
    x: pl.Tensor[[NR, 8, C], pl.FP32],
    count: pl.Tensor[[NR, 1, 1], pl.INT32],
    y: pl.InOut[pl.Tensor[[NR, 8, C], pl.FP32]],
):
    box_buf = pld.alloc_window_buffer([8, C], dtype=pl.FP32)
    count_buf = pld.alloc_window_buffer([1, 8], dtype=pl.INT32)
    sig_buf = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        box = pld.window(box_buf, [8, C], dtype=pl.FP32)
        counts = pld.window(count_buf, [1, 8], dtype=pl.INT32)
        counted_tasks(x[r], count[r], y[r], box, counts, pld.window(sig_buf, [1, 1], dtype=pl.INT32), device=r)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_counted_tasks(p):
    x, y = noise(RNG, p, 8, C), noise(RNG, p, 8, C)
    count = RNG.integers(0, 9, (p, 1, 1), dtype=np.int32)
    want = y.copy()
    for r in range(p):
        rows = count[(r - 1) % p, 0, 0]
        want[r, :rows] = x[(r - 1) % p, :rows] + 1
    everywhere(counted, [x, count, y], p, {2: want})


# ---- vector lanes publish their own parts, blocks of the next task wait for one part each


@pl.jit
def lanes_on_device(
    x: pl.Tensor[[32, C], pl.FP32],
    y: pl.Out[pl.Tensor[[32, C], pl.FP32]],
    box: pld.DistributedTensor[[32, C], pl.FP32],
    sig: pld.DistributedTensor[[4, 1], pl.INT32],
):
    for b in pl.spmd(2, name_hint="push"):
        ctx = pld.get_comm_ctx(box)
        right = (pld.rank(ctx) + 1) % pld.nranks(ctx)
        for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):
            row = b * 16 + lane * 8
            doubled = pl.mul(pl.load(x, [row, 0], [8, C]), 2.0)
            pld.tile.remote_store(doubled, box, right, [row, 0])
            pld.system.notify(sig, right, [b * 2 + lane, 0], 1, op=pld.NotifyOp.AtomicAdd)
    with pl.spmd(4, name_hint="pull"):
        i = pl.tile.get_block_idx()
        pld.system.wait(sig, [i, 0], 1, cmp=pld.WaitCmp.Ge)
        y = pl.store(pl.load(box, [i * 8, 0], [8, C]), [i * 8, 0], y)
    return y


@pl.jit.host
def lanes(x: pl.Tensor[[NR, 32, C], pl.FP32], y: pl.Out[pl.Tensor[[NR, 32, C], pl.FP32]]):
    box_buf = pld.alloc_window_buffer([32, C], dtype=pl.FP32)
    sig_buf = pld.alloc_window_buffer([4, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        box = pld.window(box_buf, [32, C], dtype=pl.FP32)
        lanes_on_device(x[r], y[r], box, pld.window(sig_buf, [4, 1], dtype=pl.INT32), device=r)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_lanes_publish_their_parts(p):
    x = noise(RNG, p, 32, C)
    everywhere(lanes, [x, noise(RNG, p, 32, C)], p, {1: 2 * np.roll(x, 1, axis=0)})


# ---- epochs: windows that persist over the calls of a worker, two slots, an acknowledgement per epoch


@pl.jit
def epoch_on_device(
    x: pl.Tensor[[8, C], pl.FP32],
    y: pl.Out[pl.Tensor[[8, C], pl.FP32]],
    slots: pld.DistributedTensor[[2, 8, C], pl.FP32],
    sig: pld.DistributedTensor[[2, 1], pl.INT32],
    epoch: pl.Scalar[pl.INT32],
):
    with pl.at(level=CORE):
        ctx = pld.get_comm_ctx(slots)
        n = pld.nranks(ctx)
        right, left = (pld.rank(ctx) + 1) % n, (pld.rank(ctx) + n - 1) % n
        slot = epoch % 2
        if epoch >= 2:  # the reader of this slot has finished with it
            pld.system.wait(sig, [1, 0], epoch - 1, cmp=pld.WaitCmp.Ge)
        pld.tensor.remote_store(pl.mul(x, 2.0), slots, right, [slot, 0, 0])
        pld.system.notify(sig, right, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(sig, [0, 0], epoch + 1, cmp=pld.WaitCmp.Ge)
        y[:] = slots[slot]
        pld.system.notify(sig, left, [1, 0], 1, op=pld.NotifyOp.AtomicAdd)
    return y


@pl.jit.host
def epochs(x: pl.Tensor[[NR, 8, C], pl.FP32], y: pl.Out[pl.Tensor[[NR, 8, C], pl.FP32]], epoch: pl.Scalar[pl.INT32]):
    slot_buf = pld.alloc_window_buffer([2, 8, C], dtype=pl.FP32)
    sig_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        slots = pld.window(slot_buf, [2, 8, C], dtype=pl.FP32)
        epoch_on_device(x[r], y[r], slots, pld.window(sig_buf, [2, 1], dtype=pl.INT32), epoch, device=r)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_epochs_over_submitted_calls(p):  # 03 W-31, D-62; 04 DST-21, DST-29
    config = RunConfig(
        platform="a2a3sim",
        distributed_config=DistributedConfig(device_ids=list(range(p))),
        sim=SimOptions(checks="strict"),
    )
    compiled = epochs.compile(epoch=pl.RUNTIME, config=config)
    with compiled.prepare(persistent=True, reset_persistent_windows=False) as worker:
        calls = []
        for epoch in range(6):
            x, y = noise(RNG, p, 8, C), noise(RNG, p, 8, C)
            calls.append((worker.submit(compiled, x, y, epoch, config=config), x, y))
        for handle, x, y in calls:
            handle.result()
            np.testing.assert_array_equal(y, 2 * np.roll(x, 1, axis=0))
            assert handle.report.ok and not handle.report.diagnostics
        assert worker._w._next_alloc_id == 1
