# SPDX-License-Identifier: Apache-2.0
"""Host-rail collectives, subset domains and several dispatches per call (03 sections 3.4, 7.5, 13)."""

import re

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from pypto.ir import structural_equal
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, last_report

NR = pl.dynamic("NR")
N = 300  # more than one tile of 256, not a multiple of 8
RNG = np.random.default_rng(42)


def world(p, platform="a2a3sim"):
    return RunConfig(platform=platform, distributed_config=DistributedConfig(device_ids=list(range(p))))


@pl.jit.incore
def publish_kernel(x: pl.Tensor[[1, N], pl.FP32], data: pld.DistributedTensor[[1, N], pl.FP32]):
    data = pl.store(pl.load(x, [0, 0], [1, N]), [0, 0], data)
    return data


@pl.jit
def publish(x: pl.Tensor[[1, N], pl.FP32], data: pld.DistributedTensor[[1, N], pl.FP32]):
    return publish_kernel(x, data)


@pl.jit.incore
def consume_kernel(y: pl.Out[pl.Tensor[[1, N], pl.FP32]], data: pld.DistributedTensor[[1, N], pl.FP32]):
    y = pl.store(pl.load(data, [0, 0], [1, N]), [0, 0], y)
    return y


@pl.jit
def consume(y: pl.Out[pl.Tensor[[1, N], pl.FP32]], data: pld.DistributedTensor[[1, N], pl.FP32]):
    return consume_kernel(y, data)


def make_allreduce(mode, core_num, explicit, op):
    @pl.jit.host
    def program(x: pl.Tensor[[NR, 1, N], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, N], pl.FP32]]):
        data_buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
        if explicit:
            if mode == "ring":
                rows = 2 * (pld.world_size() - 1) + 1
                sig_buf = pld.alloc_window_buffer([rows, pld.world_size()], dtype=pl.INT32)
                sig = pld.window(sig_buf, [rows, pld.world_size()], dtype=pl.INT32)
            else:
                sig_buf = pld.alloc_window_buffer([pld.world_size(), 4], dtype=pl.INT32)
                sig = pld.window(sig_buf, [pld.world_size(), 4], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [1, N], dtype=pl.FP32)
            publish(x[r], data, device=r)
        data = pld.window(data_buf, [1, N], dtype=pl.FP32)
        if explicit:
            data = pld.tensor.allreduce(data, sig, op=op, mode=mode, core_num=core_num)
        else:
            data = pld.tensor.allreduce(data, op=op, mode=mode, core_num=core_num)
        for r in pl.range(pld.world_size()):
            consume(y[r], data, device=r)

    return program


@pytest.mark.parametrize("p", [1, 2, 3, 5])
@pytest.mark.parametrize(
    "mode,core_num,explicit,op,reduce",
    [
        ("mesh", 1, True, pld.ReduceOp.Sum, np.sum),
        ("mesh", 4, True, pld.ReduceOp.Max, np.max),
        ("mesh", 3, False, pld.ReduceOp.Sum, np.sum),
        ("ring", 1, True, pld.ReduceOp.Sum, np.sum),
        ("ring", 1, False, pld.ReduceOp.Prod, np.prod),
        ("ring", 1, False, pld.ReduceOp.Min, np.min),
    ],
)
def test_allreduce(p, mode, core_num, explicit, op, reduce):  # C-41 - C-43, C-61
    x = RNG.standard_normal((p, 1, N), dtype=np.float32)
    y = np.zeros_like(x)
    make_allreduce(mode, core_num, explicit, op)(x, y, config=world(p))
    want = np.broadcast_to(reduce(x.astype(np.float64), axis=0), x.shape)
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)
    assert last_report().diagnostics == []


def test_marks_of_a_lowered_collective_read_back():  # L-79: what pl.internal.comm_mark( delimits is counted as one
    lowered = make_allreduce("mesh", 1, True, pld.ReduceOp.Sum).lower(config=world(2))
    text = lowered.as_python()
    for mode in ("begin", "end"):
        assert re.search(rf'pl\.internal\.comm_mark\(signal, name="allreduce", mode="{mode}"', text), text
    assert structural_equal(lowered, pl.parse(text), enable_auto_mapping=True)


