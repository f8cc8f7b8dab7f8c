# SPDX-License-Identifier: Apache-2.0

"""Backends: which chip code is made for, and the read-only description of each chip."""

from __future__ import annotations

import importlib
from _thread import allocate_lock
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.backend import pto_backend
    from pypto.backend._description import (
        Backend,
        Backend910B,
        Backend950,
        Cluster,
        Core,
        Die,
        Mem,
        SoC,
        get_backend_instance,
    )

__all__ = [
    "BackendType",
    "set_backend_type",
    "get_backend_type",
    "is_backend_configured",
    "reset_for_testing",
    "get_backend_instance",
    "Backend",
    "Backend910B",
    "Backend950",
    "Mem",
    "Core",
    "Cluster",
    "Die",
    "SoC",
    "pto_backend",
]


class BackendType(Enum):
    """The chip families: `Ascend910B` is architecture a2a3, `Ascend950` is a5."""

    Ascend910B = 0
    Ascend950 = 1


_lock = allocate_lock()
_default: BackendType | None = None


def set_backend_type(backend_type: BackendType) -> None:
    """Set the backend that passes applied by hand and `pto_backend.generate` use. May be changed at any time."""
    global _default
    if not isinstance(backend_type, BackendType):
        raise TypeError(
            f"set_backend_type expects a BackendType, got {type(backend_type).__name__} {backend_type!r}; "
            "write BackendType.Ascend910B or BackendType.Ascend950"
        )
    from pypto._log import log_info

    with _lock:
        if _default is not None and _default is not backend_type:
            log_info(f"default backend changed from {_default.name} to {backend_type.name}")
        _default = backend_type


def get_backend_type() -> BackendType:
    """Return the backend set by `set_backend_type`; `ValueError` if none was set."""
    if _default is None:
        raise ValueError("no backend type is set; call pypto.backend.set_backend_type(BackendType.Ascend910B) first")
    return _default


def is_backend_configured() -> bool:
    """Return whether `set_backend_type` was called."""
    return _default is not None


def reset_for_testing() -> None:
    """Forget the backend set by `set_backend_type`."""
    global _default
    with _lock:
        _default = None


def default_backend_type() -> BackendType:
    """Return the backend that was set, or `Ascend910B`."""
    return _default or BackendType.Ascend910B


def __getattr__(name: str) -> Any:
    if name == "pto_backend":
        return importlib.import_module("pypto.backend.pto_backend")
    if name in __all__:
        return getattr(importlib.import_module("pypto.backend._description"), name)
    raise AttributeError(f"module 'pypto.backend' has no attribute {name!r}")
