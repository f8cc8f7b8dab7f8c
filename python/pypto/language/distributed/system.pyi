# SPDX-License-Identifier: Apache-2.0
# Written by tools/gen_stubs.py from the operation table; do not edit.
from typing import Any

def defer_wait(signal: Any, offsets: Any, expected: Any, *, cmp: Any) -> Any:
    """Registers a condition for the task's completion (03 O-27)."""

def get_comm_ctx(dist_tensor: Any) -> Any:
    """Communication context of a window (03 O-11)."""

def notify(target: Any, peer: Any, offsets: Any, value: Any, *, op: Any) -> Any:
    """Raises a signal cell at a peer; releases earlier effects (03 O-21, O-22)."""

def nranks(ctx: Any) -> Any:
    """Number of ranks of the domain (03 O-13)."""

def rank(ctx: Any) -> Any:
    """Domain-relative rank of the executing device (03 O-12)."""

def wait(signal: Any, offsets: Any, expected: Any, *, cmp: Any) -> Any:
    """Blocks until a signal cell satisfies a condition; acquires (03 O-23)."""

def world_size() -> Any:
    """Number of ranks of the world (03 O-10)."""
