# SPDX-License-Identifier: Apache-2.0
"""Element types at the border: which torch and NumPy types stand for which `DataType`."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

# DataType text -> (torch name, NumPy name, carriers that may stand in)
_TABLE: dict[str, tuple[str | None, str | None, tuple[str, ...]]] = {
    "fp32": ("float32", "float32", ()),
    "fp16": ("float16", "float16", ()),
    "bfloat16": ("bfloat16", "bfloat16", ("uint16", "int16")),
    "int8": ("int8", "int8", ()),
    "int16": ("int16", "int16", ()),
    "int32": ("int32", "int32", ()),
    "int64": ("int64", "int64", ()),
    "uint8": ("uint8", "uint8", ()),
    "uint16": ("uint16", "uint16", ("int16",)),
    "uint32": ("uint32", "uint32", ("int32",)),
    "uint64": ("uint64", "uint64", ("int64",)),
    "bool": ("bool", "bool", ("uint8", "int8")),
    "index": ("int64", "int64", ()),
    "fp8e4m3fn": ("float8_e4m3fn", "float8_e4m3fn", ("uint8", "int8")),
    "fp8e5m2": ("float8_e5m2", "float8_e5m2", ("uint8", "int8")),
    "fp8e8m0": ("float8_e8m0fnu", "float8_e8m0fnu", ("uint8", "int8")),
    "fp4": ("float4_e2m1fn_x2", None, ("uint8", "int8")),
    "int4": (None, None, ("uint8", "int8")),
    "uint4": (None, None, ("uint8", "int8")),
    "hf4": (None, None, ("uint8", "int8")),
    "hf8": (None, None, ("uint8", "int8")),
}

_BY_ARRAY_NAME = {}
for _text, (_torch_name, _numpy_name, _) in _TABLE.items():
    for _name in (_torch_name, _numpy_name):
        if _name is not None and _text != "index":
            _BY_ARRAY_NAME.setdefault(_name, _text)


def _is_torch_dtype(dtype: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(dtype, torch.dtype)


def kind_of(dtype: Any) -> str | None:
    """Return the text of the `DataType` that `dtype` stands for, or `None` if it stands for none."""
    from pypto import DataType

    if isinstance(dtype, DataType):
        return str(dtype)
    if _is_torch_dtype(dtype):
        return _BY_ARRAY_NAME.get(str(dtype).removeprefix("torch."))
    if isinstance(dtype, np.dtype) or (isinstance(dtype, type) and issubclass(dtype, np.generic)):
        return _BY_ARRAY_NAME.get(np.dtype(dtype).name)
    return None


def data_type(dtype: Any) -> Any:
    """Return the `DataType` that a torch, NumPy or pypto type stands for; `TypeError` if there is none."""
    from pypto import DataType

    if isinstance(dtype, DataType):
        return dtype
    text = kind_of(dtype)
    if text is None:
        which = "torch dtype" if _is_torch_dtype(dtype) else "dtype"
        raise TypeError(f"Unsupported {which} {dtype}; supported: {', '.join(sorted(_TABLE))}")
    return by_text(text)


def by_text(text: str) -> Any:
    """Return the `DataType` whose `str` is `text`; `KeyError` if there is none."""
    from pypto import DataType

    names = {"bfloat16": "BF16"}
    return getattr(DataType, names.get(text, text.upper()))


def item_bytes(dtype: Any) -> int:
    """Return the bytes of one stored element."""
    return int(data_type(dtype).get_byte())


def runtime_shape(shape: Sequence[int], dtype: Any) -> list[int]:
    """Return the extents of the array that holds a tensor: FP4 packs two values in one element.

    Raises
    ------
    TypeError
        If the last extent of an FP4 tensor is odd.
    """
    extents = list(shape)
    if str(data_type(dtype)) == "fp4" and extents:
        if extents[-1] >= 0 and extents[-1] % 2:
            raise TypeError(f"an FP4 tensor needs an even last extent (two values per byte), got {list(shape)}")
        if extents[-1] >= 0:
            extents[-1] //= 2
    return extents


def nbytes(shape: Sequence[int], dtype: Any) -> int:
    """Return the bytes of an array of `shape` elements."""
    return math.prod(shape) * item_bytes(dtype)


def torch_dtype(dtype: Any) -> Any:
    """Return the torch type of a `DataType`, or `None` when torch has none."""
    try:
        import torch
    except ImportError:
        return None
    name = _TABLE.get(str(data_type(dtype)), (None, None, ()))[0]
    return getattr(torch, name, None) if name else None


def torch_name(dtype: Any) -> str | None:
    """Return the name that torch gives a `DataType` (`"float32"`), or `None`; torch itself is not imported."""
    name = _TABLE.get(str(data_type(dtype)), (None, None, ()))[0]
    return str(name) if name else None


def array_dtype(dtype: Any, use_torch: bool) -> Any:
    """Return the torch or NumPy type in which an array of `dtype` is made, a carrier where the library lacks it."""
    torch_name, numpy_name, carriers = _TABLE[str(data_type(dtype))]
    if use_torch:
        import torch

        for name in (torch_name, *reversed(carriers)):
            found = getattr(torch, name, None) if name else None
            if found is not None:
                return found
        raise TypeError(f"torch has no type for {dtype}")
    if numpy_name in ("bfloat16",) or (numpy_name or "").startswith("float8"):
        try:
            import ml_dtypes

            return np.dtype(getattr(ml_dtypes, numpy_name or ""))
        except (ImportError, AttributeError):
            numpy_name = None
    return np.dtype(numpy_name or carriers[0])


def empty_array(shape: Sequence[int], dtype: Any, use_torch: bool) -> Any:
    """Return a zero-filled host array for a tensor of `shape` and `dtype`."""
    extents = runtime_shape(shape, dtype)
    kind = array_dtype(dtype, use_torch)
    if use_torch:
        import torch

        return torch.zeros(extents, dtype=kind)
    return np.zeros(extents, dtype=kind)


def as_numpy(array: Any) -> np.ndarray:
    """Return a NumPy view of the bytes of any CPU array, for copying; torch types that NumPy lacks come as integers."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        array = array.detach()
        try:
            return array.numpy()
        except TypeError:
            carrier = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[array.element_size()]
            return array.view(carrier).numpy()
    if isinstance(array, np.ndarray):
        return array
    if hasattr(array, "__dlpack__"):
        try:
            return np.from_dlpack(array)
        except (BufferError, RuntimeError):
            pass
    return np.asarray(array)
