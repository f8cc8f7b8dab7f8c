# SPDX-License-Identifier: Apache-2.0
"""The pages are programs too: code runs, outputs are what programs print, both languages agree (03 G-1 to G-8)."""

import ast
import functools
import importlib.util
import re
import shlex
import textwrap

import pypto.language.distributed as pld
import pytest
from pages import DOCS, LANGUAGES, REPORT, ROOT, anchors, blocks, pages, report, run, sections, table_rows

EXAMPLES = sorted(p for p in (ROOT / "examples").rglob("*.py"))
LADDER = {p.name[:2]: p for p in EXAMPLES if p.parent.name == "distributed"}
STEPS = [f"{k:02d}" for k in range(1, 17)]
PAGES = [(language, page) for language in LANGUAGES for page in pages(language)]
TUTORIALS = [(language, page) for language, page in PAGES if page.name[:2].isdigit() and int(page.name[:2]) > 5]
FLAGS_BEFORE = {"en": re.compile(r"^With `(--[^`]+)`:$"), "zh": re.compile(r"^加上 `(--[^`]+)`：$")}
TEMPLATE = {
    "en": ["The idea", "Cost card", "Run it", "Expected output", "Walkthrough", "Edge cases", "See also", "Next step"],
    "zh": ["思路", "成本卡片", "运行", "预期输出", "走读", "边界情况", "参见", "下一步"],
}
PREREQUISITES = {"en": "**Prerequisites:**", "zh": "**前置条件：**"}
PITFALL = {"en": "**Fatal pitfall — ", "zh": "**致命陷阱——"}
ORDER = {
    "en": "Suggested reading order: {steps} — this page is step {step}.",
    "zh": "建议阅读顺序：{steps} — 本页为步骤 {step}。",
}
# Rows of the edge tables of 03 section 12, by step.
EDGE_ROWS = dict(zip(STEPS, [7, 5, 5, 11, 8, 7, 6, 5, 4, 7, 7, 7, 5, 5, 5, 7], strict=True))
COLLECTIVES = {"barrier": "04", "allreduce": "11", "broadcast": "12", "allgather": "13", "reduce_scatter": "14"} | {
    "all_to_all": "15",
    "all_to_all_v": "15",
}


def name_of(value):
    return value if isinstance(value, str) else f"{value.parent.name}-{value.stem}"


each_page = pytest.mark.parametrize("language,page", PAGES, ids=name_of)
each_tutorial = pytest.mark.parametrize("language,page", TUTORIALS, ids=name_of)


def step_of(page) -> str:
    return f"{int(page.name[:2]) - 5:02d}"


# ---------------------------------------------------------------- programs and outputs


@functools.cache
def dedented(path) -> list[str]:
    return path.read_text().splitlines()


def is_excerpt(block: str) -> bool:
    """True if the lines stand together in an example, apart from a common indentation."""
    want = textwrap.dedent(block).rstrip().splitlines()
    for path in EXAMPLES:
        lines = dedented(path)
        for at in range(len(lines) - len(want) + 1):
            if want[0].strip() == lines[at].strip():
                here = textwrap.dedent("\n".join(lines[at : at + len(want)])).splitlines()
                if here == want:
                    return True
    return False


@functools.cache
def program_error(text: str, folder: str) -> str:
    path = f"{folder}/page.py"
    with open(path, "w") as file:
        file.write(text)
    done = run([path])
    return done.stderr if done.returncode or done.stderr else ""


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return str(tmp_path_factory.mktemp("pages"))


@each_page
def test_code_is_an_excerpt_or_runs(language, page, folder):
    for block in blocks(page.read_text()):
        if block.kind == "python" and not is_excerpt(block.text):
            assert block.text.startswith("import "), f"{page.name}:{block.line}: neither in an example nor a program"
            assert program_error(block.text, folder) == "", f"{page.name}:{block.line}"


@each_page
def test_excerpts_are_whole(language, page):
    """An excerpt that ends in the middle of a statement explains nothing."""
    for block in blocks(page.read_text()):
        if block.kind == "python":
            inside = "def excerpt():\n" + textwrap.indent(textwrap.dedent(block.text), "    ")
            ast.parse(inside, f"{page.name}:{block.line}")


@functools.cache
def output_of(command: str) -> str:
    words = shlex.split(command)
    assert words[0] == "python", command
    done = run(words[1:])
    assert (done.returncode, done.stderr) == (0, ""), (command, done.stderr)
    return "".join(line.rstrip() + "\n" for line in done.stdout.splitlines())


