# SPDX-License-Identifier: Apache-2.0

"""Passes over programs, the context they run in, and the choice of matrix tiles."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pypto.passes import _pass
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

if TYPE_CHECKING:
    from pypto.passes import l0_tile_chooser

inline_functions = _pass.factory("inline_functions")
unroll_loops = _pass.factory("unroll_loops")
ctrl_flow_transform = _pass.factory("ctrl_flow_transform")
convert_to_ssa = _pass.factory("convert_to_ssa")
simplify = _pass.factory("simplify")
normalize_stmt_structure = _pass.factory("normalize_stmt_structure")
flatten_call_expr = _pass.factory("flatten_call_expr")
outline_hierarchy_scopes = _pass.factory("outline_hierarchy_scopes")
outline_incore_scopes = _pass.factory("outline_incore_scopes")
outline_cluster_scopes = _pass.factory("outline_cluster_scopes")
convert_tensor_to_tile_ops = _pass.factory("convert_tensor_to_tile_ops")
optimize_orch_tensors = _pass.factory("optimize_orch_tensors")
lower_composite_ops = _pass.factory("lower_composite_ops")
flatten_tile_nd_to_2d = _pass.factory("flatten_tile_nd_to_2d")
auto_tile_matmul_l0 = _pass.factory("auto_tile_matmul_l0")

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
    *_pass.FACTORIES,
]


def __getattr__(name: str) -> Any:
    if name == "l0_tile_chooser":
        return importlib.import_module("pypto.passes.l0_tile_chooser")
    raise AttributeError(f"module 'pypto.passes' has no attribute {name!r}")
