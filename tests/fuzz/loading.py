# SPDX-License-Identifier: Apache-2.0
"""Programs that are made as text, and many of them in a process of their own."""

from __future__ import annotations

import importlib.util
import os
import pickle
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any


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


def in_a_child(work: Callable[[], Any]) -> Any:
    """What `work` returns, done in a forked process: a program keeps its memory for as long as its process lives."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            said = (True, work())
        except BaseException:
            said = (False, traceback.format_exc())
        with os.fdopen(write, "wb") as pipe:
            pickle.dump(said, pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    assert told, f"the child ended with status {status}"
    worked, result = pickle.loads(told)
    assert worked, result
    return result
