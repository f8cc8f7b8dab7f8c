# SPDX-License-Identifier: Apache-2.0
"""Printing programs as source of the language."""

from __future__ import annotations

from typing import Any

from pypto import _core


def python_print(
    node: Any, prefix: str = "pl", concise: bool = False, format: bool = True, explicit_layout: bool = False
) -> str:
    """Return Python source of `node` that `pl.parse` reads back as an equal program.

    Parameters
    ----------
    prefix
        Name under which the text uses the language module.
    concise
        Leave out types that follow from the operation.
    format
        Accepted for completeness: the text is already laid out.
    explicit_layout
        Write layouts and window buffers in full.
    """
    return _core.python_print(node, prefix=prefix, concise=concise, explicit_layout=explicit_layout)
