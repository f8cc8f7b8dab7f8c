# SPDX-License-Identifier: Apache-2.0
"""Programs as torch code, to see what each stage of a compile computes."""

from __future__ import annotations

from pypto.debug._torch_codegen import torch_codegen
from pypto.debug._validate import validate_pass_ir_codegen_results

__all__ = ["torch_codegen", "validate_pass_ir_codegen_results"]
