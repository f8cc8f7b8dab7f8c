# SPDX-License-Identifier: Apache-2.0
"""What a compile depends on, besides the program: collected from the arguments, the config and the `PassContext`."""

from __future__ import annotations

import operator
import os
from typing import TYPE_CHECKING, Any

from pypto import _env
from pypto._checks import check_member
from pypto._platform import arch_of, check_platform
from pypto._records import replace
from pypto.ir.distributed_config import DEFAULT_RUNTIME, DistributedConfig
from pypto.ir.pass_manager import OptimizationStrategy, PassDumpLevel, check_strategy, dump_level
from pypto.passes._context import (
    DiagnosticCheckSet,
    DiagnosticPhase,
    MemoryPlanner,
    PassContext,
    RuntimeKind,
    VerificationLevel,
    default_diagnostic_phase,
    default_disabled,
    default_verification_level,
    runtime_kind_from_name,
    runtime_kind_to_name,
)

if TYPE_CHECKING:
    from dataclasses import dataclass, field
else:
    from pypto._records import dataclass, field

_THREADS = {"a2a3": 4, "a5": 5}  # scheduler threads of a device


@dataclass(frozen=True)
class CompileOptions:
    """Every choice that one compile was made with."""

    platform: str = "a2a3sim"
    strategy: OptimizationStrategy = OptimizationStrategy.Default
    dump_passes: PassDumpLevel = PassDumpLevel.NONE
    skip_ptoas: bool = False
    verification: VerificationLevel = VerificationLevel.BASIC
    diagnostic_phase: DiagnosticPhase = DiagnosticPhase.PRE_PIPELINE
    disabled_diagnostics: DiagnosticCheckSet = field(default_factory=default_disabled)
    planner: MemoryPlanner = MemoryPlanner.PYPTO
    double_buffer_c: bool = False
    profiling: bool = False
    distributed_config: DistributedConfig | None = None
    analyze_auto_scopes_for_deps: bool = False
    emit_source_loc: bool = True
    dump_ptoas_passes: bool = False
    runtime: RuntimeKind = RuntimeKind.TENSORMAP_AND_RINGBUFFER
    output_dir: str | None = None
    aicpu_thread_num: int | None = None

    @property
    def arch(self) -> str:
        """Architecture of the platform."""
        return arch_of(self.platform)

    @property
    def runtime_name(self) -> str:
        """Name of the device runtime."""
        return runtime_kind_to_name(self.runtime)

    @property
    def world_size(self) -> int:
        """Ranks of the world."""
        return len(self.distributed_config.device_ids) if self.distributed_config else 1

    def runtime_config(self, native: Any) -> dict[str, Any]:
        """Return the settings of the device runtime for a compiled program."""
        world = self.distributed_config
        threads = self.aicpu_thread_num or (world.aicpu_thread_num if world else 0) or _THREADS[self.arch]
        config: dict[str, Any] = {"runtime": self.runtime_name, "aicpu_thread_num": threads}
        if native.uses_sdma():
            config["enable_sdma"] = True
        return config

    def key(self) -> tuple[Any, ...]:
        """Return everything a compiled program depends on, hashable; the platform first."""
        world = self.distributed_config
        return (
            self.platform,
            self.strategy,
            int(self.dump_passes),
            int(self.verification),
            int(self.diagnostic_phase),
            tuple(self.disabled_diagnostics.to_list()),
            self.planner,
            self.double_buffer_c,
            self.profiling,
            None
            if world is None
            else (tuple(world.device_ids), world.num_sub_workers, world.runtime, world.aicpu_thread_num),
            self.analyze_auto_scopes_for_deps,
            self.dump_ptoas_passes,
            self.runtime,
            self.output_dir,
        )

    def for_platform(self, platform: str) -> CompileOptions:
        """Return the same choices for another platform."""
        return replace(self, platform=platform)


def _from_context(
    memory_planner: Any = None,
    verification_level: Any = None,
    diagnostic_phase: Any = None,
    disabled_diagnostics: Any = None,
    double_buffer: Any = None,
    runtime: Any = None,
) -> dict[str, Any]:
    """Return the settings that a `PassContext` may hold: the given ones, else the context's, else the defaults."""
    context = PassContext.current()
    if memory_planner is not None and not isinstance(memory_planner, MemoryPlanner):
        raise TypeError(f"memory_planner must be a MemoryPlanner or None, got {type(memory_planner).__name__}")
    if verification_level is not None:
        check_member("verification_level", verification_level, VerificationLevel, "passes.")
    if diagnostic_phase is not None:
        check_member("diagnostic_phase", diagnostic_phase, DiagnosticPhase, "passes.")
    if disabled_diagnostics is not None and not isinstance(disabled_diagnostics, DiagnosticCheckSet):
        raise TypeError(
            "disabled_diagnostics must be a passes.DiagnosticCheckSet or None, "
            f"got {type(disabled_diagnostics).__name__}"
        )
    if isinstance(runtime, str):
        runtime = runtime_kind_from_name(runtime)

    def pick(given: Any, from_context: Any, default: Any) -> Any:
        if given is not None:
            return given
        return from_context(context) if context is not None else default()

    return {
        "planner": pick(memory_planner, PassContext.get_memory_planner, lambda: MemoryPlanner.PYPTO),
        "verification": pick(verification_level, PassContext.get_verification_level, default_verification_level),
        "diagnostic_phase": pick(diagnostic_phase, PassContext.get_diagnostic_phase, default_diagnostic_phase),
        "disabled_diagnostics": pick(disabled_diagnostics, PassContext.get_disabled_diagnostics, default_disabled),
        "double_buffer_c": bool(pick(double_buffer, PassContext.get_enable_pypto_l0c_double_buffer, lambda: False)),
        "runtime": pick(runtime, PassContext.get_runtime, lambda: RuntimeKind.TENSORMAP_AND_RINGBUFFER),
    }


