# SPDX-License-Identifier: Apache-2.0
"""The exception classes (04 section 20), the renderer, and how native diagnostics become exceptions."""

from __future__ import annotations

import itertools
import os
import sys

from pypto import _core


class Record:
    """One access or wait of a run-time report: the dict's entries as attributes."""

    __slots__ = ("_fields",)

    def __init__(self, fields):
        object.__setattr__(self, "_fields", fields)

    def __getattr__(self, name):
        try:
            return self._fields[name]
        except KeyError:
            raise AttributeError(f"'Record' object has no attribute '{name}'") from None

    def __repr__(self):
        return "Record(" + ", ".join(f"{k}={v!r}" for k, v in self._fields.items() if v is not None) + ")"


class Error(Exception):
    """Base of errors that a person can fix."""


class DiagnosticError(Error):
    """An error with one or more located diagnostics: ``diagnostic`` is the first of ``diagnostics``."""

    diagnostics: list
    report = None

    def __init__(self, *args):
        super().__init__(*args)
        self.diagnostics = []

    @property
    def diagnostic(self):
        """The first diagnostic, or None."""
        return self.diagnostics[0] if self.diagnostics else None


def _span_dict(span):
    """``span`` as the documented dict: from None, a dict, a native span, or any object with the same attributes."""
    if span is None:
        return None
    if isinstance(span, dict):
        out = dict(span)
    else:
        out = {}
        for key in ("filename", "line", "column", "begin_line", "begin_column"):
            value = getattr(span, key, None)
            if value is not None:
                out[key] = value
    name = out.get("filename", out.get("file", "<unknown>"))
    out["filename"] = out["file"] = name
    out["line"] = out.get("line", out.get("begin_line", 0))
    out["column"] = out.get("column", out.get("begin_column", 0))
    out.setdefault("begin_line", out["line"])
    out.setdefault("begin_column", out["column"])
    return out


_PACKAGE = os.path.dirname(__file__) + os.sep


def caller_span():
    """Place of the innermost frame outside the package, None if there is none."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    if frame is None or frame.f_code.co_filename.startswith("<"):
        return None
    column = 1
    positions = getattr(frame.f_code, "co_positions", None)  # Python 3.11
    if positions is not None and frame.f_lasti >= 0:
        found = next(itertools.islice(positions(), frame.f_lasti // 2, None), None)
        if found is not None and found[2] is not None:
            column = found[2] + 1
    return {"filename": frame.f_code.co_filename, "line": frame.f_lineno, "column": column}


class ParserError(DiagnosticError):
    """Base of the front end's errors."""

    def __init__(self, message, span=None, hint=None, note=None, source_lines=None):
        super().__init__(message)
        self.message = message
        self.span = _span_dict(span)
        self.hint = hint
        self.note = note
        self.source_lines = source_lines

    def _diagnostic(self):
        if self.diagnostics:
            return self.diagnostics[0]
        lines = self.source_lines
        if lines is None and self.span is not None:
            lines = _file_lines(self.span["filename"])
        return _core.make_diagnostic(self.message, self.span, self.hint or "", self.note or "", list(lines or ()))

    def __str__(self):
        if self.span is None and not self.hint and not self.note:
            return str(self.message)
        return self._diagnostic().render().removeprefix("Error: ")


class ParserSyntaxError(ParserError):
    """A construct used in a form that it does not have."""


class ParserTypeError(ParserError):
    """Types, annotations, argument counts, wrong kinds."""


class UndefinedVariableError(ParserError):
    """An unknown name or function."""


class SSAViolationError(ParserError):
    """A name rebound under ``strict_ssa``; ``previous_span`` is the earlier definition."""

    def __init__(self, message, span=None, hint=None, note=None, source_lines=None, previous_span=None):
        super().__init__(message, span, hint, note, source_lines)
        self.previous_span = _span_dict(previous_span)


class UnsupportedFeatureError(ParserError):
    """A Python feature outside the language."""


class InvalidOperationError(ParserError):
    """Unknown operators, operator argument errors, misplaced ``break`` / ``continue``."""


class _OperandTypeError(InvalidOperationError, TypeError):
    """An operand of the wrong type: several rules promise a ``TypeError`` (01 L-22, 02 O-113)."""


class _OperandValueError(InvalidOperationError, ValueError):
    """An operand of a wrong value: several rules promise a ``ValueError`` (01 L-23, 02 O-2301)."""


for _cls in (_OperandTypeError, _OperandValueError):
    _cls.__name__ = _cls.__qualname__ = "InvalidOperationError"


class ScopeIsolationError(ParserError):
    """A value used where its block is not visible."""


class CompileError(DiagnosticError, ValueError):
    """A well-formed program that cannot be lowered."""


class PartialCodegenError(CompileError, RuntimeError):
    """Kernels that cannot be generated; the other kernels' files are in ``files``."""

    def __init__(self, *args):
        super().__init__(*args)
        self.files: dict[str, str] = {}


class ProgramFault(DiagnosticError, RuntimeError):
    """Found while a program ran."""


class DeadlockError(ProgramFault):
    """Nothing can progress any more."""


class RaceError(ProgramFault):
    """Two unordered accesses, at least one of which writes."""


class UninitializedReadError(ProgramFault):
    """An unspecified value reached a place where it matters."""


class ProtocolError(ProgramFault):
    """Misuse of signals, channels, barriers or collectives."""


class OutOfBoundsError(ProgramFault, IndexError):
    """An index outside its object."""


class CallbackError(ProgramFault):
    """A host callback raised; the original is ``__cause__``."""


