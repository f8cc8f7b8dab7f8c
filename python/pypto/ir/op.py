# SPDX-License-Identifier: Apache-2.0
"""The operations, by name."""

from __future__ import annotations

from pypto.ir._files import Op, get_op

__all__ = ["Op", "get_op"]
