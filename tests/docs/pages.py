# SPDX-License-Identifier: Apache-2.0
"""What the tests of the pages share: finding pages, blocks and sections, and producing the texts that pages show."""

import importlib.util
import os
import re
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
LANGUAGES = ("en", "zh")
PLANTED = ROOT / "tests" / "check" / "planted"
REPORT = re.compile(r"<!-- report of (?P<file>\S+) -->\n```text\n(?P<text>.*?)```", re.DOTALL)


@dataclass
class Block:
    """A fenced block: its language, its text, its line, and the last text line before it."""

    kind: str
    text: str
    line: int
    before: str


def pages(language: str) -> list[Path]:
    """Every page of a language; but `operations.md`, which is generated."""
    return sorted(p for p in (DOCS / language).rglob("*.md") if p.name != "operations.md")


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page, in order."""
    found, before, lines = [], "", text.splitlines()
    at = 0
    while at < len(lines):
        if lines[at].startswith("```"):
            end = next(i for i in range(at + 1, len(lines)) if lines[i].startswith("```"))
            body = "\n".join(lines[at + 1 : end]) + "\n" if end > at + 1 else ""
            found.append(Block(lines[at][3:].strip(), body, at + 1, before))
            at = end
        elif lines[at].strip():
            before = lines[at]
        at += 1
    return found


def sections(text: str) -> dict[str, str]:
    """Heading of level 2 -> its text, in order; headings inside fences do not count."""
    found: dict[str, str] = {}
    name, fenced = "", False
    for line in text.splitlines():
        fenced ^= line.startswith("```")
        if line.startswith("## ") and not fenced:
            name = line[3:].strip()
            found[name] = ""
        elif name:
            found[name] += line + "\n"
    return found


def anchors(page: Path) -> list[str]:
    """The anchors of a page's headings of level 2, in order, as code hosts derive them."""
    return [re.sub(r"[^\w\- ]", "", name.lower()).replace(" ", "-") for name in sections(page.read_text())]


def table_rows(text: str) -> list[str]:
    """The body rows of the tables in a text."""
    rows, in_body = [], False
    for line in text.splitlines():
        if re.fullmatch(r"\|[ :|-]+\|", line):
            in_body = True
        elif not line.startswith("|"):
            in_body = False
        elif in_body:
            rows.append(line)
    return rows


def run(arguments: list[str], cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs Python with the package of this checkout."""
    import pypto

    env = {**os.environ, "PYTHONPATH": str(Path(pypto.__file__).parents[1]), **environment}
    return subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=env, capture_output=True, text=True, timeout=300, check=False
    )


def report(file: str) -> str:
    """The text that a planted file's mistake produces, up to the help line, with paths relative to the checkout."""
    sys.path.insert(0, str(PLANTED))
    from pypto.ir.distributed_compiled_program import DistributedConfig
    from pypto.runtime import RunConfig

    path = ROOT / file
    name = f"docs_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    nranks = module.P[0]
    program, arrays, _ = module.build(nranks)
    config = RunConfig(
        platform="a2a3sim", distributed_config=DistributedConfig(device_ids=list(range(nranks)), num_sub_workers=0)
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            program.compile(*arrays, config=config)(*arrays, config=RunConfig(platform="a2a3sim"))
    except Exception as error:
        assert " --> " in str(error), error  # a report of the language, not a failure of the tools
        lines = str(error).replace(f"{ROOT}/", "").splitlines()
    else:
        raise AssertionError(f"{file} runs without an error")
    end = next((i for i, line in enumerate(lines) if line.lstrip().startswith(("= help", "= fix"))), len(lines) - 1)
    kept = [line.rstrip() for line in lines[: end + 1] if not line.lstrip().startswith("= note")]
    return "\n".join(kept) + "\n"
