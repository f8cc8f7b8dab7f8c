# SPDX-License-Identifier: Apache-2.0
"""What may be passed as an array: each kind works where it is, or is refused with its parameter and a way out.

The table has one row per kind: how it is made from the values, and None or the class and fragments of the error.
"""

import array

import numpy as np
import pypto.language as pl
import pytest
import torch
from pypto import ir
from pypto.runtime import RunConfig

CONFIG = RunConfig(platform="a2a3sim")
CONTIGUOUS = "is not contiguous. Call .contiguous() before passing it."


@pl.jit
def add_one(x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.add(x, 1.0)
    return out


@pl.jit
def any_shape(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.add(x, 1.0)
    return out


@pl.program
class ClassForm:
    @pl.function(type=pl.FunctionType.InCore)
    def main(
        self, x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]
    ) -> pl.Tensor[[4, 8], pl.FP32]:
        out = pl.store(pl.add(pl.load(x, [0, 0], [4, 8]), 1.0), [0, 0], out)
        return out


VALUES = np.arange(32, dtype=np.float32).reshape(4, 8) - 7.5


class WithInterface:
    def __init__(self, values):
        self.values = values
        self.__array_interface__ = values.__array_interface__


class WithArray:
    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return self.values


class WithDlpack:
    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **_):
        return self.values.__dlpack__()

    def __dlpack_device__(self):
        return self.values.__dlpack_device__()


class Subclass(torch.Tensor):
    pass


def tensor(values):
    return torch.from_numpy(values.copy())


def fake(values):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.zeros(values.shape)


def read_only(values):
    values = values.copy()
    values.flags.writeable = False
    return values


def inside(values, *at):
    """The values in a larger array: a view that is not packed."""
    whole = np.full((8, 32), -1, np.float32)
    view = whole[at]
    view[...] = values
    return view


def unaligned(values):
    return np.frombuffer(bytearray(b"\0" + values.tobytes()), np.uint8)[1:].view(np.float32).reshape(values.shape)


def negative(values):
    return torch._neg_view(tensor(-values))


MASKED = (TypeError, "a masked array, and its mask would be ignored", "x.filled(value)")
SWAPPED = (TypeError, "Unsupported dtype >f4", "x.astype(x.dtype.newbyteorder('='))")
NO_DTYPE = (TypeError, "Unsupported dtype", "supported: float32")
STRIDED = (ValueError, CONTIGUOUS, "np.ascontiguousarray(x)")
NOT_HOST = (ValueError, "is on meta, expected CPU. Call .cpu() before passing it.")
NO_ARRAY = (TypeError, "is a tensor; got ", "Pass a torch.Tensor (host) or DeviceTensor")
SPARSE = (TypeError, "a tensor of layout torch.", "Pass x.to_dense()")

# name: (made from the values, error as an input or None)
KINDS = {
    "array": (np.copy, None),
    "read-only": (read_only, None),  # as an output: below
    "matrix": (np.matrix, None),
    "record array": (lambda v: v.copy().view(np.recarray), None),
    "unaligned": (unaligned, None),
    "memory view": (lambda v: memoryview(v.copy()), None),
    "interface only": (lambda v: WithInterface(v.copy()), None),
    "DLPack only": (lambda v: WithDlpack(v.copy()), None),
    "twice reversed": (lambda v: v.copy()[::-1, ::-1][::-1, ::-1], None),
    "masked": (lambda v: np.ma.masked_array(v, mask=v > 3), MASKED),
    "masked, no mask": (np.ma.masked_array, MASKED),
    "other byte order": (lambda v: v.astype(">f4"), SWAPPED),
    "structured": (lambda v: np.zeros(v.shape, [("a", "f4")]), NO_DTYPE),
    "objects": (lambda v: v.astype(object), NO_DTYPE),
    "complex": (lambda v: v.astype(np.complex64), NO_DTYPE),
    "text": (lambda v: v.astype(str), NO_DTYPE),
    "extended": (lambda v: v.astype(np.longdouble), NO_DTYPE),
    "dates": (lambda v: v.astype("datetime64[s]"), NO_DTYPE),
    "reversed": (lambda v: v.copy()[::-1], STRIDED),
    "every second": (lambda v: inside(v, slice(4), slice(0, 16, 2)), STRIDED),
    "part of rows": (lambda v: inside(v, slice(4), slice(3, 11)), STRIDED),
    "column-major": (np.asfortranarray, STRIDED),
    "broadcast": (lambda v: np.broadcast_to(v[:1], v.shape), STRIDED),
    "list": (np.ndarray.tolist, (*NO_ARRAY, "np.array(x, dtype=...)")),
    "bytes": (np.ndarray.tobytes, NO_ARRAY),
    "to be converted": (WithArray, (*NO_ARRAY, "np.asarray(x)")),
    "one axis": (lambda v: array.array("f", v.ravel()), (TypeError, "rank")),
    "no axis": (lambda v: np.array(3, np.float32), (TypeError, "rank")),
    "scalar": (lambda v: np.float32(3), (TypeError, "rank")),
    "none": (lambda v: None, NO_ARRAY),
    "tensor": (tensor, None),
    "tensor with gradient": (lambda v: tensor(v).requires_grad_(), None),
    "computed with gradient": (lambda v: tensor(v).requires_grad_() * 1, None),
    "tensor parameter": (lambda v: torch.nn.Parameter(tensor(v)), None),
    "tensor subclass": (lambda v: tensor(v).as_subclass(Subclass), None),
    "tensor, transposed twice": (lambda v: tensor(v).t().t(), None),
    "tensor, transposed": (lambda v: tensor(v.T.copy()).t(), (ValueError, CONTIGUOUS)),
    "tensor, expanded": (lambda v: tensor(v)[:1].expand(4, 8), (ValueError, CONTIGUOUS)),
    "tensor, negated": (negative, (TypeError, "is_neg()", "x.resolve_neg()")),
    "tensor, conjugated": (lambda v: (tensor(v) * 1j).conj(), (TypeError, "Unsupported torch dtype torch.complex64")),
    "tensor without data": (lambda v: torch.zeros(4, 8, device="meta"), NOT_HOST),
    "fake tensor": (fake, (TypeError, "without memory of its own", "a tensor that holds data")),
    "sparse": (lambda v: tensor(v).to_sparse(), SPARSE),
    "sparse rows": (lambda v: tensor(v).to_sparse_csr(), SPARSE),
    "blocked": (lambda v: tensor(v).to_mkldnn(), SPARSE),
    "nested": (lambda v: torch.nested.nested_tensor([tensor(r) for r in v]), (TypeError, "a nested tensor")),
    "quantized": (
        lambda v: torch.quantize_per_tensor(tensor(v), 0.5, 0, torch.qint8),
        (TypeError, "Unsupported torch dtype torch.qint8"),
    ),
}
ONLY_READ = {"read-only": (ValueError, "Tensor at position 1 is read-only", "Pass a writable array")}


