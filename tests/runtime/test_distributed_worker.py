# SPDX-License-Identifier: Apache-2.0
"""Distributed programs: one-shot, prepared, resident, persistent, callbacks (04 sections 13 to 15)."""

from __future__ import annotations

import threading
import time

import numpy as np
import programs
import pytest
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedCompiledProgram, DistributedConfig
from pypto.runtime import RunConfig, last_report
from pypto.runtime.distributed_runner import DistributedWorker, _tensor_from_continuous

ROWS, COLS = programs.ROWS, programs.COLS
WORLD = DistributedConfig(device_ids=[3, 1])


def compiled_for(program, world=WORLD, **kwargs):
    return ir.compile(program, platform="a2a3sim", distributed_config=world, dump_passes=False, **kwargs)


@pytest.fixture(scope="module")
def per_rank():
    return compiled_for(programs.PerRank)


@pytest.fixture(scope="module")
def counter():
    return compiled_for(programs.Counter)


@pytest.fixture(scope="module")
def with_callbacks():
    return compiled_for(programs.WithCallbacks, DistributedConfig([0]))


def blocks(rng, ranks=2, rows=ROWS):
    return rng.standard_normal((ranks, rows, COLS), dtype=np.float32)


def expected(x):
    return x + np.arange(len(x), dtype=np.float32)[:, None, None]


def test_one_shot(per_rank, rng):
    # DST-3, DST-4, DST-9, 03 D-13
    x = blocks(rng)
    out = np.zeros_like(x)
    assert isinstance(per_rank, DistributedCompiledProgram)
    assert per_rank(x, out) is None
    np.testing.assert_array_equal(out, expected(x))
    out[:] = 0
    per_rank(x, out, config=RunConfig(platform="a5sim", device_id=9))  # DST-7
    np.testing.assert_array_equal(out, expected(x))
    with pytest.raises(TypeError, match="DistributedCompiledProgram expects 2"):
        per_rank(x, out, out)
    with pytest.raises(ValueError, match="contains dynamic dimensions"):
        per_rank(x)
    assert last_report().world_size == 2


@pytest.mark.parametrize("ranks", [1, 3, 8])
def test_any_world(ranks, rng, tmp_path):
    # DST-12, DST-3
    c = compiled_for(programs.PerRank, output_dir=tmp_path)
    other = DistributedCompiledProgram.from_dir(tmp_path, distributed_config=DistributedConfig(list(range(ranks))))
    x = blocks(rng, ranks)
    out = np.zeros_like(x)
    other(x, out)
    np.testing.assert_array_equal(out, expected(x))
    assert c.world_size == 2 and other.world_size == ranks


def test_artifacts(tmp_path):
    # ART-6, 03 P-29
    import json

    c = compiled_for(programs.WithCallbacks, output_dir=tmp_path)
    assert (tmp_path / "orchestration" / "host_orch.py").exists()
    assert (tmp_path / "next_levels" / "chip" / "kernel_config.py").exists()
    meta = json.loads((tmp_path / "distributed_meta.json").read_text())
    assert meta["schema"] == 2
    assert meta["distributed_config"] == {
        "device_ids": [3, 1],
        "num_sub_workers": 0,
        "runtime": "tensormap_and_ringbuffer",
        "aicpu_thread_num": 0,
    }
    assert json.loads((tmp_path / "sub_workers" / "__required__.json").read_text()) == ["inspect"]
    assert (tmp_path / "sub_workers" / "triple.py").exists() and (tmp_path / "comm_domains.json").exists()
    assert not (tmp_path / "compiled_meta.json").exists()
    assert c.program is not None and c.program.lowered
    with pytest.raises(FileNotFoundError):
        ir.CompiledProgram.from_dir(tmp_path)


def test_comm_domains(tmp_path):
    # 03 W-11, W-12, W-14
    import json

    compiled_for(programs.Counter, output_dir=tmp_path)
    (domain,) = json.loads((tmp_path / "comm_domains.json").read_text())["domains"]
    assert domain["name"] == "comm_d0" and domain["ranks"] == [0, 1]
    assert domain["buffers"] == [{"name": "buf", "requested": COLS * 4, "reserved": 4096, "offset": 0}]
    from pypto.ir._comm_domains import reserved_bytes

    assert [reserved_bytes(n) for n in (1, 3840, 3841, 10000)] == [4096, 4096, 4128, 10272]


