#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the .pyi files of `pypto.language` from the operation table.

tools/gen_stubs.py            write them
tools/gen_stubs.py --check    exit 1 if a committed file differs from what the table says
"""

from __future__ import annotations

import argparse
import inspect
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "pypto" / "language"
HEADER = (
    "# SPDX-License-Identifier: Apache-2.0\n# Written by tools/gen_stubs.py from the operation table; do not edit.\n"
)
SUBMODULES = ("tensor", "tile", "system", "array", "prefetch", "optimizations", "adir")


def wrap(text: str, indent: str) -> str:
    """Return a docstring in lines of at most 110 columns."""
    import textwrap

    text = text.replace("\\", "\\\\").replace('"""', "'''")
    lines = textwrap.wrap(text, 100)
    if len(lines) == 1:
        return f'{indent}"""{lines[0]}"""\n'
    return f'{indent}"""{lines[0]}\n' + "".join(f"{indent}{line}\n" for line in lines[1:]) + f'{indent}"""\n'


def operation(name: str, signature: str, doc: str) -> str:
    """Return the stub of one operation."""
    parts = []
    for raw in signature.split(","):
        part = raw.strip()
        if not part:
            continue
        if part == "*":
            parts.append("*")
        else:
            parameter, eq, _ = part.partition("=")
            parts.append(f"{parameter.strip()}: Any = ..." if eq else f"{parameter.strip()}: Any")
    one = f"def {name}({', '.join(parts)}) -> Any:"
    if len(one) > 110:
        one = f"def {name}(\n    {', '.join(parts)}\n) -> Any:"
        if max(map(len, one.splitlines())) > 110:
            one = f"def {name}(\n" + "".join(f"    {p},\n" for p in parts) + ") -> Any:"
    return f"{one}\n{wrap(doc, '    ')}\n"


def function(name: str, value: object) -> str:
    """Return the stub of a construct that is a Python function."""
    parameters = []
    for p in inspect.signature(value).parameters.values():  # type: ignore[arg-type]
        star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
        if p.kind == p.KEYWORD_ONLY and not any(q.startswith("*") for q in parameters):
            parameters.append("*")
        default = "" if p.default is p.empty else " = ..."
        parameters.append(f"{star}{p.name}: Any{default}")
    head = f"def {name}({', '.join(parameters)}) -> Any:"
    if len(head) > 110:
        head = f"def {name}(\n" + "".join(f"    {p},\n" for p in parameters) + ") -> Any:"
    return f"{head}\n{wrap(inspect.getdoc(value) or name, '    ')}\n"


def enum(cls: type) -> str:
    """Return the stub of an enum; aliases follow the members they name."""
    lines = [f"class {cls.__name__}(IntEnum):"]
    lines += [f"    {name} = {int(member)}" for name, member in cls.__members__.items()]  # type: ignore[attr-defined]
    return "\n".join(lines) + "\n\n"


def table() -> dict[str, dict[str, str]]:
    """Return namespace -> name -> stub text."""
    from pypto import _core

    out: dict[str, dict[str, str]] = {}
    for namespace, name, signature, doc, _ in _core.op_table():
        out.setdefault(namespace, {})[name] = operation(name, signature, doc)
    return out


