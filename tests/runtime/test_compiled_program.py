# SPDX-License-Identifier: Apache-2.0
"""Compiling and calling single-device programs (04 sections 5 to 8, 10)."""

from __future__ import annotations

import json
import os
import threading
import warnings
from pathlib import Path

import numpy as np
import programs
import pypto.language as pl
import pytest
from pypto import ir, runtime
from pypto.backend import BackendType
from pypto.ir.compiled_program import CompiledProgram
from pypto.ir.pass_manager import OptimizationStrategy
from pypto.runtime import DeviceTensor, RunConfig, execute_compiled

ROWS, COLS = programs.ROWS, programs.COLS


def arrays(rng, count=2):
    return [rng.standard_normal((ROWS, COLS), dtype=np.float32) for _ in range(count)]


@pytest.fixture(scope="module")
def add():
    return ir.compile(programs.Add, platform="a2a3sim", dump_passes=False)


def test_in_place_and_return(add, rng):
    # PRG-5, PRG-6
    x, y = arrays(rng)
    out = np.zeros_like(x)
    assert add(x, y, out) is None
    np.testing.assert_array_equal(out, x + y)
    np.testing.assert_array_equal(add(x, y), x + y)
    np.testing.assert_array_equal(add(y=y, x=x), x + y)
    assert isinstance(add(x, y), np.ndarray)


def test_torch_results(add, rng):
    # PRG-6: torch if any argument is torch
    torch = pytest.importorskip("torch")
    x, y = arrays(rng)
    got = add(torch.from_numpy(x), y)
    assert isinstance(got, torch.Tensor) and torch.equal(got, torch.from_numpy(x + y))


def test_wrong_counts(add, rng):
    # PRG-8
    x, y = arrays(rng)
    with pytest.raises(TypeError) as e:
        add(x)
    assert str(e.value) == (
        "CompiledProgram expects 3 (in-place) or 2 (return) arguments, got 1. Parameters: ['x', 'y', 'out']"
    )
    with pytest.raises(TypeError, match="z"):
        add(x, y, z=x)


def test_scalars_and_inout(rng):
    # PRG-7, ARG-5, output_indices
    c = ir.compile(programs.ScaleAdd, dump_passes=False)
    assert c.param_names == ["out", "s", "x", "acc"] and c.output_indices == [0] and c.has_return
    x, acc = arrays(rng)
    before = acc.copy()
    got = c(2.5, x, acc)
    np.testing.assert_array_equal(got, x * np.float32(2.5))
    np.testing.assert_array_equal(acc, before + x * np.float32(2.5))
    with pytest.raises(TypeError):
        c(2.5, x)


def test_metadata(add):
    # section 7
    params, outs, returns = add._get_metadata()
    assert [(p.name, p.direction.name, p.shape) for p in params] == [
        ("x", "In", [ROWS, COLS]),
        ("y", "In", [ROWS, COLS]),
        ("out", "Out", [ROWS, COLS]),
    ]
    assert outs == [2] and len(returns) == 1 and str(params[0].dtype) == "fp32"
    assert add.platform == "a2a3sim" and add.backend_type is BackendType.Ascend910B
    assert add.runtime_name == "tensormap_and_ringbuffer" and add.runtime_config["runtime"] == add.runtime_name
    assert add.chip_callable is add.chip_callable and add.orchestration_names == []
    assert add.build_call_config().aicpu_thread_num == add.runtime_config["aicpu_thread_num"]
    assert add.build_call_config(aicpu_thread_num=7).aicpu_thread_num == 7


def test_dynamic(rng):
    # ARG-4, ARG-12, PRG-9
    c = ir.compile(programs.Rows, dump_passes=False)
    assert c._get_metadata()[0][0].shape == [-1, COLS]
    for rows in (0, 1, 5):
        x = rng.standard_normal((rows, COLS), dtype=np.float32)
        out = np.full_like(x, 9)
        c(x, out)
        np.testing.assert_array_equal(out, x * 2)
    with pytest.raises(ValueError) as e:
        c(np.zeros((3, COLS), np.float32))
    assert "contains dynamic dimensions. Pass all tensors explicitly (in-place style)." in str(e.value)
    assert "'out'" in str(e.value)


