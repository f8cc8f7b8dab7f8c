# SPDX-License-Identifier: Apache-2.0
"""What the tests of the checker share."""

import importlib.util
import pathlib
import sys

import pytest

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


def load_file(path, name, made=None):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    if made is not None:
        made.append(name)
    spec.loader.exec_module(module)
    return module
