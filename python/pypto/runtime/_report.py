# SPDX-License-Identifier: Apache-2.0
"""What a run leaves behind: `RunReport` with counters of each rank, and the last report of each thread."""

from __future__ import annotations

import os
from _thread import _local
from typing import TYPE_CHECKING, Any

from pypto._records import field_names

if TYPE_CHECKING:
    from dataclasses import dataclass, field
else:
    from pypto._records import dataclass, field


@dataclass(frozen=True)
class RankCounters:
    """Counters of one rank; exact and independent of scheduling."""

    rank: int
    tasks: int = 0
    kernels: dict[str, int] = field(default_factory=dict)
    comm: dict[str, Any] = field(default_factory=dict)
    by_peer: dict[int, Any] = field(default_factory=dict)
    wait_us: float = 0.0
    rounds: dict[str, int] = field(default_factory=dict)
    peak_memory: dict[str, int] = field(default_factory=dict)
    device_time_us: float = 0.0


class RunReport:
    """The report of one dispatch.

    Attributes
    ----------
    platform, world_size
        Where it ran.
    device_time_us
        Time on the virtual clock, 0 unless the cost model ran (`SimOptions(device_time=True)`).
    host_time_us
        Real time.
    ranks
        `RankCounters` of each rank.
    diagnostics
        Failures (with `collect`), warnings and notes.
    """

    def __init__(self, native: Any, platform: str) -> None:
        self._native = native
        self.platform = platform
        self._ranks: list[RankCounters] | None = None

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return self._native.world_size

    @property
    def device_time_us(self) -> float:
        """Time on the virtual clock."""
        return self._native.device_time_us

    @property
    def host_time_us(self) -> float:
        """Real time."""
        return self._native.host_time_us

    @property
    def time_note(self) -> str:
        """What absolute times are worth: `simulated time; parameters: default`, or the file they come from."""
        return f"simulated time; parameters: {self._native.parameter_source or 'default'}"

    @property
    def parameters(self) -> dict[str, dict[str, Any]]:
        """The timing model in effect: key -> `{"value", "tag"}`; empty unless the cost model ran."""
        return {key: {"value": value, "tag": tag} for key, value, tag in self._native.parameters}

    @property
    def cube_cores(self) -> int:
        """Cube cores of a device: the numbers of its vector cores follow theirs."""
        return 36 if self.platform.startswith("a5") else 24

    @property
    def ok(self) -> bool:
        """Whether the run had no failure."""
        return self._native.ok

    @property
    def ranks(self) -> list[RankCounters]:
        """Counters of each rank."""
        if self._ranks is None:
            names = field_names(RankCounters)
            self._ranks = [RankCounters(**{k: v for k, v in row.items() if k in names}) for row in self._native.ranks]
        return self._ranks

    @property
    def diagnostics(self) -> list[Any]:
        """Failures, warnings and notes."""
        return self._native.diagnostics

    @property
    def tasks(self) -> list[dict[str, Any]]:
        """Tasks of the run, if the task graph was asked for."""
        return self._native.tasks

    @property
    def edges(self) -> list[dict[str, Any]]:
        """Edges of the task graph, if it was asked for."""
        return self._native.edges

    @property
    def events(self) -> list[tuple[Any, ...]]:
        """Transfers, waits and instructions on the virtual clock, if a timeline was asked for."""
        return self._native.events

    @property
    def windows(self) -> list[dict[str, Any]]:
        """Windows of the run."""
        return self._native.windows

    @property
    def dispatches(self) -> list[dict[str, Any]]:
        """Dispatches of the run."""
        return self._native.dispatches

    def raise_if_failed(self) -> None:
        """Raise the first failure, if there is one."""
        if self.ok:
            return
        for diagnostic in self.diagnostics:
            if diagnostic.severity == "error":
                raise diagnostic.exception()

    def to_dict(self) -> dict[str, Any]:
        """Return the facts of the report, ready for `json.dumps`."""
        return {
            "platform": self.platform,
            "world_size": self.world_size,
            "device_time_us": self.device_time_us,
            "host_time_us": self.host_time_us,
            **({"time": self.time_note} if self._native.timed else {}),
            "ok": self.ok,
            "ranks": [_jsonable(vars(r)) for r in self.ranks],
            "diagnostics": [_jsonable(d.to_dict()) for d in self.diagnostics],
            "dispatches": [_jsonable(d) for d in self.dispatches],
            "windows": [_jsonable(w) for w in self.windows],
        }

    def save_timeline(self, path: str | os.PathLike[str]) -> None:
        """Write a Chrome/Perfetto trace of the run."""
        from pypto.runtime import _timeline

        _timeline.write(path, self)

    def save_task_graph(self, path: str | os.PathLike[str]) -> None:
        """Write the task graph: JSON, or `.dot` / `.svg` by the suffix of `path`."""
        from pypto.runtime._task_graph import save

        save(self, path)

    def __repr__(self) -> str:
        state = "ok" if self.ok else "failed"
        lines = [
            f"RunReport({self.platform}, {self.world_size} rank(s), {state}, host {self.host_time_us:.1f} us, "
            f"device {self.device_time_us:.1f} us)"
        ]
        for r in self.ranks:
            busy = ", ".join(f"{k} {v}" for k, v in r.comm.items() if isinstance(v, (int, float)) and v)
            lines.append(f"  rank {r.rank}: {r.tasks} task(s), {len(r.kernels)} kernel(s){'; ' + busy if busy else ''}")
        if self._native.timed:
            lines.append(f"  {self.time_note}")
        return "\n".join(lines)


def _jsonable(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _jsonable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_jsonable(v) for v in value]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if hasattr(value, "to_dict"):
        return _jsonable(value.to_dict())
    return str(value)


class _Last(_local):
    native: Any = None
    platform: str = ""
    report: RunReport | None = None


_last = _Last()


def remember(native: Any, platform: str) -> None:
    """Make `native` the last report of this thread; the object that shows it is made when somebody asks."""
    _last.native = native
    _last.platform = platform
    _last.report = None


def set_last(report: RunReport | None) -> None:
    """Make `report` the last report of this thread."""
    _last.report = report
    _last.native = report._native if report is not None else None
    _last.platform = report.platform if report is not None else ""


def last_report() -> RunReport | None:
    """Return the report of the last dispatch that this thread called or waited for; `None` if there was none."""
    if _last.report is None and _last.native is not None:
        _last.report = RunReport(_last.native, _last.platform)
    return _last.report
