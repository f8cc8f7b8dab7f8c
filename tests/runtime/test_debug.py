# SPDX-License-Identifier: Apache-2.0
"""torch code, pass manager, printing, comparing, saving, tools, arith (04 sections 5.2, 16, 21.5, 21.6)."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import programs
import pypto.language as pl
import pytest
from pypto import _explain, arith, compile_profiling, ir, passes
from pypto.debug import torch_codegen, validate_pass_ir_codegen_results

torch = pytest.importorskip("torch")
ROWS, COLS = programs.ROWS, programs.COLS


def arguments(program):
    torch.manual_seed(3)
    if program is programs.Rows:
        return [torch.randn(5, COLS), torch.zeros(5, COLS)]
    if program is programs.ScaleAdd:
        return [torch.zeros(ROWS, COLS), 2.5, torch.randn(ROWS, COLS), torch.randn(ROWS, COLS)]
    return [torch.randn(ROWS, COLS), torch.randn(ROWS, COLS), torch.zeros(ROWS, COLS)]


def clones(values):
    return [v.clone() if isinstance(v, torch.Tensor) else v for v in values]


@pytest.mark.parametrize("name", ["Add", "ScaleAdd", "Rows"])
@pytest.mark.parametrize("check_shapes", [False, True])
def test_torch_codegen(name, check_shapes):
    # OBS-17
    program = getattr(programs, name)
    compiled = ir.compile(program, dump_passes=False)
    args = arguments(program)
    want = clones(args)
    compiled(*want)
    for stage in (program, compiled._native.program):
        scope: dict = {}
        exec(torch_codegen(stage, check_shapes=check_shapes), scope)
        got = clones(args)
        scope["main"](*got)
        for a, b in zip(got, want, strict=True):
            assert not isinstance(a, torch.Tensor) or torch.equal(a, b)
    assert "import torch" in torch_codegen(program) and "pypto" not in torch_codegen(program).split("\n", 1)[1]


def test_torch_check_shapes():
    scope: dict = {}
    exec(torch_codegen(programs.Add, check_shapes=True), scope)
    with pytest.raises(AssertionError):
        scope["main"](torch.zeros(ROWS, COLS + 1), torch.zeros(ROWS, COLS), torch.zeros(ROWS, COLS))


def test_validate(tmp_path, capsys):
    # OBS-18
    compiled = ir.compile(programs.Add, output_dir=tmp_path)
    x, y, out = arguments(programs.Add)
    tensors = {"x": x, "y": y, "out": out}
    compiled.validate_ir(tensors, {"out": x + y})
    assert capsys.readouterr().out.count("ok") == len(ir.PassManager.get_strategy().pass_names) + 1
    with pytest.raises(AssertionError, match=r"00_frontend.*out.*largest difference"):
        compiled.validate_ir(tensors, {"out": x + y + 1})
    with pytest.raises(FileNotFoundError):
        validate_pass_ir_codegen_results(tmp_path / "none", tensors, {})
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError):
        validate_pass_ir_codegen_results(tmp_path / "empty", tensors, {})
    with pytest.raises(TypeError):
        validate_pass_ir_codegen_results(tmp_path / "passes_dump", [x], {})
    with pytest.raises(FileNotFoundError, match="dump_passes=True"):
        ir.compile(programs.Add, dump_passes=False).validate_ir(tensors, {})


def test_pass_manager(tmp_path):
    # CMP-15 to CMP-18
    pm = ir.PassManager.get_strategy()
    assert pm.pass_names == [p.get_name() for p in pm.passes] == pm.get_pass_names() and isinstance(pm.passes, tuple)
    before = str(programs.Add)
    lowered = pm.run_passes(programs.Add, dump_ir=True, output_dir=tmp_path)
    assert str(programs.Add) == before and lowered.lowered
    assert sorted(f.func_type.name for f in lowered.functions.values()) == ["AIV", "Orchestration"]
    dumps = sorted(p.name for p in tmp_path.glob("*.py"))
    assert dumps == ["00_frontend.py", *(f"{i:02d}_after_{n}.py" for i, n in enumerate(pm.pass_names, 1))]
    assert (tmp_path / dumps[-1]).read_text().strip() == str(lowered).strip()
    with pytest.raises(ValueError):
        pm.run_passes(programs.Add, dump_ir=True)
    with passes.PassContext([], memory_planner=passes.MemoryPlanner.PTOAS), pytest.raises(RuntimeError):
        pm.run_passes(programs.Add)


def test_passes_by_hand():
    # PKG-8
    order = """inline_functions unroll_loops ctrl_flow_transform convert_to_ssa simplify normalize_stmt_structure
    flatten_call_expr outline_hierarchy_scopes outline_incore_scopes outline_cluster_scopes convert_tensor_to_tile_ops
    optimize_orch_tensors lower_composite_ops flatten_tile_nd_to_2d auto_tile_matmul_l0""".split()
    sub = "convert_to_ssa convert_tensor_to_tile_ops lower_composite_ops flatten_tile_nd_to_2d auto_tile_matmul_l0"
    seen = []
    watch = passes.CallbackInstrument(after_pass=lambda p, prog: seen.append(p.get_name()))
    for names in (order, sub.split()):
        seen.clear()
        with passes.PassContext([watch]):
            program = programs.Add
            for name in names:
                program = getattr(passes, name)()(program)
        assert seen == names and isinstance(program, ir.Program)
        args = arguments(programs.Add)
        out = ir.compile(program, dump_passes=False)(*args[:2])
        assert torch.equal(out, args[0] + args[1])


def test_round_trip(tmp_path):
    # SER-2, SER-7 to SER-9
    for program in (programs.Add, programs.ScaleAdd, programs.Rows, programs.PerRank, programs.Counter):
        again = pl.parse(ir.python_print(program))
        ir.assert_structural_equal(program, again, enable_auto_mapping=True)
        assert ir.structural_equal(program, again, enable_auto_mapping=True)
        assert ir.structural_hash(program, True) == ir.structural_hash(again, True)
        data = ir.serialize(program)
        assert ir.deserialize(data).name == program.name and ir.serialize(ir.deserialize(data)) == data
        ir.serialize_to_file(program, tmp_path / "p")
        assert str(ir.deserialize_from_file(tmp_path / "p")) == str(program)
    assert not ir.structural_equal(programs.Add, programs.Rows, enable_auto_mapping=True)
    with pytest.raises(ValueError, match="not structurally equal"):
        ir.assert_structural_equal(programs.Add, programs.Rows, enable_auto_mapping=True)
    with pytest.raises(ValueError):
        ir.deserialize(b"nonsense")
    with pytest.raises(ValueError):
        ir.deserialize(data[:-3])


def test_get_op():
    assert ir.get_op("tile.add").name == "tile.add"
    with pytest.raises(ValueError, match="tile.add"):
        ir.get_op("tile.addd")


def test_tools(tmp_path):
    # 21.6, OBS-19
    compiled = ir.compile(programs.Add, output_dir=tmp_path / "b", profiling=True)
    d = compiled.output_dir
    memory = json.loads((d / "report" / "memory.json").read_text())
    assert memory["add_tiles"]["Vec"]["capacity"] == 188416
    assert memory["add_tiles"]["Vec"]["high_water"] >= 2 * ROWS * COLS * 4
    profile = json.loads((d / "report" / "pipeline_profile.json").read_text())
    (stage,) = [s for s in profile["stages"] if s["name"] == "passes"]
    assert [c["name"] for c in stage["children"]] == ir.PassManager.get_strategy().pass_names

    def tool(*args):
        return subprocess.run([sys.executable, "-m", *args], capture_output=True, text=True, timeout=300)

    done = tool("pypto.tools.memory_map", str(d), "-o", str(tmp_path / "m.html"))
    assert done.returncode == 0 and "add_tiles" in (tmp_path / "m.html").read_text()
    done = tool("pypto.tools.ir_trace", str(d / "passes_dump"), "-o", str(tmp_path / "t.html"))
    assert done.returncode == 0 and "after_" in (tmp_path / "t.html").read_text()
    assert tool("pypto.tools.ir_trace", str(tmp_path / "nope")).returncode == 1
    assert tool("pypto.tools.ir_trace").returncode == 2


def test_profiler(tmp_path):
    with compile_profiling.CompileProfiler() as p:
        assert compile_profiling.get_active_profiler() is p is compile_profiling.CompileProfiler.current()
        with p.stage("mine"):
            ir.compile(programs.Add, dump_passes=False)
    assert compile_profiling.get_active_profiler() is None
    assert p.total_seconds > 0 and "passes" in p.summary() and json.loads(p.to_json())["stages"][0]["name"] == "mine"


def test_backend():
    # 2.4, 05 H-9, H-13
    from pypto import backend

    for chip, cube, vector, acc in ((backend.Backend910B, 24, 48, 131072), (backend.Backend950, 36, 72, 262144)):
        b = chip.instance()
        assert b is chip.instance()
        counts = {ir.CoreType.CUBE: 0, ir.CoreType.VECTOR: 0}
        for die, dies in b.soc.die_counts.items():
            for cluster, clusters in die.cluster_counts.items():
                for core, cores in cluster.core_counts.items():
                    counts[core.core_type] += dies * clusters * cores
        assert counts == {ir.CoreType.CUBE: cube, ir.CoreType.VECTOR: vector}
        assert b.get_core_count(ir.CoreType.VECTOR) == vector and b.get_mem_size(ir.MemorySpace.Acc) == acc
        hash(b.soc)
    assert backend.Backend950.instance().get_handler().get_pto_target_arch() == "a5"
    assert backend.Backend910B.instance().get_handler().get_default_sim_platform() == "a2a3sim"
    path = backend.Backend910B.instance().find_mem_path(ir.MemorySpace.DDR, ir.MemorySpace.Acc)
    assert path[0] is ir.MemorySpace.DDR and path[-1] is ir.MemorySpace.Acc


def test_backend_file(tmp_path):
    from pypto.backend import Backend, Backend950

    Backend950.instance().export_to_file(tmp_path / "b.json")
    assert Backend.import_from_file(tmp_path / "b.json").soc == Backend950.instance().soc
    (tmp_path / "b.json").write_text("{}")
    with pytest.raises(ValueError):
        Backend.import_from_file(tmp_path / "b.json")


def test_default_backend():
    # PKG-7
    from pypto import backend

    backend.reset_for_testing()
    assert not backend.is_backend_configured()
    with pytest.raises(ValueError, match="set_backend_type"):
        backend.get_backend_type()
    for t in (backend.BackendType.Ascend950, backend.BackendType.Ascend910B):
        backend.set_backend_type(t)
        assert backend.get_backend_type() is t
        assert backend.get_backend_instance() is backend.get_backend_instance(t)
    with pytest.raises(TypeError):
        backend.set_backend_type("Ascend950")
    backend.reset_for_testing()
    with pytest.raises(AttributeError):
        backend.BackendType.SuperscalarNPU


def test_explain():
    # ERR-5
    done = subprocess.run([sys.executable, "-m", "pypto", "explain", "x-46"], capture_output=True, text=True)
    assert done.returncode == 0 and "Wrong:" in done.stdout and "Right:" in done.stdout
    done = subprocess.run([sys.executable, "-m", "pypto", "explain", "X-4000"], capture_output=True, text=True)
    assert done.returncode == 1 and "Did you mean" in done.stderr
    for spelling in ("03:X-40", "X-40/X-42"):  # as reports and rules name it
        assert "Right:" in _explain.page(spelling)


def test_every_id_has_a_page():
    # ERR-5
    root = Path(__file__).parents[2]
    sources = [p for top in ("core", "python/pypto", "python/bind") for p in (root / top).rglob("*")]
    text = "".join(p.read_text() for p in sources if p.suffix in (".cpp", ".h", ".py", ".def"))
    ids = set(re.findall(r'"((?:[HLOX]-\d+|W-[A-Z0-9][A-Z0-9-]*))(?:: [^"]*)?"', text))
    assert {"X-1", "X-40", "X-57", "H-56", "W-DYN-EXTENT"} <= ids and len(ids) > 70
    assert sorted(ids - set(_explain.pages())) == []
    for key in _explain.pages():
        wrong, right = _explain.examples()[key]
        assert wrong and right and wrong != right, key
    assert set(_explain.examples()) == set(_explain.pages())


def test_arith():
    # 2.6
    assert (arith.gcd(12, -18), arith.lcm(4, 6), arith.floordiv(-7, 2), arith.floormod(-7, 2)) == (6, 12, -4, 1)
    for a in range(-20, 21):
        for b in range(-20, 21):
            g, x, y = arith.extended_euclidean(a, b)
            assert g == arith.gcd(a, b) == a * x + b * y
    assert arith.fold_const("//", 7, 0) is None and arith.fold_const("%", -7, 4) == 1
    an = arith.Analyzer()
    an.bind("n", 1, 64)
    assert an.const_int_bound("n * 2 - 3") == arith.ConstIntBound(-1, 125)
    assert an.can_prove_less("n", 65) and not an.can_prove_less("n", 64) and an.can_prove_equal("n + n", "2 * n")
    assert an.simplify("4 * n // 2 + n % 1") == an.simplify("n + n")
    m = arith.ModularSetAnalyzer()
    m.bind("k", 16, 0)
    assert m("k * 2 + 3") == arith.ModularSet(32, 3) and m("(k + 5) % 8") == arith.ModularSet(0, 5)
    t = arith.TransitiveComparisonAnalyzer()
    t.bind("a", arith.CompareResult.LT, "b")
    t.bind("b", arith.CompareResult.LE, "c")
    assert t.try_compare("a", "c") is arith.CompareResult.LT and t.try_compare("c", "a") is arith.CompareResult.GT
    with an.constraint("n", 8, 8):
        assert an.const_int_bound("n // 4") == arith.ConstIntBound(2, 2)
