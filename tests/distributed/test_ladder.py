# SPDX-License-Identifier: Apache-2.0
"""The ladder as its users run it (03 G-6, G-9): every program, mode and flag, on both platforms and many rank counts.

The programs check themselves; test_ladder_data.py calls their entry points with other data, sizes and goldens.
"""

import importlib.util
import pathlib
import sys

import pytest
from pypto.runtime import last_report

LADDER = pathlib.Path(__file__).parents[2] / "examples" / "distributed"
PLATFORMS = ["a2a3sim", "a5sim"]
PAIR = ["0,1"]
MANY = ["0,1", "0,1,2", "3,1,0,2", "0,1,2,3,4", "0,1,2,3,4,5,6,7"]

CASES = [
    *[(step, [], PAIR) for step in ("01_hello_rank", "02_programming_model", "03_window_buffer", "04_barrier")],
    ("04_barrier", ["--use-builtin"], PAIR),
    *[("05_remote_load_store", ["--mode", mode], PAIR) for mode in ("load", "store")],
    *[("06_put_get", ["--mode", mode], PAIR) for mode in ("put", "get")],
    *[("07_dynamic_rank_count", ["--mode", mode], MANY) for mode in ("put", "get")],
    *[(step, ["--cost"], MANY) for step in ("08_allreduce_mesh", "09_allreduce_two_phase", "10_allreduce_ring")],
    *[("11_allreduce_reveal", ["--cost", "--mode", mode], MANY) for mode in ("mesh", "ring", "both")],
    ("11_allreduce_reveal", ["--show-ir"], PAIR),
    *[
        ("12_broadcast", ["--cost", *root, *extra], MANY)
        for root in ([], ["--root", "1"])
        for extra in ([], ["--use-builtin"])
    ],
    *[
        (step, ["--cost", *extra], MANY)
        for step in ("13_allgather", "14_reduce_scatter", "15_all_to_all")
        for extra in ([], ["--use-builtin"])
    ],
    ("15_all_to_all", ["--ragged", "--cost"], MANY),
    ("16_putting_it_together", ["--cost"], MANY),
]
RUNS = [(step, flags, devices) for step, flags, worlds in CASES for devices in worlds]


def load(step: str, folder: pathlib.Path = LADDER):
    """Imports a program under a fresh module name."""
    spec = importlib.util.spec_from_file_location(f"ladder_{step}", folder / f"{step}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def run_main(module, argv, monkeypatch, capfd) -> str:
    monkeypatch.setattr(sys, "argv", [module.__file__, *argv])
    assert module.main() == 0
    captured = capfd.readouterr()
    assert captured.err == ""  # a correct program reports nothing (03 X-73)
    return captured.out


@pytest.mark.parametrize("checks", ["default", "strict"])
@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("step,flags,devices", RUNS, ids=lambda v: "".join(v) if isinstance(v, list) else str(v))
def test_prints_ok(step, flags, devices, platform, checks, monkeypatch, capfd):  # 03 G-9
    monkeypatch.setenv("PYPTO_SIM", f"checks={checks}")
    out = run_main(load(step), ["-p", platform, "-d", devices, *flags], monkeypatch, capfd)
    assert out.splitlines()[-1] == "OK"
    assert last_report().diagnostics == []


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("devices", ["0", *MANY])
def test_moe_example(devices, platform, monkeypatch, capfd):
    module = load("moe_dispatch_combine", LADDER.parent / "models")
    monkeypatch.setenv("PYPTO_SIM", "checks=strict")
    assert run_main(module, ["-p", platform, "-d", devices], monkeypatch, capfd) == "OK\n"
    assert last_report().diagnostics == []


@pytest.mark.parametrize(
    "step,ids", [("05_remote_load_store", "0"), ("05_remote_load_store", "0,1,2"), ("08_allreduce_mesh", "4")]
)
def test_wrong_device_counts(step, ids, monkeypatch):  # 03 G-6
    monkeypatch.setattr(sys, "argv", [step, "-d", ids])
    with pytest.raises(SystemExit, match=r"need (exactly|at least) 2 devices, got"):
        load(step).main()


def test_reveal_prints_what_the_page_promises(monkeypatch, capfd):  # 03 S-11
    out = run_main(load("11_allreduce_reveal"), ["-d", "0,1,2"], monkeypatch, capfd)
    assert out == "mesh: lowered forms match\nring: lowered forms match\nOK\n"


@pytest.mark.parametrize("step", ["05_remote_load_store", "11_allreduce_reveal"])
def test_compile_only(step, monkeypatch, capfd, tmp_path):
    monkeypatch.setenv("PYPTO_PROG_BUILD_DIR", str(tmp_path))
    out = run_main(load(step), ["--compile-only", "-d", "0,1"], monkeypatch, capfd)
    folder = out.splitlines()[-1].removeprefix("compile_only done: ")
    assert (pathlib.Path(folder) / "program.bin").is_file()
    assert "OK" not in out.splitlines()
