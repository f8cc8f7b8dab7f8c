# SPDX-License-Identifier: Apache-2.0
"""Kernels as model engineers write them, JIT form, each against NumPy."""

import numpy as np
import pypto.language as pl
import pytest
from pypto.runtime import RunConfig

PLATFORMS = ["a2a3sim", "a5sim"]
RNG = np.random.default_rng(2024)


def f32(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


# ---------------------------------------------------------------- worked example of 01 section 17

COLS, TILE = 128, 32
R = pl.dynamic("R")


@pl.jit.incore
def add_bias(y: pl.InOut[pl.Tensor], b: pl.Tensor, row: pl.Scalar[pl.INDEX]):
    t = pl.load(y, [row, 0], [TILE, COLS])
    bias = pl.load(b, [0, 0], [1, COLS])
    y = pl.store(pl.col_expand_add(t, bias), [row, 0], y)
    return y


@pl.jit
def affine(
    x: pl.Tensor[[R, COLS], pl.FP32],
    b: pl.Tensor[[1, COLS], pl.FP32],
    y: pl.Out[pl.Tensor[[R, COLS], pl.FP32]],
    s: pl.Out[pl.Tensor[[R, 1], pl.FP32]],
):
    blocks = x.shape[0] // TILE
    for i in pl.spmd(blocks, name_hint="double"):
        part = pl.load(x, [i * TILE, 0], [TILE, COLS])
        y = pl.store(pl.mul(part, 2.0), [i * TILE, 0], y)
    for i in pl.range(blocks):
        y = add_bias(y, b, i * TILE)
    for i in pl.parallel(blocks):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="row_sums"):
            rows = pl.load(y, [i * TILE, 0], [TILE, COLS])
            tmp = pl.create_tile([TILE, COLS], dtype=pl.FP32)
            s = pl.store(pl.row_sum(rows, tmp), [i * TILE, 0], s)
    return y, s


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("rows", [32, 96])
def test_worked_example(platform, rows):
    x, b = f32(rows, COLS), f32(1, COLS)
    y, s = np.zeros_like(x), np.zeros((rows, 1), np.float32)
    affine(x, b, y, s, config=RunConfig(platform=platform))
    np.testing.assert_allclose(y, 2 * x + b, rtol=1e-6)
    np.testing.assert_allclose(s, (2 * x + b).sum(1, keepdims=True), rtol=1e-4, atol=1e-4)


# ---------------------------------------------------------------- tensor-level regions


