# SPDX-License-Identifier: Apache-2.0
"""Names of the operations behind Python's operators on tensors and tiles."""

from __future__ import annotations

OPERATORS = {"+": "add", "-": "sub", "*": "mul", "/": "div"}
COMPARISONS = {"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"}

__all__ = ["COMPARISONS", "OPERATORS"]
