# SPDX-License-Identifier: Apache-2.0
"""Programs that break a rule inside a kernel body: class of the exception and the words its text must contain."""

import pytest
from pypto.language.parser import diagnostics as d
from rejections import assert_points_into, define, kernel

CASES = [
    # L-80, L-81: statements
    ("assert n == 1", d.UnsupportedFeatureError, ["Unsupported statement type: Assert"]),
    ("del n", d.UnsupportedFeatureError, ["Unsupported statement type"]),
    ("import math", d.UnsupportedFeatureError, ["Unsupported statement type: Import"]),
    ("n", d.UnsupportedFeatureError, ["must be a call"]),
    # L-82: assignment
    ("a = b = n", d.ParserSyntaxError, ["Unsupported assignment"]),
    ("*a, b = (n, n)", d.ParserSyntaxError, ["must be a variable name"]),
    ("x.foo = n", d.ParserSyntaxError, ["Unsupported assignment"]),
    ("a, b = x.shape[0], n, n", d.ParserTypeError, ["Cannot unpack 3 value(s) into 2"]),
    ("a: pl.Scalar[pl.INT32]", d.UnsupportedFeatureError, ["Annotation without a value"]),
    # L-14, L-15: names and folding
    ("a = nn + 1", d.UndefinedVariableError, ["Undefined variable 'nn'"]),
    ("a = pl.load(x, [0, 0], [1 // 0, 64])", d.ParserTypeError, ["Failed to evaluate expression", "ZeroDivisionError"]),
    ("a = object_value", d.ParserTypeError, ["Unsupported closure variable type"]),
    # L-12: a literal that does not fit
    ("a: pl.Scalar[pl.INT8] = 300", d.ParserTypeError, ["300", "int8"]),
    # L-13
    ("a = pl.const(1)", d.ParserSyntaxError, ["requires exactly 2 arguments"]),
    ("a = pl.const(n, pl.INT32)", d.ParserSyntaxError, ["must be a numeric literal"]),
    # L-17 - L-20: scalar operators
    ("a = n / 2", TypeError, ["//"]),
    ("a = n ** 2", d.UnsupportedFeatureError, ["Unsupported binary operator"]),
    ("a = n & 1", d.UnsupportedFeatureError, ["Unsupported binary operator"]),
    ("a = n | 1", d.UnsupportedFeatureError, ["Unsupported binary operator"]),
    ("a = n in x", d.UnsupportedFeatureError, ["Unsupported comparison"]),
    ("a = 0 < n < 4", d.ParserSyntaxError, ["Only simple comparisons supported"]),
    ("a = 1 if n > 2 else 2", d.UnsupportedFeatureError, ["Unsupported expression type"]),
    ("a = lambda: n", d.UnsupportedFeatureError, ["Unsupported expression type"]),
    ("a = f'{n}'", d.UnsupportedFeatureError, ["Unsupported expression type"]),
    ("a = [n for _ in (1, 2)]", d.UnsupportedFeatureError, ["Unsupported expression type"]),
    ("a = n + 1.5", (d.ParserTypeError, TypeError), ["pl.cast"]),
    ("a = (n > 1) + 1", (d.ParserTypeError, TypeError), ["does not accept bool dtype"]),
    ("a = n // 0", (d.ParserTypeError, ZeroDivisionError), []),
    # L-21
    ("t = pl.load(x, [0, 0], [64, 64])\na = t % 2", TypeError, ["pl.fmod"]),
    ("t = pl.load(x, [0, 0], [64, 64])\na = 2.0 - t", TypeError, ["left"]),
    ("t = pl.load(x, [0, 0], [64, 64])\na = -t", TypeError, ["pl.neg"]),
    # L-22, L-23, L-24
    ("a = pl.cast(n, pl.FP32, mode='floor')", TypeError, ["Scalar inputs do not support non-default mode"]),
    (
        "t = pl.load(x, [0, 0], [64, 64])\nfor i in pl.range(4):\n    t = pl.add(t, i)",
        ValueError,
        ["Scalar operand has dtype `index`", "pl.cast(<value>, pl.INT32)"],
    ),
    ("if n:\n    pass", d.ParserTypeError, ["if condition must be a Bool-typed scalar expression, got"]),
    ("while n:\n    n = n - 1", d.ParserTypeError, ["while condition must be"]),
    # L-28, L-37, L-39, L-40: annotations
    ("t: pl.Tile[[64, 64], pl.FP33] = pl.load(x, [0, 0], [64, 64])", d.ParserTypeError, ["Unknown dtype"]),
    (
        "t: pl.Tile[[64, 64], pl.FP32, pl.ND] = pl.load(x, [0, 0], [64, 64])",
        d.ParserTypeError,
        ["Tile does not accept layouts"],
    ),
    (
        "t: pl.Tile[[64, 64], pl.FP32, pl.MemRef('a')] = pl.load(x, [0, 0], [64, 64])",
        d.ParserTypeError,
        ["must also specify explicit memory space"],
    ),
    (
        "t: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec, pl.Mem.Mat] = pl.load(x, [0, 0], [64, 64])",
        d.ParserTypeError,
        ["at most one"],
    ),
    (
        "t: pl.Tile[[64, 64], pl.FP32, pl.TileView(foo=1)] = pl.load(x, [0, 0], [64, 64])",
        d.ParserTypeError,
        ["Unknown TileView keyword argument"],
    ),
    (
        "t: pl.Tile[[64, 64], pl.FP32, pl.Mem.Vec, pl.MemRef('a', slots=2)[2]] = pl.load(x, [0, 0], [64, 64])",
        d.ParserTypeError,
        ["Slot index", "is out of range"],
    ),
    (
        "t: pl.Tile[[64, 32], pl.FP32] = pl.load(x, [0, 0], [64, 64])",
        d.ParserTypeError,
        ["has shape dimension 1 = 32 but expression has shape dimension 1 = 64"],
    ),
    (
        "t: pl.Tile[[64, 64, 1], pl.FP32] = pl.load(x, [0, 0], [64, 64])",
        d.ParserTypeError,
        ["has rank 3 but expression has rank 2"],
    ),
    (
        "t: pl.Tile[[64, 64], pl.FP16] = pl.load(x, [0, 0], [64, 64])",
        d.ParserTypeError,
        ["has dtype fp16 but expression has dtype fp32"],
    ),
    (
        "t: pl.Tensor[[64, 64], pl.FP32] = pl.load(x, [0, 0], [64, 64])",
        d.ParserTypeError,
        ["Type annotation for 't' is", "but expression has type"],
    ),
    ("t: pl.Scalar[pl.FP32] = n", d.ParserTypeError, ["has dtype fp32 but expression has dtype int32"]),
    # L-83, L-85: meets
    (
        "t = pl.load(x, [0, 0], [64, 64])\nif n > 1:\n    t = pl.load(x, [0, 0], [32, 64])",
        d.ParserTypeError,
        ["Cannot reassign 't' with a different type: was", "got"],
    ),
    (
        "t = pl.load(x, [0, 0], [64, 64])\nfor i in pl.range(n):\n    t = pl.load(x, [0, 0], [32, 64])",
        d.ParserTypeError,
        ["Cannot reassign 't' with a different type"],
    ),
    ("if n > 1:\n    t = 1\na = t + n", d.UndefinedVariableError, ["'t'", "else"]),
    (
        "if n > 1:\n    t = pl.load(x, [0, 0], [64, 64])\nelse:\n    t = pl.load(x, [0, 0], [32, 64])\nu = pl.exp(t)",
        d.ParserTypeError,
        ["Cannot reassign 't'"],
    ),
    ("for i in pl.range(n):\n    t = i\na = t + 1", d.UndefinedVariableError, ["may run zero times", "'t'"]),
    ("for i in pl.range(4):\n    pass\na = i + 1", d.UndefinedVariableError, ["'i'"]),
    # L-86
    ("x[0:1, 0:1] += 1", d.UnsupportedFeatureError, ["Augmented assignment"]),
    # L-89
    ("a = x[0, 0, 0]", d.ParserTypeError, ["subscript has 3 indices but the tensor is 2D"]),
    ("a = x[0:8:2, :]", d.UnsupportedFeatureError, ["Slice step is not supported"]),
    ("a = x[..., 0]", d.UnsupportedFeatureError, []),
    ("a = x[-1:4, :]", d.ParserTypeError, ["Negative"]),
    ("a = x[0:65, :]", d.ParserTypeError, ["65", "64"]),
    ("a = x[8:8, :]", d.ParserTypeError, ["8:8"]),
    ("t = pl.load(x, [0, 0], [64, 64])\na = t[8:8, :]", d.ParserTypeError, ["must produce a positive static extent"]),
    (
        "t = pl.load(x, [0, 0], [64, 64])\na = t[n:64, :]",
        d.ParserTypeError,
        ["Dynamic lower bounds are not supported in tile subscript"],
    ),
    ("a = n[0]", d.ParserTypeError, ["Subscript requires Tuple, Tensor, Tile, or Array type"]),
    ("a = x[pl.load(x, [0, 0], [64, 64]), 0]", d.ParserTypeError, ["integer scalar"]),
    # L-90
    ("o[0, 0] = 1.0", d.UnsupportedFeatureError, ["Element-write"]),
    ("o[0:8][0:8] = x[0:8, :]", d.ParserSyntaxError, ["target must be a variable name"]),
    (
        "o[0:8, :] = x[0:4, :]",
        d.ParserTypeError,
        ["Subscript-write shape mismatch on source axis 0: window expects 8 elements, source has 4"],
    ),
    ("o[0, 0:8] = x[0:8, 0:8]", d.ParserTypeError, ["Subscript-write shape mismatch"]),
    ("a = pl.array.create(4, pl.INT32)\na[4] = 1", d.ParserTypeError, ["4"]),
    # L-92
    ("if n > 1:\n    r = pl.yield_(1)\nelse:\n    pass", d.ParserSyntaxError, ["pl.yield_"]),
    ("if n > 1:\n    r = pl.yield_(1)\nelse:\n    s = pl.yield_(1)", d.ParserSyntaxError, ["same names"]),
    ("if n > 1:\n    r = pl.yield_(1)\nelse:\n    r = pl.yield_(1.0)", d.ParserTypeError, ["different types"]),
    # L-94, L-95
    ("for i in range(4):\n    pass", d.ParserSyntaxError, ["must use pl.range()"]),
    ("for i in [1, 2]:\n    pass", d.ParserSyntaxError, ["must use pl.range()"]),
    ("for i in pl.range():\n    pass", d.ParserSyntaxError, ["requires at least 1 argument"]),
    (
        "for i in pl.range(4, chunk=2):\n    pass",
        d.ParserSyntaxError,
        ["Unknown keyword argument 'chunk' in pl.range()"],
    ),
    ("for i in pl.range(4, stage=2):\n    pass", d.ParserSyntaxError, ["stage= is only supported on pl.pipeline()"]),
    ("for i in pl.pipeline(4):\n    pass", d.ParserSyntaxError, ["requires stage= (positive integer)"]),
    ("for i in pl.pipeline(4, stage=0):\n    pass", d.ParserSyntaxError, ["requires stage= (positive integer)"]),
    ("for i in pl.unroll(n):\n    pass", d.ParserSyntaxError, ["requires compile-time constant integer bounds"]),
    (
        "for i in pl.unroll(4, init_values=(n,)):\n    pass",
        d.ParserSyntaxError,
        ["cannot be combined with init_values"],
    ),
    ("for i in pl.unroll(2000):\n    pass", ValueError, ["exceeds maximum allowed"]),
    ("for i[0] in pl.range(4):\n    pass", d.ParserSyntaxError, ["target must be"]),
    (
        "for i, (a,) in pl.range(4):\n    pass",
        d.ParserSyntaxError,
        ["target must be a tuple when init_values is provided"],
    ),
    (
        "for i in pl.range(4, init_values=(n,)):\n    pass",
        d.ParserSyntaxError,
        ["target must be a tuple when init_values is provided"],
    ),
    (
        "for i, (a, b) in pl.range(4, init_values=(n,)):\n    pass",
        d.ParserSyntaxError,
        ["Mismatch: 2 iter_args but 1 init_values"],
    ),
    (
        "for i, (a,) in pl.range(4, init_values=n):\n    pass",
        d.ParserSyntaxError,
        ["init_values must be a tuple or list"],
    ),
    ("for i in pl.range(4):\n    pass\nelse:\n    pass", d.UnsupportedFeatureError, ["else"]),
    ("for i in pl.range(0, 4, 0):\n    pass", d.ParserError, ["step"]),
    # L-97, L-98
    (
        "for i, (a,) in pl.range(4, init_values=(n,)):\n    pl.yield_(a)",
        d.ParserSyntaxError,
        ["requires an assignment-form pl.yield_"],
    ),
    ("for i, (a,) in pl.range(4, init_values=(n,)):\n    r = pl.yield_(1.5)", (d.ParserTypeError, TypeError), ["'a'"]),
    # L-102
    (
        "for (a,) in pl.while_(n, init_values=(n,)):\n    pl.cond(a > 0)",
        d.ParserSyntaxError,
        ["takes no positional arguments"],
    ),
    ("for (a,) in pl.while_():\n    pl.cond(a > 0)", d.ParserSyntaxError, ["requires init_values"]),
    (
        "for (a,) in pl.while_(init_values=(n,)):\n    b = a\n    r = pl.yield_(b)",
        d.ParserSyntaxError,
        ["must be pl.cond(condition)"],
    ),
    (
        "for (a,) in pl.while_(init_values=(n,)):\n    pl.cond(a > 0, a > 1)\n    r = pl.yield_(a)",
        d.ParserSyntaxError,
        [],
    ),
    ("pl.cond(n > 1)", d.ParserSyntaxError, ["can only be the first statement"]),
    ("for (a, b) in pl.while_(init_values=(n,)):\n    pl.cond(a > 0)", d.ParserSyntaxError, ["Mismatch"]),
    ("while True:\n    a = n + 1", d.ParserSyntaxError, ["break"]),
    # L-103
    ("for i in pl.parallel(4):\n    break", d.InvalidOperationError, ["'break' not supported in parallel loops"]),
    ("for i in pl.unroll(4):\n    continue", d.InvalidOperationError, ["'continue' not supported in unrolled loops"]),
    (
        "for i in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n    break",
        d.InvalidOperationError,
        ["not supported inside a 'for ... in pl.split_aiv(...)' body"],
    ),
    # L-52
    ("for i in pl.range(4):\n    return o", d.UnsupportedFeatureError, ["loop", "line"]),
    # L-105, L-106
    ("pl.static_assert(n > 1, 'no')", d.ParserError, ["must be compile-time evaluable"]),
    ("pl.static_assert(WIDTH > 100, 'too narrow')", d.ParserError, ["static_assert failed: too narrow"]),
    ("pl.static_print(f'{n!r}')", d.UnsupportedFeatureError, []),
    ("pl.static_print()", d.ParserSyntaxError, ["at least 1"]),
    # L-112, L-121, L-115, L-118: not in a kernel
    ("with pl.at(level=pl.Level.CORE_GROUP):\n    pass", (d.ParserSyntaxError, ValueError), ["Nested InCore"]),
    ("with pl.scope():\n    pass", d.ParserSyntaxError, ["'k'"]),
    ("with pl.manual_scope():\n    pass", d.ParserSyntaxError, ["'k'"]),
    # L-123
    ("for i in pl.split_aiv(3, mode=pl.SplitMode.NONE):\n    pass", d.ParserSyntaxError, ["requires n == 2"]),
    (
        "for i in pl.split_aiv(mode=pl.SplitMode.NONE):\n    pass",
        d.ParserSyntaxError,
        ["takes exactly one positional argument"],
    ),
    ("for i in pl.split_aiv(2):\n    pass", d.ParserSyntaxError, ["requires mode="]),
    (
        "for i in pl.split_aiv(2, mode=pl.SplitMode.NONE, init_values=(n,)):\n    pass",
        d.ParserSyntaxError,
        ["does not accept 'init_values='"],
    ),
    (
        "for i, (a,) in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n    pass",
        d.ParserSyntaxError,
        ["single loop variable"],
    ),
    (
        "for i in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n    for j in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n"
        "        pass",
        d.ParserSyntaxError,
        ["nested 'for ... in pl.split_aiv"],
    ),
    ("with pl.split_aiv(2, mode=pl.SplitMode.NONE):\n    pass", d.ParserSyntaxError, ["pl.split_aiv", "for"]),
    # L-132
    ("a = pl.array.create(4, pl.INT32)\nb = a[7]", (d.ParserTypeError, d.InvalidOperationError, ValueError), ["7"]),
    # L-179, O-108, O-111
    ("a = pl.ad(x, x)", d.InvalidOperationError, ["Unknown operation 'pl.ad'", "did you mean"]),
    ("a = pl.tile.lod(x, [0, 0], [64, 64])", d.InvalidOperationError, ["Unknown tile operation: lod"]),
    ("a = pl.tensor.foo(x)", d.InvalidOperationError, ["Unknown pl.tensor operation: foo"]),
    ("a = pld.tensor.foo(x)", d.InvalidOperationError, ["Unknown distributed operation 'pld.tensor.foo'"]),
    ("a = pld.quux.foo(x)", d.InvalidOperationError, ["system", "tensor", "tile"]),
    ("a = pl.load(x, [0, 0])", d.InvalidOperationError, ["shapes"]),
    ("a = pl.load(x, [0, 0], [64, 64], foo=1)", d.InvalidOperationError, ["foo"]),
    ("a = pl.load(x, [0, 0], [64, 64], offsets=[0, 0])", d.InvalidOperationError, ["offsets"]),
    ("a = pl.add(pl.load(x, [0, 0], [64, 64]), x)", d.InvalidOperationError, ["cannot mix Tensor and Tile arguments"]),
    ("a = x.add(x)", d.ParserError, ["add"]),
    # L-47: kernels call nothing
    ("a = self.k(x, o, 1)", (d.ParserTypeError, ValueError), ["kernel"]),
    # L-51
    ("return pl.load(x, [0, 0], [64, 64])", d.ParserTypeError, ["Tile"]),
    ("return n", d.ParserTypeError, ["scalar"]),
    ("return pl.array.create(4, pl.INT32)", d.ParserTypeError, ["cannot cross function boundaries"]),
    # L-30, 03 X-2
    ("a = pld.world_size()", d.InvalidOperationError, ["HOST"]),
]


