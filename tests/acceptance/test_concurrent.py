# SPDX-License-Identifier: Apache-2.0
"""Two simulations at once in one process, and Ctrl-C while compiling, in a kernel and in a callback."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pypto.language as pl
import pytest
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedConfig

ROWS, COLS = 8, 16


@pl.program
class Asks:
    """Doubles on each rank, lets the host look, adds one."""

    @pl.function(type=pl.FunctionType.InCore)
    def twice(
        self, x: pl.Tensor[[ROWS, COLS], pl.FP32], y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        t = pl.load(x, [0, 0], [ROWS, COLS])
        y = pl.store(pl.add(t, t), [0, 0], y)
        return y

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self, x: pl.Tensor[[ROWS, COLS], pl.FP32], y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        y = self.twice(x, y)
        return y

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def look(a: pl.Tensor[[ROWS, COLS], pl.FP32], b: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]): ...

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        x: pl.Tensor[[ROWS, COLS], pl.FP32],
        mid: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
        seen: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        mid = self.chip(x, mid, device=0)
        self.look(mid, seen)
        out = self.chip(seen, out, device=0)
        return out


@pytest.fixture(scope="module")
def asks(tmp_path_factory):
    return ir.compile(
        Asks,
        output_dir=str(tmp_path_factory.mktemp("asks")),
        platform="a2a3sim",
        distributed_config=DistributedConfig(device_ids=[0], num_sub_workers=1),
    )


@pl.jit
def blocks(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    for i in pl.range(0, 64, 16):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[i : i + 16, :] = pl.mul(x[i : i + 16, :], -3.0)
    return y


def call(worker, rng):
    x = rng.standard_normal((ROWS, COLS), dtype=np.float32)
    mid, seen, out = (np.zeros_like(x) for _ in range(3))
    worker(x, mid, seen, out)
    return x, mid, seen, out


def test_one_simulation_waits_for_another(asks):  # 04 PLAT-7, PKG-4
    """A blocks inside a Python callback until B, in another thread, has compiled and finished."""
    asked, finished = threading.Event(), threading.Event()
    failures = []

    def look(tensors):
        asked.set()
        if not finished.wait(60):
            raise TimeoutError("the other simulation did not get through")
        np.asarray(tensors[1])[:] = np.asarray(tensors[0]) + 1

    def a():
        try:
            with asks.prepare(callbacks={"look": look}) as worker:
                x, mid, seen, out = call(worker, np.random.default_rng(1))
            np.testing.assert_array_equal(mid, x + x)
            np.testing.assert_array_equal(seen, x + x + 1)
            np.testing.assert_array_equal(out, 2 * (x + x + 1))
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=a)
    thread.start()
    assert asked.wait(60)
    x = np.random.default_rng(2).standard_normal((64, 32), dtype=np.float32)
    y = np.zeros_like(x)
    blocks(x, y)
    assert thread.is_alive()  # still in its callback
    np.testing.assert_array_equal(y, x * np.float32(-3))
    finished.set()
    thread.join(60)
    assert not thread.is_alive()
    if failures:
        raise failures[0]


def test_both_wait_for_each_other_in_turn(asks):
    """Two runs of one compiled program, each in a callback that needs the other to have come as far."""
    barrier = threading.Barrier(2, timeout=60)
    results, failures = {}, []

    def run(seed):
        def look(tensors):
            barrier.wait()
            np.asarray(tensors[1])[:] = np.asarray(tensors[0]) * seed
            barrier.wait()

        try:
            with asks.prepare(callbacks={"look": look}) as worker:
                results[seed] = call(worker, np.random.default_rng(seed))
        except BaseException as error:
            failures.append(error)
            barrier.abort()

    threads = [threading.Thread(target=run, args=(seed,)) for seed in (2, 3)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
    if failures:
        raise failures[0]
    for seed, (x, mid, seen, out) in results.items():
        np.testing.assert_array_equal(out, 2 * (2 * x * seed))


# ------------------------------------------------------------------------------------------------------- Ctrl-C

# Each script gets SIGINT from a timer once it says "ready" on its own clock, must raise KeyboardInterrupt before what it
# runs has ended, and must then be able to run again.
HEAD = """
    import os, signal, sys, threading, time
    import numpy as np
    import pypto.language as pl
    import pypto.language.distributed as pld
    from pypto import ir
    from pypto.ir.distributed_compiled_program import DistributedConfig
    from pypto.runtime import RunConfig

    ended = []  # callbacks that came to their end

    def press(after):
        def fire():
            time.sleep(after)
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=fire, daemon=True).start()

    def expect(action):
        try:
            action()
        except KeyboardInterrupt:
            assert not ended, "it waited for its callback"
            print("interrupted")
        else:
            raise SystemExit("it was not interrupted")
