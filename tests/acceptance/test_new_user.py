# SPDX-License-Identifier: Apache-2.0
"""The programs as a new user meets them: copied out of the repository into an empty folder, with nothing but the package
from a built wheel, and NumPy (03 G-9; 04 PLAT-5: no compiler, no checkout, no torch)."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "docs"))
from pages import LANGUAGES, blocks, pages  # noqa: E402

LARGEST_WHEEL = 20 << 20
PLATFORMS = ("a2a3sim", "a5sim")
PAIR, FOUR = "0,1", "0,1,2,3"

LADDER = [
    ("01_hello_rank", [], PAIR),
    ("02_programming_model", [], PAIR),
    ("03_window_buffer", [], PAIR),
    *[("04_barrier", flags, PAIR) for flags in ([], ["--use-builtin"])],
    *[("05_remote_load_store", ["--mode", mode], PAIR) for mode in ("load", "store")],
    *[("06_put_get", ["--mode", mode], PAIR) for mode in ("put", "get")],
    *[("07_dynamic_rank_count", ["--mode", mode], world) for mode in ("put", "get") for world in (PAIR, "0,1,2,3,4")],
    *[(f"{step}", ["--cost"], FOUR) for step in ("08_allreduce_mesh", "09_allreduce_two_phase", "10_allreduce_ring")],
    *[("11_allreduce_reveal", ["--cost", "--mode", mode], FOUR) for mode in ("mesh", "ring", "both")],
    ("11_allreduce_reveal", ["--show-ir"], PAIR),
    *[("12_broadcast", ["--cost", "--root", "1", *flags], FOUR) for flags in ([], ["--use-builtin"])],
    *[
        (step, ["--cost", *flags], FOUR)
        for step in ("13_allgather", "14_reduce_scatter", "15_all_to_all")
        for flags in ([], ["--use-builtin"])
    ],
    ("15_all_to_all", ["--ragged", "--cost"], FOUR),
    ("16_putting_it_together", ["--cost"], FOUR),
]
PROGRAMS = [
    (f"distributed/{step}.py", ["-p", platform, "-d", world, *flags])
    for step, flags, world in LADDER
    for platform in PLATFORMS
]
PROGRAMS += [("models/moe_dispatch_combine.py", ["-p", platform, "-d", FOUR]) for platform in PLATFORMS]
PROGRAMS += [
    (f"{folder}/{path.name}", ["-p", platform])
    for folder in ("beginner", "intermediate")
    for path in sorted((ROOT / "examples" / folder).glob("*.py"))
    for platform in PLATFORMS
]


def build_settings() -> dict[str, str]:
    """How the newest build of this checkout compiles: a wheel built alike comes out of the compiler cache."""
    for path in sorted(ROOT.glob("build/*/CMakeCache.txt"), key=lambda p: p.stat().st_mtime, reverse=True):
        found = dict(re.findall(r"^(\w+):\w+=(.*)$", path.read_text(), re.MULTILINE))
        if found.get("PYPTO_PYTHON") == "ON" and not found.get("PYPTO_SANITIZE") and "SKBUILD_STATE" not in found:
            return found
    raise AssertionError("no build of this checkout: `make build` first")


def build_wheel() -> Path:
    """Build the wheel into build/wheel_test; a second call does what changed."""
    settings = build_settings()
    out = ROOT / "build" / "wheel_test_made"
    shutil.rmtree(out, ignore_errors=True)
    env = {**os.environ, "CXX": settings["CMAKE_CXX_COMPILER"]}
    if "ccache" == settings.get("CMAKE_CXX_COMPILER_LAUNCHER"):
        env["CMAKE_ARGS"] = "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    command += ["-C", "build-dir=build/wheel_test", "-C", f"cmake.build-type={settings['CMAKE_BUILD_TYPE']}"]
    done = subprocess.run([*command, "-w", str(out), str(ROOT)], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = out.glob("*.whl")
    return wheel


def make_environment(folder: Path, wheel: Path) -> None:
    """A virtual environment with the wheel and NumPy; NumPy is lent by the environment of the tests."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    python = folder / "bin" / "python"
    site = Path(sysconfig.get_paths(vars={"base": str(folder), "platbase": str(folder)})["purelib"])
    import numpy

    lender = Path(numpy.__file__).parents[1]
    for path in [lender / "numpy", *lender.glob("numpy.libs"), *lender.glob("numpy-*.dist-info")]:
        (site / path.name).symlink_to(path)
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index"]
    done = subprocess.run([*pip, str(wheel)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def untracked() -> set[str]:
    command = ["git", "ls-files", "--others", "--exclude-standard"]
    return set(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.splitlines())


@pytest.fixture(scope="session")
def installed(tmp_path_factory) -> Path:
    """The environment; one for all processes of a test run. Building leaves nothing in the checkout but build/."""
    shared = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        shared = shared.parent
    with open(shared / "new_user.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder = shared / "new_user"
        if not (folder / "wheel").exists():
            shutil.rmtree(folder, ignore_errors=True)
            before = untracked()
            wheel = build_wheel()
            assert untracked() <= before
            make_environment(folder, wheel)
            (folder / "wheel").write_text(str(wheel))
    return folder


def run(environment: Path, command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of the environment in `folder`, without the variables of this process."""
    env = {"PATH": f"{environment / 'bin'}:/usr/bin:/bin", "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300, check=False)


def check_prints_ok(done: subprocess.CompletedProcess[str]) -> None:
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert done.stdout.splitlines()[-1] == "OK"


def test_wheel_holds_the_package_and_no_more(installed):
    wheel = Path((installed / "wheel").read_text())
    assert wheel.stat().st_size <= LARGEST_WHEEL
    names = zipfile.ZipFile(wheel).namelist()
    roots = {n.split("/")[0] for n in names}
    assert {r for r in roots if not r.endswith(".dist-info")} == {"pypto"}
    assert len([n for n in names if n.endswith(".so")]) == 1
    assert not [n for n in names if "__pycache__" in n or n.endswith((".pyc", ".tmp"))]
    sources = {str(p.relative_to(ROOT / "python")) for p in (ROOT / "python" / "pypto").rglob("*.py*")}
    sources = {s for s in sources if s.endswith((".py", ".pyi")) or Path(s).name == "py.typed"}
    assert sources <= set(names)


def test_package_comes_from_the_wheel(installed, tmp_path):
    code = "import pypto, sys; print(pypto.__file__); sys.exit('torch' in sys.modules)"
    done = run(installed, ["python", "-c", code], tmp_path)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(installed)


@pytest.mark.parametrize(
    "command", [["pypto", "--help"], ["python", "-m", "pypto", "--help"], ["pypto-ir-trace", "-h"]]
)
def test_commands(installed, tmp_path, command):
    done = run(installed, command, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout


@pytest.mark.parametrize("file,arguments", PROGRAMS, ids=lambda v: v if isinstance(v, str) else " ".join(v))
def test_copied_program(installed, tmp_path, file, arguments):  # 03 G-9
    shutil.copy(ROOT / "examples" / file, tmp_path)
    check_prints_ok(run(installed, ["python", Path(file).name, *arguments], tmp_path))


def page_programs() -> list:
    """The programs on the pages and in the README that are there in full."""
    found = []
    for page in [ROOT / "README.md", *(p for language in LANGUAGES for p in pages(language))]:
        for block in blocks(page.read_text()):
            if block.kind == "python" and block.text.startswith("import "):
                found.append(pytest.param(block.text, id=f"{page.relative_to(ROOT)}:{block.line}"))
    assert len(found) >= 3
    return found


@pytest.mark.parametrize("text", page_programs())
def test_program_of_a_page(installed, tmp_path, text):  # 03 G-1
    (tmp_path / "page.py").write_text(text)
    done = run(installed, ["python", "page.py"], tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
