# SPDX-License-Identifier: Apache-2.0
"""One program for each line of the table of rejections (01 L-184): the class of the error, and a word of its message."""

import numpy as np
import pypto
import pypto.language as pl
import pytest
from pypto import ir
from pypto.language.parser import diagnostics as d
from pypto.runtime import RunConfig
from rejections import define, indent

IN = "x: pl.Tensor[[64, 64], pl.FP32]"
OUT = "o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]"
COPY = "o = pl.store(pl.load(x, [0, 0], [64, 64]), [0, 0], o)"


def in_kernel(body, returns="", parameters=f"{IN}, n: pl.Scalar[pl.INT32], {OUT}"):
    return f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, {parameters}){returns}:
{indent(body, 8)}
"""


def in_main(body, head="", attributes="type=pl.FunctionType.Orchestration"):
    return f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, {IN}, {OUT}):
        {COPY}
        return o
{indent(head, 4)}
    @pl.function({attributes})
    def main(self, {IN}, n: pl.Scalar[pl.INT32], {OUT}):
{indent(body, 8)}
        return o
"""


def region(body, at="", tail="k.compile()"):
    return f"""
@pl.jit
def k({IN}, {OUT}):
    with pl.at(level=pl.Level.CORE_GROUP{at}):
{indent(body, 8)}
    return o

go = lambda: {tail}
"""