class PlatformUnavailableError(Error, RuntimeError):
    """A platform cannot run here; ``missing`` lists what was looked for."""

    def __init__(self, message="", missing=()):
        super().__init__(message)
        self.missing = list(missing)


class InternalError(RuntimeError):
    """A defect of this package."""


_CLASSES = {
    cls.__name__: cls
    for cls in (
        Error,
        ParserError,
        ParserSyntaxError,
        ParserTypeError,
        UndefinedVariableError,
        SSAViolationError,
        UnsupportedFeatureError,
        InvalidOperationError,
        ScopeIsolationError,
        CompileError,
        PartialCodegenError,
        ProgramFault,
        DeadlockError,
        RaceError,
        UninitializedReadError,
        ProtocolError,
        OutOfBoundsError,
        CallbackError,
        PlatformUnavailableError,
        InternalError,
        ValueError,
        TypeError,
        IndexError,
        KeyError,
        ZeroDivisionError,
        OSError,
        SyntaxError,
        RuntimeError,
    )
}


class _VerificationError(DiagnosticError):
    """`pypto.Error` with diagnostics: what whole-program checks raise."""


_VerificationError.__name__ = _VerificationError.__qualname__ = "Error"


class _PlainKeyError(KeyError):
    """A KeyError that shows its text, not the repr of it."""

    def __str__(self):
        return str(self.args[0]) if self.args else ""


_PlainKeyError.__name__ = _PlainKeyError.__qualname__ = "KeyError"


def _full_text(diagnostic):
    """Message, location, help and notes, without the word before them."""
    return diagnostic.render().removeprefix("Error: ")


def _from_native(class_name, diagnostic, cause, cause_class, cause_text):
    """Builds the exception for a native diagnostic."""
    cls = _CLASSES[class_name]
    if cls is InvalidOperationError and cause_class is not None:
        cls = _OperandTypeError if cause_class == "TypeError" else _OperandValueError
    if issubclass(cls, ParserError):
        notes = "\n".join(text + (f" at {place}" if place else "") for text, place in diagnostic.notes)
        span = diagnostic.span
        args = (diagnostic.message, span, diagnostic.help or None, notes or None)
        lines = span.source_lines() if span is not None else None
        if cls is SSAViolationError:
            exc = cls(*args, lines, diagnostic.previous_span)
        else:
            exc = cls(*args, lines)
        exc.diagnostics = [diagnostic]
    else:
        if cls is Error:
            cls = _VerificationError
        elif cls is KeyError:
            cls = _PlainKeyError
        text = _full_text(diagnostic)
        if cls is InternalError:
            text += f"\npypto {_core.__version__}; please report this with the program that caused it"
        exc = cls(text)
        if isinstance(exc, DiagnosticError):
            exc.diagnostics = [diagnostic]
        else:
            exc.diagnostic = diagnostic  # pyright: ignore
            exc.diagnostics = [diagnostic]  # pyright: ignore
    if cause is not None:
        exc.__cause__ = cause
    elif cause_class is not None:
        exc.__cause__ = _CLASSES.get(cause_class, ValueError)(cause_text)
    return exc


def _warn(text, deprecated, filename, line):
    import warnings

    category = DeprecationWarning if deprecated else UserWarning
    registry = sys.modules["pypto"].__dict__.setdefault("__warningregistry__", {})
    warnings.warn_explicit(text, category, filename, line, registry=registry)


def _file_lines(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except (OSError, UnicodeDecodeError):
        return []


class ErrorRenderer:
    """Renders front-end and compile-time errors with their location (01 L-181)."""

    def __init__(self, use_color=None):
        if use_color is None:
            if os.environ.get("NO_COLOR"):
                use_color = False
            elif os.environ.get("FORCE_COLOR"):
                use_color = True
            else:
                use_color = bool(getattr(sys.stderr, "isatty", lambda: False)())
        self.use_color = use_color

    def render(self, exc):
        """Return the rendered text of an exception."""
        if isinstance(exc, ParserError):
            return exc._diagnostic().render(self.use_color)
        diagnostics = getattr(exc, "diagnostics", None)
        if diagnostics:
            return "\n".join(d.render(self.use_color) for d in diagnostics)
        return f"Error: {exc}"


def concise_error_message(exc):
    """One line: class, message and place of an error."""
    message = exc.message if isinstance(exc, ParserError) else str(exc)
    lines = message.strip().splitlines()
    text = f"{type(exc).__name__}: {lines[0] if lines else ''}"
    span = getattr(exc, "span", None)
    if span is None:
        diagnostic = getattr(exc, "diagnostic", None)
        span = _span_dict(diagnostic.span) if diagnostic is not None else None
    if span is not None:
        text += f" ({span['filename']}:{span['line']}:{span['column']})"
    return text


def backtrace_wanted():
    """Whether PTO_BACKTRACE asks for Python tracebacks."""
    value = os.environ.get("PTO_BACKTRACE", "0")
    if value in ("0", ""):
        return False
    if value == "1":
        return True
    raise ValueError(f"PTO_BACKTRACE must be 0 or 1, got {value!r}")


def _excepthook(cls, exc, traceback):
    if isinstance(exc, DiagnosticError) or getattr(exc, "diagnostic", None) is not None:
        try:
            full = backtrace_wanted()
        except ValueError as error:
            print(f"ValueError: {error}", file=sys.stderr)
            full = False
        if full:
            _previous_hook(cls, exc, traceback)
        print(ErrorRenderer().render(exc), file=sys.stderr)
    else:
        _previous_hook(cls, exc, traceback)


_previous_hook = sys.excepthook
if sys.excepthook is sys.__excepthook__:
    sys.excepthook = _excepthook
