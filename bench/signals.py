# SPDX-License-Identifier: Apache-2.0
"""Rates of signals and puts between two ranks, and what checks cost the mixture of experts.

Run: python bench/signals.py
"""

import importlib.util
import sys
import time
from pathlib import Path

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions

TURNS, SIZE = 2000, 32


@pl.jit.incore
def turns(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[1, 1], pl.INT32],
):
    other = 1 - pld.rank(pld.get_comm_ctx(data))
    for turn in pl.range(TURNS):
        pld.tensor.put(data, other, x)
        pld.system.notify(signal, other, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)
        pld.system.wait(signal, [0, 0], turn + 1, cmp=pld.WaitCmp.Ge)
    y = pl.store(pl.load(data, [0, 0], [1, SIZE]), [0, 0], y)  # the last wait orders every put before it
    return y


@pl.jit
def device(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[1, 1], pl.INT32],
):
    y = turns(x, y, data, signal)
    return y


@pl.jit.host
def ping_pong(x: pl.Tensor[[2, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[2, 1, SIZE], pl.FP32]]):
    data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [1, 1], dtype=pl.INT32)
        device(x[r], y[r], data, signal, device=r)


def both(compiled, arrays, repeats: int) -> tuple[float, float]:
    """The least seconds of a call without and with checks."""
    best = []
    for checks in ("off", "default"):
        config = RunConfig(sim=SimOptions(checks=checks))
        times = []
        for _ in range(repeats):
            start = time.perf_counter()
            compiled(*arrays, config=config)
            times.append(time.perf_counter() - start)
        best.append(min(times))
    return best[0], best[1]


def world(p: int) -> RunConfig:
    return RunConfig(platform="a2a3sim", distributed_config=DistributedConfig(device_ids=list(range(p))))


def rates() -> None:
    """Turns of put, notify and wait between two ranks."""
    x = np.random.default_rng(3).standard_normal((2, 1, SIZE), dtype=np.float32)
    y = np.zeros_like(x)
    off, on = both(ping_pong.compile(x, y, config=world(2)), (x, y), 7)
    np.testing.assert_array_equal(y, x[::-1])
    for what, seconds in (("off", off), ("on", on)):
        print(f"put + notify + wait, checks {what:<4} {2 * TURNS / seconds / 1e6:8.2f} million a second")
    print(f"{'':<31}cost {on / off:5.2f} x")


def moe() -> None:
    """The distributed mixture of experts, checks against none."""
    path = Path(__file__).resolve().parent.parent / "examples/models/moe_dispatch_combine.py"
    spec = importlib.util.spec_from_file_location("moe_dispatch_combine", path)
    assert spec is not None and spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = example
    spec.loader.exec_module(example)
    for p in (2, 4):
        inputs = example.make_inputs(p, seed=17)
        y = np.zeros_like(inputs["x"])
        arrays = [*inputs.values(), y]
        off, on = both(example.program.compile(*arrays, config=world(p)), arrays, 7)
        want = example.golden(inputs["x"], inputs["route"], inputs["gates"], inputs["weight"])
        np.testing.assert_allclose(y, want, rtol=1e-4, atol=1e-4)
        print(f"mixture of experts, {p} ranks  {on * 1e3:8.2f} ms  off {off * 1e3:8.2f} ms  cost {on / off:5.2f} x")


if __name__ == "__main__":
    rates()
    moe()
