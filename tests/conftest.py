"""Shared by all Python tests."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def repo() -> Path:
    """Return the root of the repository."""
    return Path(__file__).resolve().parent.parent
