# SPDX-License-Identifier: Apache-2.0
"""JIT functions: decorators, binding, specialisation, cache, guards (01 section 6, 04 section 4)."""

from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass

import numpy as np
import pypto.language as pl
import pytest
from pypto.language.parser.diagnostics import ParserTypeError
from pypto.runtime import RunConfig

R = pl.dynamic("R")
C = pl.dynamic("C")


def data(*shape, dtype=np.float32, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pl.jit
def scale(x: pl.Tensor, y: pl.Out[pl.Tensor], s: pl.Scalar[pl.FP32]):
    """Doc of scale."""
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:] = pl.mul(x, s)
    return y


@pl.jit
def negate(x: pl.Tensor[[R, 32], pl.FP32], y: pl.Out[pl.Tensor[[R, 32], pl.FP32]]):
    for i in pl.range(x.shape[0] // 8):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [i * 8, 0], [8, 32])
            y = pl.store(pl.neg(t), [i * 8, 0], y)
    return y


# ------------------------------------------------------------------ decorators: L-64, L-65, JIT-1, JIT-2


def test_identity_of_a_jit_function():
    assert (scale.__name__, scale.__doc__, scale.__module__) == ("scale", "Doc of scale.", __name__)
    assert repr(scale) == "JITFunction('scale', func_type='orchestration')"
    assert scale._func.__name__ == "scale" and isinstance(scale, pl.JITFunction) and not hasattr(scale, "as_python")


def test_kinds():
    for kind in ("host", "incore", "inline", "opaque"):

        @getattr(pl.jit, kind)
        def k(x: pl.Tensor):
            return x

        assert repr(k) == f"JITFunction('k', func_type='{kind}')"
        if kind != "host":
            for use in (k, k.compile, k.lower):
                with pytest.raises(TypeError, match=r"'k' is a @pl\.jit.* not an entry"):
                    use(data(4, 4))


@pytest.mark.parametrize(
    ("decorator", "option", "fragment"),
    [
        (pl.jit, {"level": pl.Level.AIC}, "@pl.jit does not accept a level= argument"),
        (pl.jit.incore, {"auto_scope": True}, "@pl.jit.incore does not accept an auto_scope= argument"),
        (pl.jit.opaque, {"auto_scope": True}, "does not accept an auto_scope= argument"),
        (pl.jit.host, {"strict": 1}, "does not accept a strict= argument"),
        (pl.jit.inline, {"level": None}, "does not accept a level= argument"),
    ],
)
def test_wrong_options(decorator, option, fragment):
    with pytest.raises(TypeError) as info:
        decorator(**option)
    assert fragment in str(info.value)


def test_extern_options(tmp_path):  # 04 JIT-3
    extern = pl.jit.extern

    def k(x: pl.Tensor): ...

    for options, error, fragment in (
        ({"core_type": "gpu"}, ValueError, "core_type must be"),
        ({"core_type": "mixed", "aic_source": "a.cpp"}, ValueError, "requires both aic_source"),
        ({}, ValueError, "requires source="),
        ({"source": "a.cpp", "dual_aiv_dispatch": True}, ValueError, "requires core_type='mixed'"),
        ({"source": "a.cpp", "include_dirs": "inc"}, TypeError, "must be a sequence of paths"),
    ):
        with pytest.raises(error) as info:
            extern(**options)
        assert fragment in str(info.value)
    with pytest.raises(ValueError, match=r"source file not found.*nowhere\.cpp"):
        extern(source="nowhere.cpp")(k)
    source = tmp_path / "k.cpp"
    source.write_text("// kernel")
    with pytest.raises(ValueError, match="include directory not found"):
        extern(source=source, include_dirs=[tmp_path / "no"])(k)
    assert repr(extern(source=source, include_dirs=[tmp_path])(k)) == "JITFunction('k', func_type='extern')"


def test_source_must_be_readable():  # L-65, JIT-4
    namespace = {"pl": pl}
    with pytest.raises(OSError, match="ghost"):
        exec("@pl.jit\ndef ghost(x: pl.Tensor):\n    return x\n", namespace)


# ------------------------------------------------------------------ calls: JIT-8 - JIT-14


def test_call_writes_in_place_and_returns_nothing():  # JIT-9
    x, y = data(16, 32), np.zeros((16, 32), np.float32)
    assert scale(x, y, 2.5, config=RunConfig(platform="a2a3sim")) is None
    np.testing.assert_array_equal(y, x * np.float32(2.5))


def test_arguments_by_name():
    x, y = data(16, 32), np.zeros((16, 32), np.float32)
    scale(s=3.0, y=y, x=x)
    np.testing.assert_array_equal(y, x * np.float32(3))


def test_return_style():  # JIT-9, PRG-6
    @pl.jit
    def twice(x: pl.Tensor[[8, 16], pl.FP32], y: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.add(x, x)
        return y

    x = data(8, 16)
    result = twice(x)
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result, x + x)


def test_torch_arguments():
    torch = pytest.importorskip("torch")
    x, y = torch.from_numpy(data(16, 32)), torch.zeros(16, 32)
    scale(x.requires_grad_(True), y, 0.5)
    assert torch.equal(y, x.detach() * 0.5)


@pytest.mark.parametrize(
    ("args", "kwargs", "fragment"),
    [
        ((), {}, "missing a required argument: 'x'"),
        ((1, 2, 3, 4), {}, "too many positional arguments"),
        ((1,), {"x": 2}, "multiple values for argument 'x'"),
        ((1, 2, 3), {"z": 2}, "got an unexpected keyword argument 'z'"),
        ((1, 2, 3), {"platform": "a5"}, "got an unexpected keyword argument 'platform'"),
    ],
)
def test_binding_errors(args, kwargs, fragment):  # JIT-8
    with pytest.raises(TypeError) as info:
        scale(*args, **kwargs)
    assert str(info.value).startswith("@pl.jit function 'scale': ") and fragment in str(info.value)


def test_argument_errors():  # JIT-10, JIT-11, JIT-14
    x, y = data(8, 8), np.zeros((8, 8), np.float32)
    with pytest.raises(TypeError, match="Parameter 'x' is a tensor; got list"):
        scale([1.0], y, 2.0)
    with pytest.raises(TypeError, match=r"Parameter 's' is a scalar \(fp32\); got numpy.ndarray"):
        scale(x, y, x)
    with pytest.raises(TypeError, match=r"^Unsupported dtype float64.*float32"):
        scale(x.astype(np.float64), y, 2.0)
    with pytest.raises(TypeError, match=r"pl\.RUNTIME.*scale\.compile\(s=pl\.RUNTIME\)"):
        scale(x, y, pl.RUNTIME)
    with pytest.raises(TypeError, match="config must be a RunConfig or None"):
        scale(x, y, 2.0, config={"platform": "a2a3sim"})
    torch = pytest.importorskip("torch")
    with pytest.raises(TypeError, match=r"^Unsupported torch dtype torch\.float64"):
        scale(torch.zeros(8, 8, dtype=torch.float64), y, 2.0)


def test_rank_and_extent_of_annotations():  # L-68, JIT-12
    @pl.jit
    def k(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.add(x, 1.0)
        return y

    with pytest.raises(TypeError, match="'x'"):
        k(data(16), np.zeros(16, np.float32))
    x, y = data(8, 32), np.zeros((8, 32), np.float32)
    with pytest.warns(UserWarning, match="'x'"):
        k(x, y)
    np.testing.assert_array_equal(y, x + 1)


def test_scalars_are_compiled_in():  # L-68, JIT-10, JIT-23
    import ctypes

    x, y = data(8, 8), np.zeros((8, 8), np.float32)
    before = len(scale._cache)
    for value in (7.5, np.float32(7.5), ctypes.c_float(7.5), np.array(7.5, np.float32)):
        scale(x, y, value)
        np.testing.assert_array_equal(y, x * np.float32(7.5))
    assert len(scale._cache) == before + 1
    scale(x, y, 7)
    scale(x, y, 7.0)
    assert len(scale._cache) == before + 3


def test_default_scalar():
    @pl.jit
    def k(x: pl.Tensor, y: pl.Out[pl.Tensor], s: pl.Scalar[pl.FP32] = 4.0):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.mul(x, s)
        return y

    x, y = data(8, 8), np.zeros((8, 8), np.float32)
    k(x, y)
    np.testing.assert_array_equal(y, x * 4)
    k(x, y, 4.0)
    assert len(k._cache) == 1


def test_parameter_without_annotation():  # L-68
    @pl.jit
    def k(x, y, n):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.mul(x, n)
        return y

    x, y = data(8, 16), np.zeros((8, 16), np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        k(x, y, 3.0)
    np.testing.assert_array_equal(y, x * 3)


# ------------------------------------------------------------------ cache: JIT-22 - JIT-26


def test_one_object_per_key():
    x, y = data(24, 8), np.zeros((24, 8), np.float32)
    first = scale.compile(x, y, 1.25)
    scale(x, y, 1.25)
    assert scale.compile(x, y, 1.25) is first and first in list(scale._cache.values())
    assert scale.compile(x, y, 1.25, config=RunConfig(platform="a5sim")) is not first


def test_dynamic_dimension_shares_one_entry():  # L-69, JIT-25
    negate._cache.clear()
    for rows in (8, 24, 64, 24):
        x, y = data(rows, 32), np.zeros((rows, 32), np.float32)
        negate(x, y)
        np.testing.assert_array_equal(y, -x)
    assert len(negate._cache) == 1
    assert negate.compile() in negate._cache.values() and len(negate._cache) == 1


def test_bind_dynamic():  # L-33
    @pl.jit
    def k(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        m = pl.dynamic("m")
        x.bind_dynamic(0, m)
        y.bind_dynamic(0, m)
        for i in pl.range(x.shape[0] // 8):
            with pl.at(level=pl.Level.CORE_GROUP):
                y = pl.store(pl.exp(pl.load(x, [i * 8, 0], [8, 16])), [i * 8, 0], y)
        return y

    for rows in (8, 32):
        x, y = data(rows, 16), np.zeros((rows, 16), np.float32)
        k(x, y)
        np.testing.assert_allclose(y, np.exp(x), rtol=1e-5)
    assert len(k._cache) == 1


def test_clearing_the_cache():
    x, y = data(8, 40), np.zeros((8, 40), np.float32)
    first = scale.compile(x, y, 1.0)
    scale._cache.clear()
    assert scale.compile(x, y, 1.0) is not first


def test_failed_compile_leaves_no_entry():  # JIT-26
    @pl.jit
    def k(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.add(x, undefined_name)  # noqa: F821
        return y

    for _ in range(2):
        with pytest.raises(pl.parser.diagnostics.UndefinedVariableError, match="Undefined variable 'undefined_name'"):
            k(data(4, 8), np.zeros((4, 8), np.float32))
    assert k._cache == {}


def test_concurrent_calls_compile_once():  # JIT-26, PKG-4
    @pl.jit
    def k(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.add(x, 2.0)
        return y

    x = data(32, 32)
    found, errors = [], []

    def work():
        try:
            y = np.zeros_like(x)
            k(x, y)
            np.testing.assert_array_equal(y, x + 2)
            found.append(k.compile(x, y))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert errors == [] and len(k._cache) == 1 and len({id(c) for c in found}) == 1


# ------------------------------------------------------------------ guards: L-71, 04 4.6

FACTOR = 2.0
SIZES = [8, 16]


@dataclass
class Settings:
    heads: int = 4
    table: dict = None


CFG = Settings(4, {"rows": 8})


def values(function, *args):
    x, y = data(8, 16), np.zeros((8, 16), np.float32)
    function(x, y, *args)
    return x, y


def test_global_constant(monkeypatch):
    @pl.jit
    def k(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.mul(x, FACTOR)
        return y

    x, y = values(k)
    np.testing.assert_array_equal(y, x * 2)
    monkeypatch.setitem(globals(), "FACTOR", 3.0)
    x, y = values(k)
    np.testing.assert_array_equal(y, x * 3)
    monkeypatch.setitem(globals(), "FACTOR", 2.0)
    first = list(k._cache.values())
    x, y = values(k)
    np.testing.assert_array_equal(y, x * 2)
    assert len(first) == 2 == len(k._cache)  # JIT-29: the old entry is found again
    monkeypatch.setitem(globals(), "FACTOR", 2)
    values(k)
    assert len(k._cache) == 3  # 2 and 2.0 differ


def test_closure_cell():
    factor = 1.5

    @pl.jit
    def k(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.mul(x, factor)
        return y

    x, y = values(k)
    np.testing.assert_array_equal(y, x * np.float32(1.5))
    factor = -1.0
    x, y = values(k)
    np.testing.assert_array_equal(y, -x)


def test_list_content():
    sizes = [8, 16]

    @pl.jit
    def k(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], sizes)
            y = pl.store(pl.add(t, float(sizes[0])), [0, 0], y)
        return y

    x, y = values(k)
    np.testing.assert_array_equal(y, x + 8)
    values(k)
    assert len(k._cache) == 1
    sizes[0] = 4
    x, y = values(k)
    np.testing.assert_array_equal(y[:4], x[:4] + 4)
    assert not y[4:].any() and len(k._cache) == 2


def test_attributes_and_items(monkeypatch):
    @pl.jit
    def k(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.mul(x, float(CFG.heads + CFG.table["rows"]))
        return y

    x, y = values(k)
    np.testing.assert_array_equal(y, x * 12)
    monkeypatch.setattr(CFG, "heads", 5)
    x, y = values(k)
    np.testing.assert_array_equal(y, x * 13)
    monkeypatch.setitem(CFG.table, "rows", 1)
    x, y = values(k)
    np.testing.assert_array_equal(y, x * 6)
    monkeypatch.setitem(CFG.table, "other", 1)
    values(k)
    assert len(k._cache) == 3


def test_callee_and_its_own_names(monkeypatch):
    @pl.jit.incore
    def first(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        y = pl.store(pl.mul(pl.load(x, [0, 0], [8, 16]), FACTOR), [0, 0], y)
        return y

    @pl.jit.incore
    def second(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        y = pl.store(pl.neg(pl.load(x, [0, 0], [8, 16])), [0, 0], y)
        return y

    kernel = first

    @pl.jit
    def k(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        y = kernel(x, y)
        return y

    x, y = values(k)
    np.testing.assert_array_equal(y, x * 2)
    monkeypatch.setitem(globals(), "FACTOR", 4.0)
    x, y = values(k)
    np.testing.assert_array_equal(y, x * 4)
    kernel = second
    x, y = values(k)
    np.testing.assert_array_equal(y, -x)
    assert len(k._cache) == 3


def test_replaced_code():
    @pl.jit
    def k(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.add(x, 1.0)
        return y

    def other(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.add(x, 5.0)
        return y

    x, y = values(k)
    np.testing.assert_array_equal(y, x + 1)
    k._func.__code__ = other.__code__
    x, y = values(k)
    np.testing.assert_array_equal(y, x + 5)
    assert len(k._cache) == 2


def test_warm_call_reads_no_source(monkeypatch):
    from pypto import _core

    x, y = data(8, 48), np.zeros((8, 48), np.float32)
    scale(x, y, 2.0)
    monkeypatch.setattr(_core, "build_jit", None)
    scale(x, y, 2.0)
    np.testing.assert_array_equal(y, x * 2)


# ------------------------------------------------------------------ signature mode: L-70, JIT-18


def test_signature_mode():
    @pl.jit
    def k(x: pl.Tensor[[8, 16], pl.FP32], y: pl.Out[pl.Tensor[[8, 16], pl.FP32]], n: pl.Scalar[pl.FP32]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.mul(x, n)
        return y

    compiled = k.compile(n=2.0)
    x, y = data(8, 16), np.zeros((8, 16), np.float32)
    compiled(x, y, 2.0)
    np.testing.assert_array_equal(y, x * 2)
    k(x, y, 2.0)
    assert len(k._cache) == 1
    with pytest.raises(ValueError, match=r"'n'.*compiled in.*2"):  # JIT-20
        compiled(x, y, 3.0)
    runtime = k.compile(n=pl.RUNTIME)
    for value in (2.0, -0.5):
        runtime(x, y, value)
        np.testing.assert_array_equal(y, x * np.float32(value))
    with pytest.raises(TypeError, match="scalar parameter 'n' has no value"):
        k.compile()
    with pytest.raises(TypeError, match="must be an int/float/bool"):
        k.compile(n="many")
    with pytest.raises(TypeError, match=r"'n' received pl\.RUNTIME"):
        k.compile(x, y, pl.RUNTIME)


def test_signature_mode_refusals():
    with pytest.raises(TypeError, match=r"parameter 'x' has a bare 'pl\.Tensor' annotation with no shape"):
        scale.compile(s=1.0)

    @pl.jit
    def k(x: pl.Tensor[[8, 16], pl.FP32], n):
        return x

    with pytest.raises(TypeError, match="cannot infer parameter 'n' from the signature"):
        k.compile()


def test_lower_returns_the_program():  # L-66, L-67, JIT-27
    program = negate.lower()
    assert {f.func_type for f in program.functions.values()} == {pl.FunctionType.Orchestration, pl.FunctionType.AIV}
    assert program.name == "_jit_negate" and len(program.functions) == 2
    assert program.get_function("negate").func_type == pl.FunctionType.Orchestration
    assert "pl.tile.neg(" in str(program) and negate.lower() is not program


# ------------------------------------------------------------------ factories: L-77


def make_scale(rows, cols, factor, dt=pl.FP32):
    @pl.jit
    def scaled(x: pl.Tensor[[rows, cols], dt], y: pl.Out[pl.Tensor[[rows, cols], dt]]):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="scale"):
            y[:] = pl.mul(x, factor)
        return y

    return scaled


def test_factories_are_independent():
    a, b = make_scale(8, 16, 2.0), make_scale(4, 32, -1.0)
    for function, shape, factor in ((a, (8, 16), 2), (b, (4, 32), -1)):
        x, y = data(*shape), np.zeros(shape, np.float32)
        function(x, y)
        np.testing.assert_array_equal(y, x * factor)
        assert len(function._cache) == 1
    assert a.compile().param_names == ["x", "y"]  # annotations use the factory's names only


def test_alias_of_the_language_module():  # L-1
    import pypto.language as x_lang
    from pypto import language
    from pypto.language import at, mul

    @language.jit
    def k(x: x_lang.Tensor, y: language.Out[x_lang.Tensor]):
        with at(level=x_lang.Level.CORE_GROUP):
            y[:] = mul(x, 2.0)
        return y

    x, y = values(k)
    np.testing.assert_array_equal(y, x * 2)


# ------------------------------------------------------------------ errors: L-76


def test_errors_name_the_users_file_and_line():
    @pl.jit.incore
    def kernel(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        t = pl.load(x, [0, 0], [8, 16])
        y = pl.store(pl.ad(t, 1.0), [0, 0], y)
        return y

    @pl.jit
    def k(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        y = kernel(x, y)
        return y

    with pytest.raises(pl.parser.diagnostics.InvalidOperationError, match=r"Unknown operation 'pl\.ad'") as info:
        values(k)
    assert info.value.span["filename"] == __file__
    assert info.value.span["line"] == kernel._func.__code__.co_firstlineno + 3
    assert info.value.span["column"] == len("        y = pl.store(") + 1
    assert f"{k._func.__code__.co_firstlineno + 2}" in str(info.value)  # a note names the call


# ------------------------------------------------------------------ misuse of the decorators, sizes beyond memory


class WithMethod:
    @pl.jit
    def method(self, x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = x
        return y


def test_a_jit_function_is_no_method():
    x = data(4, 8)
    with pytest.raises(pl.parser.diagnostics.ParserSyntaxError, match="declares 'self', but is no method"):
        WithMethod().method(x, x.copy())


def test_async_functions_are_rejected():
    @pl.jit
    async def later(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        return y

    with pytest.raises(pl.parser.diagnostics.UnsupportedFeatureError, match="'later' is an async function"):
        later(data(4, 8), data(4, 8))


def test_variable_arguments_are_named():
    @pl.jit
    def several(*x):
        return x

    with pytest.raises(TypeError, match=r"\*args and \*\*kwargs parameters are not supported"):
        several(data(4, 8))


def test_a_kernel_has_no_host_level():
    with pytest.raises(TypeError, match="is no level of a kernel"):
        pl.jit.incore(level=pl.Level.HOST)


def test_an_integral_float_for_an_integer_parameter():
    @pl.jit
    def plus(x: pl.Tensor, y: pl.Out[pl.Tensor], n: pl.Scalar[pl.INT8]):
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.add(x, pl.cast(n, pl.FP32))
        return y

    x, y = data(4, 8), data(4, 8)
    plus(x, y, 3.0)
    np.testing.assert_array_equal(y, x + 3)


@pytest.mark.parametrize("shape", [[2**61, 8], [2**32, 2**32], [2**58, 2]])
def test_sizes_beyond_64_bits_are_rejected(shape):
    @pl.jit
    def tensor(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        t = pl.create_tensor(shape, dtype=pl.FP32)
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.store(pl.load(x, [0, 0], [1, 2]), [0, 0], t)
        with pl.at(level=pl.Level.CORE_GROUP):
            y = pl.store(pl.load(t, [0, 0], [1, 2]), [0, 0], y)
        return y

    @pl.jit
    def tile(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.create_tile(shape, dtype=pl.FP32)
            y = pl.store(pl.slice(t, [1, 2], [0, 0]), [0, 0], y)
        return y

    for program in (tensor, tile):
        with pytest.raises(pl.parser.diagnostics.InvalidOperationError, match="more bytes than any memory"):
            program(data(4, 8), data(4, 8))


def test_a_computed_size_beyond_64_bits_is_rejected():
    @pl.jit
    def program(x: pl.Tensor, y: pl.Out[pl.Tensor]):
        for i in pl.range(60, 62):
            t = pl.create_tensor([1 << i, 8], dtype=pl.FP32)
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.store(pl.load(x, [0, 0], [1, 2]), [0, 0], t)
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = x
        return y

    with pytest.raises(RuntimeError, match="larger than the output heap"):
        program(data(4, 8), data(4, 8))


@pytest.mark.parametrize("rows", [2**63, 2**64, 10**30, int], ids=["2**63", "2**64", "10**30", "int"])
def test_extent_of_an_annotation_that_is_none(rows):  # L-27, L-28
    @pl.jit
    def scaled(x: pl.Tensor[[4, 16], pl.FP32], out: pl.Out[pl.Tensor[[rows, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = pl.mul(x, 2.0)
        return out

    x = np.random.default_rng(0).standard_normal((4, 16), dtype=np.float32)
    with pytest.raises(ParserTypeError) as refused:
        scaled(x, np.zeros_like(x), config=RunConfig(platform="a2a3sim"))
    assert "test_jit.py:" in str(refused.value) and "rows" in str(refused.value)
