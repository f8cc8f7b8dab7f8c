# SPDX-License-Identifier: Apache-2.0
"""Warnings of reading a program, and the outputs that a program forgets to write (rows of 01 L-177)."""

import warnings

import numpy as np
import pypto.language as pl
import pytest
from pypto import ir
from pypto.runtime import RunConfig
from rejections import define, kernel, orchestration

CONFIG = RunConfig(platform="a2a3sim")


def only(record, text):
    found = [w for w in record if text in str(w.message)]
    assert len(found) == 1, [str(w.message) for w in record]
    return found[0]


def test_written_input_is_promoted(tmp_path):  # L-48
    with pytest.warns(UserWarning, match="'x'.*InOut") as record:
        kernel(tmp_path, "x = pl.store(pl.exp(pl.load(x, [0, 0], [64, 64])), [0, 0], x)")
    assert "case_" in only(record, "'x'").filename


def test_out_that_is_read_first(tmp_path):  # L-48
    with pytest.warns(UserWarning, match="'o'.*InOut"):
        kernel(tmp_path, "t = pl.load(o, [0, 0], [64, 64])\no = pl.store(pl.exp(t), [0, 0], o)")


def test_stale_carry(tmp_path):  # L-97
    body = """
t = pl.load(x, [0, 0], [64, 64])
for i, (a,) in pl.range(4, init_values=(t,)):
    b = pl.exp(a)
    r = pl.yield_(b)
u = pl.add(t, 1.0)
"""
    with pytest.warns(UserWarning, match="'t'.*'r'"):
        kernel(tmp_path, body)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel(tmp_path, body.replace("pl.add(t, 1.0)", "pl.add(r, 1.0)"))


def test_promoted_tile_subscript(tmp_path):  # L-88
    with pytest.warns(UserWarning, match="2-D"):
        kernel(tmp_path, "t = pl.load(x, [0, 0], [64, 64])\nu = t[3, :]")


def test_an_extent_that_differs(tmp_path):  # L-47
    with pytest.warns(UserWarning, match=r"\[64, 64\].*\[32, 64\]"):
        orchestration(tmp_path, "y = self.k(x[0:32, :], o)")


def test_directions_in_inline_helpers(tmp_path):  # L-59
    text = """
@pl.jit.inline
def h(o: {}):
    o = pl.store(pl.tile.full([4, 8], dtype=pl.FP32, value=1.0), [0, 0], o)
    return o

@pl.jit
def k(o: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        o = h(o)
    return o
"""
    scope = define(tmp_path, text.format("pl.Out[pl.Tensor[[4, 8], pl.FP32]]"))
    with pytest.warns(DeprecationWarning, match="Direction annotations are deprecated"):
        scope["k"].compile(np.zeros((4, 8), np.float32), config=CONFIG)


@pl.jit
def mismatch(x: pl.Tensor[[4, 8], pl.FP32], o: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        o[:] = pl.add(x, 1.0)
    return o


def test_the_argument_governs():  # L-68
    x, o = np.ones((6, 8), np.float32), np.zeros((6, 8), np.float32)
    with pytest.warns(UserWarning, match=r"'x'.*\[4, 8\].*\[\[6, 8\]"):
        mismatch(x, o, config=CONFIG)
    np.testing.assert_array_equal(o, x + 1)
    with pytest.raises(TypeError, match="'x'.*rank 2.*rank 1"):
        mismatch(np.ones(4, np.float32), o, config=CONFIG)


def test_dropped_output(tmp_path):  # L-54
    text = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        o = pl.store(pl.exp(pl.load(x, [0, 0], [64, 64])), [0, 0], o)
        o = pl.add(x, 1.0)
        return o

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        y = self.k(x, o)
        return o
"""
    with pytest.warns(UserWarning, match="OutParamWriteDropped.*'o'.*'k'"):
        define(tmp_path, text)


@pl.jit
def rebound(x: pl.Tensor, r: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        r = pl.mul(x, 2.0)
        r = pl.add(x, 1.0)
    return r


def test_output_written_on_no_path():  # L-54, 04 CMP-11
    from pypto.backend.pto_backend import PartialCodegenError

    x, r = np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32)
    with pytest.raises(PartialCodegenError, match="'r'"):
        rebound.compile(x, r, config=CONFIG)


@pl.jit
def forgotten(x: pl.Tensor, r: pl.Out[pl.Tensor], s: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        s[:] = pl.add(x, 1.0)
    return r, s


def test_output_never_mentioned():  # L-54
    x = np.ones((4, 8), np.float32)
    r, s = np.full_like(x, 7), np.zeros_like(x)
    with pytest.warns(UserWarning, match="'r'"):
        forgotten(x, r, s, config=CONFIG)
    np.testing.assert_array_equal(r, np.full_like(x, 7))
    np.testing.assert_array_equal(s, x + 1)


def test_several_errors_are_reported_together(tmp_path):  # L-180
    text = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def a(self, x: pl.Tensor[[64, 64], pl.FP32]):
        t = pl.load(qq, [0, 0], [64, 64])

    @pl.function(type=pl.FunctionType.InCore)
    def b(self, x: pl.Tensor[[64, 64], pl.FP32]):
        t = pl.load(x, [0, 0], [64, 64], foo=1)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64, 64], pl.FP32]):
        self.a(x)
        self.b(x)
"""
    with pytest.raises(Exception, match="Undefined variable 'qq'") as info:
        define(tmp_path, text)
    assert str(info.value).count("another error") == 1
    assert "foo" in str(info.value)


FIRST = 0


@pl.jit.incore
def maybe(x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]], n: pl.Scalar[pl.INDEX]):
    if n == FIRST:
        return y
    y = pl.store(pl.add(pl.load(x, [0, 0], [4, 8]), 1.0), [0, 0], y)
    return y


