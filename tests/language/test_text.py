# SPDX-License-Identifier: Apache-2.0
"""Programs from text and back, comparing, saving, the statement view (01 section 7, 04 section 16)."""

import os

import numpy as np
import pypto.language as pl
import pytest
from pypto import _core, ir
from pypto.ir.pass_manager import PassManager
from pypto.language.parser.diagnostics import ParserSyntaxError, UndefinedVariableError

TEXT = """\
import pypto.language as pl


@pl.program
class Shift:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(self, x: pl.Tensor[[M, 16], pl.FP32], y: pl.Out[pl.Tensor[[M, 16], pl.FP32]]) -> pl.Tensor[[M, 16], pl.FP32]:
        t = pl.load(x, [0, 0], [8, 16])
        if x.shape[0] > 8:
            t = pl.add(t, 1.0)
        else:
            t = pl.sub(t, 1.0)
        return pl.store(t, [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[M, 16], pl.FP32], y: pl.Out[pl.Tensor[[M, 16], pl.FP32]]) -> pl.Tensor[[M, 16], pl.FP32]:
        for i in pl.range(2):
            y = self.kernel(x, y)
        return y
"""

FUNCTION = """\
@pl.function(type=pl.FunctionType.InCore)
def negate(x: pl.Tensor[[8, 16], pl.FP32], y: pl.Out[pl.Tensor[[8, 16], pl.FP32]]) -> pl.Tensor[[8, 16], pl.FP32]:
    return pl.store(pl.neg(pl.load(x, [0, 0], [8, 16])), [0, 0], y)
"""


def test_parse_and_run(tmp_path):  # L-78, SER-4: M is a dynamic dimension
    program = pl.parse(TEXT)
    assert isinstance(program, ir.Program) and program.name == "Shift"
    compiled = ir.compile(program, output_dir=tmp_path, dump_passes=False)
    for rows, step in ((8, -1), (16, 1)):
        x = np.random.default_rng(rows).standard_normal((rows, 16)).astype(np.float32)
        y = np.zeros_like(x)
        compiled(x, y)
        np.testing.assert_array_equal(y[:8], x[:8] + np.float32(step))


def test_print_reads_back():  # L-79, SER-2
    program = pl.parse(TEXT)
    text = str(program)
    assert text.startswith("# pypto.program: Shift\nimport pypto.language as pl\n")
    again = pl.parse(text)
    assert ir.structural_equal(program, again, enable_auto_mapping=True)
    assert ir.structural_hash(program, enable_auto_mapping=True) == ir.structural_hash(again, enable_auto_mapping=True)
    ir.assert_structural_equal(program, again, enable_auto_mapping=True)
    assert str(again) == text == program.as_python() == ir.python_print(program)
    for options in ({"concise": True}, {"prefix": "language"}):
        assert program.as_python(**options) != text


def test_functions_and_files(tmp_path):
    function = pl.parse(FUNCTION)
    assert isinstance(function, ir.Function) and function.name == "negate"
    path = tmp_path / "negate.py"
    path.write_text(FUNCTION)
    loaded = pl.loads(path)
    assert ir.structural_equal(function, loaded, enable_auto_mapping=True)
    assert not ir.structural_equal(function, loaded)  # other variable objects
    assert ir.structural_equal(function, function)
    with pytest.raises(FileNotFoundError):
        pl.loads(tmp_path / "none.py")


def test_old_spellings(tmp_path):  # SER-6
    with pytest.warns(DeprecationWarning):
        assert pl.parse_program(TEXT).name == "Shift"
    with pytest.warns(DeprecationWarning), pytest.raises(ValueError, match=r"Expected @pl\.program"):
        pl.parse_program(FUNCTION)
    path = tmp_path / "p.py"
    path.write_text(TEXT)
    with pytest.warns(DeprecationWarning):
        assert pl.loads_program(path).name == "Shift"


