# SPDX-License-Identifier: Apache-2.0

"""Tools that look at what a compile or a run left behind."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto.tools import clean_sim_trace, ir_trace, memory_map

__all__ = ["memory_map", "ir_trace", "clean_sim_trace"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return importlib.import_module(f"pypto.tools.{name}")
    raise AttributeError(f"module 'pypto.tools' has no attribute {name!r}")
