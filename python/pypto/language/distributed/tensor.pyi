# SPDX-License-Identifier: Apache-2.0
# Written by tools/gen_stubs.py from the operation table; do not edit.
from typing import Any

def all_to_all(input: Any, target: Any, signal: Any) -> Any:
    """Personalised exchange of rows (03 C-26)."""

def all_to_all_v(input: Any, target: Any, signal: Any, send_counts: Any, recv_counts: Any) -> Any:
    """Personalised exchange with counts (03 C-27)."""

def allgather(local_data: Any, target: Any, signal: Any) -> Any:
    """Every rank's row to every rank (03 C-24)."""

def alloc_window_buffer(size: Any, *, dtype: Any = ..., name: Any = ...) -> Any:
    """Symmetric window memory (03 W-1)."""

def allreduce(target: Any, signal: Any = ..., *, op: Any = ..., mode: Any = ..., core_num: Any = ...) -> Any:
    """Reduction whose result every rank holds (03 C-21)."""

def barrier(signal: Any) -> Any:
    """Rendezvous of all ranks of the domain (03 C-20)."""

def broadcast(target: Any, signal: Any, *, root: Any) -> Any:
    """Root's slice to every rank (03 C-23)."""

def get(
    dst: Any,
    peer: Any,
    src: Any,
    dst_offsets: Any = ...,
    src_offsets: Any = ...,
    shape: Any = ...,
    *,
    chunk_rows: Any = ...,
    chunk_cols: Any = ...,
    pipeline: Any = ...,
) -> Any:
    """Pulls a region of a peer's window (03 O-50)."""

def put(
    dst: Any,
    peer: Any,
    src: Any,
    dst_offsets: Any = ...,
    src_offsets: Any = ...,
    shape: Any = ...,
    *,
    atomic: Any = ...,
    chunk_rows: Any = ...,
    chunk_cols: Any = ...,
    pipeline: Any = ...,
) -> Any:
    """Pushes a region of global memory to a peer (03 O-50)."""

def reduce_scatter(target: Any, signal: Any, *, op: Any = ...) -> Any:
    """One reduced row per rank (03 C-25)."""

def remote_store(src: Any, target: Any, peer: Any, offsets: Any, *, atomic: Any = ...) -> Any:
    """Writes a tensor value into a peer's slice (03 O-40)."""

def window(buf: Any, shape: Any, *, dtype: Any = ...) -> Any:
    """Typed view of a window buffer (03 W-20)."""
