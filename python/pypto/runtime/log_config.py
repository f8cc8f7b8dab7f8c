# SPDX-License-Identifier: Apache-2.0
"""The runtime's log: its threshold, and the logger that its lines go through."""

from __future__ import annotations

import logging
import sys
import threading
import time

from pypto import _env

_NAMES = {"debug": 10, "info": 20, "timing": 25, "warn": 30, "warning": 30, "error": 40, "null": 60}
_DEFAULT = 25

logging.addLevelName(25, "TIMING")

_level: int | None = None


def parse_level(level: int | str) -> int:
    """Return the number of a runtime log level given by number or name, any case."""
    if isinstance(level, bool):
        raise ValueError(f"log level must be a name or an int, got {level!r}")
    if isinstance(level, int):
        return level
    word = str(level).strip().lower()
    if word in _NAMES:
        return _NAMES[word]
    if len(word) == 2 and word[0] == "v" and word[1].isdigit():
        return _DEFAULT
    if word.lstrip("-").isdigit():
        return int(word)
    raise ValueError(f"unknown log level {level!r}; expected one of {', '.join(_NAMES)}, v0 ... v9, or an int")


def configure_log(level: int | str, *, sync_pypto: bool = False) -> None:
    """Set the threshold of the runtime's log; with `sync_pypto` also that of the compiler's log."""
    global _level
    _level = parse_level(level)
    if sync_pypto:
        _sync(_level)
    runtime_logger().setLevel(_level)


def _sync(level: int) -> None:
    from pypto._log import LogLevel, set_log_level

    for limit, name in ((10, "DEBUG"), (20, "INFO"), (30, "WARN"), (40, "ERROR")):
        if level <= limit:
            set_log_level(LogLevel[name])
            return
    set_log_level(LogLevel.NONE)


def current_level() -> int:
    """Return the threshold of the runtime's log."""
    global _level
    if _level is None:
        text = _env.get("PYPTO_RUNTIME_LOG")
        try:
            _level = parse_level(text) if text else _DEFAULT
        except ValueError as error:
            raise ValueError(f"PYPTO_RUNTIME_LOG: {error}") from None
        if text and _env.flag("PYPTO_RUNTIME_LOG_SYNC", False):
            _sync(_level)
    return _level


class _Stderr(logging.Handler):
    """One line per record on stderr, unless the application has handlers of its own."""

    def emit(self, record: logging.LogRecord) -> None:
        if logging.getLogger().handlers:
            return
        stamp = time.strftime("%H:%M:%S", time.localtime(record.created))
        text = record.getMessage().replace("\n", "\\n")
        print(f"[{record.levelname}] {stamp} {threading.current_thread().name}: {text}", file=sys.stderr)


def runtime_logger(name: str = "pypto.runtime") -> logging.Logger:
    """Return logger `name`, with the runtime's threshold and a way to stderr."""
    top = logging.getLogger("pypto.runtime")
    if not any(isinstance(h, _Stderr) for h in top.handlers):
        top.addHandler(_Stderr())
    top.setLevel(current_level())
    return logging.getLogger(name)
