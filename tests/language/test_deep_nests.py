# SPDX-License-Identifier: Apache-2.0
"""Deep nests of loops and branches: reading and compiling them costs a step per level, or these would never end."""

import importlib.util

import numpy as np
import pytest
from pypto import ir

DEPTH = 18  # Python itself allows 20 blocks in one another
SHAPE = "[8, 16]"
KERNEL = (
    "import pypto.language as pl\n\n\n@pl.program\nclass Nest:\n"
    "    @pl.function(type=pl.FunctionType.{kind})\n"
    f"    def nest(self, x: pl.Tensor[{SHAPE}, pl.FP32], y: pl.Out[pl.Tensor[{SHAPE}, pl.FP32]], "
    f"n: pl.Scalar[pl.INT32]) -> pl.Tensor[{SHAPE}, pl.FP32]:\n"
)
LOAD = f"pl.load(x, [0, 0], {SHAPE})"


def program(tmp_path, kind: str, lines: list[tuple[int, str]]):
    """The program whose body is `lines`, each with its depth."""
    path = tmp_path / "nest.py"
    text = KERNEL.format(kind=kind) + "".join("    " * (d + 2) + line + "\n" for d, line in lines)
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("nest", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Nest


def nest(heads, inner, *, each=None, before=(), after=()):
    """A nest of `heads` around `inner`, with the lines of `each` at the start of every body."""
    lines = [(0, line) for line in before]
    for d, head in enumerate(heads):
        lines.append((d, head))
        lines += [(d + 1, line) for line in (each(d) if each else ())]
    lines += [(len(heads), line) for line in inner]
    return lines + [(0, line) for line in (*after, "return y")]


def loops(depth: int = DEPTH) -> list[str]:
    """One trip each, and two in the innermost."""
    return [f"for i{d} in pl.range({2 if d == depth - 1 else 1}):" for d in range(depth)]


def check(made, expected, n: int = 100):
    """Compile, run and compare."""
    compiled = ir.compile(made)
    x = np.random.default_rng(3).standard_normal((8, 16)).astype(np.float32)
    y = np.zeros_like(x)
    compiled(x, y, n)
    np.testing.assert_allclose(y, expected(x), rtol=1e-5)


STORE = ("y = pl.store(acc, [0, 0], y)",)
FIRST = (f"acc = {LOAD}",)


def test_carried_tile(tmp_path):  # 01 L-83, L-96
    made = program(tmp_path, "InCore", nest(loops(), ["acc = pl.add(acc, acc)"], before=FIRST, after=STORE))
    check(made, lambda x: 4 * x)


def test_tiles_of_every_level(tmp_path):  # 01 L-83, L-96, L-185
    """The carried name is another tile at each level."""
    lines = nest(
        loops(),
        ["acc = pl.add(acc, t0)"],
        each=lambda d: (f"t{d} = {LOAD}", f"acc = pl.add(t{d}, acc)" if d % 3 == 2 else f"acc = t{d}"),
        before=FIRST,
        after=STORE,
    )
    # The innermost level adds its own tile and t0, twice, to the tile of the level around it.
    check(program(tmp_path, "InCore", lines), lambda x: 5 * x)


def test_explicit_carries(tmp_path):  # 01 L-97
    heads = [
        f"for i{d}, (c{d + 1},) in pl.range({2 if d == DEPTH - 1 else 1}, init_values=(c{d},)):" for d in range(DEPTH)
    ]
    lines = [(0, f"c0 = {LOAD}"), *enumerate(heads)]
    lines += [(DEPTH, f"v{DEPTH} = pl.add(c{DEPTH}, c{DEPTH})")]
    lines += [(d + 1, f"v{d} = pl.yield_(v{d + 1})") for d in reversed(range(DEPTH))]
    lines += [(0, "y = pl.store(v0, [0, 0], y)"), (0, "return y")]
    check(program(tmp_path, "InCore", lines), lambda x: 4 * x)


def test_loops_in_branches(tmp_path):  # 01 L-85, L-91
    heads = [f"for i{d} in pl.range({2 if d == 1 else 1}):" if d % 2 else f"if n > {d}:" for d in range(DEPTH)]
    lines = nest(heads, ["acc = pl.add(acc, acc)", f"if n > {DEPTH}:", "    break"], before=FIRST, after=STORE)
    check(program(tmp_path, "InCore", lines), lambda x: 4 * x)


def test_branches(tmp_path):  # 01 L-85, L-91
    """Sixty `if` with an `else` each."""
    depth = 60
    lines = [(0, FIRST[0])] + [(d, f"if n > {d}:") for d in range(depth)] + [(depth, "acc = pl.add(acc, acc)")]
    for d in reversed(range(depth)):
        lines += [(d, "else:"), (d + 1, f"acc = pl.mul(acc, {d}.0)")]
    made = program(tmp_path, "InCore", [*lines, (0, STORE[0]), (0, "return y")])
    check(made, lambda x: 2 * x)
    check(made, lambda x: 7 * x, n=7)


def test_while(tmp_path):  # 01 L-102
    lines = [(0, FIRST[0])]
    for d in range(DEPTH):
        lines += [(d, f"w{d} = 0"), (d, f"while w{d} < {2 if d == 0 else 1}:"), (d + 1, f"w{d} = w{d} + 1")]
    lines += [(DEPTH, "acc = pl.add(acc, acc)"), (0, STORE[0]), (0, "return y")]
    check(program(tmp_path, "InCore", lines), lambda x: 4 * x)


@pytest.mark.parametrize("kind", ["range", "parallel"])
def test_regions(tmp_path, kind):  # 01 L-108
    heads = [head.replace("range", kind if d % 2 else "range") for d, head in enumerate(loops())]
    inner = ["with pl.at(level=pl.Level.CORE_GROUP):", "    y = pl.assemble(y, pl.add(x, x), [0, 0])"]
    check(program(tmp_path, "Orchestration", nest(heads, inner)), lambda x: 2 * x)
