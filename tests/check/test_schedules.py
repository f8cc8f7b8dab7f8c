# SPDX-License-Identifier: Apache-2.0
"""Schedules, seeds and replay tokens; the one switch of checking (03 M-34, M-35; 04 SIM-1 - SIM-5, OBS-16)."""

import numpy as np
import pytest
from pypto import DeadlockError, RaceError
from pypto.runtime import RunConfig, SimOptions, explore, last_report
from rows import COPY, arrays, compile_for, text_of

MEET = "signal = pld.tensor.barrier(signal)\n"
STAGE = "data = pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], data)\n"
SHIFT = "r = pld.tile.remote_load(data, peer=(me + 1) % n, offsets=[0, 0], shape=[1, 64])\ny = pl.store(r, [0, 0], y)"
# Rank 0 reads its own values when rank 1 is told first, and stops for ever otherwise.
EITHER = """\
if me > 0:
    pld.system.notify(signal, 0, [0, 0], me, op=pld.NotifyOp.Set)
else:
    pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)
    pld.system.wait(signal, [0, 0], 2, cmp=pld.WaitCmp.Eq)
"""


def made(load_source, kernel, nranks):
    given = arrays(nranks)
    compiled, _ = compile_for(load_source(text_of(kernel=kernel)).program, given, nranks)
    return compiled, given


def run(compiled, given, **sim):
    copies = [a.copy() for a in given]
    compiled(*copies, config=RunConfig(platform="a2a3sim", sim=SimOptions(**sim)))
    return copies[1], last_report()


def test_a_right_program_gives_one_result(load_source):  # M-35, SIM-3
    compiled, given = made(load_source, STAGE + MEET + SHIFT, 4)
    want = np.roll(given[0], -1, axis=0)
    for sim in ({}, {"schedule": "timed"}, *({"schedule": "explore", "seed": s} for s in range(25))):
        y, report = run(compiled, given, **sim)
        np.testing.assert_array_equal(y, want)
        assert report.ok and report.diagnostics == []
        assert [r.comm for r in report.ranks] == [r.comm for r in run(compiled, given)[1].ranks]


def test_explore_runs_schedules(load_source):  # SIM-4
    compiled, given = made(load_source, STAGE + MEET + SHIFT, 3)
    before = given[1].copy()
    reports = explore(compiled, *given, runs=7, seed=3)
    assert len(reports) == 7 and all(r.ok for r in reports)
    np.testing.assert_array_equal(given[1], before)  # each run has its own arrays


def test_a_token_repeats_the_run(load_source):  # OBS-16, SIM-4
    compiled, given = made(load_source, STAGE + SHIFT, 3)
    with pytest.raises(RaceError) as caught:
        explore(compiled, *given, runs=5, seed=40)
    first = caught.value.diagnostics[0]
    assert first.replay
    for _ in range(3):
        with pytest.raises(RaceError) as again:
            run(compiled, given, replay=first.replay)
        assert str(again.value) == str(caught.value)
        assert again.value.diagnostics[0].replay == first.replay


def test_seeds_reach_other_orders(load_source):  # M-35: what depends on the order is told by the race, in every one
    compiled, given = made(load_source, EITHER + COPY, 3)
    outcomes = set()
    for seed in range(40):
        _, report = run(compiled, given, schedule="explore", seed=seed, collect=True)
        found = {d.id for d in report.diagnostics}
        assert "X-44" in found, seed
        outcomes.add(frozenset(found))
    assert len(outcomes) > 1


def test_one_seed_is_one_run(load_source):  # M-35
    compiled, given = made(load_source, STAGE + SHIFT, 3)
    for seed in (1, 2**31, 12345678901):
        runs = [run(compiled, given, schedule="explore", seed=seed, collect=True)[1] for _ in range(3)]
        assert len({tuple(d.render() + d.replay for d in r.diagnostics) for r in runs}) == 1


