# SPDX-License-Identifier: Apache-2.0
"""The same module as `pypto.backend`."""

import sys

from pypto import backend

sys.modules[__name__] = backend
