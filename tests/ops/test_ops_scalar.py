# SPDX-License-Identifier: Apache-2.0
"""Operators of run-time scalars in kernels and in the control plane, against NumPy (01 L-17 - L-19)."""

import operator

import numpy as np
import pypto.language as pl
import pytest
from opkit import define
from pypto import ir
from pypto.language.parser.diagnostics import ParserError
from pypto.runtime import RunConfig

ARITHMETIC = {
    "scalar_add": ("+", np.add),
    "scalar_sub": ("-", np.subtract),
    "scalar_mul": ("*", np.multiply),
    "scalar_floordiv": ("//", np.floor_divide),
    "scalar_mod": ("%", np.mod),
    "scalar_lshift": ("<<", np.left_shift),
    "scalar_rshift": (">>", np.right_shift),
}
COMPARISON = {
    "scalar_lt": ("<", operator.lt),
    "scalar_le": ("<=", operator.le),
    "scalar_gt": (">", operator.gt),
    "scalar_ge": (">=", operator.ge),
    "scalar_eq": ("==", operator.eq),
    "scalar_ne": ("!=", operator.ne),
}
LOGIC = {"scalar_and": ("and", np.logical_and), "scalar_or": ("or", np.logical_or)}
FLOAT = {"scalar_add": np.add, "scalar_sub": np.subtract, "scalar_mul": np.multiply, "scalar_truediv": np.divide}
TYPES = {"INT32": np.int32, "INT64": np.int64, "FP32": np.float32}
PAIRS = [(7, 3), (-7, 3), (7, -3), (-7, -3), (0, 5), (5, 5), (-1, 4), (2**31 - 1, 2), (-(2**31), 31), (1, 0), (0, 0)]


def loop(expression: str, dtype: str, out: str, count: int):
    return define(
        f"""
@pl.jit
def f(a: pl.Tensor[[{count}], pl.{dtype}], b: pl.Tensor[[{count}], pl.{dtype}], o: pl.Out[pl.Tensor[[{count}], pl.{out}]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range({count}):
            s = pl.read(a, [i])
            t = pl.read(b, [i])
            pl.write(o, [i], {expression})
    return o
"""
    )["f"]


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize("dtype", ["INT32", "INT64"])
@pytest.mark.parametrize("name", ARITHMETIC)
def test_integer_arithmetic(name, dtype, platform):  # L-17: floors like Python; wraps in its width
    symbol, reference = ARITHMETIC[name]
    pairs = [p for p in PAIRS if p[1] != 0 or name not in ("scalar_floordiv", "scalar_mod")]
    if name.endswith("shift"):
        pairs = [(a, b & 15) for a, b in pairs]
    a, b = (np.array(x, dtype=TYPES[dtype]) for x in zip(*pairs, strict=True))
    o = np.full_like(a, 99)
    loop(f"s {symbol} t", dtype, dtype, len(a))(a, b, o, config=RunConfig(platform=platform))
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(o, reference(a, b))


@pytest.mark.parametrize("name", FLOAT)
def test_float_arithmetic(name):  # L-17: in FP32
    symbol = {"scalar_truediv": "/"}.get(name) or ARITHMETIC[name][0]
    rng = np.random.default_rng(3)
    a, b = (np.append(rng.standard_normal(20), [0.0, -0.0, 1e30, np.inf]).astype(np.float32) for _ in range(2))
    b = b[::-1].copy()
    o = np.zeros_like(a)
    loop(f"s {symbol} t", "FP32", "FP32", len(a))(a, b, o)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(o, FLOAT[name](a, b))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", COMPARISON)
def test_comparison(name, dtype):  # L-17
    symbol, reference = COMPARISON[name]
    a, b = (np.array(x, dtype=np.float64).astype(TYPES[dtype]) for x in zip(*PAIRS, strict=True))
    if dtype == "FP32":
        a[0], b[1] = np.nan, np.nan
    o = np.full(len(a), 9, np.int32)
    loop(f"pl.cast(s {symbol} t, pl.INT32)", dtype, "INT32", len(a))(a, b, o)
    np.testing.assert_array_equal(o, reference(a, b).astype(np.int32))


@pytest.mark.parametrize("name", LOGIC)
def test_logic(name):  # L-17: any integer counts as true unless it is 0
    word, reference = LOGIC[name]
    a, b = np.array([0, 0, 1, 1, -3, 0, 8, -1], np.int32), np.array([0, 1, 0, 1, 0, 5, 2, 0], np.int32)
    o = np.full(len(a), 9, np.int32)
    loop(f"pl.cast((s > 0) {word} (t > 0), pl.INT32)", "INT32", "INT32", len(a))(a, b, o)
    np.testing.assert_array_equal(o, reference(a > 0, b > 0).astype(np.int32))
    loop(f"pl.cast(s {word} t, pl.INT32)", "INT32", "INT32", len(a))(a, b, o)
    np.testing.assert_array_equal(o, reference(a, b).astype(np.int32))
    loop(f"pl.cast(not (s {word} t), pl.INT32)", "INT32", "INT32", len(a))(a, b, o)
    np.testing.assert_array_equal(o, 1 - reference(a, b).astype(np.int32))