def expected_outputs(language: str, text: str) -> dict[str, str]:
    """Command -> the output that the page promises for it."""
    commands = [b.text.strip() for b in blocks(text) if b.kind == "bash"]
    texts = [b for b in blocks(text) if b.kind == "text" and not b.before.startswith("<!-- report of")]
    plain = [b.text for b in texts if not FLAGS_BEFORE[language].match(b.before)]
    flagged = {m[1]: b.text for b in texts if (m := FLAGS_BEFORE[language].match(b.before))}
    assert len(plain) == bool(commands), "one output for the commands without a block of their own"
    assert all(any(c.endswith(f) for c in commands) for f in flagged), f"no command for {list(flagged)}"
    return {c: next((t for f, t in flagged.items() if c.endswith(f)), plain[0]) for c in commands}


@each_page
def test_commands_print_what_the_page_says(language, page):
    for command, want in expected_outputs(language, page.read_text()).items():
        assert output_of(command) == want, f"{page.name}: {command}"


@functools.cache
def report_now(file: str) -> str:
    return report(file)


@each_page
def test_reports_are_what_the_programs_say(language, page):  # 03 X-72
    for match in REPORT.finditer(page.read_text()):
        now = report_now(match["file"])
        assert match["text"] == now, "out of date; run: PYTHONPATH=python python tests/docs/update.py"


@each_page
def test_kinds_of_blocks(language, page):
    """Programs, commands and outputs are tested above; what has no kind is a diagram."""
    for block in blocks(page.read_text()):
        assert block.kind in ("python", "bash", "text", ""), f"{page.name}:{block.line}: {block.kind}"


def test_ring_diagram_follows_its_formula():
    text = next(p for language, p in TUTORIALS if language == "en" and p.name.startswith("15-")).read_text()
    diagram = next(b.text for b in blocks(text) if b.kind == "")
    rows = re.findall(r"^k = (\d) +(\d) +(\d) +(\d) +(\d) ", diagram, re.MULTILINE)
    nranks = 4
    want = [(k, *((me + 2 * nranks - k - 2) % nranks for me in range(nranks))) for k in range(2 * (nranks - 1))]
    assert [tuple(map(int, row)) for row in rows] == want


# ---------------------------------------------------------------- the form of the pages


@each_page
def test_links_resolve(language, page):
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text()):
        assert target.startswith("http") or (page.parent / target).is_file(), f"{page.name}: {target}"
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", page.read_text()):
        assert anchor in anchors(page.parent / target if target else page), f"{page.name}: {target}#{anchor}"
    for path in re.findall(r"`((?:examples|docs|tests|tools)/[\w./-]+\.\w+)`", page.read_text()):
        assert (ROOT / path).is_file(), f"{page.name}: {path}"


@each_page
def test_no_machine_paths(language, page):
    assert not re.search(r"/(work|tmp|home|root)/", page.read_text())


@pytest.mark.parametrize("language", LANGUAGES)
def test_one_page_per_step(language):  # 03 G-1
    names = [page.name for lang, page in TUTORIALS if lang == language]
    assert names == [f"{int(step) + 5:02d}-{LADDER[step].stem[3:]}.md" for step in STEPS]


@each_tutorial
def test_template(language, page):  # 03 G-4
    text, step = page.read_text(), step_of(page)
    head = [line for line in text.split("\n## ")[0].split("\n\n") if line.strip()]
    assert head[0].startswith("# ")
    assert len(head) == 4, "title, one-sentence summary, prerequisites, reading order"
    assert head[2].startswith(PREREQUISITES[language])
    assert head[3].strip() == ORDER[language].format(steps=" → ".join(STEPS), step=step)
    want = [name for name in TEMPLATE[language] if step >= "05" or name != TEMPLATE[language][1]]
    assert list(sections(text)) == want
    edge = sections(text)[TEMPLATE[language][5]]
    assert edge.strip().startswith(PITFALL[language])
    assert len(table_rows(edge)) == EDGE_ROWS[step]
    assert LADDER[step].name in sections(text)[TEMPLATE[language][2]]
    following = f"({int(step) + 6:02d}-" if step != "16" else "examples/models/"
    assert following in sections(text)[TEMPLATE[language][7]]


def test_both_languages_have_the_same_pages():
    names = [[p.relative_to(DOCS / language) for p in pages(language)] for language in LANGUAGES]
    assert names[0] == names[1]
    assert len(names[0]) >= 24


