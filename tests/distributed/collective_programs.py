# SPDX-License-Identifier: Apache-2.0
"""Programs around one collective, made from random parameters, and what NumPy says they compute (03 section 7).

`draw` makes a case, `source` its program (inputs x, outputs y and the signal's cells afterwards), `golden` its results
bit for bit: C-12 fixes the order of every reduction.
"""

import math
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np

DTYPES = {"FP32": np.float32, "FP16": np.float16, "BF16": ml_dtypes.bfloat16, "INT32": np.int32}
OPS = {"Sum": np.add, "Max": np.maximum, "Min": np.minimum, "Prod": np.multiply}
REDUCTIONS = ("allreduce", "reduce_scatter")
KINDS = ("allreduce", "allreduce", "broadcast", "allgather", "reduce_scatter", "all_to_all", "all_to_all_v", "barrier")
PIECE = 64  # columns moved at a time where the extent is known at run time only


@dataclass(frozen=True)
class Case:
    kind: str
    host: bool  # rail
    world: int
    first: int  # the domain is first .. world
    size: int  # elements per row
    shape: tuple[int, ...]  # of the target of allreduce and broadcast: the same elements in another view
    dtype: str
    op: str
    ring: bool
    root: int
    blocks: int  # core_num
    lanes: int  # columns of a host signal; 0: rank 1; -1: none given
    repeats: int
    late: int  # rank of the domain that is slow, or -1
    symbols: bool  # rank count and size known at run time only
    rows: int  # rows per block of all_to_all_v

    @property
    def ranks(self) -> int:
        return self.world - self.first

    @property
    def per_rank(self) -> int:
        """Rows of x."""
        return {"reduce_scatter": self.ranks, "all_to_all": self.ranks, "all_to_all_v": self.ranks * self.rows}.get(
            self.kind, 1
        )

    @property
    def target_rows(self) -> int:
        return self.ranks if self.kind == "allgather" else self.per_rank


