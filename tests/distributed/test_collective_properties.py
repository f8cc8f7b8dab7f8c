# SPDX-License-Identifier: Apache-2.0
"""Collectives with random ranks, shapes, dtypes, rails, modes, repeats and delays equal NumPy bit for bit.

No report under strict checking, signals are zero afterwards, and both rails and all schedules give the same bits
(03 C-1 - C-63, C-12, SIM-3).
"""

import importlib.util
import sys
import warnings

import numpy as np
import pytest
from collective_programs import arrays, call_arrays, draw, golden, other_rail, results, source
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions, last_report

PLATFORMS = ["a2a3sim", "a5sim"]


@pytest.fixture
def load(tmp_path):
    made = []

    def load(text):
        name = f"{tmp_path.name}_{len(made)}"
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        made.append(name)
        spec.loader.exec_module(module)
        return module

    yield load
    for name in made:
        sys.modules.pop(name, None)


def bits(a):
    return a.view(np.uint16) if a.dtype.itemsize == 2 else a.view(np.uint32)


def check(case, seed, load, schedules):
    given = arrays(case, seed)
    want = golden(case, given[0], given[1], given[2])
    program = load(source(case)).program
    platform = PLATFORMS[seed % 2]
    ids = [int(d) for d in np.random.default_rng(seed).permutation(40)[: case.world]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if case.first:
            warnings.simplefilter("ignore")  # a subset domain leaves ranks idle (03 X-8)
        if case.host and case.lanes < 0:
            warnings.filterwarnings("ignore", "W-OUT-PARAM-UNUSED")  # no signal, no cells to show
        compiled = program.compile(
            *call_arrays(case, given),
            config=RunConfig(platform=platform, distributed_config=DistributedConfig(device_ids=ids)),
        )
    slow = {"rank_weights": {case.first + case.late: 2 + seed % 7}} if case.late >= 0 else {}
    for sim in ({**sim, **slow} for sim in schedules):
        call = [a.copy() for a in call_arrays(case, given)]
        compiled(*call, config=RunConfig(platform=platform, sim=SimOptions(checks="strict", **sim)))
        found = last_report().diagnostics
        # The whole target is copied, rows that were not received too.
        known = ("X-67",) if case.kind == "all_to_all_v" else ()
        assert [d for d in found if d.severity != "note" and d.id not in known] == [], (case, sim, found)
        np.testing.assert_array_equal(bits(results(case, call)), bits(want), err_msg=f"{case} {sim}")
        members = call[3][case.first :]
        assert (members == (-9 if case.host and case.lanes < 0 else 0)).all(), (case, sim)
        assert (call[3][: case.first] == -9).all()


def check_seed(seed, load, big):
    rng = np.random.default_rng(seed)
    case = draw(rng, big)
    schedules = [{}, {"schedule": "explore", "seed": seed, "delay_remote": bool(seed % 2)}]
    check(case, seed, load, schedules)
    if big and (other := other_rail(case)):
        check(other, seed, load, schedules[:1])


@pytest.mark.parametrize("seed", range(40))
def test_random_collectives(seed, load):  # 03 C-1 - C-12, C-20 - C-63, P-22 - P-24
    check_seed(seed, load, big=False)


@pytest.mark.nightly
@pytest.mark.parametrize("share", range(40))
def test_more_random_collectives(share, load):
    for seed in range(1000 + 25 * share, 1025 + 25 * share):
        check_seed(seed, load, big=True)
