# SPDX-License-Identifier: Apache-2.0
"""DistributedConfig (04 DST-1, 03 D-11)."""

from __future__ import annotations

import dataclasses

import pytest
from pypto.ir.distributed_compiled_program import DistributedConfig


def test_defaults():
    c = DistributedConfig()
    assert dataclasses.is_dataclass(c)
    assert (c.device_ids, c.num_sub_workers, c.runtime, c.aicpu_thread_num) == ([0], 0, "tensormap_and_ringbuffer", 0)
    assert DistributedConfig([5, 2]).device_ids == [5, 2]  # order of the list is the order of ranks
    assert DistributedConfig(range(1024)).world_size == 1024
    c.device_ids.append(1)
    assert DistributedConfig().device_ids == [0]


@pytest.mark.parametrize(
    "kwargs,text",
    [
        ({"device_ids": []}, "DistributedConfig.device_ids must not be empty"),
        ({"device_ids": [0, -1]}, "must be non-negative device indices"),
        ({"device_ids": ["0"]}, "must be non-negative device indices"),
        ({"device_ids": [0, 1, 0]}, "must be distinct"),
        ({"num_sub_workers": -1}, "num_sub_workers must be non-negative"),
        ({"aicpu_thread_num": 1}, "aicpu_thread_num"),
        ({"aicpu_thread_num": -2}, "aicpu_thread_num"),
    ],
)
def test_refusals(kwargs, text):
    with pytest.raises(ValueError, match=text):
        DistributedConfig(**kwargs)


@pytest.mark.parametrize("ids", [None, 4])
def test_device_ids_is_a_list(ids):
    with pytest.raises(TypeError, match="device_ids must be a list of device ids"):
        DistributedConfig(device_ids=ids)
