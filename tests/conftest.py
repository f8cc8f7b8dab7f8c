# SPDX-License-Identifier: Apache-2.0
"""Shared by all Python tests."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

# A shell that starts the tests in the background has SIGINT ignored, by their child processes too: those that interrupt
# themselves would run on.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def repo() -> Path:
    """Return the root of the repository."""
    return Path(__file__).resolve().parent.parent


# ---------------------------------------------------------------- errors that the tests of operations measured


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    """Collect the rows of a worker."""
    rows = getattr(node, "workeroutput", {}).get("operation_errors", [])
    node.config.operation_errors = getattr(node.config, "operation_errors", []) + rows


def pytest_terminal_summary(terminalreporter, config):
    """Print the worst error of each operation and element type."""
    table: dict[str, dict[str, tuple[float, int]]] = {}
    for name, dtype, worst, cells in getattr(config, "operation_errors", []):
        old = table.setdefault(name, {}).get(dtype, (0.0, 0))
        table[name][dtype] = (max(old[0], worst), old[1] + cells)
    if table:
        terminalreporter.write_sep("-", "errors of operations in ULP (cells compared)")
    for name, row in sorted(table.items()):
        text = "  ".join(f"{dtype} {worst:g} ({cells})" for dtype, (worst, cells) in sorted(row.items()))
        terminalreporter.write_line(f"{name:22} {text}")
