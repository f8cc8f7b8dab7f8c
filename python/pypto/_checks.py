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
