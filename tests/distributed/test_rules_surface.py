# SPDX-License-Identifier: Apache-2.0
"""Spellings of 03: aliases, keywords, annotations of windows and contexts, values from an enclosing scope, sub-workers."""

import ast
import os
import pathlib
import subprocess
import sys

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from everywhere import everywhere, noise
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions, last_report

NR = pl.dynamic("NR")
M = pl.dynamic("M")
K = 64
AT = [0, 0]
SHAPE = [1, K]
ADD = pld.NotifyOp.AtomicAdd
GE = pld.WaitCmp.Ge
FP = pl.FP32
RNG = np.random.default_rng(211)
ROOT = pathlib.Path(__file__).parents[2]


def world(p, **more):
    return RunConfig(platform="a2a3sim", distributed_config=DistributedConfig(device_ids=list(range(p))), **more)


# ------------------------------------------------ names, keywords, annotations


@pl.jit.inline
def domain_rank(ctx: pld.CommCtx):
    return pld.system.rank(ctx)


@pl.jit.incore
def spelled(
    x: pl.Tensor[[1, K], FP],
    y: pl.Out[pl.Tensor[[1, K], FP]],
    w: pld.DistributedTensor[[M, K], pl.FP32, pl.TensorLayout.ND, "window_buffer=w_buf"],  # noqa: F722
    v: pl.InOut[pld.DistributedTensor[[1, K], FP]],
    s: pl.Out[pld.DistributedTensor[[NR, 1], pl.INT32]],
    ctx: pld.CommCtx,
) -> tuple[pld.DistributedTensor[[M, K], pl.FP32], pl.Tensor[[1, K], pl.FP32]]:
    here: pld.CommCtx = pld.get_comm_ctx(dist_tensor=s)
    me = pld.rank(ctx=ctx)
    last = pl.tensor.dim(w, 0) - 1
    w = pl.store(pl.load(x, AT, SHAPE), [last, 0], w)
    v = pl.store(pl.load(x, AT, SHAPE), AT, v)
    pld.system.notify(
        target=s, peer=(me + 1) % pld.system.nranks(here), offsets=(domain_rank(here), 0), value=1, op=ADD
    )
    before = (me + pld.nranks(here) - 1) % pld.nranks(here)
    pld.system.wait(signal=s, offsets=[before, 0], expected=1, cmp=GE)
    t = pld.tile.remote_load(target=w, peer=before, offsets=[last, 0], shape=SHAPE, valid_shape=None)
    y = pl.store(t, AT, y)
    return w, y


@pl.jit
def spelled_on_device(
    x: pl.Tensor[[1, K], FP],
    y: pl.Out[pl.Tensor[[1, K], FP]],
    w: pld.DistributedTensor[[M, K], pl.FP32],
    v: pld.DistributedTensor[[1, K], FP],
    s: pld.DistributedTensor[[NR, 1], pl.INT32],
) -> tuple[pld.DistributedTensor[[M, K], pl.FP32], pl.Tensor[[1, K], pl.FP32]]:
    ctx = pld.get_comm_ctx(v)
    w, y = spelled(x, y, w, v, s, ctx)
    return w, y


@pl.jit.host
def spelled_host(x: pl.Tensor[[NR, 1, K], FP], y: pl.Out[pl.Tensor[[NR, 1, K], FP]]):
    w_buf: pl.Ptr = pld.tensor.alloc_window_buffer(size=3 * K * 4)
    v_buf = pld.alloc_window_buffer(size=(1, K), dtype=FP)
    s_buf = pld.alloc_window_buffer(pld.system.world_size() * pl.INT32.get_byte())
    for r in pl.range(pld.world_size()):
        w = pld.tensor.window(buf=w_buf, shape=(3, K), dtype=pl.FP32)
        v = pld.window(v_buf, [K], dtype=FP)
        s: pld.DistributedTensor[[pld.world_size(), 1], pl.INT32] = pld.window(
            s_buf, [pld.world_size(), 1], dtype=pl.INT32
        )
        w2, row = spelled_on_device(s=s, v=v, w=w, y=y[r], x=x[r], device=r)