def test_directory_is_the_program(add, tmp_path):
    # section 7: behaves as its directory
    d = add.output_dir
    assert isinstance(d, Path) and d.is_absolute() and d.is_dir()
    assert str(add) == str(d) and os.path.join(add, "a") == str(d / "a") and Path(add) == d
    assert add == d and add == str(d) and add != str(tmp_path) and hash(add) == hash(d)


def test_artifacts(tmp_path):
    # ART-3, the table of section 6
    c = ir.compile(programs.Add, output_dir=tmp_path / "deep" / "dir")
    d = c.output_dir
    assert d == tmp_path / "deep" / "dir"
    assert list((d / "orchestration").glob("*.cpp")) and "func_id" in (d / "kernel_config.py").read_text()
    scope: dict = {}
    exec((d / "kernel_config.py").read_text(), scope)
    assert scope["ORCHESTRATION"]["name"] == "main" and (d / scope["ORCHESTRATION"]["source"]).exists()
    assert [k["name"] for k in scope["KERNELS"]] == ["add_tiles"] and scope["KERNELS"][0]["core_type"] == "aiv"
    assert scope["RUNTIME_CONFIG"]["runtime"] == "tensormap_and_ringbuffer"
    meta = json.loads((d / "compiled_meta.json").read_text())
    assert meta["schema"] == 1 and meta["platform"] == "a2a3sim" and meta["backend_type"] == "Ascend910B"
    assert meta["params"][2] == {"name": "out", "direction": "Out", "shape": [ROWS, COLS], "dtype": "fp32"}
    assert meta["num_return_types"] == 1
    dumps = sorted(p.name for p in (d / "passes_dump").glob("*.py"))
    assert dumps[0] == "00_frontend.py" and all("_after_" in n for n in dumps[1:])
    assert [n[3:] for n in dumps[1:]] == [f"after_{p}.py" for p in ir.PassManager.get_strategy().pass_names]
    assert (d / "report" / "memory.json").exists() and (d / "program.bin").stat().st_size > 0
    assert (d / "debug" / "run.py").exists()


def test_default_directory(build_dir):
    # ART-1
    a = ir.compile(programs.Add, dump_passes=False)
    b = ir.compile(programs.Add, dump_passes=False)
    assert a.output_dir.parent == build_dir and a.output_dir != b.output_dir
    assert a.output_dir.name.startswith("Add_")
    assert not (a.output_dir / "passes_dump").exists()


def test_deterministic(tmp_path):
    # CMP-13
    a = ir.compile(programs.Add, output_dir=tmp_path / "a")
    b = ir.compile(programs.Add, output_dir=tmp_path / "b")
    for path in sorted(a.output_dir.rglob("*")):
        if path.is_file():
            assert path.read_bytes() == (b.output_dir / path.relative_to(a.output_dir)).read_bytes(), path


def test_never_empties(tmp_path):
    # CMP-5
    (tmp_path / "keep.txt").write_text("mine")
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "note").write_text("mine")
    ir.compile(programs.Add, output_dir=tmp_path)
    ir.compile(programs.Add, output_dir=tmp_path)
    assert (tmp_path / "keep.txt").read_text() == "mine" and (tmp_path / "kernels" / "note").exists()


