# SPDX-License-Identifier: Apache-2.0
"""`ir.compile`, and what the JIT uses of it."""

from __future__ import annotations

import os
import sys
import warnings
from _thread import _local
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pypto import _core, _env
from pypto._platform import is_hardware, resolve, writes_artifacts
from pypto._records import replace
from pypto.backend import BackendType
from pypto.ir import _options
from pypto.ir._options import CompileOptions
from pypto.ir.distributed_config import DistributedConfig
from pypto.ir.pass_manager import OptimizationStrategy, PassDumpLevel
from pypto.passes._context import PassContext, VerificationLevel

if TYPE_CHECKING:
    from dataclasses import dataclass

    from pypto.ir.compiled_program import CompiledProgram
    from pypto.ir.distributed_compiled_program import DistributedCompiledProgram
else:
    from pypto._records import dataclass


@dataclass
class Extras:
    """What a compile made besides the program: dumps of the stages, the profile."""

    stages: list[tuple[str, str]]
    profile: Any = None


class _Handover(_local):
    """The extras of the last JIT compile of this thread, until its program object is made."""

    compiled: Any = None
    extras: Extras | None = None


_handover = _Handover()


def _print(program: Any, explicit_layout: bool) -> str:
    return _core.python_print(program, explicit_layout=explicit_layout)


def _check_round_trip(program: Any, when: str) -> None:
    from pypto.passes._pass import check_round_trip

    check_round_trip(program, when)


def _pass(name: str) -> Any:
    from pypto.passes import Pass

    return Pass(name)


def _lower(program: Any, options: CompileOptions, world_size: int) -> tuple[Any, Extras]:
    """Compile `program` natively; collect dumps, checks and times as the options ask."""
    extras = Extras(stages=[])
    explicit = options.dump_passes is PassDumpLevel.EXPLICIT
    if options.dump_passes:
        extras.stages.append(("frontend", _print(program, explicit)))
    profiling = sys.modules.get("pypto.compile_profiling")  # nobody profiles before it is imported
    profiler = profiling.get_active_profiler() if profiling is not None else None
    if profiler is None and options.profiling:
        from pypto.compile_profiling import CompileProfiler

        profiler = CompileProfiler()
    context = PassContext.current()
    instruments = context.get_instruments() if context else []
    round_trip = options.verification >= VerificationLevel.ROUNDTRIP
    if round_trip:
        _check_round_trip(program, "after the front end")

    def after(name: str, result: Any) -> None:
        if profiler is not None:
            profiler.lap(name)
        if options.dump_passes:
            extras.stages.append((f"after_{name}", _print(result, explicit)))
        if round_trip:
            _check_round_trip(result, f"after {name}")
        for instrument in instruments:
            instrument.after_pass(_pass(name), result)
        if profiler is not None:
            profiler.skip()

    watch: Callable[[str, Any], None] | None = None
    if options.dump_passes or profiler is not None or round_trip or instruments:
        watch = after
    arguments: dict[str, Any] = {
        "arch": options.arch,
        "planner": options.planner.name,
        "double_buffer_c": options.double_buffer_c,
        "analyze_auto_scopes_for_deps": options.analyze_auto_scopes_for_deps,
        "world_size": world_size,
        # The one device that stands for no configuration says nothing of the world the program is meant for.
        "device_ids": options.distributed_config.device_ids if world_size > 1 and options.distributed_config else [],
        "devices": is_hardware(options.platform),
        "after": watch,
    }
    if profiler is None:
        return _core.compile(program, **arguments), extras
    with profiler.laps("passes"):
        compiled = _core.compile(program, **arguments)
    extras.profile = profiler
    return compiled, extras


