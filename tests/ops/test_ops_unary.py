# SPDX-License-Identifier: Apache-2.0
"""One-operand operations through the language, every pattern of the 16-bit types included (02 sections 10, 12, 14)."""

import numpy as np
import pytest
import torch
from opkit import FLOATS, NUMPY, operands, rounded, run, same

SHAPE = (5, 19)
SENTINEL = 77
SIGNED = ("INT8", "INT16", "INT32")


def of64(f):
    return lambda x: f(x.astype(np.float64))


# op -> (reference over float64 or the integer type, dtypes, ulp limit for FP32, absolute limit, keywords)
TABLE = {
    "neg": (np.negative, FLOATS + SIGNED, 0, 0.0, ""),
    "abs": (np.abs, FLOATS + SIGNED, 0, 0.0, ""),
    "exp": (of64(np.exp), FLOATS, 4, 0.0, ""),
    "log": (of64(np.log), ("FP32", "FP16"), 4, 0.0, "high_precision=True"),
    "sqrt": (of64(np.sqrt), FLOATS, 4, 0.0, ""),
    "rsqrt": (lambda x: 1 / np.sqrt(x.astype(np.float64)), FLOATS, 4, 0.0, ""),
    "recip": (lambda x: 1 / x.astype(np.float64), FLOATS, 4, 0.0, "high_precision=True"),
    "sin": (of64(np.sin), ("FP32",), 4, 1e-6, ""),
    "cos": (of64(np.cos), ("FP32",), 4, 1e-6, ""),
    "not_": (np.bitwise_not, ("INT16", "UINT16"), 0, 0.0, ""),
}
CASES = [(op, d) for op, row in TABLE.items() for d in row[1]]
TORCH = {"abs": torch.abs, "neg": torch.neg, "exp": torch.exp, "log": torch.log, "sqrt": torch.sqrt,
         "rsqrt": torch.rsqrt, "recip": torch.reciprocal}  # fmt: skip


def reference(op, x, dtype):
    with np.errstate(all="ignore"):
        f = TABLE[op][0]
        if dtype in FLOATS and op in ("neg", "abs"):
            return rounded(f(x.astype(np.float32)), dtype)
        return rounded(f(x), dtype)


def compare(op, dtype, got, want, what):
    same(got, want, what, limit=TABLE[op][2] if dtype == "FP32" else min(1, TABLE[op][2]), absolute=TABLE[op][3])


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize("op,dtype", CASES)
def test_operands_of_every_form(op, dtype, platform):  # O-1001, O-1003, O-303, O-313, O-305, O-1201, O-311
    x = operands(dtype, SHAPE, 11)
    keywords = ", " + TABLE[op][4] if TABLE[op][4] else ""
    body = ["tx = pl.load(x, [0, 0], [5, 19])"]
    expressions = [
        (f"pl.{op}(x)", 0),
        (f"pl.tensor.{op}(input=x)", 0),
        (f"pl.{op}(tx)", 1),
        (f"pl.tile.{op}(tile=tx)", 1),
    ]
    if keywords:
        expressions += [
            (f"pl.{op}(x{keywords})", 0),
            (f"pl.tile.{op}(tx{keywords})", 1),
            (f"pl.tensor.{op}(x{keywords})", 0),
        ]
    if op == "rsqrt":
        body.append(f"tmp = pl.create_tile([5, 19], dtype=pl.{dtype})")
        expressions += [("pl.rsqrt(x, high_precision=True)", 0), ("pl.tile.rsqrt(tx, tmp)", 1)]
    for i, (e, tile) in enumerate(expressions):
        body.append(f"o{i} = pl.store({e}, [0, 0], o{i})" if tile else f"o{i}[:, :] = {e}")
    outs = {f"o{i}": np.full(SHAPE, SENTINEL, NUMPY[dtype]) for i in range(len(expressions))}
    run("\n".join(body), platform, x=x, **outs)
    want = reference(op, x, dtype)
    for i, (e, _) in enumerate(expressions):
        compare(op, dtype, outs[f"o{i}"], want, f"{op}:{e} {dtype}")
        np.testing.assert_array_equal(
            outs[f"o{i}"].view(np.uint8), outs["o0"].view(np.uint8)
        )  # one method for all forms


