# SPDX-License-Identifier: Apache-2.0
"""Prints the worst error of each operation and element type after the tests of operations."""

import opkit


def pytest_terminal_summary(terminalreporter):
    if not opkit.WORST:
        return
    terminalreporter.write_sep("-", "errors of operations in ULP (cells compared)")
    names = sorted({name for name, _ in opkit.WORST})
    for name in names:
        row = [
            f"{dtype} {worst:g} ({cells})" for (n, dtype), (worst, cells, _) in sorted(opkit.WORST.items()) if n == name
        ]
        terminalreporter.write_line(f"{name:22} " + "  ".join(row))
