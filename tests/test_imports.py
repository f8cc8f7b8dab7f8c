# SPDX-License-Identifier: Apache-2.0
"""Every name that existing programs import can be imported (04 section 2, PKG-1, PKG-2, 26 step 1)."""

from __future__ import annotations

import csv
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROWS = list(
    csv.DictReader(
        (Path(__file__).parent / "data" / "imports.tsv").read_text(encoding="utf-8").splitlines(), delimiter="\t"
    )
)


@pytest.mark.parametrize("row", ROWS, ids=lambda r: f"{r['module']}:{r['name'].split()[0]}")
def test_row_imports(row):
    # PKG-1, PKG-5
    module = importlib.import_module(row["module"])
    name = row["name"]
    if name.startswith("*module*"):
        return
    scope: dict[str, object] = {}
    exec(f"from {row['module']} import {name}", scope)
    assert scope[name] is getattr(module, name)


MODULES = """
pypto.ir pypto.language pypto.language.distributed pypto.language.parser.diagnostics pypto.runtime pypto.passes
pypto.backend pypto.jit pypto.debug pypto.tools pypto.arith pypto.codegen pypto.testing pypto.compile_profiling
pypto.pypto_core pypto.pypto_core.passes pypto.pypto_core.ir pypto.pypto_core.backend pypto.pypto_core.codegen
pypto.pypto_core.arith pypto.pypto_core.testing pypto.ir.compiled_program pypto.ir.distributed_compiled_program
pypto.ir.pass_manager pypto.ir.printer pypto.backend.pto_backend pypto.passes.l0_tile_chooser pypto.runtime.runner
pypto.runtime.device_runner pypto.runtime.distributed_runner pypto.runtime.golden_writer pypto.runtime.tensor_spec
pypto.runtime.device_tensor pypto.runtime.worker pypto.runtime.runtime_base pypto.runtime.log_config
pypto.runtime.bench pypto.runtime.execute_artifact pypto.runtime.debug pypto.runtime.debug.replay
pypto.runtime.debug.pto_rebuild pypto.tools.memory_map pypto.tools.ir_trace pypto.tools.clean_sim_trace
""".split()


def test_modules_by_both_spellings():
    # PKG-1: as attribute of its parent after `import pypto`, and by dotted import; in a fresh process.
    code = "import importlib, pypto\n" + "".join(
        f"m = {name}\nassert m is importlib.import_module({name!r}), {name!r}\n" for name in MODULES
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


def test_import_is_quiet_and_light():
    # PKG-2, PKG-3: no torch, no thread, no file.
    code = (
        "import sys, threading, pypto, pypto.runtime, pypto.ir, pypto.language, pypto.language.distributed\n"
        "from pypto.runtime import RunConfig, DistributedWorker, ChipWorker\n"
        "from pypto.ir.distributed_compiled_program import DistributedConfig\n"
        "RunConfig()\n"
        "assert 'torch' not in sys.modules\n"
        "assert threading.active_count() == 1\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120)
    assert done.stdout == "" and done.stderr == ""


def test_public_names_of_runtime():
    # 2.7
    from pypto import runtime

    wanted = """run benchmark compile_program execute_compiled execute_distributed_compiled configure_log log_level
    ensure_pto_isa_root pto_isa_include_dir BenchmarkStats TraceInvocation TraceSpan ChipWorker DeviceTensor
    StackedDeviceTensor DistributedWorker DistributedRunHandle RegistrationHandle RunConfig RunResult ScalarSpec
    TensorSpec Worker SimOptions explore last_report RunReport RankCounters""".split()
    assert set(wanted) == set(runtime.__all__)
    for name in wanted:
        assert getattr(runtime, name) is not None


def test_public_names_of_pypto():
    # 2.1, 01 L-4
    import pypto

    names = """BOOL INT4 INT8 INT16 INT32 INT64 UINT4 UINT8 UINT16 UINT32 UINT64 FP4 FP8E4M3FN FP8E5M2 FP8E8M0 FP16
    FP32 BF16 HF4 HF8 INDEX""".split()
    for name in names:
        assert getattr(pypto, f"DT_{name}") == getattr(pypto.DataType, name)
        assert getattr(pypto.ir, name) == getattr(pypto.DataType, name)
    assert isinstance(pypto.__version__, str)
    assert issubclass(pypto.InternalError, RuntimeError) and not issubclass(pypto.InternalError, pypto.Error)
    with pytest.raises(ValueError, match="no such thing"):
        pypto.check(False, "no such thing")
    with pytest.raises(pypto.InternalError, match="broken"):
        pypto.internal_check(0, "broken")
    with pytest.raises(AttributeError):
        pypto.no_such_name


def test_enums_are_one_object_everywhere():
    # 01 L-4: identity
    import pypto.language as pl
    from pypto import ir, pypto_core

    for name in ("FunctionType", "Level", "Role", "MemorySpace", "TensorLayout", "SplitMode", "ForKind"):
        assert getattr(pl, name) is getattr(ir, name) is getattr(pypto_core.ir, name)
    assert ir.Mem is ir.MemorySpace
    assert {"In", "Out", "InOut"} == set(ir.ParamDirection.__members__)
    assert ir.CoreType.CUBE is not ir.CoreType.VECTOR
    assert pypto_core.passes.MemoryPlanner is __import__("pypto").passes.MemoryPlanner


def test_pass_factories_exist():
    # 2.5
    from pypto import passes

    for name in """inline_functions unroll_loops ctrl_flow_transform convert_to_ssa simplify normalize_stmt_structure
    flatten_call_expr outline_hierarchy_scopes outline_incore_scopes outline_cluster_scopes convert_tensor_to_tile_ops
    optimize_orch_tensors lower_composite_ops flatten_tile_nd_to_2d auto_tile_matmul_l0""".split():
        made = getattr(passes, name)()
        assert isinstance(made, passes.Pass) and made.get_name() == name
