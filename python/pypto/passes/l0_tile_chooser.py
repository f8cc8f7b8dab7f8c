# SPDX-License-Identifier: Apache-2.0
"""Which tile a matrix product is cut into: the choice the lowering makes, as a function."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum
from typing import Any

__all__ = ["L0TileConfig", "L0TileResult", "Stationarity", "choose_l0_tile"]


class Stationarity(IntEnum):
    """Which operand stays in its buffer while the others stream."""

    OutputStationary = 0
    AStationary = 1
    BStationary = 2


@dataclass(init=False)
class L0TileConfig:
    """The product `[M, K] x [K, N]`, the capacities, and the cost model. All fields are assigned."""

    M: int = 0
    N: int = 0
    K: int = 0
    l0a_bytes: int = 0
    l0b_bytes: int = 0
    l0c_bytes: int = 0
    bytes_a: int = 2
    bytes_b: int = 2
    bytes_c: int = 4
    min_m: int = 16
    min_n: int = 16
    min_k: int = 16
    align_m: int = 16
    align_n: int = 16
    align_k: int = 16
    l0c_align_m: int = 16
    box_align_m: int = 1
    box_align_n: int = 1
    max_n: int = 0
    max_n_pipelined: int = 0
    max_n_nested_pipelined: int = 0
    allow_a_stationary: bool = False
    allow_b_stationary: bool = False
    allow_double_buffer_c: bool = False
    c_read: bool = False
    allow_padding: bool = False
    allow_k_boundary: bool = False
    bw_a: float = 129.7
    bw_b: float = 85.4
    bw_drain: float = 118.0
    drain_fixed_cycles: float = 164.0
    drain_row_cycles: float = 4.45
    drain_penalty_cycles: float = 2.6
    drain_c0_bytes: int = 32
    mad_head: int = 21
    mad_k_fractal_bytes: int = 32
    mad_fp32_passes: int = 2

    def __init__(self) -> None:
        for f in fields(self):
            setattr(self, f.name, f.default)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in type(self).__dataclass_fields__:
            raise AttributeError(f"L0TileConfig has no field {name!r}")
        object.__setattr__(self, name, value)


@dataclass(frozen=True)
class L0TileResult:
    """The tile, how it is computed, and what that costs."""

    m: int
    n: int
    k: int
    stationarity: Stationarity
    os_holds_a: bool
    double_buffer_c: bool
    estimated_traffic_bytes: int
    estimated_cost_cycles: int
    padded_compute_volume: int
    perf_hint: str = ""


def choose_l0_tile(cfg: L0TileConfig) -> L0TileResult:
    """Return the tile that the lowering takes for the product `cfg` describes.

    Raises
    ------
    ValueError
        If nothing fits, or a field is not positive.
    """
    from pypto import _core

    result = dict(_core.choose_l0_tile({f.name: getattr(cfg, f.name) for f in fields(cfg)}))
    result["stationarity"] = Stationarity(result["stationarity"])
    return L0TileResult(**result)
