# SPDX-License-Identifier: Apache-2.0
"""Loaded forms of artifact directories, cached until a file of the directory changes."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

_lock = threading.Lock()
_cache: dict[str, tuple[tuple[int, int, int], Any]] = {}
_LIMIT = 256


def _stamp(path: Path) -> tuple[int, int, int]:
    st = path.stat()
    return st.st_mtime_ns, st.st_size, st.st_ino


def program(work_dir: Path) -> Any:
    """Return the single-device program (or entry of a multi-entry program) in `work_dir`."""
    from pypto.ir import _artifact
    from pypto.ir.compiled_program import CompiledProgram

    folder = Path(os.fspath(work_dir)).absolute()
    if not (folder / _artifact.SINGLE_META).exists() and folder.parent.name == "next_levels":
        # An entry of a multi-entry program: its metadata are in the program's directory.
        parent = folder.parent.parent
        if (parent / _artifact.PROGRAM).exists():
            return program(parent)[folder.name]
    binary = folder / _artifact.PROGRAM
    key = str(folder)
    if binary.exists():
        stamp = _stamp(binary)
        with _lock:
            found = _cache.get(key)
        if found is not None and found[0] == stamp:
            _artifact.warn_edited(folder)
            return found[1]
    loaded = CompiledProgram.from_dir(folder)
    _artifact.warn_edited(folder)
    with _lock:
        if len(_cache) >= _LIMIT:
            _cache.clear()
        _cache[key] = (_stamp(binary), loaded)
    return loaded


def invalidate(work_dir: str | os.PathLike[str]) -> None:
    """Forget the loaded forms of `work_dir` and of what is below it."""
    folder = str(Path(os.fspath(work_dir)).absolute())
    with _lock:
        for key in [k for k in _cache if k == folder or k.startswith(folder + os.sep)]:
            del _cache[key]


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)
