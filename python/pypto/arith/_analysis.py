# SPDX-License-Identifier: Apache-2.0
"""Facts about integer expressions: intervals, residues, linear normal forms."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Any

from pypto.arith._integers import gcd, tree

INFINITY = float("inf")


class CompareResult(Enum):
    """What is known about two expressions."""

    UNKNOWN = 0
    EQ = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5
    NE = 6


@dataclass(frozen=True)
class ConstIntBound:
    """All values lie in `[min_value, max_value]`; infinities mean unbounded."""

    min_value: float
    max_value: float


@dataclass(frozen=True)
class ModularSet:
    """All values are `coeff * k + base`; `coeff` 0 means the constant `base`."""

    coeff: int
    base: int


@dataclass(frozen=True)
class IntSet:
    """An interval of integers."""

    min_value: float
    max_value: float

    def contains(self, value: int) -> bool:
        """Return whether `value` lies in the interval."""
        return self.min_value <= value <= self.max_value

    def union(self, other: IntSet) -> IntSet:
        """Return the smallest interval that holds both."""
        return IntSet(min(self.min_value, other.min_value), max(self.max_value, other.max_value))

    def intersect(self, other: IntSet) -> IntSet:
        """Return what lies in both; empty if the minimum exceeds the maximum."""
        return IntSet(max(self.min_value, other.min_value), min(self.max_value, other.max_value))

    @property
    def is_empty(self) -> bool:
        """Whether no integer lies in the interval."""
        return self.min_value > self.max_value


def _times(a: float, b: float) -> float:
    return 0 if a == 0 or b == 0 else a * b


class ConstIntBoundAnalyzer:
    """Intervals of expressions, from intervals of names."""

    def __init__(self) -> None:
        self._bounds: dict[str, ConstIntBound] = {}

    def bind(self, name: Any, low: float, high: float) -> None:
        """Say that `name` lies in `[low, high]`."""
        self._bounds[ast.unparse(tree(name))] = ConstIntBound(low, high)

    update = bind

    def __call__(self, expression: Any) -> ConstIntBound:
        return self._of(tree(expression))

    def _of(self, e: ast.expr) -> ConstIntBound:
        everything = ConstIntBound(-INFINITY, INFINITY)
        if isinstance(e, ast.Constant) and isinstance(e.value, int):
            return ConstIntBound(e.value, e.value)
        if isinstance(e, ast.Name):
            return self._bounds.get(e.id, everything)
        if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
            a = self._of(e.operand)
            return ConstIntBound(-a.max_value, -a.min_value)
        if isinstance(e, ast.Call) and isinstance(e.func, ast.Name) and e.func.id in ("min", "max") and e.args:
            parts = [self._of(a) for a in e.args]
            pick = min if e.func.id == "min" else max
            return ConstIntBound(pick(p.min_value for p in parts), pick(p.max_value for p in parts))
        if not isinstance(e, ast.BinOp):
            return everything
        a, b = self._of(e.left), self._of(e.right)
        if isinstance(e.op, ast.Add):
            return ConstIntBound(a.min_value + b.min_value, a.max_value + b.max_value)
        if isinstance(e.op, ast.Sub):
            return ConstIntBound(a.min_value - b.max_value, a.max_value - b.min_value)
        if isinstance(e.op, ast.Mult):
            products = [_times(x, y) for x in (a.min_value, a.max_value) for y in (b.min_value, b.max_value)]
            return ConstIntBound(min(products), max(products))
        if isinstance(e.op, ast.FloorDiv) and b.min_value == b.max_value and b.min_value > 0:
            d = b.min_value
            low = a.min_value if a.min_value == -INFINITY else a.min_value // d
            high = a.max_value if a.max_value == INFINITY else a.max_value // d
            return ConstIntBound(low, high)
        if isinstance(e.op, ast.Mod) and b.min_value == b.max_value and b.min_value > 0:
            if 0 <= a.min_value and a.max_value < b.min_value:
                return a
            return ConstIntBound(0, b.min_value - 1)
        return everything


class IntSetAnalyzer(ConstIntBoundAnalyzer):
    """Intervals as sets."""

    def __call__(self, expression: Any) -> IntSet:  # type: ignore[override]
        bound = super().__call__(expression)
        return IntSet(bound.min_value, bound.max_value)


class ModularSetAnalyzer:
    """Residues of expressions, from residues of names."""

    def __init__(self) -> None:
        self._known: dict[str, ModularSet] = {}

    def bind(self, name: Any, coeff: int, base: int) -> None:
        """Say that `name` is `coeff * k + base`."""
        self._known[ast.unparse(tree(name))] = ModularSet(coeff, base)

    update = bind

    def __call__(self, expression: Any) -> ModularSet:
        return self._of(tree(expression))

    @staticmethod
    def _make(coeff: int, base: int) -> ModularSet:
        return ModularSet(0, base) if coeff == 0 else ModularSet(abs(coeff), base % abs(coeff))

    def _of(self, e: ast.expr) -> ModularSet:
        if isinstance(e, ast.Constant) and isinstance(e.value, int):
            return ModularSet(0, e.value)
        if isinstance(e, ast.Name):
            return self._known.get(e.id, ModularSet(1, 0))
        if isinstance(e, ast.BinOp):
            a, b = self._of(e.left), self._of(e.right)
            if isinstance(e.op, ast.Add):
                return self._make(gcd(a.coeff, b.coeff), a.base + b.base)
            if isinstance(e.op, ast.Sub):
                return self._make(gcd(a.coeff, b.coeff), a.base - b.base)
            if isinstance(e.op, ast.Mult):
                coeff = gcd(gcd(a.coeff * b.coeff, a.coeff * b.base), a.base * b.coeff)
                return self._make(coeff, a.base * b.base)
            if isinstance(e.op, ast.Mod) and b.coeff == 0 and b.base > 0:
                if a.coeff % b.base == 0:
                    return ModularSet(0, a.base % b.base)
                return self._make(gcd(a.coeff, b.base), a.base)
        return ModularSet(1, 0)


class CanonicalSimplifier:
    """Brings sums and products by constants into one order, like terms joined."""

    def __call__(self, expression: Any) -> str:
        """Return the normal form as text."""
        return _text(linear(tree(expression)))


class RewriteSimplifier(CanonicalSimplifier):
    """The same normal form."""


def linear(e: ast.expr) -> dict[str, int]:
    """Return an expression as term -> factor; the constant's term is the empty text."""
    if isinstance(e, ast.Constant) and isinstance(e.value, int):
        return {"": e.value} if e.value else {}
    if isinstance(e, ast.UnaryOp) and isinstance(e.op, ast.USub):
        return {k: -v for k, v in linear(e.operand).items()}
    if isinstance(e, ast.BinOp):
        a, b = linear(e.left), linear(e.right)
        if isinstance(e.op, (ast.Add, ast.Sub)):
            sign = 1 if isinstance(e.op, ast.Add) else -1
            merged = dict(a)
            for k, v in b.items():
                merged[k] = merged.get(k, 0) + sign * v
            return {k: v for k, v in merged.items() if v}
        constant = lambda d: d.get("", 0) if set(d) <= {""} else None  # noqa: E731
        ca, cb = constant(a), constant(b)
        if isinstance(e.op, ast.Mult):
            if ca is not None:
                return {k: v * ca for k, v in b.items() if v * ca}
            if cb is not None:
                return {k: v * cb for k, v in a.items() if v * cb}
            left, right = sorted((_text(a), _text(b)))
            return {f"({left}) * ({right})": 1}
        if cb and isinstance(e.op, ast.FloorDiv):
            if all(v % cb == 0 for v in a.values()):
                return {k: v // cb for k, v in a.items()}
            if ca is not None:
                return {"": ca // cb} if ca // cb else {}
            return {f"({_text(a)}) // {cb}": 1}
        if cb and isinstance(e.op, ast.Mod):
            rest = {k: v for k, v in a.items() if v % cb}
            if set(rest) <= {""}:
                value = rest.get("", 0) % cb
                return {"": value} if value else {}
            return {f"({_text(rest)}) % {cb}": 1}
    return {ast.unparse(e): 1}


def _text(terms: dict[str, int]) -> str:
    parts = [(f"{k} * {v}" if v != 1 else k) for k, v in sorted(terms.items()) if k]
    if terms.get("") or not parts:
        parts.append(str(terms.get("", 0)))
    return " + ".join(parts)


class TransitiveComparisonAnalyzer:
    """Comparisons that follow from known ones."""

    def __init__(self) -> None:
        self._less: set[tuple[str, str, bool]] = set()  # (a, b, strict)

    def bind(self, a: Any, relation: CompareResult, b: Any) -> None:
        """Say how `a` and `b` compare."""
        x, y = _text(linear(tree(a))), _text(linear(tree(b)))
        if relation in (CompareResult.LT, CompareResult.LE):
            self._less.add((x, y, relation is CompareResult.LT))
        elif relation in (CompareResult.GT, CompareResult.GE):
            self._less.add((y, x, relation is CompareResult.GT))
        elif relation is CompareResult.EQ:
            self._less |= {(x, y, False), (y, x, False)}

    def _reaches(self, start: str, goal: str) -> bool | None:
        """Return whether `start < goal` (True), `start <= goal` (False), or nothing is known (None)."""
        best: dict[str, bool] = {start: False}
        todo = [start]
        while todo:
            here = todo.pop()
            for a, b, strict in self._less:
                if a == here and (b not in best or (strict or best[here]) > best[b]):
                    best[b] = strict or best[here]
                    todo.append(b)
        return best.get(goal)

    def try_compare(self, a: Any, b: Any) -> CompareResult:
        """Return what is known about `a` and `b`."""
        x, y = _text(linear(tree(a))), _text(linear(tree(b)))
        if x == y:
            return CompareResult.EQ
        forth, back = self._reaches(x, y), self._reaches(y, x)
        if forth is not None and back is not None:
            return CompareResult.EQ
        if forth is not None:
            return CompareResult.LT if forth else CompareResult.LE
        if back is not None:
            return CompareResult.GT if back else CompareResult.GE
        return CompareResult.UNKNOWN


class ConstraintContext:
    """Facts that hold inside a `with` block."""

    def __init__(self, analyzer: Analyzer, name: Any, low: float = -INFINITY, high: float = INFINITY) -> None:
        self._analyzer, self._name, self._low, self._high = analyzer, name, low, high

    def __enter__(self) -> ConstraintContext:
        self._saved = dict(self._analyzer.const_int_bound._bounds)
        self._analyzer.bind(self._name, self._low, self._high)
        return self

    def __exit__(self, *_: object) -> None:
        self._analyzer.const_int_bound._bounds = self._saved


class Analyzer:
    """All analyses over one set of facts."""

    def __init__(self) -> None:
        self.const_int_bound = ConstIntBoundAnalyzer()
        self.modular_set = ModularSetAnalyzer()
        self.canonical_simplify = CanonicalSimplifier()
        self.rewrite_simplify = RewriteSimplifier()
        self.transitive_comparisons = TransitiveComparisonAnalyzer()

    def bind(self, name: Any, low: float, high: float) -> None:
        """Say that `name` lies in `[low, high]`."""
        self.const_int_bound.bind(name, low, high)

    def simplify(self, expression: Any) -> str:
        """Return the normal form as text."""
        return self.canonical_simplify(expression)

    def _difference(self, a: Any, b: Any) -> ConstIntBound:
        text = f"({ast.unparse(tree(a))}) - ({ast.unparse(tree(b))})"
        return self.const_int_bound(_text(linear(tree(text))))

    def can_prove_equal(self, a: Any, b: Any) -> bool:
        """Return whether the two are equal for all values."""
        d = self._difference(a, b)
        return d.min_value == d.max_value == 0

    def can_prove_greater_equal(self, a: Any, b: Any) -> bool:
        """Return whether `a >= b` for all values."""
        return self._difference(a, b).min_value >= 0

    def can_prove_less(self, a: Any, b: Any) -> bool:
        """Return whether `a < b` for all values."""
        return self._difference(a, b).max_value < 0

    @contextmanager
    def constraint(self, name: Any, low: float = -INFINITY, high: float = INFINITY) -> Iterator[None]:
        """Hold a fact inside a `with` block."""
        with ConstraintContext(self, name, low, high):
            yield
