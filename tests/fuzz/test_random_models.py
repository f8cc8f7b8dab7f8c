# SPDX-License-Identifier: Apache-2.0
"""Random programs shaped like model kernels, against the NumPy interpreter of their syntax trees (02 whole)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from model_kernels import FAMILIES, make_model
from runner import Coverage, check
from wide_expressions import make_wide

FIRST, QUICK, NIGHTLY = 20_000, 6, 300  # programs of each family


def sweep(family: str, first: int, count: int) -> Coverage:
    coverage = Coverage()
    start = FIRST + FAMILIES.index(family) - FIRST % len(FAMILIES)
    for n in range(first, first + count):
        coverage.outcome[check(start + (n + 1) * len(FAMILIES), coverage, make_model)] += 1
    assert coverage.outcome["equal"] == count, coverage.outcome
    return coverage


@pytest.mark.parametrize("family", FAMILIES)
def test_random_models(family):
    sweep(family, 0, QUICK)


@pytest.mark.nightly
@pytest.mark.parametrize("family", FAMILIES)
def test_many_random_models(family):
    print(sweep(family, QUICK, NIGHTLY).table())


def wide_sweep(first: int, count: int) -> Coverage:
    coverage = Coverage()
    for seed in range(first, first + count):
        coverage.outcome[check(seed, coverage, make_wide)] += 1
    assert coverage.outcome["equal"] >= 0.9 * count, coverage.outcome
    return coverage


@pytest.mark.parametrize("first", (50_000, 50_040))
def test_random_programs_of_more_operations(first):
    reached = {name for name, _, _ in wide_sweep(first, 40).operations}
    assert {"expands", "fillpad_expand", "scatter", "extract", "tri", "xors"} <= reached


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(51_000, 53_000, 500))
def test_many_random_programs_of_more_operations(first):
    print(wide_sweep(first, 500).table())
