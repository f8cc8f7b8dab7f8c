# SPDX-License-Identifier: Apache-2.0
"""`torch_codegen`: a program as a Python module that computes it with torch alone."""

from __future__ import annotations

import ast
from importlib import resources
from typing import Any

_PARTS = ("_torch_values.py", "_torch_ops.py", "_torch_ops_data.py")
_PUSH = ("tpush_to_aiv", "tpush_to_aic")
_POP = ("tpop_from_aic", "tpop_from_aiv")


def _prelude() -> str:
    """Return the support code of emitted modules: the files beside this one without their imports of each other."""
    chunks = []
    for name in _PARTS:
        text = (resources.files("pypto.debug") / name).read_text(encoding="utf-8")
        tree = ast.parse(text)
        body = []
        for node in tree.body:
            inner = isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pypto.")
            doc = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not inner and not doc:
                body.append(node)
        chunks.append(ast.unparse(ast.Module(body=body, type_ignores=[])))
    return "\n\n".join(chunks)


def _dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = _dotted(node.value)
        return f"{base}.{node.attr}" if base else ""
    return ""


class _Body(ast.NodeTransformer):
    """Rewrites one function: plain calls, plain variables for carries, checks if asked for."""

    def __init__(self, functions: set[str], check_shapes: bool) -> None:
        self._functions = functions
        self._check = check_shapes

    # ------------------------------------------------------------------------------------------------ calls

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        name = _dotted(node.func)
        last = name.rpartition(".")[2]
        if name.startswith(("self.",)):
            node.func = ast.Name(id=last, ctx=ast.Load())
            node.keywords = []
        elif last in ("submit", "spmd_submit") and name.startswith("pl.") and node.args:
            return self._submit(node)
        elif last in _PUSH or last in _POP:
            word = last.replace("tpush_to_", "push_to_").replace("tpop_from_", "pop_from_")
            node.func = ast.parse(f"_cross_core_rt.{word}", mode="eval").body
            node.keywords = [k for k in node.keywords if k.arg in ("split",)]
        return node

    def _submit(self, node: ast.Call) -> ast.expr:
        """A submit is a call that also yields a handle."""
        callee = node.args[0]
        callee = ast.Name(id=_dotted(callee).rpartition(".")[2], ctx=ast.Load())
        call = ast.Call(func=callee, args=node.args[1:], keywords=[])
        return ast.copy_location(
            ast.Call(func=ast.Name(id="_submitted", ctx=ast.Load()), args=[call], keywords=[]), node
        )

    # ------------------------------------------------------------------------------------------ assignments

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        self.generic_visit(node)
        if node.value is None:
            return None
        plain = ast.copy_location(ast.Assign(targets=[node.target], value=node.value), node)
        check = self._assertion(node.target, node.annotation)
        return [plain, check] if check is not None else plain

    def _assertion(self, target: ast.expr, annotation: ast.expr) -> ast.stmt | None:
        """Return an assertion on the shape and type of a variable, if its annotation gives them."""
        if not self._check or not isinstance(target, ast.Name) or not isinstance(annotation, ast.Subscript):
            return None
        inner = annotation.slice
        if _dotted(annotation.value).rpartition(".")[2] in ("Out", "InOut"):
            return self._assertion(target, inner)
        if _dotted(annotation.value) not in ("pl.Tensor", "pl.Tile") or not isinstance(inner, ast.Tuple):
            return None
        shape, dtype = inner.elts[0], inner.elts[1]
        if not isinstance(shape, ast.List):
            return None
        dims = [d.value if isinstance(d, ast.Constant) and isinstance(d.value, int) else None for d in shape.elts]
        text = f"_check({target.id}, {dims}, {ast.unparse(dtype)}, {target.id!r})"
        return ast.parse(text).body[0]

    # ------------------------------------------------------------------------------------------------ loops

    def visit_For(self, node: ast.For) -> Any:
        call = node.iter
        carries: list[str] = []
        inits: list[ast.expr] = []
        if isinstance(call, ast.Call):
            for keyword in call.keywords:
                if keyword.arg == "init_values" and isinstance(keyword.value, (ast.Tuple, ast.List)):
                    inits = list(keyword.value.elts)
            call.keywords = [k for k in call.keywords if k.arg != "init_values"]
        is_while = isinstance(call, ast.Call) and _dotted(call.func) == "pl.while_"
        if is_while:
            carries = [_dotted(n) for n in (node.target.elts if isinstance(node.target, ast.Tuple) else [node.target])]
        elif isinstance(node.target, ast.Tuple) and len(node.target.elts) == 2:
            second = node.target.elts[1]
            carries = [_dotted(n) for n in (second.elts if isinstance(second, ast.Tuple) else [second])]
            node.target = node.target.elts[0]
        before: list[ast.stmt] = []
        for name, value in zip(carries, inits, strict=False):
            before.append(ast.parse(f"{name} = {ast.unparse(value)}").body[0])
        before += self._results_before(node.body, carries)
        node.body = self._hand_over(node.body, carries)
        condition = self._condition(node) if is_while else None
        self.generic_visit(node)
        if condition is not None:
            loop: ast.stmt = ast.While(test=condition, body=node.body or [ast.Pass()], orelse=[])
            return [*before, ast.copy_location(loop, node)]
        return [*before, node] if before else node

    def _condition(self, node: ast.For) -> ast.expr:
        """Take `pl.cond(...)` out of the body of a while loop with carried values."""
        for statement in node.body:
            if (
                isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Call)
                and _dotted(statement.value.func) == "pl.cond"
            ):
                node.body.remove(statement)
                return self.visit(statement.value.args[0])
        return ast.Constant(value=True)

    @staticmethod
    def _yield_of(body: list[ast.stmt]) -> ast.Assign | None:
        last = body[-1] if body else None
        if (
            isinstance(last, ast.Assign)
            and isinstance(last.value, ast.Call)
            and _dotted(last.value.func) == "pl.yield_"
        ):
            return last
        return None

    def _results_before(self, body: list[ast.stmt], carries: list[str]) -> list[ast.stmt]:
        """A loop without a trip leaves its results as the initial values."""
        last = self._yield_of(body)
        if last is None:
            return []
        names = self._names(last.targets[0])
        return [ast.parse(f"{n} = {c}").body[0] for n, c in zip(names, carries, strict=False) if n != c]

    @staticmethod
    def _names(target: ast.expr) -> list[str]:
        return [_dotted(t) for t in (target.elts if isinstance(target, ast.Tuple) else [target])]

    def _hand_over(self, body: list[ast.stmt], carries: list[str]) -> list[ast.stmt]:
        """After the yield, the carried names hold the yielded values."""
        last = self._yield_of(body)
        if last is None or not carries:
            return body
        names = self._names(last.targets[0])
        pairs = [(c, n) for c, n in zip(carries, names, strict=False) if c != n]
        if not pairs:
            return body
        text = f"{', '.join(c for c, _ in pairs)} = {', '.join(n for _, n in pairs)}"
        return [*body, ast.parse(text).body[0]]