def test_from_dir(add, tmp_path, rng):
    # PRG-13, ART-2
    import shutil

    moved = tmp_path / "moved"
    shutil.copytree(add.output_dir, moved)
    c = CompiledProgram.from_dir(moved)
    assert c.program is None and c.platform == "a2a3sim" and c.param_names == add.param_names
    x, y = arrays(rng)
    np.testing.assert_array_equal(c(x, y), x + y)
    assert CompiledProgram.from_dir(moved, platform="a5sim").platform == "a5sim"
    np.testing.assert_array_equal(CompiledProgram.from_dir(moved, platform="a5sim")(x, y), x + y)
    with pytest.raises(ValueError, match="Invalid platform"):
        CompiledProgram.from_dir(moved, platform="a6")
    with pytest.raises(FileNotFoundError, match=r"compiled_meta.json"):
        CompiledProgram.from_dir(tmp_path / "nowhere")
    good = (moved / "compiled_meta.json").read_text()
    for text, field in (
        ("{", "compiled_meta"),
        (good.replace('"schema": 1', '"schema": 9'), "schema"),
        (good.replace('"params"', '"parms"'), "params"),
        (good.replace('"In"', '"Inn"'), "direction"),
    ):
        (moved / "compiled_meta.json").write_text(text)
        with pytest.raises(ValueError, match=f"(?s){field}.*recompile"):
            CompiledProgram.from_dir(moved)
    (moved / "compiled_meta.json").write_text(good)
    data = (moved / "program.bin").read_bytes()
    (moved / "program.bin").write_bytes(data[: len(data) // 2])
    with pytest.raises(ValueError, match=r"(?s)program.bin.*recompile"):
        CompiledProgram.from_dir(moved)


def test_multi_entry(tmp_path, rng):
    # PRG-12, ART-5
    c = ir.compile(programs.TwoEntries, output_dir=tmp_path, skip_ptoas=True)
    assert c.orchestration_names == ["double", "negate"]
    (x,) = arrays(rng, 1)
    with pytest.raises(TypeError, match=r"select one explicitly: double, negate"):
        c(x)
    np.testing.assert_array_equal(c["double"](x), x * 2)
    np.testing.assert_array_equal(c.negate(x), -x)
    with pytest.raises(KeyError, match="double, negate"):
        c["triple"]
    with pytest.raises(AttributeError, match="'CompiledProgram' object has no attribute 'triple'"):
        c.triple
    e = c["double"]
    assert e.name == "double" and e.param_names == ["x", "out"] and e.output_indices == [1]
    assert e.output_dir == tmp_path / "next_levels" / "double" and e.chip_callable is e.chip_callable
    for entry, kernel in (("double", "double_tile"), ("negate", "negate_tile")):
        below = tmp_path / "next_levels" / entry
        assert (below / "orchestration" / f"{entry}.cpp").exists()
        assert {p.stem for p in (below / "kernels").rglob("*.pto")} == {kernel}
    assert not (tmp_path / "orchestration").exists()
    np.testing.assert_array_equal(CompiledProgram.from_dir(tmp_path).double(x), x * 2)


@pytest.mark.parametrize("platform", ["a2a3", "a5"])
def test_hardware(platform, rng, tmp_path):
    # PLAT-3
    from pypto import PlatformUnavailableError

    c = ir.compile(programs.Add, platform=platform, output_dir=tmp_path)
    assert list((tmp_path / "kernels" / "aiv").glob("*.cpp")) and list((tmp_path / "ptoas").glob("*.pto"))
    x, y = arrays(rng)
    out = np.full_like(x, 5)
    with pytest.raises(PlatformUnavailableError) as e:
        c(x, y, out)
    assert isinstance(e.value, RuntimeError) and e.value.missing and platform + "sim" in str(e.value)
    for what in e.value.missing:
        assert what in str(e.value)
    assert (out == 5).all()
    c(x, y, out, config=RunConfig(platform=platform + "sim"))  # PRG-4
    np.testing.assert_array_equal(out, x + y)


def test_platforms(add, rng):
    # PLAT-4, PLAT-5, PLAT-6
    x, y = arrays(rng)
    for config in (None, RunConfig(platform="a5sim", device_id=11), RunConfig(device_id=3)):
        np.testing.assert_array_equal(add(x, y, config=config), x + y)
    assert ir.compile(programs.Add, backend_type=BackendType.Ascend950, dump_passes=False).platform == "a5sim"
    assert (
        ir.compile(programs.Add, backend_type=BackendType.Ascend950, platform="a2a3sim", dump_passes=False).platform
        == "a2a3sim"
    )
    with pytest.raises(ValueError, match="Invalid platform 'x'"):
        ir.compile(programs.Add, platform="x")


def test_compile_refusals():
    # CMP-1, CMP-2, CMP-12
    with pytest.raises(TypeError):
        ir.compile(programs.Add, no_such=1)
    with pytest.raises(TypeError, match="int"):
        ir.compile(3)
    with pytest.raises(ValueError, match=r"OptimizationStrategy.Default"):
        ir.compile(programs.Add, strategy="fast")
    assert list(OptimizationStrategy) == [OptimizationStrategy.Default]


def test_unused_distributed_config():
    # CMP-3
    from pypto.ir.distributed_compiled_program import DistributedConfig

    with pytest.warns(UserWarning, match=r"W-UNUSED-CONFIG.*main"):
        c = ir.compile(programs.Add, distributed_config=DistributedConfig([0, 1]), dump_passes=False)
    assert isinstance(c, CompiledProgram)


def test_pass_context_conflict():
    # CMP-6, CMP-19
    from pypto.passes import MemoryPlanner, PassContext

    with PassContext([], memory_planner=MemoryPlanner.DSA_RP) as context:
        assert PassContext.current() is context
        with pytest.raises(
            RuntimeError, match=r"compile\(\) was called with memory_planner while a PassContext is already active"
        ):
            ir.compile(programs.Add, memory_planner=MemoryPlanner.PYPTO)
        ir.compile(programs.Add, dump_passes=False)
    assert PassContext.current() is None


@pytest.mark.parametrize("planner", ["PYPTO", "DSA_RP", "PTOAS"])
def test_planners(planner, rng):
    # CMP-7
    from pypto.passes import MemoryPlanner

    c = ir.compile(programs.Add, memory_planner=MemoryPlanner[planner], dump_passes=False)
    x, y = arrays(rng)
    np.testing.assert_array_equal(c(x, y), x + y)


def test_same_directory_twice_at_once(tmp_path):
    # ART-4
    from pypto.ir import _artifact

    with _artifact.directory(str(tmp_path), "x"):
        with pytest.raises(RuntimeError, match=str(tmp_path)):
            ir.compile(programs.Add, output_dir=tmp_path)
    ir.compile(programs.Add, output_dir=tmp_path)


def test_execute_compiled(add, rng):
    # RUN-3, ARG-9
    c = ir.compile(programs.ScaleAdd, dump_passes=False)
    x, acc = arrays(rng)
    before, out = acc.copy(), np.zeros_like(x)
    execute_compiled(c.output_dir, [out, x, acc, 3.0], platform="a2a3sim", device_id=0)
    np.testing.assert_array_equal(out, x * 3)
    np.testing.assert_array_equal(acc, before + x * 3)
    with pytest.raises(TypeError):
        execute_compiled(c.output_dir, [out, x, acc, 3.0], platform="a2a3sim", device_id=0, nope=1)
    with pytest.raises(ValueError):
        execute_compiled(c.output_dir, [out, x, acc, 3.0], platform="a2a3sim", device_id=0, level=3)
    with pytest.raises(TypeError, match=r"Argument at position 1 must be torch.Tensor, DeviceTensor or ctypes scalar"):
        execute_compiled(c.output_dir, [out, "x", acc, 3.0], platform="a2a3sim", device_id=0)
    with pytest.raises(TypeError, match=r"3 tensors.*1 scalars"):
        execute_compiled(c.output_dir, [out, x, 3.0], platform="a2a3sim", device_id=0)


def test_monkey_patch(add, rng, monkeypatch):
    # PKG-6
    from pypto.runtime import runner

    seen = []
    monkeypatch.setattr(runner, "execute_compiled", lambda *a, **k: seen.append((a, k)))
    x, y = arrays(rng)
    add(x, y, np.zeros_like(x))
    assert len(seen) == 1 and Path(seen[0][0][0]) == add.output_dir and seen[0][1]["platform"] == "a2a3sim"


def test_device_tensor_outside_worker(add, rng):
    # DEV-5
    x, y = arrays(rng)
    with pytest.raises(TypeError, match="ChipWorker"):
        add(x, DeviceTensor(4096, (ROWS, COLS), pl.FP32), np.zeros_like(x))


def test_run_helper(rng):
    # RUN-1
    x, y = arrays(rng)
    out = np.zeros_like(x)
    c = runtime.run(programs.Add, x, y, out, config=RunConfig(platform="a5sim"))
    assert c.platform == "a5sim"
    np.testing.assert_array_equal(out, x + y)
    out[:] = 0
    runtime.run(programs.Add, x, y, out, config=RunConfig(codegen_only=True))
    assert (out == 0).all()


def test_many_threads(add, rng, tmp_path):
    # PKG-4, RUN-2, PRG-14
    x, y = arrays(rng)
    failures = []

    def work(i):
        try:
            runtime.compile_program(
                programs.Add,
                tmp_path / str(i),
                strategy=OptimizationStrategy.Default,
                backend_type=BackendType.Ascend910B,
            )
            np.testing.assert_array_equal(CompiledProgram.from_dir(tmp_path / str(i))(x, y), x + y)
            np.testing.assert_array_equal(add(x, y), x + y)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(36)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_after_fork(add, rng):
    # PKG-3
    x, y = arrays(rng)
    add(x, y)
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                c = ir.compile(programs.Add, dump_passes=False)
                code = 0 if np.array_equal(c(x, y), x + y) and np.array_equal(add(x, y), x + y) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_jit_writes_nothing(build_dir, rng, tmp_path, monkeypatch):
    # ART-9, JIT-21
    monkeypatch.chdir(tmp_path)
    x, y = arrays(rng)
    out = np.zeros_like(x)
    programs.jit_axpy._cache.clear()
    programs.jit_axpy(x, y, out, 2.0)
    np.testing.assert_array_equal(out, x * np.float32(2) + y)
    assert not build_dir.exists() and not list(tmp_path.iterdir())
    (c,) = programs.jit_axpy._cache.values()
    assert (c.output_dir / "debug" / "run.py").is_file()
    assert c.output_dir.parent == build_dir and c.output_dir.name.startswith("_jit_jit_axpy_")
    text = (c.output_dir / "kernel_config.py").read_text()
    assert '"func_id"' in text and '"name": "axpy"' in text


def test_jit_asked_to_write(build_dir, rng, tmp_path):
    # ART-9, TXT-1
    x, y = arrays(rng)
    out = np.full_like(x, 7)
    programs.jit_axpy._cache.clear()
    assert programs.jit_axpy(x, y, out, 1.5, config=RunConfig(codegen_only=True)) is None
    assert (out == 7).all() and len(list(build_dir.iterdir())) == 1
    c = programs.jit_axpy.compile(x, y, out, 1.5, config=RunConfig(save_kernels_dir=str(tmp_path / "k")))
    assert (tmp_path / "k" / "compiled_meta.json").exists() and c.output_dir == tmp_path / "k"
    hardware = programs.jit_axpy.compile(x, y, out, 1.5, config=RunConfig(platform="a2a3"))
    assert hardware._written


def test_debug_runner(rng):
    # TXT-4
    import ast
    import subprocess
    import sys

    pytest.importorskip("torch")
    x, y = arrays(rng)
    c = programs.jit_axpy.compile(x, y, np.zeros_like(x), 2.0)
    path = c.output_dir / "debug" / "run.py"
    text = path.read_text()
    ast.parse(text)
    assert (
        "_inline_inputs" in text and f"torch.randn(({ROWS}, {COLS})" in text and f"torch.zeros(({ROWS}, {COLS})" in text
    )
    subprocess.run([sys.executable, str(path)], check=True, timeout=300)


def test_reports(add, rng):
    # OBS-6, OBS-7
    x, y = arrays(rng)
    add(x, y)
    report = runtime.last_report()
    assert report.ok and report.world_size == 1 and report.platform == "a2a3sim"
    assert report.ranks[0].tasks == 1 and report.ranks[0].kernels == {"add_tiles": 1}
    assert json.loads(json.dumps(report.to_dict()))["ranks"][0]["tasks"] == 1
    assert "rank 0" in repr(report)