def content(value):
    if isinstance(value, torch.Tensor):
        return value.detach().as_subclass(torch.Tensor).numpy()
    return np.asarray(getattr(value, "values", value))


def located(error, kind, fragments, parameter):
    assert isinstance(error, kind)
    text = str(error)
    for fragment in (*fragments, parameter, "test_array_likes.py:"):
        assert fragment in text, text


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("name", KINDS)
def test_as_an_input(name):  # 04 ARG-1, ARG-2, ARG-3, JIT-10, JIT-11
    make, error = KINDS[name]
    value, out = make(VALUES), np.full_like(VALUES, np.nan)
    if error is None:
        for call in (add_one, any_shape):
            out[:] = np.nan
            call(value, out, config=CONFIG)
            np.testing.assert_array_equal(out, VALUES + 1)
        return
    with pytest.raises(error[0]) as caught:
        add_one(value, out, config=CONFIG)
    located(caught.value, error[0], error[1:], "x")
    assert np.isnan(out).all()


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("name", KINDS)
def test_as_an_output(name):  # 04 ARG-1, ARG-2, ARG-3
    make, error = KINDS[name]
    value = make(VALUES)
    error = ONLY_READ.get(name, error)
    if error is None:
        add_one(VALUES, value, config=CONFIG)
        np.testing.assert_array_equal(content(value), VALUES + 1)
        return
    with pytest.raises(error[0]) as caught:
        add_one(VALUES, value, config=CONFIG)
    fragments = [f.replace("position 0", "position 1") for f in error[1:]]
    located(caught.value, error[0], fragments, "out")
    if CONTIGUOUS in fragments[0]:
        assert "copy the result back" in str(caught.value)


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("name", ["masked", "fake tensor", "sparse", "tensor, negated", "reversed", "nested", "list"])
def test_of_a_compiled_program(name):  # 04 ARG-1, ARG-3
    make, error = KINDS[name]
    compiled = ir.compile(ClassForm, platform="a2a3sim")
    with pytest.raises(error[0]) as caught:
        compiled(make(VALUES), np.zeros_like(VALUES))
    located(caught.value, error[0], error[1:], "'x'")


def test_under_vmap():  # a tensor that stands for many has no memory of its own
    def one(x):
        add_one(x, torch.zeros(4, 8), config=CONFIG)
        return x

    with pytest.raises(TypeError, match="without memory of its own.*vmap"):
        torch.func.vmap(one)(torch.zeros(3, 4, 8))


def test_input_and_output_in_the_same_memory():  # 04 ARG-10: said, and run in place
    both = VALUES.copy()
    with pytest.warns(UserWarning, match="W-ARG-OVERLAP"):
        add_one(both, both, config=CONFIG)
    np.testing.assert_array_equal(both, VALUES + 1)
    rows = np.zeros((5, 8), np.float32)
    rows[:4] = VALUES
    with pytest.warns(UserWarning, match="W-ARG-OVERLAP.*'x'|'x'.*W-ARG-OVERLAP"):
        add_one(rows[:4], rows[1:], config=CONFIG)
    np.testing.assert_array_equal(rows[1:], VALUES + 1)


@pytest.mark.parametrize("shape", [(0, 4), (4, 0), (0, 0)])
def test_an_empty_argument_is_named(shape):  # 04 ERR-4
    x, out = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
    with pytest.raises(Exception, match="Empty slice") as caught:
        any_shape(x, out, config=CONFIG)
    assert f"argument 'x' is empty: its shape is {list(shape)}" in str(caught.value)
    assert "test_array_likes.py:" in str(caught.value)
