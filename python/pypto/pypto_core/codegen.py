# SPDX-License-Identifier: Apache-2.0
"""The same module as `pypto.codegen`."""

import sys

from pypto import codegen

sys.modules[__name__] = codegen
