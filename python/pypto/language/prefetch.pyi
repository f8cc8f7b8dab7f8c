# SPDX-License-Identifier: Apache-2.0
# Written by tools/gen_stubs.py from the operation table; do not edit.
from typing import Any

def async_prefetch(src: Any, ctx: Any) -> Any:
    """Starts a prefetch; changes no value (O-2502)."""

def make_context() -> Any:
    """Context of asynchronous prefetches (O-2501)."""

def session(ctx: Any) -> Any:
    """Session handle of a prefetch context (O-2501)."""

def wait(event: Any, session_handle: Any) -> Any:
    """Waits for a prefetch; True (O-2501)."""
