# SPDX-License-Identifier: Apache-2.0
"""Running artifact directories again, and rebuilding their texts."""

from __future__ import annotations

from pypto.runtime.debug.pto_rebuild import rebuild_kernel_cpp_from_pto
from pypto.runtime.debug.replay import invalidate_binary_cache, write_run_script
from pypto.runtime.debug.replay import replay as _replay_function

__all__ = ["replay", "invalidate_binary_cache", "rebuild_kernel_cpp_from_pto", "write_run_script"]


def __getattr__(name: str) -> object:
    raise AttributeError(f"module 'pypto.runtime.debug' has no attribute {name!r}")


del _replay_function
