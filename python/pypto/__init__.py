# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F401  (imports under TYPE_CHECKING say what the lazy names are)
"""PyPTO: a language and runtime for distributed tile kernels.

`pypto.language` is what kernels are written in, `pypto.ir` compiles programs, `pypto.runtime` runs them. Importing this
package loads nothing but itself: the rest comes on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto import (
        arith,
        backend,
        codegen,
        compile_profiling,
        debug,
        ir,
        jit,
        language,
        passes,
        pypto_core,
        runtime,
        testing,
        tools,
    )
    from pypto._checks import check, internal_check, internal_check_span
    from pypto._core import DataType
    from pypto._errors import (
        CallbackError,
        CompileError,
        DeadlockError,
        DiagnosticError,
        Error,
        InternalError,
        OutOfBoundsError,
        PlatformUnavailableError,
        ProgramFault,
        ProtocolError,
        RaceError,
        UninitializedReadError,
    )
    from pypto._log import (
        LogLevel,
        get_log_level,
        log_debug,
        log_error,
        log_event,
        log_fatal,
        log_info,
        log_warn,
        set_log_level,
    )

    __version__: str

_SUBMODULES = (
    "ir",
    "language",
    "runtime",
    "passes",
    "backend",
    "jit",
    "debug",
    "tools",
    "arith",
    "codegen",
    "testing",
    "compile_profiling",
    "pypto_core",
)

_DTYPES = (
    "BOOL",
    "INT4",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "UINT4",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "FP4",
    "FP8E4M3FN",
    "FP8E5M2",
    "FP8E8M0",
    "FP16",
    "FP32",
    "BF16",
    "HF4",
    "HF8",
    "INDEX",
)

# Name -> module that defines it.
_NAMES = {
    "DataType": "pypto._core",
    "__version__": "pypto._version",
    **dict.fromkeys(
        (
            "Error",
            "InternalError",
            "DiagnosticError",
            "CompileError",
            "ProgramFault",
            "DeadlockError",
            "RaceError",
            "UninitializedReadError",
            "ProtocolError",
            "OutOfBoundsError",
            "CallbackError",
            "PlatformUnavailableError",
        ),
        "pypto._errors",
    ),
    **dict.fromkeys(
        (
            "LogLevel",
            "set_log_level",
            "get_log_level",
            "log_debug",
            "log_info",
            "log_warn",
            "log_error",
            "log_fatal",
            "log_event",
        ),
        "pypto._log",
    ),
    **dict.fromkeys(("check", "internal_check", "internal_check_span"), "pypto._checks"),
}

__all__ = [*_SUBMODULES, *_NAMES, *(f"DT_{name}" for name in _DTYPES)]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"pypto.{name}")
    if name in _NAMES:
        value = getattr(importlib.import_module(_NAMES[name]), name)
    elif name.startswith("DT_") and name[3:] in _DTYPES:
        value = getattr(importlib.import_module("pypto._core").DataType, name[3:])
    else:
        raise AttributeError(f"module 'pypto' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
