# SPDX-License-Identifier: Apache-2.0
"""Running an artifact directory again: `replay(...)`, and `python -m pypto.runtime.debug.replay <dir>`."""

from __future__ import annotations

import argparse
import os
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pypto import _env
from pypto.runtime import _loaded


def invalidate_binary_cache(work_dir: str | os.PathLike[str]) -> None:
    """Forget the loaded forms of a directory, so that the next run reads its files again."""
    _loaded.invalidate(work_dir)


def write_run_script(work_dir: str | os.PathLike[str]) -> Path:
    """Write `debug/run.py` of an artifact directory and return its path."""
    from pypto.ir import _texts

    folder = Path(os.fspath(work_dir)).absolute()
    path = folder / "debug" / "run.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(_texts.debug_runner(_load(folder, None)), encoding="utf-8")
    return path


def _load(folder: Path, platform: str | None) -> Any:
    from pypto.ir import _artifact
    from pypto.ir.compiled_program import CompiledProgram
    from pypto.ir.distributed_compiled_program import DistributedCompiledProgram

    if (folder / _artifact.DIST_META).is_file():
        return DistributedCompiledProgram.from_dir(folder, platform=platform)
    if platform is None:
        return _loaded.program(folder)
    _artifact.warn_edited(folder)
    return CompiledProgram.from_dir(folder, platform=platform)


def replay(
    work_dir: str | os.PathLike[str],
    *tensors: Any,
    config: Any = None,
    recompile: bool = True,
    rebuild_from_pto: bool = True,
    validate: bool = False,
) -> Any:
    """Run a directory again.

    Parameters
    ----------
    tensors
        One argument per parameter; without any, `golden.py` of the directory makes them.
    config
        A `RunConfig`.
    recompile, rebuild_from_pto
        Drop the loaded form first; make kernel text from newer `.pto` files first.
    validate
        Compare the results with `golden.py`.
    """
    from pypto.runtime import device_runner
    from pypto.runtime.debug.pto_rebuild import rebuild_kernel_cpp_from_pto

    folder = Path(os.fspath(work_dir)).absolute()
    if recompile:
        invalidate_binary_cache(folder)
    if rebuild_from_pto and _env.flag("PYPTO_REBUILD_FROM_PTO", True):
        rebuild_kernel_cpp_from_pto(folder)
    compiled = _load(folder, config.platform if config is not None else None)
    if tensors:
        return compiled(*tensors, config=config)
    from pypto.runtime import _flat, _harness

    module = _harness.load_golden(folder / "golden.py")
    inputs = module.generate_inputs({"name": "Default"})
    outputs = list(getattr(module, "__outputs__", []))
    flat, arrays, _, _ = device_runner.build_orch_args_from_inputs(inputs, outputs)
    expected = _harness._expected(module, folder, arrays, outputs) if validate else {}
    compiled(*_flat.in_parameter_order(flat, compiled), config=config)
    if validate:
        device_runner.validate_golden({n: arrays[n] for n in outputs}, expected, module.RTOL, module.ATOL)
    return None


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    from pypto.runtime import log_config
    from pypto.runtime._config import RunConfig
    from pypto.runtime.execute_artifact import add_collection_flags, collection_of

    parser = argparse.ArgumentParser(prog="python -m pypto.runtime.debug.replay", description=__doc__)
    parser.add_argument("work_dir", type=Path)
    parser.add_argument("--platform")
    parser.add_argument("--device-id", type=int, default=0)
    parser.add_argument("--no-recompile", action="store_true")
    parser.add_argument("--no-rebuild-from-pto", action="store_true")
    parser.add_argument("--validate", action=argparse.BooleanOptionalAction, default=False)
    parser.add_argument("--log-level")
    parser.add_argument("--log-sync-pypto", action="store_true")
    add_collection_flags(parser)
    options = parser.parse_args(argv)
    if options.log_level is not None:
        log_config.configure_log(options.log_level, sync_pypto=options.log_sync_pypto)
    dfx = collection_of(options)
    platform = options.platform
    if platform is None:
        platform = _load(options.work_dir.absolute(), None).platform
    config = RunConfig(
        platform=platform,
        device_id=options.device_id,
        enable_chip_swimlane=dfx.enable_chip_swimlane,
        enable_dump_args=dfx.enable_dump_args,
        enable_pmu=dfx.enable_pmu,
        enable_dep_gen=dfx.enable_dep_gen,
        enable_scope_stats=dfx.enable_scope_stats,
    )
    try:
        replay(
            options.work_dir,
            config=config,
            recompile=not options.no_recompile,
            rebuild_from_pto=not options.no_rebuild_from_pto,
            validate=options.validate,
        )
    except AssertionError as error:
        print(error, file=sys.stderr)
        print("FAIL")
        return 1
    print("PASS" if options.validate else "done")
    return 0


class _CallableModule(types.ModuleType):
    """Lets `pypto.runtime.debug.replay(work_dir, ...)` mean the function of the same name."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return replay(*args, **kwargs)


sys.modules[__name__].__class__ = _CallableModule

if __name__ == "__main__":
    raise SystemExit(main())
