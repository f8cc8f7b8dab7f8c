# SPDX-License-Identifier: Apache-2.0
"""Programs that are made as text."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path


def load(text: str, folder: Path, name: str):
    """What the text, put in a file of the folder, calls `program`."""
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.modules.pop(name)
    return module.program
