# SPDX-License-Identifier: Apache-2.0
"""Reference interpreter: walks the Python syntax tree of a program with NumPy and shares nothing with the compiler.

It follows chapters 01 and 02 of the language directly: kinds of values, alias classes (01 L-87, L-185), valid extents, carried values,
scalars and their dtypes. Programs that the rules make an error raise :class:`values.Illegal`.
"""

from __future__ import annotations

import ast
import operator
from typing import Any

import numpy as np
from calls import Calls
from operations import Number, cast_scalar
from scalars import apply, truth
from values import NUMPY, Cells, Illegal, Scalar, Unspecified, View, is_float, wrap


class Return(Exception):
    def __init__(self, value: Any) -> None:
        self.value = value


class Break(Exception):
    pass


class Continue(Exception):
    pass


class Dotted(str):
    """A name below `pl`: `pl.tile.slice` is `tile.slice`."""


class Interpreter:
    """Runs one program text."""

    def __init__(self, source: str, platform: str = "a2a3sim") -> None:
        self.tree = ast.parse(source)
        self.platform = platform
        self.functions: dict[str, ast.FunctionDef] = {}
        self.inline: set[str] = set()
        self.globals: dict[str, Any] = {}
        self.calls = Calls(self)
        self.forms: dict[str, int] = {}
        self.in_kernel = 0
        self.steps = 0
        self.block = (0, 1)
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef):
                self.functions[node.name] = node
                text = "".join(ast.unparse(d) for d in node.decorator_list)
                if "inline" in text or "Inline" in text:
                    self.inline.add(node.name)
        for node in self.tree.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                if isinstance(node.value, ast.Call):  # pl.dynamic("M"): a dimension, bound at each call
                    continue
                self.globals[node.targets[0].id] = self.eval(node.value, {})

    def form(self, name: str) -> None:
        self.forms[name] = self.forms.get(name, 0) + 1

    # ------------------------------------------------------------------------------------------------- functions

    def run(self, entry: str, arrays: list[Any], *, baked: bool) -> list[View | None]:
        """Call the entry with host arrays and numbers; gives the storages of the array arguments afterwards."""
        node = self.functions[entry]
        params = [a for a in node.args.args if a.arg != "self"]
        args: list[Any] = []
        for p, value in zip(params, arrays, strict=True):
            if isinstance(value, np.ndarray):
                dt = next(n for n, t in NUMPY.items() if np.dtype(t) == value.dtype and n != "INDEX")
                view = View.of("tensor", Cells.exact(value.copy()), dt, where="G")
                args.append(view)
            else:
                dt = ast.unparse(p.annotation).split("pl.")[-1].rstrip("]")
                args.append(value if baked else Scalar(value, dt))
        self.invoke(node, args, {})
        return [a if isinstance(a, View) else None for a in args]

    def invoke(self, node: ast.FunctionDef, args: list[Any], keywords: dict[str, Any]) -> Any:
        params = [a for a in node.args.args if a.arg != "self"]
        env: dict[str, Any] = {}
        for p, value in zip(params, args, strict=False):
            env[p.arg] = self.passed(p, value, node.name in self.inline, env)
        for name, value in keywords.items():
            env[name] = value
        kernel = node.name not in self.inline and self.is_kernel(node)
        self.in_kernel += kernel
        try:
            self.body(node.body, env)
        except Return as r:
            return r.value
        finally:
            self.in_kernel -= kernel
        return None

    @staticmethod
    def is_kernel(node: ast.FunctionDef) -> bool:
        text = "".join(ast.unparse(d) for d in node.decorator_list)
        return "InCore" in text or "incore" in text

    def passed(self, p: ast.arg, value: Any, inline: bool, env: dict[str, Any]) -> Any:
        """One argument: scalars take the dtype of the parameter (L-47); symbols of the annotation are bound (L-30)."""
        note = ast.unparse(p.annotation) if p.annotation else ""
        if isinstance(value, View) and not inline and value.kind == "tensor":
            value = View("tensor", value.storage, value.idx, value.dt, value.valid, where="G")
        if isinstance(value, View) and "Tensor[[" in note:
            shape = next(n for n in ast.walk(p.annotation) if isinstance(n, ast.List))
            for dim, extent in zip(shape.elts, value.shape, strict=True):
                if isinstance(dim, ast.Name) and dim.id not in self.globals:
                    env[dim.id] = Scalar(extent, "INDEX")
        if "Scalar[" in note and not inline:
            dt = note.split("pl.")[-1].rstrip("]")
            if isinstance(value, Scalar):
                return cast_scalar(value, dt)
        return value

    # ------------------------------------------------------------------------------------------------ statements

    def body(self, statements: list[ast.stmt], env: dict[str, Any]) -> None:
        for statement in statements:
            self.steps += 1
            if self.steps > 60000:
                raise Illegal("too long for a random program")
            getattr(self, "do_" + type(statement).__name__)(statement, env)

    def do_Pass(self, s, env):
        pass

    def do_Expr(self, s, env):
        if isinstance(s.value, ast.Constant):
            return
        self.eval(s.value, env)

    def do_Return(self, s, env):
        self.form("return")
        raise Return(None if s.value is None else self.eval(s.value, env))

    def do_Break(self, s, env):
        self.form("break")
        raise Break

    def do_Continue(self, s, env):
        self.form("continue")
        raise Continue

    def do_Assign(self, s, env):
        self.assign(s.targets[0], s.value, env)

    def do_AnnAssign(self, s, env):
        value = self.eval(s.value, env)
        note = ast.unparse(s.annotation)
        if "Scalar[" in note:
            dt = note.split("pl.")[-1].rstrip("]")
            value = cast_scalar(value, dt) if isinstance(value, (*Number, Scalar)) else value
        env[s.target.id] = self.named(value)

    def do_AugAssign(self, s, env):
        self.form("augmented assignment")
        op = ast.BinOp(ast.Name(s.target.id, ast.Load()), s.op, s.value)
        env[s.target.id] = self.named(self.eval(op, env))

    def named(self, value):
        """A literal that becomes a variable has dtype INDEX or FP32 (L-12)."""
        if isinstance(value, bool):
            return Scalar(value, "BOOL")
        if isinstance(value, int):
            return Scalar(value, "INDEX")
        if isinstance(value, float):
            return Scalar(float(np.float32(value)), "FP32")
        return value

    def assign(self, target: ast.expr, node: ast.expr, env: dict[str, Any]) -> None:
        value = self.eval(node, env)
        if isinstance(target, ast.Name):
            if isinstance(node, ast.Name):  # `b = a` copies tiles and arrays, tensors are references (L-83)
                self.form("alias of a " + (value.kind if isinstance(value, View) else type(value).__name__))
                if isinstance(value, View) and value.kind == "tile":
                    value = View.of("tile", value.value().map(np.copy), value.dt, value.valid)
                elif isinstance(value, list):
                    value = list(value)
            env[target.id] = self.named(value)
        elif isinstance(target, ast.Tuple):
            for t, v in zip(target.elts, value, strict=True):
                env[t.id] = self.named(v)
        elif isinstance(target, ast.Subscript):
            self.write_subscript(target, value, env)
        else:
            raise AssertionError(ast.dump(target))

    def write_subscript(self, target: ast.Subscript, value: Any, env: dict[str, Any]) -> None:
        base = env[target.value.id]
        entries = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        if isinstance(base, list):
            self.form("array element write")
            i = self.index(entries[0], env)
            if not 0 <= i < len(base):
                raise Illegal("array index")
            base[i] = cast_scalar(value, base[0].dt)
            return
        offsets, shape, drop = self.window(base, entries, env)
        self.form(f"slice assignment to a {base.kind}")
        if drop:
            self.form("slice assignment with an integer axis")
        env[target.value.id] = self.calls.assemble_at(base, value, offsets)

    # --------------------------------------------------------------------------------------- branches and loops

    def do_If(self, s, env):
        self.form("if")
        self.body(s.body if truth(self.eval(s.test, env)) else s.orelse, env)

    def do_While(self, s, env):
        self.form("while")
        while truth(self.eval(s.test, env)):
            try:
                self.body(s.body, env)
            except Break:
                break
            except Continue:
                continue

    def do_With(self, s, env):
        call = s.items[0].context_expr
        name = ast.unparse(call.func)
        self.form("with " + name)
        if name == "pl.at":
            self.in_kernel += 1
            try:
                self.body(s.body, env)
            finally:
                self.in_kernel -= 1
        else:
            self.body(s.body, env)

    def do_For(self, s, env):
        call = s.iter
        kind = ast.unparse(call.func)
        keywords = {k.arg: k.value for k in call.keywords}
        if kind == "pl.while_":
            return self.explicit_while(s, keywords, env)
        bounds = [self.integer(self.eval(a, env)) for a in call.args]
        if kind == "pl.spmd":
            self.form("spmd")
            self.in_kernel += 1
            try:
                for i in range(bounds[0]):
                    self.block = (i, bounds[0])
                    env[s.target.id] = Scalar(i, "INDEX")
                    self.body(s.body, env)
            finally:
                self.in_kernel -= 1
                self.block = (0, 1)
            del env[s.target.id]
            return None
        start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        if step == 0:
            raise Illegal("step 0")
        trips = range(start, stop, step)
        self.form(f"{kind} {'zero trips' if not trips else 'negative step' if step < 0 else 'loop'}")
        if isinstance(s.target, ast.Tuple):
            return self.carried(s, keywords, trips, env)
        before = env.get(s.target.id)
        for i in trips:
            env[s.target.id] = i if kind == "pl.unroll" else Scalar(i, "INDEX")
            try:
                self.body(s.body, env)
            except Break:
                break
            except Continue:
                continue
        env.pop(s.target.id, None)
        if before is not None:
            env[s.target.id] = before
        return None

    def carried(self, s, keywords, trips, env):
        """`for i, (a, b) in pl.range(n, init_values=(...))` (L-97)."""
        names = [t.id for t in s.target.elts[1].elts]
        values = [self.named(v) for v in self.eval(keywords["init_values"], env)]
        ends = self.yield_names(s.body)
        self.form("explicit carry with yield" if ends else "explicit carry rebound")
        for i in trips:
            env[s.target.elts[0].id] = Scalar(i, "INDEX")
            env.update(zip(names, values, strict=True))
            try:
                self.body(s.body, env)
            except Break:
                values = [env[n] for n in names]
                break
            except Continue:
                values = [env[n] for n in names]
                continue
            values = [env[n] for n in (ends or names)]
        env.update(zip(names, values, strict=True))
        if ends:
            env.update(zip(ends, values, strict=True))
        env.pop(s.target.elts[0].id, None)

    def explicit_while(self, s, keywords, env):
        self.form("while with carried values")
        names = [t.id for t in s.target.elts]
        values = [self.named(v) for v in self.eval(keywords["init_values"], env)]
        ends = self.yield_names(s.body)
        while True:
            env.update(zip(names, values, strict=True))
            if not truth(self.eval(s.body[0].value.args[0], env)):
                break
            self.body(s.body[1:], env)
            values = [env[n] for n in ends]
        env.update(zip(ends, values, strict=True))

    @staticmethod
    def yield_names(body):
        last = body[-1]
        if (
            isinstance(last, ast.Assign)
            and isinstance(last.value, ast.Call)
            and ast.unparse(last.value.func) == "pl.yield_"
        ):
            t = last.targets[0]
            return [e.id for e in t.elts] if isinstance(t, ast.Tuple) else [t.id]
        return []

    # ----------------------------------------------------------------------------------------------- expressions

    def eval(self, node: ast.expr, env: dict[str, Any]) -> Any:
        return getattr(self, "ev_" + type(node).__name__)(node, env)

    def ev_Constant(self, node, env):
        return node.value

    def ev_Name(self, node, env):
        if node.id in env:
            return env[node.id]
        if node.id in self.globals:
            return self.globals[node.id]
        raise AssertionError(f"interpreter: name {node.id}")

    def ev_Tuple(self, node, env):
        return tuple(self.eval(e, env) for e in node.elts)

    def ev_List(self, node, env):
        return [self.eval(e, env) for e in node.elts]

    def ev_Attribute(self, node, env):
        text = ast.unparse(node)
        if text.startswith("pl."):
            return Dotted(text[3:].rsplit(".", 1)[-1])
        value = self.eval(node.value, env)
        if node.attr == "shape":
            return tuple(Scalar(n, "INDEX") for n in value.shape)
        raise AssertionError(text)

    def ev_BinOp(self, node, env):
        a, b = self.eval(node.left, env), self.eval(node.right, env)
        name = type(node.op).__name__
        if isinstance(a, View) or isinstance(b, View):
            return self.calls.operator(name, a, b)
        return apply(name, a, b)

    def ev_UnaryOp(self, node, env):
        v = self.eval(node.operand, env)
        if isinstance(node.op, ast.Not):
            return Scalar(not truth(v), "BOOL") if isinstance(v, Scalar) else not v
        if isinstance(v, Scalar):
            if isinstance(node.op, ast.USub):
                return Scalar(-v.value if is_float(v.dt) else wrap(-v.value, v.dt), v.dt, v.known, v.err)
            return Scalar(wrap(~v.value, v.dt), v.dt, v.known)
        return -v if isinstance(node.op, ast.USub) else ~v

    def ev_Compare(self, node, env):
        a, b = self.eval(node.left, env), self.eval(node.comparators[0], env)
        name = type(node.ops[0]).__name__
        if isinstance(a, View) or isinstance(b, View):
            return self.calls.comparison(name, a, b)
        return apply(name, a, b)

    def ev_BoolOp(self, node, env):
        values = [truth(self.eval(v, env)) for v in node.values]
        return Scalar(all(values) if isinstance(node.op, ast.And) else any(values), "BOOL")

    def ev_Subscript(self, node, env):
        base = self.eval(node.value, env)
        entries = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if isinstance(base, tuple | list):
            i = self.index(entries[0], env)
            if not -len(base) * isinstance(base, tuple) <= i < len(base):
                raise Illegal("array index")
            return base[i]
        if not any(isinstance(e, ast.Slice) for e in entries) and len(entries) == len(base.shape):
            self.form(f"element of a {base.kind}")
            return self.calls.read(base, [self.index(e, env) for e in entries])
        offsets, shape, drop = self.window(base, entries, env)
        self.form(f"subscript of a {base.kind}")
        return self.calls.cut_window(base, offsets, shape, drop)

    def window(self, base: View, entries, env):
        offsets, shape, drop = [], [], []
        for axis, n in enumerate(base.shape):
            e = entries[axis] if axis < len(entries) else ast.Slice()
            if isinstance(e, ast.Slice):
                low = 0 if e.lower is None else self.index(e.lower, env)
                high = n if e.upper is None else self.index(e.upper, env)
                if not 0 <= low < high <= n:
                    raise Illegal("window outside the value")
                offsets.append(low)
                shape.append(high - low)
            else:
                i = self.index(e, env)
                if not 0 <= i < n:
                    raise Illegal("index outside the value")
                offsets.append(i)
                shape.append(1)
                drop.append(axis)
        return offsets, shape, drop

    @staticmethod
    def integer(v: Any) -> int:
        if isinstance(v, Scalar):
            if not v.known or v.err:
                raise Unspecified("an unspecified value decides an index")
            return int(v.value)
        return int(v)

    def index(self, node: ast.expr, env) -> int:
        return self.integer(self.eval(node, env))

    def ev_Call(self, node, env):
        name = ast.unparse(node.func)
        if name.startswith("self."):
            name = name[5:]
        if name in self.functions:
            self.form("inline call" if name in self.inline else "kernel call")
            args = [self.eval(a, env) for a in node.args]
            return self.invoke(self.functions[name], args, {k.arg: self.eval(k.value, env) for k in node.keywords})
        if name == "pl.yield_":
            values = tuple(self.eval(a, env) for a in node.args)
            return values if len(values) > 1 else values[0]
        if name == "len":
            return len(self.eval(node.args[0], env))
        args = [self.eval(a, env) for a in node.args]
        keywords = {k.arg: self.eval(k.value, env) for k in node.keywords}
        return self.calls.call(name[3:], args, keywords)


__all__ = ["Illegal", "Interpreter", "operator"]
