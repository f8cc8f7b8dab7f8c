# SPDX-License-Identifier: Apache-2.0
"""Step 04: a barrier from signals. Every rank tells every peer, then waits for every peer.

Teaches: pld.get_comm_ctx, pld.rank, pld.nranks, pld.system.notify(AtomicAdd), pld.system.wait(Ge);
         reveals pld.tensor.barrier (--use-builtin, with one line of remote_load as a pointer to step 05).
Run:     python examples/distributed/04_barrier.py -p a2a3sim -d 0,1 [--use-builtin]
Expect:  OK
Next:    05_remote_load_store.py
"""

import argparse
import sys

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig

N_RANKS = 2
SIZE = 64


@pl.jit.incore
def barrier_by_hand(
    y: pl.Out[pl.Tensor[[N_RANKS, 1], pl.INT32]],
    signal: pld.DistributedTensor[[N_RANKS, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(signal)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    for peer in pl.range(nranks):
        if peer != me:
            pld.system.notify(signal, peer, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)
    for src in pl.range(nranks):
        if src != me:
            pld.system.wait(signal, [src, 0], 1, cmp=pld.WaitCmp.Ge)
    # Everyone has arrived. Show our own signal column, cell by cell.
    for i in pl.range(nranks):
        arrived = pl.read(signal, [i, 0])
        pl.write(y, [i, 0], arrived)
    return y


@pl.jit
def hand_on_device(
    y: pl.Out[pl.Tensor[[N_RANKS, 1], pl.INT32]],
    signal: pld.DistributedTensor[[N_RANKS, 1], pl.INT32],
):
    y = barrier_by_hand(y, signal)
    return y


@pl.jit.host
def program(y: pl.Out[pl.Tensor[[N_RANKS, N_RANKS, 1], pl.INT32]]):
    signal_buf = pld.alloc_window_buffer([N_RANKS, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        signal = pld.window(signal_buf, [N_RANKS, 1], dtype=pl.INT32)
        hand_on_device(y[r], signal, device=r)


@pl.jit.incore
def next_by_builtin(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[N_RANKS, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    local = pl.load(x, [0, 0], [1, SIZE])
    data = pl.store(local, [0, 0], data)
    signal = pld.tensor.barrier(signal)  # what barrier_by_hand does, and it clears its cells afterwards
    # A pointer to step 05: one read from a peer shows that its store happened before.
    theirs = pld.tile.remote_load(data, peer=(me + 1) % nranks, offsets=[0, 0], shape=[1, SIZE])
    y = pl.store(theirs, [0, 0], y)
    return y


@pl.jit
def builtin_on_device(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[N_RANKS, 1], pl.INT32],
):
    y = next_by_builtin(x, y, data, signal)
    return y


@pl.jit.host
def builtin_program(
    x: pl.Tensor[[N_RANKS, 1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[N_RANKS, 1, SIZE], pl.FP32]],
):
    data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([N_RANKS, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [N_RANKS, 1], dtype=pl.INT32)
        builtin_on_device(x[r], y[r], data, signal, device=r)


def golden(n: int) -> np.ndarray:
    """Cell i of rank r is 1, its own cell 0."""
    return (1 - np.eye(n, dtype=np.int32))[:, :, None]


def golden_builtin(x: np.ndarray) -> np.ndarray:
    return np.roll(x, -1, axis=0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", default="0,1", help="comma-separated device ids")
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--use-builtin", action="store_true", help="pld.tensor.barrier instead of the hand-written one")
    args = parser.parse_args()
    devices = [int(d) for d in args.device.split(",")]
    if len(devices) != 2:
        raise SystemExit(f"need exactly 2 devices, got {devices}")

    n = len(devices)
    if args.use_builtin:
        x = np.random.default_rng(4).standard_normal((n, 1, SIZE), dtype=np.float32)
        arrays = [x, np.zeros_like(x)]
        entry, expected = builtin_program, golden_builtin(x)
    else:
        arrays = [np.full((n, n, 1), -1, dtype=np.int32)]
        entry, expected = program, golden(n)

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
    np.testing.assert_array_equal(arrays[-1], expected)
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
