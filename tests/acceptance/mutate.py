# SPDX-License-Identifier: Apache-2.0
"""Damages the source of a program the way people do: one small change, chosen by a seed.

Only decorated functions and classes of the language are changed, so what comes out is still a Python file that drives a
program; whether that program is still one of the language is for the front end to say.
"""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Callable
from dataclasses import dataclass

DTYPES = ["FP32", "FP16", "BF16", "INT8", "INT16", "INT32", "INT64", "INDEX", "UINT8", "UINT32", "BOOL", "TASK_ID"]
SPACES = ["Vec", "Mat", "Left", "Right", "Acc", "DDR", "Bias"]
ENUMS = {
    "FunctionType": ["InCore", "Orchestration", "AIC", "AIV", "Opaque", "Group", "Inline", "Spmd"],
    "Level": ["CORE_GROUP", "HOST", "CHIP", "AIC", "AIV"],
    "PadValue": ["null", "zero", "min", "max"],
    "MemorySpace": SPACES,
    "Mem": SPACES,
}
STRAY = [
    "zz = lambda v: v",
    "try:\n    pass\nexcept ValueError:\n    pass",
    "zz = [v for v in range(4)]",
    "zz = {'a': 1}",
    "zz = {1, 2}",
    "print('here')",
    "assert 1 < 2",
    "global zz",
    "import os",
    "from os import path",
    "raise ValueError('no')",
    "del zz",
    "zz = f'{1}'",
    "zz = 1 if 2 > 1 else 3",
    "while True:\n    pass",
    "while 1 > 0:\n    zz = 1",
    "for zz in range(4):\n    pass",
    "for zz in pl.range(4):\n    pass\nelse:\n    pass",
    "for zz in [1, 2, 3]:\n    pass",
    "with open('x') as zz:\n    pass",
    "def zz(v):\n    return v",
    "class zz:\n    pass",
    "zz = yield",
    "yield 3",
    "return",
    "return 3",
    "break",
    "continue",
    "zz: int = 4",
    "zz += 1",
    "zz = (yy := 3)",
    "zz, *yy = 1, 2, 3",
    "zz.attribute = 1",
    "zz[0] = 1",
    "zz = 1 < 2 < 3",
    "zz = 3 @ 4",
    "zz = not 3",
    "zz = None",
    "zz = ...",
    "zz = b'bytes'",
    "zz = 1j",
    "zz = 10 ** 100",
    "zz = 1 // 0",
    "zz = 'text'",
    "pass",
    "async def zz():\n    pass",
    "nonlocal zz",
    "match 3:\n    case 3:\n        pass",
    "pl.yield_(1)",
    "zz = pl.yield_(1)",
    "pl.static_assert(1 > 2)",
    "zz = pl.const(1)",
    "with pl.at(level=pl.Level.CORE_GROUP):\n    pass",
    "with pl.manual_scope():\n    pass",
    "with pl.spmd(4):\n    pass",
    "for zz in pl.spmd(0):\n    pass",
    "for zz in pl.split_aiv(2):\n    pass",
    "for zz in pl.range(0, 10, 0):\n    pass",
    "for zz in pl.unroll(3):\n    yy = zz",
    "zz = pl.array.create(0, pl.INT32)",
    "zz = pl.create_tensor([0, 4], dtype=pl.FP32)",
    "zz = pl.create_tensor([4, -4], dtype=pl.FP32)",
    "zz = pl.full([4, 4], dtype=pl.FP32, value=1)",
    "zz = pl.tile.full([4, 4], dtype=pl.FP32, value=1e400)",
    "zz = pld.system.world_size()",
    "zz = pl.get_block_idx()",
    "pl.func_attr(3)",
    "pl.system.sync_all()",
]
CONSTANTS = [-1, 0, 1, 2, 3, 7, 1000, 2**31, 2**63, 2**70, 1.5, -0.5, "text", True, None, 1e39, float("inf")]


@dataclass
class Mutant:
    """A damaged source and what was done to it."""

    source: str
    what: str


def _is_language(node: ast.AST) -> bool:
    if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return False
    return any("pl." in ast.unparse(d) for d in node.decorator_list)


