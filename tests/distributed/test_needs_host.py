# SPDX-License-Identifier: Apache-2.0
"""What end-to-end programs need of the host side: one test per need of 03 section 13 (P-1 - P-11, P-25 - P-31, P-39)."""

import json
import pathlib
import re

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
import torch
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions, last_report

NR = pl.dynamic("NR")
R, C = 8, 32
RNG = np.random.default_rng(13)


def world(p, **sim):
    return RunConfig(
        platform="a2a3sim",
        distributed_config=DistributedConfig(device_ids=list(range(p))),
        sim=SimOptions(checks="strict", **sim),
    )


def noise(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@pl.jit.incore
def plus_rank_kernel(x: pl.Tensor[[R, C], pl.FP32], y: pl.Out[pl.Tensor[[R, C], pl.FP32]], k: pl.Scalar[pl.INT32]):
    t = pl.load(x, [0, 0], [R, C])
    y = pl.store(pl.add(t, pl.cast(k, pl.FP32)), [0, 0], y)
    return y


@pl.jit
def plus_rank(x: pl.Tensor[[R, C], pl.FP32], y: pl.Out[pl.Tensor[[R, C], pl.FP32]], k: pl.Scalar[pl.INT32]):
    y = plus_rank_kernel(x, y, k)
    return y


@pl.jit.host
def one_dispatch_per_rank(x: pl.Tensor[[NR, R, C], pl.FP32], y: pl.Out[pl.Tensor[[NR, R, C], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        plus_rank(x[r], y[r], r, device=r)


@pytest.mark.parametrize("p", [1, 2, 5])
def test_rank_loop_without_windows(p):  # P-1
    x, y = noise(p, R, C), noise(p, R, C)
    one_dispatch_per_rank(x, y, config=world(p))
    np.testing.assert_array_equal(y, x + np.arange(p, dtype=np.float32)[:, None, None])


@pl.jit.host
def inline_symbol(
    x: pl.Tensor[[pl.dynamic("NR"), R, C], pl.FP32], y: pl.Out[pl.Tensor[[pl.dynamic("NR"), R, C], pl.FP32]]
):
    for r in pl.parallel(pld.world_size()):
        plus_rank(x[r], y[r], 2 * r, device=r)


@pl.jit.host
def constant_dim(x: pl.Tensor[[3, R, C], pl.FP32], y: pl.Out[pl.Tensor[[3, R, C], pl.FP32]]):
    for r in pl.range(pld.world_size()):
        k = r
        plus_rank(x[k], y[k], 2 * k, device=k)


@pytest.mark.parametrize("program", [inline_symbol, constant_dim])
def test_world_shaped_tensors(program):  # P-2
    x, y = noise(3, R, C), noise(3, R, C)
    program(x, y, config=world(3))
    np.testing.assert_array_equal(y, x + 2 * np.arange(3, dtype=np.float32)[:, None, None])


@pl.jit.host
def many_indices(
    x: pl.Tensor[[2, NR, R, C], pl.FP32],
    y: pl.Out[pl.Tensor[[2, NR, R, C], pl.FP32]],
    z: pl.Out[pl.Tensor[[2, NR, R, C], pl.FP32]],
):
    for rd in pl.range(2):
        for r in pl.range(pld.world_size()):
            plus_rank(x[rd, r], y[rd, r], 10 * rd + r, device=r)
    plus_rank(y[0, 0], z[1, 0], 5, device=0)
    plus_rank(y[1, 1], z[0, 1], 6, device=1)


def test_multi_index_slices_and_rounds():  # P-3
    x, y, z = noise(2, 2, R, C), noise(2, 2, R, C), np.full((2, 2, R, C), 7, np.float32)
    many_indices(x, y, z, config=world(2))
    want = x + np.array([[0, 1], [10, 11]], np.float32)[:, :, None, None]
    np.testing.assert_array_equal(y, want)
    np.testing.assert_array_equal(z[1, 0], want[0, 0] + 5)
    np.testing.assert_array_equal(z[0, 1], want[1, 1] + 6)
    assert (z[0, 0] == 7).all() and (z[1, 1] == 7).all()


TP = 2


@pl.jit.incore
def scalars_kernel(
    y: pl.Out[pl.Tensor[[8], pl.INT32]],
    a: pl.Scalar[pl.INT32],
    b: pl.Scalar[pl.INT32],
    c: pl.Scalar[pl.INT32],
    d: pl.Scalar[pl.INT32],
    e: pl.Scalar[pl.INT64],
    f: pl.Scalar[pl.INT32],
    g: pl.Scalar[pl.INT32],
    h: pl.Scalar[pl.INT32],
):
    pl.write(y, [0], a)
    pl.write(y, [1], b)
    pl.write(y, [2], c)
    pl.write(y, [3], d)
    pl.write(y, [4], pl.cast(e, pl.INT32))
    pl.write(y, [5], f)
    pl.write(y, [6], g)
    pl.write(y, [7], h)
    return y


@pl.jit
def scalars(
    y: pl.Out[pl.Tensor[[8], pl.INT32]],
    a: pl.Scalar[pl.INT32],
    b: pl.Scalar[pl.INT32],
    c: pl.Scalar[pl.INT32],
    d: pl.Scalar[pl.INT32],
    e: pl.Scalar[pl.INT64],
    f: pl.Scalar[pl.INT32],
    g: pl.Scalar[pl.INT32],
    h: pl.Scalar[pl.INT32],
):
    return scalars_kernel(y, a, b, c, d, e, f, g, h)


@pl.jit.host
def host_scalars(y: pl.Out[pl.Tensor[[NR, 8], pl.INT32]], given: pl.Scalar[pl.INT32]):
    last = pld.world_size() - 1
    for r in pl.range(pld.world_size()):
        nxt = (r + 1) % pld.world_size()
        scalars(
            y[r],
            nxt,
            1 - r,
            r // TP * TP,
            r % TP,
            pld.world_size(),
            g=pl.min(r, last - 1) + pl.const(1, pl.INT32),
            f=given,
            h=(r - 1) % pld.world_size(),  # floor: in range, and no matter of device code
            device=r,
        )


def test_scalars_of_the_host():  # P-4, D-35
    p = 5
    y = np.full((p, 8), -1, np.int32)
    host_scalars(y, 42, config=world(p))
    for r in range(p):
        want = [(r + 1) % p, 1 - r, r // TP * TP, r % TP, p, 42, min(r, p - 2) + 1, (r - 1) % p]
        assert y[r].tolist() == want


@pl.jit.host
def no_rank_loop(x: pl.Tensor[[R, C], pl.FP32], y: pl.Out[pl.Tensor[[R, C], pl.FP32]]):
    mid = pl.create_tensor([R, C], dtype=pl.FP32)
    plus_rank(x, mid, 3)
    with pl.at(level=pl.Level.CHIP, role=pl.Role.Orchestrator):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.mul(mid, 2.0)


@pytest.mark.parametrize("p", [1, 2])
def test_host_without_rank_loop(p):  # P-6
    x, y = noise(R, C), noise(R, C)
    no_rank_loop(x, y, config=world(p))
    np.testing.assert_array_equal(y, (x + 3) * 2)


@pl.program
class Reduce:
    """Two devices in parallel, then a sub-worker that adds, then device work on its result."""

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self, x: pl.Tensor[[R, C], pl.FP32], y: pl.Out[pl.Tensor[[R, C], pl.FP32]], k: pl.Scalar[pl.INT32]
    ) -> pl.Tensor[[R, C], pl.FP32]:
        t = pl.load(x, [0, 0], [R, C])
        return pl.store(pl.mul(t, pl.cast(k, pl.FP32)), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self, x: pl.Tensor[[R, C], pl.FP32], y: pl.Out[pl.Tensor[[R, C], pl.FP32]], k: pl.Scalar[pl.INT32]
    ) -> pl.Tensor[[R, C], pl.FP32]:
        y = self.kernel(x, y, k)
        return y

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def add_up(a: pl.Tensor[[R, C], pl.FP32], b: pl.Tensor[[R, C], pl.FP32], total: pl.Out[pl.Tensor[[R, C], pl.FP32]]):
        assert isinstance(a, torch.Tensor) and not torch.equal(a, b)
        torch.add(a, b, out=total)

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self, x: pl.Tensor[[2, R, C], pl.FP32], y: pl.Out[pl.Tensor[[R, C], pl.FP32]]
    ) -> pl.Tensor[[R, C], pl.FP32]:
        a_buf = pl.create_tensor([R, C], dtype=pl.FP32)
        b_buf = pl.create_tensor([R, C], dtype=pl.FP32)
        total = pl.create_tensor([R, C], dtype=pl.FP32)
        a: pl.Tensor[[R, C], pl.FP32] = self.chip(x[0], a_buf, 2, device=0)
        b = self.chip(x[1], b_buf, 3, device=1)
        self.add_up(a, b, total)
        out = self.chip(total, y, 5, device=1)
        return out


def test_intermediates_and_sub_workers():  # P-7, P-8
    x, y = noise(2, R, C), noise(R, C)
    compiled = ir.compile(Reduce, platform="a2a3sim", distributed_config=DistributedConfig(device_ids=[4, 2]))
    compiled(x, y)
    np.testing.assert_allclose(y, 5 * (2 * x[0] + 3 * x[1]), rtol=1e-6)
    seen = []

    def instead(args):
        from pypto.runtime.distributed_runner import _tensor_from_continuous

        a, b, total = (_tensor_from_continuous(t) for t in args)
        seen.append(tuple(a.shape))
        total.copy_(a - b)

    with compiled.prepare(callbacks={"add_up": instead}) as rt:
        rt(x, y)
    np.testing.assert_allclose(y, 5 * (2 * x[0] - 3 * x[1]), rtol=1e-5, atol=1e-5)
    assert seen == [(R, C)]


@pl.program
class TwoResults:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        x: pl.Tensor[[R, C], pl.FP32],
        a: pl.Out[pl.Tensor[[R, C], pl.FP32]],
        b: pl.Out[pl.Tensor[[R, C], pl.FP32]],
    ) -> tuple[pl.Tensor[[R, C], pl.FP32], pl.Tensor[[R, C], pl.FP32]]:
        t = pl.load(x, [0, 0], [R, C])
        a = pl.store(pl.add(t, 1.0), [0, 0], a)
        b = pl.store(pl.mul(t, 2.0), [0, 0], b)
        return a, b

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        x: pl.Tensor[[R, C], pl.FP32],
        a: pl.Out[pl.Tensor[[R, C], pl.FP32]],
        b: pl.Out[pl.Tensor[[R, C], pl.FP32]],
    ) -> tuple[pl.Tensor[[R, C], pl.FP32], pl.Tensor[[R, C], pl.FP32]]:
        a, b = self.kernel(x, a, b)
        return a, b

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        x: pl.Tensor[[R, C], pl.FP32],
        a: pl.Out[pl.Tensor[[R, C], pl.FP32]],
        b: pl.Out[pl.Tensor[[R, C], pl.FP32]],
    ) -> tuple[pl.Tensor[[R, C], pl.FP32], pl.Tensor[[R, C], pl.FP32]]:
        one, two = self.chip(x, a, b, device=1)
        return one, two


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_tuple_results_and_call_styles(kind):  # P-9
    x = noise(R, C)
    compiled = ir.compile(TwoResults, platform="a5sim", distributed_config=DistributedConfig(device_ids=[0, 1]))
    given = torch.from_numpy(x) if kind == "torch" else x
    one, two = compiled(given)
    assert isinstance(one, torch.Tensor if kind == "torch" else np.ndarray)
    np.testing.assert_array_equal(np.asarray(one), x + 1)
    np.testing.assert_array_equal(np.asarray(two), x * 2)
    a, b = noise(R, C), noise(R, C)
    assert compiled(x, a, b) is None
    np.testing.assert_array_equal(a, x + 1)
    with pytest.raises(TypeError, match="expects 3 .*1"):
        compiled(x, a)


