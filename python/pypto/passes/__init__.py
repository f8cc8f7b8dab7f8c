# SPDX-License-Identifier: Apache-2.0

"""Passes over programs, the context they run in, and the choice of matrix tiles."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pypto.passes._context import (
    DiagnosticCheck,
    DiagnosticCheckSet,
    DiagnosticPhase,
    MemoryPlanner,
    PassContext,
    RuntimeKind,
    VerificationLevel,
    VerificationMode,
    runtime_kind_from_name,
    runtime_kind_to_name,
)

if TYPE_CHECKING:
    from pypto.passes import l0_tile_chooser
    from pypto.passes._pass import (
        CallbackInstrument,
        DiagnosticInstrument,
        IRProperty,
        IRPropertySet,
        Pass,
        PassPipeline,
        ReportInstrument,
        VerificationInstrument,
    )

# Each name is a function without arguments that returns a pass (see `_pass.factory`).
_FACTORIES = (
    "inline_functions",
    "unroll_loops",
    "ctrl_flow_transform",
    "convert_to_ssa",
    "simplify",
    "normalize_stmt_structure",
    "flatten_call_expr",
    "outline_hierarchy_scopes",
    "outline_incore_scopes",
    "outline_cluster_scopes",
    "convert_tensor_to_tile_ops",
    "optimize_orch_tensors",
    "lower_composite_ops",
    "flatten_tile_nd_to_2d",
    "auto_tile_matmul_l0",
)
_PASS_NAMES = (
    "Pass",
    "PassPipeline",
    "CallbackInstrument",
    "VerificationInstrument",
    "ReportInstrument",
    "DiagnosticInstrument",
    "IRProperty",
    "IRPropertySet",
)

__all__ = [
    "MemoryPlanner",
    "RuntimeKind",
    "runtime_kind_to_name",
    "runtime_kind_from_name",
    "PassContext",
    "VerificationLevel",
    "VerificationMode",
    "DiagnosticPhase",
    "DiagnosticCheck",
    "DiagnosticCheckSet",
    "Pass",
    "PassPipeline",
    "CallbackInstrument",
    "VerificationInstrument",
    "ReportInstrument",
    "DiagnosticInstrument",
    "IRProperty",
    "IRPropertySet",
    "l0_tile_chooser",
    *_FACTORIES,
]


def __getattr__(name: str) -> Any:
    if name == "l0_tile_chooser":
        return importlib.import_module("pypto.passes.l0_tile_chooser")
    if name in _PASS_NAMES or name in _FACTORIES:
        module = importlib.import_module("pypto.passes._pass")
        value = module.factory(name) if name in _FACTORIES else getattr(module, name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'pypto.passes' has no attribute {name!r}")
