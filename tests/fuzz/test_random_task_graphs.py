# SPDX-License-Identifier: Apache-2.0
"""Random task graphs equal NumPy under every schedule without a report, or race exactly where `deps=` has no path.

01 L-133, L-159, L-160, L-164 - L-168, L-175; 03 M-20 - M-24, X-40, X-73.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from pypto.runtime import RunConfig, SimOptions, last_report

sys.path.insert(0, str(Path(__file__).parent))
import task_graphs
from loading import in_a_child, load

QUICK, NIGHTLY = 120, 8000


def run(program, x: np.ndarray, platform: str, **sim) -> list[np.ndarray]:
    outputs = [np.full_like(x, 77) for _ in range(3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program(x, *outputs, config=RunConfig(platform=platform, sim=SimOptions(**sim)))
    return outputs


def reports() -> list:
    return [d for d in last_report().diagnostics if d.severity != "note"]


def check(seed: int, folder: Path) -> Counter:
    graph = task_graphs.make(seed)
    x = task_graphs.inputs(graph)
    want = task_graphs.golden(graph, x)
    race = task_graphs.races(graph)
    platform = ("a2a3sim", "a5sim")[seed % 2]
    program = load(task_graphs.text(graph), folder, f"graph_{seed}")
    schedules = [{}, {"schedule": "explore", "seed": seed}, {"schedule": "timed"}]
    if race is None:
        return Counter()
    for sim in schedules:
        if race:
            with pytest.raises(RuntimeError) as caught:
                run(program, x, platform, **sim)
                pytest.fail(f"seed {seed} {sim}: no report")
            assert "race" in str(caught.value), f"seed {seed} {sim}: {caught.value}"
            continue
        outputs = run(program, x, platform, checks="strict", **sim)
        assert reports() == [], (seed, sim)
        for got, expected in zip(outputs, want, strict=True):
            np.testing.assert_array_equal(got, expected, err_msg=f"seed {seed} {sim}")
    return Counter({"race" if race else "no race": 1})


def check_automatic(seed: int, folder: Path) -> None:
    graph = task_graphs.make(seed)
    x = task_graphs.inputs(graph)
    want = task_graphs.golden(graph, x, twice=True)
    platform = ("a2a3sim", "a5sim")[seed % 2]
    program = load(task_graphs.automatic_text(graph), folder, f"automatic_{seed}")
    for sim in ({}, {"schedule": "explore", "seed": seed}, {"schedule": "explore", "seed": seed + 1}):
        outputs = run(program, x, platform, checks="strict", **sim)
        assert reports() == [], (seed, sim)
        for got, expected in zip(outputs, want, strict=True):
            np.testing.assert_array_equal(got, expected, err_msg=f"seed {seed} {sim}")


def sweep(first: int, count: int, folder: Path) -> Counter:
    found = sum((check(seed, folder) for seed in range(first, first + count)), Counter())
    assert min(found["race"], found["no race"]) >= 0.1 * count, found
    return found


@pytest.mark.parametrize("first", range(0, QUICK, 40))
def test_random_task_graphs(first, tmp_path):
    sweep(first, 40, tmp_path)


@pytest.mark.parametrize("first", range(0, QUICK, 40))
def test_random_automatic_graphs(first, tmp_path):  # L-159, L-160
    for seed in range(first, first + 40):
        check_automatic(seed, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(QUICK, QUICK + NIGHTLY, 1000))
def test_many_random_automatic_graphs(first, tmp_path):  # L-159, L-160
    in_a_child(lambda: [check_automatic(seed, tmp_path) for seed in range(first, first + 1000)])


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(QUICK, QUICK + NIGHTLY, 1000))
def test_many_random_task_graphs(first, tmp_path):
    print(dict(in_a_child(lambda: sweep(first, 1000, tmp_path))))
