# SPDX-License-Identifier: Apache-2.0
"""Every row of the operations page: its example runs, also with keywords in place of positions and with `attrs=`."""

import ast
import re
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from opkit import NUMPY, define
from pypto import _core, ir
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import op_examples  # noqa: E402
import op_programs  # noqa: E402

TABLE = _core.op_table()
ROWS = [(n, name, sig, row) for n, name, sig, _, row in TABLE
        if not n.startswith("pld") and name not in op_programs.SHOWN_IN]  # fmt: skip
OPERANDS = op_examples.OPERANDS


def data(name):
    dtype, shape = OPERANDS[name]
    random = np.random.default_rng([ord(c) for c in name])
    if dtype.startswith(("FP", "BF")):
        return random.standard_normal(shape).astype(np.float32).astype(NUMPY[dtype])
    return random.integers(0, 16 if name != "sa" and name != "sb" else 127, shape).astype(NUMPY[dtype])


def program(example: str, place: str):
    """The frame around an example, and the names of its operands."""
    used = [n for n in OPERANDS if re.search(rf"\bt?{n}\b", example)]
    tiles = [n for n in used if re.search(rf"\bt{n}\b", example)]
    layouts = {"sa": ", pl.MX_A_ZZ", "sb": ", pl.MX_B_NN"}
    parameters = [f"{n}: pl.Tensor[{OPERANDS[n][1]}, pl.{OPERANDS[n][0]}{layouts.get(n, '')}]" for n in used]
    parameters += ["nn: pl.Tensor[[1], pl.INT32]", "o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]"]
    loads = ["n = pl.read(nn, [0])"]
    loads += [f"t{n} = pl.load({n}, {[0] * len(OPERANDS[n][1])}, {OPERANDS[n][1]})" for n in tiles]
    kernel = "\n".join(
        [*loads, example, "" if re.search(r"^o = ", example, re.M) else "o[:, :] = pl.full([16, 64], pl.FP32, 1.0)"]
    )
    if place == "orchestration":
        body = textwrap.indent(example if "copy(" in example else example + "\no = copy(x, o)", "    ")
        if "x:" not in ", ".join(parameters):
            parameters.insert(0, "x: pl.Tensor[[16, 64], pl.FP32]")
            used.insert(0, "x")
    else:
        body = "    with pl.at(level=pl.Level.CORE_GROUP):\n" + textwrap.indent(kernel, " " * 8)
    text = f"""
@pl.jit.incore
def copy(a: pl.Tensor[[16, 64], pl.FP32], b: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    b = pl.store(pl.load(a, [0, 0], [16, 64]), [0, 0], b)
    return b

@pl.jit
def f({", ".join(parameters)}):
{body}
    return o
"""
    return define(text)["f"], used


def parameter_names(signature: str) -> list[str]:
    """Names of the positional parameters of a signature of the table."""
    names = []
    for part in re.split(r",\s*(?![^(\[]*[)\]])", signature):
        part = part.strip()
        if part == "*":
            break
        if part:
            names.append(part.split("=")[0])
    return names


def respelled(example: str, spelling: str, signature: str, extra: str = "") -> str:
    """The example with every positional argument of the row's own call given by keyword, last parameter first."""
    names = parameter_names(signature)

    class Change(ast.NodeTransformer):
        def visit_Call(self, node):
            self.generic_visit(node)
            if ast.unparse(node.func) == spelling:
                by_name = [ast.keyword(names[k], a) for k, a in enumerate(node.args)]
                node.keywords = [*node.keywords, *reversed(by_name)]
                node.args = []
                if extra:
                    node.keywords += ast.parse(f"g({extra})", mode="eval").body.keywords
            return node

    return ast.unparse(Change().visit(ast.parse(example)))


def check(row, change):
    """Run the changed example; returns the output and the program as text."""
    namespace, name, signature, canonical = row
    entry = op_examples.entry(namespace, name, canonical)
    assert entry is not None, f"tools/op_examples.py has no entry for {namespace}.{name}"
    example = op_examples.example(namespace, name, entry)
    assert f"{namespace}.{name}(" in example
    f, used = program(change(example, f"{namespace}.{name}", signature), entry.place)
    arguments = [data(n) for n in used] + [np.array([5], np.int32), np.zeros((16, 64), np.float32)]
    config = RunConfig(platform=entry.platform)
    f(*arguments, config=config)
    return arguments[-1], f.lower(*arguments, config=config).as_python()


def by_position_only(row):  # 01 L-138, L-139
    return row[1] in ("no_dep", "dump_tag")


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("row", ROWS, ids=[f"{n}.{name}" for n, name, _, _ in ROWS])
def test_example(
    row,
):  # O-101, O-102, O-103, O-104, O-105, O-106, O-107: every spelling runs; O-109, O-110, O-112: keywords and attrs= change nothing
    out, text = check(row, lambda example, *_: example)
    assert np.isfinite(out).all() and out.any()
    if parameter_names(row[2]) and not by_position_only(row):
        again, named = check(row, lambda *a: respelled(*a, extra="attrs={'note': 1, 'list': [1, 2]}"))
        np.testing.assert_array_equal(out, again)
        assert named == text


@pytest.mark.parametrize("row", [r for r in ROWS if r[0].startswith("pl.system")], ids=lambda r: r[1])
def test_span_is_ignored(row):  # 02 sections 21 and 23
    entry = op_examples.entry(row[0], row[1], row[3])
    if entry.place == "kernel":
        check(row, lambda *a: respelled(*a, extra="span=None"))


def test_every_row_is_documented():
    for namespace, name, _, _, canonical in TABLE:
        shapes, types, numerics = op_examples.facts(namespace, name, canonical)
        assert shapes and types and numerics, f"{namespace}.{name}"


def test_programs_of_the_page(
    tmp_path,
):  # O-2101, O-2102, O-2103, O-2104, O-2105, O-2106, O-2107, O-2108, O-2301, O-2303; 03 O-27
    random = np.random.default_rng(7)
    programs = {
        k: define("import pypto.language.distributed as pld\n" + text) for k, text in op_programs.PROGRAMS.items()
    }
    x, a = (random.standard_normal((n, n)).astype(np.float32) for n in (16, 32))
    o = np.zeros_like(x)
    ir.compile(programs["channel"]["Channel"], output_dir=tmp_path / "c", dump_passes=False)(x, o)
    np.testing.assert_allclose(o, 4 * x @ x, rtol=1e-4, atol=1e-4)
    o = np.zeros_like(a)
    programs["lanes"]["lanes"](a, o)
    np.testing.assert_allclose(o, (a @ a + 1) @ a, rtol=1e-3, atol=1e-3)
    rows = random.standard_normal((8, 32)).astype(np.float32)
    o = np.zeros_like(rows)
    programs["barrier"]["barrier"](rows, np.zeros_like(rows), np.zeros(16, np.int32), o)
    np.testing.assert_array_equal(o, 2 * rows[::-1])
    o = np.zeros_like(x)
    programs["events"]["events"](x, np.zeros(256, np.int64), o)
    np.testing.assert_allclose(o, x @ x + 1, rtol=1e-4, atol=1e-4)
    y = np.zeros((2, 2, 1), np.int32)
    config = RunConfig(platform="a2a3sim", distributed_config=DistributedConfig(device_ids=[0, 1]))
    programs["waiter"]["program"](y, config=config)
    np.testing.assert_array_equal(y.ravel(), [0, 7, 7, 0])
