# SPDX-License-Identifier: Apache-2.0
"""`PYPTO_HW_PARAMS`: a file with parameters of the timing model that replace the defaults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ARCHES = ("a2a3", "a5")


def load(path: str) -> dict[str, dict[str, float]]:
    """Return the parameters in the JSON file `path`, by architecture and key.

    Raises
    ------
    ValueError
        The file cannot be read, or is no object `{"a2a3": {key: number}, "a5": {...}}`. Keys and values are checked by
        the timing model itself, which names the key.
    """
    where = f"PYPTO_HW_PARAMS={path!r}"
    try:
        data: Any = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{where}: cannot read the file: {error.strerror or error}") from None
    except ValueError as error:
        raise ValueError(f"{where}: not JSON: {error}") from None
    if not isinstance(data, dict):
        raise ValueError(f'{where}: expected an object {{"a2a3": {{key: number}}, "a5": {{...}}}}, got {data!r:.60}')
    result: dict[str, dict[str, float]] = {}
    for arch, keys in data.items():
        if arch not in ARCHES:
            raise ValueError(f"{where}: unknown key {arch!r}; the keys of the file are {', '.join(ARCHES)}")
        if not isinstance(keys, dict):
            raise ValueError(f"{where}: {arch!r} must be an object of numbers, got {keys!r:.60}")
        for key, value in keys.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ValueError(f"{where}: {arch}, key {key!r}: expected a number, got {value!r:.60}")
        result[arch] = {key: float(value) for key, value in keys.items()}
    return result
