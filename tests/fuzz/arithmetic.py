# SPDX-License-Identifier: Apache-2.0
"""Numbers of chapter 02 on plain cells: element-wise operations, casts, reductions and products, with error bounds."""

from __future__ import annotations

import numpy as np
from values import BF16, BITS, LOWEST, MANTISSA, NUMPY, Cells, Illegal, is_float, is_signed, limits, narrow, ulp, wide

F32 = np.float32


def _finish(r32: np.ndarray, err: np.ndarray, known: np.ndarray, dt: str) -> Cells:
    """Round a single-precision result to `dt`; an inexact one may fall into a neighbour."""
    x = narrow(r32, dt)
    if err.any():
        # FP32: the operation itself rounds, 16 bits: twice (through single precision).
        step = ulp(x, dt) + (ulp(r32, "FP32") if dt != "FP32" else 0)
        err = np.where(err > 0, err + step, 0.0)
    return Cells(x, known, err).settle()


def _wide_err(c: Cells) -> tuple[np.ndarray, np.ndarray]:
    return (wide(c.x) if c.x.dtype.kind not in "iub" else c.x.astype(np.float64).astype(F32)), c.err


def binary(op: str, a: Cells, b: Cells, dt: str) -> Cells:
    """`a op b` in `dt`: one rounding (O-303), wrapping integers (O-305)."""
    known = a.known & b.known
    with np.errstate(all="ignore"):
        if not is_float(dt):
            return Cells(*_integer(op, a.x.astype(NUMPY[dt]), b.x.astype(NUMPY[dt]), known, dt), np.zeros(known.shape))
        x, ex = _wide_err(a)
        y, ey = _wide_err(b)
        inexact = (ex > 0) | (ey > 0)
        ax, ay = np.abs(x.astype(np.float64)), np.abs(y.astype(np.float64))
        if op in ("add", "sub"):
            r = x + y if op == "add" else x - y
            err = np.where(inexact, ex + ey + ulp(r, "FP32"), 0.0)
        elif op == "mul":
            r = x * y
            err = np.where(inexact, ax * ey + ay * ex + ex * ey + ulp(r, "FP32"), 0.0)
        elif op == "div":
            r = x / y
            room = ay - ey
            err = np.where(room > 0, (ex + np.abs(r.astype(np.float64)) * ey) / np.where(room > 0, room, 1), np.inf)
            err = np.where((ay == 0) & ~inexact | np.isinf(y) & (ex == 0), 0.0, err + 4 * ulp(r, "FP32"))
            err = np.where((r == 0) & (x == 0) & ~inexact | np.isinf(x) | np.isnan(r) & ~inexact, 0.0, err)
        elif op in ("max", "min"):
            r = np.maximum(x, y) if op == "max" else np.minimum(x, y)
            err = np.where(inexact, np.maximum(ex, ey), 0.0)
            known = known & ~np.isnan(x) & ~np.isnan(y)  # O-308
            known = known & ~((x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y)))
            return Cells(narrow(r, dt), known, err + np.where(err > 0, ulp(r, dt), 0)).settle()
        elif op == "fmod":
            r = np.fmod(x, y)
            known = known & ~inexact
            err = np.zeros(known.shape)
        else:
            raise AssertionError(op)
    return _finish(r, err, known, dt)


