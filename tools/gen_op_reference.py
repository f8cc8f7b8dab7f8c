#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write docs/en/operations.md from the operation table.

    PYTHONPATH=python python tools/gen_op_reference.py            write it
    PYTHONPATH=python python tools/gen_op_reference.py --check    exit 1 if the committed page differs

Spellings, signatures and descriptions come from the native module; places, alias class and effects from
`core/ir/ops.def`, the table that the native module is compiled from.
"""

from __future__ import annotations

import argparse
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "core" / "ir" / "ops.def"
PAGE = ROOT / "docs" / "en" / "operations.md"

FORMS = {
    "kFormFlat": "pl",
    "kFormTensor": "pl.tensor",
    "kFormTile": "pl.tile",
    "kFormSystem": "pl.system",
    "kFormArray": "pl.array",
    "kFormPrefetch": "pl.prefetch",
    "kFormPld": "pld",
    "kFormPldTensor": "pld.tensor",
    "kFormPldTile": "pld.tile",
    "kFormPldSystem": "pld.system",
}
PLACES = {"kPlaceKernel": "K", "kPlaceOrch": "O", "kPlaceHost": "H", "kPlaceAny": "K O H"}
TITLES = {
    "pl": "Operations of either form",
    "pl.tensor": "Tensor forms",
    "pl.tile": "Tile forms",
    "pl.system": "System",
    "pl.array": "Arrays",
    "pl.prefetch": "Prefetching",
    "pld": "Distributed: short spellings",
    "pld.system": "Distributed: queries and signals",
    "pld.tensor": "Distributed: windows, transfers, collectives",
    "pld.tile": "Distributed: tile transfers",
}
HEADER = """# Operations

Every operation that a program can name, in the order of the operation table. This page is generated:
`tools/gen_op_reference.py` writes it from the table, and a test compares them.

**Places**: K kernel, O device orchestration, H host orchestrator. **Result**: *value* is fresh; *view* shares the cells
of the first operand; *in place* is the operand that was updated; *none* is no result, or a scalar. **Effects**, one
letter per parameter: `r` reads, `w` writes, `x` both, `a` adds atomically, capitals the same at a peer, `n` raises a
signal at a peer, `s` awaits one, `-` nothing. Codes such as O-307 are rule numbers of the operation chapters.
"""


@dataclass(frozen=True)
class Facts:
    """What the table says about a row beyond its spelling."""

    places: str
    result: str
    effects: str


def read_table(text: str) -> dict[tuple[str, str], Facts]:
    """Return the facts of every (namespace, name) of the table."""
    rows = re.compile(
        r"^PYPTO_OP\(\w+,\s*\"(?P<name>[^\"]*)\",\s*(?P<forms>[^,]+),\s*(?P<places>[^,]+),\s*AliasClass::k(?P<alias>\w+),"
        r"\s*(?P<inplace>-?\d+),\s*\"(?P<effects>[^\"]*)\"",
        re.MULTILINE,
    )
    words = {"Value": "value", "View": "view", "InPlace": "in place", "None": "none"}
    found: dict[tuple[str, str], Facts] = {}
    for row in rows.finditer(text):
        places = " ".join(PLACES[p.strip()] for p in row["places"].split("|"))
        facts = Facts(places, words[row["alias"]], row["effects"].rstrip("-"))
        for form in row["forms"].split("|"):
            if form.strip() in FORMS:
                found.setdefault((FORMS[form.strip()], row["name"]), facts)
    return found


def escape(text: str) -> str:
    """Make a text safe inside a table cell."""
    return text.replace("|", "\\|")


def page(operations: list[tuple[str, str, str, str, str]], facts: dict[tuple[str, str], Facts]) -> str:
    """Return the page."""
    parts = [HEADER]
    for namespace, title in TITLES.items():
        rows = [op for op in operations if op[0] == namespace]
        if not rows:
            continue
        parts.append(
            f"\n## {title}\n\n| Operation | Places | Result | Effects | Meaning |\n| --- | --- | --- | --- | --- |\n"
        )
        for _, name, signature, doc, row_name in rows:
            row = facts.get((namespace, name)) or facts[namespace, row_name]  # an alias has the facts of its row
            effects = f"`{row.effects}`" if row.effects else ""
            parts.append(
                f"| `{escape(f'{namespace}.{name}({signature})')}` | {row.places} | {row.result} | {effects} "
                f"| {escape(doc)} |\n"
            )
    return "".join(parts)


def main() -> int:
    """Write or check the page."""
    parser = argparse.ArgumentParser(description="Write docs/en/operations.md from the operation table.")
    parser.add_argument("--check", action="store_true", help="compare only")
    options = parser.parse_args()
    from pypto import _core

    text = page(_core.op_table(), read_table(TABLE.read_text()))
    if options.check:
        if not PAGE.is_file() or PAGE.read_text() != text:
            print(f"{PAGE.relative_to(ROOT)} is out of date; run: PYTHONPATH=python python tools/gen_op_reference.py")
            return 1
        return 0
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