def test_prepared(per_rank, rng):
    # DST-14, DST-17, DST-18, DST-23
    x = blocks(rng)
    with per_rank.prepare() as rt:
        assert isinstance(rt, DistributedWorker)
        for _ in range(3):
            out = np.zeros_like(x)
            assert rt(x, out) is None
            np.testing.assert_array_equal(out, expected(x))
        h = rt.register(per_rank)
        assert h.cid == 0
        out[:] = 0
        h(x, out)
        np.testing.assert_array_equal(out, expected(x))
        with pytest.raises(TypeError) as e:
            rt(x)
        assert str(e.value) == (
            "DistributedWorker expects 2 arguments (in-place, one per parameter), got 1. Parameters: ['x', 'out']"
        )
        with pytest.raises(TypeError):
            rt(x, "out")
        with pytest.raises(ValueError, match="registered when this worker was constructed"):
            rt.run(compiled_for(programs.PerRank), x, out)
        assert last_report().ok
    rt.close()
    for op in ("run", "submit", "register", "malloc", "alloc_tensor"):
        call = {
            "run": lambda: rt(x, out),
            "submit": lambda: rt.submit(per_rank, x, out),
            "register": lambda: rt.register(per_rank),
            "malloc": lambda: rt.malloc(4),
            "alloc_tensor": lambda: rt.alloc_tensor((2,), np.float32),
        }[op]
        with pytest.raises(RuntimeError, match=rf"DistributedWorker.{op}\(\) called after close\(\)"):
            call()
    with pytest.raises(RuntimeError, match="has been unregistered"):
        h(x, out)


def test_constructor_checks(per_rank, counter):
    # DST-15, 03 D-64
    with pytest.raises(ValueError, match="requires at least one compiled program"):
        DistributedWorker([])
    with pytest.raises(ValueError):
        per_rank.prepare(reset_persistent_windows=True)
    for bad in (0, -1, float("inf"), float("nan"), "3"):
        with pytest.raises(ValueError):
            per_rank.prepare(startup_timeout_s=bad)
    with pytest.raises(ValueError, match="multi-program mode requires the same device_ids"):
        per_rank.prepare(extra_compiled=[compiled_for(programs.Counter, DistributedConfig([0]))])
    with pytest.raises(ValueError, match="multi-program mode requires the same platform"):
        per_rank.prepare(
            extra_compiled=[ir.compile(programs.Counter, platform="a5sim", distributed_config=WORLD, dump_passes=False)]
        )


def test_submit(per_rank, rng):
    # DST-21, DST-22
    xs = [blocks(rng) for _ in range(6)]
    outs = [np.zeros_like(x) for x in xs]
    with per_rank.prepare() as rt:
        handles = [rt.submit(per_rank, x, out) for x, out in zip(xs, outs, strict=True)]
        for h in handles:
            assert h.result() is None and h.wait(1.0) is None and h.done
        assert handles[-1].report.ok
        for bad in (-1, float("nan"), float("inf")):
            with pytest.raises(ValueError):
                handles[0].result(timeout=bad)
    for x, out in zip(xs, outs, strict=True):
        np.testing.assert_array_equal(out, expected(x))


def test_resident_and_stacked(per_rank, rng):
    # DST-24, DEV-7, DEV-8
    x = blocks(rng)
    with per_rank.prepare(persistent=False) as rt:
        stacked = rt.alloc_stacked_tensor(x)
        assert stacked.worker_ids == (0, 1) and stacked.shape == x.shape
        out = np.zeros_like(x)
        rt(stacked, out)
        np.testing.assert_array_equal(out, expected(x))
        result = rt.alloc_stacked_tensor(np.zeros_like(x))
        rt(stacked, result)
        rt(result, result)
        back = np.zeros_like(x)
        rt.copy_stacked_from(result, back)
        np.testing.assert_array_equal(back, expected(expected(x)))
        assert rt.committed_device_memory(0) == rt.committed_device_memory(1) == 2 * x[0].nbytes
        with pytest.raises(ValueError):
            rt.copy_stacked_from(result, np.zeros((2, ROWS), np.float32))
        rt.free_stacked_tensor(stacked)
        assert rt.committed_device_memory(0) == x[0].nbytes
        for bad, error in ((x[0, 0], ValueError), ("x", TypeError), (np.zeros((0, 4), np.float32), ValueError)):
            with pytest.raises(error):
                rt.alloc_stacked_tensor(bad)
        for ids in ([0], [0, 0], [0, 2]):
            with pytest.raises(ValueError):
                rt.alloc_stacked_tensor(x, worker_ids=ids)
        swapped = rt.alloc_stacked_tensor(x, worker_ids=[1, 0])
        with pytest.raises(Exception, match=r"(?i)row"):
            rt(swapped, out)
        assert len(rt._owned_tensors) == 4
        with pytest.raises(TypeError, match="One-shot"):
            per_rank(stacked, out)
    assert len(rt._owned_tensors) == 0


