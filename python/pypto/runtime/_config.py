# SPDX-License-Identifier: Apache-2.0
"""`RunConfig`: everything that travels with one compile or one run."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING, Any

from pypto._platform import backend_of, check_platform
from pypto.backend import BackendType
from pypto.ir.pass_manager import OptimizationStrategy, PassDumpLevel
from pypto.runtime._rings import check_ring
from pypto.runtime._sim import SimOptions

if TYPE_CHECKING:
    from dataclasses import dataclass, field

    from pypto.ir.distributed_compiled_program import DistributedConfig
    from pypto.passes import DiagnosticCheckSet, DiagnosticPhase, MemoryPlanner
else:
    from pypto._records import dataclass, field

_SWIMLANE_MAX_LEVEL = 4
_SWIMLANE_FULL_LEVEL = 4
_SWIMLANE_CLI_HELP = "collect a chip swimlane; the level (0-4, default 4) says how much is recorded"


def swimlane_level(value: Any) -> int:
    """Return a swimlane collection level 0-4; `True` means 4, `False` 0."""
    if isinstance(value, bool):
        return _SWIMLANE_FULL_LEVEL if value else 0
    if not isinstance(value, int):
        raise TypeError(
            f"enable_chip_swimlane must be an int collection level (0-4) or a bool, got {type(value).__name__}"
        )
    if not 0 <= value <= _SWIMLANE_MAX_LEVEL:
        raise ValueError(f"enable_chip_swimlane must be a collection level in [0, 4], got {value}")
    return value


def _level(name: str, value: Any, highest: int | None) -> int:
    if not isinstance(value, int):
        raise TypeError(f"{name} must be an int or a bool, got {type(value).__name__}")
    value = int(value)
    if value < 0 or (highest is not None and value > highest):
        wanted = "0 or a counter group number" if highest is None else f"in [0, {highest}]"
        raise ValueError(f"{name} must be {wanted}, got {value}")
    return value


@dataclass
class RunConfig:
    """Options of a compile and of a run; fields that one of them does not use are ignored by it.

    Parameters
    ----------
    platform
        `"a2a3sim"`, `"a2a3"`, `"a5sim"`, `"a5"`, `"mpi"` or `"mpi:a5"`.
    device_id
        Device of a single-device run; on the simulator a label.
    rtol, atol
        Kept for the caller's golden comparison; never used by a run.
    save_kernels, save_kernels_dir
        Keep artifacts, and where.
    codegen_only
        Compile and write artifacts, run nothing.
    enable_chip_swimlane, enable_dump_args, enable_pmu, enable_dep_gen, enable_scope_stats
        What a run collects below `<output_dir>/dfx_outputs`.
    ring_task_window, ring_heap, ring_dep_pool
        Bounds of what is in flight on a device: one value, or one for each of the 4 rings.
    distributed_config
        The world of a `@pl.jit.host` call or of `run`.
    sim
        Options of the simulator.

    Raises
    ------
    ValueError, TypeError
        If a field has a value it cannot have.
    """

    __test__ = False

    platform: str = "a2a3sim"
    device_id: int = 0
    rtol: float = 1e-5
    atol: float = 1e-5
    strategy: OptimizationStrategy = OptimizationStrategy.Default
    backend_type: BackendType = BackendType.Ascend910B
    dump_passes: bool | PassDumpLevel = False
    save_kernels: bool = False
    save_kernels_dir: str | None = None
    codegen_only: bool = False
    enable_chip_swimlane: int = 0
    enable_dump_args: int = 0
    enable_pmu: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False
    compile_profiling: bool = False
    diagnostic_phase: DiagnosticPhase | None = None
    disabled_diagnostics: DiagnosticCheckSet | None = None
    golden_data_dir: str | None = None
    aicpu_thread_num: int | None = None
    ring_task_window: int | list[int] | None = None
    ring_heap: int | list[int] | None = None
    ring_dep_pool: int | list[int] | None = None
    distributed_config: DistributedConfig | None = None
    analyze_auto_scopes_for_deps: bool = False
    memory_planner: MemoryPlanner | None = None
    dump_ptoas_passes: bool = False
    sim: SimOptions | None = field(default=None)

    def __post_init__(self) -> None:
        check_platform(self.platform)
        if isinstance(self.device_id, bool) or not isinstance(self.device_id, int):
            raise TypeError(f"device_id must be an int >= 0, got {type(self.device_id).__name__}")
        if self.device_id < 0:
            raise ValueError(f"device_id must be an int >= 0, got {self.device_id}")
        self.backend_type = backend_of(self.platform)
        self.enable_chip_swimlane = swimlane_level(self.enable_chip_swimlane)
        self.enable_dump_args = _level("enable_dump_args", self.enable_dump_args, 2)
        self.enable_pmu = _level("enable_pmu", self.enable_pmu, None)
        self.ring_task_window = check_ring("ring_task_window", self.ring_task_window)
        self.ring_heap = check_ring("ring_heap", self.ring_heap)
        self.ring_dep_pool = check_ring("ring_dep_pool", self.ring_dep_pool)
        if self.sim is not None and not isinstance(self.sim, SimOptions):
            raise TypeError(f"sim must be a pypto.runtime.SimOptions or None, got {type(self.sim).__name__}")
        if self.any_dfx_enabled():
            self.save_kernels = True

    def any_dfx_enabled(self) -> bool:
        """Return whether a run with this config collects anything."""
        return _DfxOpts.from_run_config(self).any()

    @property
    def enable_l2_swimlane(self) -> int:
        """Old spelling of `enable_chip_swimlane`."""
        return self.enable_chip_swimlane

    @enable_l2_swimlane.setter
    def enable_l2_swimlane(self, value: int) -> None:
        _warn_l2_swimlane()
        self.enable_chip_swimlane = swimlane_level(value)


def _warn_l2_swimlane() -> None:
    warnings.warn(
        "W-DEPRECATED: enable_l2_swimlane is an old spelling; use enable_chip_swimlane",
        DeprecationWarning,
        stacklevel=3,
    )


_generated_init = RunConfig.__init__


@functools.wraps(_generated_init)
def _init(self: RunConfig, *args: Any, **kwargs: Any) -> None:
    if "enable_l2_swimlane" in kwargs:
        # Field number 10 may also have come by position.
        if "enable_chip_swimlane" in kwargs or len(args) > 10:
            raise ValueError("give enable_chip_swimlane or its old spelling enable_l2_swimlane, not both")
        _warn_l2_swimlane()
        kwargs["enable_chip_swimlane"] = kwargs.pop("enable_l2_swimlane")
    _generated_init(self, *args, **kwargs)


RunConfig.__init__ = _init  # type: ignore[method-assign]


@dataclass(frozen=True)
class _DfxOpts:
    """What a run collects: the five collection fields of a `RunConfig`."""

    enable_chip_swimlane: int = 0
    enable_dump_args: int = 0
    enable_pmu: int = 0
    enable_dep_gen: bool = False
    enable_scope_stats: bool = False

    def any(self) -> bool:
        """Return whether anything is collected."""
        return bool(
            self.enable_chip_swimlane
            or self.enable_dump_args
            or self.enable_pmu
            or self.enable_dep_gen
            or self.enable_scope_stats
        )

    @classmethod
    def from_run_config(cls, config: Any) -> _DfxOpts:
        """Return the collection fields of `config`."""
        return cls(
            enable_chip_swimlane=swimlane_level(config.enable_chip_swimlane),
            enable_dump_args=int(config.enable_dump_args),
            enable_pmu=int(config.enable_pmu),
            enable_dep_gen=bool(config.enable_dep_gen),
            enable_scope_stats=bool(config.enable_scope_stats),
        )


@dataclass
class RunResult:
    """Outcome of one test case."""

    __test__ = False

    passed: bool
    test_name: str | None = None
    error: str | None = None
    execution_time: float | None = None
    profile: Any = None

    def __str__(self) -> str:
        text = "PASS" if self.passed else "FAIL"
        if self.test_name:
            text += f": {self.test_name}"
        if not self.passed and self.error:
            text += f" - {self.error}" if self.test_name else f": {self.error}"
        if self.execution_time is not None:
            text += f" ({self.execution_time:.2f}s)"
        return text
