# SPDX-License-Identifier: Apache-2.0
"""An operation that lacks its typing, its execution, its documentation or a test does not get through."""

from __future__ import annotations

import random
import re
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import completeness

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ["core/ir", "core/vm", "core/machine", "core/passes", "tests", "examples"]


def test_every_operation_is_complete():
    assert len(completeness.rows(ROOT)) > 200
    problems = completeness.missing(ROOT)
    assert not problems, "\n".join(problems)


def _edit(folder: Path, pattern: str, replacement: str, suffixes=(".cpp", ".h", ".def", ".py")) -> int:
    changed = 0
    for path in folder.rglob("*"):
        if path.suffix in suffixes and path.is_file():
            text = path.read_text(encoding="utf-8")
            new, count = re.subn(pattern, replacement, text)
            if count:
                path.write_text(new, encoding="utf-8")
                changed += count
    return changed


def _drop_function(root: Path, row: completeness.Row) -> int:
    """A row of float_unary.def is type rule, kernel and definition in one."""
    return _edit(root / "core/ir", rf"(?m)^PYPTO_FLOAT_UNARY\({row.id},", "PYPTO_FLOAT_UNARY(gone,", (".def",))


def drop_typing(root: Path, row: completeness.Row) -> None:
    assert (
        _edit(root / "core/ir/infer", rf"\btype_{row.id}\b(?=\(Typer)", "type_gone")
        or _edit(root / "core/ir/infer", rf"(?m)^(\s*PYPTO_\w+\(\s*){row.id}\b", r"\1gone")
        or _drop_function(root, row)
    )


def drop_execution(root: Path, row: completeness.Row) -> None:
    _drop_function(root, row)
    for folder in ("core/vm", "core/machine", "core/passes"):
        _edit(root / folder, rf"\bk_{row.id}\b", "k_gone")


def drop_documentation(root: Path, row: completeness.Row) -> None:
    assert _edit(root / "core/ir", re.escape(f'"{row.doc}")'), '"")', (".def",)) >= 1


def drop_tests(root: Path, row: completeness.Row) -> None:
    _drop_function(root, row)
    _edit(root / "tests", rf"\bk_{row.id}\b", "k_gone")
    _edit(root / "tests", rf'"{row.id}": \(', '"gone": (')
    for folder in ("tests", "examples"):
        _edit(root / folder, rf"\b{row.name}\(", "gone(")


@pytest.mark.parametrize("seed", range(5))
def test_what_is_removed_is_named(seed, tmp_path):
    """Five operations drawn by seed lose each of the four things in a copy of the sources."""
    rng = random.Random(seed)
    drawn = [r for r in completeness.rows(ROOT) if "kFormInternal" not in r.forms and r.doc.count('"') == 0]
    row = rng.choice(drawn)
    copy = tmp_path / "copy"
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", "saved"))
    assert not [p for p in completeness.missing(copy) if f"'{row.id}'" in p]
    before = set(completeness.missing(copy))
    for drop, word in (
        (drop_typing, "typing"),
        (drop_execution, "registered"),
        (drop_documentation, "documentation"),
        (drop_tests, "occurs in no test"),
    ):
        kept = tmp_path / drop.__name__
        shutil.copytree(copy, kept)
        drop(kept, row)
        fresh = set(completeness.missing(kept)) - before
        assert any(f"'{row.id}'" in p and word in p for p in fresh), (row.id, word, fresh)


def test_whatever_leaves_the_tables_of_kernels_is_named(tmp_path):
    """A mention elsewhere (cost model, lifetimes) is no kernel."""
    copy = tmp_path / "copy"
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", "saved"))
    assert not completeness.missing(copy)
    gone = set()
    for path in (copy / "core/vm/ops").glob("*.cpp"):
        text = path.read_text(encoding="utf-8")
        for entry in re.findall(r"(?m)^  \w+\.set\(OpId::k_\w+, [^\n]*\n", text):
            gone.add(re.search(r"k_(\w+)", entry)[1])
            text = text.replace(entry, "")
        path.write_text(text, encoding="utf-8")
    named = {
        m[1] for p in completeness.missing(copy) if (m := re.search(r"operation '(\w+)' is neither registered", p))
    }
    assert len(gone) > 50 and gone == named


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "files,word",
    [(["reference.cpp"], "reference"), (["unary.cpp"], "kernel"), (["binary.cpp", "integer.cpp"], "kernel")],
    ids=["reference", "unary", "binary"],
)
def test_a_step_without_kernel_or_reference_is_named(seed, files, word, tmp_path):
    copy = tmp_path / "copy"
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", "saved"))
    paths = [copy / "core/vm/kernels" / f for f in files]
    found = re.findall(r"case ((?:Unary|Binary)Op::k\w+):", paths[0].read_text(encoding="utf-8"))
    step = random.Random(seed).choice(sorted(set(found)))
    for path in paths:
        path.write_text(re.sub(rf"\b{step}\b", "gone", path.read_text(encoding="utf-8")), encoding="utf-8")
    assert any(f"'{step}' has no" in p and word in p for p in completeness.missing(copy)), step
