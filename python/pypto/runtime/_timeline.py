# SPDX-License-Identifier: Apache-2.0
"""Timelines for the Perfetto viewer: one process per rank, one thread per core and per pipe of a core."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

_lock = threading.Lock()
_offsets: dict[str, float] = {}

_HOST_PID = 1_000_000
_COMMUNICATION = 1_000_000  # thread of a rank
_PIPES = ("S", "V", "MTE1", "MTE2", "MTE3", "M", "FIX")


def _rank_name(report: Any, rank: int) -> str:
    ids = getattr(report._native, "device_ids", None) or range(report.world_size)
    return f"rank {rank} (device {ids[rank]})"


class _Names:
    """Processes and threads that events use, named on their first use."""

    def __init__(self, report: Any) -> None:
        self._report = report
        self._cubes = report.cube_cores
        self.events: list[dict[str, Any]] = []
        self._seen: set[tuple[int, int]] = set()
        for rank in range(report.world_size):
            self._add("process_name", rank, 0, _rank_name(report, rank))

    def _add(self, kind: str, pid: int, tid: int, name: str) -> None:
        self.events.append({"ph": "M", "name": kind, "pid": pid, "tid": tid, "ts": 0, "args": {"name": name}})

    def thread(self, pid: int, tid: int, name: str) -> tuple[int, int]:
        """Return the thread, named."""
        if (pid, tid) not in self._seen:
            self._seen.add((pid, tid))
            if pid == _HOST_PID and len(self._seen) and tid == 0:
                self._add("process_name", pid, 0, "host")
            self._add("thread_name", pid, tid, name)
        return pid, tid

    def core(self, rank: int, core: int, pipe: str | None = None) -> tuple[int, int]:
        """Return the thread of a core, or of a pipe of it."""
        name = f"AIC {core}" if core < self._cubes else f"AIV {core - self._cubes}"
        if pipe is None:
            return self.thread(rank, 16 * (core + 1), name)
        return self.thread(rank, 16 * (core + 1) + 1 + _PIPES.index(pipe), f"{name} {pipe}")


def trace_events(report: Any, offset_us: float = 0.0) -> list[dict[str, Any]]:
    """Return the events of a run, sorted by time."""
    names = _Names(report)
    events: list[dict[str, Any]] = []

    def add(where: tuple[int, int], ts: float, **fields: Any) -> dict[str, Any]:
        event = {"pid": where[0], "tid": where[1], "ts": ts + offset_us, **fields}
        events.append(event)
        return event

    ends: dict[Any, tuple[tuple[int, int], float]] = {}
    begins: dict[Any, tuple[tuple[int, int], float]] = {}
    busy: dict[int, list[tuple[float, int]]] = {}
    flying: dict[int, list[tuple[float, int]]] = {}
    for t in report.tasks:
        args = {"task": t["id"], "kernel": t["kernel"], "file": t.get("file"), "line": t.get("line")}
        for core, block, dispatch_us, start_us, end_us in t.get("runs") or []:
            where = names.core(t["rank"], core)
            add(
                where,
                start_us,
                ph="X",
                name=t["kernel"],
                cat="task",
                dur=end_us - start_us,
                args={**args, "block": block, "dispatched_us": dispatch_us},
            )
            busy.setdefault(t["rank"], []).extend([(start_us, 1), (end_us, -1)])
            if t["id"] not in ends or end_us > ends[t["id"]][1]:
                ends[t["id"]] = where, end_us
            if t["id"] not in begins or start_us < begins[t["id"]][1]:
                begins[t["id"]] = where, start_us
    for number, e in enumerate(report.edges):
        first, second = ends.get(e["pred"]), begins.get(e["succ"])
        if first is None or second is None:
            continue
        flow = {"cat": "dependency", "name": e.get("reason") or "edge", "id": number}
        add(first[0], first[1], ph="s", **flow)
        add(second[0], second[1], ph="f", bp="e", **flow)
    raised: dict[int, dict[str, Any]] = {}
    for kind, rank, core, pipe, begin, end, name, kernel, file, line, size, peer, number in report.events:
        if kind == "host":
            where = names.thread(_HOST_PID, 0, "host")
        else:
            where = names.core(rank, core, pipe)
        if kind == "flow":
            # A notify comes before the waits that see it; each flow has two ends.
            earlier = raised.setdefault(number, {"where": where, "ts": begin, "open": True})
            if earlier["where"] == where and earlier["ts"] == begin and earlier["open"]:
                earlier["open"] = False
                continue
            flow = {"cat": "signal", "name": name, "id": f"signal-{number}-{len(events)}"}
            add(earlier["where"], earlier["ts"], ph="s", **flow)
            add(where, begin, ph="f", bp="e", **flow)
            continue
        args = {"kernel": kernel, "file": file, "line": line}
        if size:
            args["bytes"] = size
        if peer >= 0:
            args["rank" if kind == "host" else "peer"] = peer
        if kind == "remote":
            flying.setdefault(rank, []).extend([(begin, size), (end, -size)])
        add(where, begin, ph="X", name=name, cat=kind, dur=end - begin, args=args)
    for label, changes in (("busy cores", busy), ("bytes in flight", flying)):
        for rank, steps in changes.items():
            value = 0
            steps.sort()
            for at, (time, delta) in enumerate(steps):
                value += delta
                if at + 1 == len(steps) or steps[at + 1][0] != time:
                    add((rank, 0), time, ph="C", name=label, args={label: value})
    events.sort(key=lambda e: (e["ts"], -e.get("dur", 0.0)))
    return names.events + events


def document(report: Any, events: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    """Return the whole trace file of a run: events, and the parameters that its times come from."""
    return {
        "traceEvents": trace_events(report) if events is None else events,
        "displayTimeUnit": "ns",
        "otherData": {"note": report.time_note, "parameters": report.parameters},
    }


def write(path: str | os.PathLike[str], report: Any) -> None:
    """Write the timeline of one run."""
    Path(path).write_text(json.dumps(document(report)), encoding="utf-8")


def append(path: str | os.PathLike[str], report: Any) -> None:
    """Add the timeline of a run to a file that earlier runs of this process wrote; it starts after them."""
    key = os.path.abspath(os.fspath(path))
    with _lock:
        offset = _offsets.get(key, 0.0)
        events = trace_events(report, offset)
        earlier: list[dict[str, Any]] = []
        if key in _offsets:
            try:
                earlier = json.loads(Path(key).read_text(encoding="utf-8"))["traceEvents"]
            except (OSError, ValueError, KeyError):
                earlier = []
        end = max((e["ts"] + e.get("dur", 0) for e in events), default=offset)
        _offsets[key] = max(end, offset + 1.0)
        # Names first, once; then everything by time.
        named = [e for e in earlier if e["ph"] == "M"]
        named += [e for e in events if e["ph"] == "M" and e not in named]
        rest = [e for e in earlier + events if e["ph"] != "M"]
        Path(key).write_text(json.dumps(document(report, named + rest)), encoding="utf-8")