"""

KERNEL = """
    @pl.jit
    def spin(x: pl.Tensor[[16, 16], pl.FP32], n: pl.Tensor[[1], pl.INT64], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            count = pl.read(n, [0])
            t = pl.load(x, [0, 0], [16, 16])
            for i in pl.range(count):
                t = pl.add(t, 1.0)
            y = pl.store(t, [0, 0], y)
        return y

    x, y = np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
    spin(x, np.array([3]), y)
    press(0.3)
    expect(lambda: spin(x, np.array([1 << 40]), y))
    spin(x, np.array([5]), y)
    np.testing.assert_array_equal(y, 6)
"""

SCALAR = """
    @pl.jit
    def spin(n: pl.Tensor[[1], pl.INT64], y: pl.Out[pl.Tensor[[1], pl.INT64]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            i = pl.read(n, [0])
            while i > 0:
                i = i - 1
            pl.write(y, [0], i + 7)
        return y

    y = np.zeros(1, np.int64)
    spin(np.array([3]), y)
    press(0.3)
    expect(lambda: spin(np.array([1 << 40]), y))
    spin(np.array([5]), y)
    np.testing.assert_array_equal(y, 7)
"""

PRODUCT = """
    @pl.jit
    def product(a: pl.Tensor, b: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.matmul(a, b)
        return y

    n = 5120
    a, y = np.full((n, n), 0.5, np.float32), np.zeros((n, n), np.float32)
    a[:, 0] = np.arange(n)
    press(0.4)
    expect(lambda: product(a, a, y))
    assert not y[-1].any(), "the operation ran to its end"
    small, out = a[:16, :16].copy(), np.zeros((16, 16), np.float32)
    product(small, small, out)
    np.testing.assert_array_equal(out, small @ small)
"""

ORCHESTRATION = """
    @pl.jit
    def spin(x: pl.Tensor[[16, 16], pl.FP32], n: pl.Tensor[[1], pl.INT64], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        count = pl.read(n, [0])
        for i in pl.range(count):
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.store(pl.add(pl.load(x, [0, 0], [16, 16]), 1.0), [0, 0], y)
        return y

    x, y = np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
    spin(x, np.array([3]), y)
    press(0.3)
    expect(lambda: spin(x, np.array([1 << 40]), y))
    spin(x, np.array([5]), y)
    np.testing.assert_array_equal(y, 2)
"""

CALLBACK = """
    @pl.program
    class Asks:
        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def look(a: pl.Tensor[[4, 8], pl.FP32], b: pl.Out[pl.Tensor[[4, 8], pl.FP32]]): ...

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
            self.look(x, y)

    compiled = ir.compile(Asks, output_dir=sys.argv[1], platform="a2a3sim",
                          distributed_config=DistributedConfig(device_ids=[0], num_sub_workers=1))
    x, y = np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32)

    def naps(tensors):
        press(0.3)
        end = time.perf_counter() + 30
        while time.perf_counter() < end:
            time.sleep(0.01)
        ended.append("naps")

    def computes(tensors):
        press(0.3)
        while True:
            pass

    def sleeps(tensors):  # one call that Python cannot interrupt: the caller goes on without it
        press(0.3)
        time.sleep(30)
        ended.append("sleeps")

    def insists(tensors):
        press(0.3)
        end = time.perf_counter() + 30
        while time.perf_counter() < end:
            try:
                time.sleep(0.01)
            except BaseException:
                pass
        ended.append("insists")

    def quick(tensors):
        np.asarray(tensors[1])[:] = np.asarray(tensors[0]) + 2

    def run(callback):
        with compiled.prepare(callbacks={"look": callback}) as worker:
            worker(x, y)

    for slow in naps, computes, sleeps, insists:
        y[:] = 0
        expect(lambda: run(slow))
        run(quick)
        np.testing.assert_array_equal(y, 3)
"""

# A body of its own runs on the caller's thread (04 DST-35).
BODY = """
    slow = True

    @pl.program
    class Asks:
        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def look(a: pl.Tensor[[4, 8], pl.FP32], b: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
            if slow:
                press(0.3)
                time.sleep(30)
                ended.append("body")
            b[:] = a + 2

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def host(self, x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
            self.look(x, y)

    compiled = ir.compile(Asks, output_dir=sys.argv[1], platform="a2a3sim",
                          distributed_config=DistributedConfig(device_ids=[0], num_sub_workers=1))
    x, y = np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32)
    expect(lambda: compiled(x, y))
    slow = False
    compiled(x, y)
    np.testing.assert_array_equal(y, 3)
"""

COMPILE = """
    # Thousands of statements: reading and lowering them takes seconds.
    lines = ["@pl.jit", "def big(x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):",
             "    with pl.at(level=pl.Level.CORE_GROUP):", "        t = pl.load(x, [0, 0], [16, 16])"]
    lines += [f"        t = pl.add(pl.mul(t, 1.0), {i}.0)" for i in range(COUNT)]
    lines += ["        y = pl.store(t, [0, 0], y)", "    return y"]
    path = os.path.join(sys.argv[1], "big.py")
    open(path, "w").write("import pypto.language as pl\\n" + "\\n".join(lines) + "\\n")
    sys.path.insert(0, sys.argv[1])
    import big

    @pl.jit
    def small(x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.add(x, 1.0)
        return y

    x, y = np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
    press(0.4)
    expect(lambda: big.big(x, y))
    small(x, y)
    np.testing.assert_array_equal(y, 2)
"""


@pytest.mark.parametrize("name", ["KERNEL", "SCALAR", "PRODUCT", "ORCHESTRATION", "CALLBACK", "BODY", "COMPILE"])
def test_interrupt(name, tmp_path):  # 04 DST-34
    body = globals()[name].replace("COUNT", "30000")
    script = textwrap.dedent(HEAD) + textwrap.dedent(body)
    path = tmp_path / "script.py"
    path.write_text(script, encoding="utf-8")
    env = dict(os.environ, PYTHONPATH=str(Path(ir.__file__).parents[2]))
    done = subprocess.run(
        [sys.executable, str(path), str(tmp_path)], capture_output=True, text=True, timeout=120, env=env, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "interrupted" in done.stdout
