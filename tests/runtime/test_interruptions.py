# SPDX-License-Identifier: Apache-2.0
"""Runs that are cut short: by Ctrl-C, by an error of one rank, by a Python callback, in a forked child.

Whatever ends a run, it ends soon, leaves no thread behind, and the next run of the same program works.
"""

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions

NR = pl.dynamic("NR")
MANY = 1024


@pl.jit.incore
def meet(
    x: pl.Tensor[[1, 8], pl.INT32],
    y: pl.Out[pl.Tensor[[1, 8], pl.INT32]],
    signal: pld.DistributedTensor[[1, 8], pl.INT32],
):
    ctx = pld.get_comm_ctx(signal)
    me = pld.rank(ctx)
    mode = pl.read(x, [0, 0])
    if mode == 3 or (mode == 1 and me == 0):
        k = pl.read(x, [0, 1])
        while k < 1:  # never ends: the others wait for it
            k = k - pl.read(x, [0, 2])
    if mode == 2 and me == 3:
        pld.system.notify(signal, me + 100000, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)  # <- no such rank
    if me == 0:
        for q in pl.range(pld.nranks(ctx)):
            pld.system.notify(signal, q, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
    pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)
    y = pl.store(pl.add(pl.load(x, [0, 0], [1, 8]), 5), [0, 0], y)
    return y


@pl.jit
def on_device(
    x: pl.Tensor[[1, 8], pl.INT32],
    y: pl.Out[pl.Tensor[[1, 8], pl.INT32]],
    signal: pld.DistributedTensor[[1, 8], pl.INT32],
):
    y = meet(x, y, signal)
    return y


@pl.jit.host
def program(x: pl.Tensor[[NR, 1, 8], pl.INT32], y: pl.Out[pl.Tensor[[NR, 1, 8], pl.INT32]]):
    signal_buf = pld.alloc_window_buffer([1, 8], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        signal = pld.window(signal_buf, [1, 8], dtype=pl.INT32)
        on_device(x[r], y[r], signal, device=r)


def given(nranks, mode=0):
    x = np.random.default_rng(nranks).integers(0, 100, (nranks, 1, 8)).astype(np.int32)
    x[:, 0, :3] = mode, 0, 0
    return x, np.zeros_like(x)


def compiled_for(nranks):
    world = DistributedConfig(device_ids=list(range(nranks)))
    return program.compile(*given(nranks), config=RunConfig(platform="a2a3sim", distributed_config=world))


def threads() -> int:
    return (
        len(list(Path("/proc/self/task").iterdir())) if Path("/proc/self/task").exists() else threading.active_count()
    )


def works(compiled, nranks):
    x, y = given(nranks)
    compiled(x, y)
    np.testing.assert_array_equal(y, x + 5)


def settled(before) -> bool:
    """Whether the threads of a run are gone; those of the interpreter's own timer may need a moment."""
    for _ in range(200):
        if threads() <= before:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("checks", ["default", "off"])
def test_ctrl_c_while_ranks_are_blocked(checks):  # 04 DST-34
    compiled = compiled_for(MANY)
    works(compiled, MANY)
    before = threads()
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        compiled(*given(MANY, 1), config=RunConfig(platform="a2a3sim", sim=SimOptions(checks=checks)))
    timer.join()
    assert settled(before)
    works(compiled, MANY)


def test_ctrl_c_while_all_ranks_spin():  # 04 DST-34
    compiled = compiled_for(MANY)
    x, y = given(MANY, 3)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        compiled(x, y, config=RunConfig(platform="a2a3sim", sim=SimOptions(checks="off")))
    timer.join()
    works(compiled, MANY)


@pytest.mark.parametrize("way", ["one-shot", "worker", "handle"])
def test_ctrl_c_says_where_each_rank_was(way, capfd):  # 04 DST-34
    lines = Path(__file__).read_text().splitlines()
    wait = 1 + next(i for i, line in enumerate(lines) if "system.wait(signal, [0, 0], 1" in line)
    spins = 1 + next(i for i, line in enumerate(lines) if "# never ends" in line)
    compiled = compiled_for(3)
    works(compiled, 3)
    x, y = given(3, 1)
    capfd.readouterr()
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        if way == "one-shot":
            compiled(x, y)
        else:
            with compiled.prepare() as worker:
                if way == "worker":
                    worker(x, y)
                else:
                    worker.submit(compiled, x, y).result()
    timer.join()
    out, said = capfd.readouterr()
    assert not out
    for rank in (1, 2):
        assert f"rank {rank} (device {rank}), kernel 'meet' on AIV 0, is blocked at {__file__}:{wait}:" in said, said
    assert any(
        f"rank 0 (device 0), kernel 'meet' on AIV 0, is running at {__file__}:{line}:" in said
        for line in (spins, spins + 1)
    ), said
    works(compiled, 3)


def test_an_error_of_one_rank():  # 03 X-70
    compiled = compiled_for(MANY)
    works(compiled, MANY)
    before = threads()
    for _ in range(3):
        with pytest.raises(IndexError, match=r"X-20(.|\n)*rank 3 \(device 3\)"):
            compiled(*given(MANY, 2))
    assert settled(before)
    works(compiled, MANY)


def in_a_child(work) -> int:
    """Exit status of a forked child that did `work`; killed if it does not end."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    for _ in range(6000):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise AssertionError("the child hangs")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_forked_child():
    """The host threads of the parent do not exist in the child."""
    compiled = compiled_for(8)
    works(compiled, 8)
    assert in_a_child(lambda: works(compiled, 8)) == 0
    works(compiled, 8)
    assert in_a_child(lambda: works(compiled_for(5), 5)) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
def test_a_killed_child():
    compiled = compiled_for(8)
    works(compiled, 8)
    child = os.fork()
    if child == 0:
        compiled(*given(8, 1))  # never ends
        os._exit(0)
    time.sleep(0.3)
    os.kill(child, signal.SIGKILL)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    works(compiled, 8)
