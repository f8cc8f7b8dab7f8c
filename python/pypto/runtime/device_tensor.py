# SPDX-License-Identifier: Apache-2.0
"""Handles of tensors that stay on a device: `DeviceTensor`, and `StackedDeviceTensor` with one row per rank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pypto._checks import listed
from pypto.runtime import _dtypes


class DeviceTensor:
    """A tensor in a worker's device memory. Immutable and hashable; compares by pointer, shape and element type.

    Parameters
    ----------
    data_ptr
        Device address, a positive int.
    shape
        Positive ints, at least one.
    dtype
        A `torch.dtype`, a `pypto.DataType` or a NumPy dtype.
    buffer
        Whatever keeps the memory alive; not compared.
    """

    __slots__ = ("_buffer", "_data_ptr", "_dtype", "_shape")

    def __init__(self, data_ptr: int, shape: Sequence[int], dtype: Any, *, buffer: Any = None) -> None:
        if isinstance(data_ptr, bool) or not isinstance(data_ptr, int) or data_ptr <= 0:
            raise ValueError(f"DeviceTensor data_ptr must be a positive int, got {data_ptr!r}")
        extents = check_shape("DeviceTensor", shape)
        if _dtypes.kind_of(dtype) is None:
            raise TypeError(
                f"DeviceTensor dtype must be a torch.dtype, a pypto.DataType or a NumPy dtype, "
                f"got {type(dtype).__name__} {dtype!r}"
            )
        put = super().__setattr__
        put("_data_ptr", data_ptr)
        put("_shape", extents)
        put("_dtype", dtype)
        put("_buffer", buffer)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"DeviceTensor is immutable: cannot set {name!r}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"DeviceTensor is immutable: cannot delete {name!r}")

    @property
    def data_ptr(self) -> int:
        """Device address."""
        return self._data_ptr

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return self._shape

    @property
    def dtype(self) -> Any:
        """Element type, as it was given."""
        return self._dtype

    @property
    def buffer(self) -> Any:
        """What keeps the memory alive, or `None`."""
        return self._buffer

    @property
    def nbytes(self) -> int:
        """Bytes of the whole tensor."""
        return _dtypes.nbytes(self._shape, self._dtype)

    def _key(self) -> tuple[Any, ...]:
        return self._data_ptr, self._shape, _dtypes.data_type(self._dtype)

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, DeviceTensor) else NotImplemented

    def __hash__(self) -> int:
        return hash((self._data_ptr, self._shape, str(_dtypes.data_type(self._dtype))))

    def __repr__(self) -> str:
        return f"DeviceTensor(data_ptr={self._data_ptr:#x}, shape={list(self._shape)}, dtype={self._dtype})"


def check_shape(what: str, shape: Sequence[int]) -> tuple[int, ...]:
    """Return `shape` as a tuple of positive ints; raise `TypeError` or `ValueError` naming `what`."""
    extents = tuple(listed(f"{what} shape", shape, "ints"))
    if not extents:
        raise ValueError(f"{what} shape must not be empty")
    for n in extents:
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)):
            raise TypeError(f"{what} shape must consist of ints, got {n!r} in {list(extents)}")
        if n <= 0:
            raise ValueError(f"{what} shape must consist of positive ints, got {n} in {list(extents)}")
    return tuple(int(n) for n in extents)


class StackedDeviceTensor:
    """A logical `[B, *tail]` tensor whose row `i` is `shards[i]`, on rank `worker_ids[i]`."""

    __slots__ = ("_full_shape", "_shards", "_worker_ids")

    def __init__(self, shards: Sequence[DeviceTensor], full_shape: Sequence[int], worker_ids: Sequence[int]) -> None:
        shards = tuple(listed("StackedDeviceTensor: shards", shards, "DeviceTensors"))
        ids = tuple(listed("StackedDeviceTensor: worker_ids", worker_ids, "ranks"))
        full = tuple(listed("StackedDeviceTensor: full_shape", full_shape, "ints"))
        if len(full) < 2:
            raise ValueError(f"StackedDeviceTensor needs rank >= 2 ([B, *tail]), got shape {list(full)}")
        if full[0] < 1:
            raise ValueError(f"StackedDeviceTensor needs at least one row, got shape {list(full)}")
        if len(shards) != full[0]:
            raise ValueError(f"StackedDeviceTensor of {full[0]} rows needs {full[0]} shards, got {len(shards)}")
        if len(ids) != full[0]:
            raise ValueError(f"StackedDeviceTensor of {full[0]} rows needs {full[0]} worker_ids, got {len(ids)}")
        if len(set(ids)) != len(ids):
            raise ValueError(f"StackedDeviceTensor worker_ids must be distinct, got {list(ids)}")
        for i, shard in enumerate(shards):
            if not isinstance(shard, DeviceTensor):
                raise TypeError(f"StackedDeviceTensor shard {i} must be a DeviceTensor, got {type(shard).__name__}")
            if shard.shape != full[1:]:
                raise ValueError(
                    f"StackedDeviceTensor shard {i} must have shape {list(full[1:])}, got {list(shard.shape)}"
                )
            if _dtypes.data_type(shard.dtype) != _dtypes.data_type(shards[0].dtype):
                raise ValueError(
                    f"StackedDeviceTensor shards must have one dtype: shard 0 is {shards[0].dtype}, "
                    f"shard {i} is {shard.dtype}"
                )
        put = super().__setattr__
        put("_shards", shards)
        put("_full_shape", full)
        put("_worker_ids", ids)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"StackedDeviceTensor is immutable: cannot set {name!r}")

    @property
    def shards(self) -> tuple[DeviceTensor, ...]:
        """The rows."""
        return self._shards

    @property
    def worker_ids(self) -> tuple[int, ...]:
        """Rank that holds each row."""
        return self._worker_ids

    @property
    def shape(self) -> tuple[int, ...]:
        """`(B, *tail)`."""
        return self._full_shape

    full_shape = shape

    @property
    def dtype(self) -> Any:
        """Element type of every row."""
        return self._shards[0].dtype

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return sum(s.nbytes for s in self._shards)

    def __len__(self) -> int:
        return len(self._shards)

    def __getitem__(self, index: Any) -> DeviceTensor:
        parts = list(index) if isinstance(index, tuple) else [index]
        row, rank = parts[0] if parts else None, len(self._full_shape)
        if isinstance(row, bool) or not isinstance(row, (int, np.integer)):
            raise TypeError(f"StackedDeviceTensor: the leading index must be an int, got {row!r}")
        if not 0 <= row < self._full_shape[0]:
            raise IndexError(f"StackedDeviceTensor: row {row} is out of range for {self._full_shape[0]} rows")
        rest = parts[1:]
        dots = [i for i, p in enumerate(rest) if p is Ellipsis]
        if len(dots) > 1:
            raise IndexError("StackedDeviceTensor: an index can only have one ellipsis")
        if len(rest) - len(dots) > rank - 1:
            raise IndexError(
                f"StackedDeviceTensor: too many indices: {len(rest) - len(dots) + 1} for shape {list(self._full_shape)}"
            )
        if dots:
            fill = [slice(None)] * (rank - len(rest))
            rest[dots[0] : dots[0] + 1] = fill
        for axis, part in enumerate(rest, start=1):
            extent = self._full_shape[axis]
            whole = (
                isinstance(part, slice)
                and part.step in (None, 1)
                and part.start in (None, 0)
                and part.stop in (None, extent)
            )
            if not whole:
                raise ValueError(
                    f"StackedDeviceTensor: axis {axis} must be taken whole (`:` or `0:{extent}`), "
                    f"got {part!r}; a row cannot be cut"
                )
        return self._shards[int(row)]

    def __repr__(self) -> str:
        return (
            f"StackedDeviceTensor(shape={list(self._full_shape)}, dtype={self.dtype}, "
            f"worker_ids={list(self._worker_ids)})"
        )


def elements(shape: Sequence[int]) -> int:
    """Return the number of elements of `shape`."""
    return math.prod(shape)
