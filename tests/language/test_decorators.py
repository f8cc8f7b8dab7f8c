# SPDX-License-Identifier: Apache-2.0
"""`pl.function`, `pl.program`, `pl.inline`: forms, options, closures (01 sections 5.1, 5.4, 5.5)."""

import numpy as np
import pypto.language as pl
import pytest
from pypto import ir
from pypto.language.parser.diagnostics import ParserSyntaxError, ParserTypeError
from pypto.runtime import RunConfig

KIND = pl.FunctionType.InCore


def make_program(rows, cols, dtype=pl.FP32, factor=2.0):
    """A factory whose names appear in annotations, decorators and bodies."""
    shape = [rows, cols]

    @pl.program
    class Scaled:
        """Docstrings and other members are ignored."""

        LIMIT = 3

        @pl.function(type=pl.FunctionType.InCore)
        def kernel(
            self, x: pl.Tensor[[rows, cols], dtype], y: pl.Out[pl.Tensor[shape, dtype]]
        ) -> pl.Tensor[shape, dtype]:
            t: pl.Tile[[rows, cols], dtype] = pl.load(x, [0, 0], shape)
            return pl.store(pl.mul(t, factor), [0, 0], y)

        def helper(self):
            return self.LIMIT

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[shape, dtype], y: pl.Out[pl.Tensor[shape, dtype]]) -> pl.Tensor[shape, dtype]:
            y = self.kernel(x, y)
            return y

    return Scaled


def test_program_object():  # L-43, PRG-1
    program = make_program(8, 16)
    assert isinstance(program, ir.Program) and program.name == "Scaled"
    assert list(program.functions) == ["kernel", "main"] and len(program.functions) == 2
    assert [str(k) for k, _ in program.functions.items()] == ["kernel", "main"]
    assert program.get_function("nothing") is None
    kernel = program.get_function("kernel")
    assert kernel is program.functions["kernel"] and isinstance(kernel, ir.Function)
    assert kernel.func_type == pl.FunctionType.InCore and kernel.level == pl.Level.CHIP_DIE and kernel.role is None
    assert [p.name for p in kernel.params] == ["x", "y"]
    assert kernel.param_directions == [ir.ParamDirection.In, ir.ParamDirection.Out]
    assert str(kernel.params[0].type) == "pl.Tensor[[8, 16], pl.FP32]" and kernel.params[0].type.shape == [8, 16]
    assert [str(t) for t in kernel.return_types] == ["pl.Tensor[[8, 16], pl.FP32]"]
    assert kernel.requires_runtime_binding is False
    with pytest.raises(AttributeError):
        kernel.nonsense
    with pytest.raises((AttributeError, TypeError)):
        kernel.name = "other"


def test_factories_close_over_everything(tmp_path):  # L-43, L-77
    for rows, cols, factor in ((8, 16, 2.0), (4, 32, -0.5)):
        compiled = ir.compile(
            make_program(rows, cols, factor=factor), output_dir=tmp_path / f"{rows}", dump_passes=False
        )
        x = np.random.default_rng(rows).standard_normal((rows, cols)).astype(np.float32)
        y = np.zeros_like(x)
        compiled(x, y)
        np.testing.assert_array_equal(y, x * np.float32(factor))


