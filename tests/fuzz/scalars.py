# SPDX-License-Identifier: Apache-2.0
"""Scalar expressions of 01 section 3 for the reference interpreter. Python numbers are compile-time values."""

from __future__ import annotations

import operator

import numpy as np
from values import BITS, NUMPY, Illegal, Scalar, Unspecified, is_float, is_signed, narrow, wrap

FOLD = {
    "Add": operator.add,
    "Sub": operator.sub,
    "Mult": operator.mul,
    "Div": operator.truediv,
    "FloorDiv": operator.floordiv,
    "Mod": operator.mod,
    "LShift": operator.lshift,
    "RShift": operator.rshift,
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
}
COMPARE = ("Eq", "NotEq", "Lt", "LtE", "Gt", "GtE")


def truth(v) -> bool:
    if isinstance(v, Scalar):
        if not v.known:
            raise Unspecified("an unspecified value decides a branch")
        return bool(v.value)
    return bool(v)


def typed(v, beside: Scalar) -> Scalar:
    """A literal beside a scalar (L-18)."""
    if isinstance(v, Scalar):
        return v
    if isinstance(v, bool):
        return Scalar(v, "BOOL")
    if isinstance(v, float):
        return Scalar(float(np.float32(v)), "FP32")
    if is_float(beside.dt):
        return Scalar(float(narrow(np.array(float(v)), beside.dt)), beside.dt)
    return Scalar(v, "INDEX")


def promoted(a: str, b: str) -> str:
    """The wider wins, at equal width the left (L-18)."""
    return b if BITS[b] > BITS[a] else a


def apply(name: str, a, b):
    if not isinstance(a, Scalar) and not isinstance(b, Scalar):
        if name in ("FloorDiv", "Mod") and b == 0:
            raise Illegal("division by zero")
        return FOLD[name](a, b)
    a, b = typed(a, b), typed(b, a)
    dt = promoted(a.dt, b.dt)
    known = a.known and b.known
    if name in COMPARE:
        if a.err or b.err:
            known = known and abs(a.value - b.value) > a.err + b.err
        return Scalar(bool(FOLD[name](a.value, b.value)), "BOOL", known)
    if is_float(dt):
        return _float(name, a, b, dt, known)
    if name in ("FloorDiv", "Mod") and b.value == 0:
        raise Illegal("division by zero")
    if name in ("LShift", "RShift"):  # 01 L-17: the dtype of the left operand, as in C
        dt = a.dt
        if not 0 <= b.value < BITS[dt]:
            raise Illegal("shift count")
        x = wrap(a.value, dt) if is_signed(dt) else a.value
        return Scalar(wrap(FOLD[name](x, b.value), dt), dt, known)
    x, y = wrap(a.value, dt), wrap(b.value, dt)
    return Scalar(wrap(FOLD[name](x, y), dt), dt, known)


def _float(name: str, a: Scalar, b: Scalar, dt: str, known: bool) -> Scalar:
    with np.errstate(all="ignore"):
        x, y = np.float32(a.value), np.float32(b.value)
        r = {"Add": x + y, "Sub": x - y, "Mult": x * y, "Div": x / y}[name]
        out = float(narrow(np.array(r, np.float32), dt))
    err = 0.0
    if a.err or b.err or name == "Div":
        spread = {"Add": a.err + b.err, "Sub": a.err + b.err, "Mult": abs(x) * b.err + abs(y) * a.err + a.err * b.err}
        if name == "Div":
            err = float("inf") if abs(y) <= b.err else float((a.err + abs(r) * b.err) / (abs(y) - b.err))
            err = 0.0 if not (a.err or b.err) else err
        else:
            err = float(spread[name])
        from values import ulp  # the same spacing as for arrays

        err = err + float(ulp(np.array(out), dt)) if err else 0.0
        if err != err or err == float("inf"):
            known, err = False, 0.0
    return Scalar(out, dt, known, err)


def extreme(name: str, a, b):
    """`pl.min` and `pl.max`."""
    if not isinstance(a, Scalar) and not isinstance(b, Scalar):
        return (max if name == "max" else min)(a, b)
    a, b = typed(a, b), typed(b, a)
    dt = promoted(a.dt, b.dt)
    value = (max if name == "max" else min)(a.value, b.value)
    known = a.known and b.known and value == value
    return Scalar(value, dt, known, max(a.err, b.err))


__all__ = ["NUMPY", "apply", "extreme", "truth", "typed"]
