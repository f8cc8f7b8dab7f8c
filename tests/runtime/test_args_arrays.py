# SPDX-License-Identifier: Apache-2.0
"""Array arguments of compiled programs: every kind of host array, in place; refusals (04 sections 3 and 8)."""

from __future__ import annotations

import array
import warnings

import numpy as np
import pypto.language as pl
import pytest
from pypto import ir

ROWS, COLS = 8, 16


def program(dtype, rows=ROWS, cols=COLS):
    """A program that adds an array to itself, element type by element type."""

    @pl.program
    class Double:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self, x: pl.Tensor[[rows, cols], dtype], y: pl.Out[pl.Tensor[[rows, cols], dtype]]
        ) -> pl.Tensor[[rows, cols], dtype]:
            t = pl.load(x, [0, 0], [rows, cols])
            return pl.store(pl.add(t, t), [0, 0], y)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: pl.Tensor[[rows, cols], dtype], y: pl.Out[pl.Tensor[[rows, cols], dtype]]
        ) -> pl.Tensor[[rows, cols], dtype]:
            y = self.kernel(x, y)
            return y

    return Double


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    made = {}

    def get(dtype):
        if str(dtype) not in made:
            made[str(dtype)] = ir.compile(program(dtype), output_dir=tmp_path_factory.mktemp("out"), dump_passes=False)
        return made[str(dtype)]

    return get


def floats(dtype=np.float32, seed=3):
    return np.random.default_rng(seed).standard_normal((ROWS, COLS)).astype(dtype)


def integers(dtype, seed=4):
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(max(info.min, -60), min(info.max, 60), (ROWS, COLS)).astype(dtype)


# ------------------------------------------------------------------ kinds of arrays: ARG-1


def test_numpy_in_place(compiled):
    x, y = floats(), np.full((ROWS, COLS), 7, np.float32)
    address = y.ctypes.data
    assert compiled(pl.FP32)(x, y) is None
    np.testing.assert_array_equal(y, x + x)
    assert y.ctypes.data == address


def test_torch_in_place(compiled):
    torch = pytest.importorskip("torch")
    x, y = torch.from_numpy(floats()), torch.zeros(ROWS, COLS)
    compiled(pl.FP32)(x.requires_grad_(True), y)
    assert torch.equal(y, 2 * x.detach())


def test_mixed_libraries(compiled):
    torch = pytest.importorskip("torch")
    x, y = floats(), torch.zeros(ROWS, COLS)
    compiled(pl.FP32)(x, y)
    np.testing.assert_array_equal(y.numpy(), x + x)


def test_buffer_protocol(compiled):
    x = floats()
    out = array.array("f", [0.0] * (ROWS * COLS))
    compiled(pl.FP32)(memoryview(x), memoryview(out).cast("B").cast("f", [ROWS, COLS]))
    np.testing.assert_array_equal(np.frombuffer(out, np.float32).reshape(ROWS, COLS), x + x)


class OnlyDLPack:
    """An array that speaks DLPack and nothing else."""

    def __init__(self, wrapped):
        self.wrapped = wrapped

    def __dlpack__(self, **kwargs):
        return self.wrapped.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.wrapped.__dlpack_device__()


def test_dlpack(compiled):
    x, y = floats(), np.zeros((ROWS, COLS), np.float32)
    compiled(pl.FP32)(OnlyDLPack(x), OnlyDLPack(y))
    np.testing.assert_array_equal(y, x + x)


class OnlyInterface:
    """An array that has `__array_interface__` and nothing else."""

    def __init__(self, wrapped):
        self.wrapped = wrapped
        self.dtype = wrapped.dtype

    @property
    def __array_interface__(self):
        return self.wrapped.__array_interface__


def test_array_interface(compiled):
    x, y = floats(), np.zeros((ROWS, COLS), np.float32)
    compiled(pl.FP32)(OnlyInterface(x), OnlyInterface(y))
    np.testing.assert_array_equal(y, x + x)


# ------------------------------------------------------------------ element types: DTY-2, DTY-3


