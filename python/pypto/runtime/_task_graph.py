# SPDX-License-Identifier: Apache-2.0
"""The task graph of a run as JSON, dot or SVG."""

from __future__ import annotations

import html
import json
import os
from pathlib import Path
from typing import Any


def graph(tasks: list[dict[str, Any]], edges: list[dict[str, Any]]) -> dict[str, Any]:
    """Return tasks, the tensors they touch, and the edges among them, with ids as decimal strings."""
    known = {t["id"] for t in tasks}
    tensors: dict[str, None] = {}
    rows = []
    for t in tasks:
        args = []
        for a in t.get("args", ()):
            tensors.setdefault(a["root"])
            args.append(
                {
                    "name": a["name"],
                    "direction": a["direction"],
                    "tensor": a["root"],
                    "begin": a["begin"],
                    "end": a["end"],
                }
            )
        rows.append(
            {
                "id": str(t["id"]),
                "kernel": t["kernel"],
                "core_type": t.get("core_type"),
                "rank": t["rank"],
                "dispatch": t["dispatch"],
                "file": t.get("file"),
                "line": t.get("line"),
                "args": args,
            }
        )
    return {
        "tasks": rows,
        "tensors": [{"id": str(i), "name": name} for i, name in enumerate(tensors)],
        "edges": [
            {
                "pred": str(e["pred"]),
                "succ": str(e["succ"]),
                "arg": e.get("arg", -1),
                "source": e.get("reason", ""),
                "reason": e.get("reason", ""),
                "flags": 0,
            }
            for e in edges
            if e["pred"] in known and e["succ"] in known
        ],
    }


def dot(tasks: list[dict[str, Any]], edges: list[dict[str, Any]]) -> str:
    """Return the graph in the dot language."""
    lines = ["digraph tasks {", "  node [shape=box];"]
    for t in tasks:
        label = f"{t['kernel']}\\nrank {t['rank']} task {t['id']}"
        lines.append(f'  "{t["id"]}" [label="{label}"];')
    lines += [f'  "{e["pred"]}" -> "{e["succ"]}" [label="{e.get("reason", "")}"];' for e in edges]
    return "\n".join([*lines, "}"]) + "\n"


def svg(tasks: list[dict[str, Any]], edges: list[dict[str, Any]]) -> str:
    """Return a drawing: tasks in layers by longest path, edges as lines."""
    layer = {t["id"]: 0 for t in tasks}
    for _ in range(len(tasks)):
        changed = False
        for e in edges:
            if e["pred"] in layer and e["succ"] in layer and layer[e["succ"]] <= layer[e["pred"]]:
                layer[e["succ"]] = layer[e["pred"]] + 1
                changed = True
        if not changed:
            break
    columns: dict[int, int] = {}
    place = {}
    for t in tasks:
        depth = layer[t["id"]]
        row = columns.get(depth, 0)
        columns[depth] = row + 1
        place[t["id"]] = (20 + row * 190, 20 + depth * 80)
    width = 40 + 190 * max(columns.values(), default=1)
    height = 60 + 80 * (max(columns, default=0) + 1)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        'font-size="11">'
    ]
    for e in edges:
        if e["pred"] in place and e["succ"] in place:
            (x1, y1), (x2, y2) = place[e["pred"]], place[e["succ"]]
            reason = html.escape(str(e.get("reason", "")))
            out.append(
                f'<line x1="{x1 + 80}" y1="{y1 + 40}" x2="{x2 + 80}" y2="{y2}" stroke="gray">'
                f"<title>{reason}</title></line>"
            )
    for t in tasks:
        x, y = place[t["id"]]
        out.append(
            f'<rect x="{x}" y="{y}" width="160" height="40" fill="#eef" stroke="#447"/>'
            f'<text x="{x + 6}" y="{y + 16}">{html.escape(str(t["kernel"]))}</text>'
            f'<text x="{x + 6}" y="{y + 32}">rank {t["rank"]}, task {t["id"]}</text>'
        )
    return "\n".join([*out, "</svg>"]) + "\n"


def save(report: Any, path: str | os.PathLike[str]) -> None:
    """Write the task graph of `report`: `.dot`, `.svg`, else JSON."""
    target = Path(path)
    if not report.tasks:
        raise ValueError("the report has no task graph; run with RunConfig(enable_dep_gen=True)")
    if target.suffix == ".dot":
        text = dot(report.tasks, report.edges)
    elif target.suffix == ".svg":
        text = svg(report.tasks, report.edges)
    else:
        text = json.dumps(graph(report.tasks, report.edges), indent=1)
    target.write_text(text, encoding="utf-8")