def _integer(op, x, y, known, dt):
    bits = BITS[dt]
    if op == "add":
        return x + y, known
    if op == "sub":
        return x - y, known
    if op == "mul":
        return x * y, known
    if op == "max":
        return np.maximum(x, y), known
    if op == "min":
        return np.minimum(x, y), known
    if op in ("div", "fmod"):
        low = limits(dt)[0]
        bad = (y == 0) | ((x == low) & (y == -1) if is_signed(dt) else False)  # O-306
        safe = np.where(bad, 1, y).astype(x.dtype)
        rem = np.fmod(x, safe)
        return (
            rem if op == "fmod" else ((x.astype(object) - rem) // safe.astype(object)).astype(x.dtype)
        ), known & ~bad
    if op == "and":
        return x & y, known
    if op == "or":
        return x | y, known
    if op == "xor":
        return x ^ y, known
    count = y.astype(np.int64)
    known = known & (count >= 0)
    over = count >= bits
    count = np.clip(count, 0, bits - 1).astype(x.dtype)
    if op == "shl":
        return np.where(over, 0, x << count).astype(x.dtype), known
    if op == "shr":
        return np.where(over, np.where(x < 0, -1, 0), x >> count).astype(x.dtype), known  # O-1203
    raise AssertionError(op)


def unary(op: str, a: Cells, dt: str) -> Cells:
    with np.errstate(all="ignore"):
        if not is_float(dt):
            x = a.x.astype(NUMPY[dt])
            r = {"neg": lambda: -x, "abs": lambda: np.where(x < 0, -x, x), "relu": lambda: np.maximum(x, 0)}
            r["not"] = lambda: ~x
            return Cells(r[op]().astype(x.dtype), a.known, np.zeros(x.shape))
        x, e = _wide_err(a)
        x64 = x.astype(np.float64)
        if op in ("neg", "abs", "relu"):
            r = -x if op == "neg" else np.abs(x) if op == "abs" else np.maximum(x, F32(0))
            known = a.known & ~(np.isnan(x) | (x == 0)) if op == "relu" else a.known
            return Cells(narrow(r, dt), known, e + np.where(e > 0, ulp(r, dt), 0)).settle()
        if op in ("sin", "cos"):  # within 1e-6 absolute (O-303)
            r = np.sin(x64) if op == "sin" else np.cos(x64)
            known = a.known & (np.abs(x64) < 1e300)
            out = Cells(r.astype(F32), known, np.where(np.isnan(r), 0, e + 1e-6 + ulp(r.astype(F32), "FP32")))
            return out.settle()
        if op == "exp":
            r = np.exp(x64)
            err = np.abs(r) * np.expm1(e)
            fixed = np.isinf(x) & (e == 0)
            near = np.abs(r.astype(F32)) > 1e38
        elif op == "log":
            r = np.log(x64)
            err = np.where(x64 - e > 0, e / np.maximum(x64 - e, 1e-300), np.inf)
            fixed = ((x == 0) | np.isinf(x) | (x < 0)) & (e == 0)
            near = False
        elif op == "sqrt":
            r = np.sqrt(x64)
            err = np.where(e == 0, 0, np.where(x64 - e > 0, e / np.sqrt(np.maximum(x64 - e, 1e-300)), np.inf))
            fixed = ((x == 0) | np.isinf(x) | (x < 0)) & (e == 0)
            near = False
        elif op == "rsqrt":
            r = 1 / np.sqrt(x64)
            err = np.where(e == 0, 0, np.where(x64 - e > 0, e * np.maximum(x64 - e, 1e-300) ** -1.5, np.inf))
            fixed = ((x == 0) | np.isinf(x) | (x < 0)) & (e == 0)
            near = False
        elif op == "recip":
            r = 1 / x64
            room = np.abs(x64) - e
            err = np.where(e == 0, 0, np.where(room > 0, e / np.maximum(room, 1e-300) ** 2, np.inf))
            fixed = ((x == 0) | np.isinf(x)) & (e == 0)
            near = np.abs(r) > 1e38
        else:
            raise AssertionError(op)
        r32 = r.astype(F32)
        fixed = fixed | np.isnan(x) & (e == 0)
        err = np.where(fixed, 0.0, err + 4 * ulp(r32, "FP32"))
        known = a.known & ~(near & ~fixed)
    return _finish(r32, err, known, dt)


def exact_expdif(a: Cells, b: Cells, dt: str) -> Cells:
    return unary("exp", binary("sub", a, b, dt), dt)  # O-1003


def compare(code: int, a: Cells, b: Cells) -> Cells:
    """Truth as booleans; a comparison that the bound does not decide is not fixed."""
    f = [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal][code]

    def plain(c: Cells) -> np.ndarray:
        return c.x.astype(np.float64) if c.x.dtype.kind not in "iub" else c.x

    x, y = plain(a), plain(b)
    known = a.known & b.known
    inexact = (a.err > 0) | (b.err > 0)
    with np.errstate(all="ignore"):
        if inexact.any():
            gap = np.abs(x.astype(np.float64) - y.astype(np.float64))
            known = known & ~(inexact & ~(gap > a.err + b.err))
        return Cells(f(x, y), known, np.zeros(known.shape))


def _to_integer(x: np.ndarray, mode: str, dt: str) -> np.ndarray:
    """O-1104 on doubles."""
    if mode in ("none", "trunc"):
        r = np.trunc(x)
    elif mode == "floor":
        r = np.floor(x)
    elif mode == "ceil":
        r = np.ceil(x)
    elif mode == "rint":
        r = np.rint(x)
    else:
        low = np.floor(x)
        half = x - low
        up = half > 0.5
        if mode == "round":
            tie = x > 0
        else:
            tie = np.mod(low, 2) == 0  # to the odd neighbour
        r = np.where(half == 0.5, np.where(tie, low + 1, low), np.where(up, low + 1, low))
    r = np.where(np.isnan(r), 0, r)
    bits = BITS[dt]
    low, high = limits("INT32" if bits <= 16 else dt)
    big = r >= float(high)
    small = r <= float(low)
    out = np.where(big | small, 0, r).astype(np.int64).astype(object)
    out = np.where(big, high, np.where(small, low, out))
    mask = (1 << bits) - 1
    return (out.astype(object) & mask).astype(np.uint64).astype(f"u{bits // 8}").view(NUMPY[dt])


MODES = ["none", "rint", "round", "floor", "ceil", "trunc", "odd"]


def cast(a: Cells, src: str, dt: str, mode: str = "round") -> Cells:
    """02 section 11."""
    with np.errstate(all="ignore"):
        if is_float(src) and is_float(dt):
            wide_x = wide(a.x)
            x = narrow(wide_x, dt)
            return Cells(x, a.known, np.where(a.err > 0, a.err + ulp(x, dt), 0)).settle()
        if is_float(src):
            x = a.x.astype(np.float64)
            out = _to_integer(x, mode, dt)
            known = a.known
            if a.err.any():
                same = _to_integer(x - a.err, mode, dt) == _to_integer(x + a.err, mode, dt)
                known = known & ((a.err == 0) | same)
            return Cells(out, known, np.zeros(x.shape))
        if is_float(dt):
            return Cells(*_int_to_float(a, dt))
        return Cells(a.x.astype(NUMPY[dt]), a.known, np.zeros(a.x.shape))


def _int_to_float(a: Cells, dt: str):
    if dt == "FP32":
        return a.x.astype(F32), a.known, np.zeros(a.x.shape)
    x = a.x.astype(np.float64)
    out = narrow(x, dt)
    # O-1106: a pair reached through an intermediate format may be one unit off.
    short = np.abs(x) < 2.0 ** (MANTISSA[dt] + 1)
    known = a.known & (np.isfinite(wide(out)) | (np.abs(x) > 70000))
    return out, known, np.where(short | ~np.isfinite(wide(out)), 0.0, ulp(out, dt) * 1.01)


def convert(a: Cells, src: str, dt: str) -> Cells:
    """Implicit conversion, O-304."""
    if src == dt:
        return a
    return cast(a, src, dt, "trunc")


# ------------------------------------------------------------------------------------------------------ reductions


def row_sum(a: Cells, dt: str, prod: bool = False) -> Cells:
    """Along the last axis, in the order of O-307, over cells that all count."""
    n = a.x.shape[-1]
    known = a.known.all(-1, keepdims=True)
    if not is_float(dt):
        with np.errstate(all="ignore"):
            f = np.multiply if prod else np.add
            return Cells(f.reduce(a.x, -1, dtype=a.x.dtype, keepdims=True), known, np.zeros(known.shape))
    x = wide(a.x)
    with np.errstate(all="ignore"):
        p = np.full((*x.shape[:-1], 16), 1 if prod else 0, F32)
        for j in range(n):
            p[..., j % 16] = p[..., j % 16] * x[..., j] if prod else p[..., j % 16] + x[..., j]
        for h in (8, 4, 2):
            p[..., :h] = p[..., :h] * p[..., h : 2 * h] if prod else p[..., :h] + p[..., h : 2 * h]
        r = p[..., 0:1] * p[..., 1:2] if prod else p[..., 0:1] + p[..., 1:2]
        return _finish(r, _chain_err(a, -1, r, prod), known, dt)


def _chain_err(a: Cells, axis: int, r, prod: bool) -> np.ndarray:
    if not a.err.any():
        return np.zeros(r.shape)
    inexact = (a.err > 0).any(axis, keepdims=True)
    x = np.abs(a.x.astype(np.float64))
    n = x.shape[axis]
    if prod:
        err = np.prod(x + a.err, axis, keepdims=True) - np.prod(x, axis, keepdims=True)
        err = err + 2 * n * ulp(np.prod(x + a.err, axis, keepdims=True), "FP32")
    else:
        err = a.err.sum(axis, keepdims=True) + 2 * n * ulp(x.sum(axis, keepdims=True), "FP32")
    return np.where(inexact, err, 0.0)


def extremum(a: Cells, dt: str, axis: int, largest: bool) -> Cells:
    x = a.x
    known = a.known.all(axis, keepdims=True)
    w = wide(x) if is_float(dt) else x
    r = (np.max if largest else np.min)(w, axis, keepdims=True)
    err = a.err.max(axis, keepdims=True)
    if is_float(dt):
        known = known & ~np.isnan(w).any(axis, keepdims=True)
        known = known & ~((r == 0) & ((w == 0) & np.signbit(w)).any(axis, keepdims=True))
        return Cells(narrow(r, dt), known, np.where(err > 0, err + ulp(r, dt), 0)).settle()
    return Cells(r, known, err)


def arg_extremum(a: Cells, dt: str, axis: int, largest: bool) -> Cells:
    w = wide(a.x) if is_float(dt) else a.x
    known = a.known.all(axis, keepdims=True) & ~(a.err > 0).any(axis, keepdims=True)
    if is_float(dt):
        known = known & ~np.isnan(w).any(axis, keepdims=True)
    r = (np.argmax if largest else np.argmin)(w, axis)
    return Cells(np.expand_dims(r, axis).astype(np.int32), known, np.zeros(known.shape))


def col_sum(a: Cells, dt: str, tree: bool) -> Cells:
    """O-1505: every addition rounds to the operand dtype."""
    rows = [a.map(lambda m, i=i: m[..., i : i + 1, :]) for i in range(a.x.shape[-2])]
    if not tree:
        acc = rows[0]
        for row in rows[1:]:
            acc = binary("add", acc, row, dt)
        return acc
    n = len(rows)
    while n > 1:
        h = n // 2
        rows_next = [binary("add", rows[2 * k], rows[2 * k + 1], dt) for k in range(h)]
        if n % 2:
            rows_next[0] = binary("add", rows_next[0], rows[n - 1], dt)
        rows, n = rows_next, h
    return rows[0]


def col_prod(a: Cells, dt: str) -> Cells:
    known = a.known.all(-2, keepdims=True)
    if not is_float(dt):
        with np.errstate(all="ignore"):
            return Cells(np.multiply.reduce(a.x, -2, dtype=a.x.dtype, keepdims=True), known, np.zeros(known.shape))
    x = wide(a.x)
    with np.errstate(all="ignore"):
        r = np.ones((*x.shape[:-2], 1, x.shape[-1]), F32)
        for i in range(x.shape[-2]):
            r = r * x[..., i : i + 1, :]
        return _finish(r, _chain_err(a, -2, r, True), known, dt)


# -------------------------------------------------------------------------------------------------------- products


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Single-precision fused multiply-add: the product of two singles is exact in double, the sum is rounded to odd."""
    with np.errstate(all="ignore"):
        p = a.astype(np.float64) * b.astype(np.float64)
        c = c.astype(np.float64)
        s = p + c
        t = s - p
        rest = (p - (s - t)) + (c - t)
        bits = s.view(np.int64)
        fix = np.isfinite(s) & (rest != 0) & ((bits & 1) == 0)
        odd = np.where(fix, np.nextafter(s, np.where(rest > 0, np.inf, -np.inf)), s)
        return odd.astype(F32)


def matmul(a: Cells, b: Cells, integer: bool, start: Cells | None) -> Cells:
    """[M, K] x [K, N], k ascending, one fused step per term (O-307)."""
    m, k = a.x.shape
    n = b.x.shape[1]
    if start is None:
        zero = np.zeros((m, n), np.int32 if integer else F32)
        start = Cells.exact(zero)
    known = start.known & a.known.all(1)[:, None] & b.known.all(0)[None, :]
    if integer:
        r = (a.x.astype(np.int64) @ b.x.astype(np.int64) + start.x).astype(np.int32)
        return Cells(r, known, np.zeros((m, n)))
    x, y, r = wide(a.x), wide(b.x), start.x.astype(F32)
    for i in range(k):
        r = fma(np.broadcast_to(x[:, i : i + 1], (m, n)).copy(), np.broadcast_to(y[i : i + 1], (m, n)).copy(), r)
    err = np.zeros((m, n))
    if a.err.any() or b.err.any() or start.err.any():
        ax, ay = np.abs(x.astype(np.float64)), np.abs(y.astype(np.float64))
        with np.errstate(all="ignore"):
            err = ax @ b.err + a.err @ ay + a.err @ b.err + start.err
            size = (ax + a.err) @ (ay + b.err) + np.abs(start.x.astype(np.float64)) + start.err
            inexact = (a.err > 0).any(1)[:, None] | (b.err > 0).any(0)[None, :] | (start.err > 0)
            err = np.where(inexact, err + 2 * (k + 1) * ulp(size, "FP32"), 0.0)
    return Cells(r, known, err).settle()


__all__ = ["BF16", "LOWEST", "Illegal"]
