# SPDX-License-Identifier: Apache-2.0
"""Matrix products through the language: levels, types, transpositions, regions, accumulation (02 section 18)."""

import ml_dtypes
import numpy as np
import pytest
import torch
from opkit import NUMPY, rounded, run, same

TYPES = ("FP32", "FP16", "BF16", "INT8")


def fma32(a, b, c):
    """a * b + c in one rounding, exactly: operands of FP32 products of 24 bits fit in long double's 64 or are split."""
    product = a.astype(np.float64) * b.astype(np.float64)  # exact: 48 bits
    s = product + c.astype(np.float64)
    # the error of the sum, by which a tie of the second rounding is broken
    z = s - product
    error = (product - (s - z)) + (c.astype(np.float64) - z)
    out = s.astype(np.float32)
    half = (s == (out.astype(np.float64) + np.nextafter(out, np.float32(np.inf)).astype(np.float64)) / 2) | (
        s == (out.astype(np.float64) + np.nextafter(out, np.float32(-np.inf)).astype(np.float64)) / 2
    )
    nudged = np.where(error > 0, np.nextafter(s, np.inf), np.where(error < 0, np.nextafter(s, -np.inf), s))
    return np.where(half, nudged.astype(np.float32), out)


def product(a, b, start=None):
    """O-307: k ascending, one fused multiply-add per term."""
    if a.dtype == np.int8:
        total = a.astype(np.int32) @ b.astype(np.int32)
        return total if start is None else total + start
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
    out = np.zeros((a.shape[0], b.shape[1]), np.float32) if start is None else start.astype(np.float32).copy()
    for k in range(a.shape[1]):
        out = fma32(wide_a[:, k : k + 1] + 0 * wide_b[k : k + 1], wide_b[k : k + 1] + 0 * wide_a[:, k : k + 1], out)
    return out


def matrix(dtype, shape, seed):
    random = np.random.default_rng(seed)
    if dtype == "INT8":
        return random.integers(-128, 128, shape).astype(np.int8)
    return rounded(random.standard_normal(shape) * 10.0 ** random.integers(-2, 2, shape), dtype)


def accumulator(dtype):
    return np.int32 if dtype == "INT8" else np.float32


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("m,k,n", [(16, 32, 48), (17, 45, 33), (1, 64, 16), (64, 1, 5), (5, 130, 1)])
def test_products_of_both_levels(m, k, n, dtype, platform):  # O-1801, O-1802, O-1803, O-307, O-311, O-809
    a, b = matrix(dtype, (m, k), 61), matrix(dtype, (k, n), 62)
    at, bt = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
    acc = accumulator(dtype)
    name = "INT32" if dtype == "INT8" else "FP32"
    outs = {f"o{i}": np.zeros((m, n), acc) for i in range(9)}
    run(
        f"""
        o0[:, :] = pl.matmul(a, b, out_dtype=pl.{name})
        o1[:, :] = pl.matmul(at, b, a_trans=True, out_dtype=pl.{name})
        o2[:, :] = pl.tensor.matmul(lhs=a, rhs=bt, out_dtype=pl.{name}, b_trans=True, c_matrix_nz=False)
        o3[:, :] = pl.matmul(at, bt, pl.{name}, True, True)
        ta = pl.load(a, [0, 0], [{m}, {k}], target_memory=pl.MemorySpace.Mat)
        tb = pl.load(b, [0, 0], [{k}, {n}], target_memory=pl.Mem.Mat)
        tbt = pl.load(bt, [0, 0], [{n}, {k}], target_memory=pl.Mem.Mat)
        o4 = pl.store(pl.matmul(ta, tb), [0, 0], o4)
        o5 = pl.store(pl.tile.matmul(lhs=ta, rhs=pl.tile.transpose_view(tbt)), [0, 0], o5)
        o6 = pl.store(pl.matmul(pl.move(ta, pl.Mem.Left), pl.move(tb, target_memory=pl.Mem.Right)), [0, 0], o6)
        va = pl.load(a, [0, 0], [{m}, {k}])
        o7 = pl.store(pl.matmul(va, tb), [0, 0], o7)
        o8 = pl.store(pl.matmul(ta, tb, out_dtype=pl.{name}), [0, 0], o8)
        """,
        platform, a=a, b=b, at=at, bt=bt, **outs,
    )  # fmt: skip
    want = product(a, b)
    for key, got in outs.items():
        same(got, want, f"matmul:{key} {dtype} {m}x{k}x{n}")
    if dtype != "INT8":
        exact = torch.from_numpy(a.astype(np.float64)) @ torch.from_numpy(b.astype(np.float64))
        scale = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
        assert (np.abs(outs["o0"] - exact.numpy()) <= 1e-6 * (k + 1) * scale).all()


