# SPDX-License-Identifier: Apache-2.0
"""Checks of the ring sizes of a device: task slots, output heap, dependency entries."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

RINGS = 4


def _power_of_2(least: int) -> Callable[[int], bool]:
    return lambda value: value >= least and value & (value - 1) == 0


# name -> (test of one size, what a size must be, environment variable)
_RULES: dict[str, tuple[Callable[[int], bool], str, str]] = {
    "ring_task_window": (_power_of_2(4), "a power of 2 >= 4 (task slots per ring)", "PTO2_RING_TASK_WINDOW"),
    "ring_heap": (_power_of_2(1024), "a power of 2 >= 1024 (bytes per ring)", "PTO2_RING_HEAP"),
    "ring_dep_pool": (
        lambda v: 4 <= v <= 2**31 - 1,
        "between 4 and 2147483647 (entries per ring)",
        "PTO2_RING_DEP_POOL",
    ),
}


def _check_one(name: str, value: Any, whole: Any, zero_is_default: bool) -> None:
    good, wording, _ = _RULES[name]
    whole_number = isinstance(value, int) and not isinstance(value, bool)
    if whole_number and ((zero_is_default and value == 0) or good(value)):
        return
    raise ValueError(f"{name} must be {wording}, got {whole}")


def check_ring(name: str, value: Any) -> int | list[int] | None:
    """Return the normal form of one ring setting: `None`, one int, or a list of four ints (0 = default)."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        if len(value) != RINGS:
            raise ValueError(f"{name} must have exactly {RINGS} entries (one per ring), got {len(value)}: {value}")
        for entry in value:
            _check_one(name, entry, value, zero_is_default=True)
        return list(value)
    _check_one(name, value, value, zero_is_default=False)
    return value


def effective_ring(name: str, value: Any) -> list[int]:
    """Return the four sizes in force (0 = default): what the config says, else the environment."""
    checked = check_ring(name, value)
    if checked is None:
        checked = _from_environment(name)
    if checked is None:
        return [0] * RINGS
    return list(checked) if isinstance(checked, list) else [checked] * RINGS


def _from_environment(name: str) -> int | list[int] | None:
    variable = _RULES[name][2]
    text = os.environ.get(variable, "").strip()
    if not text:
        return None
    try:
        parts = [int(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"{variable}={text!r}: expected one number or {RINGS} separated by commas") from None
    try:
        return check_ring(name, parts[0] if len(parts) == 1 else parts)
    except ValueError as error:
        raise ValueError(f"{variable}={text!r}: {error}") from None
