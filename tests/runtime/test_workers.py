# SPDX-License-Identifier: Apache-2.0
"""ChipWorker and resident tensors (04 sections 11 and 12)."""

from __future__ import annotations

import contextvars
import logging
import threading

import numpy as np
import programs
import pypto.language as pl
import pytest
from pypto import ir
from pypto.runtime import ChipWorker, DeviceTensor, RunConfig, Worker

ROWS, COLS = programs.ROWS, programs.COLS
KEY = {"level": 2, "platform": "a2a3sim", "device_id": 0, "runtime": "tensormap_and_ringbuffer"}


@pytest.fixture(scope="module")
def add():
    return ir.compile(programs.Add, dump_passes=False)


def pair(rng):
    return [rng.standard_normal((ROWS, COLS), dtype=np.float32) for _ in range(2)]


def test_life():
    # WRK-1, WRK-2
    with pytest.raises(ValueError, match="DistributedWorker"):
        ChipWorker(level=3)
    w = ChipWorker(auto_init=False)
    assert not w.initialized and (w.level, w.platform, w.device_id) == (2, "a2a3sim", 0)
    w.init()
    w.init()
    assert w.initialized
    p = w.malloc(64)
    w.close()
    w.close()
    assert not w.initialized
    w.init()
    with pytest.raises(ValueError, match=hex(p)):
        w.free(p)
    w.close()


def test_current():
    # WRK-3, WRK-4
    assert ChipWorker.current(**KEY) is None
    with ChipWorker() as w:
        assert ChipWorker.current(**KEY) is w
        with pytest.raises(ValueError, match="is already active"), ChipWorker():
            pass
        with ChipWorker(config=RunConfig(device_id=1)) as other:
            assert ChipWorker.current(**KEY) is w
            assert ChipWorker.current(**{**KEY, "device_id": 1}) is other
        with pytest.raises(RuntimeError, match="was created without enable_sdma=True"):
            ChipWorker.current(**KEY, require_sdma=True)
        assert contextvars.Context().run(ChipWorker.current, **KEY) is None
    assert ChipWorker.current(**KEY) is None and not w.initialized


def test_run(add, rng):
    # WRK-2, WRK-5, WRK-6, WRK-7
    x, y = pair(rng)
    with ChipWorker() as w:
        assert w.aicpu_dlopen_count == 0 and isinstance(w.host_dlopen_count, int)
        h = w.register(add)
        assert w.aicpu_dlopen_count == 1 and h.compiled is add and isinstance(h.cid, int) and not h.closed
        for _ in range(5):
            out = np.zeros_like(x)
            assert h(x, y, out) is None
            np.testing.assert_array_equal(out, x + y)
        np.testing.assert_array_equal(w.run(add, x, y), x + y)
        np.testing.assert_array_equal(add(x, y), x + y)  # PRG-11
        assert w.aicpu_dlopen_count == 1
        again = w.register(add)
        h.unregister()
        h.unregister()
        with pytest.raises(RuntimeError, match="has been unregistered"):
            h(x, y)
        np.testing.assert_array_equal(again(x, y), x + y)
        with again as inner:
            assert inner is again
        assert again.closed
        third = w.register(add)
    with pytest.raises(RuntimeError, match="has been unregistered"):
        third(x, y)
    with pytest.raises(RuntimeError, match=r"ChipWorker.run\(\) requires an initialized ChipWorker"):
        w.run(add, x, y)
    with ChipWorker(RunConfig(platform="a5sim")) as w, pytest.raises(ValueError, match=r"(?s)a2a3sim.*a5sim"):
        w.run(add, x, y)


def test_memory(rng):
    # WRK-8
    host = rng.standard_normal(16).astype(np.float32)
    back = np.zeros_like(host)
    with ChipWorker() as w:
        p = w.malloc(64)
        w.copy_to(p, host.ctypes.data, 64)
        w.copy_from(back.ctypes.data, p, 64)
        np.testing.assert_array_equal(back, host)
        with pytest.raises(ValueError, match="worker_id"):
            w.malloc(64, worker_id=1)
        for bad in (0, -1, 1.5, True):
            with pytest.raises(ValueError):
                w.malloc(bad)
        with pytest.raises(ValueError, match=hex(p + 4)):
            w.copy_to(p + 4, host.ctypes.data, 4)
        with pytest.raises(ValueError, match=r"(?s)128.*64"):
            w.copy_to(p, host.ctypes.data, 128)
        w.free(p)
        with pytest.raises(ValueError, match=hex(p)):
            w.free(p)