def regions(tree: ast.Module) -> list[ast.AST]:
    """Return the outermost decorated functions and classes, also those that factories make."""
    found: list[ast.AST] = []
    todo: list[ast.AST] = [tree]
    while todo:
        for n in ast.iter_child_nodes(todo.pop(0)):
            (found if _is_language(n) else todo).append(n)
    return found


def _inside(roots: list[ast.AST], kind: type | tuple[type, ...]) -> list[ast.AST]:
    return [n for root in roots for n in ast.walk(root) if isinstance(n, kind)]


def _blocks(roots: list[ast.AST]) -> list[list[ast.stmt]]:
    """Statement lists in functions."""
    found = []
    for f in _inside(roots, ast.FunctionDef):
        for n in ast.walk(f):
            for name in ("body", "orelse"):
                block = getattr(n, name, None)
                if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                    found.append(block)
    return found


def _op_calls(roots: list[ast.AST]) -> list[ast.Call]:
    return [c for c in _inside(roots, ast.Call) if isinstance(c.func, ast.Attribute)]


def _misspelt(name: str, rng: random.Random) -> str:
    at = rng.randrange(len(name))
    return rng.choice(
        [name[:at] + name[at + 1 :] or name + "x", name + rng.choice("sx_1"), name[:at] + "z" + name[at:]]
    )


# Each returns a description, or None when there is nothing of its kind to change.


def misspell_name(roots, rng):
    names = [n for n in _inside(roots, ast.Name) if n.id not in ("pl", "pld")]
    if not names:
        return None
    n = rng.choice(names)
    old, n.id = n.id, _misspelt(n.id, rng)
    return f"name {old} -> {n.id}"


def misspell_attribute(roots, rng):
    names = _inside(roots, ast.Attribute)
    if not names:
        return None
    n = rng.choice(names)
    old, n.attr = n.attr, _misspelt(n.attr, rng)
    return f"attribute {old} -> {n.attr}"


def other_operation(roots, rng):
    names = [n for n in _inside(roots, ast.Call) if isinstance(n.func, ast.Attribute)]
    if len(names) < 2:
        return None
    a, b = rng.sample(names, 2)
    old, a.func = ast.unparse(a.func), copy.deepcopy(b.func)
    return f"{old} -> {ast.unparse(a.func)}"


def other_dtype(roots, rng):
    names = [n for n in _inside(roots, ast.Attribute) if n.attr in DTYPES]
    if not names:
        return None
    n = rng.choice(names)
    old, n.attr = n.attr, rng.choice(DTYPES)
    return f"dtype {old} -> {n.attr}"


def other_member(roots, rng):
    names = [n for n in _inside(roots, ast.Attribute) if isinstance(n.value, ast.Attribute) and n.value.attr in ENUMS]
    if not names:
        return None
    n = rng.choice(names)
    old, n.attr = n.attr, rng.choice(ENUMS[n.value.attr])
    return f"member {old} -> {n.attr}"


def other_rank(roots, rng):
    lists = [n for n in _inside(roots, (ast.List, ast.Tuple)) if n.elts]
    if not lists:
        return None
    n = rng.choice(lists)
    if rng.random() < 0.5:
        n.elts.pop(rng.randrange(len(n.elts)))
        return f"list without an entry: {ast.unparse(n)}"
    n.elts.insert(rng.randrange(len(n.elts) + 1), ast.Constant(rng.choice([1, 2, 16])))
    return f"list with one more entry: {ast.unparse(n)}"


def drop_return(roots, rng):
    blocks = [b for b in _blocks(roots) if any(isinstance(s, ast.Return) for s in b)]
    if not blocks:
        return None
    b = rng.choice(blocks)
    b[:] = [s for s in b if not isinstance(s, ast.Return)] or [ast.Pass()]
    return "return dropped"


def stray_statement(roots, rng):
    blocks = _blocks(roots)
    if not blocks:
        return None
    text = rng.choice(STRAY)
    b = rng.choice(blocks)
    b[rng.randrange(len(b) + 1) : 0] = (
        ast.parse(text).body
        if "yield" not in text and "return" not in text
        else ast.parse("def f():\n    " + text.replace("\n", "\n    ")).body[0].body
    )
    return f"stray: {text!r}"


