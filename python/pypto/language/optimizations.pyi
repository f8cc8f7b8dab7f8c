# SPDX-License-Identifier: Apache-2.0
# Written by tools/gen_stubs.py from the operation table; do not edit.
from typing import Any

def cross_core_slot(*, slot_num: Any) -> Any:
    """Depth of the channel between cube and vector core (01 L-114)."""

def split(mode: Any, *, slot_num: Any = ...) -> Any:
    """Divide a mixed kernel's vector work between the two lanes (01 L-114)."""
