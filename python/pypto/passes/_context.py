# SPDX-License-Identifier: Apache-2.0
"""`PassContext` and the settings it holds."""

from __future__ import annotations

from _thread import _local
from collections.abc import Iterable, Iterator
from enum import Enum, IntEnum
from typing import Any

from pypto import _env
from pypto._checks import check_member, listed


class MemoryPlanner(Enum):
    """Who places tiles in on-chip memory. All accept the same programs and give the same numbers."""

    PYPTO = 0
    DSA_RP = 1
    PTOAS = 2


class RuntimeKind(Enum):
    """Device runtimes."""

    TENSORMAP_AND_RINGBUFFER = 0
    HOST_BUILD_GRAPH = 1


def runtime_kind_to_name(kind: RuntimeKind) -> str:
    """Return the lower-case name of a runtime."""
    check_member("runtime", kind, RuntimeKind, "passes.")
    return kind.name.lower()


def runtime_kind_from_name(name: str) -> RuntimeKind:
    """Return the runtime called `name`; `ValueError` if there is none."""
    for kind in RuntimeKind:
        if kind.name.lower() == name:
            return kind
    raise ValueError(f"unknown runtime {name!r}; expected one of {', '.join(k.name.lower() for k in RuntimeKind)}")


class VerificationLevel(IntEnum):
    """How much is checked between stages."""

    NONE = 0
    BASIC = 1
    ROUNDTRIP = 2


class VerificationMode(IntEnum):
    """When a `VerificationInstrument` checks."""

    NONE = 0
    BEFORE = 1
    AFTER = 2
    BEFORE_AND_AFTER = 3


class DiagnosticPhase(IntEnum):
    """When diagnostics are collected."""

    NONE = 0
    PRE_PIPELINE = 1
    POST_PASS = 2
    POST_PIPELINE = 3


class DiagnosticCheck(Enum):
    """The checks that give warnings."""

    UnusedVariable = 0
    UnusedControlFlowResult = 1
    TileInnermostDimGranularity = 2
    OutParamWriteDropped = 3


class DiagnosticCheckSet:
    """A set of `DiagnosticCheck`."""

    def __init__(self, checks: Iterable[DiagnosticCheck] = ()) -> None:
        self._checks = set(listed("DiagnosticCheckSet: checks", checks, "DiagnosticCheck members"))

    def insert(self, check: DiagnosticCheck) -> None:
        """Add `check`."""
        self._checks.add(check)

    def remove(self, check: DiagnosticCheck) -> None:
        """Take `check` out if it is there."""
        self._checks.discard(check)

    def contains(self, check: DiagnosticCheck) -> bool:
        """Return whether `check` is in the set."""
        return check in self._checks

    __contains__ = contains

    def empty(self) -> bool:
        """Return whether the set is empty."""
        return not self._checks

    def difference(self, other: DiagnosticCheckSet) -> DiagnosticCheckSet:
        """Return the checks that are not in `other`."""
        return DiagnosticCheckSet(self._checks - other._checks)

    def union_with(self, other: DiagnosticCheckSet) -> DiagnosticCheckSet:
        """Return the checks of both."""
        return DiagnosticCheckSet(self._checks | other._checks)

    def to_list(self) -> list[DiagnosticCheck]:
        """Return the checks in order of definition."""
        return [c for c in DiagnosticCheck if c in self._checks]

    def __iter__(self) -> Iterator[DiagnosticCheck]:
        return iter(self.to_list())

    def __len__(self) -> int:
        return len(self._checks)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DiagnosticCheckSet) and self._checks == other._checks

    def __hash__(self) -> int:
        return hash(frozenset(self._checks))

    def __repr__(self) -> str:
        return f"DiagnosticCheckSet({{{', '.join(c.name for c in self.to_list())}}})"


def _named(enum: Any, variable: str, default: Any) -> Any:
    text = _env.get(variable)
    if not text:
        return default
    try:
        return enum[text.upper()]
    except KeyError:
        names = ", ".join(m.name.lower() for m in enum)
        raise ValueError(f"{variable}={text!r}: expected one of {names}") from None


