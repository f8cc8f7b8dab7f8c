# SPDX-License-Identifier: Apache-2.0
"""Random distributed programs equal NumPy without a report; without a barrier they race exactly where they must.

03 M-10 - M-24, O-30 - O-61, C-3, C-40; X-40 of section 9, X-73 (no false alarm).
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pypto.language as pl
import pytest
from pypto import ir
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions, last_report

sys.path.insert(0, str(Path(__file__).parent))
import phases
from loading import in_a_child, load
from phases_text import blocks_text, text

QUICK, NIGHTLY = 90, 6000


def reports() -> list:
    # Random offsets are not aligned for transfers.
    return [d for d in last_report().diagnostics if d.severity != "note" and d.id != "X-55"]


def outputs(x: np.ndarray, blocks: int) -> list[np.ndarray]:
    return [np.full((len(x), blocks * phases.R, phases.C), 77, x.dtype), np.full_like(x, 77)]


def compile_for(program, p: int, x: np.ndarray, platform: str, blocks: int = 1):
    world = DistributedConfig(device_ids=[2 * r + 1 for r in range(p)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return program.compile(x, *outputs(x, blocks), config=RunConfig(platform=platform, distributed_config=world))


def run(compiled, x: np.ndarray, blocks: int = 1, **sim) -> list[np.ndarray]:
    y, z = outputs(x, blocks)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled(x, y, z, config=RunConfig(platform=compiled.platform, sim=SimOptions(**sim)))
    return [y, z]


def equal(compiled, x: np.ndarray, want_y: np.ndarray, want_z: np.ndarray, seed: int, blocks: int = 1) -> None:
    """Under every schedule, without a report."""
    slow = {seed % len(x): 3}
    for sim in (
        {"checks": "strict"},
        {"checks": "strict", "schedule": "explore", "seed": seed, "delay_remote": True, "rank_weights": slow},
        {"checks": "off", "schedule": "timed"},
    ):
        y, z = run(compiled, x, blocks, **sim)
        assert reports() == [], (seed, sim)
        np.testing.assert_array_equal(y, want_y, err_msg=f"seed {seed} {sim}")
        np.testing.assert_array_equal(z, want_z, err_msg=f"seed {seed} {sim}")


def races(compiled, x: np.ndarray, blocks: int = 1, **sim) -> bool:
    """Whether a race is reported: an error, or (between dispatches that the host orders, 03 M-33) a warning."""
    try:
        run(compiled, x, blocks, **sim)
    except Exception as error:
        assert "X-40" in str(error), error
        return True
    assert all("X-40" in d.id for d in reports()), reports()
    return bool(reports())


def check(seed: int, folder: Path) -> Counter:
    found: Counter = Counter()
    program = phases.make(seed)
    x = phases.inputs(program)
    want_y, want_z, loud = phases.golden(program, x)
    platform = ("a2a3sim", "a5sim")[seed % 2]
    compiled = compile_for(load(text(program), folder, f"phases_{seed}"), program.p, x, platform)
    equal(compiled, x, want_y, want_z, seed)
    found["equal"] += 1
    if seed % 5 == 0:  # the lowered program's text is the same program (04 TXT)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            again = ir.compile(
                pl.parse(compiled.program.as_python()),
                platform=platform,
                distributed_config=compiled.distributed_config,
                output_dir=str(folder / f"again_{seed}"),
            )
        y, z = run(again, x, checks="strict")
        assert reports() == [], seed
        np.testing.assert_array_equal(y, want_y, err_msg=f"seed {seed} read back")
        np.testing.assert_array_equal(z, want_z, err_msg=f"seed {seed} read back")
        found["read back"] += 1
    for k in phases.removable(program):
        want = phases.races(program, k, loud)
        if want is None:
            continue
        without = load(text(program, k), folder, f"phases_{seed}_{k}")
        compiled = compile_for(without, program.p, x, platform)
        assert races(compiled, x) == want, f"seed {seed} without barrier {k}"
        found["race" if want else "no race"] += 1
    return found


def check_partial(kind: str, seed: int, folder: Path) -> Counter:
    """Ranks, or blocks of ranks, that tell only some of the others."""
    make, write = MAKERS[kind]
    program = make(seed)
    x = phases.inputs(program)
    want_y, want_z, loud = phases.golden(program, x)
    want = phases.unordered(program, loud)
    platform = ("a2a3sim", "a5sim")[seed % 2]
    compiled = compile_for(load(write(program), folder, f"{kind}_{seed}"), program.p, x, platform, program.blocks)
    if want is None:
        return Counter()
    if not want:
        equal(compiled, x, want_y, want_z, seed, program.blocks)
        return Counter({"no race": 1})
    for sim in ({}, {"schedule": "explore", "seed": seed}):
        assert races(compiled, x, program.blocks, **sim), f"{kind} {seed} {seed} {sim}: no report"
    return Counter({"race": 1})


def sweep(first: int, count: int, folder: Path) -> Counter:
    found = sum((check(seed, folder) for seed in range(first, first + count)), Counter())
    assert found["equal"] == count
    assert found["race"] >= 0.3 * count, found
    assert found["no race"] >= 0.2 * count, found
    return found


@pytest.mark.parametrize("first", range(0, QUICK, 30))
def test_random_phases(first, tmp_path):
    sweep(first, 30, tmp_path)


MAKERS = {"ranks": (phases.make_partial, text), "blocks": (phases.make_blocks, blocks_text)}


def sweep_partial(kind: str, first: int, count: int, folder: Path) -> Counter:
    found = sum((check_partial(kind, seed, folder) for seed in range(first, first + count)), Counter())
    assert min(found["race"], found["no race"]) >= 0.1 * count, found
    return found


@pytest.mark.parametrize("first", range(0, QUICK, 30))
@pytest.mark.parametrize("kind", MAKERS)
def test_random_partial_orders(kind, first, tmp_path):
    sweep_partial(kind, first, 30, tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(QUICK, QUICK + NIGHTLY, 500))
@pytest.mark.parametrize("kind", MAKERS)
def test_many_random_partial_orders(kind, first, tmp_path):
    print(dict(in_a_child(lambda: sweep_partial(kind, first, 500, tmp_path))))


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(QUICK, QUICK + NIGHTLY, 500))
def test_many_random_phases(first, tmp_path):
    print(dict(in_a_child(lambda: sweep(first, 500, tmp_path))))
