# SPDX-License-Identifier: Apache-2.0
"""`benchmark`: device and host times of a program, per round, rank and dispatch."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import IO, Any

_STRACE_LOG_LEVEL = "timing"
_RECORD = "PYPTO_STRACE "
_METRICS = ("device", "host", "effective", "union")


@dataclass
class TraceSpan:
    """One named interval of a dispatch; `ts` and `dur` are nanoseconds of the clock that `is_device` tells."""

    pid: int
    tid: int
    inv: int
    hid: int
    depth: int
    name: str
    ts: float
    dur: float
    attrs: dict[str, Any] = field(default_factory=dict)

    @property
    def is_device(self) -> bool:
        """Whether the times are of the device clock."""
        return bool(self.attrs.get("device"))

    @property
    def dur_us(self) -> float:
        """Length in microseconds."""
        return self.dur / 1e3


@dataclass
class TraceInvocation:
    """One dispatch on one rank: number `inv` of rank `pid`."""

    pid: int
    inv: int
    hid: int
    spans: list[TraceSpan] = field(default_factory=list)

    def root(self) -> TraceSpan | None:
        """Return the span that holds the others."""
        return min(self.spans, key=lambda s: s.depth, default=None)

    def by_name(self) -> dict[str, TraceSpan]:
        """Return the spans by name; of several with one name the first."""
        found: dict[str, TraceSpan] = {}
        for span in self.spans:
            found.setdefault(span.name, span)
        return found

    @property
    def task(self) -> int:
        """Number of the dispatched program on its rank."""
        return self.hid

    @property
    def task_name(self) -> str:
        """Name of the dispatched program."""
        root = self.root()
        return str(root.attrs.get("program", "")) if root is not None else ""

    def _length(self, name: str) -> float:
        span = self.by_name().get(name)
        return span.dur_us if span is not None else 0.0

    @property
    def device_wall_us(self) -> float:
        """Device time of the dispatch."""
        return self._length("device")

    @property
    def host_wall_us(self) -> float:
        """Host time of the dispatch."""
        return self._length("host")

    @property
    def effective_us(self) -> float:
        """Device time from the start of the first to the end of the last task."""
        return self._length("effective")

    def format_tree(self, *, us: bool = True) -> str:
        """Return the spans as an indented text."""
        unit, scale = ("us", 1e3) if us else ("ns", 1.0)
        return "\n".join(f"{'  ' * s.depth}{s.name:<24} {s.dur / scale:12.3f} {unit}" for s in self.spans)


@dataclass
class BenchmarkStats:
    """Times of the measured rounds, in microseconds."""

    device_wall_us: list[float] = field(default_factory=list)
    host_wall_us: list[float] = field(default_factory=list)
    rounds: int = 0
    warmup: int = 0
    invocations: list[TraceInvocation] = field(default_factory=list)
    rounds_dispatches: list[dict[int, list[TraceInvocation]]] = field(default_factory=list)
    fallback_flattened: bool = False
    unstable_dispatch_slots: bool = False
    parameters: str = ""  # of the timing model: "default", or the file that replaced some

    @property
    def samples(self) -> list[float]:
        """The device time of each round."""
        return self.device_wall_us

    @property
    def all_zero_device(self) -> bool:
        """Whether no device time was measured."""
        return not any(self.device_wall_us)

    def _values(self, metric: str, inv: TraceInvocation) -> float:
        if metric == "device":
            return inv.device_wall_us
        return inv.host_wall_us if metric == "host" else inv.effective_us

    @staticmethod
    def _check_metric(metric: str) -> None:
        if metric not in _METRICS:
            raise ValueError(f"unknown metric {metric!r}; known: {', '.join(_METRICS)}")

    def per_round(self, metric: str = "device") -> list[float]:
        """Return one value per round."""
        self._check_metric(metric)
        if metric == "device":
            return list(self.device_wall_us)
        if metric == "host":
            return list(self.host_wall_us)
        result = []
        for number, dispatches in enumerate(self.rounds_dispatches):
            every = [inv for group in dispatches.values() for inv in group]
            if metric == "effective":
                per_rank = [sum(i.effective_us for i in group) for group in dispatches.values()]
                result.append(max(per_rank, default=0.0))
                continue
            spans = [s for inv in every for s in inv.spans if s.name == "host"]
            if spans:
                begin, end = min(s.ts for s in spans), max(s.ts + s.dur for s in spans)
                result.append(max((end - begin) / 1e3, *(s.dur_us for s in spans)))
            else:
                result.append(self.host_wall_us[number])
        return result

    def per_rank(self, metric: str = "device") -> dict[int, list[float]]:
        """Return for each rank one value per round; empty when the dispatches were flattened."""
        self._check_metric(metric)
        if self.fallback_flattened:
            return {}
        ranks = sorted({pid for dispatches in self.rounds_dispatches for pid in dispatches})
        if metric == "union":
            result: dict[int, list[float]] = {}
            for pid in ranks:
                values = []
                for d in self.rounds_dispatches:
                    spans = [s for inv in d.get(pid, []) for s in inv.spans if s.name == "host"]
                    values.append((max(s.ts + s.dur for s in spans) - min(s.ts for s in spans)) / 1e3 if spans else 0.0)
                result[pid] = values
            return result
        return {
            pid: [sum(self._values(metric, inv) for inv in d.get(pid, [])) for d in self.rounds_dispatches]
            for pid in ranks
        }

    def per_dispatch(self, metric: str = "device") -> dict[tuple[int, int], list[float]]:
        """Return for each `(rank, slot)` one value per round; slot = index of the dispatch in its rank's round."""
        self._check_metric(metric)
        metric = "host" if metric == "union" else metric
        return {key: [self._values(metric, inv) for inv in group] for key, group in self.dispatch_groups().items()}

    def dispatch_groups(self) -> dict[tuple[int, int], list[TraceInvocation]]:
        """Return the dispatches of each `(rank, slot)` over all rounds."""
        groups: dict[tuple[int, int], list[TraceInvocation]] = {}
        for dispatches in self.rounds_dispatches:
            for pid, group in sorted(dispatches.items()):
                for slot, inv in enumerate(group):
                    groups.setdefault((pid, slot), []).append(inv)
        return groups

    def dispatch_tasks(self) -> dict[tuple[int, int], str]:
        """Return the name of the program of each `(rank, slot)`."""
        return {key: group[0].task_name for key, group in self.dispatch_groups().items()}

    # ------------------------------------------------------------------------------------------------- text

    def format_tree(self, launch: int | None = None, *, us: bool = True) -> str:
        """Return the spans of one dispatch, or of all."""
        chosen = self.invocations if launch is None else [self.invocations[launch]]
        return "\n".join(f"pid={i.pid} inv={i.inv} {i.task_name}\n{i.format_tree(us=us)}" for i in chosen)

    def print_tree(self, launch: int | None = None, *, us: bool = True, file: IO[str] | None = None) -> None:
        """Print `format_tree`."""
        print(self.format_tree(launch, us=us), file=file)

    def _chosen(self, pid: int | None, slot: int | None) -> dict[tuple[int, int], list[TraceInvocation]]:
        return {k: g for k, g in self.dispatch_groups().items() if pid in (None, k[0]) and slot in (None, k[1])}

    def mean_invocation(self, *, pid: int | None = None, slot: int | None = None) -> TraceInvocation | None:
        """Return a dispatch whose spans have the mean times of the chosen ones."""
        group = [inv for g in self._chosen(pid, slot).values() for inv in g]
        if not group:
            return None
        spans = []
        for span in group[0].spans:
            same = [s for inv in group for s in inv.spans if s.name == span.name]
            spans.append(
                TraceSpan(
                    span.pid,
                    span.tid,
                    0,
                    span.hid,
                    span.depth,
                    span.name,
                    statistics.fmean(s.ts for s in same),
                    statistics.fmean(s.dur for s in same),
                    span.attrs,
                )
            )
        return TraceInvocation(group[0].pid, 0, group[0].hid, spans)

    def format_mean_tree(
        self, *, us: bool = True, spread: str = "stdev", pid: int | None = None, slot: int | None = None
    ) -> str:
        """Return mean times of each `(rank, slot)`, with their spread (`stdev` or `minmax`)."""
        unit, scale = ("us", 1e3) if us else ("ns", 1.0)
        lines = []
        for (p, s), group in self._chosen(pid, slot).items():
            lines.append(f"pid={p} slot={s} {group[0].task_name} ({len(group)} rounds)")
            for span in group[0].spans:
                values = [x.dur / scale for inv in group for x in inv.spans if x.name == span.name]
                if spread == "minmax":
                    around = f"[{min(values):.3f}, {max(values):.3f}]"
                else:
                    around = f"± {statistics.stdev(values) if len(values) > 1 else 0.0:.3f}"
                lines.append(
                    f"{'  ' * (span.depth + 1)}{span.name:<24} {statistics.fmean(values):12.3f} {unit} {around}"
                )
        return "\n".join(lines)

    def print_mean_tree(self, *, file: IO[str] | None = None, **kwargs: Any) -> None:
        """Print `format_mean_tree`."""
        print(self.format_mean_tree(**kwargs), file=file)

    def __str__(self) -> str:
        def line(name: str, values: list[float]) -> str:
            if not values:
                return f"  {name}: no samples"
            return (
                f"  {name}: min {min(values):.2f}  median {statistics.median(values):.2f}  "
                f"mean {statistics.fmean(values):.2f}  max {max(values):.2f} us"
            )

        return "\n".join(
            [
                f"BenchmarkStats: {self.rounds} rounds after {self.warmup} warm-up",
                line("device", self.device_wall_us),
                line("host  ", self.host_wall_us),
                *([f"  device: simulated time; parameters: {self.parameters}"] if self.parameters else []),
            ]
        )


