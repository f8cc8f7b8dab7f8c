# SPDX-License-Identifier: Apache-2.0
"""Step 09: all-reduce, version 2 (two phases). Reduce-scatter, then all-gather.

Teaches: the same result for 2*(P-1)/P*N bytes: each rank reduces one chunk and reads the others' results.
Run:     python examples/distributed/09_allreduce_two_phase.py -p a2a3sim -d 0,1,2,3 [--cost]
Expect:  OK
Next:    10_allreduce_ring.py
"""

import argparse
import sys

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, last_report

NR = pl.dynamic("NR")
CH = 64  # elements per chunk; chunk q belongs to rank q


@pl.jit.incore
def allreduce_two_phase(
    x: pl.Tensor[[NR, CH], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, CH], pl.FP32]],
    data: pld.DistributedTensor[[NR, CH], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    for q in pl.range(nranks):
        row = pl.load(x, [q, 0], [1, CH])
        data = pl.store(row, [q, 0], data)
    signal = pld.tensor.barrier(signal)  # everyone has staged

    # Phase 1, reduce-scatter: my chunk, summed over all ranks.
    acc = pl.load(data, [me, 0], [1, CH])
    for q in pl.range(nranks):
        if q != me:
            theirs = pld.tile.remote_load(data, peer=q, offsets=[me, 0], shape=[1, CH])
            acc = pl.add(acc, theirs)
    data = pl.store(acc, [me, 0], data)
    signal = pld.tensor.barrier(signal)  # every chunk is reduced

    # Phase 2, all-gather: chunk q from its owner.
    for q in pl.range(nranks):
        if q == me:
            y = pl.store(acc, [q, 0], y)
        else:
            reduced = pld.tile.remote_load(data, peer=q, offsets=[q, 0], shape=[1, CH])
            y = pl.store(reduced, [q, 0], y)
    return y


@pl.jit
def on_device(
    x: pl.Tensor[[NR, CH], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, CH], pl.FP32]],
    data: pld.DistributedTensor[[NR, CH], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    y = allreduce_two_phase(x, y, data, signal)
    return y


@pl.jit.host
def program(
    x: pl.Tensor[[NR, NR, CH], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, NR, CH], pl.FP32]],
):
    data_buf = pld.alloc_window_buffer([pld.world_size(), CH], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [pld.world_size(), CH], dtype=pl.FP32)
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        on_device(x[r], y[r], data, signal, device=r)


def golden(x: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x.sum(axis=0), x.shape)


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
    parser.add_argument("--cost", action="store_true", help="check the counters against the cost card")
    args = parser.parse_args()
    devices = [int(d) for d in args.device.split(",")]
    if len(devices) < 2:
        raise SystemExit(f"need at least 2 devices, got {devices}")

    n = len(devices)
    x = np.random.default_rng(9).standard_normal((n, n, CH), dtype=np.float32)
    y = np.zeros_like(x)

    compiled = program.compile(
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
        loads = 2 * (n - 1)
        check_cost(n, {"notify_remote": loads, "remote_load": loads, "bytes_read": loads * CH * 4, "bytes_written": 0})
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