class Opaque:
    pass


@pytest.mark.parametrize("body,cls,fragments", CASES, ids=[c[0][:60] for c in CASES])
def test_rejected(tmp_path, body, cls, fragments):
    with pytest.raises(cls) as info:
        kernel(tmp_path, body, object_value=Opaque(), WIDTH=64)
    for fragment in fragments:
        assert fragment in str(info.value) + str(getattr(info.value, "hint", "")), str(info.value)
    assert_points_into(info.value, tmp_path, body)


def test_operand_error_is_chained(tmp_path):  # L-179
    with pytest.raises(d.InvalidOperationError) as info:
        kernel(tmp_path, "a = pl.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Acc)")
    assert str(info.value).startswith("Error in tile operation 'load': ")
    assert isinstance(info.value.__cause__, (TypeError, ValueError))


def test_position_of_an_error(tmp_path):  # L-181
    with pytest.raises(d.ParserTypeError) as info:
        kernel(tmp_path, "a = x[0, 0, 0]")
    span = info.value.span
    assert span["line"] == 9 and span["filename"].startswith(str(tmp_path))
    assert span["column"] == 13


def test_strict_ssa(tmp_path):  # L-58
    text = """
@pl.program(strict_ssa=True)
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        t = pl.load(x, [0, 0], [64, 64])
        {}
        o2 = pl.store(t, [0, 0], o)
        return o2
"""
    define(tmp_path, text.format("pass"))
    with pytest.raises(d.SSAViolationError) as info:
        define(tmp_path, text.format("t = pl.exp(t)"))
    assert info.value.previous_span["line"] == 8
    with pytest.raises(d.UnsupportedFeatureError):
        define(tmp_path, text.format("o[0:64, :] = t"))