def wrong_keyword(roots, rng):
    calls = _inside(roots, ast.Call)
    if not calls:
        return None
    with_keywords = [c for c in calls if c.keywords]
    if with_keywords and rng.random() < 0.6:
        k = rng.choice(rng.choice(with_keywords).keywords)
        if k.arg:
            old, k.arg = k.arg, _misspelt(k.arg, rng)
            return f"keyword {old} -> {k.arg}"
    c = rng.choice(calls)
    c.keywords.append(
        ast.keyword(
            rng.choice(["axis", "dtype", "mode", "foo", "level", "device"]), ast.Constant(rng.choice([0, "x", None]))
        )
    )
    return f"keyword added: {ast.unparse(c)}"


def swap_arguments(roots, rng):
    calls = [c for c in _inside(roots, ast.Call) if len(c.args) > 1]
    if not calls:
        return None
    c = rng.choice(calls)
    i, j = rng.sample(range(len(c.args)), 2)
    c.args[i], c.args[j] = c.args[j], c.args[i]
    return f"arguments swapped: {ast.unparse(c)}"


def drop_argument(roots, rng):
    calls = [c for c in _inside(roots, ast.Call) if c.args]
    if not calls:
        return None
    c = rng.choice(calls)
    c.args.pop(rng.randrange(len(c.args)))
    return f"argument dropped: {ast.unparse(c)}"


def more_arguments(roots, rng):
    calls = _inside(roots, ast.Call)
    if not calls:
        return None
    c = rng.choice(calls)
    extra = rng.choice(["0", "None", "[0, 0]", "pl.FP32", "*[1, 2]", "pl.Mem.Vec", "'x'", "1.5", "pl"])
    c.args.append(ast.parse(f"f({extra})").body[0].value.args[0])
    return f"argument added: {ast.unparse(c)}"


def drop_annotation(roots, rng):
    args = [a for f in _inside(roots, ast.FunctionDef) for a in f.args.args if a.annotation]
    if not args:
        return None
    a = rng.choice(args)
    a.annotation = None
    return f"annotation of {a.arg} deleted"


def change_annotation(roots, rng):
    args = [a for f in _inside(roots, ast.FunctionDef) for a in f.args.args if a.annotation]
    if not args:
        return None
    a = rng.choice(args)
    text = rng.choice(
        ["int", "pl.Tensor", "pl.Tile[[16, 16], pl.FP32]", "pl.Scalar[pl.INT32]", "'pl.Tensor[[4], pl.FP32]'", "pl.Tensor[[0, 4], pl.FP32]",
         "pl.Tensor[[4, -1], pl.FP32]", "pl.Tensor[4, pl.FP32]", "pl.Out[pl.Scalar[pl.FP32]]", "tuple[pl.Tensor, pl.Tensor]", "None", "3",
         "pl.Array[4, pl.INT32]", "pl.InOut[pl.Tensor[[16, 16], pl.FP32]]", "pld.DistributedTensor[[16, 16], pl.FP32]", "'('", "nowhere"]
    )  # fmt: skip
    a.annotation = ast.parse(text, mode="eval").body
    return f"annotation of {a.arg}: {text}"


def change_direction(roots, rng):
    marks = [
        n
        for n in _inside(roots, ast.Subscript)
        if isinstance(n.value, ast.Attribute) and n.value.attr in ("Out", "InOut")
    ]
    if not marks:
        return None
    n = rng.choice(marks)
    if rng.random() < 0.5:
        n.value.attr = "InOut" if n.value.attr == "Out" else "Out"
        return f"direction -> {n.value.attr}"
    for parent in [a for f in _inside(roots, ast.FunctionDef) for a in f.args.args]:
        if parent.annotation is n:
            parent.annotation = n.slice
            return f"{parent.arg} is an input"
    return None


def rename_parameter(roots, rng):
    args = [a for f in _inside(roots, ast.FunctionDef) for a in f.args.args]
    if not args:
        return None
    a = rng.choice(args)
    old, a.arg = a.arg, a.arg + "_q"
    return f"parameter {old} -> {a.arg}"