@pytest.mark.parametrize("page", [p for language, p in PAGES if language == "en"], ids=name_of)
def test_both_languages_show_the_same(page):
    english = page.read_text()
    chinese = (DOCS / "zh" / page.relative_to(DOCS / "en")).read_text()
    assert [(b.kind, b.text) for b in blocks(english)] == [(b.kind, b.text) for b in blocks(chinese)]
    rows = table_rows(english), table_rows(chinese)
    assert len(rows[0]) == len(rows[1])
    rule = re.compile(r"\b[A-Z]{1,3}-\d+\b")
    for left, right in zip(*rows, strict=True):
        assert sorted(rule.findall(left)) == sorted(rule.findall(right)), (left, right)
    assert links_of(page) == links_of(DOCS / "zh" / page.relative_to(DOCS / "en"))


def links_of(page) -> list[tuple[str, int]]:
    """Target and number of the section there, for each link; headings differ between the languages."""
    found = re.findall(r"\]\(([^)#]*)(?:#([^)]+))?\)", page.read_text().replace("../zh/", "../en/"))
    return sorted((target, anchors(page.parent / target).index(anchor) if anchor else -1) for target, anchor in found)


# ---------------------------------------------------------------- reveal and coverage


@functools.cache
def taught(language: str) -> dict[str, str]:
    """Exported name -> the step that the map of the index gives it."""
    index = (DOCS / language / "distributed" / "05-tutorials.md").read_text()
    found = {}
    for row in table_rows(index):
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if len(cells) == 5 and not cells[0].isdigit():
            for name in re.findall(r"pld(?:\.\w+)+|pl\.dynamic", cells[0]):
                found[name] = cells[4]
    return found


def test_maps_agree():
    assert taught("en").keys() == taught("zh").keys()
    assert {k: v for k, v in taught("en").items() if v in STEPS} == {
        k: v for k, v in taught("zh").items() if v in STEPS
    }


@each_tutorial
def test_no_builtin_before_its_step(language, page):  # 03 G-3
    step = step_of(page)
    for text in (page.read_text(), LADDER[step].read_text()):
        for name, reveal in COLLECTIVES.items():
            if step < reveal:
                assert not re.search(rf"\bpld\.tensor\.{name}\b|(?<!\w){name}\(", text), (
                    f"{name} belongs to step {reveal}"
                )


@each_tutorial
def test_each_step_uses_what_came_before(language, page):  # 03 G-3
    step = step_of(page)
    # Marked as pointers on their pages, not as required knowledge.
    pointers = {"04": {"pld.tile.remote_load"}, "05": {"pld.AtomicType"}}.get(step, set())
    for text in (page.read_text(), LADDER[step].read_text()):
        for name, when in taught(language).items():
            if when in STEPS and when > step and name not in pointers:
                assert not re.search(rf"{re.escape(name)}\b", text), f"{name} is taught by step {when}"


def exported() -> set[str]:
    names = {f"pld.{name}" for name in pld.__all__} - {"pld.system", "pld.tensor", "pld.tile"}
    for space in ("system", "tensor", "tile"):
        for name in getattr(pld, space).__all__:
            if f"pld.{name}" not in names or name in ("remote_load", "remote_store"):
                names.add(f"pld.{space}.{name}")
    return names


@pytest.mark.parametrize("name", sorted(exported()))
def test_everything_exported_is_taught(name):  # 03 G-1, G-8
    step = taught("en").get(name)
    assert step, f"no row of the abstractions map names {name}"
    for language in LANGUAGES:
        chapter = DOCS / language / "distributed"
        if step in STEPS:
            page = chapter / f"{int(step) + 5:02d}-{LADDER[step].stem[3:]}.md"
            text = page.read_text() + LADDER[step].read_text()
        else:
            text = "".join(p.read_text() for p in chapter.glob("0[0-4]*.md"))
        assert re.search(rf"{re.escape(name)}\b", text), f"step {step} does not show {name}"


# ---------------------------------------------------------------- the operation reference


@pytest.mark.parametrize("language", LANGUAGES)
def test_operation_reference_is_up_to_date(language):
    from pypto import _core

    spec = importlib.util.spec_from_file_location("gen_op_reference", ROOT / "tools" / "gen_op_reference.py")
    tool = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = tool
    spec.loader.exec_module(tool)
    now = tool.page(_core.op_table(), tool.read_table(tool.TABLE.read_text()), language)
    assert tool.PAGES[language].read_text() == now, (
        "out of date; run: PYTHONPATH=python python tools/gen_op_reference.py"
    )
    assert "pld.tensor.put(" in now and "pl.tile.load(" in now
