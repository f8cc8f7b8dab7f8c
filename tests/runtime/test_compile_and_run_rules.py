# SPDX-License-Identifier: Apache-2.0
"""Rules of chapter 04 about entries of JIT functions and programs, options, types and distributed calls."""

import ctypes
import os

import numpy as np
import pypto
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from pypto import ir, runtime
from pypto.backend.pto_backend import PartialCodegenError
from pypto.ir.distributed_compiled_program import DistributedCompiledProgram, DistributedConfig
from pypto.runtime import RunConfig

SHAPE = (16, 32)
FACTOR = 3.0


@pl.jit.incore
def scale_rows(x: pl.Tensor[[16, 32], pl.FP32], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    out = pl.store(pl.mul(pl.load(x, [0, 0], [16, 32]), FACTOR), [0, 0], out)
    return out


@pl.jit.inline
def halve(t):
    return pl.mul(t, 0.5)


@pl.jit
def scaled(x: pl.Tensor[[16, 32], pl.FP32], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    out = scale_rows(x, out)
    return out


@pl.jit
def first(x: pl.Tensor[[16, 32], pl.FP32], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:, :] = second(x)
    return out


@pl.jit.inline
def second(t):
    return third(t)


@pl.jit.inline
def third(t):
    return second(t)


@pl.jit.host
def spread(x: pl.Tensor[[2, 16, 32], pl.FP32], out: pl.Out[pl.Tensor[[2, 16, 32], pl.FP32]], s: pl.Scalar[pl.FP32]):
    for r in pl.range(pld.world_size()):
        weighted(x[r], out[r], s, device=r)


@pl.jit
def weighted(x: pl.Tensor[[16, 32], pl.FP32], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]], s: pl.Scalar[pl.FP32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:, :] = pl.mul(x, s)
    return out


def arrays(*shape: int, seed: int = 7):
    x = np.random.default_rng(seed).standard_normal(shape or SHAPE).astype(np.float32)
    return x, np.zeros_like(x)


WORLD = RunConfig(distributed_config=DistributedConfig(device_ids=[0, 1]))


# ------------------------------------------------------------------------------------------------ JIT functions


@pytest.mark.parametrize("verb", ["call", "compile", "lower"])
@pytest.mark.parametrize("function", [scale_rows, halve])
def test_only_entries_are_called(function, verb):  # 04 JIT-6
    use = function if verb == "call" else getattr(function, verb)
    with pytest.raises(TypeError, match=rf"(?s){function.__name__}.*not an entry"):
        use(*arrays())


def test_functions_and_constants_are_found_when_specialised(monkeypatch):  # 04 JIT-5, JIT-7, JIT-29
    x, out = arrays()
    scaled(x, out)
    np.testing.assert_array_equal(out, x * np.float32(3))
    before = scaled.compile(x, out)
    monkeypatch.setitem(globals(), "FACTOR", 5.0)
    scaled(x, out)
    np.testing.assert_array_equal(out, x * np.float32(5))
    assert scaled.compile(x, out) is not before
    monkeypatch.undo()
    scaled(x, out)
    np.testing.assert_array_equal(out, x * np.float32(3))
    assert scaled.compile(x, out) is before


def test_a_cycle_names_its_chain():  # 04 JIT-5
    with pytest.raises(ValueError, match=r"second.*third.*second"):
        first(*arrays())


def test_compile_runs_nothing():  # 04 JIT-17, JIT-19
    x, out = arrays()
    compiled = scaled.compile(x, out)
    assert isinstance(compiled, ir.CompiledProgram) and compiled.platform == "a2a3sim"
    np.testing.assert_array_equal(out, 0)
    assert scaled.compile(x, out, config=RunConfig(platform="a5sim")).platform == "a5sim"
    for option in ({"platform": "a5"}, {"strategy": None}):
        with pytest.raises(TypeError, match=next(iter(option))):
            scaled.compile(x, out, **option)


def test_a_host_entry_is_distributed():  # 04 JIT-15, JIT-17, DST-5
    x, out = arrays(2, *SHAPE)
    compiled = spread.compile(x, out, 2.0, config=WORLD)
    assert isinstance(compiled, DistributedCompiledProgram)
    np.testing.assert_array_equal(out, 0)
    for s in (2, 2.0, ctypes.c_float(2.0), np.float32(2.0), np.int64(2), np.array(2.0, dtype=np.float32)):
        out[:] = 0
        spread(x, out, s, config=WORLD)
        np.testing.assert_array_equal(out, x * np.float32(getattr(s, "value", s)))


def test_errors_come_at_the_compile():  # 04 JIT-28, ERR-2
    @pl.jit
    def misspelt(x: pl.Tensor[[16, 32], pl.FP32], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:, :] = pl.addd(x, x)
        return out

    @pl.jit
    def rebound(x: pl.Tensor[[16, 32], pl.FP32], r: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            r = pl.mul(x, 2.0)
            r = pl.add(x, 1.0)
        return r

    with pytest.raises(pl.parser.diagnostics.ParserError, match="did you mean 'add'"):
        misspelt.compile(*arrays())
    with pytest.raises(ValueError, match="'r'") as caught:
        rebound.compile(*arrays())
    assert isinstance(caught.value, PartialCodegenError)


# ----------------------------------------------------------------------------------------------------- programs


@pl.program
class OnlyKernel:
    @pl.function(type=pl.FunctionType.InCore)
    def negate(
        self, x: pl.Tensor[[16, 32], pl.FP32], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
    ) -> pl.Tensor[[16, 32], pl.FP32]:
        return pl.store(pl.neg(pl.load(x, [0, 0], [16, 32])), [0, 0], out)


@pl.program
class TwoKernels:
    @pl.function(type=pl.FunctionType.InCore)
    def one(
        self, x: pl.Tensor[[16, 32], pl.FP32], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
    ) -> pl.Tensor[[16, 32], pl.FP32]:
        return pl.store(pl.neg(pl.load(x, [0, 0], [16, 32])), [0, 0], out)

    @pl.function(type=pl.FunctionType.InCore)
    def other(
        self, x: pl.Tensor[[16, 32], pl.FP32], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]
    ) -> pl.Tensor[[16, 32], pl.FP32]:
        return pl.store(pl.abs(pl.load(x, [0, 0], [16, 32])), [0, 0], out)


def test_the_entry_of_a_program():  # 04 PRG-2, PRG-3
    x, out = arrays()
    compiled = ir.compile(OnlyKernel)
    compiled(x, out)
    np.testing.assert_array_equal(out, -x)
    with pytest.raises(ValueError, match="Orchestration"):
        ir.compile(TwoKernels)


def test_platform_and_backend():  # 04 CMP-4, PLAT-4
    from pypto.backend import BackendType

    assert ir.compile(OnlyKernel).platform == "a2a3sim"
    assert ir.compile(OnlyKernel, backend_type=BackendType.Ascend950).platform == "a5sim"
    assert ir.compile(OnlyKernel, backend_type=BackendType.Ascend950, platform="a2a3sim").platform == "a2a3sim"


@pytest.mark.parametrize("options", [{"skip_ptoas": True}, {"analyze_auto_scopes_for_deps": True}])
def test_options_that_change_no_result(tmp_path, options):  # 04 CMP-8, CMP-10
    x, out = arrays()
    compiled = ir.compile(OnlyKernel, output_dir=tmp_path / "made", **options)
    compiled(x, out)
    np.testing.assert_array_equal(out, -x)
    kernels = {path.suffix for path in (compiled.output_dir / "kernels").rglob("negate*")}
    assert "skip_ptoas" not in options or kernels == {".pto"}


def test_the_build_directory_is_read_at_each_compile(tmp_path, monkeypatch):  # 04 HAR-10
    for name in ("one", "two"):
        monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path / name))
        assert (tmp_path / name) in ir.compile(OnlyKernel).output_dir.parents


