# SPDX-License-Identifier: Apache-2.0
"""The text of random programs of phases."""

from __future__ import annotations

from collections.abc import Callable

from phases import C, Phase, Program, R

TEXT = """import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
{kernels}{devices}

@pl.jit.host
def program(
    x: pl.Tensor[[NR, {R}, {C}], {dt}],
    y: pl.{out}[pl.Tensor[[NR, {R}, {C}], {dt}]],
    z: pl.{out}[pl.Tensor[[NR, {R}, {C}], {dt}]],
):
    data_buf = pld.alloc_window_buffer([{R}, {C}], dtype={dt})
    signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    arrived_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
{loops}"""

LOOP = """    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [{R}, {C}], dtype={dt})
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        arrived = pld.window(arrived_buf, [pld.world_size(), 1], dtype=pl.INT32)
        device{k}(x[r], y[r], z[r], data, signal, arrived, device=r)
"""

DEVICE = """

@pl.jit
def device{k}(
{parameters}):
{calls}
    return y, z
"""

PARAMETERS = """    x: pl.Tensor[[{R}, {C}], {dt}],
    y: pl.{out}[pl.Tensor[[{R}, {C}], {dt}]],
    z: pl.{out}[pl.Tensor[[{R}, {C}], {dt}]],
    data: pld.DistributedTensor[[{R}, {C}], {dt}],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
    arrived: pld.DistributedTensor[[NR, 1], pl.INT32],
"""

KERNEL = """

@pl.jit.incore
def kernel{k}(
{parameters}):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
{body}
    return y, z
"""


def barrier(phase: Phase, count: Callable[[int], str]) -> list[str]:
    """`count(d)`: what the cell of the rank d before this one holds when it has told of this phase."""
    if phase.barrier == "builtin":
        return ["signal = pld.tensor.barrier(signal)"]
    if phase.barrier == "by hand":
        return [
            "for q in pl.range(n):",
            "    pld.system.notify(arrived, q, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)",
            "for q in pl.range(n):",
            f"    pld.system.wait(arrived, [q, 0], {count(0)}, cmp=pld.WaitCmp.Ge)",
        ]
    if phase.barrier == "partial":
        tell, hear = [], []
        for d in phase.offsets:
            tell.append(f"pld.system.notify(arrived, (me + {d}) % n, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)")
            hear.append(f"pld.system.wait(arrived, [(me + n - {d}) % n, 0], {count(d)}, cmp=pld.WaitCmp.Ge)")
        return tell + hear
    return []


def text(program: Program, without: int = -1) -> str:
    """The program; without the barrier of phase `without`."""
    bodies: list[list[str]] = [["y = pl.store(pl.load(x, [0, 0], [R, C]), [0, 0], y)", "pld.tensor.put(data, me, x)"]]
    done = [0] * program.p  # credits so far, by the distance of who gives them
    for k, phase in enumerate(program.phases):
        if k in program.cuts:
            bodies.append([])
        body = bodies[-1]
        if phase.collective:
            call = "broadcast(data, signal, root=0)"
            if phase.collective != "broadcast":
                call = f"allreduce(data, signal, op=pld.ReduceOp.{phase.collective.title()})"
            body.append(f"data = pld.tensor.{call}")
        lines = [line for o in phase.operations for line in o.lines]
        rounds = " + k" if phase.rounds > 1 else ""
        order = barrier(phase, lambda d, rounds=rounds: f"{done[d] + 1}{rounds}") if k != without else []
        if phase.rounds > 1:
            body += [f"for k in pl.range({phase.rounds}):"] + ["    " + line for line in lines + order]
        else:
            body += lines + order
        if order and phase.barrier != "builtin":
            for d in range(program.p) if phase.barrier == "by hand" else phase.offsets:
                done[d] += phase.rounds
    bodies[-1].append("z = pl.store(pl.load(data, [0, 0], [R, C]), [0, 0], z)")
    names = {"R": R, "C": C, "dt": f"pl.{program.dtype}", "out": "Out" if len(bodies) == 1 else "InOut"}
    parameters, kernels, calls = PARAMETERS.format(**names), "", []
    for k, body in enumerate(bodies):
        lines = "\n".join("    " + line.replace("[R, C]", f"[{R}, {C}]") for line in body)
        kernels += KERNEL.format(k=k, body=lines, parameters=parameters)
        calls.append(f"    y, z = kernel{k}(x, y, z, data, signal, arrived)")
    groups = calls if program.dispatches else ["\n".join(calls)]
    devices = "".join(DEVICE.format(k=k, calls=c, parameters=parameters) for k, c in enumerate(groups))
    loops = "".join(LOOP.format(k=k, **names) for k in range(len(groups)))
    return TEXT.format(kernels=kernels, devices=devices, loops=loops, **names)