@pytest.mark.parametrize("valid", [(3, 7), (0, 4), (5, 0), (1, 1), (5, 16)])
@pytest.mark.parametrize("op,dtype", CASES)
def test_valid_region(op, dtype, valid):  # O-1001, O-213
    x = operands(dtype, SHAPE, 12)
    r, c = valid
    if dtype in FLOATS:
        x[r:], x[:, c:] = np.nan, np.nan
    o0, o1 = (np.full(SHAPE, SENTINEL, NUMPY[dtype]) for _ in range(2))
    body = f"""
    t = pl.load(x, [0, 0], [5, 19])
    o0 = pl.store(pl.{op}(pl.set_validshape(t, {r}, {c})), [0, 0], o0)
    o1 = pl.store(pl.{op}(pl.set_validshape(t, r, c)), [0, 0], o1)
    """
    run(body, "a2a3sim", {"r": ("INT32", r), "c": ("INT32", c)}, x=x, o0=o0, o1=o1)
    want = np.full(SHAPE, SENTINEL, NUMPY[dtype])
    want[:r, :c] = reference(op, x[:r, :c], dtype)
    compare(op, dtype, o0, want, f"{op}:valid {valid}")
    compare(op, dtype, o1, want, f"{op}:run-time valid {valid}")


SIXTEEN = [(op, d) for op, d in CASES if d in ("FP16", "BF16", "INT16", "UINT16")]


@pytest.mark.parametrize("op,dtype", SIXTEEN)
def test_every_sixteen_bit_pattern(op, dtype):  # O-312, against NumPy and PyTorch
    x = np.arange(65536, dtype=np.uint16).view(NUMPY[dtype]).reshape(256, 256)
    o0, o1 = np.zeros_like(x), np.zeros_like(x)
    body = f"""
    for i in pl.range(4):
        tx = pl.load(x, [i * 64, 0], [64, 256])
        o0 = pl.store(pl.{op}(tx), [i * 64, 0], o0)
        o1[i * 64 : i * 64 + 64, :] = pl.{op}(x[i * 64 : i * 64 + 64, :])
    """
    run(body, x=x, o0=o0, o1=o1)
    want = reference(op, x, dtype)
    for got in (o0, o1):
        compare(op, dtype, got, want, f"{op}:every pattern of {dtype}")
    if dtype in FLOATS:
        kind = torch.float16 if dtype == "FP16" else torch.bfloat16
        t = torch.from_numpy(x.view(np.int16).copy()).view(kind)
        other = TORCH[op](t.float()).to(kind).view(torch.int16).numpy().view(NUMPY[dtype]).reshape(x.shape)
        compare(op, dtype, o0, other, f"{op}:every pattern of {dtype}, PyTorch")


@pytest.mark.parametrize("op", ["exp", "log", "sqrt", "rsqrt", "recip", "sin", "cos"])
def test_many_numbers(op):  # O-303, O-313: all exponents, against NumPy in double precision
    bits = np.random.default_rng(13).integers(0, 1 << 32, (256, 512), dtype=np.uint32)
    bits[0, :64] = np.arange(64)  # the smallest subnormals
    bits[1, :64] = 0x7F7FFFFF - np.arange(64)
    bits[2, :64] = 0x3F800000 + np.arange(-32, 32)
    x = bits.view(np.float32)
    o = np.zeros_like(x)
    run(f"for i in pl.range(16):\n    o[i * 16 : i * 16 + 16, :] = pl.{op}(x[i * 16 : i * 16 + 16, :])", x=x, o=o)
    compare(op, "FP32", o, reference(op, x, "FP32"), f"{op}:many numbers")


def test_special_arguments():  # O-313, O-1001
    x = np.array([[0.0, -0.0, np.inf, -np.inf, np.nan, -1.0, 1e30, -3e38]], np.float32)
    names = ("exp", "log", "sqrt", "rsqrt", "recip", "sin", "cos")
    outs = {f"o{i}": np.zeros_like(x) for i in range(len(names))}
    run("\n".join(f"o{i}[:, :] = pl.{n}(x)" for i, n in enumerate(names)), x=x, **outs)
    inf, nan = np.inf, np.nan
    table = {
        "exp": [1, 1, inf, 0, nan, np.exp(-1), inf, 0],
        "log": [-inf, -inf, inf, nan, nan, nan, np.log(1e30), nan],
        "sqrt": [0, -0.0, inf, nan, nan, nan, 1e15, nan],
        "rsqrt": [inf, -inf, 0, nan, nan, nan, 1e-15, nan],
        "recip": [inf, -inf, 0, -0.0, nan, -1, 1e-30, 1 / -3e38],
    }
    for i, n in enumerate(names[:5]):
        np.testing.assert_allclose(outs[f"o{i}"][0], table[n], rtol=1e-6, err_msg=n)
        if n == "recip":
            np.testing.assert_array_equal(np.signbit(outs[f"o{i}"][0, :4]), [False, True, False, True])
    for i, f in ((5, np.sin), (6, np.cos)):
        with np.errstate(invalid="ignore"):
            np.testing.assert_allclose(outs[f"o{i}"], f(x.astype(np.float64)), atol=1e-6)  # B-41: any finite argument


