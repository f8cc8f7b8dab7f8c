# SPDX-License-Identifier: Apache-2.0
"""Unspecified values in reductions, products, indices, windows and signals (01 L-154, 03 M-37)."""

import numpy as np
import pypto
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import ChipWorker, RunConfig, SimOptions, last_report

CORE = pl.Level.CORE_GROUP
X = np.linspace(0.5, 3.6, 32, dtype=np.float32).reshape(4, 8)
N, SIZE = 2, 64


def call(kernel, *args, checks="default", devices=None):
    """The reports of one call; an error of the call counts as one."""
    more = {"distributed_config": DistributedConfig(device_ids=devices)} if devices else {}
    config = RunConfig(platform="a2a3sim", sim=SimOptions(checks=checks), **more)
    try:
        kernel(*args, config=config)
    except pypto.UninitializedReadError as error:
        return [error.diagnostic]
    return [d for d in last_report().diagnostics if d.id == "W-UNSPECIFIED"]


@pl.jit
def reduced(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        t = pl.create_tile([4, 8], dtype=pl.FP32)
        t = pl.assemble(t, pl.load(x, [0, 0], [3, 8]), [0, 0])
        t = pl.assemble(t, pl.load(x, [0, 0], [1, 6]), [3, 0])
        tmp = pl.create_tile([4, 8], dtype=pl.FP32)
        m = pl.row_max(t, tmp)
        out = pl.store(pl.row_expand_add(pl.load(x, [0, 0], [4, 8]), m), [0, 0], out)
    return out


@pl.jit
def reduced_written_part(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        t = pl.create_tile([4, 8], dtype=pl.FP32)
        t = pl.assemble(t, pl.load(x, [0, 0], [4, 6]), [0, 0])
        tmp = pl.create_tile([4, 8], dtype=pl.FP32)
        m = pl.row_max(pl.set_validshape(t, 4, 6), tmp)
        out = pl.store(pl.row_expand_add(pl.load(x, [0, 0], [4, 8]), m), [0, 0], out)
    return out


@pl.jit
def gathered(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        index = pl.create_tile([4, 8], dtype=pl.INT32)
        index = pl.assemble(index, pl.tile.full([4, 4], dtype=pl.INT32, value=3), [0, 0])
        tmp = pl.create_tile([4, 8], dtype=pl.INT32)
        g = pl.tile.gather(pl.load(x, [0, 0], [4, 8]), index, tmp)
        out = pl.store(g, [0, 0], out)
    return out


@pl.jit
def multiplied(
    a: pl.Tensor[[16, 16], pl.FP16], b: pl.Tensor[[16, 16], pl.FP16], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
):
    t = pl.create_tensor([16, 16], dtype=pl.FP16)
    with pl.at(level=CORE):
        t = pl.store(pl.load(a, [0, 0], [9, 16]), [0, 0], t)
    with pl.at(level=CORE):
        left = pl.load(t, [0, 0], [16, 16], target_memory=pl.MemorySpace.Mat)
        right = pl.load(b, [0, 0], [16, 16], target_memory=pl.MemorySpace.Mat)
        out = pl.store(pl.matmul(left, right), [0, 0], out)
    return out


def test_reduction():
    # Only the row that mixes is named, and only its cells of the output.
    mixed, output = call(reduced, X, np.zeros((4, 8), np.float32))
    assert "the reduction mixes specified values with unspecified ones, cell [3, 6] was never written" in mixed.message
    assert "pl.PadValue.min" in mixed.help
    assert "element [3, 0] of 'out' of shape [4, 8] and 7 more" in output.message
    (error,) = call(reduced, X, np.zeros((4, 8), np.float32), checks="strict")
    assert error.severity == "error" and error.line == mixed.line
    for checks in ("default", "strict"):
        assert call(reduced_written_part, X, np.zeros((4, 8), np.float32), checks=checks) == []


def test_product():
    a = np.arange(256, dtype=np.float16).reshape(16, 16) / 16
    mixed, output = call(multiplied, a, a, np.zeros((16, 16), np.float32))
    assert "matmul: " in mixed.message and "cell [9, 0] was never written ('t' is created at " in mixed.message
    assert "element [9, 0] of 'out' of shape [16, 16] and 111 more" in output.message


def test_index():
    for checks in ("default", "strict"):
        (d,) = call(gathered, X, np.zeros((4, 8), np.float32), checks=checks)
        assert d.severity == "error" and "decides an index, cell [0, 4] was never written" in d.message
    assert call(gathered, X, np.zeros((4, 8), np.float32), checks="off") == []


@pl.program
class Predicated:
    @pl.function(type=pl.FunctionType.InCore)
    def fill(self, x: pl.Tensor[[4, 8], pl.FP32], o: pl.Out[pl.Tensor[[4, 8], pl.FP32]]) -> pl.Tensor[[4, 8], pl.FP32]:
        o = pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], o)
        return o

    @pl.function(type=pl.FunctionType.InCore)
    def raise_flag(self, o: pl.InOut[pl.Tensor[[2], pl.INT32]]) -> pl.Tensor[[2], pl.INT32]:
        pl.write(o, [1], 3)
        return o

    @pl.function(type=pl.FunctionType.Orchestration)
    def written(self, x: pl.Tensor[[4, 8], pl.FP32], a: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
        flags = pl.create_tensor([2], dtype=pl.INT32)
        flags, flag_task = pl.submit(self.raise_flag, flags)
        a, _ = pl.submit(self.fill, x, a, deps=[flag_task], predicate=(flags[1] > 2))

    @pl.function(type=pl.FunctionType.Orchestration)
    def unwritten(self, x: pl.Tensor[[4, 8], pl.FP32], a: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
        flags = pl.create_tensor([2], dtype=pl.INT32)
        flags, flag_task = pl.submit(self.raise_flag, flags)
        a, _ = pl.submit(self.fill, x, a, deps=[flag_task], predicate=(flags[0] > 2))


def test_predicate(tmp_path):
    compiled = ir.compile(Predicated, output_dir=tmp_path / "b", dump_passes=False)
    a = np.zeros_like(X)
    compiled.written(X, a)
    assert np.array_equal(a, X)
    with pytest.raises(pypto.UninitializedReadError, match="decides the predicate of the launch of 'fill'") as error:
        compiled.unwritten(X, np.zeros_like(X))
    assert error.value.diagnostic.kernel == "fill" and error.value.diagnostic.rank == 0


# ---------------------------------------------------------------- windows and signals


@pl.jit.incore
def pushed_then_read(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[N, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    peer = (pld.rank(ctx) + 1) % pld.nranks(ctx)
    local = pl.create_tile([1, SIZE], dtype=pl.FP32)
    local = pl.assemble(local, pl.load(x, [0, 0], [1, 32]), [0, 0])
    pld.tile.remote_store(local, data, peer=peer, offsets=[0, 0])
    signal = pld.tensor.barrier(signal)
    if pl.read(data, [0, 31]) > 0.0:
        y = pl.store(pl.load(data, [0, 0], [1, SIZE]), [0, 0], y)
    return y


@pl.jit.incore
def pushed_then_decides(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[N, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    peer = (pld.rank(ctx) + 1) % pld.nranks(ctx)
    local = pl.create_tile([1, SIZE], dtype=pl.FP32)
    local = pl.assemble(local, pl.load(x, [0, 0], [1, 32]), [0, 0])
    pld.tile.remote_store(local, data, peer=peer, offsets=[0, 0])
    signal = pld.tensor.barrier(signal)
    if pl.read(data, [0, 32]) > -1.0:
        y = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], y)
    return y


@pl.jit.incore
def notified(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[N, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    peer = (pld.rank(ctx) + 1) % pld.nranks(ctx)
    t = pl.create_tile([1, 8], dtype=pl.INT32)
    n = pl.tile.read(t, [0, 1]) + 1
    pld.system.notify(signal, peer=peer, offsets=[0, 0], value=n, op=pld.NotifyOp.AtomicAdd)
    y = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], y)
    return y


@pl.jit.incore
def window_read_before_writes(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[N, 1], pl.INT32],
):
    # Windows are zero at the start of a call (03 W-13).
    if pl.read(data, [0, 3]) > -1.0:
        y = pl.store(pl.load(data, [0, 0], [1, SIZE]), [0, 0], y)
    return y


def host_of(kernel):
    @pl.jit
    def on_device(
        x: pl.Tensor[[1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        data: pld.DistributedTensor[[1, SIZE], pl.FP32],
        signal: pld.DistributedTensor[[N, 1], pl.INT32],
    ):
        y = kernel(x, y, data, signal)
        return y

    @pl.jit.host
    def host(x: pl.Tensor[[N, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[N, 1, SIZE], pl.FP32]]):
        data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
        signal_buf = pld.alloc_window_buffer([N, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
            signal = pld.window(signal_buf, [N, 1], dtype=pl.INT32)
            on_device(x[r], y[r], data, signal, device=r)
        return y

    return host


CASES = [
    (pushed_then_read, "warning", "element [0, 0, 32] of 'y' of shape [2, 1, 64] and 63 more"),
    (pushed_then_decides, "error", "decides which way a branch goes: cell [0, 32] of 'data'"),
    (notified, "error", "decides the value of a signal (notify): cell [0, 1] of 't'"),
    (window_read_before_writes, None, ""),
]


@pytest.mark.parametrize("kernel,severity,text", CASES, ids=lambda v: getattr(v, "__name__", None))
def test_windows(kernel, severity, text):
    x = np.linspace(1, 2, N * SIZE, dtype=np.float32).reshape(N, 1, SIZE)
    host = host_of(kernel)
    for _ in range(2):
        reports = call(host, x, np.zeros_like(x), devices=[0, 1])
        assert len(reports) == (severity is not None)
        if reports:
            assert reports[0].severity == severity and text in reports[0].message
            assert reports[0].rank == 0


# ---------------------------------------------------------------- device memory


@pl.jit
def doubled(x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
    with pl.at(level=CORE):
        t = pl.load(x, [0, 0], [4, 8])
        out = pl.store(pl.add(t, t), [0, 0], out)
    return out


def test_device_memory():
    # 04 DEV-2: allocated without init; a copy makes it specified.
    out = np.zeros((4, 8), np.float32)
    with ChipWorker() as worker:
        held = worker.alloc_tensor((4, 8), pl.FP32)
        doubled(held, out)
        (d,) = [d for d in last_report().diagnostics if d.id == "W-UNSPECIFIED"]
        assert "element [0, 0] of 'out' of shape [4, 8] and 31 more" in d.message
        assert "'x' is device memory allocated without init" in d.message
        worker.copy_to(held.data_ptr, X.ctypes.data, 128)
        doubled(held, out)
        assert [d for d in last_report().diagnostics if d.id == "W-UNSPECIFIED"] == []
        filled = worker.alloc_tensor((4, 8), pl.FP32)
        doubled(worker.alloc_tensor((4, 8), pl.FP32, init=X), filled)
        assert [d for d in last_report().diagnostics if d.id == "W-UNSPECIFIED"] == []
        doubled(filled, out)
        assert [d for d in last_report().diagnostics if d.id == "W-UNSPECIFIED"] == []
    assert np.array_equal(out, 4 * X)