@pl.jit.incore
def swap_kernel(
    x: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[1, C], pl.FP32]],
    data: pld.DistributedTensor[[1, C], pl.FP32],
    sig: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    data = pl.store(pl.load(x, [0, 0], [1, C]), [0, 0], data)
    pld.tensor.barrier(sig)
    t = pld.remote_load(data, (pld.rank(ctx) + 1) % pld.nranks(ctx), [0, 0], [1, C])
    pl.store(t, [0, 0], y)


@pl.jit
def swap(
    x: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[1, C], pl.FP32]],
    data: pld.DistributedTensor[[1, C], pl.FP32],
    sig: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    swap_kernel(x, y, data, sig)


@pl.jit.host
def bytes_form(x: pl.Tensor[[NR, 1, C], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, C], pl.FP32]]):
    data_buf = pld.alloc_window_buffer(C * pl.FP32.get_byte())
    sig_buf: pl.Ptr = pld.alloc_window_buffer(size=pld.world_size() * pl.INT32.get_byte())
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [1, C], dtype=pl.FP32)
        sig = pld.window(sig_buf, [pld.world_size(), 1], dtype=pl.INT32)
        swap(x[r], y[r], data, sig, device=r)


@pl.jit.host
def views_once(x: pl.Tensor[[NR, 1, C], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, C], pl.FP32]]):
    data_buf = pld.tensor.alloc_window_buffer([C], dtype=pl.FP32)
    sig_buf = pld.tensor.alloc_window_buffer([pld.world_size()], dtype=pl.INT32)
    data: pld.DistributedTensor[[C], pl.FP32] = pld.tensor.window(data_buf, [C], dtype=pl.FP32)
    sig = pld.window(sig_buf, [pld.world_size()], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        swap(x[r], y[r], data, sig, device=r)


@pl.jit.host
def views_again(x: pl.Tensor[[2, NR, 1, C], pl.FP32], y: pl.Out[pl.Tensor[[2, NR, 1, C], pl.FP32]]):
    data_buf = pld.alloc_window_buffer([1, C], dtype=pl.FP32)
    sig_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    meet_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [1, C], dtype=pl.FP32)
        sig = pld.window(sig_buf, [pld.world_size(), 1], dtype=pl.INT32)
        swap(x[0, r], y[0, r], data, sig, device=r)
    meet = pld.window(meet_buf, [pld.world_size(), 1], dtype=pl.INT32)
    pld.tensor.barrier(meet)
    for q in pl.range(pld.world_size()):
        data = pld.window(data_buf, [1, C], dtype=pl.FP32)
        other = pld.window(sig_buf, [pld.world_size(), 1], dtype=pl.INT32)
        swap(x[1, q], y[1, q], data, other, device=q)


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("program", [bytes_form, views_once])
def test_allocation_forms_and_views(program, p):  # P-10, P-11
    x, y = noise(p, 1, C), noise(p, 1, C)
    program(x, y, config=world(p))
    np.testing.assert_array_equal(y, np.roll(x, -1, axis=0))
    assert last_report().diagnostics == []