@pytest.mark.parametrize("dtype", ["INT16", "INT32", "INT8"])
@pytest.mark.parametrize("op", ["exp", "sqrt", "rsqrt", "recip"])
def test_integer_tensors_give_fp32(op, dtype):  # O-1001
    x = np.arange(1, 96, dtype=NUMPY[dtype]).reshape(SHAPE)
    o = np.zeros(SHAPE, np.float32)
    run(f"o[:, :] = pl.{op}(x)", x=x, o=o)
    compare(op, "FP32", o, reference(op, x.astype(np.float32), "FP32"), f"{op}:{dtype} tensor")


@pytest.mark.parametrize("dtype", ["INT16", "INT32"])
def test_integer_reciprocal_of_tiles(dtype):  # section 10: integer 1/x
    x = (np.arange(95).reshape(SHAPE) - 40).astype(NUMPY[dtype])
    x[x == 0] = 5
    o = np.zeros_like(x)
    run("o = pl.store(pl.recip(pl.load(x, [0, 0], [5, 19])), [0, 0], o)", x=x, o=o)
    np.testing.assert_array_equal(o, np.where(np.abs(x) == 1, x, 0))


# ---------------------------------------------------------------- section 14


@pytest.mark.parametrize("dtype", ["FP16", "FP32", "INT32"])
@pytest.mark.parametrize("valid", [(5, 19), (3, 7), (1, 1), (0, 3)])
def test_relu(dtype, valid):  # 02 section 14
    x = operands(dtype, SHAPE, 14)
    outs = [np.full(SHAPE, SENTINEL, x.dtype) for _ in range(2)]
    r, c = valid
    body = f"""
    t = pl.set_validshape(pl.load(x, [0, 0], [5, 19]), {r}, {c})
    o0 = pl.store(pl.relu(t), [0, 0], o0)
    o1 = pl.store(pl.tile.relu(tile=t), [0, 0], o1)
    """
    run(body, x=x, o0=outs[0], o1=outs[1])
    want = np.full(SHAPE, SENTINEL, x.dtype)
    want[:r, :c] = np.where(np.isnan(x) if dtype != "INT32" else False, x, np.maximum(x, 0))[:r, :c]
    for got in outs:
        keep = ~np.isnan(want.astype(np.float32))
        same(np.where(keep, got, 0), np.where(keep, want, 0), f"relu:{dtype}", signs=False)


@pytest.mark.parametrize("dtype", ["FP16", "FP32"])
@pytest.mark.parametrize("valid", [(5, 19), (3, 7), (1, 1), (0, 3)])
def test_leaky_forms(dtype, valid):  # O-1401, 02 section 14
    x, slope = operands(dtype, SHAPE, 15), operands(dtype, SHAPE, 16)
    r, c = valid
    outs = [np.full(SHAPE, SENTINEL, x.dtype) for _ in range(6)]
    body = f"""
    full = pl.load(x, [0, 0], [5, 19])
    t = pl.set_validshape(full, {r}, {c})
    w = pl.set_validshape(pl.load(slope, [0, 0], [5, 19]), {r}, {c})
    tmp = pl.create_tile([6, 32], dtype=pl.UINT8)
    o0 = pl.store(pl.lrelu(t, 0.3), [0, 0], o0)
    o1 = pl.store(pl.tile.lrelu(tile=t, slope=s), [0, 0], o1)
    o2 = pl.store(pl.lrelu(t, pl.const(-2.0, pl.{dtype})), [0, 0], o2)
    o3 = pl.store(pl.prelu(t, w, tmp), [0, 0], o3)
    o4 = pl.store(pl.tile.prelu(tile=t, slope=w, tmp=tmp), [0, 0], o4)
    o5 = pl.store(pl.lrelu(t, 2), [0, 0], o5)
    """
    run(body, "a2a3sim", {"s": (dtype, 0.3)}, x=x, slope=slope, **{f"o{i}": o for i, o in enumerate(outs)})
    a = x.astype(np.float32)
    third = np.float32(NUMPY[dtype](0.3))
    for i, w in enumerate((third, third, -2.0, slope.astype(np.float32), slope.astype(np.float32), 2.0)):
        want = np.full(SHAPE, SENTINEL, x.dtype)
        with np.errstate(all="ignore"):
            want[:r, :c] = rounded(np.where(a > 0, a, a * np.float32(w) if np.isscalar(w) else a * w), dtype)[:r, :c]
        same(outs[i], want, f"lrelu/prelu:{i} {dtype}")
