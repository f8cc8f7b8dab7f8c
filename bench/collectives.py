# SPDX-License-Identifier: Apache-2.0
"""Every collective on the simulator: time with checks and without, memory, bytes and rounds against the cost cards.

Each program stages its input in a window, runs the collective once, and copies the result out. N is the size of the
window on each rank. The result is checked with NumPy, the counters with the cost cards: bytes moved and rounds must be
what the algorithm needs, no more and no less (`bytes`: moved over needed).

Run: make bench                                    (a few sizes)
     python bench/collectives.py --full            (P = 2 ... 1024, N = 1 KiB ... 16 MiB, P x N <= 256 MiB)
     python bench/collectives.py allreduce-ring    (some)
"""

import argparse
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions, last_report

RNG = np.random.default_rng(6)
KIB, MIB = 1024, 1024 * 1024


def world(kernel: Callable, p: int, rows: int, columns: int, cells: tuple[int, int], counted: bool = False):
    """The host program around a kernel: `rows` x `columns` in, out and in the window of each rank."""

    @pl.jit
    def device(
        x: pl.Tensor[[rows, columns], pl.FP32],
        y: pl.Out[pl.Tensor[[rows, columns], pl.FP32]],
        data: pld.DistributedTensor[[rows, columns], pl.FP32],
        signal: pld.DistributedTensor[list(cells), pl.INT32],
    ):
        y = kernel(x, y, data, signal)
        return y

    @pl.jit.host
    def host(
        x: pl.Tensor[[p, rows, columns], pl.FP32],
        y: pl.Out[pl.Tensor[[p, rows, columns], pl.FP32]],
    ):
        data_buf = pld.alloc_window_buffer([rows, columns], dtype=pl.FP32)
        signal_buf = pld.alloc_window_buffer(list(cells), dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [rows, columns], dtype=pl.FP32)
            signal = pld.window(signal_buf, list(cells), dtype=pl.INT32)
            device(x[r], y[r], data, signal, device=r)

    @pl.jit
    def counting(
        x: pl.Tensor[[rows, columns], pl.FP32],
        counts: pl.Tensor[[p, 1], pl.INT32],
        y: pl.Out[pl.Tensor[[rows, columns], pl.FP32]],
        data: pld.DistributedTensor[[rows, columns], pl.FP32],
        signal: pld.DistributedTensor[list(cells), pl.INT32],
        received: pld.DistributedTensor[[p, 1], pl.INT32],
    ):
        y = kernel(x, counts, y, data, signal, received)
        return y

    @pl.jit.host
    def counting_host(
        x: pl.Tensor[[p, rows, columns], pl.FP32],
        counts: pl.Tensor[[p, p, 1], pl.INT32],
        y: pl.Out[pl.Tensor[[p, rows, columns], pl.FP32]],
    ):
        data_buf = pld.alloc_window_buffer([rows, columns], dtype=pl.FP32)
        signal_buf = pld.alloc_window_buffer(list(cells), dtype=pl.INT32)
        received_buf = pld.alloc_window_buffer([p, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [rows, columns], dtype=pl.FP32)
            signal = pld.window(signal_buf, list(cells), dtype=pl.INT32)
            received = pld.window(received_buf, [p, 1], dtype=pl.INT32)
            counting(x[r], counts[r], y[r], data, signal, received, device=r)

    return counting_host if counted else host


def staged(p: int, rows: int, columns: int, cells: tuple[int, int], collective: Callable):
    """A kernel that stages its input in the window, where `collective` works in place."""

    @pl.jit.incore
    def kernel(
        x: pl.Tensor[[rows, columns], pl.FP32],
        y: pl.Out[pl.Tensor[[rows, columns], pl.FP32]],
        data: pld.DistributedTensor[[rows, columns], pl.FP32],
        signal: pld.DistributedTensor[list(cells), pl.INT32],
    ):
        me = pld.rank(pld.get_comm_ctx(data))
        pld.tensor.put(data, me, x)
        data = collective(data, signal)
        pld.tensor.get(y, me, data)
        return y

    return world(kernel, p, rows, columns, cells)


def allreduce(mode: str, p: int, n: int):
    @pl.inline
    def mesh(data, signal):
        return pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum, mode="mesh")

    @pl.inline
    def ring(data, signal):
        return pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum, mode="ring")

    if mode == "mesh":
        return staged(p, 1, n, (p, 1), mesh)
    return staged(p, 1, n, (max(1, 2 * (p - 1)), p), ring)


def broadcast(p: int, n: int):
    @pl.inline
    def collective(data, signal):
        return pld.tensor.broadcast(data, signal, root=0)

    return staged(p, 1, n, (p, 1), collective)


