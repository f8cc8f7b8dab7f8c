# SPDX-License-Identifier: Apache-2.0
"""Collectives on both rails: operand forms, sizes above a piece, cells that stay, one rank, and what a build shows."""

import importlib.util
import json

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from everywhere import everywhere, noise
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, last_report

NR = pl.dynamic("NR")
RNG = np.random.default_rng(70)
NUMPY = {pl.FP32: np.float32, pl.FP16: np.float16, pl.INT32: np.int32}


def draw(dtype, *shape):
    """Small whole numbers: exact in every order and dtype."""
    return RNG.integers(-3, 4, shape).astype(NUMPY[dtype])


# ------------------------------------------------ InCore rail


def in_kernel(kind, p, dtype, s):
    """Each rank has p rows of s elements; the collective's own operands follow 03 section 7.4."""
    rows = 1 if kind == "allgather" else p

    @pl.jit.incore
    def kernel(
        x: pl.Tensor[[rows, s], dtype],
        y: pl.Out[pl.Tensor[[p, s], dtype]],
        w: pld.DistributedTensor[[p, s], dtype],
        counts: pl.Tensor[[p, 1], pl.INT32],
        got: pl.Out[pl.Tensor[[p, 1], pl.INT32]],
        came: pld.DistributedTensor[[p, 1], pl.INT32],
        sig: pld.DistributedTensor[[p, 1], pl.INT32],
    ):
        for q in pl.range(p):
            pl.write(got, [q, 0], 0)
        if kind == "allreduce":
            pld.tensor.put(w, pld.rank(pld.get_comm_ctx(w)), x)
            w = pld.tensor.allreduce(w, sig, op=pld.ReduceOp.Max)
        if kind == "allgather":
            w = pld.tensor.allgather(x, w, sig)
        if kind == "reduce_scatter":
            pld.tensor.put(w, pld.rank(pld.get_comm_ctx(w)), x)
            pld.tensor.reduce_scatter(w, sig, op=pld.ReduceOp.Sum)
        if kind == "all_to_all":
            w = pld.tensor.all_to_all(input=x, target=w, signal=sig)
        if kind == "all_to_all_v":
            w = pld.tensor.all_to_all_v(x, w, sig, counts, came)
            for q in pl.range(p):
                pl.write(got, [q, 0], pl.read(came, [q, 0]))
        pld.tensor.get(y, pld.rank(pld.get_comm_ctx(w)), w)
        return y, got

    @pl.jit
    def on_device(
        x: pl.Tensor[[rows, s], dtype],
        y: pl.Out[pl.Tensor[[p, s], dtype]],
        w: pld.DistributedTensor[[p, s], dtype],
        counts: pl.Tensor[[p, 1], pl.INT32],
        got: pl.Out[pl.Tensor[[p, 1], pl.INT32]],
        came: pld.DistributedTensor[[p, 1], pl.INT32],
        sig: pld.DistributedTensor[[p, 1], pl.INT32],
    ):
        return kernel(x, y, w, counts, got, came, sig)

    @pl.jit.host
    def program(
        x: pl.Tensor[[p, rows, s], dtype],
        y: pl.Out[pl.Tensor[[p, p, s], dtype]],
        counts: pl.Tensor[[p, p, 1], pl.INT32],
        got: pl.Out[pl.Tensor[[p, p, 1], pl.INT32]],
    ):
        wb = pld.alloc_window_buffer([p, s], dtype=dtype)
        cb = pld.alloc_window_buffer([p, 1], dtype=pl.INT32)
        sb = pld.alloc_window_buffer([p, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            w = pld.window(wb, [p, s], dtype=dtype)
            came = pld.window(cb, [p, 1], dtype=pl.INT32)
            sig = pld.window(sb, [p, 1], dtype=pl.INT32)
            on_device(x[r], y[r], w, counts[r], got[r], came, sig, device=r)

    return program


def result(kind, x, p):
    if kind == "allreduce":
        return np.repeat(x.max(axis=0, keepdims=True), p, axis=0)
    if kind == "allgather":
        return np.repeat(x[None, :, 0], p, axis=0)
    if kind == "reduce_scatter":
        want = x.copy()
        for q in range(p):
            want[q, q] = x[:, q].sum(axis=0)
        return want
    return np.swapaxes(x, 0, 1)


KINDS = ["allreduce", "allgather", "reduce_scatter", "all_to_all", "all_to_all_v"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("p,dtype,s", [(1, pl.FP32, 40), (2, pl.FP16, 72), (3, pl.INT32, 64), (2, pl.FP32, 5000)])
def test_in_kernels(kind, p, dtype, s):  # C-2, C-3, C-8, C-21, C-24 - C-27, C-30: 5000 FP32 are more than a piece
    x = draw(dtype, p, 1 if kind == "allgather" else p, s)
    counts = RNG.integers(1, 2, (p, p, 1)).astype(np.int32)
    y = draw(dtype, p, p, s)
    got = np.full((p, p, 1), -7, np.int32)
    outputs = {1: result(kind, x, p).astype(np.float64)}
    if kind == "all_to_all_v":
        outputs[3] = np.swapaxes(counts, 0, 1)
    everywhere(in_kernel(kind, p, dtype, s), [x, y, counts, got], p, outputs)
    comm = last_report().ranks[0].comm
    assert comm["collectives"] == {kind: 1}
    if p == 1:
        assert comm["notify_remote"] == comm["bytes_read"] == comm["bytes_written"] == 0


# ------------------------------------------------ host rail: lanes, operand shapes, what the build shows


@pl.jit.incore
def stage(x: pl.Tensor[[1, 700], pl.FP32], w: pld.DistributedTensor[[1, 700], pl.FP32]):
    w = pl.store(pl.load(x, [0, 0], [1, 700]), [0, 0], w)
    return w


@pl.jit.incore
def mark(lanes: pld.DistributedTensor[[NR, 4], pl.INT32]):
    for q in pl.range(pld.nranks(pld.get_comm_ctx(lanes))):
        pl.write(lanes, [q, 2], pl.cast(q + 5, pl.INT32))
        pl.write(lanes, [q, 3], pl.cast(-q, pl.INT32))


@pl.jit
def publish(
    x: pl.Tensor[[1, 700], pl.FP32],
    w: pld.DistributedTensor[[1, 700], pl.FP32],
    lanes: pld.DistributedTensor[[NR, 4], pl.INT32],
):
    stage(x, w)
    mark(lanes)


@pl.jit.incore
def show(
    w: pld.DistributedTensor[[1, 700], pl.FP32],
    lanes: pld.DistributedTensor[[NR, 4], pl.INT32],
    y: pl.Out[pl.Tensor[[1, 700], pl.FP32]],
    cells: pl.Out[pl.Tensor[[NR, 4], pl.INT32]],
):
    y = pl.store(pl.load(w, [0, 0], [1, 700]), [0, 0], y)
    for q in pl.range(pld.nranks(pld.get_comm_ctx(lanes))):
        for b in pl.range(4):
            pl.write(cells, [q, b], pl.read(lanes, [q, b]))
    return y, cells


@pl.jit
def consume(
    w: pld.DistributedTensor[[1, 700], pl.FP32],
    lanes: pld.DistributedTensor[[NR, 4], pl.INT32],
    y: pl.Out[pl.Tensor[[1, 700], pl.FP32]],
    cells: pl.Out[pl.Tensor[[NR, 4], pl.INT32]],
):
    y, cells = show(w, lanes, y, cells)
    return y, cells


def lanes_of(core_num):
    @pl.jit.host
    def program(
        x: pl.Tensor[[NR, 1, 700], pl.FP32],
        y: pl.Out[pl.Tensor[[NR, 1, 700], pl.FP32]],
        cells: pl.Out[pl.Tensor[[NR, NR, 4], pl.INT32]],
    ):
        wb = pld.alloc_window_buffer([1, 700], dtype=pl.FP32)
        lb = pld.alloc_window_buffer([pld.world_size(), 4], dtype=pl.INT32)
        w = pld.window(wb, [1, 700], dtype=pl.FP32)
        lanes = pld.window(lb, [pld.world_size(), 4], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            publish(x[r], w, lanes, device=r)
        w = pld.tensor.allreduce(w, lanes, core_num=core_num)
        for r in pl.range(pld.world_size()):
            consume(w, lanes, y[r], cells[r], device=r)

    return program


@pytest.mark.parametrize("p", [1, 2, 3])
def test_lanes_of_a_host_allreduce(p):  # C-4, C-41, C-61, C-62, K-3
    x = noise(RNG, p, 1, 700)
    cells = np.zeros((p, p, 4), np.int32)
    kept = np.zeros((p, 4), np.int32)  # the lanes in use are zero again, the others as they were
    kept[:, 2] = np.arange(p) + 5
    kept[:, 3] = -np.arange(p)
    want = np.repeat(x.sum(axis=0, keepdims=True), p, axis=0)
    outs = {}
    for core_num in (1, 2):
        got = everywhere(
            lanes_of(core_num), [x, noise(RNG, p, 1, 700), cells], p, {1: want, 2: np.repeat(kept[None], p, 0)}
        )
        outs[core_num] = got[1]
        comm = last_report().ranks[0].comm
        assert comm["notify_remote"] == (core_num + 3) * (p - 1)  # (B + T) * (P - 1), three tiles of 256
        assert comm["bytes_read"] == (p - 1) * 2800
    np.testing.assert_array_equal(outs[1], outs[2])


@pl.jit.incore
def put_row(x: pl.Tensor[[1, 64], pl.FP32], w: pld.DistributedTensor[[1, 64], pl.FP32]):
    w = pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], w)
    return w


@pl.jit
def put_on_device(x: pl.Tensor[[1, 64], pl.FP32], w: pld.DistributedTensor[[1, 64], pl.FP32]):
    w = put_row(x, w)
    return w


@pl.jit.incore
def take_rows(
    row: pld.DistributedTensor[[1, 64], pl.FP32],
    rows: pld.DistributedTensor[[NR, 64], pl.FP32],
    y: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
    all_rows: pl.Out[pl.Tensor[[NR, 64], pl.FP32]],
):
    y = pl.store(pl.load(row, [0, 0], [1, 64]), [0, 0], y)
    pld.tensor.get(all_rows, pld.rank(pld.get_comm_ctx(rows)), rows, chunk_rows=1)
    return y, all_rows


@pl.jit
def take_on_device(
    row: pld.DistributedTensor[[1, 64], pl.FP32],
    rows: pld.DistributedTensor[[NR, 64], pl.FP32],
    y: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
    all_rows: pl.Out[pl.Tensor[[NR, 64], pl.FP32]],
):
    y, all_rows = take_rows(row, rows, y, all_rows)
    return y, all_rows


@pl.jit.host
def gathered(
    x: pl.Tensor[[NR, 1, 64], pl.FP32],
    y: pl.Out[pl.Tensor[[NR, 1, 64], pl.FP32]],
    all_rows: pl.Out[pl.Tensor[[NR, NR, 64], pl.FP32]],
):
    row_buf = pld.alloc_window_buffer([64], dtype=pl.FP32)
    rows_buf = pld.alloc_window_buffer([pld.world_size(), 64], dtype=pl.FP32)
    sig_buf = pld.alloc_window_buffer([pld.world_size()], dtype=pl.INT32)
    row = pld.window(row_buf, [64], dtype=pl.FP32)
    rows = pld.window(rows_buf, [pld.world_size(), 64], dtype=pl.FP32)
    sig = pld.window(sig_buf, [pld.world_size()], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        put_on_device(x[r], row, device=r)
    rows = pld.tensor.allgather(row, rows, sig)
    sig = pld.tensor.barrier(sig)
    row = pld.tensor.allreduce(row)
    row = pld.tensor.allreduce(row, op=pld.ReduceOp.Min, mode="ring")
    for r in pl.range(pld.world_size()):
        take_on_device(row, rows, y[r], all_rows[r], device=r)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_host_rail_of_rank_one_windows(p):  # C-1, C-40, C-42, C-45, C-62, W-23, A-2, A-4, A-5, A-6
    x = noise(RNG, p, 1, 64)
    rows = np.repeat(x[None, :, 0], p, axis=0)
    total = np.repeat(x.sum(axis=0, keepdims=True), p, axis=0)
    args = [x, np.zeros_like(x), np.zeros((p, p, 64), np.float32)]
    everywhere(gathered, args, p, {1: total, 2: rows})
    config = RunConfig(platform="a2a3sim", distributed_config=DistributedConfig(device_ids=list(range(p))))
    compiled = gathered.compile(*args, config=config)
    buffers = [
        b["name"]
        for d in json.loads((compiled.output_dir / "comm_domains.json").read_text())["domains"]
        for b in d["buffers"]
    ]
    assert buffers[:3] == ["row_buf", "rows_buf", "sig_buf"]
    assert buffers[3:] == ["__allreduce_signal_buf_0", "__allreduce_signal_buf_1"]
    variants = ["allgather__fp32", "allreduce__sum__fp32", "allreduce_ring__min__fp32", "barrier__fp32"]
    entries = ["put_on_device", "take_on_device", *(f"builtin.tensor.{v}" for v in variants)]
    levels = compiled.output_dir / "next_levels"
    assert sorted(f.name for f in levels.iterdir()) == sorted(entries)
    for entry in entries:
        spec = importlib.util.spec_from_file_location("kernel_config", levels / entry / "kernel_config.py")
        config = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(config)
        assert config.ORCHESTRATION["name"] == entry
        assert len(config.KERNELS) == 1, entry  # the collective's own kernel included
