# SPDX-License-Identifier: Apache-2.0
"""The version, as the extension module was built with it."""

from pypto._core import __version__

__all__ = ["__version__"]
