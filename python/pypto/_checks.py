# SPDX-License-Identifier: Apache-2.0
"""Small checks for programs that build on the package."""

from __future__ import annotations

from typing import Any


def check(cond: Any, msg: str) -> None:
    """Raise `ValueError(msg)` if `cond` is false."""
    if not cond:
        raise ValueError(msg)


def internal_check(cond: Any, msg: str) -> None:
    """Raise `InternalError(msg)` if `cond` is false."""
    if not cond:
        from pypto._errors import InternalError

        raise InternalError(msg)


def internal_check_span(cond: Any, msg: str, span: Any) -> None:
    """Raise `InternalError` with `msg` and the location `span` if `cond` is false."""
    if not cond:
        from pypto._errors import InternalError

        filename = getattr(span, "filename", None)
        line = getattr(span, "begin_line", None) or getattr(span, "line", None)
        column = getattr(span, "begin_column", None) or getattr(span, "column", None)
        where = f"{filename}:{line}:{column}" if filename else str(span)
        raise InternalError(f"{msg}\n  --> {where}")


def shown(value: Any) -> str:
    """How a message shows a value of another kind than was expected: short ones as written, others by class."""
    text = repr(value)
    return text if len(text) <= 60 and "object at 0x" not in text else f"a {type(value).__name__}"


def check_class(what: str, value: Any, expected: type | tuple[type, ...], advice: str) -> None:
    """Raise `TypeError` naming `what` unless `value` is of a class; `advice` says what to write."""
    if not isinstance(value, expected):
        raise TypeError(f"{what} must be {advice}, got {shown(value)}")


def check_member(what: str, value: Any, enum: Any, prefix: str) -> None:
    """Raise `TypeError` unless `value` is a member of `enum`, which programs write with `prefix`."""
    if not isinstance(value, enum):
        first = next(iter(enum.__members__))
        raise TypeError(
            f"{what} must be a {prefix}{enum.__name__} such as {prefix}{enum.__name__}.{first} "
            f"(members: {', '.join(enum.__members__)}), got {shown(value)}"
        )


def listed(what: str, values: Any, of: str) -> list[Any]:
    """Return `values` as a list; `TypeError` naming `what` if they are none."""
    try:
        return list(values)
    except TypeError:
        raise TypeError(f"{what} must be a list of {of}, got {shown(values)}") from None


def check_compiled(what: str, compiled: Any) -> None:
    """Raise `TypeError` unless `compiled` is a compiled program or an entry of one."""
    if getattr(compiled, "_native", None) is None or not hasattr(compiled, "platform"):
        advice = ""
        if hasattr(compiled, "functions") or hasattr(compiled, "lower"):
            advice = "; compile it first: ir.compile(program), or kernel.compile(*args) of a @pl.jit function"
        raise TypeError(f"{what} takes a compiled program, got {shown(compiled)}{advice}")


def check_run_config(what: str, config: Any) -> None:
    """Raise `TypeError` unless `config` is a `RunConfig`."""
    if not hasattr(config, "platform") or not hasattr(config, "sim"):
        advice = "config must be a RunConfig such as RunConfig(platform='a2a3sim')"
        raise TypeError(f"{what}: {advice}, got {shown(config)}")