def narrow(value, dtype):
    """A float32 array rounded to the dtype (nearest, ties to even), as float32."""
    value = np.asarray(value, np.float32)
    if dtype == "FP16":
        return value.astype(np.float16).astype(np.float32)
    bits = value.view(np.uint32).astype(np.uint64)
    kept = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).astype(np.uint32)
    return kept.view(np.float32)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("dtype", ["FP16", "BF16"])
def test_narrow_floats_round_after_every_operation(dtype):  # L-17: in FP32, then to the promoted dtype
    rng = np.random.default_rng(9)
    a, b = (narrow(np.append(rng.uniform(1, 2, 30), [1.0009765625, 1.5, 255.0, 2048.0]), dtype) for _ in range(2))
    b = narrow(b[::-1] * np.float32(0.37), dtype)
    count = len(a)
    text = f"""
@pl.jit
def f(a: pl.Tensor[[{count}], pl.{dtype}], b: pl.Tensor[[{count}], pl.{dtype}], o: pl.Out[pl.Tensor[[5, {count}], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range({count}):
            s = pl.read(a, [i])
            t = pl.read(b, [i])
            pl.write(o, [0, i], pl.cast(s + t, pl.FP32))
            pl.write(o, [1, i], pl.cast(s - t, pl.FP32))
            pl.write(o, [2, i], pl.cast(pl.mul(s, t), pl.FP32))
            pl.write(o, [3, i], pl.cast(s / t, pl.FP32))
            pl.write(o, [4, i], pl.cast(s * t + s - t, pl.FP32))
    return o
"""
    o = np.zeros((5, count), np.float32)
    if dtype == "FP16":
        x, y = a.astype(np.float16), b.astype(np.float16)
    else:
        x, y = ((v.view(np.uint32) >> 16).astype(np.uint16) for v in (a, b))
    define(text)["f"](x, y, o)
    product = narrow(a * b, dtype)
    chain = narrow(narrow(product + a, dtype) - b, dtype)
    want = [narrow(a + b, dtype), narrow(a - b, dtype), product, narrow(a / b, dtype), chain]
    np.testing.assert_array_equal(o, want)
    assert (chain != narrow(a * b + a - b, dtype)).any()  # the roundings in between are seen


@pytest.mark.parametrize("symbol", ["<<", ">>"])
@pytest.mark.parametrize("count", [-1, 32, 40])
def test_shift_counts_outside_the_width(symbol, count):  # L-17: diagnosed when the count is known
    a, b, o = np.array([6, -9], np.int32), np.array([31, count], np.int32), np.zeros(2, np.int32)
    with pytest.raises(Exception, match="shift count") as info:
        loop(f"s {symbol} t", "INT32", "INT32", 2)(a, b, o)
    assert str(count) in str(info.value)
    with pytest.raises(ParserError, match="shift") as info:
        loop(f"s {symbol} {count}", "INT32", "INT32", 2)(a, b, o)
    assert str(count) in str(info.value)


@pl.jit
def choose(n: pl.Tensor[[2], pl.INT32], x: pl.Tensor[[8, 32], pl.FP32], y: pl.Out[pl.Tensor[[8, 32], pl.FP32]]):
    a = pl.read(n, [0])
    b = pl.read(n, [1])
    if a >= 2 or b <= -1:
        if a > 5 and b != 0:
            with pl.at(level=pl.Level.CORE_GROUP):
                y[:] = pl.mul(x, 2.0)
        else:
            with pl.at(level=pl.Level.CORE_GROUP):
                y[:] = pl.mul(x, 3.0)
    else:
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.mul(x, -1.0)
    return y


@pytest.mark.parametrize("a,b", [(2, 0), (1, -1), (6, 1), (6, 0), (1, 0), (5, 7)])
def test_conditions_of_the_control_plane(a, b):  # L-24, L-161
    x = np.random.default_rng(4).standard_normal((8, 32)).astype(np.float32)
    y = np.zeros_like(x)
    choose(np.array([a, b], np.int32), x, y)
    want = (2 if a > 5 and b != 0 else 3) if a >= 2 or b <= -1 else -1
    np.testing.assert_array_equal(y, x * np.float32(want))


FFTS = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, ws: pl.Tensor[[{size}], pl.{dtype}], x: pl.Tensor[[8, 32], pl.FP32], y: pl.Out[pl.Tensor[[8, 32], pl.FP32]]):
        pl.system.set_ffts(ws)
        y = pl.store(pl.mul(pl.load(x, [0, 0], [8, 32]), 3.0), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, ws: pl.Tensor[[{size}], pl.{dtype}], x: pl.Tensor[[8, 32], pl.FP32], y: pl.Out[pl.Tensor[[8, 32], pl.FP32]]):
        y = self.k(ws, x, y)
        return y
"""


def test_workspace_of_events():  # O-2303: declared, and without an effect
    x = np.random.default_rng(5).standard_normal((8, 32)).astype(np.float32)
    ws, y = np.arange(256, dtype=np.int64), np.zeros_like(x)
    ir.compile(define(FFTS.format(size=256, dtype="INT64"))["P"], platform="a2a3sim", dump_passes=False)(ws, x, y)
    np.testing.assert_array_equal(y, x * np.float32(3))
    np.testing.assert_array_equal(ws, np.arange(256))
    for size, dtype, word in ((255, "INT64", "256"), (256, "INT32", "INT64")):
        with pytest.raises(ParserError, match=word):
            define(FFTS.format(size=size, dtype=dtype))
