# SPDX-License-Identifier: Apache-2.0
"""Arguments of another kind than the surface takes: the error names the argument and what to write, never Python's own."""

import numpy as np
import pypto.language as pl
import pytest
from pypto import backend, ir, passes, runtime
from pypto.passes import PassContext


@pl.program
class Negate:
    @pl.function(type=pl.FunctionType.Orchestration)
    def negate(self, x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:, :] = pl.neg(x)


X = np.arange(256, dtype=np.float32).reshape(16, 16)


def call(config):
    ir.compile(Negate)(X, np.zeros_like(X), config=config)


CASES = {
    "enum by list": (lambda: pl.AtomicType[[1]], KeyError, r"AtomicType\[\.\.\.\] takes the name of a member"),
    "enum by unknown name": (lambda: pl.Level["CORE"], KeyError, r"takes the name of a member \(.*CORE_GROUP"),
    "enum of list": (lambda: pl.FunctionType([1]), ValueError, r"\[1\] is not a valid FunctionType; members: "),
    "enum of number": (lambda: pl.PadValue(77), ValueError, r"77 is not a valid PadValue; members: null = "),
    "config of a call": (lambda: call(3), TypeError, r"a call of 'negate': config must be a RunConfig .*, got 3"),
    "config of a worker": (
        lambda: runtime.ChipWorker().run(ir.compile(Negate), X, X.copy(), config="a2a3sim"),
        TypeError,
        r"ChipWorker\.run\(\): config must be a RunConfig",
    ),
    "config of run": (lambda: runtime.run(Negate, config={}), TypeError, r"run: config must be a RunConfig"),
    "call config": (lambda: ir.compile(Negate).build_call_config(3), TypeError, "must be a RunConfig"),
    "verification level": (
        lambda: ir.compile(Negate, verification_level=[1]),
        TypeError,
        r"verification_level must be a passes\.VerificationLevel such as passes\.VerificationLevel\.",
    ),
    "diagnostic phase": (
        lambda: ir.compile(Negate, diagnostic_phase="all"),
        TypeError,
        r"diagnostic_phase must be a passes\.DiagnosticPhase .*got 'all'",
    ),
    "disabled": (
        lambda: ir.compile(Negate, disabled_diagnostics=[1]),
        TypeError,
        "must be a passes.DiagnosticCheckSet",
    ),
    "runtime": (lambda: ir.compile(Negate, runtime=[1]), TypeError, r"runtime must be a passes\.RuntimeKind"),
    "context level": (lambda: PassContext(verification_level=1.5), TypeError, "PassContext: verification_level must"),
    "instruments": (lambda: PassContext(instruments=3), TypeError, "instruments must be a list of instruments, got 3"),
    "passes": (lambda: passes.PassPipeline(3), TypeError, "passes must be a list of passes, got 3"),
    "properties": (lambda: passes.IRPropertySet(3), TypeError, "properties must be a list of IRProperty members"),
    "verification mode": (lambda: passes.VerificationInstrument("after"), TypeError, r"mode must be a passes\.Verific"),
    "backend": (lambda: backend.get_backend_instance([1]), TypeError, "backend_type must be a BackendType such as"),
    "benchmark": (lambda: runtime.benchmark(3, []), TypeError, "benchmark takes a compiled program, got 3"),
    "benchmark of a program": (lambda: runtime.benchmark(Negate, []), TypeError, r"compile it first: ir\.compile"),
    "explore": (lambda: runtime.explore(Negate, X), TypeError, r"explore takes a compiled program.*compile it first"),
    "explore seed": (lambda: runtime.explore(ir.compile(Negate), X, seed="a"), TypeError, "seed must be an int"),
    "worker of a number": (lambda: runtime.DistributedWorker(3), TypeError, "must be a list of distributed compiled"),
    "sub-workers": (
        lambda: ir.DistributedConfig(device_ids=[0, 1], num_sub_workers=[1]),
        TypeError,
        r"num_sub_workers must be an int, got \[1\]",
    ),
    "device shape": (
        lambda: runtime.DeviceTensor(64, 3, pl.FP32),
        TypeError,
        "DeviceTensor shape must be a list of ints",
    ),
    "scalar type": (lambda: runtime.ScalarSpec("n", 3, [1]), ValueError, r"ctype must be one of .*, got \[1\]"),
    "conversion": (lambda: ir.op_conversion([1]), TypeError, "op_conversion: op must be the name of an operation"),
    "level number": (lambda: ir.level_to_linqu_level([1]), ValueError, r"\[1\] is no level"),
}


@pytest.mark.parametrize("case", CASES)
def test_argument_of_another_kind(case):  # 04 ERR-1
    make, error, message = CASES[case]
    with pytest.raises(error, match=message):
        make()
