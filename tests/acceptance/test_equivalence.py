# SPDX-License-Identifier: Apache-2.0
"""Every program of the examples and of the tests: its text reads back after each pass, and it runs to the same bytes when
it is read back from there, saved and loaded, with every tile copied, and with element-wise operations one by one.

See shadow.py for what is compared. One file by hand:

    PYTHONPATH=python:tests/acceptance python -m pytest -p shadow_plugin tests/programs/test_kernels_jit.py
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pypto
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from shadow import Shadow

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted(p for p in (ROOT / "examples").rglob("*.py") if p.parent.name != "runtime")
# Files of tests whose programs run; the least number of runs that are repeated in all other ways.
TESTS = {
    "tests/programs/test_kernels_jit.py": 15,
    "tests/programs/test_programs_class.py": 6,
    "tests/programs/test_rare_operations.py": 12,
    "tests/programs/test_small_cases.py": 5,
    "tests/programs/test_lanes_and_channels.py": 5,
    "tests/programs/test_chains_over_memory.py": 5,
    "tests/programs/test_stored_layouts.py": 5,
    "tests/programs/test_kernel_results.py": 13,
    "tests/programs/test_tasks_and_regions.py": 20,
    "tests/language/test_twins.py": 20,
    "tests/language/test_bodies.py": 12,
    "tests/language/test_loops_and_scopes.py": 4,
    "tests/language/test_lane_rules.py": 0,
    "tests/language/test_jit.py": 10,
    "tests/language/test_device_form.py": 5,
    "tests/distributed/test_host_rail.py": 5,
    "tests/distributed/test_large_signals.py": 5,
    "tests/distributed/test_core_order.py": 10,
    "tests/distributed/test_models_attention.py": 10,
    "tests/distributed/test_models_exchange.py": 40,
    "tests/distributed/test_surface_more.py": 5,
    "tests/distributed/test_needs_models.py": 15,
}


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_example(path, platform, tmp_path, monkeypatch):  # 01 L-79; 04 SER-2, PLAT-5; design: Tiles are memory, Strips
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path), "-p", platform])
    with Shadow() as shadow, contextlib.redirect_stdout(io.StringIO()):
        try:
            runpy.run_path(str(path), run_name="__main__")
        except SystemExit as end:
            assert not end.code, end.code
    assert not shadow.failures, "\n\n".join(shadow.failures[:5])
    assert shadow.counts.programs and shadow.counts.texts >= 6 * shadow.counts.programs
    assert shadow.counts.repeats or shadow.counts.skipped


@pytest.mark.parametrize("path", TESTS)
def test_programs_of_tests(path, tmp_path):
    counts = tmp_path / "counts.json"
    env = dict(os.environ)
    env["PYTHONPATH"] = os.pathsep.join([str(Path(pypto.__file__).parents[1]), str(Path(__file__).parent)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "shadow_plugin", "-p", "no:cacheprovider", "-o", "pythonpath=",
         "--shadow-counts", str(counts), "--tb=short", str(ROOT / path)],
        capture_output=True, text=True, env=env, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-20000:]
    seen = json.loads(counts.read_text(encoding="utf-8"))
    assert seen["runs"] - len(seen["skipped"]) >= TESTS[path], seen
    assert seen["repeats"] >= 8 * TESTS[path], seen
