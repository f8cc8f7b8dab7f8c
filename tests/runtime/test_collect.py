# SPDX-License-Identifier: Apache-2.0
"""Collected files, timelines, task graphs, reports (04 section 21)."""

from __future__ import annotations

import json

import numpy as np
import programs
import pytest
from pypto import ir, runtime
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions

ROWS, COLS = programs.ROWS, programs.COLS


@pytest.fixture(scope="module")
def rows():
    return ir.compile(programs.Rows, dump_passes=False)


def call(rows, rng, count=4, **config):
    x = rng.standard_normal((count, COLS), dtype=np.float32)
    out = np.zeros_like(x)
    rows(x, out, config=RunConfig(**config))
    np.testing.assert_array_equal(out, x * 2)  # OBS-1: collecting never changes results
    return rows.output_dir / "dfx_outputs"


def test_dep_gen(rows, rng):
    # 21.1
    d = call(rows, rng, enable_dep_gen=True)
    graph = json.loads((d / "deps.json").read_text())
    assert len(graph["tasks"]) == 4 and graph["tensors"]
    for t in graph["tasks"]:
        assert isinstance(t["id"], str) and t["id"].isdigit() and t["kernel"] == "row"
    for e in graph["edges"]:
        assert {"pred", "succ", "arg", "source"} <= set(e)
    names = json.loads((d / f"name_map_{d.name}.json").read_text())
    assert names["level"] == 2 and names["orchestrator_name"] is None
    assert "row" in names["callable_id_to_name"].values()


def test_swimlane(rows, rng):
    # OBS-2, OBS-4, OBS-5
    d = call(rows, rng, enable_chip_swimlane=True)
    records = json.loads((d / "chip_swimlane_records.json").read_text())
    assert records["chip_swimlane_level"] == 4 and len(records["tasks"]) == 4
    for t in records["tasks"]:
        for key in ("task_id", "func_id", "core_id", "ring_id"):
            assert isinstance(t[key], int)
        for key in ("start_time_us", "end_time_us", "duration_us", "dispatch_time_us", "finish_time_us"):
            assert isinstance(t[key], (int, float))
        assert isinstance(t["core_type"], str)
    assert (d / "deps.json").exists()
    timeline = json.loads((d / "timeline.json").read_text())
    assert timeline["displayTimeUnit"] == "ns"
    slices = [e for e in timeline["traceEvents"] if e["ph"] == "X"]
    assert slices and slices == sorted(slices, key=lambda e: e["ts"])


def test_scope_stats_pmu_and_cleaning(rows, rng):
    d = call(rows, rng, enable_scope_stats=True, enable_pmu=2)
    lines = (d / "scope_stats" / "scope_stats.jsonl").read_text().splitlines()
    assert lines and all(isinstance(json.loads(line), dict) for line in lines)
    assert len((d / "pmu.csv").read_text().splitlines()) >= 5
    d = call(rows, rng, enable_dep_gen=True)  # a run with any flag first removes what an earlier run left
    assert not (d / "pmu.csv").exists() and (d / "deps.json").exists()


def test_dump_args(rows, rng):
    # OBS-3
    d = call(rows, rng, enable_dump_args=2)
    dump = json.loads((d / "args_dump" / "args_dump.json").read_text())
    blob = (d / "args_dump" / dump["bin_file"]).read_bytes()
    by = {(a["role"], a["stage"]): a for a in dump["args"]}
    x, out = by["input", "before_dispatch"], by["output", "after_completion"]
    assert x["shape"] == [4, COLS] and x["task_id"].startswith("0x") and x["is_contiguous"]

    def values(a):
        return np.frombuffer(blob[a["bin_offset"] : a["bin_offset"] + a["bin_size"]], np.float32)

    np.testing.assert_array_equal(values(out), values(x) * 2)


@pytest.mark.parametrize("flags", [{"enable_dep_gen": True, "enable_scope_stats": True}, {"enable_chip_swimlane": 4}])
def test_distributed(flags, rng):
    # OBS-1, 03 A-6
    c = ir.compile(programs.PerRank, distributed_config=DistributedConfig([0, 1]), dump_passes=False)
    x = rng.standard_normal((2, ROWS, COLS), dtype=np.float32)
    c(x, np.zeros_like(x), config=RunConfig(**flags))
    for rank in (0, 1):
        d = c.output_dir / "dfx_outputs" / f"rank{rank}" / "d0"
        assert json.loads((d / "dispatch_program.json").read_text()) == {"program": "chip"}
        assert json.loads((d / "deps.json").read_text())["tasks"]
        if "enable_scope_stats" in flags:
            assert (d / "scope_stats" / "scope_stats.jsonl").read_text()
        else:
            assert json.loads((d / "chip_swimlane_records.json").read_text())["tasks"]


def test_flags_through_execute_compiled(rows, rng):
    x = rng.standard_normal((2, COLS), dtype=np.float32)
    runtime.execute_compiled(
        rows.output_dir,
        [x, np.zeros_like(x)],
        platform="a2a3sim",
        device_id=0,
        dfx=runtime.runner._DfxOpts(enable_dep_gen=True),
    )
    assert (rows.output_dir / "dfx_outputs" / "deps.json").exists()


def test_saved_graph(rows, rng, tmp_path):
    # OBS-6
    call(rows, rng, enable_dep_gen=True)
    report = runtime.last_report()
    for name, start in (("g.json", "{"), ("g.dot", "digraph"), ("g.svg", "<svg")):
        report.save_task_graph(tmp_path / name)
        assert (tmp_path / name).read_text().startswith(start)
    report.save_timeline(tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    call(rows, rng)
    with pytest.raises(ValueError, match="enable_dep_gen"):
        runtime.last_report().save_task_graph(tmp_path / "none.json")


def test_trace(rows, rng, tmp_path, monkeypatch):
    # OBS-4: several dispatches follow each other in one file
    x = rng.standard_normal((2, COLS), dtype=np.float32)
    one = tmp_path / "one.json"
    rows(x, np.zeros_like(x), config=RunConfig(sim=SimOptions(trace=one)))
    first = [e for e in json.loads(one.read_text())["traceEvents"] if e["ph"] == "X"]
    monkeypatch.setenv("PYPTO_TRACE", str(tmp_path / "all.json"))
    rows(x, np.zeros_like(x))
    rows(x, np.zeros_like(x))
    events = [e for e in json.loads((tmp_path / "all.json").read_text())["traceEvents"] if e["ph"] == "X"]
    assert len(events) == 2 * len(first) > 0


def test_explore(rows, rng):
    # SIM-4
    x = rng.standard_normal((3, COLS), dtype=np.float32)
    reports = runtime.explore(rows, x, np.zeros_like(x), runs=3, seed=5)
    assert len(reports) == 3 and all(r.ok for r in reports)
    with pytest.raises(ValueError):
        runtime.explore(rows, x, x, runs=0)
