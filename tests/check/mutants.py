# SPDX-License-Identifier: Apache-2.0
"""Breaks one synchronising statement of a program at a time, and runs programs for two rounds."""

import ast
import copy
import re
from dataclasses import dataclass

COLLECTIVES = ("barrier", "allreduce", "broadcast", "allgather", "reduce_scatter", "all_to_all")


@dataclass(frozen=True)
class Mutant:
    line: int  # of the program as written
    name: str
    text: str  # the whole program

    @property
    def key(self) -> str:
        return f"{self.line}:{self.name}"


def dotted(node) -> str:
    return ast.unparse(node) if isinstance(node, (ast.Attribute, ast.Name)) else ""


def next_rank(node, size):
    return ast.parse(f"({ast.unparse(node)} + 1) % {size}", mode="eval").body


def variants(call: ast.Call, size: str):
    """(name, call or None to delete) for each way to break a notify, a wait or a collective."""
    name = dotted(call.func)
    yield "delete", None
    if name == "pld.system.notify":
        for label, index in (("wrong peer", 1), ("wrong row", 2)):
            new = copy.deepcopy(call)
            place = new.args[index]
            if index == 1:
                new.args[1] = next_rank(place, size)
            else:
                place.elts[0] = next_rank(place.elts[0], size)
            yield label, new
        new = copy.deepcopy(call)
        for keyword in new.keywords:
            if keyword.arg == "op":
                sets = ast.unparse(keyword.value) in ("1", "pld.NotifyOp.Set")
                keyword.value = ast.parse(f"pld.NotifyOp.{'AtomicAdd' if sets else 'Set'}", mode="eval").body
                yield "add" if sets else "set", new
    if name == "pld.system.wait":
        new = copy.deepcopy(call)
        new.args[2] = ast.parse(f"{ast.unparse(new.args[2])} - 1", mode="eval").body
        if isinstance(call.args[2], ast.Constant):
            new.args[2] = ast.Constant(call.args[2].value - 1)
        yield "threshold - 1", new
        new = copy.deepcopy(call)
        new.args[1].elts[0] = next_rank(new.args[1].elts[0], size)
        yield "wrong row", new


def mutants(text: str, kernels, world: str = "") -> list[Mutant]:
    """All mutants of the statements in the named kernels; `world` is the rank count where the text has no `nranks`."""
    tree = ast.parse(text)
    lines = text.splitlines()
    found = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or function.name not in kernels:
            continue
        named = any(isinstance(n, ast.Name) and n.id == "nranks" for n in ast.walk(function))
        size = world or ("nranks" if named else "2")
        for statement in ast.walk(function):
            call = getattr(statement, "value", None)
            if not isinstance(statement, (ast.Expr, ast.Assign)) or not isinstance(call, ast.Call):
                continue
            name = dotted(call.func)
            if name not in ("pld.system.notify", "pld.system.wait") and not (
                name.startswith("pld.tensor.") and name.rpartition(".")[2] in COLLECTIVES
            ):
                continue
            for label, new in variants(call, size):
                if new is None:
                    replaced = "pass"
                else:
                    changed = copy.deepcopy(statement)
                    changed.value = new
                    replaced = ast.unparse(changed)
                broken = lines.copy()
                broken[statement.lineno - 1] = " " * statement.col_offset + replaced
                broken[statement.lineno : statement.end_lineno] = [""] * (statement.end_lineno - statement.lineno)
                found.append(Mutant(statement.lineno, label, "\n".join(broken) + "\n"))
    return found


def two_rounds(text: str, kernel: str, closing_barrier: bool) -> str:
    """The kernel's body twice, staging x in the first and x + 1 in the second round.

    `closing_barrier`: the program leaves it to its end that all have read; the next round needs it said.
    """
    tree = ast.parse(text)
    lines = text.splitlines()
    function = next(f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and f.name == kernel)
    first = next(i for i, s in enumerate(function.body) if not re.match(r"ctx|me|my_rank|nranks", ast.unparse(s)))
    begin, end = function.body[first].lineno - 1, function.body[-1].lineno - 1
    indent = " " * function.body[0].col_offset
    body = [f"{indent}for again in pl.range(2):"]
    for line in lines[begin:end]:
        line = re.sub(r"= (pl\.load\(x, .*\))$", r"= pl.add(\1, pl.cast(again, pl.FP32))", line)
        body.append("    " + line if line.strip() else line)
    if closing_barrier:
        body.append(f"{indent}    signal = pld.tensor.barrier(signal)")
    return "\n".join([*lines[:begin], *body, *lines[end:]]) + "\n"


