# SPDX-License-Identifier: Apache-2.0
# Written by tools/gen_stubs.py from the operation table; do not edit.
from typing import Any

inout: Any
input: Any
no_dep: Any
output: Any
output_existing: Any
scalar: Any