@pl.jit.host
def rounds(x: pl.Tensor[[3, NR, 1, N], pl.FP32], y: pl.Out[pl.Tensor[[3, NR, 1, N], pl.FP32]]):
    data_buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
    sig_buf = pld.alloc_window_buffer([pld.world_size()], dtype=pl.INT32)
    sig = pld.window(sig_buf, [pld.world_size()], dtype=pl.INT32)
    data = pld.window(data_buf, [1, N], dtype=pl.FP32)
    for rd in pl.range(3):
        for r in pl.range(pld.world_size()):
            publish(x[rd, r], data, device=r)
        data = pld.tensor.allreduce(data, sig, op=pld.ReduceOp.Sum)
        for r in pl.range(pld.world_size()):
            consume(y[rd, r], data, device=r)
        sig = pld.tensor.barrier(sig)


@pytest.mark.parametrize("p", [2, 4])
def test_signal_reuse_over_rounds(p):  # C-63, P-23
    x = RNG.standard_normal((3, p, 1, N), dtype=np.float32)
    y = np.zeros_like(x)
    rounds(x, y, config=world(p))
    np.testing.assert_allclose(y, np.broadcast_to(x.sum(1, keepdims=True), x.shape), rtol=1e-5, atol=1e-5)


@pl.jit.incore
def group_kernel(
    x: pl.Tensor[[1, 64], pl.FP32],
    y: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
    data: pld.DistributedTensor[[1, 64], pl.FP32],
    sig: pld.DistributedTensor[[2, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    data = pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], data)
    sig = pld.tensor.barrier(sig)
    other = 1 - pld.rank(ctx)
    y = pl.store(pld.tile.remote_load(data, peer=other, offsets=[0, 0], shape=[1, 64]), [0, 0], y)
    return y


@pl.jit
def group(
    x: pl.Tensor[[1, 64], pl.FP32],
    y: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
    data: pld.DistributedTensor[[1, 64], pl.FP32],
    sig: pld.DistributedTensor[[2, 1], pl.INT32],
):
    return group_kernel(x, y, data, sig)


@pl.jit.host
def two_groups(x: pl.Tensor[[2, 3, 1, 64], pl.FP32], y: pl.Out[pl.Tensor[[2, 3, 1, 64], pl.FP32]]):
    a_buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
    a_sig_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    b_buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
    b_sig_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    for r in pl.range(2):
        a = pld.window(a_buf, [1, 64], dtype=pl.FP32)
        a_sig = pld.window(a_sig_buf, [2, 1], dtype=pl.INT32)
        group(x[0, r], y[0, r], a, a_sig, device=r)
    for r in pl.range(1, 3):
        b = pld.window(b_buf, [1, 64], dtype=pl.FP32)
        b_sig = pld.window(b_sig_buf, [2, 1], dtype=pl.INT32)
        group(x[1, r], y[1, r], b, b_sig, device=r)


def test_subset_domains_overlap_on_one_device():  # D-50 - D-53, P-5
    x = RNG.standard_normal((2, 3, 1, 64), dtype=np.float32)
    y = np.full_like(x, -5)
    two_groups(x, y, config=world(3))
    np.testing.assert_array_equal(y[0, :2], x[0, [1, 0]])
    np.testing.assert_array_equal(y[1, 1:], x[1, [2, 1]])
    np.testing.assert_array_equal(y[0, 2], -5)  # rows that nobody writes keep their values (D-40)
    np.testing.assert_array_equal(y[1, 0], -5)


def make_mover(name):
    @pl.jit.incore
    def stage_kernel(x: pl.Tensor[[NR, 64], pl.FP32], src: pld.DistributedTensor[[NR, 64], pl.FP32]):
        for q in pl.range(pld.nranks(pld.get_comm_ctx(src))):
            src = pl.store(pl.load(x, [q, 0], [1, 64]), [q, 0], src)
        return src

    @pl.jit
    def stage(x: pl.Tensor[[NR, 64], pl.FP32], src: pld.DistributedTensor[[NR, 64], pl.FP32]):
        return stage_kernel(x, src)

    @pl.jit.incore
    def show_kernel(y: pl.Out[pl.Tensor[[NR, 64], pl.FP32]], dst: pld.DistributedTensor[[NR, 64], pl.FP32]):
        for q in pl.range(pld.nranks(pld.get_comm_ctx(dst))):
            y = pl.store(pl.load(dst, [q, 0], [1, 64]), [q, 0], y)
        return y

    @pl.jit
    def show(y: pl.Out[pl.Tensor[[NR, 64], pl.FP32]], dst: pld.DistributedTensor[[NR, 64], pl.FP32]):
        return show_kernel(y, dst)

    @pl.jit.host
    def program(x: pl.Tensor[[NR, NR, 64], pl.FP32], y: pl.Out[pl.Tensor[[NR, NR, 64], pl.FP32]]):
        src_buf = pld.alloc_window_buffer([pld.world_size(), 64], dtype=pl.FP32)
        dst_buf = pld.alloc_window_buffer([pld.world_size(), 64], dtype=pl.FP32)
        sig_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
        src = pld.window(src_buf, [pld.world_size(), 64], dtype=pl.FP32)
        dst = pld.window(dst_buf, [pld.world_size(), 64], dtype=pl.FP32)
        sig = pld.window(sig_buf, [pld.world_size(), 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            stage(x[r], src, device=r)
        if name == "all_to_all":
            dst = pld.tensor.all_to_all(src, dst, sig)
        else:
            dst = pld.tensor.all_to_all(src, dst, sig)
            dst = pld.tensor.reduce_scatter(dst, sig, op=pld.ReduceOp.Sum)
        for r in pl.range(pld.world_size()):
            show(y[r], dst, device=r)

    return program


@pytest.mark.parametrize("p", [1, 2, 4])
@pytest.mark.parametrize("name", ["all_to_all", "reduce_scatter"])
def test_movers(p, name):  # C-46, C-47
    x = RNG.standard_normal((p, p, 64), dtype=np.float32)
    y = np.zeros_like(x)
    make_mover(name)(x, y, config=world(p))
    exchanged = x.swapaxes(0, 1)
    if name == "all_to_all":
        want = exchanged
    else:
        want = exchanged.copy()
        for r in range(p):
            want[r, r] = exchanged[:, r].sum(0)
    np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-5)


def make_broadcast(root):
    @pl.jit.host
    def program(x: pl.Tensor[[NR, 1, N], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, N], pl.FP32]]):
        data_buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
        sig_buf = pld.alloc_window_buffer([pld.world_size()], dtype=pl.INT32)
        data = pld.window(data_buf, [1, N], dtype=pl.FP32)
        sig = pld.window(sig_buf, [pld.world_size()], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            publish(x[r], data, device=r)
        pld.tensor.broadcast(data, sig, root=root)
        for r in pl.range(pld.world_size()):
            consume(y[r], data, device=r)

    return program


@pytest.mark.parametrize("p,root", [(1, 0), (2, 1), (5, 3)])
def test_broadcast(p, root):  # C-44
    x = RNG.standard_normal((p, 1, N), dtype=np.float32)
    y = np.zeros_like(x)
    make_broadcast(root)(x, y, config=world(p))
    np.testing.assert_array_equal(y, np.broadcast_to(x[root], x.shape))


def test_broadcast_root_out_of_range():  # C-59
    x = RNG.standard_normal((2, 1, N), dtype=np.float32)
    with pytest.raises(Exception, match=r"root \(2\) must be a valid rank in \[0, 2\)"):
        make_broadcast(2)(x, np.zeros_like(x), config=world(2))


@pl.jit.host
def met_in_between(x: pl.Tensor[[NR, 1, N], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, N], pl.FP32]]):
    data_buf = pld.alloc_window_buffer([1, N], dtype=pl.FP32)
    meet_buf = pld.alloc_window_buffer([pld.world_size()], dtype=pl.INT32)
    meet = pld.window(meet_buf, [pld.world_size()], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [1, N], dtype=pl.FP32)
        publish(x[r], data, device=r)
    meet = pld.tensor.barrier(meet)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [1, N], dtype=pl.FP32)
        consume(y[r], data, device=r)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_barrier_on_a_signal_of_its_own(p):  # C-40: no dispatch takes the signal
    x = RNG.standard_normal((p, 1, N), dtype=np.float32)
    y = np.zeros_like(x)
    met_in_between(x, y, config=world(p))
    np.testing.assert_array_equal(y, x)
    comm = last_report().ranks[0].comm
    assert comm["collectives"] == {"barrier": 1} and comm["notify_remote"] == p - 1
