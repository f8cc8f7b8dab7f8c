# SPDX-License-Identifier: Apache-2.0
"""The same module as `pypto.arith`."""

import sys

from pypto import arith

sys.modules[__name__] = arith
