# SPDX-License-Identifier: Apache-2.0
"""Directories and platforms for the tests of the runtime."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def build_dir(tmp_path, monkeypatch):
    """Send artifact directories to a place of their own."""
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / "build"))
    return tmp_path / "build"


@pytest.fixture
def rng():
    return np.random.default_rng(7)
