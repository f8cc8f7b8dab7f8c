# SPDX-License-Identifier: Apache-2.0
"""`pypto-ir-trace <passes_dump>`: one HTML page with what each stage of a compile changed."""

from __future__ import annotations

import argparse
import difflib
import html
import sys
from collections.abc import Sequence
from pathlib import Path

_STYLE = """body{font-family:sans-serif;margin:1.5em}pre{background:#f6f8fa;padding:.6em;overflow:auto;font-size:12px}
.add{background:#d7f5dd;display:block}.del{background:#fbdcdc;display:block}.at{color:#667;display:block}
summary{cursor:pointer;font-weight:bold;margin:.3em 0}"""


def _diff(before: list[str], after: list[str], context: int) -> str:
    rows = []
    for line in difflib.unified_diff(before, after, lineterm="", n=context):
        if line.startswith(("---", "+++")):
            continue
        kind = {"+": "add", "-": "del", "@": "at"}.get(line[:1], "")
        text = html.escape(line)
        rows.append(f'<span class="{kind}">{text}</span>' if kind else text + "\n")
    return "".join(rows)


def render(folder: Path, context: int = 3) -> str:
    """Return the page for a directory of stage dumps.

    Raises
    ------
    ValueError
        If the directory holds no dumps.
    """
    files = sorted(p for p in folder.glob("[0-9]*_*.py") if p.is_file())
    if not files:
        raise ValueError(f"{folder} holds no stage dumps (NN_after_<Stage>.py); compile with dump_passes=True")
    texts = [f.read_text(encoding="utf-8").splitlines() for f in files]
    parts = [
        f"<h2>{html.escape(files[0].name)}</h2><details><summary>{len(texts[0])} lines</summary><pre>"
        f"{html.escape(chr(10).join(texts[0]))}</pre></details>"
    ]
    for before, after, file in zip(texts, texts[1:], files[1:], strict=False):
        if before == after:
            parts.append(f"<h2>{html.escape(file.name)}</h2><p>no change</p>")
            continue
        parts.append(
            f"<h2>{html.escape(file.name)}</h2><pre>{_diff(before, after, context)}</pre>"
            f"<details><summary>whole program</summary><pre>{html.escape(chr(10).join(after))}</pre></details>"
        )
    return (
        f"<!DOCTYPE html><html><head><meta charset='utf-8'><title>{html.escape(folder.name)}</title>"
        f"<style>{_STYLE}</style></head><body><h1>{html.escape(str(folder))}</h1>{''.join(parts)}</body></html>"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status: 0 written, 1 bad input, 2 usage."""
    parser = argparse.ArgumentParser(prog="pypto-ir-trace", description=__doc__)
    parser.add_argument("passes_dump", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=Path("ir_trace.html"))
    parser.add_argument("--context", type=int, default=3)
    options = parser.parse_args(argv)
    try:
        if not options.passes_dump.is_dir():
            raise ValueError(f"{options.passes_dump} is not a directory")
        page = render(options.passes_dump, options.context)
        options.output.write_text(page, encoding="utf-8")
    except (OSError, ValueError) as error:
        print(f"pypto-ir-trace: {error}", file=sys.stderr)
        return 1
    print(options.output)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
