# SPDX-License-Identifier: Apache-2.0
"""Random graphs of tasks in manual scopes: what `deps=` orders has one result, what it does not order is a race.

Tasks are regions of one core, or launches of several blocks, that combine pieces of tensors into a piece of another.
NumPy runs them in the order of the source, which every path of edges follows (01 L-133, L-164 - L-168, L-175).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

R, C = 12, 32
TENSORS = ("a", "b", "o", "p")


@dataclass(frozen=True)
class Piece:
    """Rows [i, i + h) and columns [j, j + w) of a tensor."""

    tensor: str
    i: int
    j: int
    h: int
    w: int

    def meets(self, other: Piece) -> bool:
        return (
            self.tensor == other.tensor
            and self.i < other.i + other.h
            and other.i < self.i + self.h
            and self.j < other.j + other.w
            and other.j < self.j + self.w
        )

    @property
    def at(self) -> tuple[slice, slice]:
        return slice(self.i, self.i + self.h), slice(self.j, self.j + self.w)


@dataclass
class Block:
    """What one block does: target = first (+ second) + plus."""

    target: Piece
    sources: list[Piece]
    loud: bool = True  # the write changes a byte when the tasks run in the order of the source

    def conflicts(self, other: Block) -> list[bool]:
        """For each pair of accesses that conflict: whether both count, a write that changes nothing does not."""
        found = []
        if self.target.meets(other.target):
            found.append(self.loud and other.loud)
        found += [self.loud for s in other.sources if self.target.meets(s)]
        found += [other.loud for s in self.sources if other.target.meets(s)]
        return found


@dataclass
class Task:
    number: int
    scope: int
    blocks: list[Block]
    plus: int
    deps: list[int] = field(default_factory=list)


@dataclass
class Graph:
    seed: int
    tasks: list[Task]
    dtype: str


def make(seed: int) -> Graph:
    rng = np.random.default_rng(seed)
    careful = rng.random() < 0.7
    graph = Graph(seed, [], str(rng.choice(["FP32", "INT32"])))
    density = rng.uniform(0.1, 0.9)
    scope = 0
    for number in range(int(rng.integers(3, 12))):
        scope += int(number > 0 and rng.random() < 0.15)
        width = int(rng.choice([8, 16, C]))
        rows = int(rng.integers(1, 4))
        count = int(rng.choice([1, 1, 1, 2, 3]))

        def piece(rows=rows, width=width, count=count) -> Piece:
            tensor = str(rng.choice(TENSORS))
            return Piece(
                tensor, int(rng.integers(0, R - rows * count + 1)), int(rng.integers(0, C - width + 1)), rows, width
            )

        target = piece()
        sources = [piece() for _ in range(int(rng.integers(1, 3)))]
        step = rows if count > 1 else 0  # block k works `step * k` rows further on
        blocks = [Block(shifted(target, step * k), [shifted(s, step * k) for s in sources]) for k in range(count)]
        task = Task(number, scope, blocks, int(rng.integers(1, 9)))
        earlier = [t.number for t in graph.tasks if t.scope == scope]
        task.deps = [n for n in earlier if rng.random() < density]
        graph.tasks.append(task)
        if careful:
            for n in earlier:
                if n not in task.deps and any(b.conflicts(c) for b in blocks for c in graph.tasks[n].blocks):
                    if not path(graph, n, number):
                        task.deps.append(n)
    return graph


def shifted(piece: Piece, rows: int) -> Piece:
    return Piece(piece.tensor, piece.i + rows, piece.j, piece.h, piece.w)


def path(graph: Graph, early: int, late: int) -> bool:
    return any(n == early or path(graph, early, n) for n in graph.tasks[late].deps if n >= early)


# ---------------------------------------------------------------- text

HEAD = """import pypto.language as pl

T = pl.Tensor[[{R}, {C}], pl.{dt}]


@pl.jit
def program(x: T, o: pl.Out[T], p: pl.Out[T], q: pl.Out[T]):
    a = pl.create_tensor([{R}, {C}], dtype=pl.{dt})
    b = pl.create_tensor([{R}, {C}], dtype=pl.{dt})
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="begin"):
        whole = pl.load(x, [0, 0], [{R}, {C}])
        a = pl.store(whole, [0, 0], a)
        b = pl.store(pl.add(whole, 1), [0, 0], b)
        o = pl.store(pl.add(whole, 2), [0, 0], o)
        p = pl.store(pl.add(whole, 3), [0, 0], p)
"""
TAIL = """    with pl.at(level=pl.Level.CORE_GROUP, name_hint="end"):
        sums = pl.add(pl.load(a, [0, 0], [{R}, {C}]), pl.load(b, [0, 0], [{R}, {C}]))
        q = pl.store(sums, [0, 0], q)
    return o, p, q