@pytest.mark.parametrize(
    "dtype,out", [("FP16", "FP16"), ("BF16", "BF16"), ("FP16", "BF16"), ("FP32", "FP16"), ("BF16", "FP32")]
)
def test_result_types(dtype, out):  # O-1802, O-703: default is the promoted type, rounded when it leaves
    a, b = matrix(dtype, (32, 40), 63), matrix(dtype, (40, 16), 64)
    o0, o1, o2, o3 = (
        np.zeros((32, 16), NUMPY[out]),
        np.zeros((32, 16), NUMPY[dtype]),
        np.zeros((32, 16), NUMPY[out]),
        np.zeros((32, 16), NUMPY[dtype]),
    )
    run(
        f"""
        o0[:, :] = pl.matmul(a, b, out_dtype=pl.{out})
        o1[:, :] = pl.matmul(a, b)
        acc = pl.matmul(pl.load(a, [0, 0], [32, 40]), pl.load(b, [0, 0], [40, 16]))
        o2 = pl.store(acc, [0, 0], o2)
        o3[:, :] = pl.add(pl.matmul(a, b), 1.0)
        """,
        a=a, b=b, o0=o0, o1=o1, o2=o2, o3=o3,
    )  # fmt: skip
    want = product(a, b)
    same(o0, rounded(want, out), f"matmul:out {out}")
    same(o1, rounded(want, dtype), "matmul:default")
    same(o2, rounded(want, out), f"matmul:acc stored as {out}")
    same(o3, rounded(want + np.float32(1), dtype), "matmul:accumulator read by add")


@pytest.mark.parametrize("dtype", TYPES)
def test_padding_never_contributes(dtype):  # O-1804, B-11
    a, b = matrix(dtype, (16, 64), 65), matrix(dtype, (64, 32), 66)
    bad = np.nan if dtype != "INT8" else 77
    da, db = a.copy(), b.copy()
    da[:, 55:], da[13:], db[55:], db[:, 21:] = bad, bad, bad, bad
    outs = {f"o{i}": np.full((16, 32), 5, accumulator(dtype)) for i in range(3)}
    run(
        """
        ta = pl.set_validshape(pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat), 13, 55)
        tb = pl.set_validshape(pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat), 55, 21)
        o0 = pl.store(pl.matmul(ta, tb), [0, 0], o0)
        ra = pl.set_validshape(pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat), m, k)
        rb = pl.set_validshape(pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat), 64, n)
        o1 = pl.store(pl.matmul(ra, rb), [0, 0], o1)
        o2[0:13, 0:21] = pl.matmul(a[0:13, 0:55], b[0:55, 0:21], out_dtype=pl.ACC)
        """.replace("ACC", "INT32" if dtype == "INT8" else "FP32"),
        "a2a3sim", {"m": ("INT32", 13), "k": ("INT32", 55), "n": ("INT32", 21)}, a=da, b=db, **outs,
    )  # fmt: skip
    want = np.full((16, 32), 5, accumulator(dtype))
    want[:13, :21] = product(a[:13, :55], b[:55, :21])
    for key, got in outs.items():
        same(got, want, f"matmul:valid {key} {dtype}")