def test_slow_ranks(load_source):  # M-34, M-35, SIM-3, SIM-5
    late, given = made(load_source, STAGE + SHIFT, 2)
    for slow in (0, 1):  # the other one has staged nothing yet for who reads first
        y, report = run(late, given, checks="off", rank_weights={slow: 4})
        np.testing.assert_array_equal(y[slow], given[0][1 - slow])
        assert not y[1 - slow].any()
        with pytest.raises(RaceError) as caught:
            run(late, given, rank_weights={slow: 4})
        token = caught.value.diagnostics[0].replay
        assert token == f"fast-slow{slow}x4"
        again, _ = run(late, given, checks="off", replay=token)
        np.testing.assert_array_equal(again, y)
    compiled, given = made(load_source, STAGE + MEET + SHIFT, 4)
    want = np.roll(given[0], -1, axis=0)
    for weights in ({1: 2}, {0: 7, 3: 3}, {0: 2, 1: 3, 2: 4, 3: 5}, [(2, 1000)]):
        for sim in ({}, {"schedule": "explore", "seed": 5, "delay_remote": True}):
            y, report = run(compiled, given, rank_weights=weights, **sim)
            np.testing.assert_array_equal(y, want)
            assert report.ok and report.diagnostics == []
    with pytest.raises(ValueError, match=r"rank 4 is outside \[0, 4\)"):
        run(compiled, given, rank_weights={4: 2})
    for token in ("fast-slow1", "fast-slow1x", "fast-slow1x2y", "slow1x2"):
        with pytest.raises(ValueError, match="is not one that a report gave"):
            run(compiled, given, replay=token)


def test_fast_is_the_default(load_source):  # 04 section 22
    compiled, given = made(load_source, STAGE + SHIFT, 3)
    _, plain = run(compiled, given, collect=True)
    _, fast = run(compiled, given, collect=True, schedule="fast", seed=99)
    assert [d.render() for d in plain.diagnostics] == [d.render() for d in fast.diagnostics] != []


@pytest.mark.parametrize(
    "sim,names",
    [
        ({"checks": "loud"}, ["checks", "'default'", "'strict'", "'off'"]),
        ({"schedule": "slow"}, ["schedule", "'fast'", "'timed'", "'explore'"]),
        ({"replay": "nonsense"}, ["replay", "nonsense"]),
    ],
)
def test_wrong_values(sim, names, load_source):  # SIM-1
    compiled, given = made(load_source, COPY, 2)
    with pytest.raises(ValueError) as caught:
        run(compiled, given, **sim)
    assert all(name.strip("'") in str(caught.value) for name in names), caught.value


@pytest.mark.parametrize("checks,races", [("default", True), ("strict", True), ("off", False)])
def test_the_switch_and_its_environment_variable(checks, races, load_source, monkeypatch):  # M-34, SIM-2
    compiled, given = made(load_source, STAGE + SHIFT, 2)
    monkeypatch.setenv("PYPTO_SIM", f"checks={checks}")
    copies = [a.copy() for a in given]
    if races:
        with pytest.raises(RaceError):
            compiled(*copies, config=RunConfig(platform="a2a3sim"))
    else:
        compiled(*copies, config=RunConfig(platform="a2a3sim"))
    run(compiled, given, checks="off")  # what the call says wins


def test_off_still_finds_standstills(load_source):  # M-31, M-37
    compiled, given = made(load_source, "pld.system.wait(signal, [1, 0], 1, cmp=pld.WaitCmp.Ge)\n" + COPY, 2)
    with pytest.raises(DeadlockError, match="X-46"):
        run(compiled, given, checks="off")


def test_checking_changes_no_value(load_source):  # M-34
    compiled, given = made(load_source, STAGE + MEET + SHIFT, 3)
    results = [run(compiled, given, checks=c)[0] for c in ("default", "strict", "off")]
    assert all(np.array_equal(r, results[0]) for r in results)
