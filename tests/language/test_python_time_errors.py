# SPDX-License-Identifier: Apache-2.0
"""Errors that Python itself runs into while it evaluates annotations and decorators: each names its place (01 L-181)."""

import pytest
from pypto.language.parser import diagnostics as d
from rejections import define, place

CLASS = """
@pl.program
class P:
    @pl.function({options})
    def k(self, x: {annotation}):
        return x
"""

ANNOTATIONS = {  # L-28, L-39
    "pl.Tensor[[16, 16], pl.FP33]": "Unknown dtype: FP33",
    "pl.Tensor[[16, 16], pl.FP32, pl.ZZ]": "Unknown layout: ZZ",
    "pl.Tensor[[16, 16], pl.FP32, pl.TensorView(zap=1)]": "Unknown TensorView keyword argument 'zap'",
    "pl.Tensor[[16, 16], pl.FP32, pl.TensorView(1)]": "takes keyword arguments only",
    "pl.Tensor[[16, 16], pl.FP32, pl.TensorView(stride=[16, 1])]": "needs layout=",
    "pl.Tile[[16, 16], pl.FP32, pl.TileView(zap=1)]": "Unknown TileView keyword argument 'zap'",
    "pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec, pl.MemRef(zap=1)]": "Unknown MemRef keyword argument 'zap'",
    "pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec, pl.MemRef(slots=0)]": "slots must be a positive int literal",
    "pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec, pl.MemRef(slots=2)[2]]": "Slot index 2 is out of range",
    "pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec, pl.MemRef()[0]]": "single-slot allocation cannot be subscripted",
}


@pytest.mark.parametrize("annotation", ANNOTATIONS)
def test_annotations(tmp_path, annotation):
    with pytest.raises(d.ParserTypeError) as caught:
        define(tmp_path, CLASS.format(options="", annotation=annotation))
    assert ANNOTATIONS[annotation] in str(caught.value)
    file, line, _ = place(caught.value)
    assert annotation in open(file).read().splitlines()[line - 1]


OPTIONS = {  # L-42
    "type='InCore'": "Unknown FunctionType value: 'InCore'",
    "level=3": "Unknown Level value: 3",
    "role='SubWorker'": "Unknown Role value: 'SubWorker'",
    "auto_scope=1": "auto_scope must be a boolean literal",
}


@pytest.mark.parametrize("options", OPTIONS)
def test_options(tmp_path, options):
    with pytest.raises(d.ParserSyntaxError) as caught:
        define(tmp_path, CLASS.format(options=options, annotation="pl.Tensor[[16, 16], pl.FP32]"))
    assert OPTIONS[options] in str(caught.value)
    file, line, _ = place(caught.value)
    assert options in open(file).read().splitlines()[line - 1]


def test_a_string_is_no_result(tmp_path):  # L-51
    with pytest.raises(d.ParserTypeError, match="A string cannot be returned from function 'k'"):
        define(
            tmp_path,
            CLASS.format(options="", annotation="pl.Tensor[[16, 16], pl.FP32]").replace("return x", "return 'x'"),
        )