def _summary(name: str, source: str) -> property:
    def get(self: BenchmarkStats) -> float:
        values = getattr(self, source)
        if not values:
            return 0.0
        if name == "stdev":
            return statistics.stdev(values) if len(values) > 1 else 0.0
        made = {"min": min, "max": max, "mean": statistics.fmean, "median": statistics.median}[name]
        return float(made(values))

    return property(get, doc=f"{name} of the device time of the rounds.")


for _name in ("min", "median", "mean", "max", "stdev"):
    setattr(BenchmarkStats, f"device_us_{_name}", _summary(_name, "device_wall_us"))
    setattr(BenchmarkStats, f"device_wall_us_{_name}", _summary(_name, "device_wall_us"))
    setattr(BenchmarkStats, f"host_wall_us_{_name}", _summary(_name, "host_wall_us"))


# ----------------------------------------------------------------------------------------------------- records

_sinks: list[IO[str]] = []


@contextlib.contextmanager
def _capture_fd_stderr(path: str | os.PathLike[str]) -> Iterator[None]:
    """Collect a timing record of every dispatch inside the block into the file `path`."""
    with open(path, "a", encoding="utf-8") as file:
        _sinks.append(file)
        try:
            yield
        finally:
            _sinks.remove(file)


def _emit(records: list[dict[str, Any]]) -> None:
    for sink in _sinks:
        for record in records:
            sink.write(_RECORD + json.dumps(record) + "\n")
        sink.flush()


