# SPDX-License-Identifier: Apache-2.0
"""Sub-workers: which Python function each name runs, checked before anything runs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pypto.runtime import _dtypes

# Names of element types of the device runtime -> str(DataType).
CONTINUOUS_TYPES = {
    "FLOAT32": "fp32",
    "FLOAT16": "fp16",
    "BFLOAT16": "bfloat16",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "BOOL": "bool",
    "FLOAT8_E4M3FN": "fp8e4m3fn",
    "FLOAT8_E5M2": "fp8e5m2",
    "FLOAT8_E8M0": "fp8e8m0",
    "FLOAT4": "fp4",
    "INT4": "int4",
    "UINT4": "uint4",
    "HF4": "hf4",
    "HF8": "hf8",
}


def tensor_from_continuous(value: Any) -> Any:
    """Return the torch tensor that views the memory of a callback's argument.

    `value` is a tensor already, or an object with `data` (address), `shape` and `dtype` (a name such as `"FLOAT32"`).

    Raises
    ------
    TypeError
        If the element type is not known.
    """
    from pypto import _core

    if _core.array_info(value) is not None:
        return _as_torch(value)
    kind = getattr(value, "dtype", None)
    name = getattr(kind, "name", kind)
    text = CONTINUOUS_TYPES.get(str(name).upper())
    if text is None:
        raise TypeError(f"_tensor_from_continuous: unknown element type {name!r}; known: {', '.join(CONTINUOUS_TYPES)}")
    address = getattr(value, "data", None)
    address = address() if callable(address) else address
    if not isinstance(address, int):
        raise TypeError(f"_tensor_from_continuous: {type(value).__name__} has no address in .data")
    extents: Any = value.shape
    shape = [int(n) for n in (extents() if callable(extents) else extents)]  # type: ignore[union-attr]
    return _core.array_view(address, _dtypes.by_text(text), shape, keep=value, torch=True)


def _as_torch(value: Any) -> Any:
    if type(value).__module__.partition(".")[0] == "torch":
        return value
    try:
        import torch
    except ImportError:
        return value
    try:
        return torch.from_numpy(value)
    except TypeError:
        return torch.from_dlpack(value) if hasattr(value, "__dlpack__") else value


def merge(
    callbacks: Mapping[str, Callable[..., Any]] | None, overrides: Mapping[str, Callable[..., Any]] | None
) -> dict[str, Callable[..., Any]]:
    """Return the callbacks of both spellings; the new one wins."""
    merged: dict[str, Callable[..., Any]] = {}
    if overrides is not None:
        warnings.warn(
            "W-DEPRECATED: sub_worker_overrides= is an old spelling; use callbacks=", DeprecationWarning, stacklevel=4
        )
        merged.update(overrides)
    merged.update(callbacks or {})
    return merged


def _takes_one(function: Callable[..., Any]) -> bool:
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return True
    try:
        signature.bind(object())
    except TypeError:
        return False
    return True


def check(name: str, function: Any) -> None:
    """Raise `TypeError` unless `function` can be called with one argument."""
    if not callable(function):
        raise TypeError(f"callback for sub-worker {name!r} must be a function, got {type(function).__name__}")
    if not _takes_one(function):
        raise TypeError(
            f"callback for sub-worker {name!r} must take one positional argument (the sequence of tensors), but its "
            f"signature is {getattr(function, '__name__', 'callback')}{inspect.signature(function)}"
        )


class Bound(dict[int, dict[str, Callable[..., Any]]]):
    """Callbacks of each program, by identity of the program."""

    def __getitem__(self, program: Any) -> Any:
        return super().__getitem__(id(program))


def bind(programs: Sequence[Any], callbacks: Mapping[str, Callable[..., Any]], *, what: str) -> Bound:
    """Return for each program which function runs each of its sub-workers.

    Raises
    ------
    ValueError
        If a sub-worker without a body has no callback, or a name is not declared by any program.
    TypeError
        If a callback cannot be called with one argument.
    """
    available = sorted({name for p in programs for name in p._native.sub_workers})
    unknown = sorted(name for name in callbacks if name not in available)
    if unknown:
        raise ValueError(f"callbacks {unknown} are not sub-workers of the program; available: {available}")
    for name, function in callbacks.items():
        check(name, function)
    bound = Bound()
    for p in programs:
        needed = p._native.sub_workers
        missing = sorted(name for name, needs in needed.items() if needs and name not in callbacks)
        if missing:
            shown = ", ".join(f'"{name}": fn' for name in missing)
            raise ValueError(
                f"program {p.name!r} has runtime-bound callbacks {missing} that must be supplied via "
                f"callbacks={{...}}, missing in {what}: compiled.prepare(callbacks={{{shown}}})"
            )
        table = dict(p._concrete_callables()) if needed else {}
        table.update({name: f for name, f in callbacks.items() if name in needed})
        bound[id(p)] = table
    return bound
