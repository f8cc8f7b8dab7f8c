# SPDX-License-Identifier: Apache-2.0
"""Readable C++ and PTO listings of functions, made from their printed form.

The simulator runs the stored program; these texts are for people and for tools that look for names in them.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from pypto import _core

_BINARY = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "/",
    ast.Div: "/",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.LShift: "<<",
    ast.RShift: ">>",
}
_COMPARE = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_LOOPS = ("range", "parallel", "unroll", "pipeline", "spmd", "split_aiv")


def function_tree(function: Any) -> ast.FunctionDef | None:
    """Return the syntax tree of a function as it prints, or `None` if its text is no Python."""
    try:
        tree = ast.parse(_core.python_print(function))
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            return node
    return None


def names_in(function: Any) -> set[str]:
    """Return every identifier and attribute name that the text of `function` mentions, besides its own."""
    tree = function_tree(function)
    if tree is None:
        return set()
    found = set()
    for part in [*tree.body]:
        for node in ast.walk(part):
            if isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
    return found


def dotted(node: ast.AST) -> str:
    """Return `a.b.c` of an attribute chain, or an empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base else node.attr
    return ""


class Cpp:
    """Writes a function as C++.

    Parameters
    ----------
    tasks
        Callee -> (task id, core kind, or `""` for a plain call): calls of these become submits.
    """

    def __init__(self, tasks: Mapping[str, tuple[int, str]] | None = None) -> None:
        self._tasks = tasks or {}
        self._lines: list[str] = []
        self._depth = 1
        self._known: set[str] = set()

    def body(self, function: ast.FunctionDef) -> list[str]:
        """Return the lines of the body."""
        self._known = {a.arg for a in function.args.args}
        self._block(function.body)
        return self._lines

    def _out(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    def _block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self._statement(statement)

    def _nested(self, head: str, body: list[ast.stmt], tail: str = "}") -> None:
        self._out(head)
        self._depth += 1
        self._block(body)
        self._depth -= 1
        self._out(tail)

    def _statement(self, s: ast.stmt) -> None:
        if isinstance(s, ast.Assign) and len(s.targets) == 1:
            self._assign(s.targets[0], s.value)
        elif isinstance(s, ast.AnnAssign) and s.value is not None:
            self._assign(s.target, s.value)
        elif isinstance(s, ast.Expr):
            if not isinstance(s.value, ast.Constant):
                self._out(self._call_text(s.value) + ";")
        elif isinstance(s, ast.For):
            self._for(s)
        elif isinstance(s, ast.While):
            self._nested(f"while ({self.expr(s.test)}) {{", s.body)
        elif isinstance(s, ast.If):
            self._nested(f"if ({self.expr(s.test)}) {{", s.body, "} else {" if s.orelse else "}")
            if s.orelse:
                self._depth += 1
                self._block(s.orelse)
                self._depth -= 1
                self._out("}")
        elif isinstance(s, ast.With):
            names = ", ".join(self.expr(i.context_expr) for i in s.items)
            self._nested(f"{{  // {names}", s.body)
        elif isinstance(s, ast.Return):
            self._out("return;" if s.value is None else f"return {self.expr(s.value)};")
        elif isinstance(s, (ast.Break, ast.Continue)):
            self._out("break;" if isinstance(s, ast.Break) else "continue;")
        elif not isinstance(s, ast.Pass):
            self._out(f"// {ast.unparse(s)}")

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple):
            names = [self.expr(t) for t in target.elts]
            new = all(n not in self._known for n in names)
            self._known.update(names)
            left = f"auto [{', '.join(names)}]" if new else f"std::tie({', '.join(names)})"
        else:
            left = self.expr(target)
            if isinstance(target, ast.Name) and left not in self._known:
                self._known.add(left)
                left = f"auto {left}"
        self._out(f"{left} = {self._call_text(value)};")

    def _for(self, s: ast.For) -> None:
        call = s.iter if isinstance(s.iter, ast.Call) else None
        kind = dotted(call.func).rpartition(".")[2] if call is not None else ""
        name = self.expr(s.target.elts[0] if isinstance(s.target, ast.Tuple) else s.target)
        self._known.add(name)
        if call is None or kind not in _LOOPS:
            self._nested(f"for (auto {name} : {self.expr(s.iter)}) {{", s.body)
            return
        bounds = [self.expr(a) for a in call.args]
        start, stop, step = "0", bounds[0] if bounds else "0", "1"
        if len(bounds) >= 2 and kind != "split_aiv":
            start, stop = bounds[0], bounds[1]
        if len(bounds) >= 3:
            step = bounds[2]
        advance = f"++{name}" if step == "1" else f"{name} += {step}"
        comment = "" if kind == "range" else f"  // {kind}"
        self._nested(f"for (int64_t {name} = {start}; {name} < {stop}; {advance}) {{{comment}", s.body)

    def _call_text(self, node: ast.expr) -> str:
        if isinstance(node, ast.Call):
            callee = dotted(node.func).rpartition(".")[2]
            args = list(node.args)
            if callee in ("submit", "spmd_submit") and args:
                callee, args = dotted(args[0]).rpartition(".")[2], args[1:]
            if callee in self._tasks:
                number, kind = self._tasks[callee]
                words = [self.expr(a) for a in args] + [f"/*{k.arg}=*/{self.expr(k.value)}" for k in node.keywords]
                verb = f"rt_submit_{kind}_task" if kind else callee
                first = [f"FUNC_{callee.upper()} /* {number} */"] if kind else []
                return f"{verb}({', '.join(first + words)})"
        return self.expr(node)

    def expr(self, node: ast.AST) -> str:
        """Return an expression as C++."""
        if isinstance(node, ast.Constant):
            if isinstance(node.value, bool):
                return "true" if node.value else "false"
            return (
                f'"{node.value}"'
                if isinstance(node.value, str)
                else "nullptr"
                if node.value is None
                else repr(node.value)
            )
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, ast.Attribute):
            text = dotted(node)
            return text.removeprefix("self.").replace(".", "::") if text else f"{self.expr(node.value)}.{node.attr}"
        if isinstance(node, ast.BinOp):
            sign = _BINARY.get(type(node.op), "/*?*/")
            return f"({self.expr(node.left)} {sign} {self.expr(node.right)})"
        if isinstance(node, ast.UnaryOp):
            sign = {ast.USub: "-", ast.Not: "!", ast.Invert: "~"}.get(type(node.op), "+")
            return f"{sign}{self.expr(node.operand)}"
        if isinstance(node, ast.Compare):
            parts, left = [], self.expr(node.left)
            for op, right in zip(node.ops, node.comparators, strict=True):
                text = self.expr(right)
                parts.append(f"{left} {_COMPARE.get(type(op), '==')} {text}")
                left = text
            return " && ".join(parts)
        if isinstance(node, ast.BoolOp):
            sign = " && " if isinstance(node.op, ast.And) else " || "
            return "(" + sign.join(self.expr(v) for v in node.values) + ")"
        if isinstance(node, (ast.List, ast.Tuple)):
            return "{" + ", ".join(self.expr(e) for e in node.elts) + "}"
        if isinstance(node, ast.Subscript):
            return f"{self.expr(node.value)}[{self.expr(node.slice)}]"
        if isinstance(node, ast.Call):
            if dotted(node.func).endswith("pl.const") and node.args:
                return self.expr(node.args[0])
            words = [self.expr(a) for a in node.args]
            words += [f"/*{k.arg}=*/{self.expr(k.value)}" for k in node.keywords]
            return f"{self.expr(node.func)}({', '.join(words)})"
        return f"/* {ast.unparse(node)} */"


