# SPDX-License-Identifier: Apache-2.0
"""Texts made from programs."""

from __future__ import annotations

from pypto.backend.pto_backend import PartialCodegenError, generate
from pypto.debug import torch_codegen

__all__ = ["PartialCodegenError", "generate", "torch_codegen"]
