# SPDX-License-Identifier: Apache-2.0
"""Text of every artifact of a program, without running it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pypto._errors import PartialCodegenError, PlatformUnavailableError

__all__ = ["PartialCodegenError", "generate"]


def generate(
    program: Any,
    output_dir: str | os.PathLike[str],
    skip_ptoas: bool = False,
    *,
    memory_planner: Any = None,
    emit_source_loc: bool | None = None,
    dump_ptoas_passes: bool = False,
    runtime: Any = None,
) -> dict[str, str]:
    """Compile `program` into `output_dir` for the default backend and return every text: relative path -> text."""
    from pypto import ir
    from pypto.backend import default_backend_type

    compiled = ir.compile(
        program,
        output_dir=output_dir,
        dump_passes=False,
        backend_type=default_backend_type(),
        skip_ptoas=skip_ptoas,
        memory_planner=memory_planner,
        emit_source_loc=emit_source_loc,
        dump_ptoas_passes=dump_ptoas_passes,
        runtime=runtime,
    )
    folder = Path(compiled.output_dir)
    texts = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".cpp", ".pto", ".py") and path.is_file() and "passes_dump" not in path.parts:
            texts[path.relative_to(folder).as_posix()] = path.read_text(encoding="utf-8")
    return texts


def _run_ptoas(*args: Any, **kwargs: Any) -> Any:
    """Run the vendor assembler; this machine has none."""
    root = os.environ.get("PTOAS_ROOT", "")
    raise PlatformUnavailableError(
        "the vendor assembler ptoas is needed for this step and is not driven by this package "
        f"(looked for {root + '/bin/ptoas' if root else 'PTOAS_ROOT, which is not set'}); "
        "the same program runs on a2a3sim and a5sim without it",
        ["ptoas"],
    )


def _preprocess_ptoas_output(content: str) -> str:
    """Return assembler output without host-only lines, ready to be put into a kernel file."""
    return "\n".join(line for line in content.splitlines() if not line.lstrip().startswith("#pragma once"))