def test_persistent(counter, rng):
    # DST-28, DST-29
    x = blocks(rng, rows=1)
    out = np.zeros_like(x)
    with counter.prepare() as rt:
        for _ in range(2):
            rt(x, out)
            np.testing.assert_array_equal(out, x)
    with counter.prepare(persistent=True) as rt:
        before = rt._w._next_alloc_id
        for _ in range(3):
            rt(x, out)
            np.testing.assert_array_equal(out, x)
        assert rt._w._next_alloc_id == before + 1
    with counter.prepare(persistent=True, reset_persistent_windows=False) as rt:
        total = np.zeros_like(x)
        for _ in range(3):
            rt(x, out)
            total = total + x
            np.testing.assert_array_equal(out, total)


def test_two_programs(per_rank, counter, rng):
    # DST-17, DST-31
    x, row = blocks(rng), blocks(rng, rows=1)
    out, row_out = np.zeros_like(x), np.zeros_like(row)
    with per_rank.prepare(extra_compiled=[counter]) as rt:
        rt.run(per_rank, x, out)
        rt.run(counter, row, row_out)
        with pytest.raises(TypeError, match="ambiguous"):
            rt(x, out)
    np.testing.assert_array_equal(out, expected(x))
    np.testing.assert_array_equal(row_out, row)


def test_callbacks(with_callbacks, rng):
    # CBK-1 to CBK-7
    x = rng.standard_normal((ROWS, COLS), dtype=np.float32)
    mid, out = np.zeros_like(x), np.zeros_like(x)
    seen = []

    def inspect(tensors):
        seen.append(threading.current_thread().name)
        a, b = tensors
        b[:] = a + 10

    with with_callbacks.prepare(callbacks={"inspect": inspect}) as rt:
        rt(x, mid, out)
    np.testing.assert_allclose(out, (x + 1) * 3 + 10 + 1, rtol=1e-6)
    assert len(seen) == 1 and seen[0] != threading.current_thread().name  # DST-35

    for call in (lambda: with_callbacks(x, mid, out), with_callbacks.prepare):
        with pytest.raises(
            ValueError, match=r"(?s)runtime-bound callbacks.*inspect.*must be supplied via callbacks={\.\.\.}"
        ):
            call()
    with pytest.raises(ValueError, match=r"(?s)are not sub-workers.*inspect.*triple"):
        with_callbacks.prepare(callbacks={"inspect": inspect, "other": inspect})
    for bad in (3, lambda: None, lambda a, b: None):
        with pytest.raises(TypeError, match="inspect"):
            with_callbacks.prepare(callbacks={"inspect": bad})
    with pytest.warns(DeprecationWarning):
        rt = with_callbacks.prepare(sub_worker_overrides={"inspect": lambda t: None}, callbacks={"inspect": inspect})
    rt(x, mid, out)
    rt.close()
    assert len(seen) == 2


def test_callback_error(with_callbacks, rng):
    # CBK-7, DST-27
    from pypto import CallbackError

    x = rng.standard_normal((ROWS, COLS), dtype=np.float32)
    mid, out = np.zeros_like(x), np.zeros_like(x)
    broken = [True]

    def inspect(tensors):
        if broken[0]:
            raise KeyError("lost")
        tensors[1][:] = 0

    with with_callbacks.prepare(callbacks={"inspect": inspect}) as rt:
        with pytest.raises(CallbackError, match="inspect") as e:
            rt(x, mid, out)
        assert isinstance(e.value.__cause__, KeyError)
        broken[0] = False
        rt(x, mid, out)
        assert (out == 1).all()


def test_callback_of_its_own_worker(with_callbacks, rng):
    # CBK-8
    x = rng.standard_normal((ROWS, COLS), dtype=np.float32)
    mid, out = np.zeros_like(x), np.zeros_like(x)
    caught = []

    def inspect(tensors):
        try:
            rt(x, mid, out)
        except RuntimeError as error:
            caught.append(error)

    with with_callbacks.prepare(callbacks={"inspect": inspect}) as rt:
        rt(x, mid, out)
    assert len(caught) == 1


def test_callbacks_after_loading(with_callbacks, tmp_path, rng):
    # ART-2, ART-6: a concrete sub-worker runs from its saved source
    compiled_for(programs.WithCallbacks, DistributedConfig([0]), output_dir=tmp_path)
    c = DistributedCompiledProgram.from_dir(tmp_path)
    x = rng.standard_normal((ROWS, COLS), dtype=np.float32)
    mid, out = np.zeros_like(x), np.zeros_like(x)
    with c.prepare(callbacks={"inspect": lambda t: np.copyto(np.asarray(t[1]), np.asarray(t[0]))}) as rt:
        rt(x, mid, out)
    np.testing.assert_allclose(out, (x + 1) * 3 + 1, rtol=1e-6)


