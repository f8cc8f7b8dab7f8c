# SPDX-License-Identifier: Apache-2.0
# Written by tools/gen_stubs.py from the operation table; do not edit.
from typing import Any

def get(
    dst: Any,
    peer: Any,
    src: Any,
    stage: Any,
    stage2: Any = ...,
    dst_offsets: Any = ...,
    src_offsets: Any = ...,
    shape: Any = ...,
) -> Any:
    """Printed form of get with staging tiles (03 O-70)."""

def put(
    dst: Any,
    peer: Any,
    src: Any,
    stage: Any,
    stage2: Any = ...,
    dst_offsets: Any = ...,
    src_offsets: Any = ...,
    shape: Any = ...,
    *,
    atomic: Any = ...,
) -> Any:
    """Printed form of put with staging tiles (03 O-70)."""

def remote_load(target: Any, peer: Any, offsets: Any, shape: Any, valid_shape: Any = ...) -> Any:
    """Reads a rectangle of a peer's slice into a tile (03 O-30)."""

def remote_store(src: Any, target: Any, peer: Any, offsets: Any, *, atomic: Any = ...) -> Any:
    """Writes a tile into a peer's slice (03 O-35); pld.remote_store takes tensors too (O-42)."""