def test_counts():
    with pytest.raises(ValueError, match=r"No @pl\.function or @pl\.program found"):
        pl.parse("x = 1\n")
    with pytest.raises(ValueError, match="Multiple functions/programs found"):
        pl.parse(FUNCTION + FUNCTION.replace("negate", "other"))
    assert pl.parse(TEXT + "\n\n" + FUNCTION).name == "Shift"  # one program; functions beside it do not count


def test_errors_name_the_text(tmp_path):
    with pytest.raises(SyntaxError) as syntax:
        pl.parse("def f(:\n", filename="broken.py")
    assert syntax.value.filename == "broken.py" and syntax.value.lineno == 1
    with pytest.raises(ParserSyntaxError, match="Unknown FunctionType value: Kernel.*InCore") as info:
        pl.parse(FUNCTION.replace("InCore", "Kernel"), filename="k.py")
    assert info.value.span["filename"] == "k.py" and info.value.span["line"] == 1
    with pytest.raises(ParserSyntaxError, match="ZeroDivisionError") as info:
        pl.parse("y = 3\nx = 1 / 0\n", filename="z.py")
    assert info.value.span["line"] == 2 and isinstance(info.value.__cause__, ZeroDivisionError)
    with pytest.raises(UndefinedVariableError, match="Undefined variable 'q'") as info:
        pl.parse(FUNCTION.replace("pl.neg(", "pl.add(q, "), filename="u.py")
    assert info.value.span["filename"] == "u.py" and info.value.span["line"] == 3
    assert "u.py:3:" in str(info.value) and "pl.add(q, " in str(info.value)


def test_source_map(tmp_path):
    origin = tmp_path / "origin.txt"
    origin.write_text("first\nsecond line\nthird\n")
    with pytest.raises(UndefinedVariableError) as info:
        pl.parse(FUNCTION.replace("pl.neg(", "pl.add(q, "), source_map={3: (str(origin), 2, 8)})
    span = info.value.span
    assert (span["filename"], span["line"], span["column"]) == (str(origin), 2, 8)
    assert "second line" in str(info.value)


def test_imports_in_the_text():
    text = "import math\n\n" + FUNCTION.replace("pl.neg(", "pl.mul(").replace("[8, 16])), [0", "[8, 16]), math.pi), [0")
    assert "3.14159" in str(pl.parse(text))


# ------------------------------------------------------------------ compare and save


def test_differences_are_located():  # SER-7, SER-8
    a, b = pl.parse(TEXT), pl.parse(TEXT.replace("pl.add(t, 1.0)", "pl.add(t, 2.0)"))
    assert not ir.structural_equal(a, b, enable_auto_mapping=True)
    with pytest.raises(ValueError) as info:
        ir.assert_structural_equal(a, b, enable_auto_mapping=True)
    assert "kernel" in str(info.value) and "2.0" in str(info.value)


