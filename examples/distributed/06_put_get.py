# SPDX-License-Identifier: Apache-2.0
"""Step 06: put and get. Push and pull whole slices without a tile.

Teaches: pld.tensor.put, pld.tensor.get, pld.AtomicType; a point-to-point handshake (one notify, one wait).
Run:     python examples/distributed/06_put_get.py -p a2a3sim -d 0,1 [--mode put|get]
Expect:  OK
Next:    07_dynamic_rank_count.py
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
def shift_by_put(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    src: pld.DistributedTensor[[1, SIZE], pl.FP32],
    dst: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[1, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(dst)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    right = (me + 1) % nranks

    local = pl.load(x, [0, 0], [1, SIZE])
    src = pl.store(local, [0, 0], src)
    pld.tensor.put(dst, right, src, atomic=pld.AtomicType.None_)
    pld.system.notify(signal, right, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)  # "your slice is written"
    pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)  # rank (r-1) says so of ours
    back = pl.load(dst, [0, 0], [1, SIZE])
    y = pl.store(back, [0, 0], y)
    return y


@pl.jit.incore
def shift_by_get(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    src: pld.DistributedTensor[[1, SIZE], pl.FP32],
    dst: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[1, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(src)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    left = (me + nranks - 1) % nranks
    right = (me + 1) % nranks

    local = pl.load(x, [0, 0], [1, SIZE])
    src = pl.store(local, [0, 0], src)
    pld.system.notify(signal, left, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)  # left reads from me: "staged"
    pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)  # right, whom I read from, says the same
    pld.tensor.get(dst, right, src)
    back = pl.load(dst, [0, 0], [1, SIZE])
    y = pl.store(back, [0, 0], y)
    return y


@pl.jit
def put_on_device(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    src: pld.DistributedTensor[[1, SIZE], pl.FP32],
    dst: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[1, 1], pl.INT32],
):
    y = shift_by_put(x, y, src, dst, signal)
    return y


@pl.jit.host
def put_program(
    x: pl.Tensor[[N_RANKS, 1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[N_RANKS, 1, SIZE], pl.FP32]],
):
    src_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    dst_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        src = pld.window(src_buf, [1, SIZE], dtype=pl.FP32)
        dst = pld.window(dst_buf, [1, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [1, 1], dtype=pl.INT32)
        put_on_device(x[r], y[r], src, dst, signal, device=r)


@pl.jit
def get_on_device(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    src: pld.DistributedTensor[[1, SIZE], pl.FP32],
    dst: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[1, 1], pl.INT32],
):
    y = shift_by_get(x, y, src, dst, signal)
    return y


@pl.jit.host
def get_program(
    x: pl.Tensor[[N_RANKS, 1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[N_RANKS, 1, SIZE], pl.FP32]],
):
    src_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    dst_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        src = pld.window(src_buf, [1, SIZE], dtype=pl.FP32)
        dst = pld.window(dst_buf, [1, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [1, 1], dtype=pl.INT32)
        get_on_device(x[r], y[r], src, dst, signal, device=r)


def golden(x: np.ndarray, mode: str) -> np.ndarray:
    """put: y[r] = x[(r-1) % P]; get: y[r] = x[(r+1) % P]."""
    return np.roll(x, 1 if mode == "put" else -1, axis=0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", default="0,1", help="comma-separated device ids")
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--mode", default="put", choices=["put", "get"])
    args = parser.parse_args()
    devices = [int(d) for d in args.device.split(",")]
    if len(devices) != 2:
        raise SystemExit(f"need exactly 2 devices, got {devices}")

    x = np.random.default_rng(6).standard_normal((len(devices), 1, SIZE), dtype=np.float32)
    y = np.zeros_like(x)
    entry = put_program if args.mode == "put" else get_program

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
    np.testing.assert_allclose(y, golden(x, args.mode), rtol=1e-5, atol=1e-5)
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