PARAMETERS = [
    ("x", d.ParserTypeError, "Parameter 'x' missing type annotation"),
    ("x: pl.Tensor", d.ParserTypeError, "Incomplete type annotation"),
    ("x: pl.InOut[pl.Scalar[pl.INT32]]", d.ParserTypeError, "Scalar parameters cannot have InOut direction"),
    ("x: tuple[pl.Scalar[pl.INT32], pl.Scalar[pl.INT32]]", d.ParserTypeError, "Parameter type cannot be a tuple"),
    ("x: pl.Tensor[[64, 64], pl.FP32, pl.DN]", d.ParserTypeError, "pl.DN] is not supported"),
    ("x: pl.Tensor[[64, QQ], pl.FP32]", d.ParserTypeError, "Unknown shape variable: QQ"),
    ("x: pl.Tensor[[64, 1.5], pl.FP32]", d.ParserTypeError, "must be int or pl.dynamic()"),
    ("x: pl.Tensor[[64, 0], pl.FP32]", d.ParserTypeError, "0"),
    ("x: pl.Array[4, pl.INT32]", d.ParserTypeError, "cannot cross function boundaries"),
    ("x: pl.Tensor[[64], pl.FP32, pl.TensorView(foo=1)]", (d.ParserTypeError, TypeError), "foo"),
    ("x: int", d.ParserTypeError, "Unsupported type annotation"),
    ("x: pl.Tensor[[M, 4], pl.FP32], M: pl.Scalar[pl.INDEX]", d.ParserTypeError, "shadows the dynamic symbol"),
]


@pytest.mark.parametrize("params,cls,fragment", PARAMETERS, ids=[p[0] for p in PARAMETERS])
def test_parameter_rejected(tmp_path, params, cls, fragment):  # L-27, L-28, L-32
    with pytest.raises(cls) as info:
        define(
            tmp_path,
            f"""
M = pl.dynamic("M")

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, {params}):
        pass
""",
            future=True,
        )
    assert fragment in str(info.value)