def refuse_conflicts(**given: Any) -> None:
    """Raise `RuntimeError` for an argument that an active `PassContext` already decides."""
    if PassContext.current() is None:
        return
    for name, value in given.items():
        if value is not None:
            raise RuntimeError(
                f"compile() was called with {name} while a PassContext is already active; "
                f"set {name} in the PassContext, or call compile() outside of it"
            )


def _path_text(name: str, path: Any) -> str | None:
    if path is None:
        return None
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(text, str):
        raise TypeError(f"{name} must be a path (str or os.PathLike) or None, got {type(path).__name__}")
    if not text:
        raise ValueError(f"{name} is an empty path; pass None for a new directory, or '.' for the working directory")
    return text


def from_arguments(platform: str, **arguments: Any) -> CompileOptions:
    """Return the options that the arguments of `ir.compile` describe."""
    emit_loc = arguments["emit_source_loc"]
    output_dir = arguments["output_dir"]
    return CompileOptions(
        platform=platform,
        strategy=check_strategy(arguments["strategy"]),
        dump_passes=dump_level(arguments["dump_passes"]),
        skip_ptoas=bool(arguments["skip_ptoas"]),
        profiling=bool(arguments["profiling"]) or _env.flag("PYPTO_COMPILE_PROFILING", False),
        distributed_config=arguments["distributed_config"],
        analyze_auto_scopes_for_deps=bool(arguments["analyze_auto_scopes_for_deps"]),
        emit_source_loc=_env.flag("PYPTO_EMIT_PTO_LOC", True) if emit_loc is None else bool(emit_loc),
        dump_ptoas_passes=bool(arguments["dump_ptoas_passes"]),
        output_dir=_path_text("output_dir", output_dir),
        **_from_context(
            arguments["memory_planner"],
            arguments["verification_level"],
            arguments["diagnostic_phase"],
            arguments["disabled_diagnostics"],
            arguments["enable_pypto_l0c_double_buffer"],
            arguments["runtime"],
        ),
    )


_default: CompileOptions | None = None


def from_config(config: Any) -> CompileOptions:
    """Return the options that a `RunConfig` (or `None`: its defaults) describes."""
    if config is None:
        return _options_without_config()
    output_dir = config.save_kernels_dir
    runtime = None
    world = config.distributed_config
    if world is not None and world.runtime != DEFAULT_RUNTIME:
        runtime = runtime_kind_from_name(world.runtime)
    return CompileOptions(
        platform=check_platform(config.platform),
        strategy=check_strategy(config.strategy),
        dump_passes=dump_level(config.dump_passes),
        profiling=bool(config.compile_profiling) or _env.flag("PYPTO_COMPILE_PROFILING", False),
        distributed_config=world,
        analyze_auto_scopes_for_deps=bool(config.analyze_auto_scopes_for_deps),
        emit_source_loc=_env.flag("PYPTO_EMIT_PTO_LOC", True),
        dump_ptoas_passes=bool(config.dump_ptoas_passes),
        output_dir=_path_text("save_kernels_dir", output_dir),
        aicpu_thread_num=config.aicpu_thread_num,
        **_from_context(
            config.memory_planner,
            None,
            config.diagnostic_phase,
            config.disabled_diagnostics,
            None,
            runtime,
        ),
    )


# What `from_config` looks at, as far as it cannot change in place.
_fields = operator.attrgetter(
    "platform",
    "strategy",
    "dump_passes",
    "save_kernels_dir",
    "compile_profiling",
    "diagnostic_phase",
    "memory_planner",
    "analyze_auto_scopes_for_deps",
    "dump_ptoas_passes",
    "aicpu_thread_num",
)
_VARIABLES = frozenset(
    (b"PYPTO_COMPILE_PROFILING", b"PYPTO_VERIFY_LEVEL", b"PYPTO_WARNING_LEVEL", b"PYPTO_EMIT_PTO_LOC")
)
_last: tuple[tuple[Any, ...], tuple[Any, ...]] | None = None


def key_of_config(config: Any) -> tuple[Any, ...]:
    """Return `from_config(config).key()`. Every JIT call asks; mostly it is what the call before asked."""
    global _last
    if (
        PassContext.current() is not None
        or _env.any_set(_VARIABLES)
        or (config is not None and (config.distributed_config is not None or config.disabled_diagnostics is not None))
    ):
        return from_config(config).key()
    fields = () if config is None else _fields(config)
    last = _last
    if last is not None and len(last[0]) == len(fields) and all(map(operator.is_, last[0], fields)):
        return last[1]
    key = from_config(config).key()
    _last = fields, key
    return key


def _options_without_config() -> CompileOptions:
    """Return the defaults; made once, unless the environment or a context has a say."""
    global _default
    if PassContext.current() is not None or _env.any_set(_VARIABLES):
        return CompileOptions(
            profiling=_env.flag("PYPTO_COMPILE_PROFILING", False),
            emit_source_loc=_env.flag("PYPTO_EMIT_PTO_LOC", True),
            **_from_context(),
        )
    if _default is None:
        _default = CompileOptions()
    return _default
