# SPDX-License-Identifier: Apache-2.0
"""A program as a class and as JIT functions is one program: same text after reading and after lowering, same results."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from pypto import _core, ir
from pypto.runtime import RunConfig

sys.path.insert(0, str(Path(__file__).parent))
from twins import TWINS, Twin

PLATFORMS = {"a2a3sim": "a2a3", "a5sim": "a5"}


def neutral(program: object) -> str:
    """Text of a program with its own name and its functions' names replaced by their order."""
    names = {name: f"f{i}" for i, name in enumerate(program.functions)}
    names[program.name] = "P"
    return re.sub(r"(?<=def )\w+|(?<=self\.)\w+|(?<=class )\w+", lambda m: names.get(m[0], m[0]), program.as_python())


def ordered(program: object) -> list[str]:
    """Functions one by one, kernels before the entry, whatever the order of definition."""
    return sorted(re.split(r"\n    @pl\.function", neutral(program))[1:])


def outputs(twin: Twin, args: list) -> list:
    return args[len(args) - len(twin.golden(*inputs(twin, args))) :]


def inputs(twin: Twin, args: list) -> list:
    count = twin.golden.__code__.co_argcount
    return args[:count]


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("twin", TWINS, ids=lambda t: t.name)
def test_both_forms_are_one_program(twin, platform):  # 01 L-41, L-67; 04 SER-3
    args = twin.arguments(np.random.default_rng(1))
    jit = twin.jit.lower(*args, config=RunConfig(platform=platform))
    read = twin.jit.compile(*args, config=RunConfig(platform=platform))._native.source
    cls = twin.cls.clone(PLATFORMS[platform])
    lowered = _core.device_form(_core.compile(cls, arch=PLATFORMS[platform]).program)
    assert ordered(read) == ordered(cls)
    assert ordered(jit) == ordered(lowered)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("twin", TWINS, ids=lambda t: t.name)
def test_both_forms_compute_the_same(twin, platform, tmp_path):
    rng = np.random.default_rng(2)
    args = twin.arguments(rng)
    again = [a.copy() for a in args]
    twin.jit(*args, config=RunConfig(platform=platform))
    ir.compile(twin.cls, output_dir=str(tmp_path), platform=platform, dump_passes=False)(*again)
    want = twin.golden(*inputs(twin, args))
    for got, other, w in zip(outputs(twin, args), outputs(twin, again), want, strict=True):
        np.testing.assert_array_equal(got, other)
        np.testing.assert_allclose(got, w, rtol=1e-4, atol=1e-5)
