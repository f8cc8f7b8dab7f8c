# SPDX-License-Identifier: Apache-2.0
"""Files that a run with collection flags leaves below `<output_dir>/dfx_outputs`."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import shutil
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pypto import _core
from pypto.runtime import _report, _task_graph, _timeline

_local = threading.local()


@contextlib.contextmanager
def redirect(folder: str | os.PathLike[str] | None) -> Iterator[None]:
    """Send collected files of this thread below `folder` instead of the artifact directory."""
    before = getattr(_local, "folder", None)
    _local.folder = None if folder is None else Path(os.fspath(folder))
    try:
        yield
    finally:
        _local.folder = before


def prepare(output_dir: Path) -> Path:
    """Return the directory for collected files, emptied of an earlier run's."""
    redirected = getattr(_local, "folder", None)
    target = redirected if redirected is not None else output_dir / "dfx_outputs"
    if redirected is None and target.is_dir():
        shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True, exist_ok=True)
    return target


def snapshot(native: Any, values: Sequence[Any], entry: str | None) -> list[bytes | None]:
    """Return the bytes of every tensor argument before the run, for argument dumps."""
    return [_bytes_of(v) for v in values]


def _bytes_of(value: Any) -> bytes | None:
    info = _core.array_info(value)
    if info is None or not info[2] or info[1] is None:
        return None
    count = int(np.prod(info[2])) * info[1].get_byte()
    view = _core.array_view(info[0], _core.DataType.UINT8, [max(count, 1)], torch=False)
    return bytes(view[:count])


def write(
    target: Path,
    native_report: Any,
    dfx: Any,
    *,
    native: Any,
    entry: str | None,
    values: Sequence[Any],
    before: list[bytes | None] | None,
    program: Any,
) -> None:
    """Write what `dfx` asks for."""
    report = _report.RunReport(native_report, program.platform)
    if native.distributed:
        names: dict[tuple[int, int], str] = {(d["rank"], d["index"]): d["program"] for d in report.dispatches}
        comm = {(d["rank"], d["index"]): d["comm"] for d in report.dispatches}
        keys = sorted({*names, *((t["rank"], t["dispatch"]) for t in report.tasks)})
        for rank, index in keys:
            folder = target / f"rank{rank}" / f"d{index}"
            folder.mkdir(parents=True, exist_ok=True)
            tasks = [t for t in report.tasks if (t["rank"], t["dispatch"]) == (rank, index)]
            name = names.get((rank, index), native.entry or native.name)
            (folder / "dispatch_program.json").write_text(json.dumps({"program": name}), encoding="utf-8")
            if (rank, index) in comm:
                (folder / "comm_stats.json").write_text(json.dumps(comm[rank, index], indent=1), encoding="utf-8")
            _write_dispatch(folder, report, tasks, dfx, native, values, before, entry)
    else:
        _write_dispatch(target, report, report.tasks, dfx, native, values, before, entry)
    if dfx.enable_chip_swimlane:
        _timeline.write(target / "timeline.json", report)


def _write_dispatch(
    folder: Path,
    report: Any,
    tasks: list[dict[str, Any]],
    dfx: Any,
    native: Any,
    values: Sequence[Any],
    before: list[bytes | None] | None,
    entry: str | None,
) -> None:
    kernels = {name: i for i, (name, _) in enumerate(native.kernels())}
    for t in tasks:
        kernels.setdefault(t["kernel"], len(kernels))
    if dfx.enable_dep_gen or dfx.enable_chip_swimlane:
        (folder / "deps.json").write_text(
            json.dumps(_task_graph.graph(tasks, report.edges), indent=1), encoding="utf-8"
        )
        names = {str(i): name for name, i in kernels.items()} or {"0": native.entry or native.name}
        (folder / f"name_map_{folder.name}.json").write_text(
            json.dumps({"level": 2, "orchestrator_name": None, "callable_id_to_name": names}, indent=1),
            encoding="utf-8",
        )
    if dfx.enable_chip_swimlane:
        (folder / "chip_swimlane_records.json").write_text(
            json.dumps(
                {
                    "chip_swimlane_level": dfx.enable_chip_swimlane,
                    "tasks": swimlane(tasks, kernels),
                    "note": report.time_note,
                    "parameters": report.parameters,
                },
                indent=1,
            ),
            encoding="utf-8",
        )
    if dfx.enable_scope_stats:
        stats = folder / "scope_stats"
        stats.mkdir(exist_ok=True)
        with open(stats / "scope_stats.jsonl", "w", encoding="utf-8") as file:
            for row in _scope_rows(report, tasks, native, entry):
                file.write(json.dumps(row) + "\n")
    if dfx.enable_pmu:
        _write_pmu(folder / "pmu.csv", tasks, dfx.enable_pmu)
    if dfx.enable_dump_args and before is not None:
        _write_args(folder / "args_dump", native, values, before, entry, tasks, dfx.enable_dump_args)


