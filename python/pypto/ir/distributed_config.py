# SPDX-License-Identifier: Apache-2.0
"""`DistributedConfig`: the world of a distributed program."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass, field
else:
    from pypto._records import dataclass, field

DEFAULT_RUNTIME = "tensormap_and_ringbuffer"


@dataclass
class DistributedConfig:
    """Which devices a distributed program runs on. Rank `r` is `device_ids[r]`.

    Parameters
    ----------
    device_ids
        Distinct, non-negative device indices; on the simulator labels.
    num_sub_workers
        Host sub-workers; 0 = as many as the program declares.
    runtime
        Name of the device runtime.
    aicpu_thread_num
        Scheduler threads of each device; 0 = the platform's default.

    Raises
    ------
    ValueError
        If a field has a value it cannot have.
    """

    device_ids: list[int] = field(default_factory=lambda: [0])
    num_sub_workers: int = 0
    runtime: str = DEFAULT_RUNTIME
    aicpu_thread_num: int = 0

    def __post_init__(self) -> None:
        try:
            ids = list(self.device_ids)
        except TypeError:
            got = type(self.device_ids).__name__
            raise TypeError(f"DistributedConfig.device_ids must be a list of device ids, got {got}") from None
        if not ids:
            raise ValueError("DistributedConfig.device_ids must not be empty; give one device id per rank")
        for i in ids:
            if isinstance(i, bool) or not hasattr(i, "__index__"):
                raise ValueError(
                    f"DistributedConfig.device_ids must be non-negative device indices, got {i!r} in {ids}"
                )
        ids = [int(i) for i in ids]
        if any(i < 0 for i in ids):
            raise ValueError(f"DistributedConfig.device_ids must be non-negative device indices, got {ids}")
        if len(set(ids)) != len(ids):
            repeated = sorted({i for i in ids if ids.count(i) > 1})
            raise ValueError(f"DistributedConfig.device_ids must be distinct, got {ids} ({repeated} repeated)")
        self.device_ids = ids
        for name in ("num_sub_workers", "aicpu_thread_num"):
            value = getattr(self, name)
            if isinstance(value, bool) or not hasattr(value, "__index__"):
                raise TypeError(f"DistributedConfig.{name} must be an int, got {value!r}")
        if self.num_sub_workers < 0:
            raise ValueError(
                f"DistributedConfig.num_sub_workers must be non-negative (0 = as many as the program declares), "
                f"got {self.num_sub_workers}"
            )
        if self.aicpu_thread_num == 1 or self.aicpu_thread_num < 0:
            raise ValueError(
                f"DistributedConfig.aicpu_thread_num must be 0 (the platform's default) or at least 2, "
                f"got {self.aicpu_thread_num}"
            )

    @property
    def world_size(self) -> int:
        """Number of ranks."""
        return len(self.device_ids)
