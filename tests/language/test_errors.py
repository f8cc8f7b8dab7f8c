# SPDX-License-Identifier: Apache-2.0
"""Exception classes and their text: 01 section 16, 04 section 20."""

from __future__ import annotations

import subprocess
import sys

import pypto
import pypto.language as pl
import pytest
from pypto.language.parser import diagnostics


def test_class_tree():  # 04 section 20
    from pypto._errors import CompileError, PartialCodegenError, ProgramFault

    names = ("ParserSyntaxError ParserTypeError UndefinedVariableError SSAViolationError UnsupportedFeatureError "
             "InvalidOperationError ScopeIsolationError")  # fmt: skip
    for name in names.split():
        assert issubclass(getattr(diagnostics, name), diagnostics.ParserError)
    assert issubclass(diagnostics.ParserError, pypto.Error) and issubclass(pypto.Error, Exception)
    assert issubclass(CompileError, ValueError) and issubclass(PartialCodegenError, (CompileError, RuntimeError))
    assert issubclass(ProgramFault, RuntimeError) and issubclass(pypto.OutOfBoundsError, (ProgramFault, IndexError))
    assert issubclass(pypto.InternalError, RuntimeError) and not issubclass(pypto.InternalError, pypto.Error)
    assert issubclass(pypto.PlatformUnavailableError, (pypto.Error, RuntimeError))


def test_constructor_and_attributes():  # L-178, ERR-3
    span = {"filename": "k.py", "line": 3, "column": 5}
    error = diagnostics.ParserTypeError("wrong rank", span, hint="drop one index", note="declared above",
                                        source_lines=["a", "b", "    y = x[0, 0]", "d"])  # fmt: skip
    assert error.message == "wrong rank" and error.hint == "drop one index" and error.note == "declared above"
    assert (error.span["filename"], error.span["begin_line"], error.span["begin_column"]) == ("k.py", 3, 5)
    assert "wrong rank" in str(error)
    bare = diagnostics.ParserError("just text")
    assert str(bare) == "just text" and bare.span is None and bare.diagnostic is None
    ssa = diagnostics.SSAViolationError("again", span, previous_span={"filename": "k.py", "line": 1, "column": 1})
    assert ssa.previous_span["line"] == 1


def test_renderer():  # L-181, L-182
    error = diagnostics.ParserSyntaxError(
        "bad loop",
        {"filename": "k.py", "line": 3, "column": 5},
        hint="use pl.range()",
        source_lines=["one", "two", "    for i in x:", "four", "five", "six"],
    )
    text = diagnostics.ErrorRenderer(use_color=False).render(error)
    lines = text.splitlines()
    assert lines[0] == "Error: bad loop"
    assert lines[1] == "  --> k.py:3:5"
    assert " 3 |     for i in x:" in text and " 1 | one" in text and " 5 | five" in text and "six" not in text
    caret = lines[next(i for i, line in enumerate(lines) if "for i in x" in line) + 1]
    assert caret.index("^") - caret.index("|") == 1 + 5
    assert "   = help: use pl.range()" in text
    assert "\033[" in diagnostics.ErrorRenderer(use_color=True).render(error)


def test_color_follows_the_environment(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert diagnostics.ErrorRenderer().use_color
    monkeypatch.setenv("NO_COLOR", "1")
    assert not diagnostics.ErrorRenderer().use_color


def test_concise_message():
    error = diagnostics.ParserTypeError("wrong rank", {"filename": "k.py", "line": 3, "column": 5}, hint="h")
    assert diagnostics.concise_error_message(error) == "ParserTypeError: wrong rank (k.py:3:5)"


SCRIPT = """\
import pypto.language as pl

@pl.jit
def k(x: pl.Tensor[[4, 4], pl.FP32], y: pl.Out[pl.Tensor[[4, 4], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:] = pl.mul(x, missing)
    return y

k.compile()
"""


def run_script(tmp_path, **environment):
    import os

    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    env = {**os.environ, "PYTHONPATH": ":".join(p for p in sys.path if p), **environment}
    return subprocess.run([sys.executable, str(path)], capture_output=True, text=True, env=env, check=False), path


def test_uncaught_front_end_error_prints_rendered(tmp_path):  # L-182, ERR-4
    result, path = run_script(tmp_path)
    assert result.returncode == 1
    assert result.stderr.startswith("Error: Undefined variable 'missing'")
    assert f"--> {path}:6:26" in result.stderr and "Traceback" not in result.stderr


def test_backtrace_on_request(tmp_path):
    result, _ = run_script(tmp_path, PTO_BACKTRACE="1")
    assert "Traceback" in result.stderr and "Error: Undefined variable 'missing'" in result.stderr
    result, _ = run_script(tmp_path, PTO_BACKTRACE="yes")
    assert "PTO_BACKTRACE must be 0 or 1" in result.stderr


def test_front_end_error_has_a_diagnostic():  # OBS-30
    @pl.jit
    def k(x: pl.Tensor[[4, 4], pl.FP32], y: pl.Out[pl.Tensor[[4, 4], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.mul(x, missing)  # noqa: F821
        return y

    with pytest.raises(diagnostics.UndefinedVariableError) as info:
        k.compile()
    d = info.value.diagnostic
    assert d.file == __file__ and d.line == k._func.__code__.co_firstlineno + 3 and d.severity == "error"
    assert info.value.span["filename"] == __file__ and info.value.span["line"] == d.line
    assert "y[:] = pl.mul(x, missing)" in str(info.value)
    assert d.to_dict()["message"] == d.message == info.value.message
