# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: F401  (imports under TYPE_CHECKING say what the lazy names are)
"""Programs: compiling, printing, comparing, saving, and the read-only view of their statements."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypto._core import DataType, Function, Program, Span, deserialize, serialize, structural_equal, structural_hash
    from pypto._enums import *  # noqa: F403
    from pypto.ir._files import assert_structural_equal, deserialize_from_file, get_op, serialize_to_file
    from pypto.ir.compiled_program import CompiledProgram
    from pypto.ir.compiler import compile
    from pypto.ir.distributed_compiled_program import DistributedCompiledProgram, DistributedConfig
    from pypto.ir.pass_manager import OptimizationStrategy, PassDumpLevel, PassManager
    from pypto.ir.printer import python_print

_SUBMODULES = (
    "compiled_program",
    "distributed_compiled_program",
    "pass_manager",
    "printer",
    "op",
    "operators",
    "directions",
    "builder",
)

# Name -> module that defines it. Everything else is asked of the native module (node classes) and of the enums.
_NAMES = {
    "compile": "pypto.ir.compiler",
    "CompiledProgram": "pypto.ir.compiled_program",
    "DistributedCompiledProgram": "pypto.ir.distributed_compiled_program",
    "DistributedConfig": "pypto.ir.distributed_compiled_program",
    **dict.fromkeys(("OptimizationStrategy", "PassManager", "PassDumpLevel"), "pypto.ir.pass_manager"),
    "python_print": "pypto.ir.printer",
    **dict.fromkeys(
        (
            "serialize_to_file",
            "deserialize_from_file",
            "assert_structural_equal",
            "get_op",
            "comm_skeleton",
            "serialize",
            "deserialize",
            "structural_equal",
            "structural_hash",
        ),
        "pypto.ir._files",
    ),
    **dict.fromkeys(
        (
            "PassContext",
            "VerificationLevel",
            "VerificationMode",
            "DiagnosticPhase",
            "DiagnosticCheck",
            "DiagnosticCheckSet",
        ),
        "pypto.passes",
    ),
    **dict.fromkeys(("TensorView", "TileView", "MemRef"), "pypto.language"),
    **dict.fromkeys(
        (
            "IRBuilder",
            "IRVisitor",
            "IRMutator",
            "make_call",
            "ConversionContext",
            "op_conversion",
            "register_op_conversion",
            "make_roundtrip_instrument",
            "level_to_linqu_level",
        ),
        "pypto.ir.builder",
    ),
    **dict.fromkeys(("input", "output", "output_existing", "inout", "no_dep", "scalar_dir"), "pypto.ir.directions"),
}

_DTYPES = (
    "FP4",
    "FP8E4M3FN",
    "FP8E5M2",
    "FP8E8M0",
    "FP16",
    "FP32",
    "BF16",
    "HF4",
    "HF8",
    "INT4",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "UINT4",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "BOOL",
    "INDEX",
)

_ENUMS = (
    "FunctionType",
    "Level",
    "Role",
    "SplitMode",
    "MemorySpace",
    "ParamDirection",
    "ArgDirection",
    "TensorLayout",
    "TileLayout",
    "PadValue",
    "CompactMode",
    "AtomicType",
    "PipeType",
    "ForKind",
    "ScopeMode",
    "CoreType",
    "Mem",
)

__all__ = [*_SUBMODULES, *_NAMES, *_DTYPES, *_ENUMS, "DataType", "Program", "Function", "Span"]


def _find(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    core = importlib.import_module("pypto._core")
    if name in _DTYPES:
        return getattr(core.DataType, name)
    enums = importlib.import_module("pypto._enums")
    if name == "Mem":
        return enums.MemorySpace
    if hasattr(enums, name):
        return getattr(enums, name)
    if name[:1].isupper() and hasattr(core, name):
        return getattr(core, name)
    language = importlib.import_module("pypto.language") if name in _ENUMS else None
    if language is not None and hasattr(language, name):
        return getattr(language, name)
    extra = importlib.import_module("pypto.ir._extra_enums")
    if name[:1].isupper() and hasattr(extra, name):
        return getattr(extra, name)
    raise AttributeError(f"module 'pypto.ir' has no attribute {name!r}")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'pypto.ir' has no attribute {name!r}")
    if name in _SUBMODULES:
        return importlib.import_module(f"pypto.ir.{name}")
    value = _find(name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
