# SPDX-License-Identifier: Apache-2.0
"""Distributed programs: one-shot calls, and `DistributedWorker`, which keeps the ranks between calls."""

from __future__ import annotations

import itertools
import os
from _thread import allocate_lock
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pypto import _core
from pypto._checks import check_run_config, listed
from pypto.runtime import _callbacks, _dtypes, _run
from pypto.runtime._handle import DispatchQueue, DistributedRunHandle
from pypto.runtime._memory import DeviceMemory
from pypto.runtime.device_tensor import DeviceTensor, StackedDeviceTensor
from pypto.runtime.runtime_base import Registration, RegistrationHandle, Worker

__all__ = [
    "DistributedWorker",
    "DistributedRunHandle",
    "execute_distributed",
    "execute_distributed_compiled",
    "_tensor_from_continuous",
]

_tensor_from_continuous = _callbacks.tensor_from_continuous


def execute_distributed(compiled: Any, args: Sequence[Any], config: Any = None) -> None:
    """Run a distributed program once, in place: all ranks are made for this call."""
    if config is not None:
        check_run_config(f"a call of {compiled._title!r}", config)
    platform = _run.where_to_run(compiled.platform, config)
    values = _run.native_arguments(args, compiled, None, _run.refuse_one_shot)
    callbacks = _callbacks.bind([compiled], {}, what="a one-shot call")
    dfx = None if config is None else _run._dfx(config)
    options = _run.run_options(config, compiled.distributed_config.device_ids, dfx)
    _run.dispatch(
        compiled._native_for(platform),
        values,
        platform=platform,
        options=options,
        title=compiled._title,
        callbacks=callbacks[compiled],
        folder=lambda: compiled.output_dir,
        dfx=dfx,
        program=compiled,
        trace=_run._trace_of(config),
    )


def execute_distributed_compiled(
    output_dir: str | os.PathLike[str],
    args: Sequence[Any],
    config: Any = None,
    *,
    platform: str | None = None,
    distributed_config: Any = None,
) -> Any:
    """Load the directory of a distributed program and run it once; returns what the call returns."""
    from pypto.ir.distributed_compiled_program import DistributedCompiledProgram

    compiled = DistributedCompiledProgram.from_dir(output_dir, platform=platform, distributed_config=distributed_config)
    return compiled(*args, config=config)


class _World:
    """Windows of the programs of a worker; each program has its own."""

    def __init__(self, device_ids: Sequence[int], persistent: bool, reset: bool) -> None:
        self._ids, self._persistent, self._reset = list(device_ids), persistent, reset
        self._worlds: dict[int, Any] = {}

    def of(self, compiled: Any) -> Any:
        """Return the native world of a program."""
        found = self._worlds.get(id(compiled))
        if found is None:
            found = self._worlds[id(compiled)] = _core.make_world(self._ids, self._persistent, self._reset)
        return found

    @property
    def _next_alloc_id(self) -> int:
        """Window groups created so far."""
        return sum(w.window_groups for w in self._worlds.values())

    def clear(self) -> None:
        """Drop all windows."""
        self._worlds.clear()


