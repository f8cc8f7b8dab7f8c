# SPDX-License-Identifier: Apache-2.0
"""Random programs shaped like model kernels, against the NumPy interpreter of their syntax trees (02 whole)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from model_kernels import FAMILIES, make_model
from runner import Coverage, check

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
