# SPDX-License-Identifier: Apache-2.0
"""Timelines for the Perfetto viewer: one process per rank, one thread per core."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

_lock = threading.Lock()
_offsets: dict[str, float] = {}


def trace_events(report: Any, offset_us: float = 0.0) -> list[dict[str, Any]]:
    """Return the events of a run, sorted by time."""
    native = getattr(report._native, "timeline", None)
    if native:
        return sorted(({**e, "ts": e.get("ts", 0) + offset_us} for e in native), key=lambda e: e["ts"])
    events: list[dict[str, Any]] = []
    lanes: dict[tuple[int, str], int] = {}
    names: list[dict[str, Any]] = []
    by_id: dict[Any, dict[str, Any]] = {}
    for rank in range(report.world_size):
        names.append(
            {"ph": "M", "name": "process_name", "pid": rank, "tid": 0, "ts": 0, "args": {"name": f"rank {rank}"}}
        )
    for t in report.tasks:
        kind = "AIC" if str(t.get("core_type", "")).lower().startswith(("aic", "cube", "mix")) else "AIV"
        for core in t["cores"] or [0]:
            lane = (t["rank"], f"{kind} {core}")
            if lane not in lanes:
                lanes[lane] = len(lanes) + 1
                names.append(
                    {
                        "ph": "M",
                        "name": "thread_name",
                        "pid": t["rank"],
                        "tid": lanes[lane],
                        "ts": 0,
                        "args": {"name": lane[1]},
                    }
                )
            event = {
                "ph": "X",
                "name": t["kernel"],
                "cat": "task",
                "pid": t["rank"],
                "tid": lanes[lane],
                "ts": float(t["start_us"]) + offset_us,
                "dur": max(0.0, float(t["end_us"]) - float(t["start_us"])),
                "args": {"task": t["id"], "kernel": t["kernel"], "file": t.get("file"), "line": t.get("line")},
            }
            events.append(event)
            by_id.setdefault(t["id"], event)
    for number, e in enumerate(report.edges):
        first, second = by_id.get(e["pred"]), by_id.get(e["succ"])
        if first is None or second is None:
            continue
        flow = {"cat": "dependency", "name": e.get("reason") or "edge", "id": number}
        events.append({**flow, "ph": "s", "pid": first["pid"], "tid": first["tid"], "ts": first["ts"] + first["dur"]})
        events.append({**flow, "ph": "f", "bp": "e", "pid": second["pid"], "tid": second["tid"], "ts": second["ts"]})
    events.sort(key=lambda e: e["ts"])
    return names + events


def write(path: str | os.PathLike[str], report: Any) -> None:
    """Write the timeline of one run."""
    Path(path).write_text(json.dumps({"traceEvents": trace_events(report), "displayTimeUnit": "ns"}), encoding="utf-8")


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
        Path(key).write_text(json.dumps({"traceEvents": earlier + events, "displayTimeUnit": "ns"}), encoding="utf-8")
