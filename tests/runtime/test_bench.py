# SPDX-License-Identifier: Apache-2.0
"""benchmark and its statistics (04 section 17)."""

from __future__ import annotations

import numpy as np
import programs
import pytest
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, benchmark
from pypto.runtime.bench import _STRACE_LOG_LEVEL, _capture_fd_stderr, _parse_stats_from_strace

ROWS, COLS = programs.ROWS, programs.COLS


@pytest.fixture(scope="module")
def add():
    return ir.compile(programs.Add, dump_passes=False)


def test_single(add, rng):
    # BEN-1, BEN-3
    x, y = (rng.standard_normal((ROWS, COLS), dtype=np.float32) for _ in range(2))
    out = np.zeros_like(x)
    s = benchmark(add, [x, y, out], rounds=4, warmup=2)
    np.testing.assert_array_equal(out, x + y)
    assert s.rounds == 4 and s.warmup == 2 and len(s.invocations) == 4
    assert len(s.device_wall_us) == len(s.host_wall_us) == 4 and s.samples == s.device_wall_us
    assert all(t > 0 for t in s.device_wall_us + s.host_wall_us) and not s.all_zero_device
    assert len(set(s.device_wall_us)) == 1
    assert s.device_us_min == s.device_us_max == s.device_wall_us_median == s.device_us_mean
    assert s.per_round() == s.device_wall_us and s.per_round("host") == s.host_wall_us
    assert all(u >= h for u, h in zip(s.per_round("union"), s.host_wall_us, strict=True))
    assert all(0 < e <= d for e, d in zip(s.per_round("effective"), s.device_wall_us, strict=True))
    assert list(s.per_dispatch()) == [(0, 0)] and s.dispatch_tasks() == {(0, 0): "main"}
    assert "pid=0 slot=0" in s.format_mean_tree() and "BenchmarkStats" in str(s)
    assert s.mean_invocation().device_wall_us == pytest.approx(s.device_us_mean)
    assert s.format_tree(0) and not s.fallback_flattened and not s.unstable_dispatch_slots
    with pytest.raises(ValueError, match="device, host, effective, union"):
        s.per_round("speed")
    inv = s.invocations[0]
    assert inv.root().name == "host" and "device" in inv.by_name() and inv.task_name == "main"
    assert inv.by_name()["device"].is_device and inv.by_name()["device"].dur_us == inv.device_wall_us


def test_distributed(rng):
    c = ir.compile(programs.PerRank, distributed_config=DistributedConfig([2, 5, 1]), dump_passes=False)
    x = rng.standard_normal((3, ROWS, COLS), dtype=np.float32)
    out = np.zeros_like(x)
    s = benchmark(c, [x, out], rounds=3, warmup=1)
    np.testing.assert_array_equal(out, x + np.arange(3, dtype=np.float32)[:, None, None])
    assert set(s.per_rank()) == {0, 1, 2} and all(len(v) == 3 for v in s.per_rank("host").values())
    assert set(s.dispatch_groups()) == {(0, 0), (1, 0), (2, 0)}


def test_refusals(add, rng):
    # BEN-2
    x = np.zeros((ROWS, COLS), np.float32)
    args = [x, x, x.copy()]
    c = ir.compile(programs.PerRank, dump_passes=False)
    for program, kwargs in (
        (add, {"rounds": 0}),
        (add, {"rounds": 1.5}),
        (add, {"rounds": True}),
        (add, {"warmup": -1}),
        (add, {"config": RunConfig(), "platform": "a2a3sim"}),
        (add, {"config": RunConfig(), "device_id": 0}),
        (add, {"persistent": True}),
        (add, {"reset_persistent_windows": False}),
        (c, {"platform": "a2a3sim"}),
        (c, {"device_id": 1}),
    ):
        with pytest.raises(ValueError):
            benchmark(program, args, **kwargs)


def test_records(add, rng, tmp_path, capfd):
    # BEN-4
    assert _STRACE_LOG_LEVEL == "timing"
    x = rng.standard_normal((ROWS, COLS), dtype=np.float32)
    with _capture_fd_stderr(tmp_path / "log"):
        stats = benchmark(add, [x, x, x.copy()], rounds=3, warmup=2)
    again = _parse_stats_from_strace((tmp_path / "log").read_text(), rounds=3, warmup=2)
    assert again.device_wall_us == stats.device_wall_us and again.host_wall_us == stats.host_wall_us
    benchmark(add, [x, x, x.copy()], rounds=1, warmup=0)
    assert capfd.readouterr().err == ""
