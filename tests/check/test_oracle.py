# SPDX-License-Identifier: Apache-2.0
"""The checker against a brute-force reading of the memory model, on random tiny programs (03 M-10 - M-31)."""

import collections

import numpy as np
import oracle
import pytest
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions, last_report

STUCK = ("X-46", "X-47", "X-48", "X-49", "X-50", "X-59", "X-62")
BATCH = 50


def run(load_source, ops, seed):
    """Ids, and the pairs of events named, of the reports of one run."""
    text, events = oracle.source(ops)
    nranks, rows = len(ops), max(1, *map(len, ops))
    x = np.random.default_rng(seed).standard_normal((nranks, rows, 8), dtype=np.float32)
    y = np.zeros_like(x)
    world = DistributedConfig(device_ids=list(range(nranks)))
    compiled = load_source(text).program.compile(x, y, config=RunConfig(platform="a2a3sim", distributed_config=world))
    ids, pairs = set(), set()
    for options in ({}, {"schedule": "explore", "seed": seed}):
        compiled(x, y, config=RunConfig(platform="a2a3sim", sim=SimOptions(collect=True, **options)))
        found = last_report().diagnostics
        now = {d.id for d in found}
        if options:
            assert bool(now) == bool(ids), (text, ids, now)  # the verdict is that of every schedule
        ids |= now
        pairs |= {frozenset(events[a.line] for a in d.accesses) for d in found if d.accesses}
    return ids, pairs, text


def judge(load_source, seeds):
    count = collections.Counter()
    for seed in seeds:
        ops = oracle.random_program(seed)
        ends = oracle.outcomes(ops)
        if len(ends) == 2:
            count["either"] += 1  # whether it stops is a matter of order: nothing to compare
            continue
        ids, pairs, text = run(load_source, ops, seed)
        if ends == {"stuck"}:
            count["deadlock"] += 1
            assert any(i in STUCK for i in ids), (seed, ids, text)
            continue
        want = oracle.races(ops)
        count["race" if want else "clean"] += 1
        assert not [i for i in ids if i in STUCK], (seed, ids, text)
        assert bool(ids) == bool(want), (seed, ids, pairs, want, text)
        assert pairs <= want, (seed, pairs - want, text)
    return count


@pytest.mark.parametrize("first", range(0, 300, BATCH))
def test_random_programs(first, load_source):
    count = judge(load_source, range(first, first + BATCH))
    # Each verdict occurs in each batch; about one program in twelve stops, so a batch may have but one.
    assert min(count["clean"], count["race"]) >= 3 and count["deadlock"] >= 1, count


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(1000, 6000, 100))
def test_many_random_programs(first, load_source):
    judge(load_source, range(first, first + 100))


MESSAGE = [[("write", 1, 0), ("notify", 1, 0, 1)], [("wait", 0, 1), ("read", 1, 0)]]


@pytest.mark.parametrize(
    "ops,ends,racy",
    [
        (MESSAGE, {"ends"}, False),
        ([MESSAGE[0][::-1], MESSAGE[1]], {"ends"}, True),
        ([MESSAGE[0], MESSAGE[1][1:]], {"ends"}, True),
        ([MESSAGE[0][:1], MESSAGE[1]], {"stuck"}, None),
    ],
)
def test_the_oracle_itself(ops, ends, racy):
    assert oracle.outcomes(ops) == ends
    if racy is not None:
        assert bool(oracle.races(ops)) == racy


@pytest.mark.parametrize("threshold,racy", [(2, True), (3, False)])
def test_the_oracle_on_a_tally(threshold, racy):  # M-30: 2 of 3 arrivals are none for sure
    senders = [[("write", r, 0), ("notify", 0, 0, 1)] for r in (1, 2, 3)]
    assert bool(oracle.races([[("wait", 0, threshold), ("read", 1, 0)], *senders])) == racy
