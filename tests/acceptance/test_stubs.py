# SPDX-License-Identifier: Apache-2.0
"""What an editor completes: the stubs are those of the operation table, and every name of a module is in its stub."""

import ast
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LANGUAGE = ROOT / "python/pypto/language"
MODULES = {
    "pypto.language": "__init__.pyi",
    "pypto.language.tile": "tile.pyi",
    "pypto.language.tensor": "tensor.pyi",
    "pypto.language.system": "system.pyi",
    "pypto.language.array": "array.pyi",
    "pypto.language.prefetch": "prefetch.pyi",
    "pypto.language.optimizations": "optimizations.pyi",
    "pypto.language.distributed": "distributed/__init__.pyi",
    "pypto.language.distributed.tensor": "distributed/tensor.pyi",
    "pypto.language.distributed.tile": "distributed/tile.pyi",
    "pypto.language.distributed.system": "distributed/system.pyi",
}


def test_stubs_are_generated():
    env = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools/gen_stubs.py"), "--check"], capture_output=True, text=True, env=env
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", MODULES)
def test_every_name_is_completed(name):
    module = importlib.import_module(name)
    found = set()
    for node in ast.parse((LANGUAGE / MODULES[name]).read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign):
            found |= {t.id for t in node.targets if isinstance(t, ast.Name)}
        elif isinstance(node, (ast.ImportFrom, ast.Import)):
            found |= {(a.asname or a.name).split(".")[0] for a in node.names}
    assert found
    missing = sorted(set(getattr(module, "__all__", ())) - found)
    assert not missing, f"{MODULES[name]} lacks {missing}"


USES = """
import pypto.language as pl
from pypto import ir


@pl.inline
def helper(a):
    return a


@pl.jit
def bare(a, o):
    return helper(a)


@pl.jit.incore(level=pl.Level.AIV)
def called(a, o):
    return a


@pl.program(strict_ssa=True)
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def f(self, a, o):
        return a

    @pl.function
    def main(self, a, o):
        return self.f(a, o)


bare(1, 2)
bare.compile(1, 2, config=None)
called.compile
P.as_python()
"""


def test_what_decorators_return_is_known(tmp_path):
    """No false alarm where decorated objects are called or asked, and a misspelt attribute is found."""
    (tmp_path / "uses.py").write_text(USES + "bare.compyle\nP.as_pithon()\n", encoding="utf-8")
    (tmp_path / "pyrightconfig.json").write_text(
        json.dumps({"include": ["uses.py"], "extraPaths": [str(ROOT / "python")], "pythonVersion": "3.10"}),
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson"], capture_output=True, text=True, cwd=tmp_path
    )
    found = [d["message"] for d in json.loads(done.stdout)["generalDiagnostics"] if d["severity"] == "error"]
    assert len(found) == 2 and "compyle" in found[0] and "as_pithon" in found[1], found