@pytest.mark.parametrize("dtype", TYPES)
def test_accumulation(dtype):  # O-1805, O-214, O-215, B-12, B-13
    a, b = matrix(dtype, (32, 96), 67), matrix(dtype, (96, 32), 68)
    acc = "INT32" if dtype == "INT8" else "FP32"
    outs = {f"o{i}": np.zeros((32, 32), accumulator(dtype)) for i in range(5)}
    run(
        f"""
        acc = pl.tile.create([32, 32], pl.{acc}, target_memory=pl.MemorySpace.Acc)
        for k in pl.range(0, 96, 32):
            ta = pl.load(a, [0, k], [32, 32], target_memory=pl.Mem.Mat)
            tb = pl.load(b, [k, 0], [32, 32], target_memory=pl.Mem.Mat)
            acc = pl.matmul_acc(acc, ta, tb, init_cond=(k == 0))
        o0 = pl.store(acc, [0, 0], o0)
        first = pl.matmul(pl.load(a, [0, 0], [32, 32]), pl.load(b, [0, 0], [32, 32]))
        pl.matmul_acc(first, pl.load(a, [0, 32], [32, 32]), pl.load(b, [32, 0], [32, 32]))
        first = pl.tile.matmul_acc(acc=first, lhs=pl.load(a, [0, 64], [32, 32]), rhs=pl.load(b, [64, 0], [32, 32]))
        o1 = pl.store(first, [0, 0], o1)
        t = pl.matmul(a[:, 0:32], b[0:32, :], out_dtype=pl.{acc})
        t = pl.matmul_acc(t, a[:, 32:96], b[32:96, :])
        o2[:, :] = t
        u = pl.create_tensor([32, 32], dtype=pl.{acc})
        for k in pl.range(3):
            pl.tensor.matmul_acc(u, a[:, k * 32 : k * 32 + 32], b[k * 32 : k * 32 + 32, :], False, False, init_cond=k == 0)
        o3[:, :] = u
        parent = pl.tile.create([32, 32], pl.{acc}, target_memory=pl.Mem.Acc)
        left = pl.slice(parent, [32, 16], [0, 0])
        left = pl.matmul_acc(left, pl.load(a, [0, 0], [32, 96]), pl.load(b, [0, 0], [96, 16]), init_cond=True)
        right = pl.slice(parent, [32, 16], [0, 16])
        right = pl.matmul_acc(right, pl.load(a, [0, 0], [32, 96]), pl.load(b, [0, 16], [96, 16]), init_cond=True)
        o4 = pl.store(parent, [0, 0], o4)
        """,
        a=a, b=b, **outs,
    )  # fmt: skip
    want = product(a, b)
    for key, got in outs.items():
        same(got, want, f"matmul_acc:{key} {dtype}")


def test_ranks():  # O-1801: vectors, batches, broadcast
    v, w = matrix("FP32", (40,), 69), matrix("FP32", (40,), 70)
    m, n = matrix("FP32", (12, 40), 71), matrix("FP32", (40, 24), 72)
    q, k = matrix("FP32", (2, 3, 8, 40), 73), matrix("FP32", (3, 16, 40), 74)
    one = matrix("FP32", (1, 16, 40), 75)
    o0, o1, o2 = np.zeros((1,), np.float32), np.zeros((12,), np.float32), np.zeros((24,), np.float32)
    o3, o4, o5 = np.zeros((2, 3, 8, 16), np.float32), np.zeros((1, 12, 16), np.float32), np.zeros((12, 16), np.float32)
    run(
        """
        d = pl.matmul(v, w)
        o0[:] = pl.reshape(d, [1])
        o1[:] = pl.matmul(m, v)
        o2[:] = pl.matmul(v, n)
        o3[:, :, :, :] = pl.matmul(q, k, b_trans=True)
        o4[:, :, :] = pl.matmul(m, one, b_trans=True)
        pl.assemble(o5, pl.matmul(m, one, b_trans=True), [0, 0])
        """,
        v=v, w=w, m=m, n=n, q=q, k=k, one=one, o0=o0, o1=o1, o2=o2, o3=o3, o4=o4, o5=o5,
    )  # fmt: skip
    same(o0, product(v[None], w[:, None])[0], "matmul:dot")
    same(o1, product(m, v[:, None])[:, 0], "matmul:matrix vector")
    same(o2, product(v[None], n)[0], "matmul:vector matrix")
    for i in range(2):
        for j in range(3):
            same(o3[i, j], product(q[i, j], k[j].T), "matmul:batch")
    same(o4[0], product(m, one[0].T), "matmul:2-D with 3-D")
    same(o5, product(m, one[0].T), "matmul:higher rank assembled")