def _parse_stats_from_strace(text: str, *, rounds: int, warmup: int, distributed: bool = False) -> BenchmarkStats:
    """Make a `BenchmarkStats` of the records in `text`: one group of records per dispatch of the program."""
    groups: dict[int, list[dict[str, Any]]] = {}
    for line in text.splitlines():
        if line.startswith(_RECORD):
            record = json.loads(line[len(_RECORD) :])
            groups.setdefault(record["call"], []).append(record)
    ordered = [groups[k] for k in sorted(groups)]
    return _stats(ordered[warmup : warmup + rounds], rounds, warmup)


def _stats(calls: list[list[dict[str, Any]]], rounds: int, warmup: int) -> BenchmarkStats:
    stats = BenchmarkStats(rounds=rounds, warmup=warmup)
    number = 0
    for records in calls:
        stats.parameters = next((r["parameters"] for r in records if r.get("parameters")), stats.parameters)
        dispatches: dict[int, list[TraceInvocation]] = {}
        for r in records:
            pid = r["rank"]
            spans = [
                TraceSpan(pid, 0, number, r["index"], 0, "host", r["host_ts"], r["host_ns"], {"program": r["program"]})
            ]
            for depth, name in ((1, "device"), (2, "effective")):
                spans.append(
                    TraceSpan(
                        pid,
                        0,
                        number,
                        r["index"],
                        depth,
                        name,
                        r["device_ts"],
                        r[f"{name}_ns"],
                        {"device": True, "program": r["program"]},
                    )
                )
            inv = TraceInvocation(pid, number, r["index"], spans)
            number += 1
            dispatches.setdefault(pid, []).append(inv)
            stats.invocations.append(inv)
        stats.rounds_dispatches.append(dispatches)
        stats.device_wall_us.append(max((sum(i.device_wall_us for i in g) for g in dispatches.values()), default=0.0))
        stats.host_wall_us.append(max((r["host_ns"] for r in records), default=0.0) / 1e3)
    shapes = {tuple(sorted((pid, len(g)) for pid, g in d.items())) for d in stats.rounds_dispatches}
    if len(shapes) > 1:
        stats.fallback_flattened = stats.unstable_dispatch_slots = True
    return stats