SYNTAX, KIND, NAME, FEATURE = (
    d.ParserSyntaxError,
    d.ParserTypeError,
    d.UndefinedVariableError,
    d.UnsupportedFeatureError,
)
LAUNCH = f"""
@pl.jit
def k({IN}, {OUT}):
    for i in pl.spmd(8, sync_start=True):
        o[i : i + 1, :] = pl.add(x[i : i + 1, :], 1.0)
        pl.system.syncall(core_type="aiv_only")
    return o

go = lambda: k.compile()
"""
SPLIT = (
    "c = pl.matmul(pl.load(x, [0, 0], [64, 64]), pl.load(x, [0, 0], [64, 64]))\n"
    "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    v = pl.exp(c)\n    pl.assemble(o, v, [lane * 32, 0])"
)
AREAS = {
    "decorators": ("@pl.function(type=3)\ndef f(x: pl.Tensor[[4], pl.FP32]):\n    pass", SYNTAX, "type"),
    "classes": ("@pl.program\nclass P:\n    pass", SYNTAX, "P"),
    "external kernels": (
        f"@pl.jit.extern(core_type='aiv', source='no_such_file.cpp')\ndef f({IN}, {OUT}): ...\n\n"
        f"@pl.jit\ndef k({IN}, {OUT}):\n    o = f(x, o)\n    return o\n\ngo = lambda: k.compile()",
        (ValueError, SYNTAX, KIND), "no_such_file.cpp",
    ),
    "annotations": (in_kernel("pass", parameters="x: pl.Tensor[[64, 1.5], pl.FP32]"), KIND, "1.5"),
    "dynamic dims": ("pl.dynamic('2M')", ValueError, "2M"),
    "late symbols": (in_kernel("pass", parameters="x: pl.Tensor[[M, 4], pl.FP32], M: pl.Scalar[pl.INDEX]").replace(
        "\n@pl.program", "\nM = pl.dynamic('M')\n\n@pl.program", 1), KIND, "shadows the dynamic symbol"),
    "JIT arguments": (region(COPY, tail="k(np.zeros((64, 64), np.complex64), np.zeros((64, 64), np.float32))"), TypeError, "'x'"),
    "statements": (in_kernel("try:\n    pass\nfinally:\n    pass"), FEATURE, "statement"),
    "tuple counts": (in_kernel("a, b = 1, 2, 3"), (SYNTAX, KIND), "3"),
    "names": (in_kernel("a = nowhere"), NAME, "nowhere"),
    "names of one path": (in_kernel("if n > 1:\n    a = n\nb = a"), NAME, "a"),
    "rebinding": (in_kernel("t = pl.load(x, [0, 0], [64, 64])\nfor i in pl.range(n):\n    t = pl.load(x, [0, 0], [32, 64])"), KIND, "Cannot reassign 't'"),
    "scalars": (in_kernel("a = 0 < n < 4"), SYNTAX, "Only simple comparisons"),
    "scalar division": (in_kernel("a = n / n"), TypeError, "//"),
    "conditions": (in_kernel("if n:\n    pass"), KIND, "if condition"),
    "subscripts": (in_kernel("a = x[0:8:2, :]"), (KIND, FEATURE), "step"),
    "subscript writes": (in_kernel("o[0:8, :] = pl.load(x, [0, 0], [9, 64])"), (SYNTAX, FEATURE, KIND), "9"),
    "loops": (in_kernel("for i in range(4):\n    pass"), SYNTAX, "pl.range()"),
    "jumps": (in_kernel("for i in pl.parallel(4):\n    break"), d.InvalidOperationError, "break"),
    "returns in loops": (in_main("for i in pl.range(n):\n    return o\no = self.k(x, o)"), FEATURE, "return"),
    "calls": (in_main("o = self.other(x, o)"), NAME, "'other'"),
    "counts of arguments": (in_main("o = self.k(x)"), KIND, "expects 2 argument(s), got 1"),
    "returns": (in_kernel("return pl.load(x, [0, 0], [64, 64])"), KIND, "Tile"),
    "annotated returns": (in_kernel(COPY + "\nreturn o", " -> pl.Tensor[[64, 64], pl.FP16]"), KIND, "dtype"),
    "outputs": (in_main("o = pl.create_tensor([64, 64], dtype=pl.FP32)") + "\ngo = lambda: ir.compile(P, dump_passes=False)", pypto.Error, "'o'"),
    "function attributes": (in_main("pl.func_attr({'a': 1, 'a': 2})\no = self.k(x, o)"), SYNTAX, "Duplicate key 'a'"),
    "pl.at": (region(COPY, ", level=3").replace("level=pl.Level.CORE_GROUP, ", ""), SYNTAX, "level"),
    "misplaced operators": (in_main("a = pl.exp(x)\no = self.k(x, o)"), ValueError, "Misplaced tensor op"),
    "pl.cluster": (in_main("with pl.cluster(4):\n    o = self.k(x, o)"), SYNTAX, "pl.cluster() takes no positional"),
    "pl.spmd": (in_main("for i in pl.spmd(0):\n    o = self.k(x, o)"), (SYNTAX, ValueError), "spmd"),
    "scopes": (in_kernel("with pl.manual_scope():\n    pass"), SYNTAX, "manual_scope"),
    "pl.split_aiv": (in_kernel("for lane in pl.split_aiv(3, mode=pl.SplitMode.UP_DOWN):\n    pass"), (SYNTAX, ValueError), "split_aiv"),
    "crossings": (region(SPLIT), (ValueError, pypto.Error), "aiv_shard"),
    "submit": (in_main("pl.submit(self.k, x, o)"), SYNTAX, "must be unpacked"),
    "deps": (in_main("o, t = pl.submit(self.k, x, o, deps=3)"), (SYNTAX, KIND), "deps"),
    "tasks without work": (in_main("t = pl.system.task_dummy([])\no = self.k(x, o)"), SYNTAX, "positional"),
    "arrays": (in_kernel("return pl.array.create(4, pl.INT32)"), KIND, "cannot cross function boundaries"),
    "memory": (region("t = pl.load(x, [0, 0], [512, 512])\no = pl.store(t, [0, 0], o)").replace("64, 64", "512, 512"), ValueError, "exceeds platform limit"),
    "moves": (in_kernel("a = pl.move(pl.load(x, [0, 0], [64, 64]), pl.Mem.Acc)"), ValueError, "no path from Vec to Acc"),
    "mixed writes": (region(COPY + "\npl.write(o, [0, 0], 1.0)"), ValueError, "mixes"),
    "dtypes per platform": (region("t = pl.tile.tri(0, [64, 64], dtype=pl.INT8)\n" + COPY), ValueError, "int8 is not supported on the 'a2a3' backend"),
    "barriers": (LAUNCH, (ValueError, pypto.Error), "requires the SPMD launch to fill all 48 vector cores"),
    "text": ("pl.parse('x = 1')", (ValueError, SyntaxError), ""),
    "directives": (in_kernel("pl.static_assert(1 > 2, 'never')"), d.ParserError, "never"),
    "constants": (in_kernel("a = pl.const(n, pl.INT32)"), SYNTAX, "numeric literal"),
}  # fmt: skip


@pytest.mark.parametrize("area", AREAS)
def test_rejections(tmp_path, area):  # L-184
    text, cls, fragment = AREAS[area]
    with pytest.raises(cls) as info:
        scope = define(tmp_path, text, ir=ir, np=np, RunConfig=RunConfig)
        scope.get("go", lambda: None)()
    error = info.value
    assert fragment in str(error) + str(getattr(error, "hint", "")), str(error)
    assert not type(error).__name__.startswith("Internal")


def test_the_frames_are_accepted(tmp_path):  # L-184: what the cases are made of is no reason to refuse them
    x = np.random.default_rng(184).standard_normal((64, 64)).astype(np.float32)
    o = np.zeros_like(x)
    define(tmp_path, region(COPY))["k"](x, o)
    np.testing.assert_array_equal(o, x)
    define(tmp_path, in_kernel(COPY + "\nreturn o", " -> pl.Tensor[[64, 64], pl.FP32]"))
    program = define(tmp_path, in_main("o = self.k(x, o)"))["P"]
    o = np.zeros_like(x)
    ir.compile(program, output_dir=tmp_path / "out", dump_passes=False)(x, 3, o)
    np.testing.assert_array_equal(o, x)
    assert pl.SplitMode.UP_DOWN is not None
