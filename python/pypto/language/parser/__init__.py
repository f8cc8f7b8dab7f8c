# SPDX-License-Identifier: Apache-2.0
"""The front end's public part: its exception classes."""

from pypto.language.parser import diagnostics

__all__ = ["diagnostics"]
