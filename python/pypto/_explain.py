# SPDX-License-Identifier: Apache-2.0
"""What each diagnostic means: `pypto explain <id>`."""

from __future__ import annotations

import difflib
import textwrap
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=1)
def examples() -> dict[str, tuple[str, str]]:
    """Return id -> (wrong program, right program)."""
    found: dict[str, tuple[list[str], list[str]]] = {}
    key = ""
    text = Path(__file__).with_name("_explain_examples.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line[:2] not in ("- ", "+ "):
            key = line
            found[key] = ([], [])
        else:
            found[key][line[0] == "+"].append(line[2:])
    return {key: ("\n".join(wrong), "\n".join(right)) for key, (wrong, right) in found.items()}


@lru_cache(maxsize=1)
def pages() -> dict[str, list[tuple[str, str, str, str]]]:
    """Return id -> variants of (severity, what happened, what the report names, how to fix it)."""
    found: dict[str, list[tuple[str, str, str, str]]] = {}
    table = Path(__file__).with_name("_explain.tsv").read_text(encoding="utf-8")
    for line in table.splitlines()[1:]:
        key, severity, what, names, fix = line.split("\t")
        found.setdefault(key, []).append((severity, what, names, fix))
    return found


def _canonical(identifier: str) -> str:
    """As the tables spell it; a rule may be named with its chapter, `03:X-40`."""
    return identifier.strip().upper().rpartition(":")[2]


def page(identifier: str) -> str | None:
    """Return the page of a diagnostic, or `None` if there is no such id."""
    if "/" in identifier:  # a classified race
        both = [page(part) for part in identifier.split("/")]
        return None if None in both else "\n\n".join(str(p) for p in both)
    key = _canonical(identifier)
    if key not in pages():
        return None
    lines = [key]
    for severity, what, names, fix in pages()[key]:
        lines += ["", *textwrap.wrap(f"{severity}: {what}", 100)]
        if names:
            lines += textwrap.wrap(f"The report names: {names}", 100, subsequent_indent="  ")
        lines += textwrap.wrap(f"How to fix it: {fix}", 100, subsequent_indent="  ")
    wrong, right = examples()[key]
    lines += ["", "Wrong:", textwrap.indent(wrong, "    "), "", "Right:", textwrap.indent(right, "    ")]
    return "\n".join(lines)


def nearest(identifier: str) -> list[str]:
    """Return ids that look like `identifier`."""
    return difflib.get_close_matches(_canonical(identifier), pages(), n=3)


def listing() -> str:
    """Return one line per diagnostic."""
    return "\n".join(f"{key:18} {variants[0][1].splitlines()[0][:100]}" for key, variants in pages().items())
