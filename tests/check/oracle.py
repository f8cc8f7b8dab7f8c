# SPDX-License-Identifier: Apache-2.0
"""Tiny signal programs and their verdict by definition (03 M-10 - M-30), by enumeration and nothing else.

A program is one list of operations per rank:
    ("notify", peer, cell, value)   AtomicAdd          ("set", peer, cell, value)   Set
    ("wait", cell, threshold)       Ge
    ("write", rank, slot)  ("read", rank, slot)  ("add", rank, slot)   `rank` is whose slice; "add" is an atomic add
"""

import itertools
import random

CELLS, SLOTS = 2, 3


# ---------------------------------------------------------------- programs


def random_program(seed: int):
    """Messages (write, notify; wait, read) with some of their statements moved, dropped or weakened."""
    rng = random.Random(seed)
    nranks = rng.choice([2, 2, 3, 3, 4])
    ops = [[] for _ in range(nranks)]
    credits = {}
    modes = rng.random()
    for _ in range(rng.randint(1, 3)):
        src, dst = rng.sample(range(nranks), 2)
        cell, slot = rng.randrange(CELLS), rng.randrange(SLOTS)
        owner = rng.choice([src, dst])
        ops[src].append((rng.choice(["write", "write", "add"]) if owner != src else "write", owner, slot))
        value = rng.choice([1, 1, 1, 2])
        if modes < 0.2:
            ops[src].append(("set", dst, cell, value))
            credits[dst, cell] = value
        else:
            ops[src].append(("notify", dst, cell, value))
            credits[dst, cell] = credits.get((dst, cell), 0) + value
        ops[dst].append(("wait", cell, credits[dst, cell]))
        ops[dst].append(("read", owner, slot) if rng.random() < 0.8 else ("write", owner, slot))
        if modes > 0.8 and rng.random() < 0.5:
            ops[dst].append(("notify", dst, cell, -credits[dst, cell]))
            credits[dst, cell] = 0
    for _ in range(rng.choice([0, 0, 1, 1, 2])):
        disturb(rng, ops)
    return ops


def disturb(rng, ops):
    rank = rng.choice([r for r in range(len(ops)) if ops[r]] or [0])
    if not ops[rank]:
        return
    i = rng.randrange(len(ops[rank]))
    kind = rng.randrange(4)
    if kind == 0 and sum(map(len, ops)) > 3:
        del ops[rank][i]
    elif kind == 1 and i + 1 < len(ops[rank]):
        ops[rank][i], ops[rank][i + 1] = ops[rank][i + 1], ops[rank][i]
    elif kind == 2 and ops[rank][i][0] == "wait":
        ops[rank][i] = ("wait", ops[rank][i][1], max(1, ops[rank][i][2] + rng.choice([-1, 1])))
    elif kind == 3:
        ops[rank].append(rng.choice([("read", rng.randrange(len(ops)), 0), ("notify", rng.randrange(len(ops)), 0, 1)]))


# ---------------------------------------------------------------- can it stop?


def outcomes(ops) -> set[str]:
    """Whether interleavings end ("ends"), stop ("stuck") or both, over every order of the operations."""
    found, seen = set(), set()
    todo = [((0,) * len(ops), ())]
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        at, cells = state
        values = dict(cells)
        moved = False
        for r, pc in enumerate(at):
            if pc == len(ops[r]):
                continue
            op, new = ops[r][pc], dict(values)
            if op[0] == "wait" and values.get((r, op[1]), 0) < op[2]:
                continue
            if op[0] == "notify":
                new[op[1], op[2]] = new.get((op[1], op[2]), 0) + op[3]
            elif op[0] == "set":
                new[op[1], op[2]] = op[3]
            moved = True
            todo.append((at[:r] + (pc + 1,) + at[r + 1 :], tuple(sorted(new.items()))))  # noqa: RUF005
        if not moved:
            found.add("ends" if all(pc == len(ops[r]) for r, pc in enumerate(at)) else "stuck")
    return found


# ---------------------------------------------------------------- happens-before


def closure(events, edges):
    """after[a]: the events that a happens before."""
    after = {e: set() for e in events}
    for a, b in edges:
        after[a].add(b)
    for k in events:
        for a in events:
            if k in after[a]:
                after[a] |= after[k]
    return after


def observed_in_every_order(ops, wait, mods, after) -> set:
    """The modifications in the prefix that the wait observes, in all orders of the cell that agree (M-30)."""
    must = {m for m in mods if wait in after[m]}
    late = {m for m in mods if m in after[wait]}
    threshold = ops[wait[0]][wait[1]][2]
    sure = None
    for order in itertools.permutations(mods):
        if any(order[j] in after[order[i]] for j in range(len(order)) for i in range(j + 1, len(order))):
            continue
        value, prefix = 0, set()
        hit = None
        for step in (None, *order):
            if step is not None:
                if step in late:
                    break
                op = ops[step[0]][step[1]]
                value = op[3] if op[0] == "set" else value + op[3]
                prefix.add(step)
            if must <= prefix and value >= threshold:
                hit = set(prefix)
                break
        if hit is not None:
            sure = hit if sure is None else sure & hit
    return sure or set()


