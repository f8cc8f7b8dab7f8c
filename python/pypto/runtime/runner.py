# SPDX-License-Identifier: Apache-2.0
"""Configs and the functions that compile and run programs in one step."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from pypto._checks import check_run_config
from pypto.runtime import _flat, _run
from pypto.runtime._config import (
    _SWIMLANE_CLI_HELP,
    _SWIMLANE_FULL_LEVEL,
    _SWIMLANE_MAX_LEVEL,
    RunConfig,
    RunResult,
    _DfxOpts,
)
from pypto.runtime._harness import _execute_on_device, validate_persisted_outputs

__all__ = [
    "RunConfig",
    "RunResult",
    "_DfxOpts",
    "_execute_on_device",
    "validate_persisted_outputs",
    "execute_compiled",
    "compile_program",
    "run",
    "_SWIMLANE_CLI_HELP",
    "_SWIMLANE_FULL_LEVEL",
    "_SWIMLANE_MAX_LEVEL",
]


def run(program: Any, *tensors: Any, config: RunConfig | None = None) -> Any:
    """Compile `program` and, if tensors are given, run it once in place.

    Parameters
    ----------
    program
        An `ir.Program` or a `@pl.jit` function.
    tensors
        One argument per parameter.
    config
        Options of the compile and of the run; `save_kernels_dir` is the artifact directory.

    Returns
    -------
    CompiledProgram or DistributedCompiledProgram
    """
    from pypto import ir

    cfg = config if config is not None else RunConfig()
    check_run_config("run", cfg)
    compiled = ir.compile(
        program,
        output_dir=cfg.save_kernels_dir,
        strategy=cfg.strategy,
        dump_passes=cfg.dump_passes,
        platform=cfg.platform,
        diagnostic_phase=cfg.diagnostic_phase,
        disabled_diagnostics=cfg.disabled_diagnostics,
        memory_planner=cfg.memory_planner,
        profiling=cfg.compile_profiling,
        distributed_config=cfg.distributed_config,
        analyze_auto_scopes_for_deps=cfg.analyze_auto_scopes_for_deps,
        dump_ptoas_passes=cfg.dump_ptoas_passes,
    )
    if tensors and not cfg.codegen_only:
        compiled(*tensors, config=cfg)
    return compiled


def compile_program(
    program: Any,
    work_dir: str | os.PathLike[str],
    *,
    strategy: Any,
    backend_type: Any,
    dump_passes: Any = False,
    dump_ptoas_passes: bool = False,
    diagnostic_phase: Any = None,
    disabled_diagnostics: Any = None,
    profiling: bool = False,
    analyze_auto_scopes_for_deps: bool = False,
    memory_planner: Any = None,
    enable_pypto_l0c_double_buffer: bool | None = None,
) -> None:
    """Compile `program` into `work_dir`. May be called from many threads, each with its own directory."""
    from pypto import ir

    ir.compile(
        program,
        output_dir=work_dir,
        strategy=strategy,
        backend_type=backend_type,
        dump_passes=dump_passes,
        dump_ptoas_passes=dump_ptoas_passes,
        diagnostic_phase=diagnostic_phase,
        disabled_diagnostics=disabled_diagnostics,
        profiling=profiling,
        analyze_auto_scopes_for_deps=analyze_auto_scopes_for_deps,
        memory_planner=memory_planner,
        enable_pypto_l0c_double_buffer=enable_pypto_l0c_double_buffer,
    )


def execute_compiled(
    work_dir: str | os.PathLike[str],
    args: Sequence[Any],
    *,
    platform: str,
    device_id: int,
    dfx: _DfxOpts = _DfxOpts(),  # noqa: B008 (frozen)
    level: int = 2,
    aicpu_thread_num: int | None = None,
    analyze_auto_scopes_for_deps: bool = False,
) -> None:
    """Run an artifact directory once, in place.

    Parameters
    ----------
    work_dir
        A directory that `ir.compile` or `compile_program` wrote.
    args
        Flat list: its k-th array is the k-th tensor parameter, its k-th other value the k-th scalar parameter.
    platform, device_id
        Where to run.
    dfx
        What to collect below `<work_dir>/dfx_outputs`.
    level
        Must be 2 (one device).
    """
    from pypto._platform import check_platform
    from pypto.runtime import _loaded

    check_platform(platform)
    if level != 2:
        raise ValueError(
            f"execute_compiled runs one device (level=2), got level={level}; "
            "distributed artifacts run through execute_distributed_compiled"
        )
    if isinstance(device_id, bool) or not isinstance(device_id, int) or device_id < 0:
        raise ValueError(f"device_id must be an int >= 0, got {device_id!r}")
    from pathlib import Path

    program = _loaded.program(Path(work_dir))
    values = _flat.in_parameter_order(args, program)
    worker = _run.current_worker(platform, device_id, program.runtime_name)
    owner = getattr(program, "_owner", program)
    _run.run_single(
        owner,
        program._entry_name,
        values,
        platform=platform,
        device_id=device_id,
        dfx=dfx,
        worker=worker,
        title=program._title,
        view=program,
    )


_own_execute_compiled = execute_compiled
