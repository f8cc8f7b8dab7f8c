# SPDX-License-Identifier: Apache-2.0
"""Every environment variable of the package, in one place: `pypto env` prints this table."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    from pypto._records import dataclass


@dataclass(frozen=True)
class Variable:
    """One environment variable: its name, its default as text, and what it does."""

    name: str
    default: str
    meaning: str


VARIABLES = (
    Variable("PYPTO_PROG_BUILD_DIR", "build_output", "directory below which artifact directories are made"),
    Variable("PYPTO_LOG_LEVEL", "WARN", "threshold of the compiler's log: DEBUG INFO WARN ERROR FATAL EVENT NONE"),
    Variable(
        "PYPTO_RUNTIME_LOG", "timing", "threshold of the runtime's log: debug info timing warn error null, or int"
    ),
    Variable("PYPTO_RUNTIME_LOG_SYNC", "0", "1: PYPTO_RUNTIME_LOG also sets the compiler's threshold"),
    Variable("PYPTO_VERIFY_LEVEL", "basic", "checks of the IR between stages: none, basic, roundtrip"),
    Variable(
        "PYPTO_WARNING_LEVEL",
        "pre_pipeline",
        "when diagnostics are collected: none, pre_pipeline, post_pass, post_pipeline",
    ),
    Variable("PTO2_RING_HEAP", "", "bytes of each output ring: one value, or four separated by commas"),
    Variable("PTO2_RING_TASK_WINDOW", "", "task slots of each ring: one value, or four separated by commas"),
    Variable("PTO2_RING_DEP_POOL", "", "dependency entries of each ring: one value, or four separated by commas"),
    Variable("PYPTO_COMPILE_PROFILING", "0", "1/true/yes: write the time of each compile stage"),
    Variable("PYPTO_EMIT_DEBUG_RUNNER", "1", "0/false/no: leave out debug/run.py"),
    Variable("PYPTO_EMIT_PTO_LOC", "1", "0: no source locations in .pto text"),
    Variable("PYPTO_REBUILD_FROM_PTO", "1", "0: a replay leaves kernel text as it is"),
    Variable("PYPTO_CODEGEN_MAX_WORKERS", "0", "threads of code generation; 0 chooses"),
    Variable("PTOAS_ROOT", "", "where a vendor assembler is looked for"),
    Variable("PTO_ISA_ROOT", "", "set by ensure_pto_isa_root(), never read"),
    Variable("PTO_BACKTRACE", "0", "1: full tracebacks beside rendered errors"),
    Variable("NO_COLOR", "", "set: rendered errors have no colour"),
    Variable("FORCE_COLOR", "", "set: rendered errors have colour also outside a terminal"),
    Variable("PYPTO_FABRIC", "inproc", "mpi: simulator runs spread their ranks over MPI processes"),
    Variable("PYPTO_PLATFORM", "", "mpi: same as PYPTO_FABRIC=mpi"),
    Variable("PYPTO_SIM", "", "defaults of SimOptions, such as schedule=explore,seed=7,checks=strict"),
    Variable("PYPTO_HW_PARAMS", "", "a file with numbers of the machine description to replace"),
    Variable("PYPTO_PTO_ISA_ROOT", "", "where the vendor's ISA headers are"),
    Variable("PYPTO_TRACE", "", "a file: write a timeline of every dispatch of the process into it"),
    Variable("PYPTO_BENCH", "", "read by model programs only"),
    Variable("PYPTO_BENCH_ROUNDS", "", "read by model programs only"),
    Variable("PYPTO_BENCH_WARMUP", "", "read by model programs only"),
    Variable("PYPTO_BENCH_RAW", "", "read by model programs only"),
    Variable("PYPTO_GOLDEN_NUM_THREADS", "", "read by model programs only"),
)

# POSIX keeps the variables in a dict of bytes. Looking there costs a tenth of `name in os.environ`, which
# matters on the path of every call.
_raw = getattr(os.environ, "_data", None)


def any_set(names: frozenset[bytes]) -> bool:
    """Return whether one of the variables is set."""
    if isinstance(_raw, dict):
        return not _raw.keys().isdisjoint(names)
    return any(name.decode() in os.environ for name in names)


_FALSE = ("0", "false", "no", "off", "")
_warned: set[str] = set()


def get(name: str, default: str = "") -> str:
    """Return the value of variable `name`, or `default` if it is unset or empty."""
    return os.environ.get(name) or default


def flag(name: str, default: bool) -> bool:
    """Return a yes/no variable: `0`, `false`, `no`, `off` mean no."""
    text = os.environ.get(name)
    if text is None or text == "":
        return default
    return text.strip().lower() not in _FALSE


def warn_unknown() -> None:
    """Warn once about each variable that starts with `PYPTO_` and that nobody reads."""
    known = [v.name for v in VARIABLES]
    for name in sorted(os.environ):
        if name.startswith("PYPTO_") and name not in known and name not in _warned:
            _warned.add(name)
            import difflib

            near = difflib.get_close_matches(name, known, n=1)
            hint = f" Did you mean {near[0]}?" if near else " `pypto env` lists the known ones."
            warnings.warn(
                f"W-UNKNOWN-ENV: environment variable {name} is not known and has no effect.{hint}", stacklevel=3
            )


def table() -> str:
    """Return the text that `pypto env` prints: name, value, default, meaning."""
    lines = []
    for v in VARIABLES:
        value = os.environ.get(v.name)
        shown = "(unset)" if value is None else repr(value)
        lines.append(f"{v.name:26} {shown:14} default {v.default or '(none)':14} {v.meaning}")
    return "\n".join(lines)
