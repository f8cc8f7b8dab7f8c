# SPDX-License-Identifier: Apache-2.0
"""Damaged programs: each is refused with a place and a documented class, or runs; nothing crashes, hangs or is our fault.

One mutant by hand:  python tests/acceptance/test_mutants.py SEED
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from mutate import mutate
from trial import attempt

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SOURCES = sorted(p for d in ("beginner", "intermediate", "distributed") for p in (EXAMPLES / d).glob("*.py"))
GROUP = 10


def mutant(seed: int):
    """The mutant of a seed and the example it was made from."""
    path = SOURCES[seed % len(SOURCES)]
    return path, mutate(path.read_text(encoding="utf-8"), seed)


def judge(seeds: range, folder: Path) -> list[str]:
    """What was wrong, one text per mutant."""
    wrong = []
    for seed in seeds:
        path, m = mutant(seed)
        outcome = attempt(m.source, folder, [])
        if not outcome.good:
            wrong.append(f"seed {seed}, {path.name}, {m.what}: {outcome.kind}\n{outcome.text}")
    return wrong


@pytest.mark.parametrize("first", range(0, 200, GROUP))
def test_mutants(first, tmp_path):  # 04 ERR-4, ERR-7, ERR-8
    wrong = judge(range(first, first + GROUP), tmp_path)
    assert not wrong, "\n\n".join(wrong)


# Mutants that failed once, each of a kind of its own.
FOUND = (2220,)


def test_mutants_found_bad(tmp_path):  # 04 ERR-1, ERR-4
    wrong = [text for seed in FOUND for text in judge(range(seed, seed + 1), tmp_path)]
    assert not wrong, "\n\n".join(wrong)


@pytest.mark.nightly
@pytest.mark.parametrize("first", range(200, 4000, 200))
def test_many_mutants(first, tmp_path):
    wrong = judge(range(first, first + 200), tmp_path)
    assert not wrong, "\n\n".join(wrong)


def test_undamaged_sources_run(tmp_path):
    """The judge itself: every source is good before it is damaged, and a broken one is not taken for good."""
    for path in SOURCES:
        outcome = attempt(path.read_text(encoding="utf-8"), tmp_path, [])
        assert outcome.kind == "ran" and not outcome.text, (path.name, outcome)
    assert attempt("import pypto\nraise pypto.InternalError('x')\n", tmp_path, []).kind == "internal error"
    assert attempt("import os\nos.kill(os.getpid(), 11)\n", tmp_path, []).kind == "crash"
    assert attempt("import time\ntime.sleep(60)\n", tmp_path, [], seconds=1).kind == "hang"
    assert attempt("from pypto import _core\n_core.load('x')\n", tmp_path, []).kind in ("no place", "refused")


if __name__ == "__main__":
    import tempfile

    number = int(sys.argv[1])
    source, made = mutant(number)
    print(f"# {source.name}: {made.what}\n{made.source}")
    print(attempt(made.source, Path(tempfile.mkdtemp()), []))