def files() -> dict[Path, str]:
    """Return path -> text of every stub."""
    import pypto.language as pl
    import pypto.language.distributed as pld
    from pypto import _core, _enums
    from pypto.language import _annotations, _constructs, _functions, _jit, _text

    ops = table()
    out = {}
    main = [HEADER, "from enum import IntEnum\n", "from typing import Any\n\n"]
    main.append("from pypto._core import DataType as DataType\nfrom pypto._core import DynVar as DynVar\n")
    main.append(
        "from pypto.language import "
        + "\nfrom pypto.language import ".join(f"{m} as {m}" for m in (*SUBMODULES, "distributed", "parser"))
        + "\n"
    )
    main.append("from pypto.language._functions import InlineFunction as InlineFunction\n")
    main.append("from pypto.language._functions import function as function\n")
    main.append("from pypto.language._functions import inline as inline\n")
    main.append("from pypto.language._functions import program as program\n")
    main.append(
        "from pypto.language._jit import JITFunction as JITFunction\nfrom pypto.language._jit import jit as jit\n"
    )
    for name in _text.EXPORTS:
        main.append(f"from pypto.language._text import {name} as {name}\n")
    main.append("\n# Types: any annotation of the language is accepted by a type checker.\n")
    done = {"DataType", "DynVar", *_functions.EXPORTS, *_jit.EXPORTS, *_text.EXPORTS}
    for name in sorted(_annotations.EXPORTS):
        if name not in done:
            value = _annotations.EXPORTS[name]
            main.append(function(name, value) if inspect.isfunction(value) else f"{name}: Any\n")
            done.add(name)
    main.append("\n")
    for name in _core.DTYPE_NAMES:
        main.append(f"{name}: DataType\n")
        done.add(name)
    main.append("AUTO: int\n\n")
    done.add("AUTO")
    for name, cls in vars(_enums).items():
        if getattr(pl, name, None) is cls and isinstance(cls, type):
            main.append(enum(cls))
            done.add(name)
    main.append("Mem = MemorySpace\n")
    main += [f"{name}: TensorLayout\n" for name in ("ND", "DN", "NZ", "MX_A_ZZ", "MX_B_NN")]
    main.append("\n")
    done |= {"Mem", "ND", "DN", "NZ", "MX_A_ZZ", "MX_B_NN"}
    for name, value in _constructs.EXPORTS.items():
        main.append(function(name, value))
        done.add(name)
    for name, text in sorted(ops["pl"].items()):
        if name not in done:
            main.append(text)
            done.add(name)
    missing = set(pl.__all__) - done - set(SUBMODULES) - {"parser", "distributed"}
    assert not missing, f"names without a stub: {sorted(missing)}"
    out[PACKAGE / "__init__.pyi"] = "".join(main)

    for name in SUBMODULES:
        lines = [HEADER, "from typing import Any\n\n"]
        members = ops.get(f"pl.{name}", {})
        module = getattr(pl, name)
        for member in module.__all__:
            value = getattr(module, member)
            if member in members and isinstance(value, _constructs.Operation):
                lines.append(members[member])
            elif inspect.isfunction(value):
                lines.append(function(member, value))
            elif isinstance(value, type):
                lines.insert(1, "from enum import IntEnum\n")
                lines.append(enum(value))
            else:
                lines.append(f"{member}: Any\n")
        out[PACKAGE / f"{name}.pyi"] = "".join(lines)

    lines = [HEADER, "from enum import IntEnum\nfrom typing import Any\n\n"]
    lines.append("from pypto.language import AtomicType as AtomicType\n")
    lines.append("from pypto.language.distributed import system as system\n")
    lines.append("from pypto.language.distributed import tensor as tensor\n")
    lines.append("from pypto.language.distributed import tile as tile\n\n")
    lines.append("CommCtx: Any\nCommCtxType: Any\nDistributedTensor: Any\n\n")
    lines += [enum(getattr(_enums, name)) for name in ("NotifyOp", "WaitCmp", "ReduceOp")]
    lines += [text for name, text in sorted(ops["pld"].items()) if name in pld.__all__]
    out[PACKAGE / "distributed" / "__init__.pyi"] = "".join(lines)
    for name in ("system", "tensor", "tile"):
        members = ops[f"pld.{name}"]
        out[PACKAGE / "distributed" / f"{name}.pyi"] = (
            HEADER + "from typing import Any\n\n" + "".join(text for _, text in sorted(members.items()))
        )
    return {path: text.rstrip("\n") + "\n" for path, text in out.items()}


def main() -> int:
    """Write or compare the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    sys.path.insert(0, str(ROOT / "python"))
    stale = 0
    for path, text in files().items():
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale += 1
        if args.check:
            print(f"{path.relative_to(ROOT)} is out of date; run tools/gen_stubs.py")
        else:
            path.write_text(text, encoding="utf-8")
    return 1 if args.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
