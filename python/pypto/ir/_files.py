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


class Op:
    """An operation of the table."""

    def __init__(self, name: str, signature: str, doc: str) -> None:
        self.name = name
        self.signature = signature
        self.doc = doc

    def __eq__(self, other: object) -> bool:
        return getattr(other, "name", None) == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Op({self.name!r})"


def get_op(name: str) -> Any:
    """Return the operation called `name`, such as `"tile.add"` or `"tensor.matmul"`; `ValueError` if there is none."""
    native = getattr(_core, "get_op", None)
    if native is not None:
        return native(name)
    space, _, short = name.rpartition(".")
    known = []
    for space_of_row, short_name, signature, doc, identifier in _core.op_table():
        full = f"{space_of_row}.{short_name}".removeprefix("pl.")
        if name in (full, f"pl.{full}", identifier) or (not space and short == short_name):
            return Op(name, signature, doc)
        known.append(full)
    import difflib

    near = difflib.get_close_matches(name, known, n=3)
    hint = f" Did you mean {', '.join(near)}?" if near else ""
    raise ValueError(f"there is no operation {name!r}.{hint}")


def comm_skeleton(program: Any, kernel: str | None = None, *, fold: bool = True) -> Any:
    """Return the communication of a lowered program: one line per notify, wait and transfer (03 section 10)."""
    return _core.comm_skeleton(program, kernel, fold)
