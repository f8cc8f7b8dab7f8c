# SPDX-License-Identifier: Apache-2.0
"""`Worker`: what both workers have in common, and the bookkeeping of resident tensors."""

from __future__ import annotations

from _thread import RLock
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from pypto.runtime import _dtypes
from pypto.runtime.device_tensor import DeviceTensor, check_shape


class Allocation:
    """What a `DeviceTensor` made by a worker carries: whose it is, and whether it is still alive."""

    __slots__ = ("live", "nbytes", "owner", "ptr", "unwritten", "worker_id")

    def __init__(self, owner: Worker, ptr: int, nbytes: int, worker_id: int, unwritten: bool) -> None:
        self.owner: Worker | None = owner
        self.ptr = ptr
        self.nbytes = nbytes
        self.worker_id = worker_id
        self.unwritten = unwritten
        self.live = True


class Registration:
    """A program loaded on a worker; handles refer to it."""

    __slots__ = ("cid", "compiled")

    def __init__(self, compiled: Any, cid: int) -> None:
        self.compiled = compiled
        self.cid = cid


class RegistrationHandle:
    """Calls a program on the worker it was registered with.

    Attributes
    ----------
    cid
        Number of the registration on its worker.
    compiled
        The program.
    closed
        Whether `unregister` was called or the worker closed.
    """

    def __init__(self, worker: Any, registration: Registration) -> None:
        self._worker = worker
        self._registration = registration
        self._generation = getattr(worker, "_generation", 0)
        self._closed = False

    @property
    def cid(self) -> int:
        """Number of the registration on its worker."""
        return self._registration.cid

    @property
    def compiled(self) -> Any:
        """The program."""
        return self._registration.compiled

    @property
    def closed(self) -> bool:
        """Whether calling the handle is an error."""
        return self._closed or not self._worker.initialized or self._worker._generation != self._generation

    def __call__(self, *args: Any, config: Any = None) -> Any:
        if self.closed:
            raise RuntimeError(
                f"RegistrationHandle of {_name(self.compiled)!r} has been unregistered "
                f"{'' if self._closed else '(its worker is closed) '}and cannot be called; register the program again"
            )
        return self._worker.run(self.compiled, *args, config=config)

    def unregister(self) -> None:
        """Close this handle; others of the same program stay open. May be called again."""
        self._closed = True

    def __enter__(self) -> RegistrationHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.unregister()

    def __repr__(self) -> str:
        return f"<RegistrationHandle cid={self.cid} of {_name(self.compiled)!r}{' (closed)' if self.closed else ''}>"


def _name(compiled: Any) -> str:
    return getattr(compiled, "name", None) or str(compiled)


