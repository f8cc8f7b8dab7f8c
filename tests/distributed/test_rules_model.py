# SPDX-License-Identifier: Apache-2.0
"""What 03 says of worlds, dispatch order, window memory, moves to oneself and the counters of a call."""

import inspect
import json

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from everywhere import everywhere, noise
from pypto.ir.distributed_compiled_program import DistributedCompiledProgram, DistributedConfig
from pypto.runtime import RunConfig, last_report
from pypto.runtime.distributed_runner import DistributedWorker

NR = pl.dynamic("NR")
C = 64
RNG = np.random.default_rng(361)


def on(p, ids=None):
    return RunConfig(platform="a2a3sim", distributed_config=DistributedConfig(device_ids=ids or list(range(p))))


# ------------------------------------------------ rounds of dispatches that keep their state in one window


@pl.jit.incore
def fold(
    x: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[1, C], pl.FP32]],
    acc: pld.DistributedTensor[[1, C], pl.FP32],
    k: pl.Scalar[pl.INT32],
):
    was = pl.load(acc, [0, 0], [1, C])
    now = pl.add(pl.mul(was, 2.0), pl.mul(pl.load(x, [0, 0], [1, C]), pl.cast(k + 1, pl.FP32)))
    acc = pl.store(now, [0, 0], acc)
    y = pl.store(now, [0, 0], y)
    return y


@pl.jit
def fold_on_device(
    x: pl.Tensor[[1, C], pl.FP32],
    y: pl.Out[pl.Tensor[[1, C], pl.FP32]],
    acc: pld.DistributedTensor[[1, C], pl.FP32],
    k: pl.Scalar[pl.INT32],
):
    return fold(x, y, acc, k)


@pl.jit.host
def rounds(x: pl.Tensor[[NR, 1, C], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, C], pl.FP32]]):
    for k in pl.range(3):
        for r in pl.range(pld.world_size()):
            buf = pld.alloc_window_buffer([1, C], dtype=pl.FP32)
            acc = pld.window(buf, [1, C], dtype=pl.FP32)
            fold_on_device(x[r], y[r], acc, k, device=r)
    for r in pl.parallel(pld.world_size()):
        acc = pld.window(buf, [1, C], dtype=pl.FP32)
        fold_on_device(x[r], y[r], acc, 3, device=r)


@pytest.mark.filterwarnings("ignore:X-11")
@pytest.mark.parametrize("p", [1, 2, 5])
def test_rounds_share_one_buffer(p):  # D-36, D-37, W-4, W-13, M-14: in host order, on a buffer made once
    x = noise(RNG, p, 1, C)
    # ((1 * 2 + 2) * 2 + 3) * 2 + 4 = 26; a buffer made anew in each round would give 4
    everywhere(rounds, [x, np.zeros_like(x)], p, {1: 26 * x})


@pytest.mark.filterwarnings("ignore:X-11")
def test_windows_between_calls():  # W-30, W-31, M-16, M-17
    x = noise(RNG, 2, 1, C)
    y = np.zeros_like(x)
    compiled = rounds.compile(x, y, config=on(2))
    for _ in range(2):
        compiled(x, y)
        np.testing.assert_allclose(y, 26 * x, rtol=1e-5, atol=1e-5)
    for options, second in (
        ({}, 26),
        ({"persistent": True}, 26),
        ({"persistent": True, "reset_persistent_windows": True}, 26),
        ({"persistent": True, "reset_persistent_windows": False}, 26 * 16 + 26),
    ):
        with compiled.prepare(**options) as worker:
            worker(x, y)
            np.testing.assert_allclose(y, 26 * x, rtol=1e-5, atol=1e-5)
            worker.submit(compiled, x, y).result()
            np.testing.assert_allclose(y, second * x, rtol=1e-5, atol=1e-4, err_msg=str(options))
    with pytest.raises(ValueError, match="requires persistent=True"):
        compiled.prepare(reset_persistent_windows=True)


# ------------------------------------------------ worlds


@pl.jit.incore
def name_rank(
    y: pl.Out[pl.Tensor[[1, 8], pl.INT32]], box: pld.DistributedTensor[[1, 8], pl.INT32], r: pl.Scalar[pl.INT32]
):
    ctx = pld.get_comm_ctx(box)
    pl.write(y, [0, 0], r)
    pl.write(y, [0, 1], pld.rank(ctx))
    pl.write(y, [0, 2], pld.nranks(ctx))
    for i in pl.range(3, 8):
        pl.write(y, [0, i], 0)
    return y


@pl.jit
def name_on_device(
    y: pl.Out[pl.Tensor[[1, 8], pl.INT32]], box: pld.DistributedTensor[[1, 8], pl.INT32], r: pl.Scalar[pl.INT32]
):
    return name_rank(y, box, r)


