# SPDX-License-Identifier: Apache-2.0
"""RunConfig, RunResult, _DfxOpts, SimOptions (04 sections 9 and 22)."""

from __future__ import annotations

import dataclasses
import warnings

import pytest
from pypto.backend import BackendType
from pypto.ir.pass_manager import OptimizationStrategy, PassDumpLevel
from pypto.runtime import RunConfig, RunResult, SimOptions, _rings, _sim
from pypto.runtime.runner import _SWIMLANE_CLI_HELP, _SWIMLANE_FULL_LEVEL, _SWIMLANE_MAX_LEVEL, _DfxOpts

FIELDS = """platform device_id rtol atol strategy backend_type dump_passes save_kernels save_kernels_dir codegen_only
enable_chip_swimlane enable_dump_args enable_pmu enable_dep_gen enable_scope_stats compile_profiling diagnostic_phase
disabled_diagnostics golden_data_dir aicpu_thread_num ring_task_window ring_heap ring_dep_pool distributed_config
analyze_auto_scopes_for_deps memory_planner dump_ptoas_passes sim""".split()


def test_fields_in_order_with_defaults():
    # section 9
    assert [f.name for f in dataclasses.fields(RunConfig)] == FIELDS
    c = RunConfig()
    assert (c.platform, c.device_id, c.rtol, c.atol) == ("a2a3sim", 0, 1e-5, 1e-5)
    assert c.strategy is OptimizationStrategy.Default and c.backend_type is BackendType.Ascend910B
    assert c.dump_passes is False and c.sim is None and c.distributed_config is None
    assert dataclasses.asdict(c)["platform"] == "a2a3sim"
    assert dataclasses.replace(c, device_id=7).device_id == 7
    assert RunConfig("a5sim", 3).device_id == 3
    assert RunConfig.__test__ is False and RunResult.__test__ is False


@pytest.mark.parametrize("platform", ["a2a3", "a2a3sim", "a5", "a5sim", "mpi", "mpi:a5"])
def test_platforms(platform):
    # PLAT-1; backend_type is overwritten from platform
    c = RunConfig(platform=platform, backend_type=BackendType.Ascend910B)
    assert c.backend_type is (BackendType.Ascend950 if "a5" in platform else BackendType.Ascend910B)


@pytest.mark.parametrize("bad", ["A2A3SIM", "a2a3 sim", "", "a2a3smi", None, 3])
def test_bad_platform(bad):
    # PLAT-1
    with pytest.raises(ValueError) as e:
        RunConfig(platform=bad)
    assert f"Invalid platform {bad!r}. Expected 'a2a3sim', 'a2a3', 'a5sim', or 'a5'." in str(e.value)
    if bad == "a2a3smi":
        assert "Did you mean 'a2a3sim'?" in str(e.value)


def test_unknown_keyword():
    # CFG-1
    with pytest.raises(TypeError, match="no_such_field"):
        RunConfig(no_such_field=1)


def test_device_id():
    with pytest.raises(ValueError):
        RunConfig(device_id=-1)
    with pytest.raises(TypeError):
        RunConfig(device_id="0")
    assert RunConfig(device_id=11).device_id == 11  # PLAT-6


def test_swimlane_levels():
    # CFG-3, CFG-8
    assert RunConfig(enable_chip_swimlane=True).enable_chip_swimlane == 4
    assert RunConfig(enable_chip_swimlane=False).enable_chip_swimlane == 0
    assert RunConfig(enable_chip_swimlane=2).enable_chip_swimlane == 2
    with pytest.raises(TypeError, match=r"must be an int collection level \(0-4\) or a bool, got str"):
        RunConfig(enable_chip_swimlane="4")
    for bad in (-1, 5):
        with pytest.raises(ValueError, match=r"must be a collection level in \[0, 4\]"):
            RunConfig(enable_chip_swimlane=bad)
    assert _SWIMLANE_FULL_LEVEL == _SWIMLANE_MAX_LEVEL == 4
    assert isinstance(_SWIMLANE_CLI_HELP, str) and "\n" not in _SWIMLANE_CLI_HELP


def test_old_swimlane_spelling():
    # CFG-4
    with pytest.warns(DeprecationWarning):
        c = RunConfig(enable_l2_swimlane=True)
    assert c.enable_chip_swimlane == 4
    with pytest.warns(DeprecationWarning):
        c.enable_l2_swimlane = 1
    assert c.enable_chip_swimlane == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert c.enable_l2_swimlane == 1
    with pytest.raises(ValueError):
        RunConfig(enable_l2_swimlane=1, enable_chip_swimlane=1)
    assert "enable_l2_swimlane" not in [f.name for f in dataclasses.fields(RunConfig)]


@pytest.mark.parametrize(
    "flag",
    [
        {"enable_chip_swimlane": 1},
        {"enable_dump_args": 1},
        {"enable_pmu": 2},
        {"enable_dep_gen": True},
        {"enable_scope_stats": True},
    ],
)
def test_collection_flags(flag):
    # CFG-2, CFG-8
    c = RunConfig(**flag)
    assert c.any_dfx_enabled() and c.save_kernels is True
    opts = _DfxOpts.from_run_config(c)
    assert opts.any() and opts == _DfxOpts(**flag)
    with pytest.raises(dataclasses.FrozenInstanceError):
        opts.enable_pmu = 3
    assert not RunConfig().any_dfx_enabled() and not _DfxOpts().any() and RunConfig().save_kernels is False


