# SPDX-License-Identifier: Apache-2.0
"""pytest plugin: every test runs under a `Shadow`, and fails if one of its programs is not the same in every way.

pytest -p shadow_plugin --shadow-counts FILE ...   with this folder on PYTHONPATH
"""

from __future__ import annotations

import json

import pytest
from shadow import Shadow

totals = {"programs": 0, "texts": 0, "runs": 0, "repeats": 0}
skipped: set[str] = set()


def pytest_addoption(parser):
    parser.addoption("--shadow-counts", help="file for the number of programs, texts, runs and repeats")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    with Shadow() as shadow:
        outcome = yield
    for name in totals:
        totals[name] += getattr(shadow.counts, name)
    skipped.update(shadow.counts.skipped)
    if outcome.excinfo is None and shadow.failures:
        outcome.force_exception(AssertionError("\n\n".join(shadow.failures[:10])))


def pytest_sessionfinish(session):
    path = session.config.getoption("--shadow-counts")
    if path:
        with open(path, "w", encoding="utf-8") as file:
            json.dump({**totals, "skipped": sorted(skipped)}, file)
