# SPDX-License-Identifier: Apache-2.0
"""Descriptions of test inputs: `TensorSpec` makes a torch tensor, `ScalarSpec` a ctypes value."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_CTYPES = {
    "int64": ctypes.c_int64,
    "int32": ctypes.c_int32,
    "uint64": ctypes.c_uint64,
    "uint32": ctypes.c_uint32,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
}


@dataclass
class TensorSpec:
    """One tensor of a test case.

    Parameters
    ----------
    name, shape, dtype
        What it is called, its extents, its `torch.dtype`.
    init_value
        `None` (zeros), a number, a tensor, `torch.randn/rand/zeros/ones`, or a callable without arguments.
    is_output
        Whether the program writes it.
    """

    __test__ = False

    name: str
    shape: Sequence[int]
    dtype: Any
    init_value: Any = None
    is_output: bool = False

    def create_tensor(self) -> Any:
        """Return a new tensor with the described contents.

        Raises
        ------
        TypeError
            If `init_value` is none of the supported kinds.
        """
        import torch

        shape = tuple(int(n) for n in self.shape)
        init = self.init_value
        if init is None:
            return torch.zeros(shape, dtype=self.dtype)
        if isinstance(init, (int, float, bool)):
            return torch.full(shape, init, dtype=self.dtype)
        if isinstance(init, torch.Tensor):
            return init.to(self.dtype)
        if init in (torch.zeros, torch.ones):
            return init(shape, dtype=self.dtype)
        if init in (torch.randn, torch.rand):
            if self.dtype.is_floating_point:
                return init(shape, dtype=self.dtype)
            return init(shape).to(self.dtype)
        if callable(init):
            made = init()
            return made.to(self.dtype) if isinstance(made, torch.Tensor) else torch.as_tensor(made, dtype=self.dtype)
        raise TypeError(
            f"TensorSpec {self.name!r}: init_value must be None, a number, a tensor or a callable, "
            f"got {type(init).__name__}"
        )


@dataclass
class ScalarSpec:
    """One scalar of a test case: its value and the C type it is passed as."""

    __test__ = False

    name: str
    value: Any
    ctype: str = "int64"

    def __post_init__(self) -> None:
        if not isinstance(self.ctype, str) or self.ctype not in _CTYPES:
            raise ValueError(f"ScalarSpec {self.name!r}: ctype must be one of {', '.join(_CTYPES)}, got {self.ctype!r}")

    def create_scalar(self) -> Any:
        """Return the ctypes value."""
        kind = _CTYPES[self.ctype]
        return kind(float(self.value) if self.ctype in ("float", "double") else int(self.value))