def drop_parameter(roots, rng):
    functions = [f for f in _inside(roots, ast.FunctionDef) if f.args.args]
    if not functions:
        return None
    f = rng.choice(functions)
    gone = f.args.args.pop(rng.randrange(len(f.args.args)))
    return f"parameter {gone.arg} of {f.name} dropped"


def odd_signature(roots, rng):
    f = rng.choice(_inside(roots, ast.FunctionDef))
    kind = rng.randrange(4)
    if kind == 0:
        f.args.vararg = ast.arg("rest")
    elif kind == 1:
        f.args.kwarg = ast.arg("rest")
    elif kind == 2:
        f.args.kwonlyargs.append(ast.arg("extra"))
        f.args.kw_defaults.append(None)
    elif f.args.args:
        f.args.defaults = [ast.Constant(3)]
    return f"signature of {f.name}: {ast.unparse(f.args)}"


def drop_statement(roots, rng):
    blocks = _blocks(roots)
    b = rng.choice(blocks)
    gone = b.pop(rng.randrange(len(b)))
    if not b:
        b.append(ast.Pass())
    return f"statement dropped: {ast.unparse(gone)}"


def repeat_statement(roots, rng):
    b = rng.choice(_blocks(roots))
    s = rng.choice(b)
    b.insert(rng.randrange(len(b) + 1), copy.deepcopy(s))
    return f"statement repeated: {ast.unparse(s)}"


def swap_statements(roots, rng):
    blocks = [b for b in _blocks(roots) if len(b) > 1]
    if not blocks:
        return None
    b = rng.choice(blocks)
    i = rng.randrange(len(b) - 1)
    b[i], b[i + 1] = b[i + 1], b[i]
    return "statements swapped"


def unwrap_block(roots, rng):
    found = [
        (b, i) for b in _blocks(roots) for i, s in enumerate(b) if isinstance(s, (ast.With, ast.For, ast.If, ast.While))
    ]
    if not found:
        return None
    b, i = rng.choice(found)
    s = b[i]
    b[i : i + 1] = s.body
    return f"{type(s).__name__} removed around its body"


def wrap_block(roots, rng):
    b = rng.choice(_blocks(roots))
    i = rng.randrange(len(b))
    head = rng.choice(
        ["with pl.at(level=pl.Level.CORE_GROUP):", "for zz in pl.range(3):", "for zz in pl.parallel(2):", "if 1 > 0:", "if zz > 0:",
         "with pl.spmd(2):", "with pl.cluster():", "while zz < 3:", "for zz in pl.unroll(2):", "for zz in pl.pipeline(4, stage=2):",
         "with pl.manual_scope():", "with pl.scope():", "for zz in pl.split_aiv(2):", "for zz in pl.spmd(2):", "if True:"]
    )  # fmt: skip
    outer = ast.parse(head + "\n    pass").body[0]
    outer.body = [b[i]]
    b[i] = outer
    return f"statement under {head!r}"


def change_constant(roots, rng):
    constants = [n for n in _inside(roots, ast.Constant) if not isinstance(n.value, str)]
    if not constants:
        return None
    n = rng.choice(constants)
    old, n.value = n.value, rng.choice(CONSTANTS)
    return f"constant {old!r} -> {n.value!r}"


def other_name(roots, rng):
    names = [n for n in _inside(roots, ast.Name) if n.id != "pl"]
    if len(names) < 2:
        return None
    a, b = rng.sample(names, 2)
    old, a.id = a.id, b.id
    return f"name {old} -> {a.id}"


def expression_for_name(roots, rng):
    holders = [(c, i) for c in _inside(roots, ast.Call) for i, a in enumerate(c.args)]
    if not holders:
        return None
    c, i = rng.choice(holders)
    text = rng.choice(["0", "-1", "1.5", "[0, 0]", "None", "(1, 2)", "[]", "True", "'x'", "pl.FP32", "pl", "c[0]", "{}", "a ** 2", "a & 1",
                       "a < 1", "[a, b]", "x[0]", "x[0:2]", "x[::2, :]", "x[...]", "x.T", "x.shape", "x.shape[9]", "len(x)", "lambda: 0"])  # fmt: skip
    c.args[i] = ast.parse(text, mode="eval").body
    return f"argument -> {text}: {ast.unparse(c)}"