class DistributedWorker(Worker):
    """The ranks of one or more distributed programs, kept until `close`.

    Parameters
    ----------
    compiled
        One `DistributedCompiledProgram` or several of the same platform, runtime and devices.
    config
        Sizes things in advance; each dispatch takes its own `config=`.
    persistent
        Keep windows and signals between dispatches.
    reset_persistent_windows
        With `persistent`: zero them before every dispatch (default yes).
    callbacks
        Sub-worker name -> function of one sequence of tensors.
    inherited_host_tensors
        Host arrays that are kept alive until `release_inherited_host_tensor_refs` or `close`.
    startup_timeout_s
        Limit for bringing up ranks on hardware and over MPI.
    """

    is_distributed = True

    def __init__(
        self,
        compiled: Any,
        config: Any = None,
        *,
        persistent: bool = False,
        reset_persistent_windows: bool | None = None,
        callbacks: Mapping[str, Callable[..., Any]] | None = None,
        sub_worker_overrides: Mapping[str, Callable[..., Any]] | None = None,
        inherited_host_tensors: Sequence[Any] | None = None,
        startup_timeout_s: float | None = None,
    ) -> None:
        programs = _program_list(compiled)
        _check_same(programs)
        if reset_persistent_windows and not persistent:
            raise ValueError(
                "reset_persistent_windows=True requires persistent=True; without it every dispatch starts with "
                "zero windows anyway"
            )
        _check_timeout(startup_timeout_s)
        first = programs[0]
        self._programs = programs
        self._config = config
        self._ids = list(first.distributed_config.device_ids)
        self._platform = _run.where_to_run(first.platform, config)
        merged = _callbacks.merge(callbacks, sub_worker_overrides)
        self._callbacks = _callbacks.bind(programs, merged, what="prepare()")
        self._natives = {id(p): p._native_for(self._platform) for p in programs}
        self._inherited = _check_inherited(inherited_host_tensors)
        self._persistent = persistent
        reset = True if reset_persistent_windows is None else bool(reset_persistent_windows)
        self._w = _World(self._ids, persistent, reset)
        self._memories = [DeviceMemory("DistributedWorker") for _ in self._ids]
        self._registrations: dict[int, Registration] = {}
        self._next_cid = itertools.count()
        self._failed: BaseException | None = None
        self._generation = 1
        self._closed = False
        self._pid = os.getpid()
        self._close_lock = allocate_lock()
        self._queue = DispatchQueue(f"pypto-worker-{first.name}")

    # ------------------------------------------------------------------------------------------- description

    @property
    def level(self) -> int:
        """3: several devices."""
        return 3

    @property
    def platform(self) -> str:
        """Platform of the devices."""
        return self._platform

    @property
    def device_ids(self) -> list[int]:
        """Devices; rank `r` is `device_ids[r]`."""
        return list(self._ids)

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return len(self._ids)

    @property
    def runtime(self) -> str:
        """Name of the device runtime."""
        return self._programs[0].runtime_name

    @property
    def initialized(self) -> bool:
        """Whether the worker can be used."""
        return not self._closed

    def _alive(self, op: str) -> None:
        if os.getpid() != self._pid:
            raise RuntimeError(
                f"DistributedWorker.{op}() called in process {os.getpid()}, but process {self._pid} made "
                "the worker; a forked child makes its own"
            )
        if self._closed:
            raise RuntimeError(f"DistributedWorker.{op}() called after close()")

    # -------------------------------------------------------------------------------------------- dispatches

    def __call__(self, *args: Any, config: Any = None) -> None:
        """Dispatch the only program and wait."""
        self._alive("run")
        if len(self._programs) > 1:
            names = ", ".join(repr(p.name) for p in self._programs)
            raise TypeError(
                f"calling a worker that holds several programs is ambiguous ({names}); use rt.run(compiled, ...)"
            )
        self._submit(self._programs[0], args, config, "run", wait=True).result()

    def run(self, compiled: Any, *args: Any, config: Any = None) -> None:
        """Dispatch `compiled` and wait."""
        self._submit(compiled, args, config, "run", wait=True).result()

    def submit(self, compiled: Any, *args: Any, config: Any = None) -> DistributedRunHandle:
        """Queue a dispatch and return at once; with two in flight, the oldest is waited for first."""
        return self._submit(compiled, args, config, "submit")

    def _submit(
        self, compiled: Any, args: tuple[Any, ...], config: Any, op: str, *, options: Any = None, wait: bool = False
    ) -> DistributedRunHandle:
        self._alive(op)
        if config is not None:
            check_run_config(f"DistributedWorker.{op}()", config)
        if not any(p is compiled for p in self._programs):
            names = ", ".join(repr(p.name) for p in self._programs)
            raise ValueError(
                f"DistributedWorker.{op}(): {getattr(compiled, 'name', compiled)!r} is not one of the "
                f"programs registered when this worker was constructed ({names}); "
                "pass it to prepare(extra_compiled=[...])"
            )
        if len(args) != compiled._count:
            raise TypeError(
                f"DistributedWorker expects {compiled._count} arguments (in-place, one per parameter), got "
                f"{len(args)}. Parameters: {compiled.param_names}"
            )
        self._queue.refuse_inside(op)
        if self._failed is not None and self._persistent:
            raise RuntimeError(
                f"DistributedWorker.{op}(): an earlier dispatch failed and the persistent windows may be half-updated; "
                f"make a new worker. The failure: {type(self._failed).__name__}: {self._failed}"
            ) from self._failed
        native = self._natives[id(compiled)]
        values = _run.native_arguments(args, compiled, self, _run.refuse_one_shot)
        _core.check_args(native, values, function=compiled._title)
        dfx = None if config is None else _run._dfx(config)
        if options is None:
            # Its own options: an interrupt stops this dispatch and no other.
            options = _run.run_options(config, self._ids, dfx, fresh=True)
        callbacks = self._callbacks[compiled]

        def work() -> Any:
            if self._failed is not None and self._persistent:
                raise RuntimeError(f"an earlier dispatch failed: {self._failed}") from self._failed
            try:
                return _run.dispatch(
                    native,
                    values,
                    platform=self._platform,
                    options=options,
                    title=compiled._title,
                    callbacks=callbacks,
                    world=self._w.of(compiled),
                    folder=lambda: compiled.output_dir,
                    dfx=dfx,
                    program=compiled,
                    trace=_run._trace_of(config),
                    checked=True,
                )
            except BaseException as error:
                if self._failed is None:
                    self._failed = error
                raise

        if wait:
            own_thread = bool(compiled._native.sub_workers)
            return self._queue.run(work, (args, values), self._platform, own_thread=own_thread, stop=options.stop)
        return self._queue.submit(work, (args, values), self._platform, stop=options.stop)

    def register(self, compiled: Any) -> RegistrationHandle:
        """Return a handle that runs `compiled` on this worker."""
        self._alive("register")
        if not any(p is compiled for p in self._programs):
            raise ValueError(
                f"DistributedWorker.register(): {getattr(compiled, 'name', compiled)!r} is not one of the "
                "programs registered when this worker was constructed"
            )
        found = self._registrations.get(id(compiled))
        if found is None:
            found = self._registrations[id(compiled)] = Registration(compiled, next(self._next_cid))
        return RegistrationHandle(self, found)

    # ---------------------------------------------------------------------------------------------- memory

    def _memory_of(self, worker_id: int, op: str) -> DeviceMemory:
        self._alive(op)
        if isinstance(worker_id, bool) or not isinstance(worker_id, int) or not 0 <= worker_id < len(self._ids):
            raise ValueError(
                f"DistributedWorker.{op}: worker_id must be a rank in [0, {len(self._ids)}), got {worker_id!r}"
            )
        return self._memories[worker_id]

    def malloc(self, nbytes: int, *, worker_id: int = 0) -> int:
        """Return the address of `nbytes` new bytes on rank `worker_id`."""
        return self._memory_of(worker_id, "malloc").malloc(nbytes)

    def free(self, ptr: int, *, worker_id: int = 0) -> None:
        """Give back what `malloc` returned."""
        memory = self._memory_of(worker_id, "free")
        self._queue.drain()
        memory.free(ptr)

    def copy_to(self, dst_dev_ptr: int, src_host_ptr: int, nbytes: int, *, worker_id: int = 0) -> None:
        """Copy `nbytes` from host to device memory, after the dispatches submitted before."""
        memory = self._memory_of(worker_id, "copy_to")
        self._queue.drain()
        memory.copy_to(dst_dev_ptr, src_host_ptr, nbytes)
        tensor = self._owned_tensors.get((worker_id, dst_dev_ptr))
        if tensor is not None:
            tensor.buffer.unwritten = False

    def copy_from(self, dst_host_ptr: int, src_dev_ptr: int, nbytes: int, *, worker_id: int = 0) -> None:
        """Copy `nbytes` from device to host memory, after the dispatches submitted before."""
        memory = self._memory_of(worker_id, "copy_from")
        self._queue.drain()
        memory.copy_from(dst_host_ptr, src_dev_ptr, nbytes)

    def alloc_tensor(self, shape: Sequence[int], dtype: Any, *, init: Any = None, worker_id: int = 0) -> DeviceTensor:
        """Return a new tensor on rank `worker_id`."""
        self._memory_of(worker_id, "alloc_tensor")
        return super().alloc_tensor(shape, dtype, init=init, worker_id=worker_id)

    def free_tensor(self, tensor: DeviceTensor, *, worker_id: int = 0) -> None:
        """Free a tensor of this worker."""
        self._alive("free_tensor")
        self._queue.drain()
        super().free_tensor(tensor, worker_id=worker_id)

    def alloc_stacked_tensor(self, host: Any, *, worker_ids: Sequence[int] | None = None) -> StackedDeviceTensor:
        """Upload row `i` of `host` to rank `worker_ids[i]` (default `range(B)`)."""
        self._alive("alloc_stacked_tensor")
        array = _host_rows(host, "alloc_stacked_tensor")
        shape = tuple(array.shape)
        ids = list(range(shape[0])) if worker_ids is None else list(worker_ids)
        if len(ids) != shape[0]:
            raise ValueError(f"alloc_stacked_tensor: {shape[0]} rows need {shape[0]} worker_ids, got {len(ids)}: {ids}")
        if len(set(ids)) != len(ids):
            raise ValueError(f"alloc_stacked_tensor: worker_ids must be distinct, got {ids}")
        for i in ids:
            if isinstance(i, bool) or not isinstance(i, int) or not 0 <= i < len(self._ids):
                raise ValueError(f"alloc_stacked_tensor: worker_ids must be ranks in [0, {len(self._ids)}), got {ids}")
        dtype = host.dtype if hasattr(host, "dtype") and _dtypes.kind_of(host.dtype) else _core.dtype_of(array.dtype)
        shards: list[DeviceTensor] = []
        try:
            for row, worker_id in enumerate(ids):
                shards.append(self.alloc_tensor(shape[1:], dtype, init=host[row], worker_id=worker_id))
            return StackedDeviceTensor(shards, shape, ids)
        except BaseException:
            for shard, worker_id in zip(shards, ids, strict=False):
                super().free_tensor(shard, worker_id=worker_id)
            raise

    def free_stacked_tensor(self, stacked: StackedDeviceTensor) -> None:
        """Free all rows."""
        self._alive("free_stacked_tensor")
        _need_stacked(stacked, "free_stacked_tensor")
        for shard, worker_id in zip(stacked.shards, stacked.worker_ids, strict=True):
            self.free_tensor(shard, worker_id=worker_id)

    def copy_stacked_from(self, stacked: StackedDeviceTensor, host: Any) -> None:
        """Read all rows back into a host array of the same shape and type."""
        self._alive("copy_stacked_from")
        _need_stacked(stacked, "copy_stacked_from")
        info = _core.array_info(host)
        if info is None:
            raise TypeError(f"copy_stacked_from: host must be an array, got {type(host).__name__}")
        address, dtype, shape, contiguous, writable, _, device = info
        wanted = _dtypes.data_type(stacked.dtype)
        if tuple(shape) != stacked.shape or dtype is None or dtype != wanted:
            raise ValueError(
                f"copy_stacked_from: host has shape {list(shape)} and dtype {dtype}, expected "
                f"{list(stacked.shape)} and {wanted}"
            )
        if device != "cpu" or not contiguous or not writable:
            raise ValueError("copy_stacked_from: host must be a writable, contiguous CPU array")
        row = stacked.shards[0].nbytes
        for i, (shard, worker_id) in enumerate(zip(stacked.shards, stacked.worker_ids, strict=True)):
            self.copy_from(address + i * row, shard.data_ptr, row, worker_id=worker_id)

    def committed_device_memory(self, worker_id: int = 0) -> int:
        """Return the bytes in live allocations of rank `worker_id`."""
        return self._memory_of(worker_id, "committed_device_memory").committed

    def release_inherited_host_tensor_refs(self) -> None:
        """Drop the references to `inherited_host_tensors`."""
        self._inherited = []

    # ------------------------------------------------------------------------------------------------- life

    def close(self) -> None:
        """Wait for queued dispatches, free what is left, end the ranks. May be called again.

        Raises the error of a queued dispatch that nobody asked about.
        """
        with self._close_lock:
            if self._closed or os.getpid() != self._pid:
                self._closed = True
                return
            self._queue.refuse_inside("close")
            error = self._queue.stop()
            with self._memory_lock:
                for tensor in self._owned_tensors.values():
                    tensor.buffer.live = False
            if not self._queue.left():  # else a callback still has views of them; they go when it ends
                self._free_owned_tensors()
                for memory in self._memories:
                    memory.clear()
                self._w.clear()
            self._inherited = []
            self._registrations.clear()
            self._closed = True
        if error is not None:
            raise error

    def __enter__(self) -> DistributedWorker:
        self._alive("__enter__")
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        if kind is None:
            self.close()
            return
        try:
            self.close()
        except Exception as error:
            from pypto.runtime.log_config import runtime_logger

            runtime_logger("pypto.runtime.distributed_runner").error(
                "a queued dispatch failed as well: %s: %s", type(error).__name__, error
            )

    def __del__(self) -> None:
        queue = getattr(self, "_queue", None)
        if queue is not None and not getattr(self, "_closed", True):
            queue.abandon()

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return (
            f"<DistributedWorker platform={self._platform!r} device_ids={self._ids} "
            f"programs={[p.name for p in self._programs]} ({state})>"
        )


