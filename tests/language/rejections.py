# SPDX-License-Identifier: Apache-2.0
"""Defines programs from text that really lies in a file, so that positions and sources are those of a user."""

import itertools
import textwrap
from pathlib import Path
from typing import Any

import pypto.language as pl
import pypto.language.distributed as pld

_counter = itertools.count()

IMPORTS = "import pypto.language as pl\nimport pypto.language.distributed as pld\n"


def define(folder: Path, text: str, **names: object) -> dict[str, object]:
    """Run `text` as a module of its own; returns its names."""
    path = folder / f"case_{next(_counter)}.py"
    future = "from __future__ import annotations\n" if names.pop("future", False) else ""
    source = future + IMPORTS + textwrap.dedent(text)
    path.write_text(source)
    scope: dict[str, object] = {"__name__": path.stem, "pl": pl, "pld": pld, **names}
    exec(compile(source, str(path), "exec"), scope)
    return scope


def indent(body: str, depth: int) -> str:
    return textwrap.indent(textwrap.dedent(body).strip("\n"), " " * depth)


def kernel(folder: Path, body: str, **names: object) -> object:
    """A class with one InCore kernel `k(x, o, n)` of this body and an orchestration that calls it."""
    return define(
        folder,
        f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
          n: pl.Scalar[pl.INT32]) -> pl.Tensor[[64, 64], pl.FP32]:
{indent(body, 8)}
        return pl.store(pl.load(x, [0, 0], [64, 64]), [0, 0], o)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
             ) -> pl.Tensor[[64, 64], pl.FP32]:
        o = self.k(x, o, 3)
        return o
""",
        **names,
    )["P"]


def orchestration(folder: Path, body: str, tail: str = "o = self.k(x, o)\nreturn o", **names: object) -> object:
    """A class whose orchestration `main(x, o, n)` has this body; `self.k(x, o)` doubles, `self.v(x)` has two results."""
    return define(
        folder,
        f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
          ) -> pl.Tensor[[64, 64], pl.FP32]:
        return pl.store(pl.add(pl.load(x, [0, 0], [64, 64]), 1.0), [0, 0], o)

    @pl.function(type=pl.FunctionType.InCore)
    def k2(self, x: pl.Tensor[[64, 64], pl.FP32], a: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
           b: pl.Out[pl.Tensor[[64, 64], pl.FP32]]) -> tuple[pl.Tensor[[64, 64], pl.FP32], pl.Tensor[[64, 64], pl.FP32]]:
        t = pl.load(x, [0, 0], [64, 64])
        a = pl.store(t, [0, 0], a)
        b = pl.store(pl.mul(t, 2.0), [0, 0], b)
        return a, b

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64, 64], pl.FP32], idx: pl.Tensor[[8], pl.INT32], n: pl.Scalar[pl.INT32],
             o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]) -> pl.Tensor[[64, 64], pl.FP32]:
{indent(body, 8)}
{indent(tail, 8)}
""",
        **names,
    )["P"]


def place(error: Any) -> tuple[str, int, int]:
    """File, line and column that an error points at."""
    span = getattr(error, "span", None)
    if span is None:
        span = error.diagnostics[0].span
        return span.filename, span.line, span.column
    return span["filename"], span["line"], span["column"]


def assert_points_into(error: Any, folder: Path, body: str) -> None:
    """The error points at a token of `body`, as indented by 8 in a file of `folder` (01 L-181)."""
    file, line, column = place(error)
    assert Path(file).parent == folder, f"{file}: {error}"
    lines = Path(file).read_text().splitlines()
    wanted = indent(body, 8).splitlines()
    # The last place: other functions of the program may hold the same line.
    first = max(i for i in range(len(lines)) if lines[i : i + len(wanted)] == wanted)
    assert first < line <= first + len(wanted), f"line {line}: {error}"
    token = lines[line - 1][column - 1 :]
    assert column > 8 and token and not token[0].isspace(), f"column {column}: {error}"