@pytest.mark.parametrize("dtype", TYPES)
def test_bias_gemv_and_batches(dtype):  # O-1807, O-1808, O-1809
    a, b = matrix(dtype, (16, 64), 76), matrix(dtype, (64, 48), 77)
    acc = accumulator(dtype)
    bias = (np.arange(48) * 3 - 50).astype(acc)[None]
    outs = {
        "o0": np.zeros((16, 48), acc),
        "o1": np.zeros((16, 48), acc),
        "o2": np.zeros((1, 48), acc),
        "o3": np.zeros((1, 48), acc),
    }
    outs |= {"o4": np.zeros((1, 48), acc)}
    run(
        """
        ta = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
        tb = pl.load(b, [0, 0], [64, 48], target_memory=pl.Mem.Mat)
        tc = pl.load(bias, [0, 0], [1, 48], target_memory=pl.Mem.Mat)
        o0 = pl.store(pl.matmul_bias(ta, tb, tc), [0, 0], o0)
        o1 = pl.store(pl.tile.matmul_bias(lhs=ta, rhs=tb, bias=pl.move(tc, pl.Mem.Bias)), [0, 0], o1)
        row = pl.load(a, [3, 0], [1, 64], target_memory=pl.Mem.Mat)
        o2 = pl.store(pl.gemv(row, tb), [0, 0], o2)
        o3 = pl.store(pl.tile.gemv_bias(row, tb, bias=tc, acc_phase="final"), [0, 0], o3)
        half = pl.gemv(pl.load(a, [3, 0], [1, 32], target_memory=pl.Mem.Mat), pl.load(b, [0, 0], [32, 48], target_memory=pl.Mem.Mat), acc_phase="partial")
        half = pl.gemv_acc(half, pl.load(a, [3, 32], [1, 32], target_memory=pl.Mem.Mat), pl.load(b, [32, 0], [32, 48], target_memory=pl.Mem.Mat), "final")
        o4 = pl.store(half, [0, 0], o4)
        """,
        a=a, b=b, bias=bias, **outs,
    )  # fmt: skip
    start = np.repeat(bias, 16, 0)
    same(outs["o0"], product(a, b, start), "matmul_bias:")
    same(outs["o1"], product(a, b, start), "matmul_bias:")
    same(outs["o2"], product(a[3:4], b), "gemv:")
    same(outs["o3"], product(a[3:4], b, bias), "gemv_bias:")
    same(outs["o4"], product(a[3:4], b), "gemv_acc:")
    x, y = matrix(dtype, (2, 3, 8, 32), 78), matrix(dtype, (3, 32, 16), 79)
    outs = {f"o{i}": np.zeros((2, 3, 8, 16), acc) for i in range(3)}
    run(
        """
        tx = pl.load(x, [0, 0, 0, 0], [2, 3, 8, 32], target_memory=pl.Mem.Mat)
        ty = pl.load(y, [0, 0, 0], [3, 32, 16], target_memory=pl.Mem.Mat)
        p = pl.batch_matmul(tx, ty)
        o0 = pl.store(p, [0, 0, 0, 0], o0)
        o1 = pl.store(pl.tile.batch_matmul(lhs=tx, rhs=ty), [0, 0, 0, 0], o1)
        pl.tile.batch_matmul_acc(p, tx, ty)
        o2 = pl.store(p, [0, 0, 0, 0], o2)
        """,
        x=x, y=y, **outs,
    )  # fmt: skip
    for i in range(2):
        for j in range(3):
            once = product(x[i, j], y[j])
            same(outs["o0"][i, j], once, "batch_matmul:")
            same(outs["o1"][i, j], once, "batch_matmul:")
            same(outs["o2"][i, j], product(x[i, j], y[j], once), "batch_matmul_acc:")


