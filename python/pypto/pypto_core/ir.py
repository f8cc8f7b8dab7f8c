# SPDX-License-Identifier: Apache-2.0
"""The same module as `pypto.ir`."""

import sys

from pypto import ir

sys.modules[__name__] = ir
