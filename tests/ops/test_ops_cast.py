# SPDX-License-Identifier: Apache-2.0
"""Casts through the language: every required pair, all modes, every pattern of the 16-bit types (02 section 11)."""

import ml_dtypes
import numpy as np
import pytest
import torch
from opkit import FLOATS, NUMPY, operands, rounded, run, same

SHAPE = (5, 32)
COMMON = ("FP32", "FP16", "BF16", "INT8", "UINT8", "INT16", "INT32", "INT64")
A5_INTEGERS = ("UINT16", "UINT32")
SMALL = ("FP8E4M3FN", "FP8E5M2")
MODES = {"none": 0, "rint": 1, "round": 2, "floor": 3, "ceil": 4, "trunc": 5, "odd": 6}


def to_whole(x, mode):
    """Floats as whole numbers in double precision by the table of section 11."""
    f = np.floor(x)
    tie = (x - f) == 0.5
    if mode in ("none", "trunc"):
        return np.trunc(x)
    if mode == "floor":
        return f
    if mode == "ceil":
        return np.ceil(x)
    near = np.where(x - f < 0.5, f, f + 1)
    if mode == "rint":
        return np.where(tie, np.where(f % 2 == 0, f, f + 1), near)
    if mode == "odd":
        return np.where(tie, np.where(f % 2 != 0, f, f + 1), near)
    return np.where(tie, np.where(x >= 0, f + 1, f), near)


def reference(x, dtype, mode="round"):
    source_float = x.dtype.kind == "f" or x.dtype.name.startswith(("bfloat", "float"))
    target = np.dtype(NUMPY[dtype])
    if dtype in FLOATS or dtype in SMALL:
        if dtype == "FP8E4M3FN" or dtype == "FP8E5M2":
            return rounded(x.astype(np.float32), dtype)
        if x.dtype in (np.int64, np.uint64, np.int32, np.uint32) and dtype == "BF16":
            return direct_bf16(x)
        if x.dtype in (np.int64, np.uint64) and dtype == "FP16":
            return rounded(np.clip(x, -70000, 70000).astype(np.float64), dtype)
        return rounded(x if dtype != "BF16" else x.astype(np.float32), dtype)
    if not source_float:
        return x.astype(target)  # low bits, sign or zero extended
    with np.errstate(all="ignore"):
        whole = to_whole(x.astype(np.float64), mode)
        low, high = (np.iinfo(target).min, np.iinfo(target).max) if target.itemsize >= 4 else (-(2**31), 2**31 - 1)
        out = np.zeros(x.shape, np.int64)
        fits = (whole > low) & (whole < high)
        out[fits] = whole[fits].astype(np.int64)
        out[whole <= low] = low
        out[whole >= high] = high
        return out.astype(target)  # NaN stays 0


def direct_bf16(x):
    """Integers to BF16 with one rounding."""
    out = np.zeros(x.shape, np.float32)
    for at, v in np.ndenumerate(x):
        v = int(v)
        m, sign = abs(v), -1.0 if v < 0 else 1.0
        shift = max(m.bit_length() - 8, 0)
        q, r = m >> shift, m & ((1 << shift) - 1)
        half = 1 << shift >> 1
        if shift and (r > half or (r == half and q & 1)):
            q += 1
        out[at] = sign * float(q << shift)
    return out.astype(ml_dtypes.bfloat16)


PAIRS = [(a, b, "a2a3sim") for a in COMMON for b in COMMON if a != b]
PAIRS += [(a, b, "a5sim") for a in COMMON + A5_INTEGERS for b in COMMON + A5_INTEGERS
          if a != b and (a in A5_INTEGERS or b in A5_INTEGERS or (a in FLOATS) != (b in FLOATS))]  # fmt: skip
PAIRS += [(a, b, "a5sim") for a in ("FP32", "FP16", "BF16") for b in SMALL]
PAIRS += [(b, a, "a5sim") for a in ("FP32", "FP16", "BF16") for b in SMALL]


def numbers(dtype, shape=SHAPE):
    if dtype in SMALL:
        return np.resize(np.arange(256, dtype=np.uint8), shape).view(NUMPY[dtype])
    x = operands(dtype, shape, 21)
    if dtype in FLOATS:
        flat = x.reshape(-1)
        ties = np.array([0.5, 1.5, 2.5, 3.5, -0.5, -1.5, -2.5, -3.5, 300.0, -300.0, 65535.5, 2147483648.0, 4294967296.0, -2147483904.0, 9.3e18, -9.3e18, 127.5, 255.5, -128.5])  # fmt: skip
        flat[10 : 10 + len(ties)] = rounded(ties, dtype)
    return x