def swimlane(tasks: list[dict[str, Any]], kernels: dict[str, int]) -> list[dict[str, Any]]:
    """Return one record per executed task and core."""
    rows = []
    for t in tasks:
        kinds = t.get("core_type") or "aiv"
        whole = (t["start_us"], t["start_us"], t["end_us"])
        runs = [run[0:1] + run[2:] for run in t["runs"]] or [(core, *whole) for core in t["cores"] or [0]]
        for core, dispatched, start, end in runs:
            rows.append(
                {
                    "task_id": int(t["id"]),
                    "func_id": kernels.get(t["kernel"], 0),
                    "core_id": int(core),
                    "ring_id": 0,
                    "core_type": str(kinds),
                    "kernel": t["kernel"],
                    "start_time_us": float(start),
                    "end_time_us": float(end),
                    "duration_us": float(end - start),
                    "dispatch_time_us": float(dispatched),
                    "finish_time_us": float(t["seen_us"]),
                }
            )
    return rows


def _scope_rows(report: Any, tasks: list[dict[str, Any]], native: Any, entry: str | None) -> list[dict[str, Any]]:
    scopes = getattr(report._native, "scopes", None)
    if scopes:
        return list(scopes)
    name = entry or native.entry or native.name
    total = sum(_argument_bytes(t) for t in tasks)
    return [{"name": name, "depth": 0, "peak_tasks": len(tasks), "peak_bytes": total, "limit": 0}]


def _argument_bytes(task: dict[str, Any]) -> int:
    return sum(int(a["end"]) - int(a["begin"]) for a in task.get("args", ()) if a.get("direction") in ("Out", "output"))


def _write_pmu(path: Path, tasks: list[dict[str, Any]], group: int) -> None:
    with open(path, "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(["task", "kernel", "core", "group", "start_us", "end_us", "busy_us"])
        for t in tasks:
            for core, _, _, start, end in t["runs"]:
                out.writerow([t["id"], t["kernel"], core, group, start, end, end - start])


def _write_args(
    folder: Path,
    native: Any,
    values: Sequence[Any],
    before: list[bytes | None],
    entry: str | None,
    tasks: list[dict[str, Any]],
    level: int,
) -> None:
    """Dump the arguments of the entry: inputs before the run, outputs after it."""
    folder.mkdir(parents=True, exist_ok=True)
    params = native.params(entry)
    rows: list[dict[str, Any]] = []
    blob = bytearray()
    marked = _marked(native, entry) if level == 1 else None
    names = {"In": "input", "Out": "output", "InOut": "inout"}

    def add(i: int, stage: str, data: bytes) -> None:
        info = _core.array_info(values[i])
        if info is None:
            return
        shape = list(info[2])
        strides = [int(np.prod(shape[k + 1 :])) for k in range(len(shape))]
        rows.append(
            {
                "task_id": hex(int(tasks[0]["id"])) if tasks else "0x0",
                "name": params[i].name,
                "role": names[params[i].direction.name],
                "stage": stage,
                "arg_index": i,
                "dtype": str(info[1]),
                "shape": shape,
                "strides": strides,
                "start_offset": 0,
                "is_contiguous": True,
                "bin_offset": len(blob),
                "bin_size": len(data),
            }
        )
        blob.extend(data)

    for i, p in enumerate(params):
        if not p.is_tensor or before[i] is None or (marked is not None and p.name not in marked):
            continue
        if p.direction.name != "Out":
            add(i, "before_dispatch", before[i] or b"")
        if p.direction.name != "In":
            add(i, "after_completion", _bytes_of(values[i]) or b"")
    (folder / "args.bin").write_bytes(bytes(blob))
    (folder / "args_dump.json").write_text(
        json.dumps({"bin_file": "args.bin", "args": rows}, indent=1), encoding="utf-8"
    )


def _marked(native: Any, entry: str | None) -> set[str]:
    """Return the names that the program marks with `pl.dump_tag` or `dumps=`."""
    import ast

    from pypto.ir import _listing

    found: set[str] = set()
    for function in native.program.functions.values():
        tree = _listing.function_tree(function)
        if tree is None:
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            if _listing.dotted(node.func).endswith("dump_tag"):
                found |= {n.id for a in node.args for n in ast.walk(a) if isinstance(n, ast.Name)}
            for keyword in node.keywords:
                if keyword.arg == "dumps":
                    found |= {n.id for n in ast.walk(keyword.value) if isinstance(n, ast.Name)}
    return found
