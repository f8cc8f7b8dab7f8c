# SPDX-License-Identifier: Apache-2.0
# Written by tools/gen_stubs.py from the operation table; do not edit.
from typing import Any

AUTO: Any
def aic_initialize_pipe(
    c2v_consumer_buf: Any = ...,
    v2c_consumer_buf: Any = ...,
    *,
    dir_mask: Any,
    slot_size: Any,
    slot_num: Any = ...,
    local_slot_num: Any = ...,
    id: Any = ...,
) -> Any:
    """Sets up a cross-core pipe on the cube side (O-2101)."""

def aiv_initialize_pipe(
    c2v_consumer_buf: Any = ...,
    v2c_consumer_buf: Any = ...,
    *,
    dir_mask: Any,
    slot_size: Any,
    slot_num: Any = ...,
    local_slot_num: Any = ...,
    id: Any = ...,
) -> Any:
    """Sets up a cross-core pipe on the vector side (O-2101)."""

def available_aiv_count() -> Any:
    """Number of vector cores of the device (O-2307)."""

def available_cluster_count() -> Any:
    """Number of clusters of the device (O-2307)."""

def bar_all() -> Any:
    """Intra-core pipe barrier (O-2304)."""

def bar_m() -> Any:
    """Intra-core pipe barrier (O-2304)."""

def bar_v() -> Any:
    """Intra-core pipe barrier (O-2304)."""

def cacheinvalid(tensor: Any = ..., shapes: Any = ..., offsets: Any = ...) -> Any:
    """Later reads see current global memory (O-2305)."""

def fence() -> Any:
    """Orders this core's writes to global memory (O-2305)."""

def import_peer_buffer(*, name: Any, peer_func: Any) -> Any:
    """Names the consumer's channel storage on the producer (O-2102)."""

def reserve_buffer(*, name: Any, size: Any, base: Any = ...) -> Any:
    """Reserves channel storage on the consumer (O-2102)."""

def set_ffts(workspace: Any) -> Any:
    """Declares the event workspace (O-2303)."""

def sync_dst(*, set_pipe: Any, wait_pipe: Any, event_id: Any) -> Any:
    """Intra-core pipe flag, wait side (O-2304)."""

def sync_set(event_id: Any, *, pipe: Any, ffts_mode: Any = ..., core_type: Any = ...) -> Any:
    """Raises a cube/vector event (O-2303)."""

def sync_src(*, set_pipe: Any, wait_pipe: Any, event_id: Any) -> Any:
    """Intra-core pipe flag, set side (O-2304)."""

def sync_wait(event_id: Any, *, pipe: Any, core_type: Any = ...) -> Any:
    """Waits for a cube/vector event (O-2303)."""

def syncall(*, core_type: Any = ..., mode: Any = ..., gm_workspace: Any = ..., used_cores: Any = ...) -> Any:
    """Barrier over the participants of the launch (O-2301)."""

def task_dummy(*args: Any, **kwargs: Any) -> Any:
    """task_dummy(deps)  A handle that is ready when all of deps are (01 L-137)."""

def task_invalid() -> Any:
    """The invalid task handle (01 L-137)."""

def tfree_to_aic(tile: Any, *, split: Any = ..., id: Any = ...) -> Any:
    """Returns the slot of a popped tile to the cube (O-2103)."""

def tfree_to_aiv(tile: Any, *, split: Any = ..., id: Any = ...) -> Any:
    """Returns the slot of a popped tile to the vector side (O-2103)."""

def tpop_from_aic(
    *, shape: Any = ..., dtype: Any = ..., split: Any = ..., lane_stride: Any = ..., id: Any = ...
) -> Any:
    """Pops the oldest tile pushed by the cube (O-2103)."""

def tpop_from_aiv(*, shape: Any = ..., dtype: Any = ..., split: Any = ..., id: Any = ...) -> Any:
    """Pops the oldest tile pushed by the vector lanes (O-2103)."""

def tpush_to_aic(tile: Any, *, split: Any, id: Any = ...) -> Any:
    """Pushes a tile from a vector lane to the cube (O-2103)."""

def tpush_to_aiv(tile: Any, *, split: Any, lane_stride: Any = ..., id: Any = ...) -> Any:
    """Pushes a tile from the cube to the vector lanes (O-2103)."""