def test_text_that_is_no_program(tmp_path):  # 04 SER-5
    with pytest.raises(SyntaxError) as caught:
        pl.parse("import pypto.language as pl\n\ndef f(:\n", filename="broken.py")
    assert caught.value.lineno == 3
    with pytest.raises(FileNotFoundError):
        pl.loads(tmp_path / "missing.py")


# -------------------------------------------------------------------------------------------------------- types


def test_data_types_are_values():  # 04 DTY-1
    assert pl.FP32 == pypto.DataType.FP32 and hash(pl.FP32) == hash(pypto.DataType.FP32) and pl.FP32 != pl.FP16
    assert {pl.BF16: 1}[pypto.DataType.BF16] == 1
    assert pl.INT8.get_bit() == 8 and pl.INT64.get_byte() == 8 and pl.FP16.is_float() and not pl.FP16.is_int()
    assert pl.UINT16.is_unsigned_int() and not pl.UINT16.is_signed_int() and pl.INT16.is_signed_int()
    assert pypto.DataType.DEFAULT_CONST_INT == pl.INT64 and pypto.DataType.DEFAULT_CONST_FLOAT == pl.FP32
    for dtype in (pl.FP32, pl.BF16, pl.INT8, pl.BOOL):
        assert str(dtype) == dtype.to_string() and dtype.to_c_type_string()


def test_shapes_and_types_at_run_time():  # 04 DTY-4, DTY-5
    from pypto.ir.compiled_program import _to_runtime_shape, _to_torch_dtype

    torch = pytest.importorskip("torch")
    assert _to_runtime_shape([4, 6], pl.FP4) == [4, 3] and _to_runtime_shape([4, 6], pl.FP16) == [4, 6]
    with pytest.raises(TypeError):
        _to_runtime_shape([4, 5], pl.FP4)
    assert _to_torch_dtype(pl.FP32) is torch.float32 and _to_torch_dtype(pl.BF16) is torch.bfloat16
    assert _to_torch_dtype(pl.HF8) is None