@pytest.mark.parametrize("a,b,platform", PAIRS)
def test_pairs_and_modes(a, b, platform):  # O-1102, O-1103, O-1104, O-1105, O-1106, O-312, B-15, B-16
    x = numbers(a)
    modes = list(MODES) if a not in SMALL and b not in SMALL else ["round"]
    body, outs, wants = ["tx = pl.load(x, [0, 0], [5, 32])"], {}, []

    def add(expression, mode, tile):
        name = f"o{len(wants)}"
        outs[name] = np.full(SHAPE, 7, NUMPY[b])
        wants.append((expression, reference(x, b, mode)))
        body.append(f"{name} = pl.store({expression}, [0, 0], {name})" if tile else f"{name}[:, :] = {expression}")

    add(f"pl.cast(x, pl.{b})", "round", False)
    add(f"pl.tensor.cast(input=x, target_type=pl.{b})", "round", False)
    add(f"pl.cast(tx, pl.{b})", "round", True)
    add(f"pl.tile.cast(tile=tx, target_type=pl.{b})", "round", True)
    for mode in modes:
        add(f"pl.cast(x, pl.{b}, mode='{mode}')", mode, False)
        add(f"pl.cast(tx, pl.{b}, mode={MODES[mode]})", mode, True)
    run("\n".join(body), platform, x=x, **outs)
    for (expression, want), got in zip(wants, outs.values(), strict=True):
        same(got, want, f"cast {a}:{expression}", limit=0)


@pytest.mark.parametrize("a", ["FP16", "BF16", "INT16", "UINT16"])
@pytest.mark.parametrize("b", COMMON + A5_INTEGERS + SMALL)
def test_every_sixteen_bit_pattern(a, b):  # O-312, O-1103, O-1104, O-1105: all modes, against NumPy and PyTorch
    if a == b or (b in SMALL and a not in FLOATS):
        return
    x = np.arange(65536, dtype=np.uint16).view(NUMPY[a]).reshape(256, 256)
    modes = list(MODES) if a in FLOATS and b not in FLOATS + SMALL else ["round"]
    outs = {f"o{i}": np.zeros(x.shape, NUMPY[b]) for i in range(len(modes))}
    body = "for i in pl.range(8):\n    t = pl.load(x, [i * 32, 0], [32, 256])\n" + "\n".join(
        f"    o{i} = pl.store(pl.cast(t, pl.{b}, mode='{m}'), [i * 32, 0], o{i})" for i, m in enumerate(modes)
    )
    run(body, "a5sim", x=x, **outs)
    for i, mode in enumerate(modes):
        same(outs[f"o{i}"], reference(x, b, mode), f"cast {a}:every pattern to {b}, {mode}")
    kinds = {"FP16": torch.float16, "BF16": torch.bfloat16, "FP32": torch.float32, "INT16": torch.int16,
             "INT8": torch.int8, "UINT8": torch.uint8, "INT32": torch.int32, "INT64": torch.int64,
             "FP8E5M2": torch.float8_e5m2}  # fmt: skip
    if b in FLOATS and a in kinds:
        t = torch.from_numpy(x.view(np.int16).copy()).view(kinds[a]).to(kinds[b])
        views = {2: torch.int16, 4: torch.int32}
        want = t.view(views[t.element_size()]).numpy().view(NUMPY[b])
        same(outs["o0"], want, f"cast {a}:every pattern to {b}, PyTorch")


@pytest.mark.parametrize(
    "b", ["FP16", "BF16", "FP8E4M3FN", "FP8E5M2", "INT8", "UINT8", "INT16", "INT32", "INT64", "UINT16", "UINT32"]
)
def test_many_fp32(b):  # O-312, O-1103, O-1104: all exponents, neighbours of ties
    bits = np.random.default_rng(22).integers(0, 1 << 32, (128, 512), dtype=np.uint32)
    halves = np.arange(65536, dtype=np.uint32)[::4] << 16
    bits[:32] = (halves | 0x8000).reshape(32, 512)  # ties of BF16
    bits[32:64] = (halves | 0x7FFF).reshape(32, 512)
    every = np.arange(65536, dtype=np.uint16).view(np.float16)[::4].astype(np.float32).view(np.uint32)
    bits[64:96] = (every + 0x1000).reshape(32, 512)  # ties of FP16
    x = bits.view(np.float32)
    o, o1 = np.zeros(x.shape, NUMPY[b]), np.zeros(x.shape, NUMPY[b])
    body = f"""
    for i in pl.range(8):
        o[i * 16 : i * 16 + 16, :] = pl.cast(x[i * 16 : i * 16 + 16, :], pl.{b})
        o1 = pl.store(pl.cast(pl.load(x, [i * 16, 0], [16, 512]), pl.{b}), [i * 16, 0], o1)
    """
    run(body, "a5sim", x=x, o=o, o1=o1)
    want = reference(x, b)
    same(o, want, f"cast FP32:many numbers to {b}")
    same(o1, want, f"cast FP32:many numbers to {b}, tile")