def _program_list(compiled: Any) -> list[Any]:
    from pypto.ir.distributed_compiled_program import DistributedCompiledProgram

    if isinstance(compiled, DistributedCompiledProgram):
        programs = [compiled]
    else:
        programs = listed("DistributedWorker: the programs", compiled, "distributed compiled programs")
    if not programs:
        raise ValueError("DistributedWorker requires at least one compiled program")
    for p in programs:
        if not isinstance(p, DistributedCompiledProgram):
            raise TypeError(f"DistributedWorker takes DistributedCompiledPrograms, got {type(p).__name__}")
    unique: list[Any] = []
    for p in programs:
        if not any(p is q for q in unique):
            unique.append(p)
    return unique


def _check_same(programs: list[Any]) -> None:
    first = programs[0]
    for other in programs[1:]:
        for what, value in (
            ("platform", lambda p: p.platform),
            ("device_ids", lambda p: list(p.distributed_config.device_ids)),
            ("runtime", lambda p: p.runtime_name),
        ):
            if value(first) != value(other):
                raise ValueError(
                    f"multi-program mode requires the same {what}: {first.name!r} has {value(first)!r}, "
                    f"{other.name!r} has {value(other)!r}"
                )


def _check_timeout(seconds: Any) -> None:
    if seconds is None:
        return
    good = isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 < seconds < float("inf")
    if not good:
        raise ValueError(f"startup_timeout_s must be a positive finite number, got {seconds!r}")


