# SPDX-License-Identifier: Apache-2.0
"""Step 12: broadcast. One rank's slice to everyone.

Teaches: broadcast by hand (barrier, get, barrier); reveals pld.tensor.broadcast (--use-builtin).
Run:     python examples/distributed/12_broadcast.py -p a2a3sim -d 0,1,2,3 [--use-builtin] [--root R] [--cost]
Expect:  OK
Next:    13_allgather.py
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


def make_program(root: int, builtin: bool):
    """The program for one root; the root is a compile-time constant on every rank."""

    @pl.jit.incore
    def by_hand(
        x: pl.Tensor[[1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        data: pld.DistributedTensor[[1, SIZE], pl.FP32],
        signal: pld.DistributedTensor[[NR, 1], pl.INT32],
    ):
        ctx = pld.get_comm_ctx(data)
        me = pld.rank(ctx)
        if me == root:
            own = pl.load(x, [0, 0], [1, SIZE])
            data = pl.store(own, [0, 0], data)
        signal = pld.tensor.barrier(signal)  # root has staged
        if me != root:
            pld.tensor.get(data, root, data)
        signal = pld.tensor.barrier(signal)  # everyone has read: root may overwrite
        out = pl.load(data, [0, 0], [1, SIZE])
        y = pl.store(out, [0, 0], y)
        return y

    @pl.jit.incore
    def by_builtin(
        x: pl.Tensor[[1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        data: pld.DistributedTensor[[1, SIZE], pl.FP32],
        signal: pld.DistributedTensor[[NR, 1], pl.INT32],
    ):
        ctx = pld.get_comm_ctx(data)
        me = pld.rank(ctx)
        if me == root:
            own = pl.load(x, [0, 0], [1, SIZE])
            data = pl.store(own, [0, 0], data)
        data = pld.tensor.broadcast(data, signal, root=root)
        out = pl.load(data, [0, 0], [1, SIZE])
        y = pl.store(out, [0, 0], y)
        return y

    kernel = by_builtin if builtin else by_hand

    @pl.jit
    def on_device(
        x: pl.Tensor[[1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        data: pld.DistributedTensor[[1, SIZE], pl.FP32],
        signal: pld.DistributedTensor[[NR, 1], pl.INT32],
    ):
        y = kernel(x, y, data, signal)
        return y

    @pl.jit.host
    def program(
        x: pl.Tensor[[NR, 1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]],
    ):
        data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
        signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
            signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
            on_device(x[r], y[r], data, signal, device=r)

    return program


def golden(x: np.ndarray, root: int) -> np.ndarray:
    return np.broadcast_to(x[root], x.shape)


def check_cost(nranks: int, root: int) -> None:
    """Two rounds; everyone but the root gets N bytes."""
    for counters in last_report().ranks:
        expected = {"notify_remote": 2 * (nranks - 1), "get": int(counters.rank != root), "bytes_written": 0}
        expected["bytes_read"] = expected["get"] * SIZE * 4
        for key, value in expected.items():
            assert counters.comm[key] == value, (counters.rank, key, counters.comm[key], value)
    print(f"cost per non-root rank: notify_remote {2 * (nranks - 1)}, get 1, bytes_read {SIZE * 4}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", default="0,1,2,3", help="comma-separated device ids")
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument(
        "--use-builtin", action="store_true", help="pld.tensor.broadcast instead of the hand-written one"
    )
    parser.add_argument("--root", type=int, default=0, help="the rank whose slice everyone receives")
    parser.add_argument("--cost", action="store_true", help="check the counters against the cost card")
    args = parser.parse_args()
    devices = [int(d) for d in args.device.split(",")]
    if len(devices) < 2:
        raise SystemExit(f"need at least 2 devices, got {devices}")

    n = len(devices)
    if not 0 <= args.root < n:
        raise SystemExit(f"root {args.root} is not a rank of {n} devices")
    x = np.random.default_rng(12).standard_normal((n, 1, SIZE), dtype=np.float32)
    y = np.zeros_like(x)
    program = make_program(args.root, args.use_builtin)

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
    np.testing.assert_allclose(y, golden(x, args.root), rtol=1e-5, atol=1e-4)
    if args.cost:
        check_cost(n, args.root)
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