def factors(n: int, rng) -> tuple[int, ...]:
    """Some packed shape of n elements."""
    divisors = [d for d in range(1, n + 1) if n % d == 0]
    a = int(rng.choice(divisors))
    b = int(rng.choice([d for d in divisors if (n // a) % d == 0]))
    return [(n,), (1, n), (a, n // a), (a, b, n // a // b)][rng.integers(4)]


def draw(rng, big: bool = False) -> Case:
    kind = str(rng.choice(KINDS))
    host = bool(rng.integers(2))
    ranks = int(rng.integers(1, 10))
    whole = bool(rng.random() < 0.7)
    first = 0 if whole else int(rng.integers(0, 3))
    symbols = whole and kind not in ("broadcast", "all_to_all_v") and bool(rng.random() < 0.4)
    sizes = [1, 7, 8, 63, 64, 257, 300, 1000] + ([4097, 9001] if big else [])
    size = int(rng.choice(sizes))
    if symbols and rng.random() < 0.15:
        size = 0
    ring = kind == "allreduce" and bool(rng.integers(2))
    blocks = int(rng.integers(1, 6)) if kind == "allreduce" and host and not ring and rng.random() < 0.6 else 1
    lanes = int(rng.choice([1, 4])) if blocks == 1 else blocks + int(rng.integers(0, 2))
    repeats = int(rng.integers(1, 4))
    if host and blocks == 1 and rng.random() < 0.4:
        lanes = 0
    if kind == "all_to_all_v" or (kind != "allreduce" and lanes > 1):
        lanes = 1
    if kind == "allreduce" and host and rng.random() < 0.3:
        lanes = -1
    if not host:
        lanes = 1
    dtype = str(rng.choice(list(DTYPES)))
    if host and kind not in (*REDUCTIONS, "barrier"):
        dtype = "FP32"  # C-44 - C-48
    return Case(
        kind=kind,
        host=host,
        world=first + ranks,
        first=first,
        size=size,
        shape=(1, size) if symbols or size == 0 else factors(size, rng),
        dtype=dtype,
        op=str(rng.choice(list(OPS))),
        ring=ring,
        root=int(rng.integers(ranks)),
        blocks=blocks,
        lanes=lanes,
        repeats=repeats,
        late=int(rng.integers(ranks)) if rng.random() < 0.3 else -1,
        symbols=symbols,
        rows=int(rng.integers(1, 4)),
    )


def other_rail(case: Case) -> Case | None:
    """The same computation on the other rail, where it exists there."""
    if case.host:
        return replace(case, host=False, blocks=1, lanes=1)
    if case.dtype == "FP32" or case.kind in (*REDUCTIONS, "barrier"):
        return replace(case, host=True, lanes=1)
    return None


# ---------------------------------------------------------------- data and golden


def arrays(case: Case, seed: int) -> list[np.ndarray]:
    """x, counts (of all_to_all_v), y and cells; every output element is to be written or to stay as it is."""
    rng = np.random.default_rng(seed)
    shape = (case.world, case.repeats * case.per_rank, case.size)
    dtype = DTYPES[case.dtype]
    if dtype is np.int32:
        x = rng.integers(-3, 4, shape).astype(dtype) if case.op == "Prod" else rng.integers(-(2**20), 2**20, shape)
    elif case.op == "Prod":
        x = rng.choice([-1.5, -1.0, 0.75, 1.25, 2.0], shape)
    else:
        x = rng.standard_normal(shape) * 3
    y = np.full((case.world, case.repeats * case.target_rows, case.size), 99, dtype=np.float32).astype(dtype)
    counts = rng.integers(0, case.rows + 1, (case.world, case.repeats, case.ranks)).astype(np.int32)
    cells = np.full((case.world, *cells_shape(case)), -9, dtype=np.int32)
    return [x.astype(dtype), counts, y, cells]


def cells_shape(case: Case) -> tuple[int, int]:
    if case.ring:
        return 2 * (case.ranks - 1) + 1, case.ranks
    return case.ranks, max(case.lanes, 1)


def reduced(case: Case, parts, me: int):
    op = OPS[case.op]
    acc = parts[me]
    for q in range(len(parts)):
        if q != me:
            acc = op(acc, parts[q])
    return acc


def ring_reduced(case: Case, parts):
    """03 L-6: segment g starts with rank g + 1 and goes round to g, each combining its own value with the partial."""
    p, n = len(parts), parts[0].size
    narrow = parts[0].dtype.itemsize == 2
    out = parts[0].copy()
    bounds = [
        g * n // p if g in (0, p) or not narrow else min(n, math.ceil((g * n // p) / 16) * 16) for g in range(p + 1)
    ]
    for g in range(p):
        piece = slice(bounds[g], bounds[g + 1])
        acc = parts[(g + 1) % p][piece]
        for k in range(2, p + 1):
            acc = OPS[case.op](parts[(g + k) % p][piece], acc)
        out[piece] = acc
    return out


def golden(case: Case, x, counts, y):
    """y afterwards."""
    out = y.copy()
    members = range(case.first, case.world)
    for k in range(case.repeats):
        block = [x[r, k * case.per_rank : (k + 1) * case.per_rank] for r in members]
        for me in range(case.ranks):
            rows = slice(k * case.target_rows, (k + 1) * case.target_rows)
            result = out[case.first + me, rows]
            with np.errstate(all="ignore"):
                if case.kind == "allreduce":
                    parts = [b[0] for b in block]
                    result[0] = ring_reduced(case, parts) if case.ring else reduced(case, parts, me)
                elif case.kind == "broadcast":
                    result[:] = block[case.root]
                elif case.kind == "allgather":
                    result[:] = np.concatenate(block)
                elif case.kind == "reduce_scatter":
                    result[:] = block[me]
                    result[me] = reduced(case, [b[me] for b in block], me)
                elif case.kind == "all_to_all":
                    result[:] = np.stack([b[me] for b in block])
                elif case.kind == "all_to_all_v":
                    for q in range(case.ranks):
                        n = counts[case.first + q, k, me]
                        result[q * case.rows : q * case.rows + n] = block[q][me * case.rows : me * case.rows + n]
                else:
                    result[:] = block[(me + 1) % case.ranks]
    return out


# ---------------------------------------------------------------- the program's text


def source(case: Case) -> str:
    return HEAD + (host_text(case) if case.host else kernel_text(case))


HEAD = """import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
S = pl.dynamic("S")
"""


def names(case: Case) -> dict:
    """The dimensions as the program writes them."""
    ranks = "NR" if case.symbols else str(case.ranks)
    size = "S" if case.symbols else str(case.size)
    world = "pld.world_size()" if case.symbols else str(case.ranks)
    dtype = f"pl.{case.dtype}"
    rows = {"allgather": ranks, "reduce_scatter": ranks, "all_to_all": ranks}.get(case.kind, str(case.target_rows))
    x_rows = (
        ranks if case.per_rank == case.ranks and case.kind in ("reduce_scatter", "all_to_all") else str(case.per_rank)
    )
    if case.ring:
        cells = (f"2 * ({ranks} - 1) + 1", ranks)
        host_cells = (f"2 * ({world} - 1) + 1", world)
    else:
        cells = (ranks, str(max(case.lanes, 1)))
        host_cells = (world, cells[1])
    host_rows = world if rows == ranks and case.kind in ("allgather", "reduce_scatter", "all_to_all") else rows
    return {
        "ranks": ranks,
        "size": size,
        "dtype": dtype,
        "rows": rows,
        "host_rows": host_rows,
        "x_rows": x_rows,
        "cells": ", ".join(cells),
        "host_cells": ", ".join(host_cells),
        "rounds": case.repeats,
        "loop": "pl.range(pld.world_size())" if case.first == 0 else f"pl.range({case.first}, {case.world})",
        "row_type": f"pl.Tensor[[{{}}, {size}], {dtype}]",
    }


def rows_times(count: str, rounds: int) -> str:
    return count if rounds == 1 else f"{rounds} * {count}"


def copy_text(case: Case, rows: str, src: str, src_row: str, dst: str, dst_row: str, indent: str) -> str:
    """Rows of one matrix to another through a tile."""
    out = f"{indent}for i in pl.range({rows}):\n"
    if case.symbols:
        out += f"{indent}    for c in pl.range((S + {PIECE - 1}) // {PIECE}):\n"
        out += f"{indent}        n = pl.min({PIECE}, S - c * {PIECE})\n"
        out += f"{indent}        piece = pl.load({src}, [{src_row}, c * {PIECE}], [1, {PIECE}], valid_shape=[1, n])\n"
        return out + f"{indent}        {dst} = pl.store(piece, [{dst_row}, c * {PIECE}], {dst})\n"
    out += f"{indent}    piece = pl.load({src}, [{src_row}, 0], [1, {case.size}])\n"
    return out + f"{indent}    {dst} = pl.store(piece, [{dst_row}, 0], {dst})\n"


def read_cells(indent: str, n: dict) -> str:
    rows, cols = n["cells"].rsplit(", ", 1)
    return (
        f"{indent}for i in pl.range({rows}):\n"
        f"{indent}    for j in pl.range({cols}):\n"
        f"{indent}        pl.write(cells, [i, j], pl.read(signal, [i, j]))\n"
    )


def call_text(case: Case) -> str:
    """The collective, its result bound again."""
    on_host = f", core_num={case.blocks}" if case.host and case.blocks > 1 else ""
    signal = "" if case.host and case.lanes < 0 else ", signal"
    return {
        "allreduce": f"win = pld.tensor.allreduce(win{signal}, op=pld.ReduceOp.{case.op}, "
        f'mode="{"ring" if case.ring else "mesh"}"{on_host})',
        "broadcast": f"win = pld.tensor.broadcast(win, signal, root={case.root})",
        "allgather": "win = pld.tensor.allgather(own, win, signal)",
        "reduce_scatter": f"win = pld.tensor.reduce_scatter(win, signal, op=pld.ReduceOp.{case.op})",
        "all_to_all": "win = pld.tensor.all_to_all(own, win, signal)",
        "all_to_all_v": "win = pld.tensor.all_to_all_v(own, win, signal, send, got)",
        "barrier": "signal = pld.tensor.barrier(signal)",
    }[case.kind]


def receive_text(case: Case, n: dict, row: str, indent: str) -> str:
    """The result in this rank's window to y."""
    if case.kind == "barrier":
        put = copy_text(case, "1", "win", "0", "y", row, indent)
        peer = "peer=(me + 1) % P, "
        return put.replace("pl.load(win, ", f"pld.tile.remote_load(win, {peer}offsets=").replace("], [1", "], shape=[1")
    if case.kind == "all_to_all_v":
        out = f"{indent}for q in pl.range(P):\n"
        return out + copy_text(
            case,
            "pl.read(got, [q, 0])",
            "win",
            f"q * {case.rows} + i",
            "y",
            f"{row} + q * {case.rows} + i",
            indent + "    ",
        )
    rows = n["rows"] if n["rows"] != n["ranks"] else "P"
    return copy_text(
        case, rows, "flat" if case.kind in ("allreduce", "broadcast") else "win", "i", "y", f"{row} + i", indent
    )


def kernel_text(case: Case) -> str:
    n = names(case)
    rank2 = case.kind in ("allreduce", "broadcast")
    win_shape = f"1, {n['size']}" if case.symbols else ", ".join(map(str, case.shape))
    win = f"[{win_shape}]" if rank2 else f"[{n['rows']}, {n['size']}]"
    host_win = win if rank2 else f"[{n['host_rows']}, {n['size']}]"
    x_all, y_all = rows_times(n["x_rows"], case.repeats), rows_times(n["rows"], case.repeats)
    pushes = case.kind in ("allgather", "all_to_all", "all_to_all_v")
    plain = [
        f"x: pl.Tensor[[{x_all}, {n['size']}], {n['dtype']}]",
        f"counts: pl.Tensor[[{case.repeats}, {n['ranks']}], pl.INT32]",
        f"y: pl.Out[pl.Tensor[[{y_all}, {n['size']}], {n['dtype']}]]",
        f"cells: pl.Out[pl.Tensor[[{n['cells']}], pl.INT32]]",
    ]
    windows = [
        f"flat: pld.DistributedTensor[[{n['rows']}, {n['size']}], {n['dtype']}]",
        f"win: pld.DistributedTensor[{win}, {n['dtype']}]",
        f"got: pld.DistributedTensor[[{n['ranks']}, 1], pl.INT32]",
        f"signal: pld.DistributedTensor[[{n['cells']}], pl.INT32]",
    ]
    if pushes:  # these take a plain matrix per round
        plain[0] = f"x: pl.Tensor[[{case.repeats}, {n['x_rows']}, {n['size']}], {n['dtype']}]"
    params = "".join(f"    {p},\n" for p in plain + windows)
    body = "    ctx = pld.get_comm_ctx(win)\n    me = pld.rank(ctx)\n    P = pld.nranks(ctx)\n"
    for k in range(case.repeats):
        if case.kind == "all_to_all_v":
            body += f"    send = pl.reshape(counts[{k} : {k + 1}, :], [{n['ranks']}])\n"
        if pushes:
            body += f"    own = pl.reshape(x[{k} : {k + 1}, :, :], [{n['x_rows']}, {n['size']}])\n"
        else:
            stage = "flat" if rank2 else "win"
            if case.kind == "broadcast":
                body += f"    if me == {case.root}:\n"
            body += copy_text(
                case,
                n["x_rows"] if n["x_rows"] != n["ranks"] else "P",
                "x",
                f"{k} * {n['x_rows']} + i" if n["x_rows"] != n["ranks"] else f"{k} * P + i",
                stage,
                "i",
                "        " if case.kind == "broadcast" else "    ",
            )
        body += f"    {call_text(case)}\n"
        body += receive_text(case, n, f"{k} * {n['rows']}" if n["rows"] != n["ranks"] else f"{k} * P", "    ")
        if pushes or case.kind == "barrier":
            body += "    signal = pld.tensor.barrier(signal)\n"
    body += read_cells("    ", n)
    args = ", ".join(p.partition(":")[0] for p in plain + windows)
    host_params = "".join(f"    {p},\n" for p in lifted(plain, str(case.world) if not case.symbols else "NR"))
    return f"""

@pl.jit.incore
def kernel(
{params}):
{body}    return y, cells


@pl.jit
def on_device(
{params}):
    y, cells = kernel({args})
    return y, cells


@pl.jit.host
def program(
{host_params}):
    buf = pld.alloc_window_buffer({host_win}, dtype={n["dtype"]})
    got_buf = pld.alloc_window_buffer([{n["host_cells"].split(",")[0] if not case.ring else n["ranks"]}, 1], dtype=pl.INT32)
    signal_buf = pld.alloc_window_buffer([{n["host_cells"]}], dtype=pl.INT32)
    for r in {n["loop"]}:
        flat = pld.window(buf, [{n["host_rows"]}, {n["size"]}], dtype={n["dtype"]})
        win = pld.window(buf, {host_win}, dtype={n["dtype"]})
        got = pld.window(got_buf, [{n["host_cells"].split(",")[0] if not case.ring else n["ranks"]}, 1], dtype=pl.INT32)
        signal = pld.window(signal_buf, [{n["host_cells"]}], dtype=pl.INT32)
        on_device(x[r], counts[r], y[r], cells[r], flat, win, got, signal, device=r)
"""


def lifted(params, world: str):
    """The same parameters with one slice per rank."""
    return [p.replace("pl.Tensor[[", f"pl.Tensor[[{world}, ") for p in params]


def host_text(case: Case) -> str:
    n = names(case)
    rank2 = case.kind in ("allreduce", "broadcast")
    win_shape = f"1, {n['size']}" if case.symbols else ", ".join(map(str, case.shape))
    host_win = f"[{win_shape}]" if rank2 else f"[{n['host_rows']}, {n['size']}]"
    moves = case.kind in ("allgather", "all_to_all", "all_to_all_v")
    stage = "own" if moves else "flat"
    x_type = f"pl.Tensor[[{n['x_rows']}, {n['size']}], {n['dtype']}]"
    y_type = f"pl.Tensor[[{n['rows']}, {n['size']}], {n['dtype']}]"
    world = "NR" if case.symbols else str(case.world)
    ranks = "pld.world_size()" if case.symbols else str(case.ranks)
    x_rows_host = ranks if n["x_rows"] == n["ranks"] and case.kind in ("reduce_scatter", "all_to_all") else n["x_rows"]
    signal = f"[{ranks}]" if case.lanes == 0 and not case.ring else f"[{n['host_cells']}]"
    given = case.lanes >= 0
    no_loop = not given or case.kind == "all_to_all_v"
    count = n["x_rows"] if n["x_rows"] != n["ranks"] else "P"
    publish = copy_text(case, count, "x", "i", "w", "i", "    ")
    if case.kind == "broadcast":
        publish = f"    if me == {case.root}:\n" + copy_text(case, count, "x", "i", "w", "i", "        ")
    if case.kind == "all_to_all_v":
        publish += "    for i in pl.range(P):\n        pl.write(send, [i, 0], pl.read(counts, [i]))\n"
    take = receive_text(case, n, "0", "    ").replace("(flat,", "(win,")
    got = ", got" if case.kind == "all_to_all_v" else ""
    got_param = f"    got: pld.DistributedTensor[[{n['ranks']}, 1], pl.INT32],\n" if got else ""
    send = ", counts[{k}, r], send" if got else ""
    send_params = (
        f"    counts: pl.Tensor[[{n['ranks']}], pl.INT32],\n"
        f"    send: pld.DistributedTensor[[{n['ranks']}, 1], pl.INT32],\n"
        if got
        else ""
    )
    src_rows = n["x_rows"] if moves else n["rows"]
    call = call_text(case)
    buffers = f"    buf = pld.alloc_window_buffer({host_win}, dtype={n['dtype']})\n"
    buffers += f"    flat = pld.window(buf, [{n['host_rows']}, {n['size']}], dtype={n['dtype']})\n"
    buffers += f"    win = pld.window(buf, {host_win}, dtype={n['dtype']})\n"
    if moves:
        buffers += f"    own_buf = pld.alloc_window_buffer([{x_rows_host}, {n['size']}], dtype={n['dtype']})\n"
        buffers += f"    own = pld.window(own_buf, [{x_rows_host}, {n['size']}], dtype={n['dtype']})\n"
    if got:
        for name in ("send", "got"):
            buffers += f"    {name}_buf = pld.alloc_window_buffer([{ranks}, 1], dtype=pl.INT32)\n"
            buffers += f"    {name} = pld.window({name}_buf, [{ranks}, 1], dtype=pl.INT32)\n"
    if given:
        buffers += f"    signal_buf = pld.alloc_window_buffer({signal}, dtype=pl.INT32)\n"
        buffers += f"    signal = pld.window(signal_buf, {signal}, dtype=pl.INT32)\n"

    def one_round(k: str, indent: str) -> str:
        out = f"{indent}for r in {n['loop']}:\n{indent}    publish(x[{k}, r]{send.format(k=k)}, {stage}, device=r)\n"
        out += f"{indent}{call}\n"
        out += f"{indent}for r in {n['loop']}:\n{indent}    take(y[{k}, r], flat{got}, device=r)\n"
        if moves or case.kind == "barrier":
            out += f"{indent}signal = pld.tensor.barrier(signal)\n"
        return out

    if no_loop:
        rounds = "".join(one_round(str(k), "    ") for k in range(case.repeats))
    else:
        rounds = f"    for k in pl.range({case.repeats}):\n" + one_round("k", "        ")
    show = f"    for r in {n['loop']}:\n        show(cells[r], signal, device=r)\n" if given else ""
    prologue = "    ctx = pld.get_comm_ctx({w})\n    me = pld.rank(ctx)\n    P = pld.nranks(ctx)\n"
    return f"""

@pl.jit.incore
def publish_kernel(
    x: {x_type},
{send_params}    w: pld.DistributedTensor[[{src_rows}, {n["size"]}], {n["dtype"]}],
):
{prologue.format(w="w")}{publish}    return w


@pl.jit
def publish(
    x: {x_type},
{send_params}    w: pld.DistributedTensor[[{src_rows}, {n["size"]}], {n["dtype"]}],
):
    w = publish_kernel(x{", counts, send" if got else ""}, w)
    return w


@pl.jit.incore
def take_kernel(
    y: pl.Out[{y_type}],
    win: pld.DistributedTensor[[{n["rows"]}, {n["size"]}], {n["dtype"]}],
{got_param}):
{prologue.format(w="win")}{take}    return y


@pl.jit
def take(
    y: pl.Out[{y_type}],
    win: pld.DistributedTensor[[{n["rows"]}, {n["size"]}], {n["dtype"]}],
{got_param}):
    y = take_kernel(y, win{got})
    return y


@pl.jit.incore
def show_kernel(
    cells: pl.Out[pl.Tensor[[{n["cells"]}], pl.INT32]], signal: pld.DistributedTensor[[{n["cells"]}], pl.INT32]
):
{read_cells("    ", n)}    return cells


@pl.jit
def show(cells: pl.Out[pl.Tensor[[{n["cells"]}], pl.INT32]], signal: pld.DistributedTensor[[{n["cells"]}], pl.INT32]):
    cells = show_kernel(cells, signal)
    return cells


@pl.jit.host
def program(
    x: pl.Tensor[[{case.repeats}, {world}, {n["x_rows"]}, {n["size"]}], {n["dtype"]}],
    counts: pl.Tensor[[{case.repeats}, {world}, {n["ranks"]}], pl.INT32],
    y: pl.InOut[pl.Tensor[[{case.repeats}, {world}, {n["rows"]}, {n["size"]}], {n["dtype"]}]],
    cells: pl.Out[pl.Tensor[[{world}, {n["cells"]}], pl.INT32]],
):
{buffers}{rounds}{show}"""


def call_arrays(case: Case, arrays_):
    """The arrays in the shapes that the program of this rail takes."""
    x, counts, y, cells = arrays_
    if case.host:
        split = lambda a, rows: np.ascontiguousarray(  # noqa: E731
            a.reshape(case.world, case.repeats, rows, case.size).swapaxes(0, 1)
        )
        return [split(x, case.per_rank), np.ascontiguousarray(counts.swapaxes(0, 1)), split(y, case.target_rows), cells]
    if case.kind in ("allgather", "all_to_all", "all_to_all_v"):
        return [x.reshape(case.world, case.repeats, case.per_rank, case.size), counts, y, cells]
    return [x, counts, y, cells]


def results(case: Case, call) -> np.ndarray:
    """y of a call in the shape of `golden`."""
    y = call[2]
    return y.swapaxes(0, 1).reshape(case.world, case.repeats * case.target_rows, case.size) if case.host else y