def other_operator(roots, rng):
    found = _inside(roots, ast.BinOp)
    if not found:
        return None
    n = rng.choice(found)
    n.op = rng.choice(
        [
            ast.Add,
            ast.Sub,
            ast.Mult,
            ast.Div,
            ast.FloorDiv,
            ast.Mod,
            ast.Pow,
            ast.BitAnd,
            ast.BitOr,
            ast.MatMult,
            ast.LShift,
        ]
    )()
    return f"operator: {ast.unparse(n)}"


def other_comparison(roots, rng):
    found = _inside(roots, ast.Compare)
    if not found:
        return None
    n = rng.choice(found)
    n.ops[0] = rng.choice([ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Is, ast.In, ast.NotIn])()
    return f"comparison: {ast.unparse(n)}"


def other_loop(roots, rng):
    loops = [
        n for n in _inside(roots, ast.For) if isinstance(n.iter, ast.Call) and isinstance(n.iter.func, ast.Attribute)
    ]
    if not loops:
        return None
    n = rng.choice(loops)
    n.iter.func.attr = rng.choice(["range", "parallel", "unroll", "pipeline", "spmd", "while_", "rang", "split_aiv"])
    return f"loop: {ast.unparse(n.iter)}"


def other_decorator(roots, rng):
    nodes = [n for n in _inside(roots, (ast.FunctionDef, ast.ClassDef)) if n.decorator_list]
    n = rng.choice(nodes)
    if rng.random() < 0.3:
        n.decorator_list = []
        return f"{n.name} is not decorated"
    text = rng.choice(["pl.jit", "pl.jit.incore", "pl.jit.host", "pl.jit.inline", "pl.inline", "pl.function", "pl.program", "pl.jit()",
                       "pl.function(type=pl.FunctionType.InCore)", "pl.function(type=pl.FunctionType.Orchestration)", "pl.function(type=3)",
                       "pl.jit(level=1)", "pl.jit(auto_scope=False)", "pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)"])  # fmt: skip
    n.decorator_list = [ast.parse(text, mode="eval").body]
    return f"{n.name} is decorated with {text}"


def subscript(roots, rng):
    found = [n for n in _inside(roots, ast.Subscript)]  # noqa: C416
    if not found:
        return None
    n = rng.choice(found)
    text = rng.choice(["a[0]", "a[-1]", "a[0, 0]", "a[0, 0, 0]", "a[:]", "a[::-1]", "a['x']", "a[1.5]", "a[None]", "a[0:4]", "a[0:4, 0:4]",
                       "a[4:2, 0:1]", "a[100000:100001, :]", "a[...]", "a[:, :]"])  # fmt: skip
    n.slice = ast.parse(text, mode="eval").body.slice
    return f"subscript: {ast.unparse(n)}"


OPERATORS: list[Callable[[list[ast.AST], random.Random], str | None]] = [
    misspell_name, misspell_attribute, other_operation, other_dtype, other_member, other_rank, drop_return, stray_statement,
    wrong_keyword, swap_arguments, drop_argument, more_arguments, drop_annotation, change_annotation, change_direction,
    rename_parameter, drop_parameter, odd_signature, drop_statement, repeat_statement, swap_statements, unwrap_block, wrap_block,
    change_constant, other_name, expression_for_name, other_operator, other_comparison, other_loop, other_decorator, subscript,
]  # fmt: skip


def mutate(source: str, seed: int) -> Mutant:
    """Return `source` with one change inside its programs."""
    rng = random.Random(seed)
    while True:
        tree = ast.parse(source)
        roots = regions(tree)
        if not roots:
            raise ValueError("the source has no program")
        what = rng.choice(OPERATORS)(roots, rng)
        if what is None:
            continue
        try:
            text = ast.unparse(ast.fix_missing_locations(tree))
        except ValueError:
            continue
        if text != ast.unparse(ast.parse(source)):
            return Mutant(text, what)
