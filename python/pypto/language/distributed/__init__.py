# SPDX-License-Identifier: Apache-2.0
"""The distributed namespace: ``import pypto.language.distributed as pld``."""

import sys
from types import ModuleType

import pypto.language as _pl
from pypto import _core
from pypto._enums import AtomicType, NotifyOp, ReduceOp, WaitCmp  # pyright: ignore
from pypto.language._annotations import CommCtx, DistributedTensor

CommCtxType = CommCtx
_operations = _pl._pld_operations  # pyright: ignore


def _sub_namespace(name, doc):
    module = ModuleType(f"{__name__}.{name}", doc)
    members = _operations.get(f"pld.{name}", {})
    module.__dict__.update(members)
    module.__all__ = sorted(members)  # pyright: ignore
    module.__getattr__ = _pl._missing(f"pld.{name}")  # pyright: ignore
    sys.modules[module.__name__] = module
    _core.register_construct(module, f"pld.{name}")
    return module


system = _sub_namespace("system", "Queries, signals.")
tensor = _sub_namespace("tensor", "Windows, remote memory and collectives on tensors.")
tile = _sub_namespace("tile", "Remote memory on tiles.")
globals().update(_operations.get("pld", {}))
_core.register_construct(DistributedTensor, "pld.DistributedTensor")
_core.register_construct(CommCtx, "pld.CommCtx")
_core.register_construct(sys.modules[__name__], "pld")
__getattr__ = _pl._missing("pld")  # pyright: ignore

__all__ = [
    "AtomicType", "CommCtx", "CommCtxType", "DistributedTensor", "NotifyOp", "ReduceOp", "WaitCmp",
    "alloc_window_buffer", "get_comm_ctx", "nranks", "rank", "remote_load", "remote_store", "system", "tensor", "tile",
    "window", "world_size",
]  # fmt: skip
_pl.distributed = sys.modules[__name__]