def _records(report: Any, call: int, title: str, begin_ns: int, end_ns: int) -> list[dict[str, Any]]:
    """Return one record per dispatch of a run, from its report."""
    rows = []
    dispatches = report.dispatches or [{"rank": 0, "index": 0, "program": title}]
    tasks: dict[tuple[int, int], list[Any]] = {}
    for t in report.tasks:
        tasks.setdefault((t["rank"], t["dispatch"]), []).append(t)
    for d in dispatches:
        mine = tasks.get((d["rank"], d["index"]), [])
        begin = min((t["start_us"] for t in mine), default=0.0)
        end = max((t["end_us"] for t in mine), default=0.0)
        wall = max(d.get("end_us", 0.0) - d.get("begin_us", 0.0), 1e-3)  # a program without tasks
        effective = end - begin if end > begin else wall
        rows.append(
            {
                "call": call,
                "rank": d["rank"],
                "index": d["index"],
                "program": d["program"],
                "host_ts": begin_ns,
                "host_ns": end_ns - begin_ns,
                "device_ts": d.get("begin_us", begin) * 1e3,
                "device_ns": wall * 1e3,
                "effective_ns": effective * 1e3,
                "parameters": report.parameter_source,
            }
        )
    return rows


class _Counter:
    calls = 0


def _check_counts(rounds: Any, warmup: Any) -> None:
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
        raise ValueError(f"benchmark: rounds must be a positive int, got {rounds!r}")
    if isinstance(warmup, bool) or not isinstance(warmup, int) or warmup < 0:
        raise ValueError(f"benchmark: warmup must be an int >= 0, got {warmup!r}")


