# SPDX-License-Identifier: Apache-2.0
"""Hold every ``#include "core/..."`` against the dependency table in core/CMakeLists.txt.

All folders share one include root, so the compiler would accept an include that goes up the layers; this does not.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROW = re.compile(r"^pypto_library\((\w+)(?:.*?DEPENDS ([\w ]+?))?(?: LINK .*)?\)$", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def read_table(text: str) -> dict[str, set[str]]:
    """Return, per folder, itself and all folders it may include, given the text of core/CMakeLists.txt."""
    allowed: dict[str, set[str]] = {}
    for folder, depends in ROW.findall(text):
        allowed[folder] = {folder}
        for name in depends.split():
            if name not in allowed:
                sys.exit(f"core/CMakeLists.txt: {folder} depends on {name}, which is not declared above it")
            allowed[folder] |= allowed[name]
    return allowed


def main() -> int:
    """Print every include that breaks the table; return 1 if there is one."""
    allowed = read_table((ROOT / "core/CMakeLists.txt").read_text())
    failures = 0
    for path in sorted((ROOT / "core").rglob("*")):
        if path.suffix not in {".h", ".cpp", ".def"}:
            continue
        name = path.relative_to(ROOT)
        folder = name.parts[1]
        for number, line in enumerate(path.read_text().splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            target = match.group(1)
            parts = target.split("/")
            if parts[0] == "core" and len(parts) > 2:
                if parts[1] in allowed.get(folder, {folder}):
                    continue
                problem = f"core/{folder} may include only core/{{{', '.join(sorted(allowed.get(folder, {folder})))}}}"
            elif (path.parent / target).is_file():
                problem = "include our own headers from the root of the repository"
            else:
                continue
            print(f'{name}:{number}: #include "{target}": {problem}')
            failures += 1
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
