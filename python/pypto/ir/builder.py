# SPDX-License-Identifier: Apache-2.0
"""Walking programs; building them by hand is done by writing text and parsing it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from pypto._checks import check_class

_CHILDREN = (
    "functions",
    "params",
    "body",
    "then_body",
    "else_body",
    "stmts",
    "var",
    "value",
    "expr",
    "args",
    "condition",
    "start",
    "stop",
    "step",
    "values",
    "type",
    "shape",
)


def _children(node: Any) -> Iterator[Any]:
    for name in _CHILDREN:
        child = getattr(node, name, None)
        if child is None or isinstance(child, (str, int, float)):
            continue
        values = getattr(child, "values", None)
        if callable(values):
            yield from values()  # type: ignore[misc]
        elif isinstance(child, (list, tuple)):
            yield from child
        else:
            yield child


class IRVisitor:
    """Visits every node: `visit_<ClassName>` if the subclass has it, else the node's children."""

    def visit(self, node: Any) -> Any:
        """Visit one node."""
        method = getattr(self, f"visit_{type(node).__name__}", None)
        return method(node) if method is not None else self.generic_visit(node)

    def generic_visit(self, node: Any) -> None:
        """Visit the children of a node."""
        for child in _children(node):
            self.visit(child)


class IRMutator(IRVisitor):
    """Nodes are read-only: a subclass rewrites text. `visit_text(text)` receives and returns a program's source."""

    def visit_text(self, text: str) -> str:
        """Return the new source; by default the same."""
        return text

    def __call__(self, program: Any) -> Any:
        from pypto.ir.printer import python_print
        from pypto.language import parse

        return parse(self.visit_text(python_print(program)))


class IRBuilder:
    """Collects the text of functions and parses it into a program."""

    def __init__(self, name: str = "program") -> None:
        self.name = name
        self._functions: list[str] = []

    def function(self, text: str) -> IRBuilder:
        """Add the source of a method (with its `@pl.function` decorator)."""
        self._functions.append(text)
        return self

    def build(self) -> Any:
        """Return the program."""
        from pypto.language import parse

        body = "\n".join("\n".join("    " + line for line in t.splitlines()) for t in self._functions)
        return parse(f"import pypto.language as pl\n\n@pl.program\nclass {self.name}:\n{body}\n")


def make_call(op: Any, *args: Any, **kwargs: Any) -> str:
    """Return the text of a call of an operation, for `IRBuilder`."""
    name = getattr(op, "name", op)
    words = [str(a) for a in args] + [f"{k}={v}" for k, v in kwargs.items()]
    return f"pl.{name}({', '.join(words)})"


class ConversionContext:
    """What a conversion of an operation receives: the operation's name and its arguments' text."""

    def __init__(self, op: str, args: list[str], kwargs: dict[str, str]) -> None:
        self.op, self.args, self.kwargs = op, args, kwargs


_conversions: dict[str, Callable[[ConversionContext], str]] = {}


def register_op_conversion(op: str, function: Callable[[ConversionContext], str]) -> None:
    """Remember how `op` is converted."""
    check_class("register_op_conversion: op", op, str, "the name of an operation such as 'tile.add'")
    _conversions[op] = function


def op_conversion(op: str) -> Callable[[ConversionContext], str] | None:
    """Return how `op` is converted, or `None`."""
    check_class("op_conversion: op", op, str, "the name of an operation such as 'tile.add'")
    return _conversions.get(op)


def make_roundtrip_instrument() -> Any:
    """Return an instrument that prints and parses the program after each pass and compares."""
    from pypto.passes import CallbackInstrument
    from pypto.passes._pass import check_round_trip

    return CallbackInstrument(
        after_pass=lambda p, prog: check_round_trip(prog, f"after {p.get_name()}"), name="RoundTripInstrument"
    )


def level_to_linqu_level(level: Any) -> int:
    """Return the hierarchy number of a level (01 L-45)."""
    numbers = {
        "AIV": 0,
        "AIC": 0,
        "CORE_GROUP": 0,
        "CHIP_DIE": 1,
        "CHIP": 2,
        "HOST": 3,
        "CLUSTER_0": 4,
        "CLUSTER_1": 5,
        "CLUSTER_2": 6,
        "GLOBAL": 7,
    }
    with contextlib.suppress(KeyError, AttributeError):
        return numbers[level.name]
    raise ValueError(f"{level!r} is no level")
