# SPDX-License-Identifier: Apache-2.0
"""`DistributedCompiledProgram`: a program with a host function, compiled for a world of devices."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pypto.ir._options import CompileOptions
from pypto.ir.compiled_program import ProgramBase
from pypto.ir.distributed_config import DistributedConfig

if TYPE_CHECKING:
    from pathlib import Path

    from pypto.runtime.distributed_runner import DistributedWorker

__all__ = ["DistributedCompiledProgram", "DistributedConfig"]


class DistributedCompiledProgram(ProgramBase):
    """A distributed program, compiled.

    Calling it brings up all ranks, runs the host function once, and tears everything down; `prepare` gives a worker
    that keeps the ranks between calls.
    """

    _word = "DistributedCompiledProgram"

    def __init__(
        self, native: Any, options: CompileOptions, *, program: Any = None, output_dir: str | Path | None = None
    ) -> None:
        super().__init__(native, options, program=program, output_dir=output_dir)
        self._callables: dict[str, Callable[..., Any]] | None = None
        self._loaded = False  # from a directory: Python functions are those of the directory

    @property
    def distributed_config(self) -> DistributedConfig:
        """The world it was compiled for."""
        config = self._options.distributed_config
        assert config is not None
        return config

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return len(self.distributed_config.device_ids)

    def __call__(self, *args: Any, config: Any = None, **kwargs: Any) -> Any:
        """Run once.

        Parameters
        ----------
        args
            One per parameter (in place, returns `None`), or all but the outputs (returns them).
        config
            A `RunConfig`: ring sizes, thread number, collection flags and simulator options are used.
        """
        from pypto.runtime import distributed_runner

        values, made = self._bind(args, kwargs)
        distributed_runner.execute_distributed(self, values, config)
        return self._result(values, made)

    def _call_jit(self, args: list[Any], config: Any) -> Any:
        """Run a JIT call: arguments are classified already, an omitted `Out` is `None`."""
        from pypto.runtime import distributed_runner

        if config is not None and (
            config.codegen_only
            or config.save_kernels
            or config.dump_passes
            or config.dump_ptoas_passes
            or config.compile_profiling
        ):
            self._ensure_written()
            if config.codegen_only:
                return None
        made = [i for i, a in enumerate(args) if a is None]
        if made:
            args, made = self._allocate(args, made)
        distributed_runner.execute_distributed(self, args, config)
        return self._result(args, made)

    def prepare(
        self,
        config: Any = None,
        *,
        extra_compiled: Sequence[DistributedCompiledProgram] = (),
        persistent: bool = False,
        reset_persistent_windows: bool | None = None,
        callbacks: Mapping[str, Callable[..., Any]] | None = None,
        sub_worker_overrides: Mapping[str, Callable[..., Any]] | None = None,
        startup_timeout_s: float | None = None,
    ) -> DistributedWorker:
        """Return a worker that holds the ranks and this program (and `extra_compiled`) until it is closed."""
        from pypto.runtime import distributed_runner

        return distributed_runner.DistributedWorker(
            [self, *extra_compiled],
            config,
            persistent=persistent,
            reset_persistent_windows=reset_persistent_windows,
            callbacks=callbacks,
            sub_worker_overrides=sub_worker_overrides,
            startup_timeout_s=startup_timeout_s,
        )

    @classmethod
    def from_dir(
        cls,
        output_dir: str | os.PathLike[str],
        *,
        platform: str | None = None,
        backend_type: Any = None,
        distributed_config: DistributedConfig | None = None,
    ) -> DistributedCompiledProgram:
        """Load the directory of an earlier compile, for another world if `distributed_config` is given.

        Raises
        ------
        FileNotFoundError
            If it has no metadata of a distributed program.
        ValueError
            If a file of it cannot be read.
        """
        from pathlib import Path

        from pypto.ir import _artifact

        folder = Path(os.fspath(output_dir)).absolute()
        native, options = _artifact.read(folder, _artifact.DIST_META, platform, backend_type, distributed_config)
        loaded = cls(native, options, output_dir=folder)
        loaded._loaded = True
        return loaded

    # -------------------------------------------------------------------------------------------- sub-workers

    def _concrete_callables(self) -> dict[str, Callable[..., Any]]:
        """Return the concrete sub-workers that have to be called through their saved source, by name."""
        if self._callables is None:
            found: dict[str, Callable[..., Any]] = {}
            for name, needs in self._native.sub_workers.items():
                if not needs and not self._has_python_function(name):
                    found[name] = _load_sub_worker(self._output_dir, name)
            self._callables = found
        return self._callables

    def _has_python_function(self, name: str) -> bool:
        if self._loaded:
            return False
        for program in (self._native.source, self._native.program):
            if program is not None and name in program.sub_workers:
                function = program.sub_workers[name].host_function
                if function is not None:
                    return True
        return False


def _load_sub_worker(folder: str | Path | None, name: str) -> Callable[..., Any]:
    """Return a function of one sequence that runs the saved source of sub-worker `name`."""
    from pathlib import Path

    path = Path(folder) / "sub_workers" / f"{name}.py" if folder is not None else None
    if path is None or not path.is_file():
        raise FileNotFoundError(f"the source of sub-worker {name!r} is missing ({path}); recompile the program")
    scope: dict[str, Any] = {"__name__": f"pypto_sub_worker_{name}", "__file__": str(path)}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), scope)
    function = scope[name]
    return lambda tensors: function(*tensors)
