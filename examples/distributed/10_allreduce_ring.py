# SPDX-License-Identifier: Apache-2.0
"""Step 10: all-reduce, version 3 (ring). Chunks travel along the ring, one neighbour only.

Teaches: 2*(P-1) rounds with two neighbours; one credit per step is enough.
Run:     python examples/distributed/10_allreduce_ring.py -p a2a3sim -d 0,1,2,3 [--cost]
Expect:  OK
Next:    11_allreduce_reveal.py
"""

import argparse
import sys

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, last_report

NR = pl.dynamic("NR")
CH = 64


@pl.jit.incore
def allreduce_ring(
    x: pl.Tensor[[NR, CH], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, CH], pl.FP32]],
    data: pld.DistributedTensor[[NR, CH], pl.FP32],
    ready: pld.DistributedTensor[[1, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    left = (me + nranks - 1) % nranks
    right = (me + 1) % nranks
    for q in pl.range(nranks):
        row = pl.load(x, [q, 0], [1, CH])
        data = pl.store(row, [q, 0], data)
    pld.system.notify(ready, right, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)  # my slice is staged
    for k in pl.range(2 * (nranks - 1)):
        pld.system.wait(ready, [0, 0], k + 1, cmp=pld.WaitCmp.Ge)  # left has finished step k - 1
        g = (me + 2 * nranks - k - 2) % nranks
        theirs = pld.tile.remote_load(data, peer=left, offsets=[g, 0], shape=[1, CH])
        if k < nranks - 1:
            own = pl.load(data, [g, 0], [1, CH])
            data = pl.store(pl.add(own, theirs), [g, 0], data)  # reduce-scatter half
        else:
            data = pl.store(theirs, [g, 0], data)  # all-gather half
        if k < 2 * nranks - 3:
            pld.system.notify(ready, right, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    for q in pl.range(nranks):
        row = pl.load(data, [q, 0], [1, CH])
        y = pl.store(row, [q, 0], y)
    return y


@pl.jit
def on_device(
    x: pl.Tensor[[NR, CH], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, CH], pl.FP32]],
    data: pld.DistributedTensor[[NR, CH], pl.FP32],
    ready: pld.DistributedTensor[[1, 1], pl.INT32],
):
    y = allreduce_ring(x, y, data, ready)
    return y


@pl.jit.host
def program(
    x: pl.Tensor[[NR, NR, CH], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, NR, CH], pl.FP32]],
):
    data_buf = pld.alloc_window_buffer([pld.world_size(), CH], dtype=pl.FP32)
    ready_buf = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [pld.world_size(), CH], dtype=pl.FP32)
        ready = pld.window(ready_buf, [1, 1], dtype=pl.INT32)
        on_device(x[r], y[r], data, ready, device=r)


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
    x = np.random.default_rng(10).standard_normal((n, n, CH), dtype=np.float32)
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
        steps = 2 * (n - 1)
        check_cost(n, {"notify_remote": steps, "remote_load": steps, "bytes_read": steps * CH * 4, "bytes_written": 0})
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