@pl.jit.incore
def only_returned(x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]], n: pl.Scalar[pl.INDEX]):
    if n == FIRST:
        return y
    return y


@pl.jit
def guarded(x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    for n in pl.range(2):
        y = maybe(x, y, n)
    y = maybe(x, y, 0)
    y = maybe(x, y, 1)
    return y


@pl.jit
def unguarded(x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    for n in pl.range(2):
        y = only_returned(x, y, n)
    y = only_returned(x, y, 0)
    return y


def test_a_branch_that_a_constant_rules_out_still_writes():  # L-54: it is written where the constant differs
    x, y = np.arange(32, dtype=np.float32).reshape(4, 8), np.zeros((4, 8), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        guarded(x, y, config=CONFIG)
    np.testing.assert_array_equal(y, x + 1)


def test_warnings_of_a_specialisation_name_the_function_of_the_source():  # 04 JIT-16
    x, y = np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32)
    with pytest.warns(UserWarning, match="OutParamWriteDropped") as record:
        unguarded.compile(x, y, config=CONFIG)
    assert {"'only_returned'" in str(w.message) for w in record if "OutParam" in str(w.message)} == {True}


@pl.jit
def undelivered(x: pl.Tensor):
    with pl.at(level=pl.Level.CORE_GROUP):
        fresh = pl.add(x, 1.0)
    return fresh


@pl.jit
def untouched(x: pl.Tensor, y: pl.InOut[pl.Tensor], z: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        z[:] = pl.add(x, 1.0)
    return y, z


def test_a_returned_tensor_that_is_no_parameter():  # 04 PRG-10
    x, y, z = np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32), np.zeros((4, 8), np.float32)
    with pytest.warns(UserWarning, match="W-RETURN-DROPPED.*'undelivered' returns 'fresh'") as record:
        assert undelivered(x, config=CONFIG) is None
    found = only(record, "W-RETURN-DROPPED")
    assert found.filename == __file__ and "pl.Out[" in str(found.message)
    with warnings.catch_warnings(record=True) as record:
        warnings.simplefilter("always")
        untouched(x, y, z, config=CONFIG)  # contents unchanged, said by another warning (01 L-54)
    assert ["W-OUT-PARAM-UNUSED" in str(w.message) for w in record] == [True]


@pl.jit
def returns_a_number(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.add(x, 1.0)
    return out, x.shape[0]


def test_a_returned_number_does_not_reach_the_caller():  # 04 PRG-10
    with pytest.warns(UserWarning, match="W-RETURN-DROPPED.*'returns_a_number' returns 8"):
        returns_a_number.compile(np.zeros((8, 16), np.float32), np.zeros((8, 16), np.float32))


def test_directions_of_fragments_are_no_markers_of_helpers(tmp_path):  # L-44, L-59
    text = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.{})
    def fragment(self, x: pl.Tensor[[4, 8], pl.FP32], o: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
        o = self.k(x, o)
        return o

    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[4, 8], pl.FP32], o: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
        return pl.store(pl.neg(pl.load(x, [0, 0], [4, 8])), [0, 0], o)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[4, 8], pl.FP32], o: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
        o = self.fragment(x, o)
        return o
"""
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    for kind in ("Graph", "Opaque"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            program = define(tmp_path, text.format(kind))["P"]
            o = np.zeros_like(x)
            ir.compile(program)(x, o)
        np.testing.assert_array_equal(o, -x)