def _check_inherited(arrays: Sequence[Any] | None) -> list[Any]:
    kept = []
    for i, array in enumerate(arrays or ()):
        info = _core.array_info(array)
        if info is None:
            raise TypeError(f"inherited_host_tensors[{i}] must be an array, got {type(array).__name__}")
        if info[6] != "cpu":
            raise ValueError(f"inherited_host_tensors[{i}] is on {info[6]}, expected CPU")
        if not info[3]:
            raise ValueError(f"inherited_host_tensors[{i}] is not contiguous; call .contiguous() first")
        kept.append(array)
    return kept


def _host_rows(host: Any, op: str) -> Any:
    info = _core.array_info(host)
    if info is None:
        raise TypeError(f"{op}: host must be an array (torch, NumPy, DLPack), got {type(host).__name__}")
    _, _, shape, contiguous, _, _, device = info
    if device != "cpu":
        raise ValueError(f"{op}: host is on {device}, expected CPU. Call .cpu() before passing it.")
    if not contiguous:
        raise ValueError(f"{op}: host is not contiguous. Call .contiguous() before passing it.")
    if len(shape) < 2 or shape[0] < 1:
        raise ValueError(f"{op}: host must have rank >= 2 and at least one row ([B, *tail]), got shape {list(shape)}")
    return _dtypes.as_numpy(host)


def _need_stacked(stacked: Any, op: str) -> None:
    if not isinstance(stacked, StackedDeviceTensor):
        raise TypeError(f"{op} takes a StackedDeviceTensor, got {type(stacked).__name__}")
