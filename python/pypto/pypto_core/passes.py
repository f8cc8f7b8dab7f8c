# SPDX-License-Identifier: Apache-2.0
"""The same module as `pypto.passes`."""

import sys

from pypto import passes

sys.modules[__name__] = passes
