# SPDX-License-Identifier: Apache-2.0
"""What an editor completes: the stubs are those of the operation table, and every name of a module is in its stub."""

import ast
import importlib
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
