# SPDX-License-Identifier: Apache-2.0
"""Running one program under many schedules."""

from __future__ import annotations

from typing import Any

import numpy as np

from pypto._checks import check_compiled
from pypto.runtime import _report
from pypto.runtime._config import RunConfig
from pypto.runtime._sim import SimOptions


def _copy(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    if type(value).__module__.partition(".")[0] == "torch" and hasattr(value, "clone"):
        return value.detach().clone()
    return value


def explore(compiled: Any, *args: Any, runs: int = 100, seed: int = 0) -> list[Any]:
    """Run `compiled` under `runs` schedules and return their reports; each run gets fresh copies of the arrays.

    Parameters
    ----------
    compiled
        A compiled program or an entry of one.
    args
        One per parameter.
    runs, seed
        Schedules `seed`, `seed + 1`, ...

    Raises
    ------
    ProgramFault
        The first failure; its diagnostic carries the replay token.
    """
    if isinstance(runs, bool) or not isinstance(runs, int) or runs < 1:
        raise ValueError(f"explore: runs must be a positive int, got {runs!r}")
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise TypeError(f"explore: seed must be an int, got {seed!r}")
    check_compiled("explore", compiled)
    reports = []
    platform = compiled.platform
    for number in range(runs):
        options = SimOptions(schedule="explore", seed=seed + number)
        compiled(*map(_copy, args), config=RunConfig(platform=platform, sim=options))
        reports.append(_report.last_report())
    return reports