BLOCKS_TEXT = """import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
CELLS = pl.dynamic("CELLS")


@pl.jit
def device(
    x: pl.Tensor[[{R}, {C}], {dt}],
    y: pl.Out[pl.Tensor[[{rows}, {C}], {dt}]],
    z: pl.Out[pl.Tensor[[{R}, {C}], {dt}]],
    data: pld.DistributedTensor[[{R}, {C}], {dt}],
    arrived: pld.DistributedTensor[[CELLS, {blocks}], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    n = pld.nranks(ctx)
    with pl.spmd({blocks}, name_hint="blocks"):
        b = pl.tile.get_block_idx()
        u = me * {blocks} + b
{body}
    return y, z


@pl.jit.host
def program(
    x: pl.Tensor[[NR, {R}, {C}], {dt}],
    y: pl.Out[pl.Tensor[[NR, {rows}, {C}], {dt}]],
    z: pl.Out[pl.Tensor[[NR, {R}, {C}], {dt}]],
):
    data_buf = pld.alloc_window_buffer([{R}, {C}], dtype={dt})
    arrived_buf = pld.alloc_window_buffer([pld.world_size() * {blocks}, {blocks}], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [{R}, {C}], dtype={dt})
        arrived = pld.window(arrived_buf, [pld.world_size() * {blocks}, {blocks}], dtype=pl.INT32)
        device(x[r], y[r], z[r], data, arrived, device=r)
"""


def blocks_text(program: Program) -> str:
    b, actors = program.blocks, f"(n * {program.blocks})"
    body = [
        f"y = pl.store(pl.load(x, [0, 0], [{R}, {C}]), [b * {R}, 0], y)",
        "if b == 0:",
        "    pld.tensor.put(data, me, x)",
    ]
    done = [0] * (program.p * b)
    for phase in program.phases:
        lines = [line for o in phase.operations for line in o.lines]
        rounds = " + k" if phase.rounds > 1 else ""
        everybody = phase.barrier == "by hand"
        tell, hear = [], []
        for d in range(program.p * b) if everybody else phase.offsets:
            to, of = f"(u + {d}) % {actors}", f"(u + {actors} - {d}) % {actors}"
            tell.append(f"pld.system.notify(arrived, ({to}) // {b}, [u, ({to}) % {b}], 1, op=pld.NotifyOp.AtomicAdd)")
            hear.append(f"pld.system.wait(arrived, [{of}, b], {done[d] + 1}{rounds}, cmp=pld.WaitCmp.Ge)")
            done[d] += phase.rounds
        lines += tell + hear
        body += [f"for k in pl.range({phase.rounds}):"] + ["    " + line for line in lines] if rounds else lines
    body += ["if b == 0:", f"    z = pl.store(pl.load(data, [0, 0], [{R}, {C}]), [0, 0], z)"]
    return BLOCKS_TEXT.format(
        R=R, C=C, dt=f"pl.{program.dtype}", rows=R * b, blocks=b, body="\n".join("        " + line for line in body)
    )