def compile(
    program: Any,
    output_dir: str | os.PathLike[str] | None = None,
    strategy: OptimizationStrategy = OptimizationStrategy.Default,
    dump_passes: bool | PassDumpLevel = True,
    backend_type: BackendType = BackendType.Ascend910B,
    skip_ptoas: bool = False,
    verification_level: Any = None,
    diagnostic_phase: Any = None,
    disabled_diagnostics: Any = None,
    memory_planner: Any = None,
    enable_pypto_l0c_double_buffer: bool | None = None,
    profiling: bool = False,
    platform: str | None = None,
    distributed_config: DistributedConfig | None = None,
    analyze_auto_scopes_for_deps: bool = False,
    emit_source_loc: bool | None = None,
    dump_ptoas_passes: bool = False,
    runtime: Any = None,
) -> CompiledProgram | DistributedCompiledProgram:
    """Compile a program and write its artifact directory.

    Parameters
    ----------
    program
        An `ir.Program`, or a `@pl.jit` function (compiled from its signature).
    output_dir
        Directory of the artifacts; by default a new one below `build_output`.
    strategy, dump_passes, verification_level, diagnostic_phase, disabled_diagnostics, profiling
        How the compile works and what it tells about itself.
    backend_type, platform
        What the program is compiled for; `platform` wins.
    memory_planner, enable_pypto_l0c_double_buffer, analyze_auto_scopes_for_deps, runtime
        Choices of code generation.
    skip_ptoas, emit_source_loc, dump_ptoas_passes
        What text of kernels is written.
    distributed_config
        The world of a program with a host function.

    Returns
    -------
    CompiledProgram or DistributedCompiledProgram
        The latter exactly if the program has a function at level HOST or above.

    Raises
    ------
    CompileError
        If the program cannot be lowered. Wrong arguments are `TypeError`, `ValueError`, `RuntimeError`.
    """
    from pypto.ir import _artifact
    from pypto.jit import JITFunction

    _env.warn_unknown()
    target = resolve(platform, backend_type)
    _options.refuse_conflicts(
        verification_level=verification_level,
        diagnostic_phase=diagnostic_phase,
        memory_planner=memory_planner,
        runtime=runtime,
    )
    if distributed_config is not None and not isinstance(distributed_config, DistributedConfig):
        raise TypeError(
            f"distributed_config must be a DistributedConfig or None, got {type(distributed_config).__name__}"
        )
    options = _options.from_arguments(
        target,
        output_dir=output_dir,
        strategy=strategy,
        dump_passes=dump_passes,
        skip_ptoas=skip_ptoas,
        verification_level=verification_level,
        diagnostic_phase=diagnostic_phase,
        disabled_diagnostics=disabled_diagnostics,
        memory_planner=memory_planner,
        enable_pypto_l0c_double_buffer=enable_pypto_l0c_double_buffer,
        profiling=profiling,
        distributed_config=distributed_config,
        analyze_auto_scopes_for_deps=analyze_auto_scopes_for_deps,
        emit_source_loc=emit_source_loc,
        dump_ptoas_passes=dump_ptoas_passes,
        runtime=runtime,
    )
    if isinstance(program, JITFunction):
        program = _program_of_jit(program, target, distributed_config)
    if not isinstance(program, _core.Program):
        raise TypeError(
            f"ir.compile takes an ir.Program (a class under @pl.program) or a @pl.jit function, "
            f"got {type(program).__name__}"
        )
    if program.is_distributed:
        options = replace(options, distributed_config=distributed_config or DistributedConfig())
    elif distributed_config is not None:
        entry = program.entry
        warnings.warn(
            f"W-UNUSED-CONFIG: distributed_config has no effect: program {program.name!r} has no function at level "
            f"HOST; its entry is {entry.name if entry else ', '.join(program.entries)!r}",
            stacklevel=2,
        )
        options = replace(options, distributed_config=None)
    with _artifact.directory(options.output_dir, program.name) as target_dir:
        native, extras = _lower(program, options, options.world_size if program.is_distributed else 0)
        result = _wrap(native, options, program)
        result._write(target_dir, extras)
    return result


def _program_of_jit(function: Any, platform: str, world: DistributedConfig | None) -> Any:
    """Return the program of a JIT function as its signature describes it."""
    from pypto.runtime import RunConfig

    made = function.compile(config=RunConfig(platform=platform, distributed_config=world))
    return made._native.source


def _wrap(native: Any, options: CompileOptions, program: Any) -> CompiledProgram | DistributedCompiledProgram:
    from pypto.ir.compiled_program import CompiledProgram
    from pypto.ir.distributed_compiled_program import DistributedCompiledProgram

    if native.distributed:
        return DistributedCompiledProgram(native, options, program=native.program)
    return CompiledProgram(native, options, program=program)


# ------------------------------------------------------------------------------------------------ used by the JIT


def _options_for(config: Any) -> tuple[Any, ...]:
    """Return everything of `config` and of the active `PassContext` that a compile depends on; the platform first."""
    return _options.key_of_config(config)


def _compile_native(program: Any, config: Any, world_size: int) -> Any:
    """Compile `program` with the choices of `config`; the object is made by `_from_jit`."""
    _env.warn_unknown()
    options = _options.from_config(config)
    native, extras = _lower(program, options, world_size)
    _handover.compiled, _handover.extras = native, extras
    return native


def _from_jit(native: Any, config: Any) -> CompiledProgram | DistributedCompiledProgram:
    """Make the public object of a JIT specialisation; its directory is written now only if the config asks for it."""
    extras = None
    if _handover.compiled is native:
        extras = _handover.extras
    _handover.compiled = _handover.extras = None
    options = _options.from_config(config)
    if native.distributed and options.distributed_config is None:
        options = replace(options, distributed_config=DistributedConfig())
    result = _wrap(native, options, native.source)
    result._extras = extras
    if (
        writes_artifacts(options.platform)
        or options.output_dir
        or options.dump_passes
        or options.profiling
        or options.dump_ptoas_passes
        or (config is not None and (config.save_kernels or config.codegen_only))
    ):
        result._ensure_written()
    return result