@pytest.mark.parametrize(
    ("dtype", "numpy_name"),
    [(pl.FP16, "float16"), (pl.INT16, "int16"), (pl.INT32, "int32")],
)
def test_element_types(compiled, dtype, numpy_name):
    x = floats(np.float16) if dtype == pl.FP16 else integers(numpy_name)
    y = np.zeros((ROWS, COLS), numpy_name)
    compiled(dtype)(x, y)
    np.testing.assert_array_equal(y, x + x)


def test_bfloat16_of_ml_dtypes(compiled):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x, y = floats().astype(ml_dtypes.bfloat16), np.zeros((ROWS, COLS), ml_dtypes.bfloat16)
    compiled(pl.BF16)(x, y)
    np.testing.assert_array_equal(y.view(np.uint16), (x + x).view(np.uint16))


def test_bfloat16_carrier(compiled):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = floats().astype(ml_dtypes.bfloat16)
    for carrier in (np.uint16, np.int16):
        y = np.zeros((ROWS, COLS), carrier)
        compiled(pl.BF16)(x.view(carrier), y)
        np.testing.assert_array_equal(y, (x + x).view(carrier))


def test_bfloat16_of_torch(compiled):
    torch = pytest.importorskip("torch")
    x, y = torch.from_numpy(floats()).bfloat16(), torch.zeros(ROWS, COLS, dtype=torch.bfloat16)
    compiled(pl.BF16)(x, y)
    assert torch.equal(y, x + x)


def test_unsigned_from_signed_and_back(compiled):  # DTY-3
    x, y = integers(np.int32), np.zeros((ROWS, COLS), np.int32)
    compiled(pl.INT32)(x.view(np.uint32), y.view(np.uint32))
    np.testing.assert_array_equal(y, x + x)


def test_other_types_are_refused(compiled):  # ARG-4
    with pytest.raises(TypeError) as info:
        compiled(pl.FP32)(floats(np.float64), np.zeros((ROWS, COLS), np.float32))
    text = str(info.value)
    for fragment in ("main", "'x'", "position 0", "fp32", "float64", "[8, 16]"):
        assert fragment in text
    with pytest.raises(TypeError, match="int8 is not int32"):
        compiled(pl.INT32)(integers(np.int8), np.zeros((ROWS, COLS), np.int32))


# ------------------------------------------------------------------ shape, place, layout: ARG-2 - ARG-4, ARG-7, ARG-8


def test_shape_mismatch(compiled):
    y = np.full((ROWS, COLS), 5, np.float32)
    with pytest.raises(TypeError, match="'x'") as info:
        compiled(pl.FP32)(np.zeros((ROWS, COLS + 1), np.float32), y)
    assert "axis 1    17 is not 16" in str(info.value)
    with pytest.raises(TypeError, match="rank      1 is not 2"):
        compiled(pl.FP32)(np.zeros(ROWS * COLS, np.float32), y)
    assert (y == 5).all()  # ARG-8


def test_not_contiguous(compiled):
    wide = np.zeros((ROWS, 2 * COLS), np.float32)
    with pytest.raises(ValueError) as info:
        compiled(pl.FP32)(floats(), wide[:, ::2])
    assert "Tensor at position 1 is not contiguous. Call .contiguous() before passing it." in str(info.value)
    assert "'y'" in str(info.value) and "main" in str(info.value)
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError, match="Tensor at position 0 is not contiguous"):
        compiled(pl.FP32)(torch.zeros(COLS, ROWS).T, wide[:, :COLS].copy())


def test_not_on_the_cpu(compiled):
    torch = pytest.importorskip("torch")
    with pytest.raises(ValueError) as info:
        compiled(pl.FP32)(floats(), torch.zeros(ROWS, COLS, device="meta"))
    assert "Tensor at position 1 is on meta, expected CPU. Call .cpu() before passing it." in str(info.value)


def test_read_only(compiled):
    x, y = floats(), np.zeros((ROWS, COLS), np.float32)
    x.flags.writeable = False
    compiled(pl.FP32)(x, y)
    y.flags.writeable = False
    with pytest.raises(ValueError, match=r"position 1 is read-only.*'y'"):
        compiled(pl.FP32)(x, y)


