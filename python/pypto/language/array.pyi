# SPDX-License-Identifier: Apache-2.0
# Written by tools/gen_stubs.py from the operation table; do not edit.
from typing import Any

def create(extent: Any, dtype: Any) -> Any:
    """Fixed-length array of scalars (O-2401)."""

def get_element(array: Any, index: Any) -> Any:
    """Element of an array (O-2402)."""

def update_element(array: Any, index: Any, value: Any) -> Any:
    """Array with one element replaced (O-2404)."""
