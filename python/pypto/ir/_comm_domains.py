# SPDX-License-Identifier: Apache-2.0
"""The communication domains of a distributed program with their windows, as far as compile time knows them.

Read off the printed host function. The machine lays windows out when the program runs; the sizes here are the same
numbers wherever they do not depend on the arguments.
"""

from __future__ import annotations

import ast
from typing import Any

from pypto.ir._listing import dotted, function_tree

_FLOOR, _TAIL, _ALIGN = 4096, 256, 32


def reserved_bytes(requested: int) -> int:
    """Return what a window of `requested` bytes costs on each rank."""
    rounded = -(-requested // _ALIGN) * _ALIGN + _TAIL
    return max(_FLOOR, -(-rounded // _ALIGN) * _ALIGN)


class _Host(ast.NodeVisitor):
    """Collects buffers, their sizes, the views of them, and the ranks that dispatches give views to."""

    def __init__(self, world_size: int) -> None:
        self.world_size = world_size
        self.buffers: dict[str, int | None] = {}
        self.ranks: dict[str, set[int]] = {}
        self._views: dict[str, str] = {}
        self._values: dict[str, int] = {}
        self._loops: dict[str, range] = {}

    # ------------------------------------------------------------------------------------------- expressions

    def value(self, node: ast.AST) -> int | None:
        """Return the value of an integer expression, or `None` if it depends on the arguments."""
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name):
            return self._values.get(node.id)
        if isinstance(node, ast.BinOp):
            a, b = self.value(node.left), self.value(node.right)
            if a is None or b is None:
                return None
            made = {
                ast.Add: lambda: a + b,
                ast.Sub: lambda: a - b,
                ast.Mult: lambda: a * b,
                ast.FloorDiv: lambda: a // b if b else None,
                ast.Mod: lambda: a % b if b else None,
            }.get(type(node.op))
            return made() if made else None
        if isinstance(node, ast.Call):
            name = dotted(node.func).rpartition(".")[2]
            if name == "world_size":
                return self.world_size
            if name in ("const", "cast") and node.args:
                return self.value(node.args[0])
            if name in ("min", "max") and len(node.args) == 2:
                pair = [self.value(a) for a in node.args]
                known = [p for p in pair if p is not None]
                return (min if name == "min" else max)(known) if len(known) == 2 else None
        return None

    def _size(self, call: ast.Call) -> int | None:
        keywords = {k.arg: k.value for k in call.keywords}
        size = call.args[0] if call.args else keywords.get("size")
        if not isinstance(size, (ast.List, ast.Tuple)):
            return self.value(size) if size is not None else None
        bits = _bits(keywords.get("dtype"))
        for part in size.elts:
            extent = self.value(part)
            if extent is None or bits is None:
                return None
            bits *= extent
        return None if bits is None else -(-bits // 8)

    # -------------------------------------------------------------------------------------------- statements

    def visit_Assign(self, node: ast.Assign) -> None:
        self._assign(node.targets[0], node.value)
        self.visit(node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._assign(node.target, node.value)
            self.visit(node.value)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if not isinstance(target, ast.Name):
            return
        name = dotted(value.func).rpartition(".")[2] if isinstance(value, ast.Call) else ""
        if name == "alloc_window_buffer" and isinstance(value, ast.Call):
            self.buffers.setdefault(target.id, self._size(value))
            self.ranks.setdefault(target.id, set())
        elif name == "window" and isinstance(value, ast.Call) and value.args:
            self._views[target.id] = dotted(value.args[0])
        elif isinstance(value, ast.Name) and value.id in self._views:
            self._views[target.id] = self._views[value.id]
        else:
            known = self.value(value)
            if known is not None:
                self._values[target.id] = known
            elif isinstance(value, ast.Name) and value.id in self._loops:
                self._loops[target.id] = self._loops[value.id]

    def visit_For(self, node: ast.For) -> None:
        call = node.iter
        if isinstance(call, ast.Call) and isinstance(node.target, ast.Name):
            bounds = [self.value(a) for a in call.args]
            known = [b for b in bounds if b is not None]
            if known and len(known) == len(bounds) and (len(known) < 3 or known[2] != 0):
                self._loops[node.target.id] = range(*known)
        for statement in node.body:
            self.visit(statement)

    def visit_Call(self, node: ast.Call) -> None:
        for keyword in node.keywords:
            if keyword.arg == "device":
                self._dispatch(node, keyword.value)
        self.generic_visit(node)

    def _dispatch(self, node: ast.Call, device: ast.expr) -> None:
        if isinstance(device, ast.Name) and device.id in self._loops:
            ranks = set(self._loops[device.id])
        else:
            one = self.value(device)
            ranks = set() if one is None else {one}
        for argument in [*node.args, *(k.value for k in node.keywords)]:
            buffer = self._views.get(dotted(argument))
            if buffer is None and isinstance(argument, ast.Call) and argument.args:
                buffer = dotted(argument.args[0])  # a view made in the argument
            if buffer in self.ranks:
                self.ranks[buffer] |= ranks


def _bits(dtype: ast.expr | None) -> int | None:
    from pypto import DataType

    found = getattr(DataType, dotted(dtype).rpartition(".")[2], None) if dtype is not None else None
    return found.get_bit() if isinstance(found, DataType) else None


def comm_domains(host: Any, world_size: int) -> dict[str, Any]:
    """Return the domains: name, ranks, and per buffer name, requested and reserved bytes, offset."""
    tree = function_tree(host)
    if tree is None:
        return {"domains": []}
    found = _Host(world_size)
    for statement in tree.body:
        found.visit(statement)
    domains: list[dict[str, Any]] = []
    offsets: list[int | None] = []
    everyone = set(range(world_size))
    for name, requested in found.buffers.items():
        ranks = sorted(found.ranks[name] & everyone or everyone)
        index = next((i for i, d in enumerate(domains) if d["ranks"] == ranks), None)
        if index is None:
            index = len(domains)
            domains.append({"name": f"comm_d{index}", "ranks": ranks, "buffers": []})
            offsets.append(0)
        reserved = None if requested is None else reserved_bytes(requested)
        offset = offsets[index]
        domains[index]["buffers"].append({"name": name, "requested": requested, "reserved": reserved, "offset": offset})
        offsets[index] = None if offset is None or reserved is None else offset + reserved
    return {"domains": domains}