def mx_a(codes):
    """Scales [M, G] in the byte order of MX_A_ZZ (O-702)."""
    m, g = codes.shape
    return np.ascontiguousarray(codes.reshape(m // 16, 16, g // 2, 2).transpose(0, 2, 1, 3)).reshape(m, g)


def mx_b(codes):
    g, n = codes.shape
    return np.ascontiguousarray(codes.reshape(g // 2, 2, n // 16, 16).transpose(2, 0, 3, 1)).reshape(g, n)


def test_block_scaled_products():  # O-1810, O-702: a5
    random = np.random.default_rng(80)
    m, k, n = 32, 128, 64
    a = random.integers(-8, 9, (m, k)).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
    b = random.integers(-8, 9, (k, n)).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
    sa, sb = (
        random.integers(124, 131, (m, k // 32)).astype(np.uint8),
        random.integers(124, 131, (k // 32, n)).astype(np.uint8),
    )
    bias = random.integers(-9, 9, (1, n)).astype(np.float32)
    outs = {f"o{i}": np.zeros((m, n), np.float32) for i in range(3)}
    from opkit import define
    from pypto.runtime import RunConfig

    f = define(
        f"""
@pl.jit
def f(a: pl.Tensor[[{m}, {k}], pl.FP8E4M3FN], b: pl.Tensor[[{k}, {n}], pl.FP8E4M3FN],
      sa: pl.Tensor[[{m}, {k // 32}], pl.FP8E8M0, pl.MX_A_ZZ], sb: pl.Tensor[[{k // 32}, {n}], pl.FP8E8M0, pl.MX_B_NN],
      bias: pl.Tensor[[1, {n}], pl.FP32],
      o0: pl.Out[pl.Tensor[[{m}, {n}], pl.FP32]], o1: pl.Out[pl.Tensor[[{m}, {n}], pl.FP32]], o2: pl.Out[pl.Tensor[[{m}, {n}], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        ta = pl.load(a, [0, 0], [{m}, {k}], target_memory=pl.Mem.Mat)
        tb = pl.load(b, [0, 0], [{k}, {n}], target_memory=pl.Mem.Mat)
        ls = pl.move(pl.load(sa, [0, 0], [{m}, {k // 32}], target_memory=pl.Mem.Mat), pl.Mem.LeftScale)
        rs = pl.move(pl.load(sb, [0, 0], [{k // 32}, {n}], target_memory=pl.Mem.Mat), pl.Mem.RightScale)
        tc = pl.load(bias, [0, 0], [1, {n}], target_memory=pl.Mem.Mat)
        p = pl.matmul_mx(ta, ls, tb, rs)
        o0 = pl.store(p, [0, 0], o0)
        pl.matmul_mx_acc(p, ta, ls, tb, rs)
        o1 = pl.store(p, [0, 0], o1)
        o2 = pl.store(pl.tile.matmul_mx_bias(lhs=ta, lhs_scale=ls, rhs=tb, rhs_scale=rs, bias=tc), [0, 0], o2)
    return o0, o1, o2
"""
    )["f"]
    f(a, b, mx_a(sa), mx_b(sb), bias, *outs.values(), config=RunConfig(platform="a5sim"))
    wa = a.astype(np.float64) * 2.0 ** (np.repeat(sa, 32, 1).astype(np.float64) - 127)
    wb = b.astype(np.float64) * 2.0 ** (np.repeat(sb, 32, 0).astype(np.float64) - 127)
    want = (wa @ wb).astype(np.float32)
    same(outs["o0"], want, "matmul_mx:")
    same(outs["o1"], want * 2, "matmul_mx_acc:")
    same(outs["o2"], want + bias, "matmul_mx_bias:")


@pytest.mark.parametrize("dtype", ["FP32", "INT8"])
def test_products_larger_than_the_cube_buffers(dtype):  # O-1806
    a, b = matrix(dtype, (300, 520), 81), matrix(dtype, (520, 270), 82)
    o0, o1 = (np.zeros((300, 270), accumulator(dtype)) for _ in range(2))
    acc = "INT32" if dtype == "INT8" else "FP32"
    run(
        f"""
        o0[:, :] = pl.matmul(a, b, out_dtype=pl.{acc})
        for i in pl.range(0, 300, 100):
            o1[i : i + 100, :] = pl.matmul(a[i : i + 100, :], b, out_dtype=pl.{acc})
        """,
        a=a, b=b, o0=o0, o1=o1,
    )  # fmt: skip
    want = product(a, b)
    same(o0, want, "matmul:split")
    same(o1, want, "matmul:split")


@pytest.mark.parametrize(
    "call", ["pl.matmul_acc(acc, ta, tb, k == 0)", "pl.tile.matmul_acc(acc, ta, tb, k == 0)",
             "pl.matmul_acc(acc, ta, tb, False, False, k == 0)", "pl.tile.matmul_acc(acc, lhs=ta, rhs=tb, init_cond=k == 0)"]
)  # fmt: skip
def test_positions_of_the_tile_form(call):  # O-110, O-1805: (acc, lhs, rhs, init_cond) on tiles
    a, b = (np.random.default_rng(k).standard_normal((32, 32)).astype(np.float32) for k in (77, 78))
    o = np.zeros((32, 32), np.float32)
    run(
        f"""
        acc = pl.create_tile([32, 32], pl.FP32, target_memory=pl.Mem.Acc)
        for k in pl.range(2):
            ta = pl.load(a, [0, k * 16], [32, 16], target_memory=pl.Mem.Mat)
            tb = pl.load(b, [k * 16, 0], [16, 32], target_memory=pl.Mem.Mat)
            acc = {call}
        o = pl.store(acc, [0, 0], o)
        """,
        a=a, b=b, o=o,
    )  # fmt: skip
    np.testing.assert_array_equal(o, product(a, b))
