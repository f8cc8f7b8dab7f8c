# SPDX-License-Identifier: Apache-2.0
"""The same module as `pypto.testing`."""

import sys

from pypto import testing

sys.modules[__name__] = testing
