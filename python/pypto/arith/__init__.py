# SPDX-License-Identifier: Apache-2.0
"""Integer reasoning: bounds, modular facts, sets, and simplification of expressions over named integers.

Expressions are ints, `pl.dynamic` symbols and what `+ - * // %` make of them.
"""

from __future__ import annotations

from pypto.arith._analysis import (
    Analyzer,
    CanonicalSimplifier,
    CompareResult,
    ConstIntBound,
    ConstIntBoundAnalyzer,
    ConstraintContext,
    IntSet,
    IntSetAnalyzer,
    ModularSet,
    ModularSetAnalyzer,
    RewriteSimplifier,
    TransitiveComparisonAnalyzer,
)
from pypto.arith._integers import extended_euclidean, floordiv, floormod, fold_const, gcd, lcm

__all__ = [
    "Analyzer",
    "CanonicalSimplifier",
    "CompareResult",
    "ConstIntBound",
    "ConstIntBoundAnalyzer",
    "ConstraintContext",
    "IntSet",
    "IntSetAnalyzer",
    "ModularSet",
    "ModularSetAnalyzer",
    "RewriteSimplifier",
    "TransitiveComparisonAnalyzer",
    "extended_euclidean",
    "floordiv",
    "floormod",
    "fold_const",
    "gcd",
    "lcm",
]
