# SPDX-License-Identifier: Apache-2.0
"""Step 15: all-to-all. A personal row from every rank to every rank.

Teaches: personalised exchange by hand (puts, barrier); reveals pld.tensor.all_to_all (--use-builtin) and
         all_to_all_v (--ragged).
Run:     python examples/distributed/15_all_to_all.py -p a2a3sim -d 0,1,2,3 [--use-builtin] [--ragged] [--cost]
Expect:  OK
Next:    16_putting_it_together.py
"""

import argparse
import sys

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, last_report

NR = pl.dynamic("NR")
SIZE = 256


@pl.jit.incore
def by_hand(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[NR, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    for q in pl.range(nranks):  # row q of x is meant for rank q; it lands in row me there
        pld.tensor.put(data, q, x, dst_offsets=[me, 0], src_offsets=[q, 0], shape=[1, SIZE])
    signal = pld.tensor.barrier(signal)  # everyone has pushed
    for q in pl.range(nranks):
        row = pl.load(data, [q, 0], [1, SIZE])
        y = pl.store(row, [q, 0], y)
    return y


@pl.jit.incore
def by_builtin(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[NR, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    data = pld.tensor.all_to_all(x, data, signal)
    nranks = pld.nranks(pld.get_comm_ctx(data))
    for q in pl.range(nranks):
        row = pl.load(data, [q, 0], [1, SIZE])
        y = pl.store(row, [q, 0], y)
    return y


@pl.jit
def hand_on_device(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[NR, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    y = by_hand(x, y, data, signal)
    return y


@pl.jit.host
def program(
    x: pl.Tensor[[NR, NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.FP32]],
):
    data_buf = pld.alloc_window_buffer([pld.world_size(), SIZE], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [pld.world_size(), SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        hand_on_device(x[r], y[r], data, signal, device=r)


@pl.jit
def builtin_on_device(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[NR, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    y = by_builtin(x, y, data, signal)
    return y


@pl.jit.host
def builtin_program(
    x: pl.Tensor[[NR, NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.FP32]],
):
    data_buf = pld.alloc_window_buffer([pld.world_size(), SIZE], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [pld.world_size(), SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        builtin_on_device(x[r], y[r], data, signal, device=r)


M = 4  # rows per block of the ragged exchange
COLS = 32


@pl.jit.incore
def by_ragged(
    x: pl.Tensor[[NR * M, COLS], pl.FP32],
    counts: pl.Tensor[[NR], pl.INT32],
    y: pl.Out[pl.Tensor[[NR * M, COLS], pl.FP32]],
    received: pl.Out[pl.Tensor[[NR, 1], pl.INT32]],
    data: pld.DistributedTensor[[NR * M, COLS], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
    recv_counts: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    data = pld.tensor.all_to_all_v(x, data, signal, counts, recv_counts)
    nranks = pld.nranks(pld.get_comm_ctx(data))
    for q in pl.range(nranks):
        n = pl.read(recv_counts, [q, 0])
        pl.write(received, [q, 0], n)
        for i in pl.range(n):  # bounded by the count: the rest of the block is unspecified
            row = pl.load(data, [q * M + i, 0], [1, COLS])
            y = pl.store(row, [q * M + i, 0], y)
    return y, received


@pl.jit
def ragged_on_device(
    x: pl.Tensor[[NR * M, COLS], pl.FP32],
    counts: pl.Tensor[[NR], pl.INT32],
    y: pl.Out[pl.Tensor[[NR * M, COLS], pl.FP32]],
    received: pl.Out[pl.Tensor[[NR, 1], pl.INT32]],
    data: pld.DistributedTensor[[NR * M, COLS], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
    recv_counts: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    y, received = by_ragged(x, counts, y, received, data, signal, recv_counts)
    return y, received


def make_ragged_program(nranks: int):
    """all_to_all_v needs a static signal, so the program is made for one world."""

    @pl.jit.host
    def ragged_program(
        x: pl.Tensor[[nranks, nranks * M, COLS], pl.FP32],
        counts: pl.Tensor[[nranks, nranks], pl.INT32],
        y: pl.Out[pl.Tensor[[nranks, nranks * M, COLS], pl.FP32]],
        received: pl.Out[pl.Tensor[[nranks, nranks, 1], pl.INT32]],
    ):
        data_buf = pld.alloc_window_buffer([nranks * M, COLS], dtype=pl.FP32)
        signal_buf = pld.alloc_window_buffer([nranks, 1], dtype=pl.INT32)
        count_buf = pld.alloc_window_buffer([nranks, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [nranks * M, COLS], dtype=pl.FP32)
            signal = pld.window(signal_buf, [nranks, 1], dtype=pl.INT32)
            recv_counts = pld.window(count_buf, [nranks, 1], dtype=pl.INT32)
            ragged_on_device(x[r], counts[r], y[r], received[r], data, signal, recv_counts, device=r)

    return ragged_program


def golden_ragged(x: np.ndarray, counts: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each source q, the first counts[q, r] rows of its block r; other rows of y keep what they had."""
    n = len(x)
    expected, received = y.copy(), np.zeros((n, n, 1), dtype=np.int32)
    for r in range(n):
        for q in range(n):
            rows = min(int(counts[q, r]), M)
            received[r, q, 0] = rows
            expected[r, q * M : q * M + rows] = x[q, r * M : r * M + rows]
    return expected, received


def golden(x: np.ndarray) -> np.ndarray:
    """y[r, q] = x[q, r]"""
    return x.swapaxes(0, 1)


def check_cost(nranks: int, card: dict[str, int]) -> None:
    """Prints rank 1's counters and checks that every rank's equal the cost card."""
    ranks = last_report().ranks
    print("cost per rank: " + ", ".join(f"{key} {ranks[1].comm[key]}" for key in card))
    for counters in ranks:
        for key, expected in card.items():
            assert counters.comm[key] == expected, (counters.rank, key, counters.comm[key], expected)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", default="0,1,2,3", help="comma-separated device ids")
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument(
        "--use-builtin", action="store_true", help="the revealed builtin instead of the hand-written kernel"
    )
    parser.add_argument("--ragged", action="store_true", help="all_to_all_v with a run-time count per block")
    parser.add_argument("--cost", action="store_true", help="check the counters against the cost card")
    args = parser.parse_args()
    devices = [int(d) for d in args.device.split(",")]
    if len(devices) < 2:
        raise SystemExit(f"need at least 2 devices, got {devices}")

    n = len(devices)
    rng = np.random.default_rng(15)
    if args.ragged:
        x = rng.standard_normal((n, n * M, COLS), dtype=np.float32)
        counts = np.array([[(me + d) % (M + 1) for d in range(n)] for me in range(n)], dtype=np.int32)
        y = np.full((n, n * M, COLS), -7.5, dtype=np.float32)
        received = np.zeros((n, n, 1), dtype=np.int32)
        arrays = [x, counts, y, received]
        expected = golden_ragged(x, counts, y)
        entry = make_ragged_program(n)
    else:
        x = rng.standard_normal((n, n, SIZE), dtype=np.float32)
        y = np.zeros((n, n, SIZE), dtype=np.float32)
        arrays = [x, y]
        entry = builtin_program if args.use_builtin else program

    compiled = entry.compile(
        *arrays,
        config=RunConfig(
            platform=args.platform,
            distributed_config=DistributedConfig(device_ids=devices, num_sub_workers=0),
        ),
    )
    if args.compile_only:
        print(f"compile_only done: {compiled.output_dir}")
        return 0
    compiled(*arrays, config=RunConfig(platform=args.platform))
    if args.ragged:
        np.testing.assert_array_equal(arrays[3], expected[1])
        np.testing.assert_allclose(arrays[2], expected[0], rtol=1e-5, atol=1e-4)
    else:
        np.testing.assert_allclose(y, golden(x), rtol=1e-5, atol=1e-4)
    if args.cost and args.ragged:
        check_cost(n, {"notify_remote": 2 * (n - 1), "put": n - 1, "bytes_written": (n - 1) * M * COLS * 4})
    elif args.cost:
        check_cost(n, {"notify_remote": n - 1, "put": n - 1, "bytes_read": 0, "bytes_written": (n - 1) * SIZE * 4})
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
