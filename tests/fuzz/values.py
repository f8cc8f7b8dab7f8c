# SPDX-License-Identifier: Apache-2.0
"""Values of the reference interpreter: storage with views, what is known of each cell, and rounding.

Every cell carries, beside its bytes, whether the rules fix it at all (02 O-209: padding and unwritten cells are not) and
how far a correct implementation may be away from the value here (02 O-303: transcendentals have a bound, not a value).
Cells with bound 0 are compared bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass

import ml_dtypes
import numpy as np

BF16 = ml_dtypes.bfloat16
NUMPY = {
    "BOOL": np.bool_,
    "INT8": np.int8,
    "INT16": np.int16,
    "INT32": np.int32,
    "INT64": np.int64,
    "INDEX": np.int64,
    "UINT8": np.uint8,
    "UINT16": np.uint16,
    "UINT32": np.uint32,
    "FP16": np.float16,
    "BF16": BF16,
    "FP32": np.float32,
}
BITS = {name: np.dtype(t).itemsize * 8 for name, t in NUMPY.items()}
FLOATS = ("FP32", "FP16", "BF16")


class Illegal(Exception):
    """The program breaks a rule that makes it an error at run time: it says nothing about values."""


class Unspecified(Illegal):
    """An unspecified value decides something (01 L-154)."""


def is_float(dt: str) -> bool:
    return dt in FLOATS


def is_signed(dt: str) -> bool:
    return dt.startswith("INT") or dt == "INDEX"


def prom(a: str, b: str) -> str:  # O-301
    if a == b:
        return a
    if is_float(a) != is_float(b):
        return a if is_float(a) else b
    if BITS[a] != BITS[b]:
        return a if BITS[a] > BITS[b] else b
    if is_signed(a) != is_signed(b):
        return a if is_signed(a) else b
    return a


def limits(dt: str) -> tuple[int, int]:
    bits = BITS[dt]
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed(dt) else (0, (1 << bits) - 1)


def wrap(value: int, dt: str) -> int:
    low, high = limits(dt)
    return (value - low) % (high - low + 1) + low


MANTISSA = {"FP32": 23, "FP16": 10, "BF16": 7}
LOWEST = {"FP32": -126, "FP16": -14, "BF16": -126}


def ulp(x: np.ndarray, dt: str) -> np.ndarray:
    """Spacing of `dt` at |x|, in double."""
    mag = np.abs(np.asarray(x, np.float64))
    with np.errstate(all="ignore"):
        exponent = np.where(mag > 0, np.floor(np.log2(np.where(mag > 0, mag, 1.0))), LOWEST[dt])
    exponent = np.clip(np.nan_to_num(exponent, nan=0, posinf=127, neginf=LOWEST[dt]), LOWEST[dt], 128)
    return np.exp2(exponent - MANTISSA[dt])


def round_odd(x: np.ndarray) -> np.ndarray:
    """Double to single, rounding to odd: a second rounding to a narrower format is then exact."""
    x = np.asarray(x, np.float64)
    with np.errstate(all="ignore"):
        near = x.astype(np.float32)
    back = near.astype(np.float64)
    bits = near.view(np.uint32) if near.ndim else near.reshape(1).view(np.uint32)[0]
    fix = np.isfinite(x) & np.isfinite(near) & (back != x) & ((bits & 1) == 0)
    toward = np.where(x > back, np.float32(np.inf), np.float32(-np.inf))
    return np.where(fix, np.nextafter(near, toward), near).astype(np.float32)


def narrow(x: np.ndarray, dt: str) -> np.ndarray:
    """Round a double or single array to `dt`, nearest even, once (O-312)."""
    x = np.asarray(x)
    with np.errstate(all="ignore"):
        if dt == "BF16":
            return (x if x.dtype == np.float32 else round_odd(x)).astype(BF16)
        return x.astype(NUMPY[dt])


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32)


@dataclass
class Cells:
    """Plain data: values, whether each is fixed by the rules, and the allowed distance."""

    x: np.ndarray
    known: np.ndarray
    err: np.ndarray

    @staticmethod
    def exact(x: np.ndarray) -> Cells:
        return Cells(x, np.ones(x.shape, bool), np.zeros(x.shape))

    def map(self, f) -> Cells:
        return Cells(f(self.x), f(self.known), f(self.err))

    def settle(self) -> Cells:
        """Forget cells whose bound is useless."""
        if self.err.any():
            bad = ~np.isfinite(self.err)
            if self.x.dtype.kind not in "iub":
                with np.errstate(all="ignore"):
                    bad |= (self.err > 0) & ~np.isfinite(wide(self.x))
            self.known = self.known & ~bad
            self.err = np.where(bad, 0.0, self.err)
        return self


class Storage:
    """Bytes that several names may share."""

    def __init__(self, nbytes: int) -> None:
        self.data = np.zeros(-(-nbytes // 8) * 8, np.uint8)
        self.known = np.zeros(self.data.size, bool)
        self.err = np.zeros(self.data.size)

    def get(self, idx: np.ndarray, dt: str) -> Cells:
        size = np.dtype(NUMPY[dt]).itemsize
        known = self.known.reshape(-1, size).all(1)
        return Cells(self.data.view(NUMPY[dt])[idx], known[idx], self.err[idx * size])

    def put(self, idx: np.ndarray, dt: str, cells: Cells) -> None:
        size = np.dtype(NUMPY[dt]).itemsize
        self.data.view(NUMPY[dt])[idx] = cells.x
        self.known.reshape(-1, size)[idx] = cells.known[..., None]
        self.err[idx * size] = cells.err
        for k in range(1, size):
            self.err[idx * size + k] = 0


class View:
    """A tile, or a tensor in global memory or on chip: places in a storage, a valid box, a pad mode."""

    def __init__(self, kind, storage, idx, dt, valid=None, *, where="L", acc=None) -> None:
        self.kind = kind  # "tile" | "tensor"
        self.storage = storage
        self.idx = idx
        self.dt = dt
        self.valid = tuple(idx.shape) if valid is None else tuple(int(v) for v in valid)
        self.where = where  # "G" global memory, "L" on chip
        self.snap: Cells | None = None  # an address used as a value in a kernel (01 L-87)
        self.acc = acc  # the accumulator behind a narrower declared product (O-1802)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.idx.shape

    @staticmethod
    def fresh(kind: str, shape, dt: str, valid=None, where="L") -> View:
        shape = tuple(int(n) for n in shape)
        count = int(np.prod(shape))
        storage = Storage(count * np.dtype(NUMPY[dt]).itemsize)
        return View(kind, storage, np.arange(count).reshape(shape), dt, valid, where=where)

    @staticmethod
    def of(kind: str, cells: Cells, dt: str, valid=None, where="L") -> View:
        """A fresh value; cells outside the valid box are unspecified (O-209)."""
        view = View.fresh(kind, cells.x.shape, dt, valid, where)
        cells = cells.settle()
        inside = view.inside()
        view.storage.put(view.idx, dt, Cells(cells.x, cells.known & inside, np.where(inside, cells.err, 0)))
        return view

    def inside(self) -> np.ndarray:
        mask = np.ones(self.shape, bool)
        for axis, v in enumerate(self.valid):
            line = np.arange(self.shape[axis]) < v
            mask &= line.reshape([-1 if a == axis else 1 for a in range(len(self.shape))])
        return mask

    def live(self) -> Cells:
        """What the storage holds now."""
        return self.storage.get(self.idx, self.dt)

    def value(self) -> Cells:
        """What an operation reads: for an address the bytes of its own statement (01 L-87)."""
        return self.snap if self.snap is not None else self.live()

    def box(self, sel, cells: Cells) -> None:
        """Write through this name."""
        self.storage.put(self.idx[sel], self.dt, cells)
        if self.snap is not None:
            self.snap.x[sel] = cells.x
            self.snap.known[sel] = cells.known
            self.snap.err[sel] = cells.err

    def same_places(self, idx, dt=None, valid=None) -> View:
        return View(self.kind, self.storage, idx, dt or self.dt, valid, where=self.where)


@dataclass
class Scalar:
    """A run-time scalar."""

    value: int | float | bool
    dt: str
    known: bool = True
    err: float = 0.0