@pl.jit.host
def names(y: pl.Out[pl.Tensor[[NR, 1, 8], pl.INT32]]):
    buf = pld.alloc_window_buffer([1, 8], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        box = pld.window(buf, [1, 8], dtype=pl.INT32)
        name_on_device(y[r], box, r, device=r)


@pl.jit.host
def names_of_some(y: pl.Out[pl.Tensor[[NR, 1, 8], pl.INT32]]):
    late = pld.alloc_window_buffer([1, 8], dtype=pl.INT32)
    some = pld.alloc_window_buffer([2, 8], dtype=pl.INT32)
    for r in pl.range(1, 3):
        name_on_device(y[r], pld.window(late, [1, 8], dtype=pl.INT32), r, device=r)
    name_on_device(y[0], pld.window(some, [1, 8], dtype=pl.INT32), 0, device=0)


@pytest.mark.parametrize("ids", [[0], [7, 2], [5, 1, 9], [0, 11, 22, 33, 4]])
def test_a_world_is_its_list_of_devices(ids):  # D-10, D-12, D-23, D-52, D-57, O-12, O-13
    p = len(ids)
    y = np.full((p, 1, 8), -1, np.int32)
    compiled = names.compile(y, config=on(p, ids))
    assert isinstance(compiled, DistributedCompiledProgram)  # also with one rank
    compiled(y)
    assert y[:, 0, :3].tolist() == [[r, r, p] for r in range(p)]
    assert len(last_report().ranks) == last_report().world_size == p
    assert names.compile(y, config=on(p, [i + 1 for i in ids])) is not compiled


def test_a_host_function_without_a_configuration_has_one_device():  # D-11, D-12
    y = np.full((1, 1, 8), -1, np.int32)
    assert isinstance(names.compile(y), DistributedCompiledProgram)
    names(y)
    assert y[0, 0, :3].tolist() == [0, 0, 1]
    default = DistributedConfig()
    assert (default.device_ids, default.num_sub_workers, default.aicpu_thread_num) == ([0], 0, 0)
    assert default.runtime == "tensormap_and_ringbuffer"


def test_domains_are_numbered_by_their_first_buffer():  # D-51, D-52, W-11, W-12, W-14, A-1
    y = np.full((3, 1, 8), -1, np.int32)
    compiled = names_of_some.compile(y, config=on(3, [4, 8, 6]))
    compiled(y)
    assert y[:, 0, :3].tolist() == [[0, 0, 1], [1, 0, 2], [2, 1, 2]]
    domains = json.loads((compiled.output_dir / "comm_domains.json").read_text())["domains"]
    late = {"name": "late", "requested": 32, "reserved": 4096, "offset": 0}
    assert domains[0] == {"name": "comm_d0", "ranks": [1, 2], "buffers": [late]}
    some = {"name": "some", "requested": 64, "reserved": 4096, "offset": 0}
    assert domains[1] == {"name": "comm_d1", "ranks": [0], "buffers": [some]}


def test_surface_of_a_worker():  # D-60
    want = {
        "prepare": "config=None, *, extra_compiled=(), persistent=False, reset_persistent_windows=None, callbacks=None, "
        "sub_worker_overrides=None, startup_timeout_s=None",
        "__call__": "*args, config=None",
        "run": "compiled, *args, config=None",
        "submit": "compiled, *args, config=None",
        "register": "compiled",
        "alloc_stacked_tensor": "host, *, worker_ids=None",
        "committed_device_memory": "worker_id=0",
    }
    for name, text in want.items():
        owner = DistributedCompiledProgram if name == "prepare" else DistributedWorker
        have = inspect.signature(getattr(owner, name))
        bare = [p.replace(annotation=inspect.Parameter.empty) for p in list(have.parameters.values())[1:]]
        assert str(inspect.Signature(bare)) == f"({text})", name
    others = "close malloc free copy_to copy_from alloc_tensor free_tensor free_stacked_tensor copy_stacked_from"
    assert all(hasattr(DistributedWorker, n) for n in [*others.split(), "release_inherited_host_tensor_refs"])
    y = np.full((2, 1, 8), -1, np.int32)  # D-61: made after the worker
    compiled = names.compile(y, config=on(2))
    with compiled.prepare() as worker:
        handle = worker.submit(compiled, y)
        assert handle.wait(timeout=60) is None and handle.done is True
    assert y[:, 0, 1].tolist() == [0, 1]


@pl.jit.host
def wide(y: pl.Out[pl.Tensor[[NR, 1, 8], pl.INT32]]):
    small = pld.alloc_window_buffer([1, 8], dtype=pl.INT32)
    large = pld.alloc_window_buffer(1 << 36)
    for r in pl.range(pld.world_size()):
        box = pld.window(small, [1, 8], dtype=pl.INT32)
        name_on_device(y[r], box, r, device=r)
        name_on_device(y[r], pld.window(large, [1, 8], dtype=pl.INT32), r, device=r)


def test_more_window_memory_than_there_is():  # W-15
    y = np.full((2, 1, 8), -1, np.int32)
    with pytest.raises(RuntimeError, match=r"device 3 \(rank 0\) needs 687194\d+ bytes") as caught:
        wide(y, config=on(2, [3, 1]))
    assert str(caught.value).index("'large'") < str(caught.value).index("'small'")
    assert (y == -1).all()  # before the first dispatch
