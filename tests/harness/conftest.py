# SPDX-License-Identifier: Apache-2.0
"""Programs of the runtime tests serve the harness tests too."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "runtime"))