def pto_lines(function: ast.FunctionDef) -> list[str]:
    """Return the body of a kernel, one operation a line, in PTO spelling."""
    lines: list[str] = []

    def show(node: ast.AST) -> str:
        return f"%{node.id}" if isinstance(node, ast.Name) else ast.unparse(node)

    def add(body: list[ast.stmt], depth: int) -> None:
        pad = "  " * depth
        for s in body:
            value = getattr(s, "value", None)
            if isinstance(value, ast.Call):
                op = dotted(value.func).rpartition(".")[2]
                operands = ", ".join(
                    [show(a) for a in value.args] + [f"{k.arg} = {show(k.value)}" for k in value.keywords]
                )
                target = ""
                if isinstance(s, ast.Assign):
                    target = f"{show(s.targets[0])} = "
                elif isinstance(s, ast.AnnAssign):
                    target = f"{show(s.target)} = "
                lines.append(f"{pad}{target}pto.t{op}({operands})")
            elif isinstance(s, (ast.For, ast.While, ast.If, ast.With)):
                lines.append(f"{pad}// {ast.unparse(s).splitlines()[0]}")
                add(s.body, depth + 1)
                orelse = getattr(s, "orelse", [])
                if orelse:
                    lines.append(f"{pad}// else:")
                    add(orelse, depth + 1)
            elif not isinstance(s, ast.Pass):
                lines.append(f"{pad}// {ast.unparse(s)}")

    add(function.body, 2)
    return lines