def test_serialize():  # SER-9
    program = pl.parse(TEXT)
    data = ir.serialize(program)
    again = ir.deserialize(data)
    assert again.name == program.name and ir.serialize(again) == data == ir.serialize(program)
    assert ir.structural_equal(program, again, enable_auto_mapping=True) and str(again) == str(program)
    function = ir.deserialize(ir.serialize(program.functions["kernel"]))
    assert function.name == "kernel"
    generator = np.random.default_rng(7)
    for damaged in (b"", b"x", data[:-1], data[: len(data) // 2], b"Q" + data[1:]):
        with pytest.raises(ValueError):
            ir.deserialize(damaged)
    for _ in range(200):
        at = int(generator.integers(len(data)))
        changed = bytearray(data)
        changed[at] ^= 1 << int(generator.integers(8))
        try:
            ir.deserialize(bytes(changed))
        except ValueError:
            pass


def test_serialize_to_file(tmp_path):
    program = pl.parse(TEXT)
    ir.serialize_to_file(program, tmp_path / "p.bin")
    assert os.path.getsize(tmp_path / "p.bin") > 0
    assert ir.deserialize_from_file(tmp_path / "p.bin").name == "Shift"


# ------------------------------------------------------------------ the statement view: SER-10


def test_statement_view():
    program = pl.parse(TEXT)
    main = program.functions["main"].body
    assert isinstance(main, ir.SeqStmts)
    loop = main.stmts[0]
    assert isinstance(loop, ir.ForStmt) and loop.loop_var.name == "i" and loop.kind == pl.ForKind.Sequential
    call = loop.body.stmts[0]
    assert isinstance(call, ir.AssignStmt) and call.var.name == "y"
    assert isinstance(call.value, ir.Call) and call.value.op.name == "kernel"
    assert [a.name for a in call.value.args] == ["x", "y"]
    assert isinstance(main.stmts[-1], ir.ReturnStmt)

    kernel = program.functions["kernel"].body
    load, branch = kernel.stmts[0], kernel.stmts[1]
    assert load.value.op.name == "tile.load" and isinstance(load.value.op, ir.Op)
    assert str(load.var.type).startswith("pl.Tile[[8, 16], pl.FP32")
    assert isinstance(branch, ir.IfStmt)
    assert branch.then_body.stmts[0].value.op.name == "tile.add"
    assert branch.else_body.stmts[0].value.op.name == "tile.sub"
    assert getattr(branch, "body", None) is None
    with pytest.raises(AttributeError):
        branch.nothing


def test_nodes_outlive_the_program():
    import gc

    node = pl.parse(TEXT).functions["kernel"].body.stmts[0].value
    gc.collect()
    assert node.op.name == "tile.load" and "load" in str(node) and node.span.line == 8


def walk(node, seen):
    """Walk like programs do: probe the documented names."""
    seen.append(type(node).__name__)
    for name in ("stmts", "body", "then_body", "else_body", "value", "expr", "args"):
        child = getattr(node, name, None)
        if child is None:
            continue
        for item in child if isinstance(child, (list, tuple)) else [child]:
            if not isinstance(item, (int, float, str)):
                walk(item, seen)


def test_walker():
    seen = []
    for function in pl.parse(TEXT).functions.values():
        walk(function.body, seen)
    for name in ("SeqStmts", "ForStmt", "IfStmt", "AssignStmt", "Call", "Var", "ReturnStmt", "ConstFloat"):
        assert name in seen
    assert ir.get_op("tile.load").name == "tile.load"
    with pytest.raises(ValueError):
        ir.get_op("tile.nothing")


def test_a_class_without_functions_is_located_in_the_text():
    with pytest.raises(pl.parser.diagnostics.ParserSyntaxError, match="contains no") as caught:
        pl.parse("@pl.program\nclass A:\n    pass\n", filename="here.py")
    assert caught.value.span["filename"] == "here.py"


@pl.jit
def scaled(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(4):
            y = pl.store(pl.mul(pl.load(x, [i * 4, 0], [4, 32]), 2.0), [i * 4, 0], y)
    return y


def test_the_text_of_a_lowered_program_reads_back_to_itself():  # 04 SER-2, TXT-5
    text = str(scaled.lower())
    assert "pl.tile.store(" in text and "pl.const(4, pl.INDEX)" in text
    again = pl.parse(text)
    assert str(again) == text == str(pl.parse(str(again)))
    assert "pl.tile." not in str(pl.parse(TEXT))


def test_a_name_without_a_short_spelling_does_not_change_the_others():
    # L-79: a program that was not lowered prints the same text again after it was read from it
    text = FUNCTION.replace("pl.neg(pl.load(x, [0, 0], [8, 16]))", "pl.tile.adds(pl.load(x, [0, 0], [8, 16]), 3.0)")
    indented = text.replace("\n", "\n    ").replace("(x: pl", "(self, x: pl").rstrip()
    program = pl.parse("@pl.program\nclass P:\n    " + indented + "\n")
    first = program.as_python()
    assert "pl.tile.adds(" in first and "(pl.load(" in first
    again = pl.parse(first)
    assert ir.structural_equal(program, again, enable_auto_mapping=True)
    assert again.as_python() == first


def test_a_named_float_is_the_constant_that_its_text_names():
    # L-12, L-79: 0.7978845608 is no FP32 number, and `c` holds the nearest one, as a literal in the call would
    program = pl.parse(
        "@pl.program\nclass P:\n    "
        + FUNCTION.replace(
            "    return pl.store(pl.neg(pl.load(x, [0, 0], [8, 16])), [0, 0], y)",
            "    c = 0.7978845608\n    return pl.store(pl.mul(pl.load(x, [0, 0], [8, 16]), c), [0, 0], y)",
        )
        .replace("(x: pl", "(self, x: pl")
        .replace("\n", "\n    ")
    )
    again = pl.parse(program.as_python())
    assert ir.structural_equal(program, again, enable_auto_mapping=True)
    assert again.as_python() == program.as_python()
    x = np.linspace(-3, 3, 128, dtype=np.float32).reshape(8, 16)
    y = np.zeros_like(x)
    ir.compile(program)(x, y)
    np.testing.assert_array_equal(y, x * np.float32(0.7978845608))


def test_an_entry_without_a_type_prints_the_level_that_it_gets():  # L-44, L-79
    text = TEXT.replace("@pl.function(type=pl.FunctionType.Orchestration)", "@pl.function")
    lowered = PassManager.get_strategy().run_passes(pl.parse(text))
    assert "type=pl.FunctionType.Orchestration, level=pl.Level.CHIP)" in lowered.as_python()


COUNTING = """import pypto.language as pl


@pl.program
class Counting:
    @pl.function(type=pl.FunctionType.InCore)
    def count(self, n: pl.Scalar[pl.INDEX], out: pl.Out[pl.Tensor[[4], pl.INT32]]) -> pl.Tensor[[4], pl.INT32]:
        at = (n + 3) % 4
        pl.write(out, [at], pl.cast(at, pl.INT32))
        return out
"""


def test_a_lowered_text_without_tiles_reads_back_to_itself():  # 01 L-79, 04 SER-2, TXT-5
    """Only the typed constants tell that it was lowered."""
    lowered = _core.compile(pl.parse(COUNTING)).program
    text = str(lowered)
    assert "pl.const(4, pl.INDEX)" in text and "pl.tile." not in text
    assert str(pl.parse(text)) == text
    assert "pl.const(4" not in str(pl.parse(COUNTING))


GIVEN = """import pypto.language as pl
import pypto.language.distributed as pld


@pl.program
class Given:
    @pl.function(type=pl.FunctionType.Orchestration, level=pl.Level.CHIP)
    def chip(self, y: pl.InOut[pl.Tensor[[1, 8], pl.FP32]], cells: pld.DistributedTensor[[2, 1], pl.INT32]):
        with pl.at(level=pl.Level.CORE_GROUP):
            pld.system.notify(cells, 0, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
            y[:, :] = pl.add(y, 1.0)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(self, y: pl.InOut[pl.Tensor[[2, 1, 8], pl.FP32]]):
        buf = pld.alloc_window_buffer([2], dtype=pl.INT32)
        cells = pld.window(buf, [2], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            self.chip(y[r], cells, device=r)
        meet = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
        pld.tensor.barrier(pld.window(meet, [pld.world_size(), 1], dtype=pl.INT32))
"""


def test_what_a_dispatch_implies_is_not_written():  # 01 L-79, 03 W-23, 04 SER-2
    """The window of one rank less becomes that of the parameter; a generated function keeps its name."""
    program = pl.parse(GIVEN)
    text = str(program)
    assert "pl.reshape" not in text
    again = pl.parse(text)
    assert str(again) == text and ir.structural_equal(program, again, enable_auto_mapping=True)
    lowered = _core.compile(program, world_size=2).program
    text = str(lowered)
    assert "# builtin.tensor.barrier" in text
    again = pl.parse(text)
    assert str(again) == text
    assert list(again.functions) == list(lowered.functions)
