# SPDX-License-Identifier: Apache-2.0
"""The compiler's log: one threshold for the process, one override for each thread, one line per record on stderr."""

from __future__ import annotations

import sys
import time
from _thread import _local
from enum import IntEnum

from pypto import _env


class LogLevel(IntEnum):
    """Severity of a line of the compiler's log; as a threshold, the lowest severity that is printed."""

    DEBUG = 0
    INFO = 1
    WARN = 2
    ERROR = 3
    FATAL = 4
    EVENT = 5
    NONE = 6


class _State(_local):
    level: LogLevel | None = None


_thread = _State()
_process: LogLevel | None = None


def _as_level(level: object) -> LogLevel:
    if isinstance(level, str):
        try:
            return LogLevel[level.upper()]
        except KeyError:
            names = " ".join(LogLevel.__members__)
            raise ValueError(f"unknown log level {level!r}; expected one of {names}") from None
    try:
        return LogLevel(level)  # type: ignore[arg-type]
    except ValueError:
        raise ValueError(f"unknown log level {level!r}; expected a LogLevel or 0-{int(LogLevel.NONE)}") from None


def set_log_level(level: LogLevel | int | str) -> None:
    """Set the threshold of the compiler's log for the process."""
    global _process
    _process = _as_level(level)


def get_log_level() -> LogLevel:
    """Return the threshold in force for this thread."""
    if _thread.level is not None:
        return _thread.level
    if _process is not None:
        return _process
    text = _env.get("PYPTO_LOG_LEVEL", "WARN")
    try:
        return _as_level(text)
    except ValueError as error:
        raise ValueError(f"PYPTO_LOG_LEVEL: {error}") from None


def _set_thread_log_level(level: LogLevel | int | str) -> None:
    """Override the threshold for the calling thread only."""
    _thread.level = _as_level(level)


def _clear_thread_log_level() -> None:
    """Remove the override of the calling thread."""
    _thread.level = None


def write(level: LogLevel, message: str) -> None:
    """Write one line at `level` to stderr if the threshold lets it through."""
    if level >= get_log_level() and level is not LogLevel.NONE:
        stamp = time.strftime("%H:%M:%S")
        text = str(message).replace("\n", "\\n")
        import threading

        print(f"[{level.name}] {stamp} {threading.current_thread().name}: {text}", file=sys.stderr)


def log_debug(msg: str) -> None:
    """Write one line at level DEBUG."""
    write(LogLevel.DEBUG, msg)


def log_info(msg: str) -> None:
    """Write one line at level INFO."""
    write(LogLevel.INFO, msg)


def log_warn(msg: str) -> None:
    """Write one line at level WARN."""
    write(LogLevel.WARN, msg)


def log_error(msg: str) -> None:
    """Write one line at level ERROR."""
    write(LogLevel.ERROR, msg)


def log_fatal(msg: str) -> None:
    """Write one line at level FATAL."""
    write(LogLevel.FATAL, msg)


def log_event(msg: str) -> None:
    """Write one line at level EVENT."""
    write(LogLevel.EVENT, msg)