def pack(codes):
    return (codes[:, 0::2] | codes[:, 1::2] << 4).astype(np.uint8)


def unpack(data):
    return np.stack([data & 15, data >> 4], -1).reshape(data.shape[0], -1)


@pytest.mark.parametrize("mode", MODES)
def test_four_bit_integers(mode):  # O-1104, O-1106: an end of a conversion on a2
    x = np.resize(
        np.array([-9, -8.5, -8, -7.5, -1.5, -0.5, 0, 0.5, 1.5, 6.5, 7, 7.5, 100, -100, np.inf, np.nan], np.float16),
        (4, 32),
    )
    o0, o1 = np.zeros((4, 32), np.float16), np.zeros((4, 32), np.float16)
    run(
        f"""
        o0 = pl.store(pl.cast(pl.cast(pl.load(x, [0, 0], [4, 32]), pl.INT4, "{mode}"), pl.FP16), [0, 0], o0)
        o1[:, :] = pl.cast(pl.cast(x, pl.INT4, mode="{mode}"), pl.FP16)
        """,
        x=x, o0=o0, o1=o1,
    )  # fmt: skip
    want = np.clip(np.nan_to_num(to_whole(x.astype(np.float64), mode), nan=0), -8, 7)
    np.testing.assert_array_equal(o0, want)
    np.testing.assert_array_equal(o1, want)


@pytest.mark.parametrize("b", ["FP32", "BF16", "FP8E4M3FN"])
def test_four_bit_floats(b):  # O-1107, O-1106
    codes = np.resize(np.arange(16, dtype=np.uint8), (4, 32))
    values = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])[codes & 7] * np.where(codes & 8, -1, 1)
    wide = np.zeros((4, 32), NUMPY[b])
    again = np.zeros((4, 16), np.uint8)
    run(
        f"""
        t = pl.cast(pl.load(x, [0, 0], [4, 32]), pl.{b})
        o0 = pl.store(t, [0, 0], o0)
        o1 = pl.store(pl.cast(t, pl.FP4), [0, 0], o1)
        """,
        "a5sim", dtypes={"x": "FP4", "o1": "FP4"}, x=pack(codes), o0=wide, o1=again,
    )  # fmt: skip
    np.testing.assert_array_equal(wide.astype(np.float32), values)
    np.testing.assert_array_equal(unpack(again), codes)


def test_rounding_to_four_bit_floats():  # O-1103: nearest, ties to even
    x = np.linspace(-6, 6, 128, dtype=np.float32).reshape(4, 32)
    x[0, :8] = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, -5]
    o = np.zeros((4, 16), np.uint8)
    run("o = pl.store(pl.cast(pl.load(x, [0, 0], [4, 32]), pl.FP4), [0, 0], o)", "a5sim", dtypes={"o": "FP4"}, x=x, o=o)
    np.testing.assert_array_equal(unpack(o), x.astype(ml_dtypes.float4_e2m1fn).view(np.uint8))


def test_valid_region_and_order():  # O-1102, B-17
    x = operands("FP32", (1, 32), 23)
    o = np.full((32, 1), 9, np.float16)
    run(
        """
        t = pl.reshape(pl.load(x, [0, 0], [1, 32]), [32, 1])
        o = pl.store(pl.cast(pl.set_validshape(t, 11, 1), pl.FP16), [0, 0], o)
        """,
        x=x, o=o,
    )  # fmt: skip
    want = np.full((32, 1), 9, np.float16)
    want[:11] = rounded(x.reshape(32, 1)[:11], "FP16")
    same(o, want, "cast FP32:column")


@pytest.mark.parametrize("shape", [(0, 4), (3, 0), (1, 1), (4, 31)])
def test_empty_and_ragged_regions(shape):  # O-1102, O-213
    x = operands("FP32", SHAPE, 24)
    x[shape[0] :], x[:, shape[1] :] = np.nan, np.nan
    o = np.full(SHAPE, 9, np.int8)
    run(
        """
        t = pl.set_validshape(pl.load(x, [0, 0], [5, 32]), r, c)
        o = pl.store(pl.cast(t, pl.INT8, "floor"), [0, 0], o)
        """,
        "a2a3sim", {"r": ("INT32", shape[0]), "c": ("INT32", shape[1])}, x=x, o=o,
    )  # fmt: skip
    want = np.full(SHAPE, 9, np.int8)
    want[: shape[0], : shape[1]] = reference(x[: shape[0], : shape[1]], "INT8", "floor")
    same(o, want, "cast FP32:region")
