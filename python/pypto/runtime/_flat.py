# SPDX-License-Identifier: Apache-2.0
"""Flat argument lists of the low-level entry points: tensors and scalars in any interleaving."""

from __future__ import annotations

import ctypes
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from pypto import _core
from pypto.runtime.device_tensor import DeviceTensor, StackedDeviceTensor


def is_tensor_argument(value: Any) -> bool:
    """Whether `value` is an array or a resident tensor (a 0-dim array counts as a scalar)."""
    if isinstance(value, (DeviceTensor, StackedDeviceTensor)):
        return True
    if isinstance(value, (numbers.Number, np.generic, ctypes._SimpleCData)):
        return False
    info = _core.array_info(value)
    return info is not None and len(info[2]) > 0


def is_scalar_argument(value: Any) -> bool:
    """Whether `value` is a number, a ctypes value or a 0-dim array."""
    if isinstance(value, (numbers.Number, np.generic, ctypes._SimpleCData)):
        return True
    info = _core.array_info(value)
    return info is not None and len(info[2]) == 0


def in_parameter_order(args: Sequence[Any], view: Any) -> list[Any]:
    """Return one argument per parameter from a flat list.

    Raises
    ------
    TypeError
        If an element is neither array nor scalar, or the counts of either kind differ from the parameters'.
    """
    tensors, scalars = [], []
    for i, value in enumerate(args):
        if is_tensor_argument(value):
            tensors.append(value)
        elif is_scalar_argument(value):
            scalars.append(value)
        else:
            raise TypeError(
                f"Argument at position {i} must be torch.Tensor, DeviceTensor or ctypes scalar, "
                f"got {type(value).__name__} (NumPy and other CPU arrays are fine too)"
            )
    wanted_tensors = [p.name for p in view._params if p.is_tensor]
    wanted_scalars = [p.name for p in view._params if not p.is_tensor]
    baked = [p for p in view._params if not p.is_tensor and p.baked is not None]
    if len(scalars) == len(wanted_scalars) - len(baked) and baked:
        # Compiled-in scalars need not be repeated.
        given = iter(scalars)
        scalars = [p.baked if p.baked is not None else next(given) for p in view._params if not p.is_tensor]
    if len(tensors) != len(wanted_tensors) or len(scalars) != len(wanted_scalars):
        raise TypeError(
            f"{view._title}: expected {len(wanted_tensors)} tensors {wanted_tensors} and {len(wanted_scalars)} scalars "
            f"{wanted_scalars}, got {len(tensors)} tensors and {len(scalars)} scalars"
        )
    tensor_iter, scalar_iter = iter(tensors), iter(scalars)
    return [next(tensor_iter) if p.is_tensor else next(scalar_iter) for p in view._params]
