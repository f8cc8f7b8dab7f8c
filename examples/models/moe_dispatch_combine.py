# SPDX-License-Identifier: Apache-2.0
"""Distributed mixture of experts: dispatch -> expert matmul -> combine.

One expert per rank, top-2 routing with run-time token counts. Every rank puts each of its tokens into the windows of
the ranks that host the token's experts, then says how many it sent. The experts multiply what they received, weigh it
with the gates and add the rows into the senders' windows (atomic remote adds). No token count is known before the run.

Teaches: puts at computed rows, counters in pl.array, counts carried by signals, atomic remote adds, one task per phase.
Run:     python examples/models/moe_dispatch_combine.py -p a2a3sim -d 0,1,2,3
Expect:  OK
"""

import argparse
import sys

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig

NR = pl.dynamic("NR")
ROWS = pl.dynamic("ROWS")  # P * CAP rows: CAP from every source
TOKENS, TOP_K, HIDDEN = 24, 2, 64
CAP = TOKENS * TOP_K  # a source never sends more rows than this to one expert
META = 8  # columns of the per-row records (32 bytes)


@pl.jit.incore
def dispatch(
    x: pl.Tensor[[TOKENS, HIDDEN], pl.FP32],
    route: pl.Tensor[[TOKENS, TOP_K], pl.INT32],
    gates: pl.Tensor[[TOKENS * TOP_K, META], pl.FP32],
    token_ids: pl.Tensor[[TOKENS * TOP_K, META], pl.INT32],
    recv: pld.DistributedTensor[[ROWS, HIDDEN], pl.FP32],
    recv_gate: pld.DistributedTensor[[ROWS, META], pl.FP32],
    recv_token: pld.DistributedTensor[[ROWS, META], pl.INT32],
    arrived: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    """Send every (token, expert) pair, then tell each expert's rank how many rows are there."""
    ctx = pld.get_comm_ctx(recv)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    sent = pl.array.create(64, pl.INT32)  # rows sent so far, per expert
    for t in pl.range(TOKENS):
        for k in pl.range(TOP_K):
            expert = pl.read(route, [t, k])
            row = me * CAP + sent[expert]
            pld.tensor.put(recv, expert, x, dst_offsets=[row, 0], src_offsets=[t, 0], shape=[1, HIDDEN])
            pair = t * TOP_K + k
            pld.tensor.put(recv_gate, expert, gates, dst_offsets=[row, 0], src_offsets=[pair, 0], shape=[1, META])
            pld.tensor.put(recv_token, expert, token_ids, dst_offsets=[row, 0], src_offsets=[pair, 0], shape=[1, META])
            sent[expert] = sent[expert] + 1
    for expert in pl.range(nranks):
        # One more than the count, so that zero rows is a message too.
        pld.system.notify(arrived, expert, [me, 0], sent[expert] + 1, op=pld.NotifyOp.AtomicAdd)
    return recv


@pl.jit.incore
def await_counts(
    counts: pl.Out[pl.Tensor[[NR, 1], pl.INT32]],
    arrived: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    nranks = pld.nranks(pld.get_comm_ctx(arrived))
    for src in pl.range(nranks):
        pld.system.wait(arrived, [src, 0], 1, cmp=pld.WaitCmp.Ge)
        pl.write(counts, [src, 0], pl.cast(pl.read(arrived, [src, 0]) - 1, pl.INT32))
    return counts


@pl.jit.incore
def expert(
    recv: pld.DistributedTensor[[ROWS, HIDDEN], pl.FP32],
    recv_gate: pld.DistributedTensor[[ROWS, META], pl.FP32],
    weight: pl.Tensor[[HIDDEN, HIDDEN], pl.FP32],
    counts: pl.Tensor[[NR, 1], pl.INT32],
    result: pl.Out[pl.Tensor[[ROWS, HIDDEN], pl.FP32]],
    src: pl.Scalar[pl.INT32],
):
    """The rows of one source through this rank's expert, weighed with their gates."""
    n = pl.read(counts, [src, 0])
    if n > 0:
        rows = pl.load(recv, [src * CAP, 0], [CAP, HIDDEN], valid_shape=[n, HIDDEN])
        w = pl.load(weight, [0, 0], [HIDDEN, HIDDEN])
        product = pl.matmul(rows, w)
        gate = pl.load(recv_gate, [src * CAP, 0], [CAP, 1], valid_shape=[n, 1])
        weighed = pl.row_expand_mul(pl.move(product, target_memory=pl.MemorySpace.Vec), gate)
        result = pl.store(weighed, [src * CAP, 0], result)
    return result


@pl.jit.incore
def send_back(
    result: pl.Tensor[[ROWS, HIDDEN], pl.FP32],
    recv_token: pld.DistributedTensor[[ROWS, META], pl.INT32],
    counts: pl.Tensor[[NR, 1], pl.INT32],
    combined: pld.DistributedTensor[[TOKENS, HIDDEN], pl.FP32],
    done: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    """Add each row to its token at the rank that sent it."""
    ctx = pld.get_comm_ctx(combined)
    me = pld.rank(ctx)
    nranks = pld.nranks(ctx)
    for src in pl.range(nranks):
        n = pl.read(counts, [src, 0])
        for i in pl.range(n):
            row = src * CAP + i
            token = pl.read(recv_token, [row, 0])
            pld.tensor.put(
                combined,
                src,
                result,
                dst_offsets=[token, 0],
                src_offsets=[row, 0],
                shape=[1, HIDDEN],
                atomic=pld.AtomicType.Add,
            )
        pld.system.notify(done, src, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)
    return combined


@pl.jit.incore
def combine(
    y: pl.Out[pl.Tensor[[TOKENS, HIDDEN], pl.FP32]],
    combined: pld.DistributedTensor[[TOKENS, HIDDEN], pl.FP32],
    done: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    nranks = pld.nranks(pld.get_comm_ctx(done))
    for src in pl.range(nranks):
        pld.system.wait(done, [src, 0], 1, cmp=pld.WaitCmp.Ge)
    tile = pl.load(combined, [0, 0], [TOKENS, HIDDEN])
    y = pl.store(tile, [0, 0], y)
    return y


@pl.jit
def moe_layer(
    x: pl.Tensor[[TOKENS, HIDDEN], pl.FP32],
    route: pl.Tensor[[TOKENS, TOP_K], pl.INT32],
    gates: pl.Tensor[[TOKENS * TOP_K, META], pl.FP32],
    token_ids: pl.Tensor[[TOKENS * TOP_K, META], pl.INT32],
    weight: pl.Tensor[[HIDDEN, HIDDEN], pl.FP32],
    y: pl.Out[pl.Tensor[[TOKENS, HIDDEN], pl.FP32]],
    recv: pld.DistributedTensor[[ROWS, HIDDEN], pl.FP32],
    recv_gate: pld.DistributedTensor[[ROWS, META], pl.FP32],
    recv_token: pld.DistributedTensor[[ROWS, META], pl.INT32],
    combined: pld.DistributedTensor[[TOKENS, HIDDEN], pl.FP32],
    arrived: pld.DistributedTensor[[NR, 1], pl.INT32],
    done: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    nranks = pld.nranks(pld.get_comm_ctx(recv))
    counts = pl.create_tensor([nranks, 1], dtype=pl.INT32)
    result = pl.create_tensor([nranks * CAP, HIDDEN], dtype=pl.FP32)
    dispatch(x, route, gates, token_ids, recv, recv_gate, recv_token, arrived)
    counts = await_counts(counts, arrived)
    for src in pl.range(nranks):
        result = expert(recv, recv_gate, weight, counts, result, src)
    send_back(result, recv_token, counts, combined, done)
    y = combine(y, combined, done)
    return y


@pl.jit.host
def program(
    x: pl.Tensor[[NR, TOKENS, HIDDEN], pl.FP32],
    route: pl.Tensor[[NR, TOKENS, TOP_K], pl.INT32],
    gates: pl.Tensor[[NR, TOKENS * TOP_K, META], pl.FP32],
    token_ids: pl.Tensor[[TOKENS * TOP_K, META], pl.INT32],
    weight: pl.Tensor[[NR, HIDDEN, HIDDEN], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, TOKENS, HIDDEN], pl.FP32]],
):
    recv_buf = pld.alloc_window_buffer([pld.world_size() * CAP, HIDDEN], dtype=pl.FP32)
    gate_buf = pld.alloc_window_buffer([pld.world_size() * CAP, META], dtype=pl.FP32)
    token_buf = pld.alloc_window_buffer([pld.world_size() * CAP, META], dtype=pl.INT32)
    combined_buf = pld.alloc_window_buffer([TOKENS, HIDDEN], dtype=pl.FP32)
    arrived_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    done_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        recv = pld.window(recv_buf, [pld.world_size() * CAP, HIDDEN], dtype=pl.FP32)
        recv_gate = pld.window(gate_buf, [pld.world_size() * CAP, META], dtype=pl.FP32)
        recv_token = pld.window(token_buf, [pld.world_size() * CAP, META], dtype=pl.INT32)
        combined = pld.window(combined_buf, [TOKENS, HIDDEN], dtype=pl.FP32)
        arrived = pld.window(arrived_buf, [pld.world_size(), 1], dtype=pl.INT32)
        done = pld.window(done_buf, [pld.world_size(), 1], dtype=pl.INT32)
        moe_layer(
            x[r],
            route[r],
            gates[r],
            token_ids,
            weight[r],
            y[r],
            recv,
            recv_gate,
            recv_token,
            combined,
            arrived,
            done,
            device=r,
        )


def make_inputs(nranks: int, seed: int) -> dict[str, np.ndarray]:
    """Random tokens, routes (distinct experts where there are two) and gates that sum to 1."""
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((nranks, TOKENS, nranks))
    logits[..., 0] += 0.7  # an uneven load
    order = np.argsort(-logits, axis=-1)
    route = np.stack([order[..., min(k, nranks - 1)] for k in range(TOP_K)], axis=-1).astype(np.int32)
    gate = rng.random((nranks, TOKENS, TOP_K)).astype(np.float32) + 0.1
    gate /= gate.sum(axis=-1, keepdims=True)
    gates = np.zeros((nranks, TOKENS * TOP_K, META), dtype=np.float32)
    gates[:, :, 0] = gate.reshape(nranks, -1)
    token_ids = np.zeros((TOKENS * TOP_K, META), dtype=np.int32)
    token_ids[:, 0] = np.repeat(np.arange(TOKENS), TOP_K)
    return {
        "x": rng.standard_normal((nranks, TOKENS, HIDDEN), dtype=np.float32),
        "route": route,
        "gates": gates,
        "token_ids": token_ids,
        "weight": rng.standard_normal((nranks, HIDDEN, HIDDEN), dtype=np.float32) / 8,
    }


def golden(x: np.ndarray, route: np.ndarray, gates: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """y[r, t] = sum over k of gate[r, t, k] * (x[r, t] @ weight[route[r, t, k]])"""
    gate = gates[:, :, 0].reshape(route.shape)
    y = np.zeros_like(x, dtype=np.float64)
    for r, t, k in np.ndindex(*route.shape):
        y[r, t] += gate[r, t, k] * (x[r, t].astype(np.float64) @ weight[route[r, t, k]])
    return y


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", default="0,1,2,3", help="comma-separated device ids")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    devices = [int(d) for d in args.device.split(",")]
    inputs = make_inputs(len(devices), seed=17)
    y = np.zeros_like(inputs["x"])
    arrays = [*inputs.values(), y]
    compiled = program.compile(
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
    expected = golden(inputs["x"], inputs["route"], inputs["gates"], inputs["weight"])
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-4)
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
