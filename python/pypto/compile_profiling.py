# SPDX-License-Identifier: Apache-2.0
"""Times of the stages of a compile."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class StageRecord:
    """One stage: its name, its time, the stages inside it."""

    name: str
    seconds: float = 0.0
    children: list[StageRecord] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain data."""
        return {"name": self.name, "seconds": self.seconds, "children": [c.to_dict() for c in self.children]}


class _Active(threading.local):
    profiler: CompileProfiler | None = None


_active = _Active()


def get_active_profiler() -> CompileProfiler | None:
    """Return the profiler whose `with` block this thread is in, or `None`."""
    return _active.profiler


class CompileProfiler:
    """Collects the time of each stage of the compiles inside its `with` block."""

    def __init__(self) -> None:
        self.stages: list[StageRecord] = []
        self._open: list[StageRecord] = []
        self._mark = 0.0
        self._outer: CompileProfiler | None = None

    @staticmethod
    def current() -> CompileProfiler | None:
        """Return the active profiler of this thread."""
        return get_active_profiler()

    def __enter__(self) -> CompileProfiler:
        self._outer, _active.profiler = _active.profiler, self
        return self

    def __exit__(self, *_: object) -> None:
        _active.profiler, self._outer = self._outer, None

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[StageRecord]:
        """Time what happens inside a `with` block as stage `name`."""
        record = StageRecord(name)
        (self._open[-1].children if self._open else self.stages).append(record)
        self._open.append(record)
        started = time.perf_counter()
        try:
            yield record
        finally:
            record.seconds = time.perf_counter() - started
            self._open.pop()

    @contextlib.contextmanager
    def laps(self, name: str) -> Iterator[StageRecord]:
        """Time a stage whose parts announce themselves with `lap`."""
        with self.stage(name) as record:
            self._mark = time.perf_counter()
            yield record

    def lap(self, name: str) -> None:
        """End part `name` of the open stage: everything since the last part."""
        now = time.perf_counter()
        target = self._open[-1].children if self._open else self.stages
        target.append(StageRecord(name, now - self._mark))
        self._mark = now

    def skip(self) -> None:
        """Leave what happened since the last part out of the next one."""
        self._mark = time.perf_counter()

    @property
    def total_seconds(self) -> float:
        """Time of all top stages."""
        return sum(s.seconds for s in self.stages)

    def to_dict(self) -> dict[str, Any]:
        """Return the profile as plain data."""
        return {"total_seconds": self.total_seconds, "stages": [s.to_dict() for s in self.stages]}

    def to_json(self, path: str | os.PathLike[str] | None = None, indent: int = 2) -> str:
        """Return the profile as JSON; write it to `path` if one is given."""
        text = json.dumps(self.to_dict(), indent=indent)
        if path is not None:
            Path(path).write_text(text, encoding="utf-8")
        return text

    def summary(self) -> str:
        """Return the profile as an indented table."""
        lines = [f"compile {self.total_seconds * 1e3:10.3f} ms"]

        def add(record: StageRecord, depth: int) -> None:
            lines.append(f"{'  ' * depth}{record.name:<{40 - 2 * depth}} {record.seconds * 1e3:10.3f} ms")
            for child in record.children:
                add(child, depth + 1)

        for record in self.stages:
            add(record, 1)
        return "\n".join(lines)

    def write_report(self, directory: str | os.PathLike[str]) -> None:
        """Write `pipeline_profile.txt` and `pipeline_profile.json` into `directory`."""
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "pipeline_profile.txt").write_text(self.summary() + "\n", encoding="utf-8")
        self.to_json(folder / "pipeline_profile.json")
