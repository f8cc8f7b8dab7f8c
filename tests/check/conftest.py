# SPDX-License-Identifier: Apache-2.0
"""What the tests of the checker share."""

import pathlib
import sys

import pytest
from rows import load_file

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE / "planted"))


def pytest_configure(config):
    config.addinivalue_line("markers", "nightly: too long for every run")


@pytest.fixture
def load_source(tmp_path):
    """Writes a module and imports it: kernels are parsed from their file."""
    made = []

    def load(text: str, name: str = "made"):
        path = tmp_path / f"{name}_{len(made)}.py"
        path.write_text(text)
        return load_file(path, f"{tmp_path.name}_{path.stem}", made)

    yield load
    for name in made:
        sys.modules.pop(name, None)