# -------------------------------------------------------------------------------------------- distributed calls


@pl.jit.host
def stuck(x: pl.Tensor[[2, 16, 32], pl.FP32], out: pl.Out[pl.Tensor[[2, 16, 32], pl.FP32]]):
    cells = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        signal = pld.window(cells, [2, 1], dtype=pl.INT32)
        waits(x[r], out[r], signal, device=r)


@pl.jit
def waits(
    x: pl.Tensor[[16, 32], pl.FP32],
    out: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    signal: pld.DistributedTensor[[2, 1], pl.INT32],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)
        out[:, :] = pl.mul(x, 2.0)
    return out


def test_a_deadlock_is_told_and_the_next_call_works():  # 04 DST-10, DST-11, ERR-6
    x, out = arrays(2, *SHAPE)
    with pytest.raises(pypto.DeadlockError, match="(?i)deadlock") as caught:
        stuck(x, out, config=WORLD)
    assert isinstance(caught.value, RuntimeError) and "waits" in str(caught.value)
    spread(x, out, 2.0, config=WORLD)
    np.testing.assert_array_equal(out, 2 * x)


def test_resident_tensors_need_a_worker():  # 04 DST-6, DST-19
    x, out = arrays(2, *SHAPE)
    compiled = spread.compile(x, out, 2.0, config=WORLD)
    resident = runtime.DeviceTensor(4096, (2, *SHAPE), pl.FP32)
    with pytest.raises(TypeError, match=r"(?s)One-shot.*prepare\(\).*alloc_tensor"):
        compiled(resident, out, 2.0)
    with pytest.raises(TypeError, match="x"):
        compiled("text", out, 2.0)


def test_an_artifact_of_a_distributed_program_runs(tmp_path):  # 04 RUN-4, DST-20
    from pypto.runtime import execute_distributed_compiled

    x, out = arrays(2, *SHAPE)
    config = RunConfig(
        distributed_config=DistributedConfig(device_ids=[0, 1]), save_kernels=True, save_kernels_dir=str(tmp_path / "a")
    )
    spread.compile(x, out, 2.0, config=config)
    assert execute_distributed_compiled(tmp_path / "a", [x, out, 2.0]) is None
    np.testing.assert_array_equal(out, 2 * x)


def test_the_root_of_the_instruction_set_headers(tmp_path, monkeypatch):  # 04 RUN-5
    from pypto.runtime import ensure_pto_isa_root

    monkeypatch.delenv("PYPTO_PTO_ISA_ROOT", raising=False)
    monkeypatch.setenv("PTO_ISA_ROOT", "")
    own = ensure_pto_isa_root()
    assert os.path.isdir(os.path.join(own, "include")) and os.environ["PTO_ISA_ROOT"] == str(own)
    monkeypatch.setenv("PYPTO_PTO_ISA_ROOT", str(tmp_path))
    assert str(ensure_pto_isa_root()) == str(tmp_path)
    monkeypatch.setenv("PYPTO_PTO_ISA_ROOT", str(tmp_path / "none"))
    with pytest.raises(ValueError, match="none"):
        ensure_pto_isa_root()


# ------------------------------------------------------------------------------------- checks of a compile, workers


@pytest.mark.parametrize("level", ["NONE", "BASIC", "ROUNDTRIP"])
def test_verification_changes_no_result(level, monkeypatch):  # 04 CMP-20
    from pypto.passes import VerificationLevel
    from pypto.passes._context import default_verification_level

    x, out = arrays()
    ir.compile(OnlyKernel, verification_level=VerificationLevel[level])(x, out)
    np.testing.assert_array_equal(out, -x)
    monkeypatch.setenv("PYPTO_VERIFY_LEVEL", level.lower())
    assert default_verification_level() is VerificationLevel[level]


def test_a_resident_tensor_serves_several_programs():  # 04 DEV-9, WRK-11
    x, out = arrays()
    negate, scale = ir.compile(OnlyKernel), scaled.compile(x, out)
    with runtime.ChipWorker() as worker:
        held = worker.alloc_tensor(SHAPE, pl.FP32, init=x)
        made = worker.alloc_tensor(SHAPE, pl.FP32)
        for _ in range(20):
            worker.run(scale, held, made)
            worker.run(negate, made, out)
            np.testing.assert_array_equal(out, -(x * np.float32(3)))
        assert worker.aicpu_dlopen_count == 2
        worker.run(negate, held, held)
        worker.run(negate, held, out)
        np.testing.assert_array_equal(out, x)
