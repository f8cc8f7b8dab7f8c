# SPDX-License-Identifier: Apache-2.0
"""Programs from text: ``pl.parse``, ``pl.loads`` (01 L-78). The text is executed: it must be trusted."""

import builtins
import itertools
import re

from pypto import _core
from pypto._errors import ParserError, ParserSyntaxError

_numbers = itertools.count(1)


class _Names(dict):
    """Builtins for executed text: an undefined name is a dynamic dimension of that name."""

    def __init__(self, namespace):
        super().__init__(vars(builtins))
        self.namespace = namespace

    def __missing__(self, name):
        if name.startswith("__"):
            raise KeyError(name)
        symbol = _core.DynVar(name)
        self.namespace[name] = symbol
        return symbol


def _place(error, unique, shown):
    """File and line of the text at which an exception passed."""
    line = None
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == unique:
            line = traceback.tb_lineno
        traceback = traceback.tb_next
    return None if line is None else {"filename": shown, "line": line, "column": 1}


def _execute(code, filename, source_map):
    import pypto.language as pl
    import pypto.language.distributed as pld

    unique = f"<pypto text {next(_numbers)}>"
    namespace = {"__name__": "__pypto_text__", "__file__": filename, "pl": pl, "pld": pld}
    namespace["__builtins__"] = _Names(namespace)
    try:
        compiled = compile(code, unique, "exec")
    except SyntaxError as error:
        error.filename = filename
        raise
    _core.register_text(unique, code, filename, source_map)
    try:
        exec(compiled, namespace)
    except ParserError as error:
        if error.span is None:
            place = _place(error, unique, filename)
            error.span = None if place is None else dict(place, file=filename, begin_line=place["line"], begin_column=1)
            error.source_lines = code.splitlines()
        elif error.span.get("filename") == unique:
            error.span = {k: filename if v == unique else v for k, v in error.span.items()}
            error.source_lines = code.splitlines()
        raise
    except Exception as error:
        if getattr(error, "diagnostics", None):
            raise
        raise ParserSyntaxError(f"{type(error).__name__}: {error}", _place(error, unique, filename),
                                source_lines=code.splitlines()) from error  # fmt: skip
    finally:
        _core.forget_text(unique)
    return namespace


# The texts of lowered programs name every tile operation in full; others only those that have no shorter name, and no
# tile comes into being or leaves without one of those that have.
# They also write the integers of arithmetic as typed constants.
_FULL_NAME = re.compile(r"\bpl\.tile\.(\w+)\(|\bpl\.const\(-?\d+, pl\.INDEX\)")
# A function whose name Python could not write has it in a comment.
_NAMED = re.compile(r"^[ \t]*# (\S+)\n[ \t]*def (\w+)\(", re.MULTILINE)
_SHORT_NAME = re.compile(r"\bpl\.(load|store|move|create_tile)\(")


def _is_lowered(code):
    if _SHORT_NAME.search(code):
        return False
    from pypto import language

    # `pl.full` makes tensors: it is no shorter name of `pl.tile.full`.
    return any(not n or (n != "full" and hasattr(language, n)) for n in _FULL_NAME.findall(code))


def parse(code, filename="<string>", source_map=None):
    """Read the one program, or the one function, that a text defines.

    ``source_map`` maps a line of the text to the ``(file, line, column)`` that errors name.
    """
    if not isinstance(code, str):
        raise TypeError(f"pl.parse takes the text of a program, got {type(code).__name__}")
    namespace = _execute(code, str(filename), source_map)
    programs, functions = [], []
    for value in namespace.values():
        found = (
            programs if isinstance(value, _core.Program) else functions if isinstance(value, _core.Function) else None
        )
        if found is not None and not any(value is other for other in found):
            found.append(value)
    if len(programs) == 1:
        if _is_lowered(code):
            _core.print_full_names(programs[0])
        for name, identifier in _NAMED.findall(code):
            if name != identifier and re.sub(r"[^0-9A-Za-z_]", "_", name) == identifier:
                _core.name_function(programs[0], identifier, name)
        return programs[0]
    if not programs and len(functions) == 1:
        return functions[0]
    if not programs and not functions:
        raise ValueError(f"No @pl.function or @pl.program found in {filename}")
    raise ValueError(
        f"Multiple functions/programs found in {filename}: {len(programs)} programs, {len(functions)} functions; "
        "the text must define exactly one"
    )


def loads(path):
    """Read a program or function from a file."""
    with open(path, encoding="utf-8") as file:
        return parse(file.read(), str(path))


def _program_only(node):
    if not isinstance(node, _core.Program):
        raise ValueError("Expected @pl.program, but the text defines a function")
    return node


def _deprecated(old, new):
    import warnings

    warnings.warn(f"W-DEPRECATED: pl.{old} is deprecated; use pl.{new}", DeprecationWarning, stacklevel=3)


def parse_program(code, filename="<string>", source_map=None):
    """Old spelling of ``pl.parse`` for programs."""
    _deprecated("parse_program", "parse")
    return _program_only(parse(code, filename, source_map))


def loads_program(path):
    """Old spelling of ``pl.loads`` for programs."""
    _deprecated("loads_program", "loads")
    return _program_only(loads(path))


EXPORTS = {"parse": parse, "loads": loads, "parse_program": parse_program, "loads_program": loads_program}
