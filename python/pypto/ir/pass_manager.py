# SPDX-License-Identifier: Apache-2.0
"""`PassManager`: the whole lowering as an object, with dumps of every stage."""

from __future__ import annotations

import os
from collections.abc import Callable
from enum import Enum, IntEnum
from typing import Any


class OptimizationStrategy(Enum):
    """How programs are lowered."""

    Default = 0


class PassDumpLevel(IntEnum):
    """How much a dump of a stage says."""

    NONE = 0
    CONCISE = 1
    EXPLICIT = 2


def dump_level(value: Any) -> PassDumpLevel:
    """Return a dump level given as level, bool or number."""
    if isinstance(value, bool):
        return PassDumpLevel.CONCISE if value else PassDumpLevel.NONE
    try:
        return PassDumpLevel(value)
    except ValueError:
        raise ValueError(f"dump level must be a bool or a PassDumpLevel (0, 1, 2), got {value!r}") from None


def check_strategy(strategy: Any) -> OptimizationStrategy:
    """Return `strategy` if it is one."""
    if not isinstance(strategy, OptimizationStrategy):
        raise ValueError(f"strategy must be OptimizationStrategy.Default, got {strategy!r}")
    return strategy


class Dumper:
    """Writes one file per stage into a directory: `00_frontend.py`, then `NN_after_<Stage>.py`."""

    def __init__(self, directory: str | os.PathLike[str], level: PassDumpLevel, prefix: str = "pl") -> None:
        from pathlib import Path

        self.directory = Path(directory)
        self.level = level
        self.prefix = prefix
        self._next = 0
        self.directory.mkdir(parents=True, exist_ok=True)
        for old in self.directory.glob("[0-9][0-9]_*"):
            old.unlink()

    def write(self, label: str, program: Any) -> None:
        """Write the next stage."""
        from pypto.ir.printer import python_print

        text = python_print(program, prefix=self.prefix, explicit_layout=self.level is PassDumpLevel.EXPLICIT)
        path = self.directory / f"{self._next:02d}_{label}.py"
        path.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
        self._next += 1

    def frontend(self, program: Any) -> None:
        """Write the program as it was read."""
        self.write("frontend", program)

    def after(self, stage: str, program: Any) -> None:
        """Write the program after `stage`."""
        self.write(f"after_{stage}", program)


class PassManager:
    """The lowering pipeline of a strategy.

    Attributes
    ----------
    passes
        The passes in order.
    pass_names
        Their names.
    """

    def __init__(self, strategy: OptimizationStrategy, *, analyze_auto_scopes_for_deps: bool = False) -> None:
        from pypto import _core
        from pypto.passes import MemoryPlanner, Pass, PassContext

        self.strategy = check_strategy(strategy)
        self._analyze = bool(analyze_auto_scopes_for_deps)
        context = PassContext.current()
        self._planner = context.get_memory_planner() if context else MemoryPlanner.PYPTO
        self.pass_names: list[str] = list(_core.pass_names())
        self.passes: tuple[Any, ...] = tuple(Pass(name) for name in self.pass_names)

    @classmethod
    def get_strategy(
        cls,
        strategy: OptimizationStrategy = OptimizationStrategy.Default,
        *,
        analyze_auto_scopes_for_deps: bool = False,
    ) -> PassManager:
        """Return the pipeline of `strategy`."""
        return cls(strategy, analyze_auto_scopes_for_deps=analyze_auto_scopes_for_deps)

    def get_pass_names(self) -> list[str]:
        """Return the names of the passes in order."""
        return list(self.pass_names)

    def run_passes(
        self,
        program: Any,
        dump_ir: bool | PassDumpLevel = False,
        output_dir: str | os.PathLike[str] | None = None,
        prefix: str = "pl",
    ) -> Any:
        """Return `program` after all passes; the input is not changed.

        Raises
        ------
        ValueError
            If a dump is asked for without a directory.
        RuntimeError
            If another memory planner is in force than when the manager was made.
        """
        from pypto import _core, ir
        from pypto.backend import BackendType, default_backend_type
        from pypto.passes import MemoryPlanner, PassContext
        from pypto.passes._context import VerificationLevel, default_verification_level
        from pypto.passes._pass import check_round_trip

        if not isinstance(program, ir.Program):
            raise TypeError(f"run_passes takes an ir.Program, got {type(program).__name__}")
        level = dump_level(dump_ir)
        if level and output_dir is None:
            raise ValueError("run_passes: dump_ir=True needs output_dir=, the directory for the dump files")
        context = PassContext.current()
        planner = context.get_memory_planner() if context else MemoryPlanner.PYPTO
        if planner is not self._planner:
            raise RuntimeError(
                f"run_passes: this PassManager was made for memory planner {self._planner.name}, but "
                f"{planner.name} is in force now; make the manager inside the same PassContext"
            )
        verification = context.get_verification_level() if context else default_verification_level()
        instruments = context.get_instruments() if context else []
        dumper = Dumper(output_dir, level, prefix) if level and output_dir is not None else None
        if dumper:
            dumper.frontend(program)
        after: Callable[[str, Any], None] | None = None
        by_name = {p.get_name(): p for p in self.passes}

        def stage(name: str, result: Any) -> None:
            if dumper:
                dumper.after(name, result)
            if verification >= VerificationLevel.ROUNDTRIP:
                check_round_trip(result, f"after {name}")
            for instrument in instruments:
                instrument.after_pass(by_name[name], result)

        if dumper or instruments or verification >= VerificationLevel.ROUNDTRIP:
            after = stage
        arch = "a5" if default_backend_type() is BackendType.Ascend950 else "a2a3"
        compiled = _core.compile(
            program,
            arch=arch,
            planner=planner.name,
            analyze_auto_scopes_for_deps=self._analyze,
            double_buffer_c=bool(context and context.get_enable_pypto_l0c_double_buffer()),
            after=after,
        )
        return _core.device_form(compiled.program)  # what the last stage shows (04 JIT-27)

    def __repr__(self) -> str:
        return f"PassManager({self.strategy.name}: {', '.join(self.pass_names)})"