"""


def text(graph: Graph) -> str:
    lines = []
    scope = -1
    for task in graph.tasks:
        if task.scope != scope:
            lines.append("    with pl.manual_scope():")
            scope = task.scope
        first, count = task.blocks[0], len(task.blocks)
        deps = f"deps=[{', '.join(f't{n}' for n in task.deps)}], " if task.deps else ""
        name = f'name_hint="task{task.number}"'
        row = ""
        if count > 1:
            lines.append(f"        with pl.spmd({count}, {deps}{name}) as t{task.number}:")
            lines.append("            k = pl.tile.get_block_idx()")
            row = f" + k * {first.target.h}"
        else:
            lines.append(f"        with pl.at(level=pl.Level.CORE_GROUP, {deps}{name}) as t{task.number}:")
        parts = [f"pl.load({s.tensor}, [{s.i}{row}, {s.j}], [{s.h}, {s.w}])" for s in first.sources]
        value = parts[0] if len(parts) == 1 else f"pl.add({parts[0]}, {parts[1]})"
        t = first.target
        lines.append(f"            v{task.number} = pl.add({value}, {task.plus})")
        lines.append(f"            {t.tensor} = pl.store(v{task.number}, [{t.i}{row}, {t.j}], {t.tensor})")
    names = {"R": R, "C": C, "dt": graph.dtype}
    return HEAD.format(**names) + "\n".join(lines) + "\n" + TAIL.format(**names)


CALLED = """

@pl.jit.incore
def combine{n}(
    u: pl.Tensor[[{h}, {w}], pl.{dt}], v: pl.Tensor[[{h}, {w}], pl.{dt}], out: pl.Out[pl.Tensor[[{h}, {w}], pl.{dt}]]
):
    total = pl.add(pl.add(pl.load(u, [0, 0], [{h}, {w}]), pl.load(v, [0, 0], [{h}, {w}])), {plus})
    out = pl.store(total, [0, 0], out)
    return out
"""


def automatic_text(graph: Graph) -> str:
    """The same with tasks that are calls with slices, ordered by what they read and write (01 L-159)."""
    kernels, lines = "", []
    names = {"R": R, "C": C, "dt": graph.dtype}
    for task in graph.tasks:
        t = task.blocks[0].target
        kernels += CALLED.format(n=task.number, h=t.h, w=t.w, plus=task.plus, **names)
        for block in task.blocks:
            sources = block.sources * 2 if len(block.sources) == 1 else block.sources
            operands = [
                f"pl.slice({p.tensor}, [{p.h}, {p.w}], [{p.i}, {p.j}])"
                if (task.number + p.i) % 2
                else f"{p.tensor}[{p.i}:{p.i + p.h}, {p.j}:{p.j + p.w}]"
                for p in [*sources, block.target]
            ]
            lines.append(f"    combine{task.number}({', '.join(operands)})")
    head, begin = HEAD.split("@pl.jit\n")
    return (
        (head.rstrip() + "\n" + kernels + "\n\n@pl.jit\n" + begin).format(**names)
        + "\n".join(lines)
        + ("\n" + TAIL.format(**names))
    )


# ---------------------------------------------------------------- golden


def inputs(graph: Graph) -> np.ndarray:
    values = np.random.default_rng(graph.seed + 1).integers(-9, 10, (R, C))
    return values.astype({"FP32": np.float32, "INT32": np.int32}[graph.dtype])


def golden(graph: Graph, x: np.ndarray, twice: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """o, p and q; notes which writes change a byte. `twice`: a task with one source adds it to itself."""
    at = {"a": x.copy(), "b": x + 1, "o": x + 2, "p": x + 3}
    for task in graph.tasks:
        for block in task.blocks:
            sources = block.sources * 2 if twice and len(block.sources) == 1 else block.sources
            new = sum(at[s.tensor][s.at] for s in sources) + task.plus
            block.loud = bool((at[block.target.tensor][block.target.at] != new).any())
            at[block.target.tensor][block.target.at] = new
    return at["o"], at["p"], at["a"] + at["b"]


def races(graph: Graph) -> bool | None:
    """Whether it has a race; None: only if a write changes bytes, which depends on the order."""
    counts: list[bool] = []
    for n, late in enumerate(graph.tasks):
        for k, block in enumerate(late.blocks):
            for other in late.blocks[:k]:
                counts += block.conflicts(other)
        for early in graph.tasks[:n]:
            if early.scope == late.scope and not path(graph, early.number, late.number):
                counts += [c for x in early.blocks for y in late.blocks for c in x.conflicts(y)]
    return True if any(counts) else None if counts else False
