# SPDX-License-Identifier: Apache-2.0
"""Functions that take the name of a kernel, an entry or an operation: a wrong one is told apart, located, with what there is."""

import pypto.language as pl
import pytest
from pypto import ir


@pl.program
class Doubling:
    @pl.function(type=pl.FunctionType.InCore)
    def double_rows(
        self, x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        t = pl.load(x, [0, 0], [16, 16])
        return pl.store(pl.add(t, t), [0, 0], y)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
    ) -> pl.Tensor[[16, 16], pl.FP32]:
        y = self.double_rows(x, y)
        return y


@pl.program
class WithoutKernels:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, 16], pl.FP32], n: pl.Scalar[pl.INT32]):
        m = n + 1


@pl.jit
def two(a: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        c[:, :] = pl.add(a, a)
    return c


def test_unknown_kernel():  # 03 L-2
    with pytest.raises(ValueError) as e:
        ir.comm_skeleton(Doubling, "double_row")
    text = str(e.value)
    assert "program 'Doubling' has no kernel 'double_row'; its kernel is 'double_rows'" in text
    assert "did you mean 'double_rows'?" in text
    assert "test_named_functions.py:" in text and "def main(" in text
    assert ir.comm_skeleton(Doubling, "double_rows")
    for nothing in ("", "main2"):
        with pytest.raises(ValueError, match=r"has no kernel '.*'; its kernel is"):
            ir.comm_skeleton(Doubling, nothing)


def test_program_without_kernels():  # 03 L-2
    with pytest.raises(ValueError) as e:
        ir.comm_skeleton(WithoutKernels, "ring")
    text = str(e.value)
    assert "has no kernel 'ring': it has no kernels at all" in text
    assert "FunctionType.InCore" in text
    assert ir.comm_skeleton(WithoutKernels) == ""


@pytest.mark.parametrize(
    "args, message",
    [
        (lambda: (Doubling, 3), "kernel is the name of a kernel or None, got 3"),
        (lambda: (3,), r"takes a program, got 3"),
        (lambda: (ir.compile(Doubling), "double_rows"), r"a compiled program keeps it as `\.program`"),
        (lambda: (two, None), r"`\.lower\(\*args\)` of a JIT function"),
    ],
)
def test_skeleton_of_something_else(args, message):  # 04 ERR-1
    with pytest.raises(TypeError, match=message):
        ir.comm_skeleton(*args())


def test_unknown_operation():  # 04 ERR-1
    with pytest.raises(ValueError, match=r"there is no operation 'tile\.ad'; did you mean 'tile\.add'\?"):
        ir.get_op("tile.ad")
    with pytest.raises(ValueError, match=r"there is no operation 'quite another'; operations are named as in"):
        ir.get_op("quite another")
    with pytest.raises(TypeError, match="takes the name of an operation such as 'tile.add', got 3"):
        ir.get_op(3)  # type: ignore[arg-type]
    assert ir.get_op("pld.system.notify").name == "pld.system.notify"


def test_entry_of_a_program_with_one():  # 04 PRG-12
    compiled = ir.compile(Doubling)
    for name in ("main", "double_rows", "mian"):
        with pytest.raises(KeyError, match=rf"compiled\['{name}'\]: program 'Doubling' has one entry, 'main'; call"):
            compiled[name]
    with pytest.raises(KeyError, match="has no function 'mian'; its functions are 'double_rows', 'main'"):
        compiled._native.params("mian")
