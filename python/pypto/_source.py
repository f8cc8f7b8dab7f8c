# SPDX-License-Identifier: Apache-2.0
"""Source of a Python function as a module of its own: what it needs from its surroundings is put before it."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from typing import Any

import numpy as np

_LITERALS = (int, float, bool, str, bytes, complex, type(None))


def tree_of(function: Any) -> ast.FunctionDef:
    """Return the syntax tree of a function without decorators; `RuntimeError` if its source is not there."""
    try:
        text = textwrap.dedent(inspect.getsource(function))
    except (OSError, TypeError) as error:
        name = getattr(function, "__name__", repr(function))
        raise RuntimeError(f"the source of {name!r} cannot be read ({error}); define it in a file") from None
    try:
        tree = ast.parse(text)
    except SyntaxError:
        # A lambda inside a larger expression, or a method whose first lines are cut.
        raise RuntimeError(f"the source of {function!r} is no function of its own; use a def") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.decorator_list = []
            return node
        if isinstance(node, ast.Lambda):
            made = ast.FunctionDef(
                name="_lambda",
                args=node.args,
                body=[ast.Return(node.body)],
                decorator_list=[],
                returns=None,
            )
            if hasattr(ast, "TypeAlias"):  # Python 3.12
                made.type_params = []  # type: ignore[attr-defined]
            return ast.fix_missing_locations(ast.copy_location(made, node))
    raise RuntimeError(f"the source of {function!r} holds no function")


def literal(value: Any) -> str | None:
    """Return Python text of a value made of literals, or `None`."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f"float({str(value)!r})"
    if type(value) in _LITERALS:
        return repr(value)
    if type(value) in (list, tuple, set, frozenset):
        parts = [literal(v) for v in list(value)]  # type: ignore[call-overload]
        if any(p is None for p in parts):
            return None
        inner = ", ".join(p for p in parts if p is not None)
        if isinstance(value, list):
            return f"[{inner}]"
        if isinstance(value, tuple):
            return f"({inner}{',' if len(parts) == 1 else ''})"
        return f"{type(value).__name__}([{inner}])"
    if type(value) is dict:
        items = []
        for key, item in value.items():
            k, v = literal(key), literal(item)
            if k is None or v is None:
                return None
            items.append(f"{k}: {v}")
        return "{" + ", ".join(items) + "}"
    text = str(value)
    if type(value).__module__ == "torch" and type(value).__name__ in ("dtype", "device"):
        return text if text.startswith("torch.") else f"torch.device({text!r})"
    return None


class _SelfToLiteral(ast.NodeTransformer):
    """Replaces `self.<attr>` by the literal it holds."""

    def __init__(self, owner: Any, name: str) -> None:
        self._owner, self._name = owner, name

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        if (
            isinstance(node.value, ast.Name)
            and node.value.id == self._name
            and isinstance(node.ctx, ast.Load)
            and self._owner is not None
            and hasattr(self._owner, node.attr)
        ):
            text = literal(getattr(self._owner, node.attr))
            if text is not None:
                return ast.copy_location(ast.parse(text, mode="eval").body, node)
        return node


def drop_self(tree: ast.FunctionDef, owner: Any) -> ast.FunctionDef:
    """Return a method's tree without its first parameter, attributes of it replaced by their values."""
    if tree.args.args and tree.args.args[0].arg in ("self", "cls"):
        name = tree.args.args.pop(0).arg
        tree = _SelfToLiteral(owner, name).visit(tree)
        ast.fix_missing_locations(tree)
    return tree


def _scope(function: Any) -> dict[str, Any]:
    plain = getattr(function, "__func__", function)
    scope = dict(getattr(plain, "__globals__", {}))
    code = getattr(plain, "__code__", None)
    for name, cell in zip(code.co_freevars if code else (), getattr(plain, "__closure__", None) or (), strict=False):
        try:
            scope[name] = cell.cell_contents
        except ValueError:
            continue
    return scope


def _strip_annotations(tree: ast.FunctionDef) -> None:
    tree.returns = None
    for a in [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs, tree.args.vararg, tree.args.kwarg]:
        if a is not None:
            a.annotation = None


def _free_names(tree: ast.AST) -> list[str]:
    seen: dict[str, None] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            seen.setdefault(node.id)
    return list(seen)


def surroundings(tree: ast.FunctionDef, function: Any, done: set[str], depth: int = 0) -> list[str]:
    """Return the lines that must stand before the function: imports, constants, helpers it uses."""
    scope = _scope(function)
    lines: list[str] = []
    for name in _free_names(tree):
        if name in done or name not in scope:
            continue
        value = scope[name]
        if isinstance(value, types.ModuleType):
            done.add(name)
            lines.append(f"import {value.__name__}" if value.__name__ == name else f"import {value.__name__} as {name}")
            continue
        text = literal(value)
        if text is not None:
            done.add(name)
            if "torch." in text and "torch" not in done and not isinstance(value, str):
                done.add("torch")
                lines.append("import torch")
            lines.append(f"{name} = {text}")
            continue
        module, real = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
        if isinstance(value, types.FunctionType) and depth < 8:
            done.add(name)
            try:
                helper = tree_of(value)
            except RuntimeError:
                continue
            helper.name = name
            _strip_annotations(helper)
            lines += surroundings(helper, value, done, depth + 1)
            lines.append("\n" + ast.unparse(helper) + "\n")
        elif module and real and "." not in real and "<" not in real and module not in ("__main__", "builtins"):
            done.add(name)
            lines.append(f"from {module} import {real}" + ("" if real == name else f" as {name}"))
        elif _is_tensor(value):
            done.add(name)
            if "torch" not in done:
                done.add("torch")
                lines.append("import torch")
            lines.append(f"{name} = {tensor_literal(value)}")
    return lines


def _is_tensor(value: Any) -> bool:
    import sys

    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def tensor_literal(tensor: Any) -> str:
    """Return an expression that makes an equal torch tensor."""
    values = tensor.detach().cpu()
    if str(values.dtype) in ("torch.bfloat16", "torch.float16") or "float8" in str(values.dtype):
        data = repr(values.float().tolist())
    else:
        data = repr(values.tolist())
    for word in ("nan", "inf"):
        if word in data:
            data = data.replace(word, f"float('{word}')")
    return (
        f"torch.tensor({data}, dtype=torch.float32).to({values.dtype}).reshape({tuple(values.shape)})"
        if "float" in str(values.dtype) and str(values.dtype) != "torch.float64"
        else f"torch.tensor({data}, dtype={values.dtype}).reshape({tuple(values.shape)})"
    )


def self_contained(function: Any, name: str) -> str:
    """Return a module's text that defines `name` as `function` is defined."""
    tree = tree_of(function)
    tree = drop_self(tree, getattr(function, "__self__", None))
    tree.name = name
    _strip_annotations(tree)
    lines = surroundings(tree, function, {name, *(a.arg for a in tree.args.args)})
    before = "\n".join(lines)
    return (before + "\n\n\n" if before else "") + ast.unparse(tree) + "\n"
