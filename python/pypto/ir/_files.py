# SPDX-License-Identifier: Apache-2.0
"""Saving, loading and comparing programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pypto import _core


def serialize(node: Any) -> bytes:
    """Return a program or function as bytes: structure, types, names and locations. Equal input gives equal bytes."""
    return _core.serialize(node)


def deserialize(data: bytes) -> Any:
    """Return what `serialize` saved; `ValueError` for anything else. Nothing from the bytes is executed."""
    if not isinstance(data, bytes):
        raise TypeError(f"deserialize() takes the bytes that serialize() returned, got {_shown(data)}")
    return _core.deserialize(data)


def structural_equal(a: Any, b: Any, enable_auto_mapping: bool = False) -> bool:
    """Return whether two nodes have the same structure, operations, attributes and types.

    With `enable_auto_mapping` variables are matched by position of definition, else they must be the same objects.
    """
    return _core.structural_equal(a, b, enable_auto_mapping)


def structural_hash(node: Any, enable_auto_mapping: bool = False) -> int:
    """Return a hash that agrees with `structural_equal`."""
    return _core.structural_hash(node, enable_auto_mapping)


def serialize_to_file(node: Any, path: str | os.PathLike[str]) -> None:
    """Write `serialize(node)` to a file."""
    Path(path).write_bytes(serialize(node))


def deserialize_from_file(path: str | os.PathLike[str]) -> Any:
    """Read a program or function that `serialize_to_file` wrote."""
    data = Path(path).read_bytes()
    try:
        return deserialize(data)
    except ValueError as error:
        raise ValueError(f"{os.fspath(path)}: {error}") from None


def assert_structural_equal(a: Any, b: Any, enable_auto_mapping: bool = False) -> None:
    """Raise `ValueError` with the path to the first difference and both sides unless the nodes are equal."""
    if structural_equal(a, b, enable_auto_mapping):
        return
    difference = _core.structural_difference(a, b)
    if difference is None:
        difference = (
            "the structure is the same, but the variables are different objects (enable_auto_mapping=True "
            "matches them by position)"
        )
    raise ValueError(f"the nodes are not structurally equal: {difference}\n--- left\n{a}\n--- right\n{b}")


Op = _core.Op  # pyright: ignore[reportAttributeAccessIssue]


def get_op(name: str) -> Any:
    """Return the operation called `name`, such as `"tile.add"` or `"tensor.matmul"`; `ValueError` if there is none."""
    if not isinstance(name, str):
        raise TypeError(f"get_op() takes the name of an operation such as 'tile.add', got {_shown(name)}")
    return _core.get_op(name)


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, (int, float, str)) else f"a {type(value).__name__}"


def comm_skeleton(program: Any, kernel: str | None = None, *, fold: bool = True) -> str:
    """Return the communication of a program: one line per notify, wait and transfer (03 section 10).

    Parameters
    ----------
    program
        Lowered or not.
    kernel
        Name of one kernel; all that communicate if omitted.

    Raises
    ------
    ValueError
        If the program has no kernel of that name.
    TypeError
        If `program` is not a program or `kernel` is not a name.
    """
    if not isinstance(program, _core.Program):
        advice = ""
        if getattr(program, "program", None) is not None:
            advice = "; a compiled program keeps it as `.program`"
        elif hasattr(program, "lower"):
            advice = "; `.lower(*args)` of a JIT function returns one"
        raise TypeError(f"comm_skeleton() takes a program, got {_shown(program)}{advice}")
    if kernel is not None and not isinstance(kernel, str):
        raise TypeError(f"comm_skeleton(): kernel is the name of a kernel or None, got {_shown(kernel)}")
    return _core.comm_skeleton(program, kernel, fold)