def benchmark(
    compiled: Any,
    args: Sequence[Any],
    *,
    rounds: int = 100,
    warmup: int = 3,
    platform: str | None = None,
    device_id: int | None = None,
    config: Any = None,
    persistent: bool = False,
    reset_persistent_windows: bool | None = None,
) -> BenchmarkStats:
    """Run a program many times on one worker, in place, and return its times.

    On the simulator device times come from the cost model on the virtual clock: deterministic, equal for equal work.

    Parameters
    ----------
    compiled, args
        The program and one argument per parameter; after it, outputs hold the last run's results.
    rounds, warmup
        Measured runs, and runs before them.
    platform, device_id, config
        Where (single-device programs), or a whole `RunConfig`.
    persistent, reset_persistent_windows
        Windows of a distributed program, as in `prepare`.
    """
    from pypto._checks import check_compiled, check_run_config
    from pypto.runtime._config import RunConfig

    _check_counts(rounds, warmup)
    check_compiled("benchmark", compiled)
    if config is not None:
        check_run_config("benchmark", config)
    distributed = bool(compiled._native.distributed)
    if config is not None and (platform is not None or device_id is not None):
        raise ValueError("benchmark: give config, or platform and device_id, not both")
    if distributed and (platform is not None or device_id is not None):
        raise ValueError(
            "benchmark: platform and device_id are for single-device programs; a distributed program runs "
            "where it was compiled for"
        )
    if not distributed and (persistent or reset_persistent_windows is not None):
        raise ValueError("benchmark: persistent and reset_persistent_windows are for distributed programs")
    calls: list[list[dict[str, Any]]] = []
    with contextlib.ExitStack() as stack:
        run = (
            _distributed_runner(stack, compiled, args, config, persistent, reset_persistent_windows)
            if distributed
            else _single_runner(
                stack,
                compiled,
                args,
                config or RunConfig(platform=platform or compiled.platform, device_id=device_id or 0),
            )
        )
        for number in range(warmup + rounds):
            _Counter.calls += 1
            begin = time.perf_counter_ns()
            report = run()
            end = time.perf_counter_ns()
            if number >= warmup or _sinks:
                records = _records(report, _Counter.calls, compiled._title, begin, end)
                _emit(records)
                if number >= warmup:
                    calls.append(records)
    return _stats(calls, rounds, warmup)


def _single_runner(stack: contextlib.ExitStack, compiled: Any, args: Sequence[Any], config: Any) -> Any:
    from pypto.runtime import _run
    from pypto.runtime.worker import ChipWorker

    worker = stack.enter_context(
        contextlib.closing(
            ChipWorker(config, runtime=compiled.runtime_name, enable_sdma=bool(compiled._native.uses_sdma()))
        )
    )
    worker.register(_on_platform(compiled, config.platform))
    owner = getattr(compiled, "_owner", compiled)
    native = owner._native_for(config.platform)
    options = _run.run_options(config, (config.device_id,), _GRAPH, device_time=True)
    values, _ = compiled._bind(tuple(args), {})
    values = _run.native_arguments(values, compiled, worker, _run.refuse_outside_worker)
    return lambda: _run.dispatch(
        native, values, platform=config.platform, options=options, entry=compiled._entry_name, title=compiled._title
    )


class _OnPlatform:
    """A program as if it had been compiled for another simulator (an artifact is not tied to one)."""

    def __init__(self, compiled: Any, platform: str) -> None:
        self._compiled, self.platform = compiled, platform

    def __getattr__(self, name: str) -> Any:
        return getattr(self._compiled, name)


def _on_platform(compiled: Any, platform: str) -> Any:
    return compiled if compiled.platform == platform else _OnPlatform(compiled, platform)


def _distributed_runner(
    stack: contextlib.ExitStack, compiled: Any, args: Sequence[Any], config: Any, persistent: bool, reset: bool | None
) -> Any:
    from pypto.runtime import _run

    worker = stack.enter_context(compiled.prepare(config, persistent=persistent, reset_persistent_windows=reset))
    options = _run.run_options(config, worker.device_ids, _GRAPH, device_time=True)

    def run() -> Any:
        handle = worker._submit(compiled, tuple(args), config, "run", options=options, wait=True)
        handle.result()
        return handle._native

    return run


class _Graph:
    """Stands for a run that keeps its task graph and writes nothing."""

    enable_chip_swimlane = 0

    @staticmethod
    def any() -> bool:
        return True


_GRAPH = _Graph()
