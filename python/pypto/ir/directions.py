# SPDX-License-Identifier: Apache-2.0
"""Directions of the arguments of a task, as values that a program builder hands over."""

from __future__ import annotations

from typing import Any, NamedTuple

from pypto.ir._extra_enums import ArgDirection

__all__ = ["ArgDirection", "DirectedArg", "input", "output", "output_existing", "inout", "no_dep", "scalar_dir"]


class DirectedArg(NamedTuple):
    """An argument and how the task uses it."""

    value: Any
    direction: ArgDirection


def input(value: Any) -> DirectedArg:
    """Return `value` as something that the task reads."""
    return DirectedArg(value, ArgDirection.Input)


def output(value: Any) -> DirectedArg:
    """Return `value` as something that the task creates."""
    return DirectedArg(value, ArgDirection.Output)


def output_existing(value: Any) -> DirectedArg:
    """Return `value` as existing storage that the task overwrites."""
    return DirectedArg(value, ArgDirection.OutputExisting)


def inout(value: Any) -> DirectedArg:
    """Return `value` as something that the task reads and writes."""
    return DirectedArg(value, ArgDirection.InOut)


def no_dep(value: Any) -> DirectedArg:
    """Return `value` as something that orders no tasks."""
    return DirectedArg(value, ArgDirection.NoDep)


def scalar_dir(value: Any) -> DirectedArg:
    """Return `value` as a scalar."""
    return DirectedArg(value, ArgDirection.Scalar)
