# SPDX-License-Identifier: Apache-2.0
"""Hands the errors that the tests of operations measured to the summary (`tests/conftest.py`), from workers too."""

import opkit


def pytest_sessionfinish(session):
    rows = [[*key, *value[:2]] for key, value in opkit.WORST.items()]
    output = getattr(session.config, "workeroutput", None)
    if output is None:
        session.config.operation_errors = getattr(session.config, "operation_errors", []) + rows
    else:
        output["operation_errors"] = rows
