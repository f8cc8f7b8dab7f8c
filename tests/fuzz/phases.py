# SPDX-License-Identifier: Apache-2.0
"""Random distributed programs: phases of one-sided operations, ordered by barriers of several kinds.

Within a phase no rank touches what another one writes, so a correct program has one result, which NumPy computes
phase by phase, and no report. Without one of its barriers it has a race exactly if an operation before it and one
after it, of different ranks, touch the same bytes of a window and one of them writes (03 M-20 - M-24).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

R, C = 6, 48  # of the window and of the tensors of each rank


@dataclass(frozen=True)
class Rect:
    """Rows [i, i + a) and columns [j, j + b)."""

    i: int
    j: int
    a: int
    b: int

    def meets(self, o: Rect) -> bool:
        return self.i < o.i + o.a and o.i < self.i + self.a and self.j < o.j + o.b and o.j < self.j + self.b

    @property
    def at(self) -> tuple[slice, slice]:
        return slice(self.i, self.i + self.a), slice(self.j, self.j + self.b)

    @property
    def offsets(self) -> str:
        return f"[{self.i}, {self.j}]"

    @property
    def shape(self) -> str:
        return f"[{self.a}, {self.b}]"


@dataclass(frozen=True)
class Touch:
    """An access of bytes of a window."""

    rank: int  # who
    owner: int  # whose slice
    rect: Rect
    kind: str  # "read", "write" or "add"

    def conflicts(self, o: Touch) -> bool:
        if self.rank == o.rank or self.owner != o.owner or not self.rect.meets(o.rect):
            return False
        return (self.kind, o.kind) not in {("read", "read"), ("add", "add")}


@dataclass
class World:
    """What the program holds while NumPy runs it."""

    x: np.ndarray
    y: np.ndarray
    z: np.ndarray
    data: np.ndarray


@dataclass
class Operation:
    lines: list[str]
    ranks: list[int]  # that execute it
    touches: list[Touch]
    apply: Callable[[World, int], None]  # for one rank


@dataclass
class Phase:
    """Operations, then (unless it is left out) a barrier. `rounds` > 1: in a loop with its barrier."""

    operations: list[Operation] = field(default_factory=list)
    barrier: str = "builtin"
    rounds: int = 1
    collective: str = ""  # before the operations; its barrier follows
    offsets: tuple[int, ...] = ()  # "partial": each rank tells those so far away

    @property
    def touches(self) -> list[Touch]:
        return [t for o in self.operations for t in o.touches]


@dataclass
class Program:
    p: int
    dtype: str
    phases: list[Phase]
    cuts: list[int]  # numbers of the phases that begin a kernel
    seed: int
    dispatches: bool = False  # each kernel has a rank loop of its own
    blocks: int = 1  # of one launch on each rank


def rect(rng: np.random.Generator, like: Rect | None = None) -> Rect:
    a = like.a if like else int(rng.integers(1, R + 1))
    b = like.b if like else int(rng.choice([1, 8, 7, 16, 24, C]))
    return Rect(int(rng.integers(0, R - a + 1)), int(rng.integers(0, C - b + 1)), a, b)


def operation(rng: np.random.Generator, p: int, number: int, blocks: int = 1) -> Operation | None:
    """One operation of every rank, or of all blocks of every rank: actor `u` is block u % blocks of rank u // blocks."""
    kind = str(
        rng.choice(["put", "put_own", "put_add", "get", "get_own", "store", "store_add", "tensor_store", "load",
                    "load_add", "write", "read", "copy"])
    )  # fmt: skip
    d = int(rng.integers(0, p))
    constant = rng.random() < 0.2  # one rank that all name
    text = str(d) if constant else "me" if d == 0 else f"(me + {d}) % n"

    def own(u: int) -> int:
        return u // blocks

    def peer(u: int) -> int:
        return d if constant else (own(u) + d) % p

    who, actors = ("me" if blocks == 1 else "u"), p * blocks
    guard, ranks = "", list(range(actors))
    if rng.random() < (0.3 if blocks == 1 else 0.6):
        c = int(rng.integers(0, actors))
        guard = str(rng.choice([f"{who} == {c}", f"{who} >= {c}", f"{who} % 2 == {c % 2}"]))
        ranks = [u for u in range(actors) if eval(guard, {who: u})]
    mine = "" if blocks == 1 else f" + b * {R}"  # each block has rows of its own in y
    w, s, t = (lambda r: (r, rect(rng, r), rect(rng, r)))(rect(rng))
    touches: list[Touch] = []

    def touch(owner: Callable[[int], int], area: Rect, how: str) -> None:
        touches.extend(Touch(u, owner(u), area, how) for u in ranks)

    def in_y(area: Rect) -> str:
        return f"[{area.i}{mine}, {area.j}]"

    add = ", atomic=pld.AtomicType.Add" if kind.endswith("_add") else ""
    if kind in ("put", "put_add"):
        lines = [f"pld.tensor.put(data, {text}, x, {w.offsets}, {s.offsets}, {w.shape}{add})"]
        touch(peer, w, "add" if add else "write")

        def apply(at: World, u: int) -> None:
            old = at.data[peer(u)][w.at] if add else 0
            at.data[peer(u)][w.at] = old + at.x[own(u)][s.at]
    elif kind == "put_own":
        if any(peer(u) == own(u) for u in ranks):
            return None  # O-61
        lines = [
            f"pld.tensor.put(data, {text}, data, dst_offsets={w.offsets}, src_offsets={s.offsets}, shape={w.shape})"
        ]
        touch(own, s, "read")
        touch(peer, w, "write")

        def apply(at: World, u: int) -> None:
            at.data[peer(u)][w.at] = at.data[own(u)][s.at].copy()
    elif kind == "get":
        lines = [f"pld.tensor.get(y, {text}, data, {in_y(s)}, {w.offsets}, {w.shape})"]
        touch(peer, w, "read")

        def apply(at: World, u: int) -> None:
            at.y[u][s.at] = at.data[peer(u)][w.at]
    elif kind == "get_own":
        if any(peer(u) == own(u) for u in ranks):
            return None
        lines = [f"pld.tensor.get(data, {text}, data, {s.offsets}, {w.offsets}, {w.shape})"]
        touch(peer, w, "read")
        touch(own, s, "write")

        def apply(at: World, u: int) -> None:
            at.data[own(u)][s.at] = at.data[peer(u)][w.at].copy()
    elif kind in ("store", "store_add", "tensor_store"):
        scale = int(rng.integers(1, 3))
        if kind == "tensor_store":
            lines = [f"pld.tensor.remote_store(pl.slice(x, {w.shape}, {s.offsets}), data, {text}, {w.offsets})"]
            scale = 1
        else:
            tile = f"pl.load(x, {s.offsets}, {w.shape})"
            tile = tile if scale == 1 else f"pl.add({tile}, {tile})"
            lines = [f"pld.tile.remote_store({tile}, data, {text}, {w.offsets}{add})"]
        touch(peer, w, "add" if add else "write")

        def apply(at: World, u: int) -> None:
            old = at.data[peer(u)][w.at] if add else 0
            at.data[peer(u)][w.at] = old + scale * at.x[own(u)][s.at]
    elif kind in ("load", "load_add"):
        part = f"part{number}"
        lines = [f"{part} = pld.tile.remote_load(data, {text}, {w.offsets}, {w.shape})"]
        if kind == "load_add":
            lines.append(f"{part} = pl.maximum({part}, pl.load(y, {in_y(s)}, {w.shape}))")
        lines.append(f"y = pl.store({part}, {in_y(s)}, y)")
        touch(peer, w, "read")

        def apply(at: World, u: int) -> None:
            new = at.data[peer(u)][w.at]
            at.y[u][s.at] = np.maximum(new, at.y[u][s.at]) if kind == "load_add" else new
    elif kind == "write":
        lines = [f"data = pl.store(pl.load(x, {s.offsets}, {w.shape}), {w.offsets}, data)"]
        touch(own, w, "write")

        def apply(at: World, u: int) -> None:
            at.data[own(u)][w.at] = at.x[own(u)][s.at]
    elif kind == "read":
        lines = [f"y = pl.store(pl.load(data, {w.offsets}, {w.shape}), {in_y(s)}, y)"]
        touch(own, w, "read")

        def apply(at: World, u: int) -> None:
            at.y[u][s.at] = at.data[own(u)][w.at]
    else:
        lines = [f"data = pl.store(pl.load(y, {in_y(s)}, {w.shape}), {t.offsets}, data)"]
        touch(own, t, "write")

        def apply(at: World, u: int) -> None:
            at.data[own(u)][t.at] = at.y[u][s.at]

    if guard:
        lines = [f"if {guard}:"] + ["    " + line for line in lines]
    return Operation(lines, ranks, touches, apply)


