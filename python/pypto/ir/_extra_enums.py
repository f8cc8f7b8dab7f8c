# SPDX-License-Identifier: Apache-2.0
"""Enums that only the description of machines and of task arguments needs."""

from __future__ import annotations

from enum import IntEnum


class CoreType(IntEnum):
    """Kinds of cores of a device."""

    CUBE = 0
    VECTOR = 1


class ArgDirection(IntEnum):
    """How a task uses one argument."""

    Input = 0
    Output = 1
    InOut = 2
    OutputExisting = 3
    NoDep = 4
    Scalar = 5