def happens_before(ops):
    events = [(r, i) for r in range(len(ops)) for i in range(len(ops[r]))]
    edges = {((r, i), (r, i + 1)) for r in range(len(ops)) for i in range(len(ops[r]) - 1)}
    while True:
        after = closure(events, edges)
        new = set()
        for wait in events:
            op = ops[wait[0]][wait[1]]
            if op[0] != "wait":
                continue
            mods = [
                e
                for e in events
                if ops[e[0]][e[1]][0] in ("notify", "set") and ops[e[0]][e[1]][1:3] == (wait[0], op[1])
            ]
            new |= {(m, wait) for m in observed_in_every_order(ops, wait, mods, after)}
        if new <= edges:
            return after
        edges |= new


def races(ops) -> set[frozenset]:
    """Unordered conflicting pairs (M-20, M-21) and unordered Sets of one cell (M-23)."""
    after = happens_before(ops)
    events = sorted(after)
    found = set()
    for a, b in itertools.combinations(events, 2):
        if a[0] == b[0] or b in after[a] or a in after[b]:
            continue
        x, y = ops[a[0]][a[1]], ops[b[0]][b[1]]
        data = ("read", "write", "add")
        if x[0] in data and y[0] in data and x[1:] == y[1:]:
            if {x[0], y[0]} not in ({"read"}, {"add"}):
                found.add(frozenset((a, b)))
        signals = ("notify", "set")
        if x[0] in signals and y[0] in signals and x[1:3] == y[1:3] and "set" in (x[0], y[0]):
            found.add(frozenset((a, b)))
    return found


# ---------------------------------------------------------------- source text


def source(ops) -> tuple[str, dict[int, tuple[int, int]]]:
    """A module for one program, and the event of each of its lines."""
    nranks, rows = len(ops), max(1, *map(len, ops))
    lines = f"""import pypto.language as pl
import pypto.language.distributed as pld


@pl.jit.incore
def kernel(
    x: pl.Tensor[[{rows}, 8], pl.FP32],
    y: pl.Out[pl.Tensor[[{rows}, 8], pl.FP32]],
    data: pld.DistributedTensor[[{SLOTS}, 8], pl.FP32],
    signal: pld.DistributedTensor[[{CELLS}, 1], pl.INT32],
):
    me = pld.rank(pld.get_comm_ctx(data))
    own = pl.load(x, [0, 0], [1, 8])
    y = pl.store(own, [0, 0], y)""".splitlines()
    events = {}
    for r, program in enumerate(ops):
        if not program:
            continue
        lines.append(f"    if me == {r}:")
        for i, op in enumerate(program):
            if op[0] in ("write", "add"):
                lines.append(f"        t{i} = pl.load(x, [{i}, 0], [1, 8])")
            text = {
                "notify": lambda: (
                    f"pld.system.notify(signal, {op[1]}, [{op[2]}, 0], {op[3]}, op=pld.NotifyOp.AtomicAdd)"
                ),
                "set": lambda: f"pld.system.notify(signal, {op[1]}, [{op[2]}, 0], {op[3]}, op=pld.NotifyOp.Set)",
                "wait": lambda: f"pld.system.wait(signal, [{op[1]}, 0], {op[2]}, cmp=pld.WaitCmp.Ge)",
                "write": lambda: (
                    f"data = pl.store(t{i}, [{op[2]}, 0], data)"
                    if op[1] == r
                    else f"pld.tile.remote_store(t{i}, data, peer={op[1]}, offsets=[{op[2]}, 0])"
                ),
                "add": lambda: (
                    f"pld.tile.remote_store(t{i}, data, peer={op[1]}, offsets=[{op[2]}, 0], atomic=pld.AtomicType.Add)"
                ),
                "read": lambda: (
                    f"r{i} = pl.load(data, [{op[2]}, 0], [1, 8])"
                    if op[1] == r
                    else f"r{i} = pld.tile.remote_load(data, peer={op[1]}, offsets=[{op[2]}, 0], shape=[1, 8])"
                ),
            }[op[0]]()
            lines.append(f"        {text}")
            events[len(lines)] = (r, i)
            if op[0] == "read":
                lines.append(f"        y = pl.store(r{i}, [{i}, 0], y)")
    lines += f"""    return y


@pl.jit
def on_device(
    x: pl.Tensor[[{rows}, 8], pl.FP32],
    y: pl.Out[pl.Tensor[[{rows}, 8], pl.FP32]],
    data: pld.DistributedTensor[[{SLOTS}, 8], pl.FP32],
    signal: pld.DistributedTensor[[{CELLS}, 1], pl.INT32],
):
    y = kernel(x, y, data, signal)
    return y


@pl.jit.host
def program(
    x: pl.Tensor[[{nranks}, {rows}, 8], pl.FP32],
    y: pl.Out[pl.Tensor[[{nranks}, {rows}, 8], pl.FP32]],
):
    data_buf = pld.alloc_window_buffer([{SLOTS}, 8], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([{CELLS}, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [{SLOTS}, 8], dtype=pl.FP32)
        signal = pld.window(signal_buf, [{CELLS}, 1], dtype=pl.INT32)
        on_device(x[r], y[r], data, signal, device=r)
""".splitlines()
    return "\n".join(lines) + "\n", events
