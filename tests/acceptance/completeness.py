# SPDX-License-Identifier: Apache-2.0
"""Says what is missing for each row of the operation table: typing, execution, documentation, a test.

Works on the sources, so that a copy of them with something removed can be judged too. The build runs it:

    python tests/acceptance/completeness.py ROOT [STAMP]      exit 1 and say what is missing, or touch STAMP
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Row:
    """One row of core/ir/ops.def."""

    id: str
    name: str
    forms: str
    doc: str


def rows(root: Path) -> list[Row]:
    """Return the rows of the table in `root`."""
    text = (root / "core/ir/ops.def").read_text(encoding="utf-8")
    text = re.sub(r"//[^\n]*", "", text)
    found = []
    for m in re.finditer(r'^PYPTO_OP\((\w+),\s*"(\w+)",\s*([\w\s|]+?),(.*?)"\s*\)\s*$', text, re.M | re.S):
        # The last argument is the documentation, possibly in several pieces.
        strings = re.findall(r'"((?:[^"\\]|\\.)*)"\s*(,?)', m[4] + '"')
        doc = ""
        for part, comma in reversed(strings):
            if comma:
                break
            doc = part + doc
        found.append(Row(m[1], m[2], m[3], doc))
    return found


def _sources(root: Path, *folders: str) -> str:
    texts = []
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".cpp", ".h"):
                texts.append(path.read_text(encoding="utf-8"))
    return "\n".join(texts)


def _python(root: Path, *folders: str) -> str:
    return "\n".join(p.read_text(encoding="utf-8") for f in folders for p in sorted((root / f).rglob("*.py")))


# Where the vector kernels of the steps of each kind are.
_KERNELS = {"UnaryOp": ("unary.cpp", "trig.cpp"), "BinaryOp": ("binary.cpp", "integer.cpp")}


def _steps(root: Path) -> list[str]:
    """Return one sentence per arithmetic step without a vector kernel or without a reference."""
    kernels = root / "core/vm/kernels"
    header = (kernels / "kernels.h").read_text(encoding="utf-8")
    reference = (kernels / "reference.cpp").read_text(encoding="utf-8")
    problems = []
    for enum, files in _KERNELS.items():
        body = re.search(rf"enum class {enum} : uint8_t \{{(.*?)\}};", header, re.S)[1]
        vector = "\n".join((kernels / f).read_text(encoding="utf-8") for f in files if (kernels / f).exists())
        for step in re.findall(r"\b(k[A-Z]\w*)\b", re.sub(r"//[^\n]*|#define[^\n]*", "", body)):
            if f"{enum}::{step}" not in vector:
                problems.append(f"step '{enum}::{step}' has no vector kernel in core/vm/kernels ({', '.join(files)})")
            if f"{enum}::{step}" not in reference:
                problems.append(f"step '{enum}::{step}' has no reference in core/vm/kernels/reference.cpp")
    return problems


# What runs an operation besides its entry in the table of core/vm/ops, and which operations: a mention elsewhere, in
# the cost model or the lifetimes of tiles, runs nothing.
_RUNNERS = {
    "core/vm/emit_exprs.cpp": r"scalar_\w+|array_\w+|create_tensor|min|max",  # instructions of their own
    "core/vm/scalar.cpp": r"scalar_\w+|min|max",
    **{f"core/machine/{name}.cpp": r"\w+" for name in ("machine_ops", "host", "channels", "remote", "tasks")},
    **{
        f"core/passes/{name}.cpp": r"barrier|broadcast|all\w+|reduce_scatter"  # written out
        for name in ("collectives", "collective_forms", "collective_host")
    },
}


def _executed(root: Path) -> set[str]:
    """Names of the operations that something runs."""
    tables = re.findall(
        r"^void register_\w+\(ExecTable& \w+\) \{(.*?)(?: |^)\}$", _sources(root, "core/vm/ops"), re.M | re.S
    )
    names = {name for text in tables for name in re.findall(r"\bk_(\w+)\b", text)}
    for path, which in _RUNNERS.items():
        names |= set(re.findall(rf"\bk_({which})\b", (root / path).read_text(encoding="utf-8")))
    return names


def missing(root: Path) -> list[str]:
    """Return one sentence per thing that a row lacks; each names the row."""
    table = rows(root)
    problems = _steps(root)
    typing = _sources(root, "core/ir/infer")
    functions = (root / "core/ir/float_unary.def").read_text(encoding="utf-8")
    whole = set(re.findall(r"^PYPTO_FLOAT_UNARY\((\w+), \w+, .+, .+\)", functions, re.M))  # kernel and definition
    typed = set(re.findall(r"\btype_(\w+)\(Typer&", typing))
    for macro, prefix in re.findall(r"^#define (\w+)\([^)]*\)(?:[^\n]*\\\n)*?[^\n]*?type_(\w*)##", typing, re.M):
        typed |= {prefix + name for name in re.findall(rf"^\s*{macro}\(\s*(\w+)", typing, re.M)}
    handled = whole | _executed(root)
    tested = set(re.findall(r"\bk_(\w+)\b", _sources(root, "tests/core")))
    programs = _python(root, "tests", "examples")
    called = set(re.findall(r"\b(?:pl|pld)(?:\\?\.\w+)*\\?\.(\w+)\\?\(", programs))
    tested |= set(re.findall(r'"(scalar_\w+)": \(', programs))  # operators of scalars are called by their symbols
    for row in table:
        if row.id in whole:
            typed.add(row.id)
            handled.add(row.id)
            tested.add(row.id)  # the sweeps of tests/core compare each with its definition
        if row.id not in typed:
            problems.append(f"operation '{row.id}' has no typing function type_{row.id} in core/ir/infer")
        if row.id not in handled:
            problems.append(
                f"operation '{row.id}' is neither registered in core/vm, nor run by core/machine, nor lowered by core/passes"
            )
        if len(row.doc.split()) < 3 or not row.doc.endswith("."):
            problems.append(f"operation '{row.id}' has no documentation line in core/ir/ops.def: {row.doc!r}")
        if row.id not in tested and row.name not in called:
            problems.append(f"operation '{row.id}' ('{row.name}') occurs in no test")
    return problems


if __name__ == "__main__":
    found = missing(Path(sys.argv[1]))
    print("\n".join(f"error: {p}" for p in found), file=sys.stderr)
    if not found and len(sys.argv) > 2:
        Path(sys.argv[2]).touch()
    sys.exit(1 if found else 0)