def fits(phase: Phase, new: Operation) -> bool:
    touches = phase.touches + new.touches
    return not any(a.conflicts(b) for a in new.touches for b in touches)


def fill(
    phase: Phase, wanted: int, draw: Callable[[int], Operation | None], racy: Callable[[], bool] | None = None
) -> None:
    """Add drawn operations that fit the others, and after which the program is not `racy`."""
    for n in range(40):
        new = draw(n)
        if new and new.ranks and fits(phase, new):
            phase.operations.append(new)
            if racy and racy():
                phase.operations.pop()
        if len(phase.operations) == wanted:
            return


def make(seed: int) -> Program:
    rng = np.random.default_rng(seed)
    p = int(rng.choice([1, 2, 2, 3, 3, 4, 5]))
    phases = [Phase(barrier=str(rng.choice(["builtin", "by hand"])))]  # the first stages the window
    for _ in range(int(rng.integers(2, 7))):
        phase = Phase(barrier=str(rng.choice(["builtin", "by hand", "by hand"])))
        if rng.random() < 0.15:
            phase.collective = str(rng.choice(["max", "min", "broadcast"]))  # the peers' results may come later
        else:
            phase.rounds = int(rng.choice([1, 1, 1, 2, 3]))
            first = 100 * len(phases)
            fill(phase, int(rng.integers(1, 6)), lambda n, first=first: operation(rng, p, first + n))
        phases.append(phase)
    cuts = sorted({int(rng.integers(1, len(phases) + 1)) for _ in range(int(rng.integers(0, 3)))})
    cuts = [c for c in cuts if c < len(phases)]
    return Program(p, str(rng.choice(["FP32", "INT32", "FP16"])), phases, cuts, seed, rng.random() < 0.5)


