# SPDX-License-Identifier: Apache-2.0
"""`python -m pypto.tools.memory_map <build dir | dump file>`: an HTML page of on-chip memory over a kernel's life."""

from __future__ import annotations

import argparse
import html
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_WIDTH, _HEIGHT = 720, 260


def _find(path: Path) -> Path:
    """Return the artifact directory that `path` is, or lies in."""
    for folder in (path, *path.parents) if path.is_dir() else path.parents:
        if (folder / "report" / "memory.json").is_file():
            return folder
    raise ValueError(f"{path}: no report/memory.json here or above; give a build directory or a dump file in one")


def _overlaps(tiles: list[dict[str, Any]]) -> set[int]:
    bad = set()
    for i, a in enumerate(tiles):
        for j in range(i + 1, len(tiles)):
            b = tiles[j]
            if (
                a["offset"] < b["offset"] + b["bytes"]
                and b["offset"] < a["offset"] + a["bytes"]
                and a["from"] < b["to"]
                and b["from"] < a["to"]
            ):
                bad |= {i, j}
    return bad


def _drawing(tiles: list[dict[str, Any]], capacity: int, high: int) -> str:
    end = max((t["to"] for t in tiles), default=1) or 1
    top = max(capacity, high, max((t["offset"] + t["bytes"] for t in tiles), default=1))
    bad = _overlaps(tiles)
    out = [
        f'<svg width="{_WIDTH}" height="{_HEIGHT}" xmlns="http://www.w3.org/2000/svg" font-size="10">',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fafafa" stroke="#ccc"/>',
    ]
    for i, t in enumerate(tiles):
        x, w = t["from"] / end * _WIDTH, max(2.0, (t["to"] - t["from"]) / end * _WIDTH)
        h = max(1.0, t["bytes"] / top * _HEIGHT)
        y = _HEIGHT - t["offset"] / top * _HEIGHT - h
        colour = "#e33" if i in bad else f"hsl({i * 47 % 360},55%,70%)"
        where = f"{t.get('file', '')}:{t.get('line', '')}"
        title = html.escape(f"{t['name']}: {t['bytes']} bytes at {t['offset']}, {where}")
        out.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{w:.1f}" height="{h:.1f}" fill="{colour}" stroke="#555">'
            f'<title>{title}</title></rect><text x="{x + 2:.1f}" y="{y + min(h, 11):.1f}">'
            f"{html.escape(str(t['name']))}</text>"
        )
    limit = _HEIGHT - capacity / top * _HEIGHT
    out.append(f'<line x1="0" x2="{_WIDTH}" y1="{limit:.1f}" y2="{limit:.1f}" stroke="red" stroke-dasharray="4"/>')
    return "".join([*out, "</svg>"])


def render(path: Path, backend: str | None = None) -> str:
    """Return the page for an artifact directory or a dump file inside one."""
    folder = _find(path)
    memory = json.loads((folder / "report" / "memory.json").read_text(encoding="utf-8"))
    parts = []
    for kernel, spaces in memory.items():
        parts.append(f"<h2>{html.escape(kernel)}</h2>")
        for space, row in spaces.items():
            capacity, high = row["capacity"], row["high_water"]
            state = "fits" if high <= capacity else "<b style='color:red'>does not fit</b>"
            rows = "".join(
                f"<tr><td>{html.escape(str(t['name']))}</td><td>{t['offset']}</td><td>{t['bytes']}</td>"
                f"<td>{html.escape(str(t.get('file', '')))}:{t.get('line', '')}</td></tr>"
                for t in row["tiles"]
            )
            parts.append(
                f"<h3>{html.escape(space)}: {high} of {capacity} bytes, {state}</h3>"
                f"{_drawing(row['tiles'], capacity, high)}<details><summary>tiles</summary>"
                f"<table><tr><th>tile</th><th>offset</th><th>bytes</th><th>source</th></tr>{rows}</table>"
                "</details>"
            )
    source = f"<pre>{html.escape(path.read_text(encoding='utf-8'))}</pre>" if path.is_file() else ""
    return (
        f"<!DOCTYPE html><html><head><meta charset='utf-8'><title>memory of {html.escape(folder.name)}</title></head>"
        f"<body style='font-family:sans-serif'><h1>{html.escape(str(folder))}</h1>"
        f"<p>{html.escape(backend or '')}</p>{''.join(parts)}{source}</body></html>"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pypto.tools.memory_map", description=__doc__)
    parser.add_argument("path", type=Path, help="a stage dump or a build directory")
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("-p", "--pass-name", help="the stage to show beside the map (default: the last)")
    parser.add_argument("-b", "--backend", help="name of the backend in the title")
    options = parser.parse_args(argv)
    path: Path = options.path
    try:
        if path.is_dir():
            wanted = options.pass_name or ""
            dumps = [d for d in sorted((path / "passes_dump").glob("[0-9]*_*.py")) if wanted in d.name]
            if options.pass_name and not dumps:
                raise ValueError(f"{path / 'passes_dump'} has no stage {options.pass_name!r}")
            if dumps:
                path = dumps[-1]
        elif not path.is_file():
            raise ValueError(f"{path} does not exist")
        page = render(path, options.backend)
        target = options.output or path.with_name(f"{path.stem if path.is_file() else path.name}.memory_map.html")
        target.write_text(page, encoding="utf-8")
    except (OSError, ValueError) as error:
        print(f"memory_map: {error}", file=sys.stderr)
        return 1
    print(target)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
