# SPDX-License-Identifier: Apache-2.0
"""Modules of the standard library that most processes never use: imported when something is taken from them."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any


class LazyModule:
    """Stands for the module `name`."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, attribute: str) -> Any:
        name = self.__name__
        return getattr(sys.modules.get(name) or import_module(name), attribute)