def test_methods_may_call_later_methods():
    @pl.program
    class Later:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[8, 16], pl.FP32], y: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
            y = self.kernel(x, y)
            return y

        @pl.function(type=pl.FunctionType.InCore)
        def kernel(self, x: pl.Tensor[[8, 16], pl.FP32], y: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
            y = pl.store(pl.load(x, [0, 0], [8, 16]), [0, 0], y)
            return y

    assert Later.entry.name == "main"


def test_class_without_functions():
    with pytest.raises(ParserSyntaxError, match=r"contains no @pl\.function"):

        @pl.program
        class Empty:
            def plain(self):
                return 1


def test_options_in_a_class_are_literal():  # L-42
    with pytest.raises(ParserSyntaxError, match="Unknown FunctionType value"):

        @pl.program
        class ByName:
            @pl.function(type=KIND)
            def k(self, x: pl.Tensor[[8, 16], pl.FP32]):
                return x

    with pytest.raises(ParserSyntaxError, match=r"does not accept \*\*kwargs"):
        options = {"type": pl.FunctionType.InCore}

        @pl.program
        class Spread:
            @pl.function(**options)
            def k(self, x: pl.Tensor[[8, 16], pl.FP32]):
                return x

    with pytest.raises(ParserSyntaxError, match="Unknown FunctionType value: Kernel"):

        @pl.program
        class Unknown:
            @pl.function(type=pl.FunctionType.Kernel)
            def k(self, x: pl.Tensor[[8, 16], pl.FP32]):
                return x

    with pytest.raises(ParserSyntaxError, match="auto_scope must be a boolean literal"):
        flag = True

        @pl.program
        class Scope:
            @pl.function(type=pl.FunctionType.Orchestration, auto_scope=flag)
            def k(self, x: pl.Tensor[[8, 16], pl.FP32]):
                return x


def test_enum_without_the_module_prefix():
    from pypto.language import FunctionType

    @pl.program
    class P:
        @pl.function(type=FunctionType.Orchestration)
        def main(self, x: pl.Tensor[[8, 16], pl.FP32], y: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                y[:] = pl.add(x, 1.0)
            return y

    assert P.entry.func_type == pl.FunctionType.Orchestration


def test_attrs_are_deprecated():
    with pytest.warns(DeprecationWarning, match=r"pl\.func_attr"):

        @pl.function(type=pl.FunctionType.InCore, attrs={"note": 3, "split": pl.SplitMode.UP_DOWN})
        def k(x: pl.Tensor[[8, 16], pl.FP32], y: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
            y = pl.store(pl.load(x, [0, 0], [8, 16]), [0, 0], y)
            return y

    assert dict(k.attrs) == {"note": 3, "split": pl.SplitMode.UP_DOWN}


def test_free_function():  # L-41, L-60
    def make(tile):
        @pl.function(type=pl.FunctionType.InCore)
        def add_one(
            x: pl.Tensor[[8, tile], pl.FP32], y: pl.Out[pl.Tensor[[8, tile], pl.FP32]]
        ) -> pl.Tensor[[8, tile], pl.FP32]:
            return pl.store(pl.add(pl.load(x, [0, 0], [8, tile]), 1.0), [0, 0], y)

        return add_one

    kernel = make(16)
    assert isinstance(kernel, ir.Function) and kernel.name == "add_one"
    assert "def add_one(" in str(kernel)
    with pytest.raises(TypeError, match="cannot be called from Python"):
        kernel(1, 2)

    @pl.jit
    def entry(x: pl.Tensor[[8, 16], pl.FP32], y: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
        y = kernel(x, y)
        return y

    x = np.random.default_rng(2).standard_normal((8, 16)).astype(np.float32)
    y = np.zeros_like(x)
    entry(x, y)
    np.testing.assert_array_equal(y, x + 1)
    assert "add_one" in entry.lower().functions


def test_inline_helper():  # L-59
    bias = 3.0

    @pl.inline
    def shifted(t, amount: pl.Scalar[pl.FP32]):
        """Adds an amount and a bias of its own."""
        u = pl.add(t, amount)
        return pl.add(u, bias)

    assert isinstance(shifted, pl.InlineFunction) and shifted.__name__ == "shifted"
    with pytest.raises(TypeError, match="'shifted'"):
        shifted(1, 2)

    @pl.jit
    def entry(x: pl.Tensor[[8, 16], pl.FP32], y: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            u = pl.load(x, [0, 0], [8, 16])
            y = pl.store(shifted(u, amount=2.0), [0, 0], y)
        return y

    x = np.random.default_rng(2).standard_normal((8, 16)).astype(np.float32)
    y = np.zeros_like(x)
    entry(x, y)
    np.testing.assert_array_equal(y, (x + np.float32(2)) + np.float32(3))
    bias = -1.0
    entry(x, y)
    np.testing.assert_array_equal(y, (x + np.float32(2)) + np.float32(-1))


def test_sub_workers():  # L-62
    @pl.program
    class P:
        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def bound(x: pl.Tensor[[8, 16], pl.FP32]): ...

        @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
        def concrete(x: pl.Tensor[[8, 16], pl.FP32], y: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
            y[...] = x
            y += 1

        @pl.function(type=pl.FunctionType.Orchestration)
        def chip(self, x: pl.Tensor[[8, 16], pl.FP32], y: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                y[:] = pl.add(x, 1.0)
            return y

        @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
        def main(self, x: pl.Tensor[[8, 16], pl.FP32], y: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
            y = self.chip(x, y, device=0)
            self.bound(y)
            return y

    assert P.functions["bound"].requires_runtime_binding and not P.functions["concrete"].requires_runtime_binding
    assert set(P.sub_workers) == {"bound", "concrete"} and P.is_distributed and P.entry.name == "main"
    array = np.zeros((8, 16), np.float32)
    P.functions["concrete"].host_function(np.ones_like(array), array)
    assert (array == 2).all()
    with pytest.raises(ParserSyntaxError, match="must not declare 'self'"):

        @pl.program
        class Q:
            @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
            def bound(self, x: pl.Tensor[[8, 16], pl.FP32]): ...

            @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
            def main(self, x: pl.Tensor[[8, 16], pl.FP32]):
                self.bound(x)


def test_external_source_must_exist():  # L-63
    with pytest.raises(ValueError, match=r"file not found.*nowhere\.cpp"):

        @pl.function(type=pl.FunctionType.AIV, external_source="nowhere.cpp")
        def k(x: pl.Tensor[[8, 16], pl.FP32]): ...


def test_wrong_objects():
    with pytest.raises(ParserTypeError, match="decorates a Python function, got int"):
        pl.inline(3)
    with pytest.raises(ParserSyntaxError, match="decorates a class, got function"):
        pl.program(lambda: 0)


def test_program_for_the_other_family_only(tmp_path):
    """A program is defined before a platform is named; what only a5 has is refused for a2a3 when compiling (PLAT-5)."""

    @pl.program
    class Noise:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(self, y: pl.Out[pl.Tensor[[8, 16], pl.UINT32]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                y[:] = pl.random(1, 2, 3, 4, 5, 6, [8, 16])
            return y

    y = np.zeros((8, 16), np.uint32)
    ir.compile(Noise, platform="a5sim", output_dir=tmp_path / "a5", dump_passes=False)(y)
    assert len(np.unique(y)) > 20
    with pytest.raises(Exception, match="a5") as info:
        ir.compile(Noise, platform="a2a3sim", output_dir=tmp_path / "a2", dump_passes=False)
    assert "random" in str(info.value)


M = pl.dynamic("M")
ROWS16 = pl.Tensor[[M, 16], pl.FP32]
TWICE = pl.Out[pl.Tensor[[M * 2, 16], pl.FP32]]


def test_names_bound_to_annotations():
    import pypto.language as language

    @language.jit
    def stack(x: ROWS16, y: TWICE):
        for i in language.range(M // 8):
            with language.at(level=language.Level.CORE_GROUP):
                t = language.load(x, [i * 8, 0], [8, 16])
                y = language.store(t, [i * 8, 0], y)
                y = language.store(language.neg(t), [M + i * 8, 0], y)
        return y

    for rows in (8, 24):
        x = np.random.default_rng(rows).standard_normal((rows, 16)).astype(np.float32)
        y = np.zeros((2 * rows, 16), np.float32)
        stack(x, y)
        np.testing.assert_array_equal(y, np.concatenate([x, -x]))
    assert len(stack._cache) == 1


def test_a_function_of_a_program_is_no_attribute_of_it():  # 04 ERR-4
    @pl.program
    class Some:
        @pl.function(type=pl.FunctionType.InCore)
        def main(
            self, x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]
        ) -> pl.Tensor[[4, 8], pl.FP32]:
            return pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], y)

    with pytest.raises(AttributeError, match=r"program 'Some' has no attribute 'main'; .*ir\.compile\(program\)"):
        Some.main
    with pytest.raises(AttributeError, match="program 'Some' has no attribute 'nothing'$"):
        Some.nothing
    assert not hasattr(Some, "main") and getattr(Some, "nothing", 3) == 3


def test_a_config_is_given_by_name():  # 04 JIT-8
    @pl.jit
    def copied(x: pl.Tensor[[4, 8], pl.FP32], y: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = x
        return y

    x = np.ones((4, 8), np.float32)
    with pytest.raises(TypeError, match=r"too many positional arguments \(config is given by name: config=\.\.\.\)"):
        copied(x, x.copy(), RunConfig(platform="a2a3sim"))
