# SPDX-License-Identifier: Apache-2.0
"""Scalar arguments of compiled programs (04 ARG-5, ARG-6, 01 L-9)."""

from __future__ import annotations

import ctypes

import numpy as np
import pypto.language as pl
import pytest
from pypto import ir


def program(dtype):
    """Adds a scalar, as FP32 or INT32, to every element."""
    if dtype.is_float():

        @pl.program
        class Add:
            @pl.function(type=pl.FunctionType.Orchestration)
            def main(
                self, x: pl.Tensor[[8, 16], pl.FP32], n: pl.Scalar[dtype], y: pl.Out[pl.Tensor[[8, 16], pl.FP32]]
            ) -> pl.Tensor[[8, 16], pl.FP32]:
                with pl.at(level=pl.Level.CORE_GROUP):
                    y[:] = pl.add(x, pl.cast(n, pl.FP32))
                return y

        return Add

    @pl.program
    class AddInt:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: pl.Tensor[[8, 16], pl.INT32], n: pl.Scalar[dtype], y: pl.Out[pl.Tensor[[8, 16], pl.INT32]]
        ) -> pl.Tensor[[8, 16], pl.INT32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                y[:] = pl.add(x, pl.cast(n, pl.INT32))
            return y

    return AddInt


@pytest.fixture(scope="module")
def added(tmp_path_factory):
    made = {}

    def run(dtype, value):
        if str(dtype) not in made:
            made[str(dtype)] = ir.compile(program(dtype), output_dir=tmp_path_factory.mktemp("out"), dump_passes=False)
        kind = np.float32 if dtype.is_float() else np.int32
        x = np.arange(128, dtype=kind).reshape(8, 16)
        y = np.zeros((8, 16), kind)
        made[str(dtype)](x, value, y)
        difference = y - x
        assert (difference == difference[0, 0]).all()
        return difference[0, 0]

    return run


@pytest.mark.parametrize(
    "value",
    [-7, np.int8(-7), np.int64(-7), ctypes.c_int32(-7), np.array(-7), np.array(-7, np.int16)],
    ids=lambda v: f"{type(v).__name__}",
)
def test_integers(added, value):
    assert added(pl.INT32, value) == -7


def test_torch_scalar(added):
    torch = pytest.importorskip("torch")
    assert added(pl.INT32, torch.tensor(9)) == 9
    assert added(pl.FP32, torch.tensor(0.5)) == 0.5


@pytest.mark.parametrize(("dtype", "ctype"), [(pl.INT8, "c_int8"), (pl.INT16, "c_int16"), (pl.INT64, "c_int64"),
                                              (pl.INDEX, "c_int64"), (pl.UINT8, "c_uint8"), (pl.UINT16, "c_uint16"),
                                              (pl.UINT32, "c_uint32")])  # fmt: skip
def test_ctypes_by_dtype(added, dtype, ctype):
    assert added(dtype, getattr(ctypes, ctype)(5)) == 5
    other = ctypes.c_float(5) if ctype != "c_float" else ctypes.c_int8(5)
    with pytest.raises(TypeError) as info:
        added(dtype, other)
    assert "c_float" in str(info.value) and ctype in str(info.value) and "'n'" in str(info.value)


@pytest.mark.parametrize("value", [1.5, np.float32(1.5), np.float64(1.5), ctypes.c_float(1.5), np.array(1.5)],
                         ids=lambda v: type(v).__name__)  # fmt: skip
def test_floats(added, value):
    assert added(pl.FP32, value) == 1.5


def test_whole_numbers_for_float_parameters(added):
    assert added(pl.FP32, 3) == 3.0 and added(pl.FP32, True) == 1.0


def test_half_precision(added):  # ARG-6, L-9
    assert added(pl.FP16, 1.0 + 2.0**-11) == 1.0  # halfway: to even
    assert added(pl.FP16, 1.0 + 3 * 2.0**-11) == 1.0 + 2.0**-9
    assert added(pl.BF16, 1.01953125) == 1.015625
    assert added(pl.BF16, 1.02734375) == 1.03125
    assert added(pl.FP16, ctypes.c_uint16(0x3E00)) == 1.5
    assert added(pl.BF16, ctypes.c_uint16(0xBFC0)) == -1.5
    assert added(pl.BF16, ctypes.c_float(2.5)) == 2.5


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (pl.INT8, 300),
        (pl.INT8, -129),
        (pl.UINT8, -1),
        (pl.UINT8, 256),
        (pl.INT32, 2**31),
        (pl.INT32, 1.5),
        (pl.INT64, 2**63),
        (pl.INT32, float("nan")),
    ],
)
def test_values_that_do_not_fit(added, dtype, value):
    with pytest.raises(ValueError, match="'n'") as info:
        added(dtype, value)
    assert str(dtype) in str(info.value) and str(value) in str(info.value)


def test_limits_fit(added):
    assert added(pl.INT8, -128) == -128 and added(pl.UINT8, 255) == 255
    assert added(pl.INT32, 4.0) == 4


def test_arrays_and_other_objects(added):
    with pytest.raises(TypeError, match=r"Parameter 'n' is a scalar \(int32\); got numpy.ndarray"):
        added(pl.INT32, np.zeros(1, np.int32))
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"Parameter 'n' is a scalar \(int32\); got torch.Tensor"):
        added(pl.INT32, torch.zeros(2, dtype=torch.int32))
    with pytest.raises(TypeError, match=r"is a scalar .*; got str"):
        added(pl.INT32, "5")


def test_bool_parameter(tmp_path):
    @pl.program
    class Choose:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: pl.Tensor[[8, 16], pl.FP32], flag: pl.Scalar[pl.BOOL], y: pl.Out[pl.Tensor[[8, 16], pl.FP32]]
        ) -> pl.Tensor[[8, 16], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0, 0], [8, 16])
                if flag:
                    t = pl.neg(t)
                y = pl.store(t, [0, 0], y)
            return y

    made = ir.compile(Choose, output_dir=tmp_path, dump_passes=False)
    x = np.random.default_rng(5).standard_normal((8, 16)).astype(np.float32)
    for flag, sign in ((True, -1), (False, 1), (np.True_, -1), (0, 1), (ctypes.c_bool(True), -1)):
        y = np.zeros_like(x)
        made(x, flag, y)
        np.testing.assert_array_equal(y, sign * x)
    with pytest.raises(ValueError, match="'flag'"):
        made(x, 2, np.zeros_like(x))
