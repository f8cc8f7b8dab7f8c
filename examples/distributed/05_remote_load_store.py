# SPDX-License-Identifier: Apache-2.0
"""Step 05: remote load and store. Two faces of one ring shift.

Teaches: pld.tile.remote_load (pull), pld.tile.remote_store (push), and on which side of the barrier each belongs.
Run:     python examples/distributed/05_remote_load_store.py -p a2a3sim -d 0,1 [--mode load|store]
Expect:  OK
Next:    06_put_get.py
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
def shift_by_load(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[N_RANKS, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    my_rank = pld.rank(ctx)
    nranks = pld.nranks(ctx)

    local = pl.load(x, [0, 0], [1, SIZE])
    data = pl.store(local, [0, 0], data)  # stage

    signal = pld.tensor.barrier(signal)  # everyone has staged

    peer = (my_rank + 1) % nranks
    recv = pld.tile.remote_load(data, peer=peer, offsets=[0, 0], shape=[1, SIZE])
    y = pl.store(recv, [0, 0], y)
    return y


@pl.jit.incore
def shift_by_store(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[N_RANKS, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    my_rank = pld.rank(ctx)
    nranks = pld.nranks(ctx)

    local = pl.load(x, [0, 0], [1, SIZE])
    peer = (my_rank + 1) % nranks
    pld.tile.remote_store(local, data, peer=peer, offsets=[0, 0])  # push

    signal = pld.tensor.barrier(signal)  # everyone has pushed

    back = pl.load(data, [0, 0], [1, SIZE])  # rank (r-1) wrote it
    y = pl.store(back, [0, 0], y)
    return y


@pl.jit
def load_on_device(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[N_RANKS, 1], pl.INT32],
):
    y = shift_by_load(x, y, data, signal)
    return y


@pl.jit
def store_on_device(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[N_RANKS, 1], pl.INT32],
):
    y = shift_by_store(x, y, data, signal)
    return y


@pl.jit.host
def load_program(
    x: pl.Tensor[[N_RANKS, 1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[N_RANKS, 1, SIZE], pl.FP32]],
):
    data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([N_RANKS, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [N_RANKS, 1], dtype=pl.INT32)
        load_on_device(x[r], y[r], data, signal, device=r)


@pl.jit.host
def store_program(
    x: pl.Tensor[[N_RANKS, 1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[N_RANKS, 1, SIZE], pl.FP32]],
):
    data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([N_RANKS, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [N_RANKS, 1], dtype=pl.INT32)
        store_on_device(x[r], y[r], data, signal, device=r)


def golden(x: np.ndarray, mode: str) -> np.ndarray:
    """load: y[r] = x[(r+1) % P]; store: y[r] = x[(r-1) % P]."""
    return np.roll(x, -1 if mode == "load" else 1, axis=0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", default="0,1", help="comma-separated device ids")
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--mode", default="load", choices=["load", "store"])
    args = parser.parse_args()
    devices = [int(d) for d in args.device.split(",")]
    if len(devices) != 2:
        raise SystemExit(f"need exactly 2 devices, got {devices}")

    x = np.arange(len(devices) * SIZE, dtype=np.float32).reshape(len(devices), 1, SIZE)
    y = np.zeros_like(x)
    entry = load_program if args.mode == "load" else store_program

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
    other = "store" if args.mode == "load" else "load"
    assert np.allclose(y, golden(x, args.mode), rtol=1e-5, atol=1e-5), (
        f"{args.mode} shifts the other way (that would be {other}): {np.allclose(y, golden(x, other))}"
    )
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
