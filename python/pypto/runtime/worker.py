# SPDX-License-Identifier: Apache-2.0
"""`ChipWorker`: one device that runs many programs many times."""

from __future__ import annotations

import contextvars
from _thread import RLock
from typing import Any

from pypto._checks import check_run_config
from pypto._platform import check_platform
from pypto.ir.distributed_config import DEFAULT_RUNTIME
from pypto.runtime import _run
from pypto.runtime._memory import DeviceMemory
from pypto.runtime.runtime_base import Registration, RegistrationHandle, Worker

__all__ = ["ChipWorker", "RegistrationHandle"]


class ChipWorker(Worker):
    """One device: its memory, the programs loaded on it, runs of them.

    Parameters
    ----------
    config
        A `RunConfig`: platform and device.
    level
        Must be 2 (one device); level 3 is `DistributedWorker`.
    runtime
        Name of the device runtime.
    enable_sdma
        Whether programs that prefetch asynchronously may run.
    auto_init
        Whether the constructor initialises (default yes).
    """

    is_distributed = False

    def __init__(
        self,
        config: Any = None,
        *,
        level: int = 2,
        runtime: str = DEFAULT_RUNTIME,
        enable_sdma: bool = False,
        auto_init: bool | None = None,
    ) -> None:
        from pypto.passes._context import runtime_kind_from_name
        from pypto.runtime._config import RunConfig

        if level != 2:
            raise ValueError(
                f"ChipWorker drives one device (level=2), got level={level}; "
                "several devices are driven by DistributedWorker (compiled.prepare())"
            )
        if config is not None and not isinstance(config, RunConfig):
            raise TypeError(f"ChipWorker config must be a RunConfig or None, got {type(config).__name__}")
        self._config = config if config is not None else RunConfig()
        check_platform(self._config.platform)
        runtime_kind_from_name(runtime)
        self._runtime = runtime
        self._sdma = bool(enable_sdma)
        self._memory = DeviceMemory("ChipWorker")
        self._initialized = False
        self._generation = 0
        self._lock = RLock()
        self._registrations: dict[Any, Registration] = {}
        self._loaded: list[Any] = []
        self._tokens: list[contextvars.Token[tuple[Any, ...]]] = []
        self._aicpu_count = 0
        if auto_init is None or auto_init:
            self.init()

    # ------------------------------------------------------------------------------------------- description

    @property
    def level(self) -> int:
        """2: one device."""
        return 2

    @property
    def platform(self) -> str:
        """Platform of the device."""
        return self._config.platform

    @property
    def device_id(self) -> int:
        """Device index."""
        return self._config.device_id

    @property
    def runtime(self) -> str:
        """Name of the device runtime."""
        return self._runtime

    @property
    def enable_sdma(self) -> bool:
        """Whether programs that prefetch asynchronously may run."""
        return self._sdma

    @property
    def initialized(self) -> bool:
        """Whether the device is open."""
        return self._initialized

    @property
    def aicpu_dlopen_count(self) -> int:
        """Distinct programs loaded so far."""
        return self._aicpu_count

    @property
    def host_dlopen_count(self) -> int:
        """Host libraries loaded; the simulator needs none."""
        return 0

    # ----------------------------------------------------------------------------------------------- life

    def init(self) -> None:
        """Open the device. Does nothing if it is open."""
        with self._lock:
            if self._initialized:
                return
            _run.where_to_run(self.platform, self._config)
            self._memory = DeviceMemory("ChipWorker")
            self._generation += 1
            self._initialized = True

    def close(self) -> None:
        """Free what is left and close the device. May be called again; `init` opens it anew with fresh memory."""
        with self._lock:
            if not self._initialized:
                return
            self._free_owned_tensors()
            self._memory.clear()
            self._registrations.clear()
            self._loaded.clear()
            self._initialized = False

    def __enter__(self) -> ChipWorker:
        active = _run.active_workers.get()
        for other in active:
            if other._identity() == self._identity():
                raise ValueError(
                    f"a ChipWorker for platform {self.platform!r}, device {self.device_id}, runtime "
                    f"{self.runtime!r} is already active in this context; use the active one (ChipWorker.current)"
                )
        self.init()
        self._tokens.append(_run.active_workers.set((*active, self)))
        return self

    def __exit__(self, *_: object) -> None:
        _run.active_workers.set(tuple(w for w in _run.active_workers.get() if w is not self))
        self._tokens.pop()
        self.close()

    def _identity(self) -> tuple[Any, ...]:
        return self.level, self.platform, self.device_id, self.runtime

    @staticmethod
    def current(
        *, level: int, platform: str, device_id: int, runtime: str, require_sdma: bool = False
    ) -> ChipWorker | None:
        """Return the innermost active worker that matches, or `None`.

        Raises
        ------
        RuntimeError
            If it matches but was created without a capability that is required.
        """
        for worker in reversed(_run.active_workers.get()):
            if worker._identity() == (level, platform, device_id, runtime):
                if require_sdma and not worker.enable_sdma:
                    raise RuntimeError("the active ChipWorker was created without enable_sdma=True")
                return worker
        return None

    # -------------------------------------------------------------------------------------------- programs

    def _check(self, compiled: Any, op: str) -> None:
        if not self._initialized:
            raise RuntimeError(f"ChipWorker.{op}() requires an initialized ChipWorker; call init() or use it in a with")
        if getattr(compiled, "_params", None) is None or not hasattr(compiled, "platform"):
            raise TypeError(f"ChipWorker.{op}() takes a CompiledProgram, got {type(compiled).__name__}")
        if getattr(compiled._native, "distributed", False):
            raise TypeError(
                f"ChipWorker.{op}() takes single-device programs; {compiled.name!r} is distributed: "
                "use compiled.prepare()"
            )
        if compiled.platform != self.platform:
            raise ValueError(
                f"ChipWorker.{op}(): the program was compiled for platform {compiled.platform!r}, "
                f"the worker is on {self.platform!r}"
            )
        if compiled.runtime_name != self.runtime:
            raise ValueError(
                f"ChipWorker.{op}(): the program was compiled for runtime {compiled.runtime_name!r}, "
                f"the worker runs {self.runtime!r}"
            )
        self._check_sdma(compiled, op)

    def _check_sdma(self, compiled: Any, op: str) -> None:
        if compiled._native.uses_sdma() and not self._sdma:
            raise RuntimeError(
                f"ChipWorker.{op}(): program {compiled.name!r} prefetches asynchronously, but the worker "
                "was created without enable_sdma=True"
            )

    def _load(self, compiled: Any) -> None:
        """Count the first use of each distinct program."""
        owner = getattr(compiled, "_owner", compiled)
        for known in self._loaded:
            if known is owner:
                return
        with self._lock:
            if not any(known is owner for known in self._loaded):
                self._loaded.append(owner)
                self._aicpu_count += 1

    def register(self, compiled: Any) -> RegistrationHandle:
        """Load `compiled` now and return a handle that runs it."""
        self._check(compiled, "register")
        self._load(compiled)
        with self._lock:
            found = self._registrations.get(id(compiled))
            if found is None:
                found = self._registrations[id(compiled)] = Registration(compiled, len(self._registrations))
        return RegistrationHandle(self, found)

    def run(self, compiled: Any, *args: Any, config: Any = None) -> Any:
        """Run `compiled` once on this device, like calling it."""
        self._check(compiled, "run")
        if config is not None:
            check_run_config("ChipWorker.run()", config)
        if compiled._native.entries and compiled._entry_name is None:
            raise TypeError(compiled._select_message())
        values, made = compiled._bind(args, {})
        self._run(getattr(compiled, "_owner", compiled), compiled._entry_name, values, config, compiled._title)
        return compiled._result(values, made)

    def _run(
        self, program: Any, entry: str | None, values: Any, config: Any, title: str, *, device_time: bool = False
    ) -> Any:
        if not self._initialized:
            raise RuntimeError("ChipWorker.run() requires an initialized ChipWorker; call init() or use it in a with")
        self._check_sdma(program, "run")
        self._load(program)
        return _run.run_single(
            program,
            entry,
            values,
            platform=self.platform,
            device_id=self.device_id,
            config=config,
            worker=self,
            title=title,
            view=program if entry is None else program[entry],
            device_time=device_time,
        )

    # ---------------------------------------------------------------------------------------------- memory

    def _memory_of(self, worker_id: int, op: str) -> DeviceMemory:
        if worker_id != 0:
            raise ValueError(f"ChipWorker.{op}: worker_id must be 0 (one device), got {worker_id!r}")
        if not self._initialized:
            raise RuntimeError(f"ChipWorker.{op}() requires an initialized ChipWorker; call init() or use it in a with")
        return self._memory

    def malloc(self, nbytes: int, *, worker_id: int = 0) -> int:
        """Return the address of `nbytes` new bytes of device memory."""
        return self._memory_of(worker_id, "malloc").malloc(nbytes)

    def free(self, ptr: int, *, worker_id: int = 0) -> None:
        """Give back what `malloc` returned."""
        self._memory_of(worker_id, "free").free(ptr)

    def copy_to(self, dst_dev_ptr: int, src_host_ptr: int, nbytes: int, *, worker_id: int = 0) -> None:
        """Copy `nbytes` from host to device memory."""
        self._memory_of(worker_id, "copy_to").copy_to(dst_dev_ptr, src_host_ptr, nbytes)
        self._mark_written(dst_dev_ptr, worker_id)

    def copy_from(self, dst_host_ptr: int, src_dev_ptr: int, nbytes: int, *, worker_id: int = 0) -> None:
        """Copy `nbytes` from device to host memory."""
        self._memory_of(worker_id, "copy_from").copy_from(dst_host_ptr, src_dev_ptr, nbytes)

    def _mark_written(self, ptr: int, worker_id: int) -> None:
        tensor = self._owned_tensors.get((worker_id, ptr))
        if tensor is not None:
            tensor.buffer.unwritten = False

    def __repr__(self) -> str:
        state = "open" if self._initialized else "closed"
        return f"<ChipWorker platform={self.platform!r} device={self.device_id} ({state})>"
