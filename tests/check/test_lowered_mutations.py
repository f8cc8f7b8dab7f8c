# SPDX-License-Identifier: Apache-2.0
"""Every synchronising statement of every lowered collective is needed, on both rails (03 section 10.2, X-73).

The program runs the collective for two rounds with data staged again, is lowered, printed, broken in one place and read
back; the results and the signal's cells are its golden.
"""

import ast
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pypto.language as pl
import pytest
from mutants import mutants
from pypto import Error, ir
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions, last_report

sys.path.insert(0, str(Path(__file__).parents[1] / "distributed"))
from collective_programs import Case, arrays, call_arrays, cells_shape, golden, results, source

CASES = {
    "allreduce-mesh": {"size": 5000},  # two pieces
    "allreduce-ring": {"size": 257, "ring": True},
    "allreduce-ring-pieces": {"size": 20000, "ring": True},
    "broadcast": {"root": 1},
    "allgather": {},
    "reduce_scatter": {},
    "all_to_all": {},
    "all_to_all_v": {},
    "barrier": {},
    "host-allreduce-mesh": {"size": 600},
    "host-allreduce-blocks": {"size": 900, "blocks": 2, "lanes": 2},
    "host-allreduce-ring": {"size": 257, "ring": True},
    "host-broadcast": {"root": 1},
    "host-allgather": {},
    "host-reduce_scatter": {},
    "host-all_to_all": {},
    "host-all_to_all_v": {},
    "host-barrier": {},
}

# Survivors: case, mutant and statement (regular expressions), worlds, and why it means the same as the program.
ANY = (2, 3, 4)
EQUIVALENT = [
    (r"(?!.*ring).*", r"^set .*\(first\)$", ANY, "the first credit of all finds its cell at 0"),
    (r"all_to_all_v", r"^add .*\(first\)$", ANY, "the first count of all finds its cell at 0"),
    (r".*ring.*", r"^set .*\(first\)$", ANY, "the entry credit finds its cell at 0"),
    (
        r".*ring.*",
        r"^set .*signal, left(_\d+)?, \[0, left",
        ANY,
        "the exit credit is the only one of its cell, and P - 1 hops order it after the clearing of the last ring",
    ),
    (
        r"allreduce-ring",
        r"^set .*\[k \+ ",
        ANY,
        "one piece: one credit per step, and in the first ring its cell is at 0",
    ),
    (r".*allreduce-ring", r"^set .*\[k(_2)? \+ ", (2,), "with two ranks the entry credit orders it after the clearing"),
    (
        r".*ring.*",
        r"^wrong row .*signal, my_rank(_\d+)?, \[k_\d+, left",
        (2,),
        "the rows cleared are the same two in the other order",
    ),
]


def make_case(name, world):
    kind = name.removeprefix("host-").split("-")[0]
    fields = {"size": 64, "ring": False, "root": 0, "blocks": 1, "lanes": 1, **CASES[name]}
    return Case(
        kind=kind,
        host=name.startswith("host-"),
        world=world,
        first=0,
        shape=(1, fields["size"]),
        dtype="FP32",
        op="Sum",
        repeats=2,
        late=-1,
        symbols=False,
        rows=2,
        **fields,
    )


def lowered(case, load_source) -> str:
    program = load_source(source(case)).program
    config = RunConfig(platform="a2a3sim", distributed_config=DistributedConfig(device_ids=list(range(case.world))))
    return program.lower(*call_arrays(case, arrays(case, 1)), config=config).as_python()


def synchronising(text):
    """The functions that notify or wait."""
    return {
        f.name
        for f in ast.walk(ast.parse(text))
        if isinstance(f, ast.FunctionDef) and re.search(r"pld\.system\.(notify|wait)\(", ast.unparse(f))
    }


def outcome(case, text, checks="default") -> str:
    given = arrays(case, 1)
    want = golden(case, given[0], given[1], given[2])
    call = [a.copy() for a in call_arrays(case, given)]
    devices = DistributedConfig(device_ids=list(range(case.world)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compiled = ir.compile(pl.parse(text), platform="a2a3sim", distributed_config=devices)
        except Error as error:
            return f"rejected: {error}"
    compiled(*call, config=RunConfig(platform="a2a3sim", sim=SimOptions(collect=True, checks=checks)))
    found = [d for d in last_report().diagnostics if d.severity != "note"]
    if found:
        return f"reported: {found[0].id}"
    if not np.array_equal(results(case, call), want):
        return "golden mismatch"
    if not np.array_equal(call[3], np.zeros((case.world, *cells_shape(case)), np.int32)):
        return "cells left"
    return "clean"


def equivalent(name, mutant, statement, world) -> bool:
    what = f"{mutant.name} {statement}"
    return any(re.fullmatch(n, name) and re.search(m, what) and world in worlds for n, m, worlds, _ in EQUIVALENT)


def statements(text) -> list[str]:
    """The lines; the first notify on each window is marked."""
    lines, seen = [line.strip() for line in text.splitlines()], set()
    for i, line in enumerate(lines):
        found = re.match(r"pld\.system\.notify\((\w+),", line)
        if found and found[1] not in seen:
            seen.add(found[1])
            lines[i] += " (first)"
    return lines


def check(name, world, load_source):
    case = make_case(name, world)
    text = lowered(case, load_source)
    assert outcome(case, text, "strict") == "clean"  # it reads back and runs to the same result
    lines = statements(text)
    survivors = []
    broken = mutants(text, synchronising(text), str(world))
    for mutant in broken:
        statement = lines[mutant.line - 1]
        if outcome(case, mutant.text) == "clean" and not equivalent(name, mutant, statement, world):
            survivors.append((mutant.key, statement))
    assert broken
    assert not survivors, f"{len(survivors)} of {len(broken)} mutants: {survivors}"


@pytest.mark.parametrize("name", ["barrier", "allreduce-mesh", "allreduce-ring", "host-allreduce-blocks"])
def test_mutants_of_lowered_collectives(name, load_source):
    check(name, 3, load_source)


@pytest.mark.nightly
@pytest.mark.parametrize("world", [2, 3, 4])
@pytest.mark.parametrize("name", CASES)
def test_more_mutants_of_lowered_collectives(name, world, load_source):
    check(name, world, load_source)
