# SPDX-License-Identifier: Apache-2.0

"""Running artifact directories again, and rebuilding their texts. `debug.replay` is a module that can be called."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.runtime.debug import pto_rebuild, replay
    from pypto.runtime.debug.pto_rebuild import rebuild_kernel_cpp_from_pto
    from pypto.runtime.debug.replay import invalidate_binary_cache, write_run_script

__all__ = [
    "replay",
    "pto_rebuild",
    "invalidate_binary_cache",
    "rebuild_kernel_cpp_from_pto",
    "write_run_script",
]

_NAMES = {
    "invalidate_binary_cache": "replay",
    "write_run_script": "replay",
    "rebuild_kernel_cpp_from_pto": "pto_rebuild",
}


def __getattr__(name: str) -> Any:
    if name in ("replay", "pto_rebuild"):
        return importlib.import_module(f"pypto.runtime.debug.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(f"pypto.runtime.debug.{_NAMES[name]}"), name)
    raise AttributeError(f"module 'pypto.runtime.debug' has no attribute {name!r}")
