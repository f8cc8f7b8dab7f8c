# SPDX-License-Identifier: Apache-2.0
"""Helpers for tests of programs."""

from __future__ import annotations

from pypto.ir._files import assert_structural_equal, structural_equal
from pypto.runtime.device_runner import validate_golden

__all__ = ["assert_structural_equal", "structural_equal", "validate_golden"]