@pytest.mark.parametrize(
    "name,good,bad,text",
    [
        ("ring_task_window", [4, 1024], [0, 2, 1000, True, 4.0], "must be a power of 2 >= 4"),
        (
            "ring_heap",
            [1024, 1 << 20],
            [0, 512, 1000, True, 1024.0],
            r"must be a power of 2 >= 1024 \(bytes per ring\), got ",
        ),
        ("ring_dep_pool", [4, 5, 2**31 - 1], [0, 3, 2**31, False], "ring_dep_pool must be "),
    ],
)
def test_ring_sizes(name, good, bad, text):
    # CFG-5
    for value in good:
        assert getattr(RunConfig(**{name: value}), name) == value
        assert getattr(RunConfig(**{name: (value, 0, value, 0)}), name) == [value, 0, value, 0]
    for value in bad:
        with pytest.raises(ValueError, match=text):
            RunConfig(**{name: value})
    with pytest.raises(ValueError, match="must have exactly 4 entries"):
        RunConfig(**{name: [good[0]] * 3})
    assert getattr(RunConfig(), name) is None


def test_ring_message():
    with pytest.raises(ValueError) as e:
        RunConfig(ring_heap=1000)
    assert "ring_heap must be a power of 2 >= 1024 (bytes per ring), got 1000" in str(e.value)


def test_ring_environment(monkeypatch):
    # CFG-5
    assert _rings.effective_ring("ring_heap", None) == [0] * 4
    monkeypatch.setenv("PTO2_RING_HEAP", "2048")
    assert _rings.effective_ring("ring_heap", None) == [2048] * 4
    assert _rings.effective_ring("ring_heap", 1024) == [1024] * 4
    monkeypatch.setenv("PTO2_RING_HEAP", "2048,4096,0,1024")
    assert _rings.effective_ring("ring_heap", None) == [2048, 4096, 0, 1024]
    for bad in ("x", "1,2", "1000"):
        monkeypatch.setenv("PTO2_RING_HEAP", bad)
        with pytest.raises(ValueError, match="PTO2_RING_HEAP"):
            _rings.effective_ring("ring_heap", None)


def test_run_result():
    # CFG-7
    assert str(RunResult(True)) == "PASS"
    assert str(RunResult(True, "name", execution_time=1.234)) == "PASS: name (1.23s)"
    assert str(RunResult(False, "name", "error", 1.234)) == "FAIL: name - error (1.23s)"
    assert str(RunResult(False, error="error")) == "FAIL: error"


def test_dump_level():
    # CMP-17
    assert RunConfig(dump_passes=PassDumpLevel.EXPLICIT).dump_passes == 2
    assert [int(m) for m in PassDumpLevel] == [0, 1, 2]


def test_sim_options():
    # SIM-1
    s = SimOptions()
    assert (s.schedule, s.seed, s.replay, s.threads, s.checks, s.step_limit) == ("fast", 0, None, 0, "default", None)
    for bad in (
        {"schedule": "random"},
        {"checks": "on"},
        {"seed": -1},
        {"threads": 1.5},
        {"step_limit": 0},
        {"collect": 1},
        {"rank_weights": 3},
        {"rank_weights": {1: 0}},
        {"rank_weights": {-1: 2}},
        {"rank_weights": {1: 2.5}},
        {"rank_weights": {True: 2}},
    ):
        with pytest.raises(ValueError):
            SimOptions(**bad)
    with pytest.raises(ValueError, match=r"fast.*timed.*explore"):
        SimOptions(schedule="slow")
    with pytest.raises(TypeError):
        RunConfig(sim="fast")
    assert s.rank_weights == ()
    slow = SimOptions(rank_weights={3: 2, 1: 4})
    assert slow.rank_weights == ((1, 4), (3, 2)) and slow == SimOptions(rank_weights=slow.rank_weights)
    assert len({slow, SimOptions(rank_weights={1: 4, 3: 2})}) == 1


def test_sim_environment(monkeypatch):
    # SIM-2: sets defaults for configs whose sim is None; an explicit sim wins
    monkeypatch.setenv("PYPTO_SIM", "schedule=explore,seed=7,checks=strict")
    assert _sim.effective(None) == SimOptions(schedule="explore", seed=7, checks="strict")
    assert _sim.effective(SimOptions()) == SimOptions()
    monkeypatch.setenv("PYPTO_SIM", "rank_weights=1:4+0:2")
    assert _sim.effective(None) == SimOptions(rank_weights={0: 2, 1: 4})
    for bad in (
        "rank_weights=1",
        "rank_weights=1:0",
        "schedule",
        "speed=3",
        "schedule=never",
        "seed=x",
        "collect=maybe",
    ):
        monkeypatch.setenv("PYPTO_SIM", bad)
        with pytest.raises(ValueError, match="PYPTO_SIM"):
            _sim.effective(None)


def test_sim_on_hardware():
    # SIM-1
    _sim.check_for_platform(None, "a2a3")
    _sim.check_for_platform(SimOptions(), "a5")
    _sim.check_for_platform(SimOptions(seed=3), "a5sim")
    with pytest.raises(ValueError, match="seed"):
        _sim.check_for_platform(SimOptions(seed=3), "a5")
