# SPDX-License-Identifier: Apache-2.0
"""Step 16: putting it together. Three collectives in one kernel, with one signal.

Teaches: broadcast + allreduce + allgather composed; self-clearing signals make one signal enough.
Run:     python examples/distributed/16_putting_it_together.py -p a2a3sim -d 0,1,2,3 [--cost]
Expect:  OK
Next:    the applications: examples/models
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
def composed(
    w: pl.Tensor[[1, SIZE], pl.FP32],
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    z: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    wbuf: pld.DistributedTensor[[1, SIZE], pl.FP32],
    acc: pld.DistributedTensor[[1, SIZE], pl.FP32],
    out: pld.DistributedTensor[[NR, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(wbuf)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)

    # 1. Rank 0's weights to everyone.
    if me == 0:
        own_w = pl.load(w, [0, 0], [1, SIZE])
        wbuf = pl.store(own_w, [0, 0], wbuf)
    wbuf = pld.tensor.broadcast(wbuf, signal, root=0)

    # 2. The weighted inputs, summed over all ranks.
    weights = pl.load(wbuf, [0, 0], [1, SIZE])
    own_x = pl.load(x, [0, 0], [1, SIZE])
    acc = pl.store(pl.mul(own_x, weights), [0, 0], acc)
    acc = pld.tensor.allreduce(acc, signal, op=pld.ReduceOp.Sum)

    # 3. Each rank's multiple of the sum, gathered everywhere.
    total = pl.load(acc, [0, 0], [1, SIZE])
    z = pl.store(pl.mul(total, pl.cast(me + 1, pl.FP32)), [0, 0], z)
    out = pld.tensor.allgather(z, out, signal)

    # 4. Show all rows.
    for q in pl.range(nranks):
        row = pl.load(out, [q, 0], [1, SIZE])
        y = pl.store(row, [q, 0], y)
    return y, z


@pl.jit
def on_device(
    w: pl.Tensor[[1, SIZE], pl.FP32],
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, SIZE], pl.FP32]],
    z: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    wbuf: pld.DistributedTensor[[1, SIZE], pl.FP32],
    acc: pld.DistributedTensor[[1, SIZE], pl.FP32],
    out: pld.DistributedTensor[[NR, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    y, z = composed(w, x, y, z, wbuf, acc, out, signal)
    return y, z


@pl.jit.host
def program(
    w: pl.Tensor[[NR, 1, SIZE], pl.FP32],
    x: pl.Tensor[[NR, 1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, NR, SIZE], pl.FP32]],
    z: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]],
):
    wbuf_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    acc_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    out_buf = pld.alloc_window_buffer([pld.world_size(), SIZE], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        wbuf = pld.window(wbuf_buf, [1, SIZE], dtype=pl.FP32)
        acc = pld.window(acc_buf, [1, SIZE], dtype=pl.FP32)
        out = pld.window(out_buf, [pld.world_size(), SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        on_device(w[r], x[r], y[r], z[r], wbuf, acc, out, signal, device=r)


def golden(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    """y[r, q] = (q + 1) * w[0, 0] * sum over p of x[p, 0]; the other rows of w do not matter."""
    n = len(x)
    total = w[0, 0] * x[:, 0].sum(axis=0)
    return np.broadcast_to(np.arange(1, n + 1, dtype=np.float32)[:, None] * total, (n, n, SIZE))


def check_cost(nranks: int) -> None:
    """Rounds 2 + (1 + C) + 1 with C = 1; the root of the broadcast reads N bytes less."""
    peers = nranks - 1
    for counters in last_report().ranks:
        expected = {
            "notify_remote": 5 * peers,
            "bytes_read": (peers + int(counters.rank != 0)) * SIZE * 4,
            "bytes_written": peers * SIZE * 4,
            "barriers": 5,
        }
        for key, value in expected.items():
            assert counters.comm[key] == value, (counters.rank, key, counters.comm[key], value)
    print(f"cost per rank: notify_remote {5 * peers}, rounds 5, bytes_written {peers * SIZE * 4}")


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
    rng = np.random.default_rng(16)
    w = rng.standard_normal((n, 1, SIZE), dtype=np.float32)
    x = rng.standard_normal((n, 1, SIZE), dtype=np.float32)
    y = np.zeros((n, n, SIZE), dtype=np.float32)
    z = np.zeros((n, 1, SIZE), dtype=np.float32)

    compiled = program.compile(
        w,
        x,
        y,
        z,
        config=RunConfig(
            platform=args.platform,
            distributed_config=DistributedConfig(device_ids=devices, num_sub_workers=0),
        ),
    )
    if args.compile_only:
        print(f"compile_only done: {compiled.output_dir}")
        return 0
    compiled(w, x, y, z, config=RunConfig(platform=args.platform))
    np.testing.assert_allclose(y, golden(w, x), rtol=1e-5, atol=1e-4)
    if args.cost:
        check_cost(n)
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