def test_close_raises_what_nobody_asked(with_callbacks, rng):
    # DST-25
    from pypto import CallbackError

    x = rng.standard_normal((ROWS, COLS), dtype=np.float32)
    mid, out = np.zeros_like(x), np.zeros_like(x)

    def inspect(tensors):
        time.sleep(0.05)
        raise RuntimeError("late")

    rt = with_callbacks.prepare(callbacks={"inspect": inspect})
    h = rt.submit(with_callbacks, x, mid, out)
    with pytest.raises(TimeoutError):
        h.result(timeout=0)
    rt._queue._unasked[0]._asked = False
    with pytest.raises(CallbackError):
        rt.close()
    rt.close()
    with pytest.raises(CallbackError):
        h.result()


def test_failed_persistent(with_callbacks, rng):
    # DST-27
    x = rng.standard_normal((ROWS, COLS), dtype=np.float32)
    mid, out = np.zeros_like(x), np.zeros_like(x)

    def inspect(tensors):
        raise ValueError("first failure")

    rt = with_callbacks.prepare(persistent=True, callbacks={"inspect": inspect})
    with pytest.raises(RuntimeError):
        rt(x, mid, out)
    with pytest.raises(RuntimeError, match="first failure"):
        rt(x, mid, out)
    rt.close()


def test_close_while_threads_call(per_rank, rng):  # DST-25, DST-26, DST-32
    x = blocks(rng)
    failures = []

    def call(rt):
        try:
            while True:
                out = np.zeros_like(x)
                rt(x, out)
                np.testing.assert_array_equal(out, expected(x))
        except BaseException as error:
            failures.append(error)

    for _ in range(20):
        rt = per_rank.prepare()
        threads = [threading.Thread(target=call, args=(rt,), daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.003)
        rt.close()
        for thread in threads:
            thread.join(20)
        assert not any(thread.is_alive() for thread in threads)
    assert len(failures) == 80
    for error in failures:
        assert isinstance(error, RuntimeError) and "called after close()" in str(error), error


def test_one_thread_begins_while_another_queues(per_rank, rng, monkeypatch):  # DST-32
    x = blocks(rng)
    first, second = np.zeros_like(x), np.zeros_like(x)
    with per_rank.prepare() as rt:
        hold, handles = rt._queue._idle_then_hold, []

        def held():
            handle = hold()
            monkeypatch.undo()
            handles.append(rt.submit(per_rank, x, second))  # between taking the turn and running
            return handle

        monkeypatch.setattr(rt._queue, "_idle_then_hold", held)
        rt(x, first)
        handles[0].result(20)
    np.testing.assert_array_equal(first, expected(x))
    np.testing.assert_array_equal(second, expected(x))


def test_fork(per_rank, rng):
    # DST-32
    import os

    x = blocks(rng)
    with per_rank.prepare() as rt:
        rt(x, np.zeros_like(x))
        pid = os.fork()
        if pid == 0:
            try:
                rt(x, np.zeros_like(x))
            except RuntimeError:
                os._exit(0)
            finally:
                os._exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_execute_distributed_is_replaceable(per_rank, rng, monkeypatch):
    # PKG-6, RUN-4a
    from pypto.runtime import distributed_runner

    calls = []
    monkeypatch.setattr(distributed_runner, "execute_distributed", lambda *a, **k: calls.append(a))
    x = blocks(rng)
    per_rank(x, np.zeros_like(x))
    assert len(calls) == 1 and calls[0][0] is per_rank
    monkeypatch.setattr(distributed_runner.DistributedWorker, "__init__", lambda self, *a, **k: calls.append(k))
    per_rank.prepare(persistent=True)
    assert calls[1]["persistent"] is True


def test_tensor_from_continuous():
    # CBK-5
    torch = pytest.importorskip("torch")
    base = np.arange(6, dtype=np.float32).reshape(2, 3)

    class Continuous:
        data, shape, dtype = base.ctypes.data, (2, 3), "FLOAT32"

    t = _tensor_from_continuous(Continuous())
    assert isinstance(t, torch.Tensor) and t.shape == (2, 3)
    t[0, 0] = 9
    assert base[0, 0] == 9
    assert _tensor_from_continuous(t) is t
    Continuous.dtype = "COMPLEX64"
    with pytest.raises(TypeError, match="FLOAT32"):
        _tensor_from_continuous(Continuous())
