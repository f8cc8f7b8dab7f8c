# SPDX-License-Identifier: Apache-2.0
"""Findings of the compiler that strict checking makes errors: which class, when, and what becomes of the call."""

import numpy as np
import pytest
from pypto import CompileError
from pypto.ir.distributed_compiled_program import DistributedCompiledProgram
from pypto.runtime import RunConfig, SimOptions, last_report
from rows import COPY, arrays, compile_for, line_of, text_of

STRICT = RunConfig(sim=SimOptions(checks="strict"))
WAIT = f"pld.system.wait(signal, [0, 0], 0, cmp=pld.WaitCmp.Ge)  # <- here\n{COPY}"


def refused(call, text):
    """The call raises X-69 as an error of the compiler (04 section 20), and no rank is said to have run."""
    with pytest.raises(CompileError) as caught:
        call()
    error = caught.value
    assert isinstance(error, ValueError) and not isinstance(error, RuntimeError)
    assert [d.id for d in error.diagnostics] == ["X-69"] and error.diagnostic.severity == "error"
    assert error.diagnostic.line == line_of(text) and error.diagnostic.help == "tags and counts start at 1"
    assert not any("rank" in str(n) for n in error.diagnostic.notes), error.diagnostic.notes


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
def test_before_the_first_dispatch(platform, load_source, tmp_path):  # 03 M-37, X-0
    text = text_of(kernel=WAIT)
    x, y = arrays(2)
    compiled, said = compile_for(load_source(text).program, (x, y), 2, platform)
    assert any("X-69" in w for w in said)
    refused(lambda: compiled(x, y, config=STRICT), text)
    assert not y.any()
    with compiled.prepare() as worker:
        refused(lambda: worker(x, y, config=STRICT), text)
        assert not y.any()
        worker(x, y)
    np.testing.assert_array_equal(y, x)
    stored = DistributedCompiledProgram.from_dir(compiled.output_dir)  # recorded with the program
    refused(lambda: stored(x, y, config=STRICT), text)


def test_collected(load_source):  # 04 OBS-10
    text = text_of(kernel=WAIT)
    x, y = arrays(2)
    compiled, _ = compile_for(load_source(text).program, (x, y), 2)
    compiled(x, y, config=RunConfig(sim=SimOptions(checks="strict", collect=True)))
    report = last_report()
    assert not report.ok and [d.id for d in report.diagnostics] == ["X-69"]
    np.testing.assert_array_equal(y, x)
    refused(report.raise_if_failed, text)
