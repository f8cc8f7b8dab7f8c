# SPDX-License-Identifier: Apache-2.0
"""Every row of the ladder's edge tables (03 section 12): the planted mistake gives the listed outcome (X-72, G-9, G-10).

The outcome is the set of reports, each with its id, severity and the lines that it names. It must not depend on the
platform, the schedule or the number of host threads.
"""

import itertools
import pathlib
import re
import warnings

import numpy as np
import pytest
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions, last_report
from rows import load_file
from worlds import Accepted, Mismatch, Rejected, Report, Warns

PLANTED = sorted((pathlib.Path(__file__).parent / "planted").glob("[0-9]*.py"))
CACHE = {}


def load(path):
    if path not in CACHE:
        CACHE[path] = load_file(path, f"planted_{path.stem}")
    return CACHE[path]


def marks(path) -> dict[str, int]:
    """Line numbers by the text after `# <- `."""
    found = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        for mark in re.findall(r"# <- ([^#]+)", line):
            assert mark.strip() not in found, f"{path}: two lines are marked {mark!r}"
            found[mark.strip()] = number
    return found


def lines_of(diagnostic, path) -> frozenset[int]:
    """The lines of this file that a report names: its two accesses, its waits, or its place and those it met."""
    places = list(diagnostic.accesses) or list(diagnostic.waits) or [diagnostic]
    found = {p.line for p in places if p.file and pathlib.Path(p.file).name == path.name}
    if diagnostic.id == "X-51":  # the two calls stand in the text; what follows in brackets is the dispatch
        what = diagnostic.message.partition(" [rank ")[0]
        found |= {int(n) for n in re.findall(rf"{path.name}:(\d+)", what)}
    return frozenset(found)


def compiled_with_warnings(program, arrays, nranks, platform):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        config = RunConfig(platform=platform, distributed_config=DistributedConfig(device_ids=list(range(nranks))))
        compiled = program.compile(*arrays, config=config)
    return compiled, caught


def outcome(compiled, arrays, golden, path, **sim):
    """The set of reports and, where the row speaks of values, whether they are the golden ones."""
    copies = [a.copy() for a in arrays]
    config = RunConfig(platform=compiled.platform, sim=SimOptions(collect=True, **sim))
    compiled(*copies, config=config)
    report = last_report()
    found = {(d.id, d.severity, lines_of(d, path)) for d in report.diagnostics}
    same = None
    if golden is not None:
        same = all(np.allclose(copies[i], g, rtol=1e-5, atol=1e-4) for i, g in golden.items())
    return found, same, report


def expected_reports(items, at):
    return {(e.id, e.severity, frozenset(at[m] for m in e.marks)) for e in items if isinstance(e, Report)}


def check_values(items, same):
    for item in items:
        if isinstance(item, (Accepted, Mismatch)):
            assert same == isinstance(item, Accepted)


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize("path", PLANTED, ids=lambda p: p.stem)
def test_row(path, platform):  # 03 X-72, G-10, M-33, M-35, M-37
    module = load(path)
    at = marks(path)
    for nranks in module.P:
        program, arrays, golden = module.build(nranks)
        rejected = [e for e in module.EXPECT if isinstance(e, Rejected)]
        if rejected:
            check_rejected(rejected[0], at, path, program, arrays, nranks, platform)
            continue
        compiled, caught = compiled_with_warnings(program, arrays, nranks, platform)
        check_warnings([e for e in module.EXPECT if isinstance(e, Warns)], caught, at, path)
        strict = getattr(module, "STRICT", None) or [
            Report(e.id, e.marks) if isinstance(e, Report) else e for e in module.EXPECT
        ]
        for items, checks in ((module.EXPECT, "default"), (strict, "strict")):
            want = expected_reports(items, at)
            found, same, report = outcome(compiled, arrays, golden, path, checks=checks)
            assert found == want, (nranks, checks)
            check_values(items, same)
            if hasattr(module, "check"):
                module.check(report)
        want = expected_reports(module.EXPECT, at)
        for threads in (1, 2, 4):
            found, same, _ = outcome(compiled, arrays, golden, path, threads=threads)
            assert found == want, (nranks, f"threads={threads}")
            check_values(module.EXPECT, same)
        for seed in range(3):
            found, same, _ = outcome(compiled, arrays, golden, path, schedule="explore", seed=seed)
            assert found == want, (nranks, f"seed={seed}")
            check_values(module.EXPECT, same)


def check_rejected(want, at, path, program, arrays, nranks, platform):
    with pytest.raises(want.error) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        compiled, _ = compiled_with_warnings(program, arrays, nranks, platform)
        compiled(*arrays, config=RunConfig(platform=platform))
    text = str(caught.value)
    assert want.fragment in text
    if want.id:
        diagnostic = getattr(caught.value, "diagnostic", None)
        assert want.id in text or (diagnostic is not None and diagnostic.id == want.id)
    if want.mark:
        assert f"{path.name}:{at[want.mark]}" in text


def check_warnings(want, caught, at, path):
    texts = [str(w.message) for w in caught]
    for item in want:
        place = f"{path.name}:{at[item.mark]}"
        assert any(item.text in t and place in t for t in texts), (item, texts)
    assert len(texts) == len(want), texts


@pytest.mark.nightly
@pytest.mark.parametrize("path", PLANTED, ids=lambda p: p.stem)
def test_row_under_200_schedules(path):  # 03 G-10, M-35
    module = load(path)
    if any(isinstance(e, Rejected) for e in module.EXPECT):
        return
    at = marks(path)
    want = expected_reports(module.EXPECT, at)
    for nranks in module.P:
        program, arrays, golden = module.build(nranks)
        compiled, _ = compiled_with_warnings(program, arrays, nranks, "a2a3sim")
        for seed, threads in itertools.product(range(200), (1, 2, 4)):
            found, same, _ = outcome(compiled, arrays, golden, path, schedule="explore", seed=seed, threads=threads)
            assert found == want, (nranks, seed, threads)
            check_values(module.EXPECT, same)
