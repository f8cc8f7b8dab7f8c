# SPDX-License-Identifier: Apache-2.0
"""Plain integer functions."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import Any


def gcd(a: int, b: int) -> int:
    """Return the greatest common divisor, never negative."""
    return math.gcd(a, b)


def lcm(a: int, b: int) -> int:
    """Return the least common multiple, never negative."""
    return abs(a * b) // math.gcd(a, b) if a and b else 0


def floordiv(a: int, b: int) -> int:
    """Return `a / b` rounded down."""
    return a // b


def floormod(a: int, b: int) -> int:
    """Return the remainder of `floordiv`; it has the sign of `b`."""
    return a % b


def extended_euclidean(a: int, b: int) -> tuple[int, int, int]:
    """Return `(g, x, y)` with `a * x + b * y == g == gcd(a, b)`."""
    x0, y0, x1, y1, r0, r1 = 1, 0, 0, 1, a, b
    while r1:
        q = r0 // r1
        r0, r1 = r1, r0 - q * r1
        x0, x1 = x1, x0 - q * x1
        y0, y1 = y1, y0 - q * y1
    return (r0, x0, y0) if r0 >= 0 else (-r0, -x0, -y0)


_FOLD: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": floordiv,
    "%": floormod,
    "min": min,
    "max": max,
}


def fold_const(op: str, a: Any, b: Any) -> int | None:
    """Return the value of `a op b` for two ints, or `None` if one is no int or the operation has no value."""
    if not isinstance(a, int) or not isinstance(b, int) or op not in _FOLD:
        return None
    try:
        return _FOLD[op](a, b)
    except ZeroDivisionError:
        return None


def tree(expression: Any) -> ast.expr:
    """Return the syntax tree of an expression given as int, text or anything that prints as one."""
    if isinstance(expression, ast.expr):
        return expression
    name = getattr(expression, "name", None)
    text = name if isinstance(name, str) and not isinstance(expression, str) else str(expression)
    return ast.parse(text, mode="eval").body
