# SPDX-License-Identifier: Apache-2.0
"""DeviceTensor and StackedDeviceTensor (04 DEV-1, DEV-6)."""

from __future__ import annotations

import numpy as np
import pytest
from pypto import DataType
from pypto.runtime import DeviceTensor, StackedDeviceTensor

torch = pytest.importorskip("torch")


def test_device_tensor():
    # DEV-1
    t = DeviceTensor(0x1000, (4, 8), torch.float32)
    assert (t.data_ptr, t.shape, t.dtype, t.nbytes) == (0x1000, (4, 8), torch.float32, 128)
    assert t == DeviceTensor(0x1000, [4, 8], DataType.FP32) and hash(t) == hash(
        DeviceTensor(0x1000, (4, 8), np.float32)
    )
    assert t != DeviceTensor(0x1000, (4, 8), torch.float16) and t != DeviceTensor(0x2000, (4, 8), torch.float32)
    assert "0x1000" in repr(t) and "[4, 8]" in repr(t) and "float32" in repr(t)
    with pytest.raises(AttributeError):
        t.shape = (1,)
    assert DeviceTensor(1, (2,), torch.bfloat16).nbytes == 4


@pytest.mark.parametrize(
    "args,error",
    [
        ((0, (1,), torch.float32), ValueError),
        ((-5, (1,), torch.float32), ValueError),
        ((True, (1,), torch.float32), ValueError),
        ((1.5, (1,), torch.float32), ValueError),
        ((1, (), torch.float32), ValueError),
        ((1, (2, 0), torch.float32), ValueError),
        ((1, (2, -1), torch.float32), ValueError),
        ((1, (2.0,), torch.float32), TypeError),
        ((1, (True,), torch.float32), TypeError),
        ((1, (1,), "float32"), TypeError),
        ((1, (1,), None), TypeError),
    ],
)
def test_device_tensor_refusals(args, error):
    with pytest.raises(error):
        DeviceTensor(*args)


def shards(count=3, tail=(4, 2), dtype=torch.float32):
    return [DeviceTensor(0x1000 * (i + 1), tail, dtype) for i in range(count)]


def test_stacked():
    # DEV-6
    parts = shards()
    s = StackedDeviceTensor(parts, (3, 4, 2), [2, 0, 1])
    assert s.shape == (3, 4, 2) and s.dtype == torch.float32 and s.worker_ids == (2, 0, 1)
    assert s[1] is parts[1]
    assert s[2, ...] is s[2, :, :] is s[2, 0:4, ...] is s[2, 0:4, 0:2] is parts[2]
    with pytest.raises(TypeError):
        s[0:1]
    with pytest.raises(TypeError):
        s[True]
    for bad in (3, -1, (0, slice(None), slice(None), slice(None)), (0, ..., ...)):
        with pytest.raises(IndexError):
            s[bad]
    with pytest.raises(ValueError, match="axis 1"):
        s[0, 0:2]
    with pytest.raises(ValueError, match="axis 2"):
        s[0, :, 1]


@pytest.mark.parametrize(
    "args,error",
    [
        ((shards(1), (1,), [0]), ValueError),
        (([], (0, 4, 2), []), ValueError),
        ((shards(2), (3, 4, 2), [0, 1, 2]), ValueError),
        ((shards(3), (3, 4, 2), [0, 1]), ValueError),
        ((shards(3), (3, 4, 2), [0, 1, 1]), ValueError),
        ((["a", "b"], (2, 4, 2), [0, 1]), TypeError),
        ((shards(3), (3, 4, 3), [0, 1, 2]), ValueError),
        ((shards(1) + shards(1, dtype=torch.float16), (2, 4, 2), [0, 1]), ValueError),
    ],
)
def test_stacked_refusals(args, error):
    with pytest.raises(error):
        StackedDeviceTensor(*args)