SHOW = """
WORLD = pl.dynamic("WORLD")


@pl.jit.incore
def shown_kernel(
    shown: pl.Out[pl.Tensor[[{rows}, {cols}], pl.INT32]], signal: pld.DistributedTensor[[{rows}, {cols}], pl.INT32]
):
    for i in pl.range({rows}):
        for j in pl.range({cols}):
            pl.write(shown, [i, j], pl.read(signal, [i, j]))
    return shown


@pl.jit
def shown_on_device(
    shown: pl.Out[pl.Tensor[[{rows}, {cols}], pl.INT32]], signal: pld.DistributedTensor[[{rows}, {cols}], pl.INT32]
):
    shown = shown_kernel(shown, signal)
    return shown
"""


def decorated(tree, name):
    return [
        f
        for f in ast.walk(tree)
        if isinstance(f, ast.FunctionDef) and any(ast.unparse(d) == name for d in f.decorator_list)
    ]


def host_rounds(text: str, kernel: str, per_round: str = "", between: str = "") -> str:
    """The host's rank loop twice, with the data of `again`, and a barrier of its own after each round.

    `per_round`: how many credits a cell keeps from each round, so the thresholds go up by as many; `between`: a dispatch
    that prepares the next round. Without one the signal's cells become an output, `shown`.
    """
    tree = ast.parse(text)
    function = next(f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and f.name == kernel)
    waits = [n for n in ast.walk(function) if isinstance(n, ast.Call) and dotted(n.func) == "pld.system.wait"]
    signal = ast.unparse(waits[0].args[0]) if waits else "signal"
    annotation = next(a.annotation for a in function.args.args if a.arg == signal) if not between else None
    if per_round:
        again = ast.parse("def f(again: pl.Scalar[pl.INT32]): pass").body[0].args.args[0]
        function.args.args.append(again)
        for wait in waits:
            wait.args[2] = ast.parse(f"{ast.unparse(wait.args[2])} + again * ({per_round})", mode="eval").body
        for device in decorated(tree, "pl.jit"):
            for call in ast.walk(device):
                if isinstance(call, ast.Call) and dotted(call.func) == kernel:
                    call.args.append(ast.Name("again"))
                    device.args.args.append(again)
    for host in decorated(tree, "pl.jit.host"):
        rounds_of_host(host, bool(per_round), "" if between else signal, between)
    made = ast.unparse(tree)
    if between:
        return made
    rows, cols = (ast.unparse(d) for d in annotation.slice.elts[0].elts)
    at = re.search(r"^(@pl|def )", made, flags=re.M).start()
    made = made[:at] + SHOW.format(rows=rows, cols=cols).strip() + "\n\n\n" + made[at:]
    return made.replace("shown: Any", f"shown: pl.Out[pl.Tensor[[WORLD, {rows}, {cols}], pl.INT32]]")


def rounds_of_host(host: ast.FunctionDef, numbered: bool, signal: str, between: str) -> None:
    at, loop = next((i, s) for i, s in enumerate(host.body) if isinstance(s, ast.For))
    sliced = set()
    for node in ast.walk(loop):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and ast.unparse(node.slice) == "r":
            sliced.add(node.value.id)
            node.slice = ast.parse("(again, r)", mode="eval").body
    for parameter in host.args.args:
        if parameter.arg in sliced:
            extents = next(n for n in ast.walk(parameter.annotation) if isinstance(n, ast.List))
            extents.elts.insert(0, ast.Constant(2))
    dispatch = next(s for s in reversed(loop.body) if isinstance(s, ast.Expr))
    if numbered:
        dispatch.value.args.append(ast.Name("again"))
    if signal:
        host.args.args.append(ast.parse("def f(shown: Any): pass").body[0].args.args[0])
    meet = "meet = pld.tensor.barrier(meet)"
    prepare = f"for r in pl.range(pld.world_size()):\n    {between}\n{meet}" if between else ""
    rounds = ast.parse(f"for again in pl.range(2):\n    pass\n    {meet}").body[0]
    rounds.body[:1] = [loop]
    rounds.body += ast.parse(prepare).body
    before = ast.parse(
        "meet_buf = pld.alloc_window_buffer([pld.world_size()], dtype=pl.INT32)\n"
        "meet = pld.window(meet_buf, [pld.world_size()], dtype=pl.INT32)"
    ).body
    after = []
    if signal:  # the view of the loop, made again
        made = next(s for s in loop.body if isinstance(s, ast.Assign) and ast.unparse(s.targets[0]) == signal)
        after = ast.parse(
            f"for r in pl.range(pld.world_size()):\n    shown_on_device(shown[r], {signal}, device=r)"
        ).body
        after[0].body.insert(0, made)
    host.body[at : at + 1] = [*before, rounds, *after]
