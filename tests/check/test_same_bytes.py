# SPDX-License-Identifier: Apache-2.0
"""One schedule is one run: results, reports, counters and trace are the same bytes for any number of host threads.

The planted programs serve: some are right, some race, some stop (03 M-35, 04 SIM-5).
"""

import itertools

import pytest
from pypto.runtime import RunConfig, SimOptions, last_report
from rows import compile_for, load_file
from test_planted import PLANTED
from worlds import Rejected

SOME = [p for p in PLANTED if p.stem.split("_")[0] in ("04", "06", "10", "16")]
COUNTER = itertools.count()
SCHEDULES = ({}, {"schedule": "explore", "seed": 11}, {"schedule": "timed"})


def run(compiled, arrays, folder, **sim):
    """Everything that a run leaves behind, as bytes and text."""
    copies = [a.copy() for a in arrays]
    trace = folder / f"{next(COUNTER)}.json"  # the calls that name one file follow each other in it
    options = SimOptions(collect=True, trace=trace, device_time=True, **sim)
    compiled(*copies, config=RunConfig(platform="a2a3sim", sim=options))
    report = last_report()
    left = trace.read_bytes()
    trace.unlink()
    return (
        [a.tobytes() for a in copies],
        [(d.render(), d.replay) for d in report.diagnostics],
        [repr(r) for r in report.ranks],
        report.device_time_us,
        left,
    )


def check(path, folder, repeats):
    module = load_file(path, f"same_{path.stem}")
    if any(isinstance(e, Rejected) for e in module.EXPECT):
        return  # the compiler rejects it: nothing is left
    nranks = module.P[-1]
    program, arrays, _ = module.build(nranks)
    compiled, _ = compile_for(program, arrays, nranks)
    for schedule in SCHEDULES:
        first = run(compiled, arrays, folder, threads=1, **schedule)
        for _, threads in itertools.product(range(repeats), (1, 2, 4)):
            again = run(compiled, arrays, folder, threads=threads, **schedule)
            for what, a, b in zip(
                ("results", "reports", "counters", "device time", "trace"), first, again, strict=True
            ):
                assert a == b, (what, schedule, threads)


@pytest.mark.parametrize("path", SOME, ids=lambda p: p.stem)
def test_some(path, tmp_path):
    check(path, tmp_path, 2)


@pytest.mark.nightly
@pytest.mark.parametrize("path", PLANTED, ids=lambda p: p.stem)
def test_all(path, tmp_path):
    check(path, tmp_path, 50)
