# SPDX-License-Identifier: Apache-2.0
# Written by tools/gen_stubs.py from the operation table; do not edit.
from enum import IntEnum
from typing import Any

from pypto.language import AtomicType as AtomicType
from pypto.language.distributed import system as system
from pypto.language.distributed import tensor as tensor
from pypto.language.distributed import tile as tile

CommCtx: Any
CommCtxType: Any
DistributedTensor: Any

class NotifyOp(IntEnum):
    AtomicAdd = 0
    Set = 1

class WaitCmp(IntEnum):
    Eq = 0
    Ge = 1

class ReduceOp(IntEnum):
    Sum = 0
    Max = 1
    Min = 2
    Prod = 3

def alloc_window_buffer(size: Any, *, dtype: Any = ..., name: Any = ...) -> Any:
    """Symmetric window memory (03 W-1)."""

def get_comm_ctx(dist_tensor: Any) -> Any:
    """Communication context of a window (03 O-11)."""

def nranks(ctx: Any) -> Any:
    """Number of ranks of the domain (03 O-13)."""

def rank(ctx: Any) -> Any:
    """Domain-relative rank of the executing device (03 O-12)."""

def remote_load(target: Any, peer: Any, offsets: Any, shape: Any, valid_shape: Any = ...) -> Any:
    """Reads a rectangle of a peer's slice into a tile (03 O-30)."""

def remote_store(src: Any, target: Any, peer: Any, offsets: Any, *, atomic: Any = ...) -> Any:
    """Writes a tile into a peer's slice (03 O-35); pld.remote_store takes tensors too (O-42)."""

def window(buf: Any, shape: Any, *, dtype: Any = ...) -> Any:
    """Typed view of a window buffer (03 W-20)."""

def world_size() -> Any:
    """Number of ranks of the world (03 O-10)."""