def _is_vector(function: Any) -> bool:
    return function.func_type.name == "AIV"


def _group_members(function: Any, kinds: dict[str, str], tree: ast.FunctionDef) -> list[ast.Call]:
    """Return the calls of a group's members."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = _dotted(node.func).rpartition(".")[2]
            if kinds.get(name) in ("AIC", "AIV", "InCore") and _dotted(node.func).startswith("self."):
                found.append(node)
    return found


def _emit_group(tree: ast.FunctionDef, members: list[ast.Call], kinds: dict[str, str], lanes: int) -> str:
    """Return a group as a function that runs its members side by side."""
    args = ", ".join(a.arg for a in tree.args.args if a.arg != "self")
    rows = []
    for call in members:
        name = _dotted(call.func).rpartition(".")[2]
        words = ", ".join(ast.unparse(a) for a in call.args)
        rows.append(f"({name!r}, lambda: {name}({words}), {kinds[name] == 'AIV'})")
    returned = [n for n in ast.walk(tree) if isinstance(n, ast.Return) and n.value is not None]
    tail = "results[-1]"
    if returned and isinstance(returned[-1].value, ast.Name):
        tail = f"_group_result(results, {args.split(', ')!r}, [{args}])"
    return (
        f"@_function\ndef {tree.name}({args}):\n"
        f"    results = _cross_core_rt.run([{', '.join(rows)}], {lanes})\n    return {tail}\n"
    )


_GLUE = """
def _submitted(result):
    return (*result, 0) if isinstance(result, tuple) else (result, 0)


def _group_result(results, names, values):
    made = [r for r in results if r is not None]
    return made[-1] if made else None