def make_partial(seed: int) -> Program:
    """Barriers among some: each rank tells the ranks at a few distances, and what it knows itself with that."""
    rng = np.random.default_rng(seed)
    p = int(rng.choice([2, 3, 3, 4, 5]))
    careful = rng.random() < 0.75  # else an operation may come too early
    program = Program(p, str(rng.choice(["FP32", "INT32", "FP16"])), [], [], seed)
    for k in range(int(rng.integers(3, 9))):
        phase = Phase(barrier="partial", rounds=int(rng.choice([1, 1, 1, 2])) if k else 1)
        if rng.random() < 0.15:
            phase.barrier = "builtin"
        phase.offsets = tuple(d for d in range(1, p) if rng.random() < 0.5)
        program.phases.append(phase)
        if k:
            racy = (lambda: any(unordered_pairs(program))) if careful else None
            fill(phase, int(rng.integers(1, 5)), lambda n, k=k: operation(rng, p, 100 * k + n), racy)
    program.cuts = [int(rng.integers(1, len(program.phases)))] if rng.random() < 0.4 else []
    program.dispatches = rng.random() < 0.5
    return program


def make_blocks(seed: int) -> Program:
    """The same with several blocks on each rank, which are as unordered as ranks (01 L-168)."""
    rng = np.random.default_rng(seed)
    p, blocks = int(rng.choice([1, 2, 2, 3])), int(rng.choice([2, 2, 3]))
    careful = rng.random() < 0.75
    program = Program(p, str(rng.choice(["FP32", "INT32", "FP16"])), [], [], seed, blocks=blocks)
    for k in range(int(rng.integers(2, 7))):
        phase = Phase(barrier="partial" if rng.random() < 0.5 else "by hand", rounds=1 + int(k > 0 and k % 3 == 0))
        phase.offsets = tuple(d for d in range(1, p * blocks) if rng.random() < 0.5)
        program.phases.append(phase)
        if k:
            racy = (lambda: any(unordered_pairs(program))) if careful else None
            fill(phase, int(rng.integers(1, 6)), lambda n, k=k: operation(rng, p, 100 * k + n, blocks), racy)
    return program