@pytest.mark.parametrize("p", [1, 2, 3, 5])
def test_spellings(p):  # D-2, D-35, W-1, W-20, W-23, T-1, T-6, T-8, T-9, O-1
    x = noise(RNG, p, 1, K)
    everywhere(spelled_host, [x, np.zeros_like(x)], p, {1: np.roll(x, 1, axis=0)})


@pytest.mark.parametrize("exponent", [1, 2])
def test_one_symbol_takes_its_extent_at_each_call(exponent):  # T-8, D-41
    rows = 2**exponent

    @pl.jit
    def fill(w: pld.DistributedTensor[[M, K], pl.INT32], y: pl.Out[pl.Tensor[[rows, 1], pl.INT32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(pl.tensor.dim(w, 0)):
                pl.write(w, [i, 1], pl.cast(i + 1, pl.INT32))
                pl.write(y, [i, 0], pl.read(w, [i, 1]))
        return y

    @pl.jit.host
    def program(y: pl.Out[pl.Tensor[[NR, rows, 1], pl.INT32]]):
        b = pld.alloc_window_buffer([rows, K], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            fill(pld.window(b, [rows, K], dtype=pl.INT32), y[r], device=r)

    y = np.full((2, rows, 1), -1, np.int32)
    program(y, config=world(2))
    assert y[:, :, 0].tolist() == [list(range(1, rows + 1))] * 2


def test_importing_needs_no_device_and_starts_nothing():  # D-3
    code = (
        "import threading, sys, pypto.language.distributed as pld\n"
        "assert threading.active_count() == 1 and 'torch' not in sys.modules\n"
        "assert pld.DistributedTensor.__mro__[1].__name__ == 'Tensor'\n"  # T-2
        "print(*pld.__all__)"
    )
    env = {k: v for k, v in os.environ.items() if not k.startswith(("ASCEND", "PYPTO"))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert done.stdout.split() == sorted(done.stdout.split()) and "alloc_window_buffer" in done.stdout


# ------------------------------------------------ sub-workers and calls that fail


@pl.jit.incore
def scale(x: pl.Tensor[[1, K], FP], y: pl.Out[pl.Tensor[[1, K], FP]], w: pld.DistributedTensor[[1, K], FP]):
    was = pl.load(w, AT, SHAPE)
    w = pl.store(pl.add(was, pl.load(x, AT, SHAPE)), AT, w)
    y = pl.store(pl.load(w, AT, SHAPE), AT, y)
    return y


@pl.jit
def scale_on_device(x: pl.Tensor[[1, K], FP], y: pl.Out[pl.Tensor[[1, K], FP]], w: pld.DistributedTensor[[1, K], FP]):
    return scale(x, y, w)


@pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
def between(y: pl.InOut[pl.Tensor[[NR, 1, K], FP]]):
    if y[0, 0, 0] > 100:
        raise ValueError("too large")
    y[:] = y * 2 + 1


@pl.jit.host
def with_sub_worker(x: pl.Tensor[[NR, 1, K], FP], y: pl.Out[pl.Tensor[[NR, 1, K], FP]]):
    b = pld.alloc_window_buffer([1, K], dtype=FP)
    mid = pl.create_tensor([NR, 1, K], dtype=FP)
    for r in pl.range(pld.world_size()):
        scale_on_device(x[r], mid[r], pld.window(b, [1, K], dtype=FP), device=r)
    between(mid)
    for r in pl.range(pld.world_size()):
        scale_on_device(mid[r], y[r], pld.window(b, [1, K], dtype=FP), device=r)


@pytest.mark.parametrize("p", [1, 3])
def test_a_sub_worker_between_dispatches(p):  # D-63, D-22, D-38, M-15
    x = noise(RNG, p, 1, K)
    everywhere(with_sub_worker, [x, np.zeros_like(x)], p, {1: 3 * x + 1})


@pytest.mark.parametrize("persistent", [False, True])
def test_after_a_call_that_failed(persistent):  # D-63, W-33
    x = noise(RNG, 2, 1, K)
    bad = x.copy()
    bad[0, 0, 0] = 101
    y = np.zeros_like(x)
    compiled = with_sub_worker.compile(x, y, config=world(2))
    with compiled.prepare(persistent=persistent) as worker:
        worker(x, y)
        with pytest.raises(RuntimeError, match="sub-worker 'between' raised ValueError: too large"):
            worker(bad, y)
        if persistent:
            with pytest.raises(RuntimeError, match="an earlier dispatch failed[^$]*too large"):
                worker(x, y)
            return
        y[:] = 0
        worker(x, y)
    np.testing.assert_allclose(y, 3 * x + 1, rtol=1e-5, atol=1e-5)


# ------------------------------------------------ accepted without a word


@pl.jit.incore
def odd(
    r: pl.Scalar[pl.INT32],
    x: pl.InOut[pl.Tensor[[1, K], FP]],
    y: pl.Out[pl.Tensor[[1, K], FP]],
    w: pld.DistributedTensor[[1, K], FP],
    s: pld.DistributedTensor[[1, 8], pl.INT32],
):
    pld.system.notify(s, r, [0, 0], 3, op=pld.NotifyOp.AtomicAdd)
    pld.system.notify(s, r, [0, 0], -1, op=pld.NotifyOp.AtomicAdd)
    pld.system.notify(s, r, [0, 1], 5, op=pld.NotifyOp.Set)  # left unread
    pld.system.wait(s, [0, 0], 2, cmp=pld.WaitCmp.Ge)
    pld.tensor.put(w, r, x)
    y = pl.store(pl.load(w, AT, SHAPE), AT, y)
    return y


@pl.jit
def odd_on_device(
    r: pl.Scalar[pl.INT32],
    x: pl.InOut[pl.Tensor[[1, K], FP]],
    y: pl.Out[pl.Tensor[[1, K], FP]],
    w: pld.DistributedTensor[[1, K], FP],
    s: pld.DistributedTensor[[1, 8], pl.INT32],
):
    return odd(r, x, y, w, s)


@pl.jit.host
def odd_host(x: pl.InOut[pl.Tensor[[NR, 1, K], FP]], y: pl.Out[pl.Tensor[[NR, 1, K], FP]]):
    wide = pld.alloc_window_buffer([7, K], dtype=FP)
    cells = pld.alloc_window_buffer([1, 8], dtype=pl.INT32)
    w = pld.window(wide, [1, K], dtype=FP)
    s = pld.window(cells, [1, 8], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        odd_on_device(r, x[r], y[r], w, s, device=r)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("p", [1, 2, 3])
def test_accepted(p):  # X-74, O-2
    x = noise(RNG, p, 1, K)
    y = np.zeros_like(x)
    odd_host(x, y, config=world(p, sim=SimOptions(checks="strict")))
    np.testing.assert_array_equal(y, x)
    assert [d for d in last_report().diagnostics if d.severity != "note"] == []


# ------------------------------------------------ the shape of the ladder's programs


@pytest.mark.parametrize("path", sorted((ROOT / "examples" / "distributed").glob("[01]*.py")), ids=lambda p: p.stem)
def test_shape_of_a_step(path):  # G-1, G-7
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree)
    functions = {f.name: f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)}
    kinds = {ast.unparse(d) for f in functions.values() for d in f.decorator_list}
    assert {"pl.jit.incore", "pl.jit", "pl.jit.host"} <= kinds
    assert any("golden" in name for name in functions)
    assert ast.unparse(functions["main"].returns) == "int"
    text = path.read_text()
    assert "num_sub_workers=0" in text and ".compile(" in text