@pytest.mark.parametrize("value", [3, 2.5, "text", None, [1.0, 2.0], object(), b"bytes"])
def test_not_an_array(compiled, value):  # ARG-7
    with pytest.raises(TypeError) as info:
        compiled(pl.FP32)(value, np.zeros((ROWS, COLS), np.float32))
    text = str(info.value)
    assert f"Parameter 'x' is a tensor; got {type(value).__name__}" in text
    assert "Pass a torch.Tensor (host) or DeviceTensor (worker-resident)." in text and "NumPy" in text


def test_size_one_and_transposed_singletons_are_contiguous(tmp_path):
    made = ir.compile(program(pl.FP32, 1, 8), output_dir=tmp_path, dump_passes=False)
    x = np.arange(8, dtype=np.float32).reshape(8, 1).T
    y = np.zeros((1, 8), np.float32)
    made(x, y)
    np.testing.assert_array_equal(y, x + x)


# ------------------------------------------------------------------ dynamic extents: ARG-4, ARG-4a, ARG-12


def dynamic_program(use_as_value):
    m = pl.dynamic("M")

    if use_as_value:

        @pl.program
        class Sum:
            @pl.function(type=pl.FunctionType.Orchestration)
            def main(
                self, x: pl.Tensor[[m, 16], pl.FP32], y: pl.Out[pl.Tensor[[m, 16], pl.FP32]]
            ) -> pl.Tensor[[m, 16], pl.FP32]:
                for i in pl.range(m // 4):
                    with pl.at(level=pl.Level.CORE_GROUP):
                        y = pl.store(pl.neg(pl.load(x, [i * 4, 0], [4, 16])), [i * 4, 0], y)
                return y

        return Sum

    @pl.program
    class First:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: pl.Tensor[[m, 16], pl.FP32], y: pl.Out[pl.Tensor[[m, 16], pl.FP32]]
        ) -> pl.Tensor[[m, 16], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.store(pl.neg(pl.load(x, [0, 0], [4, 16])), [0, 0], y)
            return y

    return First


def test_dynamic_extent_is_read_from_the_array(tmp_path):
    made = ir.compile(dynamic_program(True), output_dir=tmp_path, dump_passes=False)
    for rows in (4, 12, 0):
        x = np.random.default_rng(rows).standard_normal((rows, 16)).astype(np.float32)
        y = np.zeros((rows, 16), np.float32)
        made(x, y)
        np.testing.assert_array_equal(y, -x)


def test_extents_that_disagree(tmp_path):  # 01 L-30
    x, y = np.ones((4, 16), np.float32), np.zeros((8, 16), np.float32)
    made = ir.compile(dynamic_program(True), output_dir=tmp_path / "value", dump_passes=False)
    with pytest.raises(TypeError, match="'M'") as info:
        made(x, y)
    for fragment in ("'x' dimension 0 is 4", "'y' dimension 0 is 8"):
        assert fragment in str(info.value)
    made = ir.compile(dynamic_program(False), output_dir=tmp_path / "extent", dump_passes=False)
    with pytest.warns(UserWarning, match="W-DYN-EXTENT"):
        made(x, y)
    assert (y[:4] == -1).all() and (y[4:] == 0).all()


# ------------------------------------------------------------------ overlap and untouched elements: ARG-10, ARG-11


def test_same_input_twice_is_silent_and_shared_output_warns(compiled):
    x = floats()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled(pl.FP32)(x, np.zeros_like(x))
    with pytest.warns(UserWarning, match="W-ARG-OVERLAP.*'y'.*'x'"):
        compiled(pl.FP32)(x, x)


def test_elements_not_written_keep_their_value(tmp_path):
    @pl.program
    class Corner:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: pl.Tensor[[8, 16], pl.FP32], y: pl.Out[pl.Tensor[[8, 16], pl.FP32]]
        ) -> pl.Tensor[[8, 16], pl.FP32]:
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.store(pl.load(x, [0, 0], [4, 8]), [4, 8], y)
            return y

    made = ir.compile(Corner, output_dir=tmp_path, dump_passes=False)
    x, y = floats(), np.full((8, 16), -3, np.float32)
    made(x, y)
    expected = np.full((8, 16), -3, np.float32)
    expected[4:, 8:] = x[:4, :8]
    np.testing.assert_array_equal(y, expected)
    result = made(x)  # return style: zero where nothing was written
    expected[expected == -3] = 0
    np.testing.assert_array_equal(result, expected)
