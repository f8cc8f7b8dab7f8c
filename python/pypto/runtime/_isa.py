# SPDX-License-Identifier: Apache-2.0
"""Where headers for hand-written kernels are."""

from __future__ import annotations

import os
from pathlib import Path


def ensure_pto_isa_root() -> str:
    """Return a directory with an `include` folder, and set `PTO_ISA_ROOT` to it. Needs no network.

    `PYPTO_PTO_ISA_ROOT` if it is set, else a directory of this package.

    Raises
    ------
    ValueError
        If `PYPTO_PTO_ISA_ROOT` is set to something that is no directory.
    """
    chosen = os.environ.get("PYPTO_PTO_ISA_ROOT", "")
    if chosen:
        if not Path(chosen).is_dir():
            raise ValueError(f"PYPTO_PTO_ISA_ROOT={chosen!r} is not a directory")
        root = str(Path(chosen).absolute())
    else:
        root = str(Path(__file__).resolve().parent.parent / "pto_isa")
    os.environ["PTO_ISA_ROOT"] = root
    return root


def pto_isa_include_dir() -> Path:
    """Return `<root>/include`."""
    return Path(ensure_pto_isa_root()) / "include"
