# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F401  (imports under TYPE_CHECKING say what the lazy names are)
"""The import path of the compiled extension: types, errors, logging, and the modules built on it."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pypto._log import (
    LogLevel,
    _clear_thread_log_level,
    _set_thread_log_level,
    get_log_level,
    set_log_level,
)

if TYPE_CHECKING:
    from pypto import arith, backend, codegen, ir, passes, testing
    from pypto._core import DataType
    from pypto._errors import Error, InternalError

_SUBMODULES = ("passes", "ir", "backend", "codegen", "arith", "testing")

__all__ = [
    "DataType",
    "Error",
    "InternalError",
    "LogLevel",
    "set_log_level",
    "get_log_level",
    "_set_thread_log_level",
    "_clear_thread_log_level",
    *_SUBMODULES,
]


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"pypto.pypto_core.{name}")
    if name == "DataType":
        from pypto._core import DataType

        return DataType
    if name in ("Error", "InternalError"):
        return getattr(importlib.import_module("pypto._errors"), name)
    raise AttributeError(f"module 'pypto.pypto_core' has no attribute {name!r}")
