# SPDX-License-Identifier: Apache-2.0
"""What end-to-end harnesses use: one generic case inline, in 36 threads, in a forked child (04 section 18)."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import programs
import pytest
from pypto.backend import BackendType, reset_for_testing, set_backend_type
from pypto.ir.pass_manager import OptimizationStrategy
from pypto.runtime import ScalarSpec, TensorSpec, compile_program
from pypto.runtime.device_runner import (
    build_orch_args_from_inputs,
    compile_and_assemble,
    execute_on_device,
    validate_golden,
)
from pypto.runtime.golden_writer import (
    _data_dir_has_files,
    _extract_compute_golden,
    _materialize_tensors,
    _save_data_files,
    generate_golden_source,
)
from pypto.runtime.runner import _DfxOpts, _execute_on_device, validate_persisted_outputs

torch = pytest.importorskip("torch")
ROWS, COLS = programs.ROWS, programs.COLS
SCALE = 2.5


class Case:
    """A case as a test author writes it."""

    factor = SCALE

    def specs(self):
        return [
            TensorSpec("out", [ROWS, COLS], torch.float32, is_output=True),
            TensorSpec("x", [ROWS, COLS], torch.float32, init_value=torch.randn),
            TensorSpec("acc", [ROWS, COLS], torch.float32, init_value=torch.rand, is_output=True),
        ]

    def scalars(self):
        return [ScalarSpec("s", SCALE, "float")]

    def compute_golden(self, tensors, params=None):
        tensors["out"][:] = tensors["x"] * self.factor
        tensors["acc"][:] = tensors["acc"] + tensors["x"] * self.factor


def build(folder: Path, use_data_files: bool = False):
    """Steps 1 to 4 of 18.1 (HAR-5)."""
    set_backend_type(BackendType.Ascend910B)
    case = Case()
    compile_program(
        programs.ScaleAdd,
        folder,
        strategy=OptimizationStrategy.Default,
        backend_type=BackendType.Ascend910B,
        dump_passes=False,
    )
    assert list((folder / "orchestration").glob("*.cpp"))
    assert list((folder / "kernels").rglob("*.cpp")) or '"func_id"' in (folder / "kernel_config.py").read_text()
    source = generate_golden_source(
        case.specs(), case.compute_golden, 1e-5, 1e-5, scalar_specs=case.scalars(), use_data_files=use_data_files
    )
    if use_data_files:
        tensors = _materialize_tensors(case.specs())
        _save_data_files(tensors, folder / "data" / "in")
        golden = {n: t.clone() for n, t in tensors.items()}
        case.compute_golden(golden)
        _save_data_files({n: golden[n] for n in ("out", "acc")}, folder / "data" / "out")
        assert _data_dir_has_files(folder / "data", case.specs())
    (folder / "golden.py").write_text(source)
    return compile_and_assemble(folder, "a2a3sim")


def run(folder: Path, use_data_files: bool = False, platform: str = "a2a3sim"):
    loaded, name, config = build(folder, use_data_files)
    assert isinstance(name, str) and isinstance(config, dict)
    _execute_on_device(folder, folder / "golden.py", loaded, name, platform, 0)


@pytest.fixture(autouse=True)
def fresh_backend():
    yield
    reset_for_testing()


@pytest.mark.parametrize("use_data_files", [False, True])
def test_inline(tmp_path, use_data_files):
    # HAR-1, HAR-2, HAR-3
    run(tmp_path, use_data_files)


def test_other_architecture(tmp_path):
    # PLAT-5: compiled with the default backend, run on the other simulator
    loaded, name, _ = build(tmp_path)
    compile_and_assemble(tmp_path, "a5sim")
    _execute_on_device(tmp_path, tmp_path / "golden.py", loaded, name, "a5sim", 11)


def test_pool(tmp_path):
    # 18.1 step 6, PKG-4
    folders = [tmp_path / str(i) for i in range(36)]
    errors, built = [], {}

    def compile_one(folder):
        try:
            built[folder] = build(folder)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=compile_one, args=(f,)) for f in folders]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors
    assert len(built) == 36

    def run_one(folder):
        try:
            loaded, name, _ = built[folder]
            _execute_on_device(
                folder,
                folder / "golden.py",
                loaded,
                name,
                "a2a3sim",
                0,
                dfx=_DfxOpts(),
                validate=False,
                actual_out_dir=folder / "data" / "actual",
            )
        except BaseException as error:
            errors.append(error)

    torch.manual_seed(0)
    threads = [threading.Thread(target=run_one, args=(f,)) for f in folders[:4]]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not errors, errors
    assert {p.stem for p in (folders[0] / "data" / "actual").glob("*.pt")} == {"out", "acc"}


def test_persisted(tmp_path):
    loaded, name, _ = build(tmp_path, use_data_files=True)
    with pytest.raises(FileNotFoundError):
        validate_persisted_outputs(tmp_path, 1e-5, 1e-5)
    _execute_on_device(
        tmp_path,
        tmp_path / "golden.py",
        loaded,
        name,
        "a2a3sim",
        0,
        validate=False,
        actual_out_dir=tmp_path / "data" / "actual",
    )
    validate_persisted_outputs(tmp_path, 1e-5, 1e-5)
    wrong = torch.load(tmp_path / "data" / "actual" / "out.pt")
    wrong[3, 5] += 1
    torch.save(wrong, tmp_path / "data" / "actual" / "out.pt")
    with pytest.raises(AssertionError, match=r"(?s)Output 'out' does not match golden\..*Mismatched elements: 1/512"):
        validate_persisted_outputs(tmp_path, 1e-5, 1e-5)


def test_forked_child(tmp_path):
    # PKG-3
    run(tmp_path / "parent")
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            run(tmp_path / "child")
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_missing_directory(tmp_path):
    # HAR-1
    with pytest.raises(FileNotFoundError, match=r"compiled_meta.json"):
        compile_and_assemble(tmp_path / "nowhere", "a2a3sim")
    with pytest.raises(ValueError, match="Invalid platform"):
        compile_and_assemble(tmp_path, "x")


def test_edited_text(tmp_path, caplog):
    # HAR-13
    build(tmp_path)
    text = next((tmp_path / "orchestration").glob("*.cpp"))
    text.write_text(text.read_text() + "// mine\n")
    with caplog.at_level("WARNING", logger="pypto.runtime"):
        compile_and_assemble(tmp_path, "a2a3sim")
        compile_and_assemble(tmp_path, "a2a3sim")
    assert len([r for r in caplog.records if str(text) in r.getMessage()]) == 1


def test_tensor_spec():
    # HAR-6
    def make(init, dtype=torch.float32):
        return TensorSpec("t", [2, 3], dtype, init_value=init).create_tensor()

    assert torch.equal(make(None), torch.zeros(2, 3)) and torch.equal(make(4), torch.full((2, 3), 4.0))
    assert make(torch.ones).sum() == 6 and make(torch.randn).shape == (2, 3)
    assert make(lambda: torch.arange(6).reshape(2, 3)).dtype == torch.float32
    assert make(torch.arange(6).reshape(2, 3), torch.int8).dtype == torch.int8
    assert make(torch.randn, torch.int32).dtype == torch.int32
    with pytest.raises(TypeError):
        make("random")
    with pytest.raises(ValueError):
        ScalarSpec("s", 1, "int8")
    assert isinstance(ScalarSpec("s", 3, "uint32").create_scalar(), ctypes.c_uint32)


OFFSET = 7


def helper(t):
    return t + OFFSET


def test_extract():
    # HAR-4
    def golden(tensors, params):
        tensors["y"][:] = helper(tensors["x"]) * SCALE

    scope: dict = {"torch": torch}
    exec(_extract_compute_golden(golden), scope)
    t = {"x": torch.arange(3.0), "y": torch.zeros(3)}
    scope["compute_golden"](t)
    assert torch.equal(t["y"], (torch.arange(3.0) + 7) * 2.5)
    text = _extract_compute_golden(Case().compute_golden)
    assert "self" not in text and "2.5" in text
    made = eval("lambda tensors: None")
    with pytest.raises(RuntimeError):
        _extract_compute_golden(made)
    with pytest.raises(ValueError):
        generate_golden_source([], None, 1e-5, 1e-5)


def test_golden_source_values():
    # HAR-3
    specs = [
        TensorSpec("a", [2, 2], torch.bfloat16, init_value=torch.tensor([[1.5, -2], [0.25, float("inf")]])),
        TensorSpec("b", [3], torch.int32, init_value=lambda: torch.arange(3) + OFFSET),
        TensorSpec("c", [2], torch.float32, init_value=0.5, is_output=True),
    ]
    source = generate_golden_source(
        specs,
        None,
        1e-3,
        0,
        compute_golden_src="def compute_golden(t, p=None):\n    pass",
        scalar_specs=[ScalarSpec("n", 3), ScalarSpec("f", 0.5, "double")],
    )
    scope: dict = {"__file__": "golden.py"}
    exec(source, scope)
    values = scope["generate_inputs"]({"name": "Default"})
    assert [n for n, _ in values] == ["a", "b", "c", "n", "f"]
    assert torch.equal(values[0][1], torch.tensor([[1.5, -2], [0.25, float("inf")]]).bfloat16())
    assert values[1][1].tolist() == [7, 8, 9] and values[1][1].dtype == torch.int32
    assert values[2][1].tolist() == [0.5, 0.5]
    assert isinstance(values[3][1], ctypes.c_int64) and values[4][1].value == 0.5
    assert scope["__outputs__"] == ["c"] and scope["RTOL"] == 1e-3 and scope["ATOL"] == 0


def test_validate_golden():
    # HAR-7
    good = torch.tensor([1.0, 2.0, float("inf")])
    validate_golden({"a": good * 1}, {"a": good})
    validate_golden({"a": torch.tensor([5.0, 2.0])}, {"a": torch.tensor([float("nan"), 2.0])})
    with pytest.raises(AssertionError) as e:
        validate_golden({"a": torch.zeros(30)}, {"a": torch.arange(30.0)})
    assert str(e.value).startswith("Output 'a' does not match golden.")
    assert "Mismatched elements: 29/30" in str(e.value) and str(e.value).count("actual=") == 20
    with pytest.raises(AssertionError):
        validate_golden({"a": torch.zeros(2)}, {"a": torch.zeros(3)})
    with pytest.raises(AssertionError):
        validate_golden({"a": torch.tensor([float("nan")])}, {"a": torch.tensor([1.0])})


def test_low_level(tmp_path):
    # HAR-9
    loaded, name, _ = build(tmp_path)
    x, acc, out = torch.randn(ROWS, COLS), torch.zeros(ROWS, COLS), torch.zeros(ROWS, COLS)
    args, tensors, ins, outs = build_orch_args_from_inputs(
        [("out", out), ("x", x), ("acc", acc), ("s", ctypes.c_float(3.0))], ["acc"]
    )
    assert set(tensors) == {"out", "x", "acc"} and set(outs) == {"out", "acc"} and set(ins) == {"x"}
    execute_on_device(loaded, args, "a2a3sim", name, 0)
    np.testing.assert_array_equal(out.numpy(), (x * 3).numpy())
    with pytest.raises(ValueError):
        execute_on_device(loaded, args, "a2a3sim", name, 0, level=3)
    with pytest.raises(ValueError):
        execute_on_device(loaded, args, "a2a3sim", name, 0, enable_dep_gen=True)


def test_command_line(tmp_path):
    # 18.5
    import json

    build(tmp_path / "good")
    build(tmp_path / "bad")
    golden = tmp_path / "bad" / "golden.py"
    golden.write_text(golden.read_text().replace("* 2.5", "* 2.25"))
    base = [sys.executable, "-m", "pypto.runtime.execute_artifact", "--device-id", "4"]

    def lines(*args):
        done = subprocess.run([*base, *args], capture_output=True, text=True, timeout=300)
        return done.returncode, [n for n in done.stdout.splitlines() if n.startswith("PYPTO_EXEC_RESULT")]

    good, bad = str(tmp_path / "good"), str(tmp_path / "bad")
    assert lines("--work-dir", good, "--platform", "a2a3sim") == (0, ["PYPTO_EXEC_RESULT=PASS device=4"])
    assert lines("--work-dir", bad, "--platform", "a2a3sim") == (1, ["PYPTO_EXEC_RESULT=FAIL"])
    manifest = tmp_path / "m.json"
    manifest.write_text(json.dumps([{"work_dir": d, "platform": "a2a3sim"} for d in (good, bad, "/nowhere/x")]))
    assert lines("--batch-manifest", str(manifest)) == (
        1,
        [
            f"PYPTO_EXEC_RESULT=PASS work_dir={good} device=4",
            f"PYPTO_EXEC_RESULT=FAIL work_dir={bad}",
            "PYPTO_EXEC_RESULT=INFRA work_dir=/nowhere/x",
        ],
    )


def test_replay(tmp_path):
    # HAR-11, HAR-12
    from pypto.runtime import debug
    from pypto.runtime.debug.pto_rebuild import rebuild_kernel_cpp_from_pto
    from pypto.runtime.debug.replay import invalidate_binary_cache

    build(tmp_path)
    invalidate_binary_cache(tmp_path)
    assert rebuild_kernel_cpp_from_pto(tmp_path) == [] and rebuild_kernel_cpp_from_pto(tmp_path / "none") == []
    debug.replay(tmp_path, validate=True)
    out, x, acc = (torch.zeros(ROWS, COLS), torch.randn(ROWS, COLS), torch.zeros(ROWS, COLS))
    debug.replay(tmp_path, out, 2.0, x, acc)
    assert torch.equal(out, x * 2)
    done = subprocess.run(
        [sys.executable, "-m", "pypto.runtime.debug.replay", str(tmp_path), "--validate"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0 and "PASS" in done.stdout, done.stdout + done.stderr
