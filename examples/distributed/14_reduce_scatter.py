# SPDX-License-Identifier: Apache-2.0
"""Step 14: reduce-scatter. One reduced chunk per rank.

Teaches: reduce-scatter by hand (barrier, loads, barrier); reveals pld.tensor.reduce_scatter (--use-builtin).
Run:     python examples/distributed/14_reduce_scatter.py -p a2a3sim -d 0,1,2,3 [--use-builtin] [--cost]
Expect:  OK
Next:    15_all_to_all.py
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
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[NR, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    for q in pl.range(nranks):
        row = pl.load(x, [q, 0], [1, SIZE])
        data = pl.store(row, [q, 0], data)
    signal = pld.tensor.barrier(signal)  # everyone has staged
    acc = pl.load(data, [me, 0], [1, SIZE])
    for q in pl.range(nranks):
        if q != me:
            theirs = pld.tile.remote_load(data, peer=q, offsets=[me, 0], shape=[1, SIZE])
            acc = pl.add(acc, theirs)
    signal = pld.tensor.barrier(signal)  # everyone has read
    data = pl.store(acc, [me, 0], data)
    out = pl.load(data, [me, 0], [1, SIZE])
    y = pl.store(out, [0, 0], y)
    return y


@pl.jit.incore
def by_builtin(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[NR, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    for q in pl.range(nranks):
        row = pl.load(x, [q, 0], [1, SIZE])
        data = pl.store(row, [q, 0], data)
    data = pld.tensor.reduce_scatter(data, signal, op=pld.ReduceOp.Sum)
    out = pl.load(data, [me, 0], [1, SIZE])
    y = pl.store(out, [0, 0], y)
    return y


@pl.jit
def hand_on_device(
    x: pl.Tensor[[NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[NR, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    y = by_hand(x, y, data, signal)
    return y


@pl.jit.host
def program(
    x: pl.Tensor[[NR, NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]],
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
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[NR, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    y = by_builtin(x, y, data, signal)
    return y


@pl.jit.host
def builtin_program(
    x: pl.Tensor[[NR, NR, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]],
):
    data_buf = pld.alloc_window_buffer([pld.world_size(), SIZE], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [pld.world_size(), SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        builtin_on_device(x[r], y[r], data, signal, device=r)


def golden(x: np.ndarray) -> np.ndarray:
    """y[r, 0] = sum over q of x[q, r]"""
    return x.sum(axis=0)[:, None]


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
    parser.add_argument("--cost", action="store_true", help="check the counters against the cost card")
    args = parser.parse_args()
    devices = [int(d) for d in args.device.split(",")]
    if len(devices) < 2:
        raise SystemExit(f"need at least 2 devices, got {devices}")

    n = len(devices)
    x = np.random.default_rng(14).standard_normal((n, n, SIZE), dtype=np.float32)
    y = np.zeros((n, 1, SIZE), dtype=np.float32)
    entry = builtin_program if args.use_builtin else program

    compiled = entry.compile(
        x,
        y,
        config=RunConfig(
            platform=args.platform,
            distributed_config=DistributedConfig(device_ids=devices, num_sub_workers=0),
        ),
    )
    if args.compile_only:
        print(f"compile_only done: {compiled.output_dir}")
        return 0
    compiled(x, y, config=RunConfig(platform=args.platform))
    np.testing.assert_allclose(y, golden(x), rtol=1e-5, atol=1e-4)
    if args.cost:
        card = {
            "notify_remote": 2 * (n - 1),
            "remote_load": n - 1,
            "bytes_read": (n - 1) * SIZE * 4,
            "bytes_written": 0,
        }
        check_cost(n, card)
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
