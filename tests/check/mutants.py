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
                keyword.value = ast.parse("pld.NotifyOp.Set", mode="eval").body
        yield "set", new
    if name == "pld.system.wait":
        new = copy.deepcopy(call)
        new.args[2] = ast.parse(f"{ast.unparse(new.args[2])} - 1", mode="eval").body
        if isinstance(call.args[2], ast.Constant):
            new.args[2] = ast.Constant(call.args[2].value - 1)
        yield "threshold - 1", new
        new = copy.deepcopy(call)
        new.args[1].elts[0] = next_rank(new.args[1].elts[0], size)
        yield "wrong row", new


def mutants(text: str, kernels) -> list[Mutant]:
    """All mutants of the statements in the named kernels."""
    tree = ast.parse(text)
    lines = text.splitlines()
    found = []
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or function.name not in kernels:
            continue
        size = "nranks" if any(isinstance(n, ast.Name) and n.id == "nranks" for n in ast.walk(function)) else "2"
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
