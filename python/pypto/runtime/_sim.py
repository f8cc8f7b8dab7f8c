# SPDX-License-Identifier: Apache-2.0
"""Options of the simulator."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from pypto._records import field_names, replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from dataclasses import dataclass
else:
    from pypto._records import dataclass

SCHEDULES = ("fast", "timed", "explore")
CHECKS = ("default", "strict", "off")


@dataclass(frozen=True)
class SimOptions:
    """How the simulator schedules a run and what it checks. Results do not depend on `schedule`, `seed`, `threads`.

    Parameters
    ----------
    schedule
        `"fast"`: one fixed schedule. `"timed"`: a virtual clock orders events. `"explore"`: `seed` permutes and holds
        back what other cores see.
    seed
        For `explore`; equal seed, equal run.
    replay
        Token of an earlier failure: reproduces its schedule.
    threads
        Host threads, 0 = all. Not observable in anything but time.
    checks
        `"default"`, `"strict"` or `"off"`.
    step_limit
        Stop a core that has executed this many loop iterations in one task; `None` = never.
    collect
        Go on after a failure and report all of them in `last_report()` instead of raising.
    delay_remote
        Under `explore`: hold back the data of remote stores until the core's next outgoing edge.
    device_time
        Run the cost model, so that the report has device times.
    trace
        File that receives a timeline of the run.
    rank_weights
        Slow ranks (project extension): a rank of weight n takes part in one of n rounds of the schedule, such as
        `{1: 4}`. Kept as pairs in order of ranks. Results and reports of correct programs do not depend on it.
    """

    schedule: str = "fast"
    seed: int = 0
    replay: str | None = None
    threads: int = 0
    checks: str = "default"
    step_limit: int | None = None
    collect: bool = False
    delay_remote: bool = False
    device_time: bool = False
    trace: str | os.PathLike[str] | None = None
    rank_weights: Mapping[int, int] | Iterable[tuple[int, int]] = ()

    def __post_init__(self) -> None:
        _one_of("schedule", self.schedule, SCHEDULES)
        _one_of("checks", self.checks, CHECKS)
        _whole("seed", self.seed, 0)
        _whole("threads", self.threads, 0)
        if self.step_limit is not None:
            _whole("step_limit", self.step_limit, 1)
        if self.replay is not None and not isinstance(self.replay, str):
            raise ValueError(f"SimOptions.replay must be a token (str) or None, got {self.replay!r}")
        for name in ("collect", "delay_remote", "device_time"):
            value = getattr(self, name)
            if not isinstance(value, bool):
                raise ValueError(f"SimOptions.{name} must be True or False, got {value!r}")
        if self.trace is not None and not isinstance(self.trace, (str, os.PathLike)):
            raise ValueError(f"SimOptions.trace must be a path or None, got {self.trace!r}")
        object.__setattr__(self, "rank_weights", _weights(self.rank_weights))


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"SimOptions.{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def _whole(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"SimOptions.{name} must be an int >= {least}, got {value!r}")


def _weights(given: object) -> tuple[tuple[int, int], ...]:
    """Return the pairs (rank, weight) of a mapping or of pairs, in order of ranks."""
    try:
        pairs: dict[Any, Any] = dict(given)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise ValueError(
            f"SimOptions.rank_weights must map ranks to weights, such as {{1: 4}}, got {given!r}"
        ) from None
    for rank, weight in pairs.items():
        if any(isinstance(n, bool) or not isinstance(n, int) for n in (rank, weight)) or rank < 0 or weight < 1:
            raise ValueError(
                f"SimOptions.rank_weights must map ranks (int >= 0) to weights (int >= 1), got {rank!r}: {weight!r}"
            )
    return tuple(sorted(pairs.items()))


def from_environment() -> SimOptions:
    """Return the defaults that `PYPTO_SIM` sets, such as `schedule=explore,seed=7,checks=strict`."""
    text = os.environ.get("PYPTO_SIM", "")
    options = SimOptions()
    if not text.strip():
        return options
    known = field_names(SimOptions)
    changes: dict[str, Any] = {}
    for part in text.split(","):
        key, equals, value = part.strip().partition("=")
        if not equals or key not in known:
            raise ValueError(
                f"PYPTO_SIM: cannot read {part.strip()!r}; expected key=value with a key of {', '.join(known)}"
            )
        try:
            changes[key] = _parse(key, value)
        except ValueError as error:
            raise ValueError(f"PYPTO_SIM: cannot read {part.strip()!r}: {error}") from None
    try:
        return replace(options, **changes)
    except ValueError as error:
        raise ValueError(f"PYPTO_SIM={text!r}: {error}") from None


def _parse(key: str, value: str) -> Any:
    if key in ("seed", "threads"):
        return int(value)
    if key == "step_limit":
        return None if value.lower() == "none" else int(value)
    if key in ("collect", "delay_remote", "device_time"):
        words = {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}
        if value.lower() not in words:
            raise ValueError("expected 1 or 0")
        return words[value.lower()]
    if key == "rank_weights":  # 1:4+3:2
        return {int(rank): int(weight) for rank, _, weight in (part.partition(":") for part in value.split("+"))}
    return value


def effective(sim: SimOptions | None) -> SimOptions:
    """Return `sim`, or what the environment says when it is `None`."""
    if sim is None:
        return from_environment()
    if not isinstance(sim, SimOptions):
        raise TypeError(f"RunConfig.sim must be a pypto.runtime.SimOptions or None, got {type(sim).__name__}")
    return sim


def check_for_platform(sim: SimOptions | None, platform: str) -> None:
    """Raise `ValueError` if a device platform is given options that only the simulator has."""
    from pypto._platform import is_hardware

    if is_hardware(platform) and sim is not None and sim != SimOptions():
        changed = [name for name in field_names(sim) if getattr(sim, name) != getattr(SimOptions, name)]
        raise ValueError(
            f"RunConfig.sim: {', '.join(changed)} has no meaning on platform {platform!r}; "
            f"run on {platform + 'sim'!r} or leave sim unset"
        )
