# SPDX-License-Identifier: Apache-2.0
"""Device memory of the simulator: named allocations that `malloc` returns and that copies are checked against."""

from __future__ import annotations

from _thread import allocate_lock

import numpy as np

_ALIGN = 512


class DeviceMemory:
    """The memory of one simulated device as one worker sees it."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = allocate_lock()
        self._blocks: dict[int, tuple[np.ndarray, int]] = {}

    def malloc(self, nbytes: int) -> int:
        """Return the address of `nbytes` new bytes."""
        if isinstance(nbytes, bool) or not isinstance(nbytes, (int, np.integer)) or nbytes <= 0:
            raise ValueError(f"{self._what}.malloc: nbytes must be a positive int, got {nbytes!r}")
        block = np.zeros(int(nbytes) + _ALIGN, dtype=np.uint8)
        start = block.ctypes.data
        ptr = start + (-start) % _ALIGN
        with self._lock:
            self._blocks[ptr] = (block, int(nbytes))
        return ptr

    def free(self, ptr: int) -> None:
        """Give back an allocation."""
        with self._lock:
            self._size(ptr, "free")
            del self._blocks[ptr]

    def _size(self, ptr: int, op: str) -> int:
        found = self._blocks.get(ptr)
        if found is None:
            shown = hex(ptr) if isinstance(ptr, int) else repr(ptr)
            raise ValueError(f"{self._what}.{op}: {shown} is not the start of a live allocation of this worker")
        return found[1]

    def check(self, ptr: int, nbytes: int, op: str) -> np.ndarray:
        """Return the block at `ptr` after checking that `nbytes` bytes of it may be copied."""
        if isinstance(nbytes, bool) or not isinstance(nbytes, (int, np.integer)) or nbytes <= 0:
            raise ValueError(f"{self._what}.{op}: nbytes must be a positive int, got {nbytes!r}")
        with self._lock:
            size = self._size(ptr, op)
            if nbytes > size:
                raise ValueError(
                    f"{self._what}.{op}: {nbytes} bytes do not fit the allocation of {size} bytes at {ptr:#x}"
                )
            return self._blocks[ptr][0]

    def copy_to(self, dst: int, src: int, nbytes: int) -> None:
        """Copy host memory into an allocation."""
        from pypto import _core

        block = self.check(dst, nbytes, "copy_to")
        _core.memory_copy(dst, _address(src, self._what, "copy_to"), int(nbytes))
        del block

    def copy_from(self, dst: int, src: int, nbytes: int) -> None:
        """Copy an allocation into host memory."""
        from pypto import _core

        block = self.check(src, nbytes, "copy_from")
        _core.memory_copy(_address(dst, self._what, "copy_from"), src, int(nbytes))
        del block

    def block(self, ptr: int) -> np.ndarray | None:
        """Return the block at `ptr`, or `None`."""
        with self._lock:
            found = self._blocks.get(ptr)
        return found[0] if found else None

    @property
    def committed(self) -> int:
        """Bytes in live allocations."""
        with self._lock:
            return sum(size for _, size in self._blocks.values())

    def clear(self) -> None:
        """Forget all allocations."""
        with self._lock:
            self._blocks.clear()


def _address(ptr: int, what: str, op: str) -> int:
    if isinstance(ptr, bool) or not isinstance(ptr, (int, np.integer)) or ptr <= 0:
        raise ValueError(f"{what}.{op}: the host pointer must be a positive int (tensor.data_ptr()), got {ptr!r}")
    return int(ptr)
