# SPDX-License-Identifier: Apache-2.0
"""Kernel text from edited PTO text."""

from __future__ import annotations

import os
from pathlib import Path

from pypto import _env


def rebuild_kernel_cpp_from_pto(work_dir: str | os.PathLike[str]) -> list[str]:
    """Make kernel text again from `ptoas/*.pto` files that are newer, here and in every `next_levels/*`.

    Returns
    -------
    list of str
        Paths rewritten. Empty, never an error, when there is no such file or no vendor assembler.
    """
    root = Path(os.fspath(work_dir))
    folders = [root, *sorted((root / "next_levels").glob("*"))] if root.is_dir() else []
    newer = []
    for folder in folders:
        for pto in sorted((folder / "ptoas").glob("*.pto")):
            texts = [f for kind in ("aic", "aiv") for f in (folder / "kernels" / kind).glob(f"{pto.stem}*.cpp")]
            if not texts or any(f.stat().st_mtime < pto.stat().st_mtime for f in texts):
                newer.append(pto)
    if newer and _env.flag("PYPTO_REBUILD_FROM_PTO", True):
        root_of_assembler = os.environ.get("PTOAS_ROOT", "")
        where = f"{root_of_assembler}/bin/ptoas" if root_of_assembler else "PTOAS_ROOT, which is not set"
        print(
            f"rebuild_kernel_cpp_from_pto: no vendor assembler (looked for {where}); "
            f"{len(newer)} newer .pto file(s) skipped"
        )
    return []
