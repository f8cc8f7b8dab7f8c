# SPDX-License-Identifier: Apache-2.0
"""Single operations of plain tiles, which run without fresh storage, on every instruction set."""

import ml_dtypes
import numpy as np
import pypto.language as pl
import pytest
from pypto import _core
from pypto.runtime import RunConfig, SimOptions

SIM = RunConfig(platform="a2a3sim", sim=SimOptions(threads=1))
EVERY = np.arange(65536, dtype=np.uint16)
# Zeros, subnormals, ones, the greatest numbers, infinities, and quiet and signalling NaN of both signs.
SPECIAL = np.array(
    [
        *(0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x3C00, 0xBC01, 0x3BFF, 0x5640, 0x7BFF, 0xFBFF, 0x7C00, 0xFC00),
        *(0x7E00, 0xFE01, 0x7C01, 0xFD55, 0x7FFF),
    ],
    np.uint16,
)


@pytest.fixture(params=[(name, chains) for name in _core.instruction_sets() for chains in (True, False)], ids=str)
def way(request):
    name, chains = request.param
    _core.use_instruction_set(name)
    _core.set_emit_debug(False, chains)
    yield request.param
    _core.use_instruction_set("")
    _core.set_emit_debug(False, True)


def four(shape):
    @pl.jit
    def program(
        x: pl.Tensor[shape, pl.FP16],
        y: pl.Tensor[shape, pl.FP16],
        s: pl.Out[pl.Tensor[shape, pl.FP16]],
        d: pl.Out[pl.Tensor[shape, pl.FP16]],
        p: pl.Out[pl.Tensor[shape, pl.FP16]],
        q: pl.Out[pl.Tensor[shape, pl.FP16]],
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            for r in pl.range(0, 16, 2):
                a, b = pl.load(x, [r, 0], [2, 4099]), pl.load(y, [r, 0], [2, 4099])
                s = pl.store(pl.add(a, b), [r, 0], s)
                d = pl.store(pl.sub(a, b), [r, 0], d)
                p = pl.store(pl.mul(a, b), [r, 0], p)
                q = pl.store(pl.div(a, b), [r, 0], q)
        return s, d, p, q

    return program


def canonical(x: np.ndarray) -> np.ndarray:
    """Bits of FP16 values, all NaN alike."""
    return np.where(np.isnan(x), np.uint16(0x7E00), x.view(np.uint16))


def test_fp16_arithmetic_is_fp32_rounded_once(way):  # 02 O-303, O-311, O-312
    shape = [16, 4099]  # ends within a vector
    program = four(shape)
    rng = np.random.default_rng(5)
    n = shape[0] * shape[1]
    seen = []
    for k in range(len(SPECIAL) + 2):
        x = np.resize(EVERY, n)
        y = np.full(n, SPECIAL[k]) if k < len(SPECIAL) else rng.permutation(x)
        if k == len(SPECIAL) + 1:  # neighbours in size, whose quotients are near 1
            y = (x + rng.integers(0, 9, n).astype(np.uint16)).astype(np.uint16)
        x, y = (v.view(np.float16).reshape(shape) for v in (x, y))
        outs = [np.zeros(shape, np.float16) for _ in range(4)]
        program(x, y, *outs, config=SIM)
        with np.errstate(all="ignore"):
            wide = x.astype(np.float32), y.astype(np.float32)
            for out, op in zip(outs, (np.add, np.subtract, np.multiply, np.divide), strict=True):
                want = op(*wide).astype(np.float16)
                np.testing.assert_array_equal(canonical(out), canonical(want), err_msg=f"{op.__name__} {k}")
        bits = np.stack([o.view(np.uint16) for o in outs])
        nan = (bits & 0x7FFF) > 0x7C00
        assert np.all((bits[nan] & 0x7FFF) == 0x7E00)  # the NaN that conversion makes
        one = ~(np.isnan(x) & np.isnan(y))  # of two NaN, either may be handed on
        seen.append(bits[:, one])
    first = _BITS.setdefault("fp16", seen)
    for got, want in zip(seen, first, strict=True):
        np.testing.assert_array_equal(got, want)


_BITS: dict[str, list[np.ndarray]] = {}


@pytest.mark.parametrize("dtype", ["FP16", "BF16"])
def test_neg_and_abs_of_every_pattern(way, dtype):  # 02 O-312
    shape, dt = [16, 4096], pl.FP16 if dtype == "FP16" else pl.BF16

    @pl.jit
    def program(x: pl.Tensor[shape, dt], n: pl.Out[pl.Tensor[shape, dt]], a: pl.Out[pl.Tensor[shape, dt]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for r in pl.range(0, 16, 4):
                t = pl.load(x, [r, 0], [4, 4096])
                n = pl.store(pl.neg(t), [r, 0], n)
                a = pl.store(pl.abs(t), [r, 0], a)
        return n, a

    np_dtype = np.float16 if dtype == "FP16" else ml_dtypes.bfloat16
    outs = [np.zeros(shape, np_dtype) for _ in range(2)]
    program(EVERY.view(np_dtype).reshape(shape), *outs, config=SIM)
    size = EVERY & 0x7FFF
    if dtype == "FP16":
        clean = np.where(size > 0x7C00, np.uint16(0x7E00), size)
    else:
        clean = np.where(size > 0x7F80, size | 0x40, size)
    np.testing.assert_array_equal(outs[0].view(np.uint16).ravel(), clean | (~EVERY & 0x8000))
    np.testing.assert_array_equal(outs[1].view(np.uint16).ravel(), clean)


@pytest.mark.parametrize("source", ["INT8", "UINT8", "INT16"])
def test_small_integers_to_fp16(way, source):  # 02 O-1103, O-312
    shape, dt = [8, 8197], getattr(pl, source)

    @pl.jit
    def program(x: pl.Tensor[shape, dt], o: pl.Out[pl.Tensor[shape, pl.FP16]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for r in pl.range(8):
                o = pl.store(pl.cast(pl.load(x, [r, 0], [1, 8197]), pl.FP16), [r, 0], o)
        return o

    x = np.resize(np.arange(65536), shape).astype(np.dtype(source.lower()))
    o = np.zeros(shape, np.float16)
    program(x, o, config=SIM)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(o, x.astype(np.float32).astype(np.float16))


@pytest.mark.parametrize("mode", ["rint", "round", "floor", "ceil", "trunc"])
def test_fp32_to_int32_saturates(way, mode):  # 02 O-1103, O-1104
    shape = [4, 331]

    @pl.jit
    def program(x: pl.Tensor[shape, pl.FP32], o: pl.Out[pl.Tensor[shape, pl.INT32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.store(pl.cast(pl.load(x, [0, 0], shape), pl.INT32, mode=mode), [0, 0], o)
        return o

    rng = np.random.default_rng(3)
    x = (rng.standard_normal(shape) * 10.0 ** rng.integers(-1, 12, shape)).astype(np.float32)
    x[0] = rng.integers(-9, 9, shape[1]) + 0.5  # ties; all of the row can be represented
    odd = [2.0**31, -(2.0**31), 2147483520.0, -2147483648.0, np.inf, -np.inf, np.nan, -np.nan, 0.49999997, -0.0]
    x[2, 5 : 5 + len(odd)] = odd
    o = np.zeros(shape, np.int32)
    program(x, o, config=SIM)
    wide = x.astype(np.float64)
    rounded = {
        "rint": np.rint,
        "round": lambda v: np.copysign(np.floor(np.abs(v) + 0.5), v),
        "floor": np.floor,
        "ceil": np.ceil,
        "trunc": np.trunc,
    }[mode](wide)
    want = np.clip(np.nan_to_num(rounded, nan=0.0), -(2.0**31), 2.0**31 - 1).astype(np.int64).astype(np.int32)
    np.testing.assert_array_equal(o, want)


def test_results_do_not_share_what_still_lives(way):  # 01 L-154, 02 O-210
    """Storage is used again only when nothing refers to the older value."""
    shape = [4, 24]

    @pl.jit
    def program(x: pl.Tensor[shape, pl.FP32], o: pl.Out[pl.Tensor[[16, 24], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.load(x, [0, 0], shape)
            kept = pl.neg(a)
            last = pl.mul(a, 3.0)
            for _ in pl.range(5):
                part = last[0:2, 0:24]
                kept = last
                last = pl.add(last, a)
                a = pl.add(a, 1.0)
            o = pl.store(a, [0, 0], o)
            o = pl.store(kept, [4, 0], o)
            o = pl.store(last, [8, 0], o)
            o = pl.store(part, [12, 0], o)
        return o

    x = np.random.default_rng(8).integers(-99, 99, shape).astype(np.float32)
    o = np.zeros([16, 24], np.float32)
    program(x, o, config=SIM)
    a, last = x.copy(), x * 3
    for _ in range(5):
        part, kept = last[:2], last
        last, a = last + a, a + 1
    np.testing.assert_array_equal(o[:14], np.concatenate([a, kept, last, part]))


@pytest.mark.parametrize("dtype", ["INT8", "FP16", "FP32"])
@pytest.mark.parametrize(("m", "k", "n"), [(16, 16, 16), (16, 64, 16), (32, 32, 16), (16, 48, 32), (48, 16, 64)])
def test_products_in_a_loop(way, dtype, m, k, n):  # 02 O-307, O-1802
    dt, acc = getattr(pl, dtype), pl.INT32 if dtype == "INT8" else pl.FP32
    a_shape, b_shape = [m, k], [k, n]

    @pl.jit
    def program(a: pl.Tensor[[2 * m, k], dt], b: pl.Tensor[b_shape, dt], o: pl.Out[pl.Tensor[[3 * m, n], acc]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            right = pl.load(b, [0, 0], b_shape, target_memory=pl.Mem.Mat)
            kept = pl.matmul(pl.load(a, [0, 0], a_shape, target_memory=pl.Mem.Mat), right, out_dtype=acc)
            for i in pl.range(2):
                left = pl.load(a, [i * m, 0], a_shape, target_memory=pl.Mem.Mat)
                c = pl.matmul(left, right, out_dtype=acc)
                o = pl.store(c, [i * m, 0], o)
            o = pl.store(kept, [2 * m, 0], o)
        return o

    rng = np.random.default_rng(m + k + n)
    low, high = (-128, 128) if dtype == "INT8" else (-8, 9)
    x, y = rng.integers(low, high, (2 * m, k)), rng.integers(low, high, (k, n))
    x[3], y[:, 2] = low, low  # the extreme products
    np_dtype = {"INT8": np.int8, "FP16": np.float16, "FP32": np.float32}[dtype]
    o = np.zeros([3 * m, n], np.int32 if dtype == "INT8" else np.float32)
    program(x.astype(np_dtype), y.astype(np_dtype), o, config=SIM)
    np.testing.assert_array_equal(o, np.concatenate([x @ y, x[:m] @ y]))


def test_fp32_to_fp16_with_and_without_nan(way):  # 02 O-312
    shape = [4, 1031]

    @pl.jit
    def program(x: pl.Tensor[shape, pl.FP32], o: pl.Out[pl.Tensor[shape, pl.FP16]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.store(pl.cast(pl.load(x, [0, 0], shape), pl.FP16), [0, 0], o)
        return o

    rng = np.random.default_rng(6)
    x = (rng.standard_normal(shape) * 10.0 ** rng.integers(-9, 6, shape)).astype(np.float32)
    x[1, 5:1000:97] = np.nan
    bits = x.view(np.uint32)
    bits[2, 3::211] = 0x7F800001  # signalling
    bits[2, 4::211] = 0xFFC12345
    o = np.zeros(shape, np.float16)
    program(x, o, config=SIM)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(canonical(o), canonical(x.astype(np.float16)))
    got = o.view(np.uint16)[np.isnan(x)]
    np.testing.assert_array_equal(got, 0x7E00 | (bits[np.isnan(x)] >> 16 & 0x8000))