"""


def torch_codegen(node: Any, *, check_shapes: bool = False) -> str:
    """Return a Python module that computes a program with torch.

    Every function is defined by its name; calling the entry with torch tensors writes `Out` arguments in place and
    returns what the program returns. Works for programs as written and after any stage.

    Parameters
    ----------
    node
        An `ir.Program` or `ir.Function`.
    check_shapes
        Add assertions on shapes and element types.
    """
    from pypto import ir
    from pypto.ir.printer import python_print

    if not isinstance(node, (ir.Program, ir.Function)):
        raise TypeError(f"torch_codegen takes an ir.Program or ir.Function, got {type(node).__name__}")
    functions = list(node.functions.values()) if isinstance(node, ir.Program) else [node]
    kinds = {f.name: f.func_type.name for f in functions}
    tree = ast.parse(python_print(node))
    defs = {n.name: n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    parts = ['"""Emitted by pypto.debug.torch_codegen."""', _prelude(), _GLUE]
    for statement in tree.body:  # dynamic dimensions
        if isinstance(statement, ast.Assign):
            parts.append(f"{ast.unparse(statement.targets[0])} = None")
    transform = _Body(set(kinds), check_shapes)
    # Before any body is rewritten.
    exchanging = {
        name
        for name, definition in defs.items()
        for n in ast.walk(definition)
        if isinstance(n, ast.Call) and _dotted(n.func).rpartition(".")[2] in (*_PUSH, *_POP)
    }
    for f in functions:
        definition = defs[f.name]
        members = _group_members(f, kinds, definition) if kinds[f.name] == "Group" else []
        channels = any(_dotted(m.func).rpartition(".")[2] in exchanging for m in members)
        if members and channels:
            vector = [
                defs[_dotted(m.func).rpartition(".")[2]]
                for m in members
                if kinds[_dotted(m.func).rpartition(".")[2]] == "AIV"
            ]
            parts.append(_emit_group(definition, members, kinds, _lanes(vector)))
            continue
        parts.append(_emit_function(definition, transform, f, check_shapes))
    return "\n\n".join(parts) + "\n"


def _lanes(vector: list[ast.FunctionDef]) -> int:
    """Return on how many vector lanes a group's vector part runs."""
    for definition in vector:
        text = ast.unparse(definition)
        if "get_subblock_idx" in text or '"split"' in text or "'split'" in text or "dual_aiv_dispatch" in text:
            return 2
        for node in ast.walk(definition):
            if (
                isinstance(node, ast.keyword)
                and node.arg == "split"
                and isinstance(node.value, ast.Constant)
                and node.value.value
            ):
                return 2
    return 1


def _emit_function(definition: ast.FunctionDef, transform: _Body, function: Any, check_shapes: bool) -> str:
    args = [a for a in definition.args.args if a.arg != "self"]
    checks: list[ast.stmt] = []
    symbols: list[str] = []
    for a in args:
        if a.annotation is None:
            continue
        if check_shapes:
            made = transform._assertion(ast.Name(id=a.arg, ctx=ast.Load()), a.annotation)
            if made is not None:
                checks.append(made)
        symbols += _bind_symbols(a)
        a.annotation = None
    definition.args.args = args
    definition.returns = None
    definition.decorator_list = [ast.Name(id="_function", ctx=ast.Load())]
    bound = [ast.parse(text).body[0] for text in symbols]
    if function.is_sub_worker:
        definition.body = [ast.parse("raise NotImplementedError('a host sub-worker has no torch form')").body[0]]
    body: list[ast.stmt] = []
    for statement in definition.body:
        made = transform.visit(statement)
        body += made if isinstance(made, list) else [made] if made is not None else []
    definition.body = [*bound, *checks, *body] or [ast.Pass()]
    ast.fix_missing_locations(definition)
    return ast.unparse(definition)


def _bind_symbols(argument: ast.arg) -> list[str]:
    """Return assignments that bind the dynamic dimensions of a parameter to its extents."""
    annotation = argument.annotation
    while isinstance(annotation, ast.Subscript) and _dotted(annotation.value).rpartition(".")[2] in ("Out", "InOut"):
        annotation = annotation.slice
    if not isinstance(annotation, ast.Subscript) or not isinstance(annotation.slice, ast.Tuple):
        return []
    shape = annotation.slice.elts[0]
    if not isinstance(shape, ast.List):
        return []
    return [f"{d.id} = {argument.arg}.shape[{axis}]" for axis, d in enumerate(shape.elts) if isinstance(d, ast.Name)]
