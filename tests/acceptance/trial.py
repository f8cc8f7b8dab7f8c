# SPDX-License-Identifier: Apache-2.0
"""Runs a Python file in a forked child and says how it ended: it ran, it was refused with a place, or we failed."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import resource
import runpy
import select
import signal
import sys
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

import pypto
from pypto import ir, runtime  # noqa: F401  imported once, before forking

PACKAGE = os.path.dirname(pypto.__file__)
# What 01 section 16 and 04 section 20 document. Subclasses count; `InternalError` never does.
DOCUMENTED = (pypto.Error, ValueError, TypeError, IndexError, KeyError, AttributeError, NotImplementedError, OSError,
              RuntimeError, SyntaxError, ZeroDivisionError, NameError)  # fmt: skip


@dataclass
class Outcome:
    """`ran`, `refused` or what was wrong."""

    kind: str
    text: str = ""

    @property
    def good(self) -> bool:
        return self.kind in ("ran", "refused")


def _frames(error: BaseException) -> list[str]:
    return [f.filename for f in traceback.extract_tb(error.__traceback__)]


def judge(error: BaseException, path: str) -> Outcome:
    """How an exception that ended a program must be seen."""
    name = os.path.basename(path)
    text = f"{type(error).__module__}.{type(error).__name__}: {error}"
    if isinstance(error, pypto.InternalError):
        return Outcome("internal error", text)
    frames = _frames(error)
    if isinstance(error, AssertionError) and not any(f.startswith(PACKAGE) for f in frames):
        return Outcome("ran", "other numbers")
    if isinstance(error, MemoryError):
        return Outcome("refused", text)
    if not isinstance(error, DOCUMENTED):
        return Outcome("undocumented class", text)
    shown = [str(error)]
    span = getattr(error, "span", None)
    if isinstance(span, dict):
        shown.append(f"{span.get('filename')}:{span.get('line')}")
    if any(f"{name}:" in s and s.split(f"{name}:", 1)[1][:1].isdigit() for s in shown):
        return Outcome("refused", text)
    if isinstance(error, SyntaxError) and error.lineno:
        return Outcome("refused", text)
    own = [f for f in frames if os.path.basename(f) == name]
    if own and not frames[-1].startswith(PACKAGE):
        return Outcome("refused", text)  # Python's own error in a line of the file
    last = traceback.extract_tb(error.__traceback__)[-1]
    if own and (type(error).__module__ != "builtins" or (last.line or "").startswith("raise ")):
        return Outcome("refused", text)  # the call in the file is wrong, and we say so (04 ERR-1)
    return Outcome("no place", text + "\n" + "".join(traceback.format_tb(error.__traceback__)[-4:]))


def _child(path: str, argv: list[str]) -> Outcome:
    resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.argv = [path, *argv]
    os.chdir(os.path.dirname(path))
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        try:
            runpy.run_path(path, run_name="__main__")
        except SystemExit:
            return Outcome("ran")
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            return judge(error, path)
    return Outcome("ran")


def attempt(source: str, folder: Path, argv: list[str], seconds: float = 30) -> Outcome:
    """Run `source` as a file of `folder` in a child of its own."""
    path = folder / "damaged.py"
    path.write_text(source, encoding="utf-8")
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 3
        try:
            os.close(read)
            gc.disable()
            outcome = _child(str(path), argv)
            os.write(write, json.dumps([outcome.kind, outcome.text[:3000]]).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    try:
        ready, _, _ = select.select([read], [], [], seconds)
        data = b""
        while ready and (piece := os.read(read, 1 << 16)):
            data += piece
    finally:
        os.close(read)
    if not ready:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if not ready:
        return Outcome("hang", f"nothing after {seconds} s")
    if not data:
        return Outcome("crash", f"wait status {status}")
    kind, text = json.loads(data)
    return Outcome(kind, text)
