#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write docs/en/operations.md and docs/zh/operations.md from the operation table.

    PYTHONPATH=python python tools/gen_op_reference.py            write them
    PYTHONPATH=python python tools/gen_op_reference.py --check    exit 1 if a committed page differs

Spellings, signatures and descriptions come from the native module; places, alias class and effects from
`core/ir/ops.def`, the table that the native module is compiled from; shapes, types, numerics and examples from
`tools/op_examples.py`, whose examples the tests run. `tools/op_reference_zh.py` must have a Chinese text for each.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import op_examples
import op_programs
import op_reference_zh as zh

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "core" / "ir" / "ops.def"
PAGES = {language: ROOT / "docs" / language / "operations.md" for language in ("en", "zh")}

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

**Examples** are lines of a kernel body (of an orchestration for operations that are no kernel's); the tests run each of
them. Their operands: {operands}; `tx` is the tile loaded from `x`, and so on; `n` is a run-time INT32 scalar; `o` is an
output like `x`. An example that is a word in quotes is one of the programs at the end of the page; a path is a program
of the repository.
"""
COLUMNS = ("Operation", "Meaning", "Shapes", "Types", "Numerics", "Places", "Result", "Effects", "Example")


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


def page(
    operations: list[tuple[str, str, str, str, str]], facts: dict[tuple[str, str], Facts], language: str = "en"
) -> str:
    """Return the page in a language."""
    chinese = language == "zh"

    def say(text: str) -> str:
        return escape(zh.say(text) if chinese else text)

    operands = ("、" if chinese else ", ").join(
        f"`{n}` {dtype} {shape}" for n, (dtype, shape) in op_examples.OPERANDS.items()
    )
    paragraphs = [p if "{operands}" not in p else p.format(operands=operands) if chinese else
                  textwrap.fill(p.format(operands=operands), 120)
                  for p in (zh.HEADER if chinese else HEADER).split("\n\n")]  # fmt: skip
    parts = ["\n\n".join(paragraphs).rstrip() + "\n"]
    for namespace, title in TITLES.items():
        rows = [op for op in operations if op[0] == namespace]
        if not rows:
            continue
        columns = " | ".join(say(name) for name in COLUMNS)
        parts.append(f"\n## {say(title)}\n\n| {columns} |\n| {' | '.join(['---'] * len(COLUMNS))} |\n")
        for _, name, signature, doc, row_name in rows:
            row = facts.get((namespace, name)) or facts[namespace, row_name]  # an alias has the facts of its row
            effects = f"`{row.effects}`" if row.effects else ""
            shapes, types, numerics = op_examples.facts(namespace, name, row_name)
            parts.append(
                f"| `{escape(f'{namespace}.{name}({signature})')}` | {say(doc)} | {say(shapes)} | {say(types)} "
                f"| {say(numerics)} | {row.places} | {say(row.result)} | {effects} "
                f"| {escape(example(namespace, name, row_name))} |\n"
            )
    parts.append(f"\n## {say('Programs')}\n")
    for name, text in op_programs.PROGRAMS.items():
        parts.append(f"\n### {name}\n\n```python\n{text.strip()}\n```\n")
    return "".join(parts)


def example(namespace: str, name: str, row_name: str) -> str:
    """Return the example of a row as the text of a table cell."""
    if name in op_programs.SHOWN_IN:
        return f'"{op_programs.SHOWN_IN[name]}"'
    if namespace.startswith("pld"):
        return f"`{example_file(name)}`"
    found = op_examples.entry(namespace, name, row_name)
    if found is None:
        raise LookupError(f"no entry for {namespace}.{name} in tools/op_examples.py")
    return "<br>".join(f"`{line}`" for line in op_examples.example(namespace, name, found).splitlines())


def example_file(name: str) -> str:
    """Return the first program of the repository that uses an operation of the distributed chapter."""
    for path in sorted((ROOT / "examples").rglob("*.py")):
        if re.search(rf"\bpld(\.\w+)*\.{name}\(", path.read_text()):
            return str(path.relative_to(ROOT))
    raise LookupError(f"no program under examples/ uses pld...{name}")


def main() -> int:
    """Write or check the pages."""
    parser = argparse.ArgumentParser(description="Write the operation reference from the operation table.")
    parser.add_argument("--check", action="store_true", help="compare only")
    options = parser.parse_args()
    from pypto import _core

    for language, file in PAGES.items():
        text = page(_core.op_table(), read_table(TABLE.read_text()), language)
        if not options.check:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        elif not file.is_file() or file.read_text() != text:
            print(f"{file.relative_to(ROOT)} is out of date; run: PYTHONPATH=python python tools/gen_op_reference.py")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
