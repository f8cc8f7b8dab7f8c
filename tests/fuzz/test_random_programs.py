# SPDX-License-Identifier: Apache-2.0
"""Random programs against the NumPy interpreter of their syntax trees (01, 02 whole)."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from runner import Coverage, check

QUICK, NIGHTLY, CHUNK = 300, 10_000, 50


def sweep(first: int, count: int, capsys) -> Coverage:
    coverage = Coverage()
    for seed in range(first, first + count):
        coverage.outcome[check(seed, coverage)] += 1
    assert coverage.outcome["equal"] >= 0.9 * count, coverage.outcome
    return coverage


@pytest.mark.parametrize("chunk", range(0, QUICK, CHUNK))
def test_random_programs(chunk, capsys):
    coverage = sweep(chunk, CHUNK, capsys)
    print(coverage.table())


@pytest.mark.nightly
@pytest.mark.parametrize("chunk", range(0, NIGHTLY, 500))
def test_ten_thousand_random_programs(chunk, capsys):
    print(sweep(chunk, 500, capsys).table())


def test_coverage_reached(capsys):
    """Print per operation, kind and dtype, and per form, how often the quick programs reach it."""
    from generator import make
    from runner import interpret
    from values import Illegal

    coverage = Coverage()
    for seed in range(QUICK):
        try:
            interpret(make(seed), coverage)
        except Illegal:
            continue
    with capsys.disabled():
        print("\n" + coverage.table())
    names = {name for name, _, _ in coverage.operations}
    assert {"add", "matmul", "matmul_acc", "gather", "row_sum", "cast", "load", "store", "assemble", "write"} <= names
    assert any("zero trips" in f for f in coverage.forms) and any("negative step" in f for f in coverage.forms)
