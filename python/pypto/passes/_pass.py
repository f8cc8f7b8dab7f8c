# SPDX-License-Identifier: Apache-2.0
"""Passes as callable objects, pipelines of them, and the instruments that watch them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from typing import Any

from pypto._checks import check_member, listed
from pypto.passes._context import MemoryPlanner, PassContext, VerificationLevel, VerificationMode


def verify(program: Any, when: str) -> None:
    """Raise the first violated invariant of `program`, saying `when` it was found."""
    from pypto import InternalError, _core

    found = _core.verify(program)
    if found:
        raise InternalError(f"the program is not valid {when}:\n" + "\n".join(d.render() for d in found))


def check_round_trip(program: Any, when: str) -> None:
    """Raise `InternalError` unless printing and parsing `program` gives an equal one."""
    from pypto import InternalError, _core
    from pypto.ir.printer import python_print
    from pypto.language import parse

    text = python_print(program)
    difference = _core.structural_difference(program, parse(text))
    if difference:
        raise InternalError(f"printing and reading back {when} changed the program:\n{difference}")


class Pass:
    """One rewriting step: calling it with a `Program` returns the rewritten `Program`; the input is not changed."""

    def __init__(self, name: str, run: Callable[[Any], Any] | None = None) -> None:
        self._name = name
        self._run = run

    def get_name(self) -> str:
        """Return the name of the pass."""
        return self._name

    def _apply(self, program: Any) -> Any:
        if self._run is not None:
            return self._run(program)
        from pypto import _core
        from pypto.backend import BackendType, default_backend_type

        context = PassContext.current()
        planner = context.get_memory_planner() if context else MemoryPlanner.PYPTO
        arch = "a5" if default_backend_type() is BackendType.Ascend950 else "a2a3"
        if program.arch != arch and not program.lowered:
            program = program.clone(arch)
        return _core.apply_pass(
            self._name,
            program,
            planner=planner.name,
            double_buffer_c=bool(context and context.get_enable_pypto_l0c_double_buffer()),
        )

    def __call__(self, program: Any) -> Any:
        from pypto import ir

        if not isinstance(program, ir.Program):
            raise TypeError(f"pass {self._name} takes an ir.Program, got {type(program).__name__}")
        context = PassContext.current()
        instruments = context.get_instruments() if context else []
        for instrument in instruments:
            instrument.before_pass(self, program)
        result = self._apply(program)
        if context and context.get_verification_level() >= VerificationLevel.ROUNDTRIP:
            check_round_trip(result, f"after {self._name}")
        for instrument in instruments:
            instrument.after_pass(self, result)
        return result

    def __repr__(self) -> str:
        return f"Pass({self._name!r})"


class PassPipeline:
    """Passes applied one after the other."""

    def __init__(self, passes: Iterable[Pass] = ()) -> None:
        self._passes = listed("PassPipeline: passes", passes, "passes")

    def add_pass(self, pass_: Pass) -> None:
        """Append `pass_`."""
        self._passes.append(pass_)

    def run(self, program: Any) -> Any:
        """Return `program` after all passes."""
        for pass_ in self._passes:
            program = pass_(program)
        return program

    __call__ = run

    def get_pass_names(self) -> list[str]:
        """Return the names in order."""
        return [p.get_name() for p in self._passes]

    def get_passes(self) -> list[Pass]:
        """Return the passes in order."""
        return list(self._passes)


class CallbackInstrument:
    """Calls Python functions `(pass, program)` before and after each pass."""

    def __init__(
        self,
        before_pass: Callable[[Pass, Any], None] | None = None,
        after_pass: Callable[[Pass, Any], None] | None = None,
        name: str = "CallbackInstrument",
    ) -> None:
        self._before, self._after, self.name = before_pass, after_pass, name

    def before_pass(self, pass_: Pass, program: Any) -> None:
        """Tell the first function."""
        if self._before is not None:
            self._before(pass_, program)

    def after_pass(self, pass_: Pass, program: Any) -> None:
        """Tell the second function."""
        if self._after is not None:
            self._after(pass_, program)


class VerificationInstrument(CallbackInstrument):
    """Checks the invariants of the program before or after each pass."""

    def __init__(self, mode: VerificationMode = VerificationMode.AFTER) -> None:
        check_member("VerificationInstrument: mode", mode, VerificationMode, "passes.")
        self.mode = mode
        super().__init__(
            (lambda p, prog: verify(prog, f"before {p.get_name()}")) if mode & VerificationMode.BEFORE else None,
            (lambda p, prog: verify(prog, f"after {p.get_name()}")) if mode & VerificationMode.AFTER else None,
            "VerificationInstrument",
        )


class ReportInstrument(CallbackInstrument):
    """Writes the time of each pass to `<output_dir>/pass_report.txt`."""

    def __init__(self, output_dir: str | os.PathLike[str]) -> None:
        self.output_dir = Path(output_dir)
        self._started: list[float] = []
        super().__init__(self._begin, self._end, "ReportInstrument")

    def _begin(self, pass_: Pass, program: Any) -> None:
        self._started.append(time.perf_counter())

    def _end(self, pass_: Pass, program: Any) -> None:
        seconds = time.perf_counter() - self._started.pop()
        self.output_dir.mkdir(parents=True, exist_ok=True)
        with open(self.output_dir / "pass_report.txt", "a", encoding="utf-8") as file:
            file.write(f"{pass_.get_name()} {seconds:.6f} s, {len(program.functions)} functions\n")


class DiagnosticInstrument(CallbackInstrument):
    """Keeps the warnings that the program carries after each pass in `.diagnostics`."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.diagnostics: list[Any] = []
        super().__init__(None, lambda p, prog: self.diagnostics.extend(prog.warnings), "DiagnosticInstrument")


class IRProperty(Enum):
    """Facts that hold for a program after some stage."""

    SSAForm = 0
    TypeChecked = 1
    NoNestedCalls = 2
    NormalizedStmtStructure = 3
    SplitIncoreOrch = 4
    IncoreTileOps = 5
    TileOps2D = 6
    HasMemRefs = 7


class IRPropertySet:
    """A set of `IRProperty`."""

    def __init__(self, properties: Iterable[IRProperty] = ()) -> None:
        self._items = set(listed("IRPropertySet: properties", properties, "IRProperty members"))

    def insert(self, item: IRProperty) -> None:
        """Add `item`."""
        self._items.add(item)

    def remove(self, item: IRProperty) -> None:
        """Take `item` out if it is there."""
        self._items.discard(item)

    def contains(self, item: IRProperty) -> bool:
        """Return whether `item` is in the set."""
        return item in self._items

    __contains__ = contains

    def empty(self) -> bool:
        """Return whether the set is empty."""
        return not self._items

    def to_list(self) -> list[IRProperty]:
        """Return the properties in order of definition."""
        return [p for p in IRProperty if p in self._items]

    def __repr__(self) -> str:
        return f"IRPropertySet({[p.name for p in self.to_list()]})"


def factory(name: str) -> Callable[[], Pass]:
    """Return the public function that makes pass `name`."""

    def make() -> Pass:
        return Pass(name)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"Return the pass `{name}`."
    return make
