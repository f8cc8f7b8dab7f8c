# SPDX-License-Identifier: Apache-2.0
"""Step 03: window memory. Allocate it, view it, use your own slice: the object all later steps move data through.

Teaches: pld.alloc_window_buffer, pld.window, pld.DistributedTensor; no communication yet.
Run:     python examples/distributed/03_window_buffer.py -p a2a3sim -d 0,1
Expect:  OK
Next:    04_barrier.py
"""

import argparse
import sys

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig

N_RANKS = 2
SIZE = 256  # 1 KiB per rank: below the 4 KiB floor of a window buffer


@pl.jit.incore
def window_roundtrip(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
):
    local = pl.load(x, [0, 0], [1, SIZE])
    data = pl.store(local, [0, 0], data)  # write our own slice
    back = pl.load(data, [0, 0], [1, SIZE])  # read it back
    y = pl.store(back, [0, 0], y)
    return y


@pl.jit
def per_rank(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
):
    y = window_roundtrip(x, y, data)
    return y


@pl.jit.host
def program(
    x: pl.Tensor[[N_RANKS, 1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[N_RANKS, 1, SIZE], pl.FP32]],
):
    data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
        per_rank(x[r], y[r], data, device=r)


def golden(x: np.ndarray) -> np.ndarray:
    return x.copy()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", default="0,1", help="comma-separated device ids")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    devices = [int(d) for d in args.device.split(",")]
    if len(devices) != 2:
        raise SystemExit(f"need exactly 2 devices, got {devices}")

    x = np.random.default_rng(3).standard_normal((len(devices), 1, SIZE), dtype=np.float32)
    y = np.zeros_like(x)

    compiled = program.compile(
        x,
        y,
        config=RunConfig(
            platform=args.platform,
            distributed_config=DistributedConfig(device_ids=devices, num_sub_workers=0),
        ),
    )
    if args.compile_only:
        print(f"compile_only done: {compiled.output_dir}")
        return 0
    compiled(x, y, config=RunConfig(platform=args.platform))
    np.testing.assert_allclose(y, golden(x), rtol=1e-5, atol=1e-5)
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