@pytest.mark.parametrize("p", [1, 2, 3])
def test_views_in_later_loops(p):  # P-11
    x, y = noise(2, p, 1, C), noise(2, p, 1, C)
    views_again(x, y, config=world(p))
    np.testing.assert_array_equal(y, np.roll(x, -1, axis=1))


M = 4


@pl.jit.incore
def composite_kernel(
    x: pl.Tensor[[M * 2, C // 2], pl.FP32],
    y: pl.Out[pl.Tensor[[M * 2, C // 2], pl.FP32]],
    w: pld.DistributedTensor[[NR * 2, C // 2], pl.FP32],
):
    me = pld.rank(pld.get_comm_ctx(w))
    w = pl.store(pl.load(x, [0, 0], [2, C // 2]), [me * 2, 0], w)
    t = pl.load(x, [0, 0], [M * 2, C // 2])
    y = pl.store(t, [0, 0], y)
    y = pl.store(pl.neg(pl.load(w, [me * 2, 0], [2, C // 2])), [M * 2 - 2, 0], y)
    return y


@pl.jit
def composite(
    x: pl.Tensor[[M * 2, C // 2], pl.FP32],
    y: pl.Out[pl.Tensor[[M * 2, C // 2], pl.FP32]],
    w: pld.DistributedTensor[[NR * 2, C // 2], pl.FP32],
):
    return composite_kernel(x, y, w)


@pl.jit.host
def composite_host(x: pl.Tensor[[NR, M * 2, C // 2], pl.FP32], y: pl.Out[pl.Tensor[[NR, M * 2, C // 2], pl.FP32]]):
    buf = pld.alloc_window_buffer([pld.world_size() * 2, C // 2], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        w = pld.window(buf, [pld.world_size() * 2, C // 2], dtype=pl.FP32)
        composite(x[r], y[r], w, device=r)


def test_composite_dims():  # P-25
    x, y = noise(3, 8, 16), noise(3, 8, 16)
    composite_host(x, y, config=world(3))
    want = x.copy()
    want[:, 6:] = -x[:, :2]
    np.testing.assert_array_equal(y, want)


def test_prepared_worker_with_resident_tensors():  # P-26
    p = 3
    x, y = noise(p, R, C), noise(p, R, C)
    compiled = one_dispatch_per_rank.compile(x, y, config=world(p))
    other = inline_symbol.compile(x, y, config=world(p))
    with compiled.prepare(extra_compiled=[other]) as rt:
        rt.run(compiled, x, y)
        np.testing.assert_array_equal(y, x + np.arange(p, dtype=np.float32)[:, None, None])
        resident = rt.alloc_stacked_tensor(torch.from_numpy(x))
        out = rt.alloc_stacked_tensor(torch.zeros(p, R, C))
        handles = [rt.submit(program, resident, out) for program in (compiled, other)]
        for handle in handles:
            handle.result()
        back = torch.zeros(p, R, C)
        rt.copy_stacked_from(out, back)
        np.testing.assert_array_equal(back.numpy(), x + 2 * np.arange(p, dtype=np.float32)[:, None, None])
        rt.free_stacked_tensor(resident)
        rt.free_stacked_tensor(out)


@pl.jit.incore
def epoch_kernel(
    y: pl.Out[pl.Tensor[[1, 8], pl.INT32]],
    sig: pld.DistributedTensor[[1, 8], pl.INT32],
    epoch: pl.Scalar[pl.INT32],
):
    ctx = pld.get_comm_ctx(sig)
    n = pld.nranks(ctx)
    right = (pld.rank(ctx) + 1) % n
    pld.system.notify(sig, right, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(sig, [0, 0], epoch, cmp=pld.WaitCmp.Ge)
    pl.write(y, [0, 0], epoch)
    return y


@pl.jit
def epoch_device(
    y: pl.Out[pl.Tensor[[1, 8], pl.INT32]],
    sig: pld.DistributedTensor[[1, 8], pl.INT32],
    epoch: pl.Scalar[pl.INT32],
):
    return epoch_kernel(y, sig, epoch)


@pl.jit.host
def epochs(y: pl.Out[pl.Tensor[[NR, 1, 8], pl.INT32]], epoch: pl.Scalar[pl.INT32]):
    sig_buf = pld.alloc_window_buffer([1, 8], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        sig = pld.window(sig_buf, [1, 8], dtype=pl.INT32)
        epoch_device(y[r], sig, epoch, device=r)


def test_persistent_windows_carry_epochs():  # P-27, W-31
    y = np.zeros((2, 1, 8), np.int32)
    compiled = epochs.compile(epoch=pl.RUNTIME, config=world(2))
    with compiled.prepare(persistent=True, reset_persistent_windows=False) as rt:
        for epoch in range(1, 6):
            rt(y, epoch)
            assert (y[:, 0, 0] == epoch).all()
            assert last_report().diagnostics == []
    with pytest.raises(ValueError, match="requires persistent=True"):
        compiled.prepare(reset_persistent_windows=True)


def test_artefacts_per_rank_and_dispatch(tmp_path):  # P-28, A-6
    x, y = noise(2, 2, R, C), noise(2, 2, R, C)
    z = noise(2, 2, R, C)
    compiled = many_indices.compile(x, y, z, config=world(2))
    compiled(x, y, z, config=RunConfig(platform="a2a3sim", enable_l2_swimlane=True))
    folder = pathlib.Path(compiled.output_dir) / "dfx_outputs"
    for rank in range(2):
        for k in range(3):  # two rounds and one of the last two dispatches
            files = {p.name for p in (folder / f"rank{rank}" / f"d{k}").iterdir()}
            assert {"deps.json", "comm_stats.json"} <= files, (rank, k, files)
    assert json.loads((folder / "rank0" / "d0" / "comm_stats.json").read_text())["notify_remote"] == 0


@pl.program
class Several:
    """Two device orchestrations and no host function."""

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self, x: pl.Tensor[[R, C], pl.FP32], y: pl.Out[pl.Tensor[[R, C], pl.FP32]]
    ) -> pl.Tensor[[R, C], pl.FP32]:
        return pl.store(pl.add(pl.load(x, [0, 0], [R, C]), 1.0), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def prefill(
        self, x: pl.Tensor[[R, C], pl.FP32], y: pl.Out[pl.Tensor[[R, C], pl.FP32]]
    ) -> pl.Tensor[[R, C], pl.FP32]:
        y = self.kernel(x, y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def decode(
        self, a: pl.Tensor[[R, C], pl.FP32], b: pl.Out[pl.Tensor[[R, C], pl.FP32]]
    ) -> pl.Tensor[[R, C], pl.FP32]:
        b = self.kernel(a, b)
        return b


def test_several_orchestrations():  # P-30
    compiled = ir.compile(Several, platform="a2a3sim")
    assert sorted(compiled.orchestration_names) == ["decode", "prefill"]
    assert compiled["decode"].param_names == ["a", "b"]
    x, y = noise(R, C), noise(R, C)
    compiled.prefill(x, y)
    np.testing.assert_array_equal(y, x + 1)
    with pytest.raises(TypeError, match="select one explicitly"):
        compiled(x, y)
    with pytest.raises(KeyError, match="decode.*prefill|prefill.*decode"):
        compiled["train"]


def build_scaler(rows, scale, steps, dtype):
    @pl.program
    class Scaler:
        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, x: pl.Tensor[[rows, C], dtype], y: pl.Out[pl.Tensor[[rows, C], dtype]]):
            t = pl.load(x, [0, 0], [rows, C])
            for _ in pl.range(steps):
                t = pl.mul(t, scale)
            y = pl.store(t, [0, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(self, x: pl.Tensor[[rows, C], dtype], y: pl.Out[pl.Tensor[[rows, C], dtype]]):
            return self.kernel(x, y)

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: pl.Tensor[[NR, rows, C], dtype], y: pl.Out[pl.Tensor[[NR, rows, C], dtype]]):
            for r in pl.range(pld.world_size()):
                self.chip(x[r], y[r], device=r)

    return Scaler


@pytest.mark.parametrize("rows,scale,steps", [(4, 2.0, 3), (16, -1.0, 1), (8, 0.5, 2)])
def test_factories(rows, scale, steps):  # P-31
    x, y = noise(2, rows, C), noise(2, rows, C)
    compiled = ir.compile(
        build_scaler(rows, scale, steps, pl.FP32),
        platform="a2a3sim",
        distributed_config=DistributedConfig(device_ids=[0, 1]),
    )
    compiled(x, y)
    np.testing.assert_allclose(y, x * scale**steps, rtol=1e-6)


def test_every_execution_passes_through_the_replaceable_names(monkeypatch):  # P-39
    import pypto.runtime.distributed_runner as distributed_runner
    import pypto.runtime.runner as runner
    from pypto.ir.distributed_compiled_program import DistributedCompiledProgram

    x, y = noise(2, R, C), np.zeros((2, R, C), np.float32)
    seen = []
    monkeypatch.setattr(distributed_runner, "execute_distributed", lambda *a, **k: seen.append("distributed"))
    one_dispatch_per_rank(x, y, config=world(2))
    assert seen == ["distributed"] and not y.any()
    monkeypatch.setattr(runner, "execute_compiled", lambda *a, **k: seen.append("compiled"))
    single = ir.compile(Several, platform="a2a3sim")
    single.decode(x[0], y[0])
    assert seen == ["distributed", "compiled"] and not y.any()

    def no_worker(self, *args, **kwargs):
        raise KeyError("no devices here")

    monkeypatch.setattr(distributed_runner.DistributedWorker, "__init__", no_worker)
    with pytest.raises(KeyError, match="no devices here"):
        one_dispatch_per_rank.compile(x, y, config=world(2)).prepare()
    monkeypatch.setattr(DistributedCompiledProgram, "prepare", lambda self, *a, **k: "prepared")
    assert one_dispatch_per_rank.compile(x, y, config=world(2)).prepare() == "prepared"


def test_every_need_has_a_test():  # 03 section 13
    tests = pathlib.Path(__file__).parents[1]
    cited = set()
    for path in [*(tests / "distributed").glob("test_*.py"), tests / "runtime" / "test_distributed_worker.py"]:
        for first, last in re.findall(r"\bP-(\d+)(?: - P-(\d+))?", "".join(comments(path))):
            cited |= set(range(int(first), int(last or first) + 1))
    assert set(range(1, 43)) <= cited, set(range(1, 43)) - cited


def comments(path):
    """The text behind `#`, of functions and of lines of their own."""
    return [line.partition("#")[2] + "\n" for line in path.read_text().splitlines() if "#" in line]
