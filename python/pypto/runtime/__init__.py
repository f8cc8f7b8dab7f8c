# SPDX-License-Identifier: Apache-2.0

"""Running programs: configs, workers, resident tensors, reports."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.runtime._config import RunConfig, RunResult
    from pypto.runtime._explore import explore
    from pypto.runtime._handle import DistributedRunHandle
    from pypto.runtime._isa import ensure_pto_isa_root, pto_isa_include_dir
    from pypto.runtime._report import RankCounters, RunReport, last_report
    from pypto.runtime._sim import SimOptions
    from pypto.runtime.bench import BenchmarkStats, TraceInvocation, TraceSpan, benchmark
    from pypto.runtime.device_tensor import DeviceTensor, StackedDeviceTensor
    from pypto.runtime.distributed_runner import DistributedWorker, execute_distributed_compiled
    from pypto.runtime.log_config import configure_log
    from pypto.runtime.runner import compile_program, execute_compiled, run
    from pypto.runtime.runtime_base import Worker
    from pypto.runtime.tensor_spec import ScalarSpec, TensorSpec
    from pypto.runtime.worker import ChipWorker, RegistrationHandle

__all__ = [
    "run",
    "benchmark",
    "compile_program",
    "execute_compiled",
    "execute_distributed_compiled",
    "configure_log",
    "log_level",
    "ensure_pto_isa_root",
    "pto_isa_include_dir",
    "BenchmarkStats",
    "TraceInvocation",
    "TraceSpan",
    "ChipWorker",
    "DeviceTensor",
    "StackedDeviceTensor",
    "DistributedWorker",
    "DistributedRunHandle",
    "RegistrationHandle",
    "RunConfig",
    "RunResult",
    "ScalarSpec",
    "TensorSpec",
    "Worker",
    "SimOptions",
    "explore",
    "last_report",
    "RunReport",
    "RankCounters",
]

_SUBMODULES = (
    "runner",
    "device_runner",
    "distributed_runner",
    "golden_writer",
    "tensor_spec",
    "device_tensor",
    "worker",
    "runtime_base",
    "log_config",
    "bench",
    "execute_artifact",
    "debug",
)

_NAMES = {
    **dict.fromkeys(("RunConfig", "RunResult"), "_config"),
    **dict.fromkeys(("run", "compile_program", "execute_compiled"), "runner"),
    **dict.fromkeys(("benchmark", "BenchmarkStats", "TraceInvocation", "TraceSpan"), "bench"),
    **dict.fromkeys(("execute_distributed_compiled", "DistributedWorker"), "distributed_runner"),
    "DistributedRunHandle": "_handle",
    "configure_log": "log_config",
    **dict.fromkeys(("ensure_pto_isa_root", "pto_isa_include_dir"), "_isa"),
    **dict.fromkeys(("ChipWorker", "RegistrationHandle"), "worker"),
    "Worker": "runtime_base",
    **dict.fromkeys(("DeviceTensor", "StackedDeviceTensor"), "device_tensor"),
    **dict.fromkeys(("ScalarSpec", "TensorSpec"), "tensor_spec"),
    "SimOptions": "_sim",
    "explore": "_explore",
    **dict.fromkeys(("last_report", "RunReport", "RankCounters"), "_report"),
}


def log_level() -> int:
    """Return the threshold of the runtime's log."""
    from pypto.runtime.log_config import current_level

    return current_level()


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"pypto.runtime.{name}")
    module = _NAMES.get(name)
    if module is None:
        raise AttributeError(f"module 'pypto.runtime' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"pypto.runtime.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_SUBMODULES})