def reduce_scatter(p: int, n: int):
    @pl.inline
    def collective(data, signal):
        return pld.tensor.reduce_scatter(data, signal, op=pld.ReduceOp.Sum)

    return staged(p, p, n // p, (p, 1), collective)


def barrier(p: int, n: int):
    @pl.jit.incore
    def kernel(
        x: pl.Tensor[[1, n], pl.FP32],
        y: pl.Out[pl.Tensor[[1, n], pl.FP32]],
        data: pld.DistributedTensor[[1, n], pl.FP32],
        signal: pld.DistributedTensor[[p, 1], pl.INT32],
    ):
        me = pld.rank(pld.get_comm_ctx(data))
        pld.tensor.put(data, me, x)
        signal = pld.tensor.barrier(signal)
        pld.tensor.get(y, me, data)
        return y

    return world(kernel, p, 1, n, (p, 1))


def allgather(p: int, n: int):
    columns = n // p

    @pl.jit.incore
    def kernel(
        x: pl.Tensor[[p, columns], pl.FP32],
        y: pl.Out[pl.Tensor[[p, columns], pl.FP32]],
        data: pld.DistributedTensor[[p, columns], pl.FP32],
        signal: pld.DistributedTensor[[p, 1], pl.INT32],
    ):
        me = pld.rank(pld.get_comm_ctx(data))
        data = pld.tensor.allgather(x[0:1, :], data, signal)
        pld.tensor.get(y, me, data)
        return y

    return world(kernel, p, p, columns, (p, 1))


def all_to_all(p: int, n: int):
    columns = n // p

    @pl.jit.incore
    def kernel(
        x: pl.Tensor[[p, columns], pl.FP32],
        y: pl.Out[pl.Tensor[[p, columns], pl.FP32]],
        data: pld.DistributedTensor[[p, columns], pl.FP32],
        signal: pld.DistributedTensor[[p, 1], pl.INT32],
    ):
        me = pld.rank(pld.get_comm_ctx(data))
        data = pld.tensor.all_to_all(x, data, signal)
        pld.tensor.get(y, me, data)
        return y

    return world(kernel, p, p, columns, (p, 1))


def all_to_all_v(p: int, n: int):
    columns = n // p

    @pl.jit.incore
    def kernel(
        x: pl.Tensor[[p, columns], pl.FP32],
        counts: pl.Tensor[[p, 1], pl.INT32],
        y: pl.Out[pl.Tensor[[p, columns], pl.FP32]],
        data: pld.DistributedTensor[[p, columns], pl.FP32],
        signal: pld.DistributedTensor[[p, 1], pl.INT32],
        received: pld.DistributedTensor[[p, 1], pl.INT32],
    ):
        me = pld.rank(pld.get_comm_ctx(data))
        data = pld.tensor.all_to_all_v(x, data, signal, counts, received)
        pld.tensor.get(y, me, data)
        return y

    return world(kernel, p, p, columns, (p, 1), counted=True)


# name -> (program of (P, elements), result of the inputs [P, N], bytes each rank must move over N, rounds of (P, N))
Card = tuple[Callable, Callable[[np.ndarray, int], np.ndarray], Callable[[int], float], Callable[[int, int], int]]


def _blocks(x: np.ndarray, p: int) -> np.ndarray:
    return x.reshape(p, p, -1)


def _reduced(x: np.ndarray, p: int) -> np.ndarray:
    """Rank r has the sum of row r in its row r; its other rows are as they were."""
    rows = _blocks(x, p).copy()
    total = rows.sum(axis=0, dtype=np.float64)
    for r in range(p):
        rows[r, r] = total[r]
    return rows.reshape(x.shape)


COLLECTIVES: dict[str, Card] = {
    "allreduce-mesh": (
        lambda p, n: allreduce("mesh", p, n),
        lambda x, p: np.tile(x.sum(0, dtype=np.float64), (p, 1)),
        lambda p: p - 1,
        lambda p, n: 1 + -(-n // 16384),  # a barrier after each piece
    ),
    "allreduce-ring": (
        lambda p, n: allreduce("ring", p, n),
        lambda x, p: np.tile(x.sum(0, dtype=np.float64), (p, 1)),
        lambda p: 2 * (p - 1) / p,
        lambda p, n: 2 * (p - 1) + 1,
    ),
    "broadcast": (broadcast, lambda x, p: np.tile(x[0], (p, 1)), lambda p: (p - 1) / p, lambda p, n: 2),
    "allgather": (
        allgather,
        lambda x, p: np.tile(_blocks(x, p)[:, 0].reshape(-1), (p, 1)),
        lambda p: (p - 1) / p,
        lambda p, n: 1,
    ),
    "reduce_scatter": (reduce_scatter, _reduced, lambda p: (p - 1) / p, lambda p, n: 2),
    "all_to_all": (
        all_to_all,
        lambda x, p: _blocks(x, p).swapaxes(0, 1).reshape(x.shape),
        lambda p: (p - 1) / p,
        lambda p, n: 1,
    ),
    "all_to_all_v": (
        all_to_all_v,
        lambda x, p: _blocks(x, p).swapaxes(0, 1).reshape(x.shape),
        lambda p: (p - 1) / p,
        lambda p, n: 1,
    ),
    "barrier": (barrier, lambda x, p: x, lambda p: 0, lambda p, n: 1),
}


def copy_seconds(total: int) -> float:
    """The least time of copying `total` bytes with NumPy, in pieces of at most 16 MiB."""
    a = np.ones(min(total, 16 * MIB), np.uint8)
    b = np.empty_like(a)
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        np.copyto(b, a)
        best = min(best, time.perf_counter() - start)
    return best * total / a.size


def measure(name: str, p: int, n_bytes: int, repeats: int) -> None:
    """One line of the table."""
    make, golden, least, rounds = COLLECTIVES[name]
    n = n_bytes // 4
    program = make(p, n)
    x = RNG.standard_normal((p, n), dtype=np.float32)
    y = np.zeros_like(x)
    shape = (p, 1, n) if program_rows(name) == 1 else (p, p, n // p)
    args = [x.reshape(shape), y.reshape(shape)]
    if name == "all_to_all_v":
        args.insert(1, np.ones((p, p, 1), np.int32))
    config = RunConfig(platform="a2a3sim", distributed_config=DistributedConfig(device_ids=list(range(p))))
    compiled = program.compile(*args, config=config)
    seconds = {"off": float("inf"), "default": float("inf")}
    begun = time.perf_counter()
    for turn in range(1 if repeats == 1 else 40):
        if turn > repeats and time.perf_counter() - begun > 1:
            break  # short ones are taken more often: other programs disturb them more
        for checks in seconds:
            y.fill(np.nan)
            start = time.perf_counter()
            compiled(*args, config=RunConfig(sim=SimOptions(checks=checks)))
            took = time.perf_counter() - start
            if turn > 0 or repeats == 1:  # the first turn finds cold memory
                seconds[checks] = min(seconds[checks], took)
            if turn == 0:
                np.testing.assert_allclose(y, golden(x, p), rtol=1e-4, atol=1e-3)
    comm = [r.comm for r in last_report().ranks]
    moved = sum(c["bytes_read"] + c["bytes_written"] for c in comm)
    bound = round(least(p) * n_bytes * p)
    assert moved == bound, f"{name} of {p} ranks and {n_bytes} bytes moves {moved} bytes, its card says {bound}"
    rounds_taken = {r.rounds[name.partition("-")[0]] for r in last_report().ranks}
    assert rounds_taken == {rounds(p, n_bytes)}, (
        f"{name} of {p} ranks takes {rounds_taken} rounds, its card says {rounds(p, n_bytes)}"
    )
    # What goes through memory: staging, result, and what ranks tell each other.
    through = moved + sum(c["self_bytes"] for c in comm)
    speed = copy_seconds(through) / seconds["off"] if through else 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // KIB
    ratio = f"{moved / bound:5.2f}" if bound else "    -"
    size = f"{n_bytes // MIB} MiB" if n_bytes >= MIB else f"{n_bytes // KIB} KiB"
    print(
        f"{name:<16} P {p:5} N {size:>7}  {seconds['off'] * 1e3:10.2f} ms   checks {seconds['default'] * 1e3:10.2f} ms"
        f"  {seconds['default'] / seconds['off']:5.2f} x   bytes {ratio}   {speed:5.2f} of memcpy   peak {peak} MiB",
        flush=True,
    )


def program_rows(name: str) -> int:
    """1: the window is one row; 2: one row for each rank."""
    return 1 if name.startswith(("allreduce", "broadcast", "barrier")) else 2


def cases(full: bool) -> Iterator[tuple[int, int]]:
    """World sizes and bytes per rank."""
    if not full:
        yield from ((2, MIB), (8, 64 * KIB), (64, 64 * KIB), (256, 4 * KIB))
        return
    for p in (2, 4, 8, 64, 1024):
        for n in (KIB, 4 * KIB, 64 * KIB, MIB, 16 * MIB):
            if p * n <= 256 * MIB:
                yield p, n


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(COLLECTIVES)}")
    parser.add_argument("--full", action="store_true", help="all sizes (takes long)")
    parser.add_argument("-p", "--ranks", type=int, help="one world size")
    parser.add_argument("-n", "--bytes", type=int, help="one size of the window of each rank")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", message=".*X-29")  # pieces of one staging tile are what is measured
    for name in args.names or COLLECTIVES:
        if name not in COLLECTIVES:
            parser.error(f"no collective {name!r}; there are {', '.join(COLLECTIVES)}")
        for p, n in [(args.ranks, args.bytes)] if args.ranks and args.bytes else cases(args.full):
            if program_rows(name) == 2 and n // 4 < p:
                continue  # a row for each rank
            measure(name, p, n, repeats=1 if p >= 1024 else 3)
    return 0


if __name__ == "__main__":
    sys.exit(main())
