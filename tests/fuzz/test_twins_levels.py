# SPDX-License-Identifier: Apache-2.0
"""Results are the same bits at tile level and tensor level, grouped or not, on every instruction set and thread count.

Rules: 02 O-205 (tensor operations in kernels equal tile operations), O-307, O-311; 04 SIM-1 (threads).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from pypto import _core
from pypto.runtime import SimOptions

sys.path.insert(0, str(Path(__file__).parent))
from generator import Program, make
from runner import execute, interpret
from twins_levels import TWINS, source
from values import NUMPY, Illegal


def arguments(twin):
    rng = np.random.default_rng(len(twin.name))
    out = []
    for shape, dt in twin.inputs:
        if dt.startswith("INT"):
            info = np.iinfo(NUMPY[dt])
            out.append(rng.integers(info.min, info.max, shape, dtype=NUMPY[dt], endpoint=True))
        else:
            out.append(rng.standard_normal(shape, dtype=np.float32).astype(NUMPY[dt]))
    shape, dt = twin.result
    return [*out, np.zeros(shape, NUMPY[dt])]


def bits(array: np.ndarray) -> np.ndarray:
    return array.view(f"u{array.itemsize}")


def result(twin, level: str, platform: str = "a2a3sim", threads: int = 1) -> np.ndarray:
    program = Program(f"{twin.name} {level}", source(twin, level), "jit", platform, arguments(twin))
    program.source = program.source.replace("def twin(", "def main(")
    return bits(execute(program, SimOptions(threads=threads))[-1])


@pytest.fixture
def restore():
    yield
    _core.set_emit_debug(False, True)
    _core.use_instruction_set("")


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize("twin", TWINS, ids=lambda t: t.name)
def test_tile_and_tensor_level_agree(twin, platform):
    tile, tensor = result(twin, "tile", platform), result(twin, "tensor", platform)
    np.testing.assert_array_equal(tile, tensor)
    assert len(np.unique(tile)) > 1


@pytest.mark.parametrize("level", ["tile", "tensor"])
@pytest.mark.parametrize("twin", TWINS, ids=lambda t: t.name)
def test_the_way_of_execution_changes_no_bit(twin, level, restore):
    want = result(twin, level)
    for copies, chains in ((True, True), (False, False), (True, False)):
        _core.set_emit_debug(copies, chains)
        np.testing.assert_array_equal(result(twin, level), want, err_msg=f"copies {copies}, chains {chains}")
    _core.set_emit_debug(False, True)
    for threads in (2, 4):
        np.testing.assert_array_equal(result(twin, level, threads=threads), want, err_msg=f"{threads} threads")
    for name in _core.instruction_sets():
        _core.use_instruction_set(name)
        np.testing.assert_array_equal(result(twin, level), want, err_msg=name)
        _core.set_emit_debug(False, False)
        np.testing.assert_array_equal(result(twin, level), want, err_msg=f"{name}, one by one")
        _core.set_emit_debug(False, True)


@pytest.mark.parametrize("first", range(20_000, 20_060, 10))
def test_random_programs_in_every_way(first, restore):
    for seed in range(first, first + 10):
        program = make(seed)
        try:
            views = interpret(program)
        except Illegal:
            continue
        known = [None if v is None else v.live().known for v in views]

        def run(threads: int = 1, program=program):
            return execute(program, SimOptions(threads=threads))

        want = run()

        def same(got, way, want=want, known=known, seed=seed):
            for g, w, k in zip(got, want, known, strict=True):
                if k is not None:
                    np.testing.assert_array_equal(bits(g)[k], bits(w)[k], err_msg=f"seed {seed}, {way}")

        for copies, chains in ((True, True), (False, False)):
            _core.set_emit_debug(copies, chains)
            same(run(), f"copies {copies}, chains {chains}")
        _core.set_emit_debug(False, True)
        for threads in (2, 4):
            same(run(threads), f"{threads} threads")
        for name in _core.instruction_sets()[1:]:
            _core.use_instruction_set(name)
            same(run(), name)
        _core.use_instruction_set("")