# ---------------------------------------------------------------- golden


def inputs(program: Program) -> np.ndarray:
    rng = np.random.default_rng(program.seed + 1)
    return rng.integers(-9, 10, (program.p, R, C)).astype(
        {"FP32": np.float32, "INT32": np.int32, "FP16": np.float16}[program.dtype]
    )


def staging(program: Program) -> list[Touch]:
    """What comes before all: block 0 of each rank fills its slice."""
    return [Touch(r * program.blocks, r, Rect(0, 0, R, C), "write") for r in range(program.p)]


def golden(program: Program, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[int, set[Touch]]]:
    """y, z, and for each step (each round of each phase) its writes that change a byte."""
    at = World(x, np.repeat(x, program.blocks, axis=0), x.copy(), x.copy())
    loud: dict[int, set[Touch]] = {0: set(staging(program))}
    step = -1
    for phase in program.phases:
        if phase.collective == "broadcast":
            at.data[:] = at.data[0]
        elif phase.collective:
            at.data[:] = getattr(at.data, phase.collective)(axis=0)
        for _ in range(phase.rounds):
            step += 1
            for o in phase.operations:
                for me in o.ranks:
                    before = at.data.copy()
                    o.apply(at, me)
                    for t in o.touches:
                        if t.rank == me and t.kind != "read":
                            changed = (before[t.owner][t.rect.at] != at.data[t.owner][t.rect.at]).any()
                            if changed or t.kind == "add":
                                loud.setdefault(step, set()).add(t)
    return at.y.reshape(program.p, program.blocks * R, C), at.data, loud


def removable(program: Program) -> list[int]:
    """Phases whose barrier can be left out: no loops and no collectives on either side."""
    ph = program.phases
    plain = [p.rounds == 1 and not p.collective for p in ph]
    return [k for k in range(len(ph) - 1) if plain[k] and plain[k + 1]]


def unordered_pairs(program: Program):
    """Conflicting accesses of two ranks that nothing orders, with their steps (03 M-10 - M-14)."""
    actors = range(program.p * program.blocks)
    steps = [k for k, phase in enumerate(program.phases) for _ in range(phase.rounds)]
    knows = np.full((len(actors), len(actors)), -1)  # [u, v]: the last step of v that u knows
    past = [(0, touch) for touch in staging(program)]
    for t, k in enumerate(steps):
        phase = program.phases[k]
        for now in phase.touches:
            for u, old in past:
                if u != t and old.conflicts(now) and knows[now.rank, old.rank] < u:
                    yield (u, old), (t, now)
        past += [(t, touch) for touch in phase.touches]
        knows[actors, actors] = t
        before = knows.copy()
        for u in actors:
            for d in actors if phase.barrier != "partial" else phase.offsets:
                knows[u] = np.maximum(knows[u], before[(u - d) % len(actors)])
    for u, old in past:
        own = Touch(old.owner * program.blocks, old.owner, Rect(0, 0, R, C), "read")  # block 0: z at the end
        if old.conflicts(own) and knows[own.rank, old.rank] < u:
            yield (u, old), (len(steps), own)


def unordered(program: Program, loud: dict[int, set[Touch]]) -> bool | None:
    """Whether it has a race; None: only if a write changes bytes, which depends on the order."""
    pairs = list(unordered_pairs(program))
    sure = any(all(t.kind == "read" or t in loud.get(k, set()) for k, t in pair) for pair in pairs)
    return True if sure else None if pairs else False


def races(program: Program, k: int, loud: dict[int, set[Touch]]) -> bool | None:
    """Whether leaving out the barrier of phase k makes a race; None: only if a write changes bytes, which depends."""
    before = program.phases[k].touches + (staging(program) if k == 0 else [])
    pairs = [(a, b) for a in before for b in program.phases[k + 1].touches if a.conflicts(b)]
    if not pairs:
        return False
    step = sum(phase.rounds for phase in program.phases[:k])
    known = loud.get(step, set()) | loud.get(step + 1, set())
    sure = any(all(t.kind == "read" or t in known for t in pair) for pair in pairs)
    return True if sure else None