class Worker(ABC):
    """Base of the workers: device memory, programs, resident tensors.

    A subclass provides `malloc`, `free`, `copy_to`, `copy_from`, `run` and `register`; tensors are built on them.
    """

    @abstractmethod
    def malloc(self, nbytes: int, *, worker_id: int = 0) -> int:
        """Return the address of `nbytes` new bytes of device memory."""

    @abstractmethod
    def free(self, ptr: int, *, worker_id: int = 0) -> None:
        """Give back what `malloc` returned."""

    @abstractmethod
    def copy_to(self, dst_dev_ptr: int, src_host_ptr: int, nbytes: int, *, worker_id: int = 0) -> None:
        """Copy `nbytes` from host to device memory."""

    @abstractmethod
    def copy_from(self, dst_host_ptr: int, src_dev_ptr: int, nbytes: int, *, worker_id: int = 0) -> None:
        """Copy `nbytes` from device to host memory."""

    @abstractmethod
    def run(self, compiled: Any, *args: Any, config: Any = None) -> Any:
        """Run `compiled` once."""

    @abstractmethod
    def register(self, compiled: Any) -> Any:
        """Load `compiled` and return a handle that runs it."""

    @property
    def _owned_tensors(self) -> dict[tuple[int, int], DeviceTensor]:
        """Live tensors by (worker id, address). Made on first use: subclasses need not call `__init__`."""
        found = self.__dict__.get("_owned")
        return found if found is not None else vars(self).setdefault("_owned", {})  # type: ignore[attr-defined]

    @property
    def _memory_lock(self) -> RLock:
        found = self.__dict__.get("_mem_lock")
        return found if found is not None else vars(self).setdefault("_mem_lock", RLock())  # type: ignore[attr-defined]

    def alloc_tensor(self, shape: Sequence[int], dtype: Any, *, init: Any = None, worker_id: int = 0) -> DeviceTensor:
        """Return a new tensor in device memory.

        Parameters
        ----------
        shape, dtype
            Positive extents; a `torch.dtype`, NumPy dtype or `DataType`.
        init
            Host array of the same shape and type whose content is copied; without it the content is unspecified.
        worker_id
            Rank that holds the tensor.
        """
        extents = check_shape("alloc_tensor", shape)
        if _dtypes.kind_of(dtype) is None:
            raise TypeError(f"alloc_tensor: unsupported dtype {dtype!r} ({type(dtype).__name__})")
        nbytes = _dtypes.nbytes(extents, dtype)
        source = None if init is None else _check_init(init, extents, dtype)
        ptr = self.malloc(nbytes, worker_id=worker_id)
        try:
            if source is not None:
                self.copy_to(ptr, source.ctypes.data, nbytes, worker_id=worker_id)
            token = Allocation(self, ptr, nbytes, worker_id, unwritten=source is None)
            tensor = DeviceTensor(ptr, extents, dtype, buffer=token)
        except BaseException:
            self.free(ptr, worker_id=worker_id)
            raise
        with self._memory_lock:
            self._owned_tensors[worker_id, ptr] = tensor
        return tensor

    def free_tensor(self, tensor: DeviceTensor, *, worker_id: int = 0) -> None:
        """Free a tensor of this worker. Freeing it again does nothing.

        Raises
        ------
        ValueError
            If another rank holds it, or its address belongs to a newer tensor now.
        """
        if not isinstance(tensor, DeviceTensor):
            raise TypeError(f"free_tensor takes a DeviceTensor, got {type(tensor).__name__}")
        token = tensor.buffer
        with self._memory_lock:
            live = self._owned_tensors.get((worker_id, tensor.data_ptr))
            if live is not None and live.buffer is token:
                del self._owned_tensors[worker_id, tensor.data_ptr]
                token.live = False
            elif live is not None:
                raise ValueError(f"free_tensor: {tensor!r} is stale: its address belongs to {live!r} now")
            else:
                owners = [
                    w for (w, ptr), t in self._owned_tensors.items() if ptr == tensor.data_ptr and t.buffer is token
                ]
                if owners:
                    raise ValueError(
                        f"free_tensor: {tensor!r} is held by worker_id {', '.join(map(str, owners))}, "
                        f"not by worker_id {worker_id}"
                    )
                if isinstance(token, Allocation) and token.owner is not self:
                    raise ValueError(f"free_tensor: {tensor!r} belongs to another worker")
                return
        self.free(tensor.data_ptr, worker_id=worker_id)

    def _free_owned_tensors(self) -> None:
        """Free what is left; a free that fails is one warning in the log."""
        with self._memory_lock:
            left = list(self._owned_tensors.items())
            self._owned_tensors.clear()
        for (worker_id, ptr), tensor in left:
            if isinstance(tensor.buffer, Allocation):
                tensor.buffer.live = False
            try:
                self.free(ptr, worker_id=worker_id)
            except Exception as error:
                from pypto.runtime.log_config import runtime_logger

                runtime_logger("pypto.runtime.runtime_base").warning(
                    "could not free %r of worker_id %d: %s", tensor, worker_id, error
                )

    def close(self) -> None:
        """Free what is left."""
        self._free_owned_tensors()


def _check_init(init: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return `init` as a contiguous NumPy array if its shape and type are those asked for."""
    from pypto import _core

    info = _core.array_info(init)
    if info is None:
        raise TypeError(f"alloc_tensor: init must be an array (torch, NumPy, DLPack), got {type(init).__name__}")
    _, got_dtype, got_shape, contiguous, _, _, device = info
    if device != "cpu":
        raise ValueError(f"alloc_tensor: init is on {device}, expected CPU. Call .cpu() before passing it.")
    wanted = _dtypes.data_type(dtype)
    if tuple(got_shape) != tuple(_dtypes.runtime_shape(shape, dtype)) or not _same_bits(got_dtype, wanted):
        raise ValueError(
            f"alloc_tensor: init has shape {list(got_shape)} and dtype {got_dtype}, "
            f"expected shape {list(shape)} and dtype {wanted}"
        )
    array = _dtypes.as_numpy(init)
    return array if contiguous else np.ascontiguousarray(array)


def _same_bits(got: Any, wanted: Any) -> bool:
    """Whether an array of type `got` may hold values of type `wanted` without conversion (DTY-2, DTY-3)."""
    if got is None:
        return False
    if got == wanted:
        return True
    if got.get_byte() != wanted.get_byte() or got.is_float():
        return False
    text = str(wanted)
    if wanted.is_float():
        return text in ("bfloat16",) or text.startswith(("fp8", "fp4", "hf"))
    return str(got) != "bool" or text == "bool"