def default_verification_level() -> VerificationLevel:
    """Return the level in force when nobody chose one."""
    return _named(VerificationLevel, "PYPTO_VERIFY_LEVEL", VerificationLevel.BASIC)


def default_diagnostic_phase() -> DiagnosticPhase:
    """Return the phase in force when nobody chose one."""
    return _named(DiagnosticPhase, "PYPTO_WARNING_LEVEL", DiagnosticPhase.PRE_PIPELINE)


class _Stack(_local):
    def __init__(self) -> None:
        self.contexts: list[PassContext] = []


_stack = _Stack()


class PassContext:
    """Settings of the passes that run inside a `with` block, for this thread. Nestable.

    Parameters
    ----------
    instruments
        Objects whose `before_pass(pass, program)` and `after_pass(pass, program)` are called around each pass.
    verification_level, diagnostic_phase, disabled_diagnostics
        What is checked and reported.
    memory_planner, enable_pypto_l0c_double_buffer, runtime
        Choices of code generation.
    """

    def __init__(
        self,
        instruments: Iterable[Any] = (),
        verification_level: VerificationLevel | None = None,
        diagnostic_phase: DiagnosticPhase | None = None,
        disabled_diagnostics: DiagnosticCheckSet | None = None,
        memory_planner: MemoryPlanner = MemoryPlanner.PYPTO,
        enable_pypto_l0c_double_buffer: bool = False,
        runtime: RuntimeKind = RuntimeKind.TENSORMAP_AND_RINGBUFFER,
    ) -> None:
        for name, value, enum in (
            ("verification_level", verification_level, VerificationLevel),
            ("diagnostic_phase", diagnostic_phase, DiagnosticPhase),
        ):
            if value is not None:
                check_member(f"PassContext: {name}", value, enum, "passes.")
        self._instruments = listed("PassContext: instruments", instruments or (), "instruments")
        self._verification_level = default_verification_level() if verification_level is None else verification_level
        self._diagnostic_phase = default_diagnostic_phase() if diagnostic_phase is None else diagnostic_phase
        self._disabled = default_disabled() if disabled_diagnostics is None else disabled_diagnostics
        if not isinstance(memory_planner, MemoryPlanner):
            raise TypeError(f"memory_planner must be a MemoryPlanner, got {type(memory_planner).__name__}")
        self._memory_planner = memory_planner
        self._double_buffer = bool(enable_pypto_l0c_double_buffer)
        self._runtime = runtime

    def __enter__(self) -> PassContext:
        _stack.contexts.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _stack.contexts.remove(self)

    @staticmethod
    def current() -> PassContext | None:
        """Return the innermost active context of this thread."""
        return _stack.contexts[-1] if _stack.contexts else None

    def get_instruments(self) -> list[Any]:
        """Return the instruments."""
        return list(self._instruments)

    def get_verification_level(self) -> VerificationLevel:
        """Return how much is checked."""
        return self._verification_level

    def get_diagnostic_phase(self) -> DiagnosticPhase:
        """Return when diagnostics are collected."""
        return self._diagnostic_phase

    def get_disabled_diagnostics(self) -> DiagnosticCheckSet:
        """Return the checks that are off."""
        return self._disabled

    def get_memory_planner(self) -> MemoryPlanner:
        """Return the memory planner."""
        return self._memory_planner

    def get_enable_pypto_l0c_double_buffer(self) -> bool:
        """Return whether the planner `PYPTO` may double-buffer accumulators."""
        return self._double_buffer

    def get_runtime(self) -> RuntimeKind:
        """Return the device runtime."""
        return self._runtime


def default_disabled() -> DiagnosticCheckSet:
    """Return the checks that are off when nobody chose."""
    return DiagnosticCheckSet([DiagnosticCheck.UnusedControlFlowResult])
