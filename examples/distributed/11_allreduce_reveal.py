# SPDX-License-Identifier: Apache-2.0
"""Step 11: the all-reduce reveal. The builtin lowers to what steps 08 and 10 taught, plus four disciplines.

Teaches: pld.tensor.allreduce (mesh and ring), pld.ReduceOp; in-place result, read-complete hand-over, pieces,
         self-clearing signals. Both forms are lowered and their communication compared, then both run.
Run:     python examples/distributed/11_allreduce_reveal.py -p a2a3sim -d 0,1,2,3 [--mode mesh|ring|both] [--show-ir]
Expect:  mesh: lowered forms match / ring: lowered forms match / OK
Next:    12_broadcast.py
"""

import argparse
import difflib
import sys

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir import comm_skeleton
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, last_report

NR = pl.dynamic("NR")
STEPS = pl.dynamic("STEPS")  # rows of the ring's signal: 2 * (P - 1)
SIZE = 256


@pl.jit.incore
def mesh_by_hand(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    cells: pl.Out[pl.Tensor[[NR, 1], pl.INT32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    own = pl.load(x, [0, 0], [1, SIZE])
    data = pl.store(own, [0, 0], data)

    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    # Barrier 1: everyone has staged.
    for q in pl.range(nranks):
        if q != me:
            pld.system.notify(signal, q, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)
    for q in pl.range(nranks):
        if q != me:
            pld.system.wait(signal, [q, 0], 1, cmp=pld.WaitCmp.Ge)
    acc = pl.load(data, [0, 0], [1, SIZE])
    for q in pl.range(nranks):
        if q != me:
            theirs = pld.tile.remote_load(data, peer=q, offsets=[0, 0], shape=[1, SIZE])
            acc = pl.add(acc, theirs)
    # Barrier 2: everyone has read, so the result may replace the staged data.
    for q in pl.range(nranks):
        if q != me:
            pld.system.notify(signal, q, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)
    for q in pl.range(nranks):
        if q != me:
            pld.system.wait(signal, [q, 0], 2, cmp=pld.WaitCmp.Ge)
    data = pl.store(acc, [0, 0], data)
    # Take the credits of both barriers back: the signal is as it was.
    for q in pl.range(nranks):
        if q != me:
            pld.system.notify(signal, me, [q, 0], -2, op=pld.NotifyOp.AtomicAdd)

    out = pl.load(data, [0, 0], [1, SIZE])
    y = pl.store(out, [0, 0], y)
    for q in pl.range(nranks):
        pl.write(cells, [q, 0], pl.read(signal, [q, 0]))
    return y, cells


@pl.jit.incore
def mesh_builtin(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    cells: pl.Out[pl.Tensor[[NR, 1], pl.INT32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    own = pl.load(x, [0, 0], [1, SIZE])
    data = pl.store(own, [0, 0], data)
    data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum, mode="mesh")
    out = pl.load(data, [0, 0], [1, SIZE])
    y = pl.store(out, [0, 0], y)
    nranks = pld.nranks(pld.get_comm_ctx(data))
    for q in pl.range(nranks):
        pl.write(cells, [q, 0], pl.read(signal, [q, 0]))
    return y, cells


@pl.jit.incore
def ring_by_hand(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    cells: pl.Out[pl.Tensor[[STEPS, NR], pl.INT32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[STEPS, NR], pl.INT32],
):
    own = pl.load(x, [0, 0], [1, SIZE])
    data = pl.store(own, [0, 0], data)

    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    left = (me + nranks - 1) % nranks
    right = (me + 1) % nranks
    pld.system.notify(signal, right, [0, me], 1, op=pld.NotifyOp.AtomicAdd)  # entry: my slice is staged
    for k in pl.range(2 * (nranks - 1)):
        g = (me + 2 * nranks - k - 2) % nranks
        first = g * SIZE // nranks
        last = (g + 1) * SIZE // nranks
        pld.system.wait(signal, [k, left], 1, cmp=pld.WaitCmp.Ge)
        theirs = pld.tile.remote_load(
            data, peer=left, offsets=[0, first], shape=[1, SIZE], valid_shape=[1, last - first]
        )
        if k < nranks - 1:
            mine = pl.load(data, [0, first], [1, SIZE], valid_shape=[1, last - first])
            data = pl.store(pl.add(mine, theirs), [0, first], data)
        else:
            data = pl.store(theirs, [0, first], data)
        if k < 2 * nranks - 3:
            pld.system.notify(signal, right, [k + 1, me], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.notify(signal, left, [0, left], 1, op=pld.NotifyOp.AtomicAdd)  # exit: I need nothing more of you
    pld.system.wait(signal, [0, me], 1, cmp=pld.WaitCmp.Ge)  # right says the same
    for k in pl.range(2 * (nranks - 1)):
        pld.system.notify(signal, me, [k, left], -1, op=pld.NotifyOp.AtomicAdd)
    pld.system.notify(signal, me, [0, me], -1, op=pld.NotifyOp.AtomicAdd)

    out = pl.load(data, [0, 0], [1, SIZE])
    y = pl.store(out, [0, 0], y)
    for k in pl.range(2 * (nranks - 1)):
        for q in pl.range(nranks):
            pl.write(cells, [k, q], pl.read(signal, [k, q]))
    return y, cells


@pl.jit.incore
def ring_builtin(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    cells: pl.Out[pl.Tensor[[STEPS, NR], pl.INT32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[STEPS, NR], pl.INT32],
):
    own = pl.load(x, [0, 0], [1, SIZE])
    data = pl.store(own, [0, 0], data)
    data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum, mode="ring")
    out = pl.load(data, [0, 0], [1, SIZE])
    y = pl.store(out, [0, 0], y)
    nranks = pld.nranks(pld.get_comm_ctx(data))
    for k in pl.range(2 * (nranks - 1)):
        for q in pl.range(nranks):
            pl.write(cells, [k, q], pl.read(signal, [k, q]))
    return y, cells


def make_program(kernel, ring: bool):
    """The host program around one kernel."""
    if ring:

        @pl.jit
        def ring_on_device(
            x: pl.Tensor[[1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
            cells: pl.Out[pl.Tensor[[STEPS, NR], pl.INT32]],
            data: pld.DistributedTensor[[1, SIZE], pl.FP32],
            signal: pld.DistributedTensor[[STEPS, NR], pl.INT32],
        ):
            y, cells = kernel(x, y, cells, data, signal)
            return y, cells

        @pl.jit.host
        def ring_program(
            x: pl.Tensor[[NR, 1, SIZE], pl.FP32],
            y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]],
            cells: pl.Out[pl.Tensor[[NR, STEPS, NR], pl.INT32]],
        ):
            data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
            signal_buf = pld.alloc_window_buffer([2 * (pld.world_size() - 1), pld.world_size()], dtype=pl.INT32)
            for r in pl.range(pld.world_size()):
                data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
                signal = pld.window(signal_buf, [2 * (pld.world_size() - 1), pld.world_size()], dtype=pl.INT32)
                ring_on_device(x[r], y[r], cells[r], data, signal, device=r)

        return ring_program

    @pl.jit
    def mesh_on_device(
        x: pl.Tensor[[1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        cells: pl.Out[pl.Tensor[[NR, 1], pl.INT32]],
        data: pld.DistributedTensor[[1, SIZE], pl.FP32],
        signal: pld.DistributedTensor[[NR, 1], pl.INT32],
    ):
        y, cells = kernel(x, y, cells, data, signal)
        return y, cells

    @pl.jit.host
    def mesh_program(
        x: pl.Tensor[[NR, 1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]],
        cells: pl.Out[pl.Tensor[[NR, NR, 1], pl.INT32]],
    ):
        data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
        signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
            signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
            mesh_on_device(x[r], y[r], cells[r], data, signal, device=r)

    return mesh_program


KERNELS = {"mesh": (mesh_by_hand, mesh_builtin), "ring": (ring_by_hand, ring_builtin)}


def golden(x: np.ndarray) -> np.ndarray:
    return np.broadcast_to(x.sum(axis=0), x.shape)


def compare(mode: str, skeletons: list[str], show: bool) -> None:
    """Fails with a diff unless the folded communication skeletons are equal."""
    hand, builtin = (text.splitlines() for text in skeletons)
    if show:
        width = max(len(line) for line in [*hand, "by hand"]) + 4
        for left, right in zip(["by hand", *hand], ["builtin", *builtin], strict=False):
            print(f"{left:<{width}}{right}")
    if hand != builtin:
        print("\n".join(difflib.unified_diff(hand, builtin, "by hand", "builtin", lineterm="")))
        raise AssertionError(f"{mode}: lowered forms differ")
    print(f"{mode}: lowered forms match")


def check_cost(nranks: int, mode: str) -> None:
    """The allreduce rows of the cost table; C = Cs = 1 at this size."""
    n = SIZE * 4

    def segment(rank: int) -> int:
        return ((rank + 1) * SIZE // nranks - rank * SIZE // nranks) * 4

    for counters in last_report().ranks:
        if mode == "mesh":
            expected = {"notify_remote": 2 * (nranks - 1), "remote_load": nranks - 1, "bytes_read": (nranks - 1) * n}
        else:
            left = (counters.rank + nranks - 1) % nranks
            read = 2 * n - segment(left) - segment(counters.rank)
            expected = {"notify_remote": 2 * (nranks - 1) + 1, "remote_load": 2 * (nranks - 1), "bytes_read": read}
        for key, value in expected.items():
            assert counters.comm[key] == value, (mode, counters.rank, key, counters.comm[key], value)
        if counters.rank == 1:
            print(f"{mode} cost per rank: " + ", ".join(f"{key} {value}" for key, value in expected.items()))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", default="0,1,2,3", help="comma-separated device ids")
    parser.add_argument("--compile-only", action="store_true")
    parser.add_argument("--mode", default="both", choices=["mesh", "ring", "both"])
    parser.add_argument("--show-ir", action="store_true", help="print both communication skeletons side by side")
    parser.add_argument("--cost", action="store_true", help="check the counters against the cost card")
    args = parser.parse_args()
    devices = [int(d) for d in args.device.split(",")]
    if len(devices) < 2:
        raise SystemExit(f"need at least 2 devices, got {devices}")
    n = len(devices)
    x = np.random.default_rng(11).standard_normal((n, 1, SIZE), dtype=np.float32)
    config = RunConfig(
        platform=args.platform,
        distributed_config=DistributedConfig(device_ids=devices, num_sub_workers=0),
    )
    for mode in ["mesh", "ring"] if args.mode == "both" else [args.mode]:
        cell_shape = (n, n, 1) if mode == "mesh" else (n, 2 * (n - 1), n)
        programs = [make_program(kernel, mode == "ring") for kernel in KERNELS[mode]]
        y, cells = np.zeros_like(x), np.zeros(cell_shape, dtype=np.int32)
        lowered = [program.lower(x, y, cells, config=config) for program in programs]
        names = [kernel.__name__ for kernel in KERNELS[mode]]
        skeletons = [comm_skeleton(program, name) for program, name in zip(lowered, names, strict=True)]
        compare(mode, skeletons, args.show_ir)
        for program in programs:
            y, cells = np.zeros_like(x), np.full(cell_shape, -1, dtype=np.int32)
            compiled = program.compile(x, y, cells, config=config)
            if args.compile_only:
                print(f"compile_only done: {compiled.output_dir}")
                continue
            compiled(x, y, cells, config=RunConfig(platform=args.platform))
            np.testing.assert_allclose(y, golden(x), rtol=1e-5, atol=1e-4)
            np.testing.assert_array_equal(cells, 0)
        if args.cost and not args.compile_only:
            check_cost(n, mode)
    if not args.compile_only:
        print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