@pl.jit
def softmax(x: pl.Tensor[[64, 128], pl.FP32], y: pl.Out[pl.Tensor[[64, 128], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="softmax"):
        m = pl.row_max(x)
        e = pl.exp(pl.row_expand_sub(x, m))
        y[:] = pl.row_expand_div(e, pl.row_sum(e))
    return y


def test_softmax_region():
    x = f32(64, 128) * 5
    y = np.zeros_like(x)
    softmax(x, y, config=RunConfig(platform="a2a3sim"))
    e = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-7)


@pl.jit
def rms_norm(x: pl.Tensor, w: pl.Tensor, y: pl.Out[pl.Tensor]):
    rows, cols = x.shape
    for i in pl.parallel(0, rows, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            part = pl.cast(x[i : i + 16, :], pl.FP32)
            square = pl.row_sum(pl.mul(part, part))
            inv = pl.rsqrt(pl.add(pl.mul(square, 1.0 / 64), 1e-6))
            normed = pl.col_expand_mul(pl.row_expand_mul(part, inv), w)
            y[i : i + 16, :] = pl.cast(normed, pl.BF16)
    return y


def test_rms_norm_bf16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = f32(48, 64).astype(ml_dtypes.bfloat16)
    w = f32(1, 64)
    y = np.zeros_like(x)
    rms_norm(x, w, y, config=RunConfig(platform="a2a3sim"))
    xf = x.astype(np.float32)
    want = xf / np.sqrt((xf * xf).mean(1, keepdims=True) + 1e-6) * w
    np.testing.assert_allclose(y.astype(np.float32), want, rtol=1e-2, atol=1e-2)


@pl.jit
def attention(
    q: pl.Tensor[[32, 64], pl.FP32],
    k: pl.Tensor[[128, 64], pl.FP32],
    v: pl.Tensor[[128, 64], pl.FP32],
    out: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="flash"):
        m = pl.full([32, 1], dtype=pl.FP32, value=-1e30)
        l = pl.full([32, 1], dtype=pl.FP32, value=0.0)
        acc = pl.full([32, 64], dtype=pl.FP32, value=0.0)
        for j in pl.range(0, 128, 32):
            kj = k[j : j + 32, :]
            vj = v[j : j + 32, :]
            s = pl.mul(pl.matmul(q, kj, b_trans=True), 0.125)
            m_new = pl.maximum(m, pl.row_max(s))
            p = pl.exp(pl.row_expand_sub(s, m_new))
            scale = pl.exp(pl.sub(m, m_new))
            l = pl.add(pl.mul(l, scale), pl.row_sum(p))
            acc = pl.add(pl.row_expand_mul(acc, scale), pl.matmul(p, vj))
            m = m_new
        out[:] = pl.row_expand_div(acc, l)
    return out


@pytest.mark.parametrize("platform", PLATFORMS)
def test_flash_attention_region(platform):
    q, k, v = f32(32, 64), f32(128, 64), f32(128, 64)
    out = np.zeros((32, 64), np.float32)
    attention(q, k, v, out, config=RunConfig(platform=platform))
    s = q @ k.T * 0.125
    p = np.exp(s - s.max(1, keepdims=True))
    np.testing.assert_allclose(out, p / p.sum(1, keepdims=True) @ v, rtol=1e-4, atol=1e-5)


@pl.jit.incore
def gemm_tile(
    a: pl.Tensor[[64, 256], pl.FP16],
    b: pl.Tensor[[256, 64], pl.FP16],
    c: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
):
    a0 = pl.load(a, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
    b0 = pl.load(b, [0, 0], [64, 64], target_memory=pl.Mem.Mat)
    acc = pl.matmul(pl.move(a0, pl.Mem.Left), pl.move(b0, pl.Mem.Right))
    for kk in pl.range(64, 256, 64):
        ak = pl.load(a, [0, kk], [64, 64], target_memory=pl.Mem.Mat)
        bk = pl.load(b, [kk, 0], [64, 64], target_memory=pl.Mem.Mat)
        acc = pl.matmul_acc(acc, pl.move(ak, pl.Mem.Left), pl.move(bk, pl.Mem.Right))
    c = pl.store(acc, [0, 0], c)
    return c


@pl.jit
def gemm(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    return gemm_tile(a, b, c)


def test_gemm_accumulates_over_k():
    a, b = f32(64, 256).astype(np.float16), f32(256, 64).astype(np.float16)
    c = np.zeros((64, 64), np.float32)
    gemm(a, b, c, config=RunConfig(platform="a2a3sim"))
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32), rtol=1e-4, atol=1e-3)


@pl.jit
def rope(x: pl.Tensor[[32, 64], pl.FP32], cos: pl.Tensor[[32, 32], pl.FP32], sin: pl.Tensor[[32, 32], pl.FP32],
         y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):  # fmt: skip
    with pl.at(level=pl.Level.CORE_GROUP):
        lo = x[:, 0:32]
        hi = x[:, 32:64]
        y[:, 0:32] = pl.sub(pl.mul(lo, cos), pl.mul(hi, sin))
        y = pl.assemble(y, pl.add(pl.mul(hi, cos), pl.mul(lo, sin)), [0, 32])
    return y


def test_rope():
    x, c, s = f32(32, 64), f32(32, 32), f32(32, 32)
    y = np.zeros_like(x)
    rope(x, c, s, y, config=RunConfig(platform="a2a3sim"))
    want = np.concatenate([x[:, :32] * c - x[:, 32:] * s, x[:, 32:] * c + x[:, :32] * s], 1)
    np.testing.assert_allclose(y, want, rtol=1e-6, atol=1e-6)


@pl.jit
def top64(scores: pl.Tensor[[1, 512], pl.FP32], values: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
          where: pl.Out[pl.Tensor[[1, 64], pl.INT32]]):  # fmt: skip
    with pl.at(level=pl.Level.CORE_GROUP):
        order = pl.arange(0, [1, 512], dtype=pl.UINT32)
        pairs = pl.sort32(scores, order)
        pairs = pl.mrgsort(pairs, block_len=64)
        pairs = pl.mrgsort(pairs, block_len=256)
        best = pairs[:, 0:128]
        values[:] = pl.gather(best, mask_pattern=pl.tile.MaskPattern.P0101)
        where[:] = pl.gather(best, mask_pattern=pl.tile.MaskPattern.P1010, output_dtype=pl.INT32)
    return values, where


def test_top64():  # 02 section 27
    scores = f32(1, 512)
    values, where = np.zeros((1, 64), np.float32), np.zeros((1, 64), np.int32)
    top64(scores, values, where, config=RunConfig(platform="a2a3sim"))
    order = np.argsort(-scores[0], kind="stable")[:64]
    np.testing.assert_array_equal(where[0], order)
    np.testing.assert_array_equal(values[0], scores[0, order])


@pl.jit
def paged_sum(cache: pl.Tensor[[8, 16, 32], pl.FP32], table: pl.Tensor[[1, 8], pl.INT32],
              lens: pl.Tensor[[1], pl.INT32], out: pl.Out[pl.Tensor[[1, 32], pl.FP32]]):  # fmt: skip
    n = pl.read(lens, [0])
    blocks = (n + 15) // 16
    with pl.at(level=pl.Level.CORE_GROUP):
        for b in pl.range(blocks):
            page = pl.read(table, [0, b])
            valid = pl.min(16, n - b * 16)
            rows = pl.load(cache, [page, 0, 0], [1, 16, 32], valid_shape=[1, valid, 32])
            flat = pl.reshape(rows, [16, 32])
            padded = pl.fillpad(flat, pad_value=pl.PadValue.zero)
            total = pl.tile.col_sum(padded)
            out_row = pl.load(out, [0, 0], [1, 32])
            out = pl.store(pl.add(out_row, total), [0, 0], out)
    return out


@pytest.mark.parametrize("n", [1, 16, 37, 128])
def test_paged_sum_with_run_time_lengths(n):
    cache, table = f32(8, 16, 32), RNG.permutation(8).astype(np.int32)[None]
    out = np.zeros((1, 32), np.float32)
    paged_sum(cache, table, np.array([n], np.int32), out, config=RunConfig(platform="a2a3sim"))
    rows = cache[table[0]].reshape(128, 32)[:n]
    np.testing.assert_allclose(out[0], rows.sum(0), rtol=1e-4, atol=1e-4)


@pl.jit
def int8_gemm(a: pl.Tensor[[32, 64], pl.INT8], b: pl.Tensor[[64, 32], pl.INT8], scale: pl.Tensor[[1, 32], pl.FP32],
              out: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):  # fmt: skip
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.matmul(a, b, out_dtype=pl.INT32)
        out[:] = pl.col_expand_mul(pl.cast(acc, pl.FP32), scale)
    return out


def test_int8_gemm_dequantised():
    a, b = RNG.integers(-128, 128, (32, 64), np.int8), RNG.integers(-128, 128, (64, 32), np.int8)
    scale = np.abs(f32(1, 32)) * 0.01
    out = np.zeros((32, 32), np.float32)
    int8_gemm(a, b, scale, out, config=RunConfig(platform="a2a3sim"))
    np.testing.assert_allclose(out, (a.astype(np.int32) @ b.astype(np.int32)).astype(np.float32) * scale, rtol=1e-6)


@pl.jit
def blocks_with_tasks(x: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    tmp = pl.create_tensor([64, 64], dtype=pl.FP32)
    tids = pl.array.create(4, pl.TASK_ID)
    with pl.manual_scope():
        for i in pl.range(4):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="square") as tid:
                t = pl.load(x, [i * 16, 0], [16, 64])
                tmp = pl.store(pl.mul(t, t), [i * 16, 0], tmp)
            tids[i] = tid
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="collect", deps=[tids]):
            whole = pl.load(tmp, [0, 0], [64, 64])
            y = pl.store(pl.add(whole, 1.0), [0, 0], y)
    return y


def test_manual_scope_with_task_ids():  # 01 L-133, L-166
    x = f32(64, 64)
    y = np.zeros_like(x)
    blocks_with_tasks(x, y, config=RunConfig(platform="a2a3sim"))
    np.testing.assert_allclose(y, x * x + 1, rtol=1e-6)


@pl.jit.inline
def scaled(x, factor):
    return pl.mul(x, factor)


@pl.jit
def branches(x: pl.Tensor[[16, 32], pl.FP32], flag: pl.Tensor[[1], pl.INT32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    f = pl.read(flag, [0])
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 32])
        if f > 2:
            r = scaled(t, 3.0)
        elif f == 2:
            r = pl.neg(t)
        else:
            r = pl.add(t, t)
        count = 0
        i = pl.cast(f, pl.INDEX)
        while i > 0:
            i = i - 2
            count = count + 1
        r = pl.add(r, pl.cast(pl.cast(count, pl.INT32), pl.FP32))
        y = pl.store(r, [0, 0], y)
    return y


@pytest.mark.parametrize("flag,scale", [(0, 2.0), (2, -1.0), (5, 3.0)])
def test_branches_and_while(flag, scale):
    x = f32(16, 32)
    y = np.zeros_like(x)
    branches(x, np.array([flag], np.int32), y, config=RunConfig(platform="a2a3sim"))
    np.testing.assert_allclose(y, x * np.float32(scale) + (flag + 1) // 2, rtol=1e-6)


@pl.jit
def carried(
    x: pl.Tensor[[8, 32], pl.FP32], y: pl.Out[pl.Tensor[[8, 32], pl.FP32]], z: pl.Out[pl.Tensor[[8, 32], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP):
        a0 = pl.load(x, [0, 0], [8, 32])
        b0 = pl.tile.full([8, 32], dtype=pl.FP32, value=0.0)
        for i, (a, b) in pl.range(4, init_values=(a0, b0)):
            a1 = pl.add(a, 1.0)
            b1 = pl.add(b, 10.0)
            ra, rb = pl.yield_(a1, b1)
        y = pl.store(ra, [0, 0], y)
        z = pl.store(rb, [0, 0], z)
    return y, z


def test_two_carries_in_one_loop():  # case K5
    x = f32(8, 32)
    y, z = np.zeros_like(x), np.ones_like(x)
    carried(x, y, z, config=RunConfig(platform="a2a3sim"))
    np.testing.assert_allclose(y, x + 4, rtol=1e-6)
    np.testing.assert_array_equal(z, 40)


def make_scale(rows, cols, factor, dt=pl.FP32):
    @pl.jit
    def scale(x: pl.Tensor[[rows, cols], dt], y: pl.Out[pl.Tensor[[rows, cols], dt]]):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="scale"):
            y[:] = pl.mul(x, factor)
        return y

    return scale


@pytest.mark.parametrize(
    "rows,cols,factor,dt", [(8, 16, 2.5, np.float32), (3, 40, -1.0, np.float16), (16, 16, 3, np.int32)]
)
def test_factories(rows, cols, factor, dt):  # 01 L-77
    names = {np.float32: pl.FP32, np.float16: pl.FP16, np.int32: pl.INT32}
    x = (RNG.standard_normal((rows, cols)) * 100).astype(dt)
    y = np.zeros_like(x)
    make_scale(rows, cols, factor, names[dt])(x, y, config=RunConfig(platform="a2a3sim"))
    np.testing.assert_array_equal(y, (x * dt(factor)).astype(dt))