def test_resident(add, rng):
    # DEV-2, DEV-3, DEV-4
    x, y = pair(rng)
    with ChipWorker() as w:
        kept = w.alloc_tensor((ROWS, COLS), np.float32, init=x)
        x_before = x.copy()
        x[:] = 0
        result = w.alloc_tensor((ROWS, COLS), pl.FP32)
        assert len(w._owned_tensors) == 2
        w.run(add, kept, y, result)
        w.run(add, result, y, result)
        back = np.zeros_like(y)
        w.copy_from(back.ctypes.data, result.data_ptr, result.nbytes)
        np.testing.assert_array_equal(back, x_before + y + y)
        out = np.zeros_like(y)
        add(kept, y, out)  # the active worker
        np.testing.assert_array_equal(out, x_before + y)
        programs.jit_axpy(kept, y, out, 2.0)
        np.testing.assert_array_equal(out, x_before * np.float32(2) + y)
        with pytest.raises(TypeError):
            w.run(add, w.alloc_tensor((ROWS, COLS + 1), np.float32), y, out)
        with pytest.raises(TypeError):
            w.run(add, w.alloc_tensor((ROWS, COLS), np.float16), y, out)
        with pytest.raises(TypeError, match="alloc_tensor"):
            w.run(add, DeviceTensor(kept.data_ptr, kept.shape, kept.dtype), y, out)
        w.free_tensor(kept)
        w.free_tensor(kept)
        with pytest.raises(ValueError, match="is not a live allocation owned by this ChipWorker"):
            w.run(add, kept, y, out)
        with (
            ChipWorker(RunConfig(device_id=1)) as other,
            pytest.raises(ValueError, match="is not a live allocation owned by this ChipWorker"),
        ):
            other.run(add, result, y, out)
    assert len(w._owned_tensors) == 0


def test_alloc_refusals():
    # DEV-2
    with ChipWorker() as w:
        for init, words in (
            (np.zeros((2, 3), np.float32), ["[2, 3]", "[2, 2]"]),
            (np.zeros((2, 2), np.float64), ["fp32"]),
        ):
            with pytest.raises(ValueError) as e:
                w.alloc_tensor((2, 2), np.float32, init=init)
            assert all(word in str(e.value) for word in words)
        with pytest.raises(TypeError):
            w.alloc_tensor((2, 2), np.float32, init="x")
        with pytest.raises(ValueError):
            w.alloc_tensor((), np.float32)
        assert len(w._owned_tensors) == 0 and w._memory.committed == 0


def test_torch_init():
    torch = pytest.importorskip("torch")
    with ChipWorker() as w:
        for dtype in (torch.bfloat16, torch.float16, torch.int8):
            t = torch.arange(12).reshape(3, 4).to(dtype)
            d = w.alloc_tensor((3, 4), dtype, init=t)
            back = torch.zeros_like(t)
            w.copy_from(back.data_ptr(), d.data_ptr, d.nbytes)
            assert torch.equal(back, t)


class Fake(Worker):
    """A worker as a user would write one: only the six methods."""

    def __init__(self, fail_free=False, fail_copy=False):
        self.live, self.next, self.fail_free, self.fail_copy = {}, 4096, fail_free, fail_copy

    def malloc(self, nbytes, *, worker_id=0):
        self.next += 4096
        self.live[self.next] = nbytes
        return self.next

    def free(self, ptr, *, worker_id=0):
        if self.fail_free:
            raise RuntimeError("device lost")
        del self.live[ptr]

    def copy_to(self, dst_dev_ptr, src_host_ptr, nbytes, *, worker_id=0):
        if self.fail_copy:
            raise RuntimeError("copy failed")

    def copy_from(self, dst_host_ptr, src_dev_ptr, nbytes, *, worker_id=0):
        pass

    def run(self, compiled, *args, config=None):
        pass

    def register(self, compiled):
        pass


def test_worker_base(caplog):
    # WRK-9, WRK-10, DEV-2, DEV-3
    w = Fake()
    t = w.alloc_tensor((2, 2), np.float32, init=np.ones((2, 2), np.float32))
    assert w.live == {t.data_ptr: 16} and len(w._owned_tensors) == 1
    u = w.alloc_tensor((2,), np.int8, worker_id=3)
    with pytest.raises(ValueError, match="3"):
        w.free_tensor(u, worker_id=1)
    w.free_tensor(t)
    w.next -= 4096 * 2
    w.next = t.data_ptr - 4096
    newer = w.alloc_tensor((2, 2), np.float32)
    assert newer.data_ptr == t.data_ptr
    with pytest.raises(ValueError, match="stale"):
        w.free_tensor(t)
    with caplog.at_level(logging.WARNING, logger="pypto.runtime.runtime_base"):
        w.close()
    assert not caplog.records and not w.live and len(w._owned_tensors) == 0
    with pytest.raises(RuntimeError, match="copy failed"):
        failing = Fake(fail_copy=True)
        failing.alloc_tensor((2,), np.float32, init=np.ones(2, np.float32))
    assert not failing.live
    stuck = Fake(fail_free=True)
    stuck.alloc_tensor((2,), np.float32)
    with caplog.at_level(logging.WARNING, logger="pypto.runtime.runtime_base"):
        stuck.close()
    assert [r.name for r in caplog.records] == ["pypto.runtime.runtime_base"]


def test_threads(add, rng):
    # 04 PRG-14: one program, one worker, many threads
    x, y = pair(rng)
    bad = []

    def work():
        for _ in range(10):
            if not np.array_equal(w.run(add, x, y), x + y):
                bad.append(1)

    with ChipWorker() as w:
        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
    assert not bad
