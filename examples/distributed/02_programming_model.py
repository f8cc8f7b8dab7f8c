# SPDX-License-Identifier: Apache-2.0
"""Step 02: the programming model. One source, three tiers: host, device orchestration, kernel.

Teaches: @pl.jit.host -> @pl.jit -> @pl.jit.incore, and what each may contain.
Run:     python examples/distributed/02_programming_model.py -p a2a3sim -d 0,1
Expect:  OK
Next:    03_window_buffer.py
"""

import argparse
import sys

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig

N_RANKS = 2
ROWS, COLS = 16, 32


@pl.jit.incore
def scale(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    factor: pl.Scalar[pl.INT32],
):
    """Tier 3, on a core: tiles and arithmetic."""
    tile = pl.load(x, [0, 0], [ROWS, COLS])
    y = pl.store(pl.mul(tile, pl.cast(factor, pl.FP32)), [0, 0], y)
    return y


@pl.jit
def on_device(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    factor: pl.Scalar[pl.INT32],
):
    """Tier 2, on one device's control processor: submits kernels."""
    y = scale(x, y, factor)
    return y


@pl.jit.host
def program(
    x: pl.Tensor[[N_RANKS, ROWS, COLS], pl.FP32],
    y: pl.Out[pl.Tensor[[N_RANKS, ROWS, COLS], pl.FP32]],
):
    """Tier 1, on the host: one dispatch per device."""
    for r in pl.range(pld.world_size()):
        on_device(x[r], y[r], r + 1, device=r)


def golden(x: np.ndarray) -> np.ndarray:
    return x * (1 + np.arange(len(x), dtype=np.float32))[:, None, None]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", default="0,1", help="comma-separated device ids")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    devices = [int(d) for d in args.device.split(",")]
    if len(devices) != 2:
        raise SystemExit(f"need exactly 2 devices, got {devices}")

    x = np.random.default_rng(2).standard_normal((len(devices), ROWS, COLS), dtype=np.float32)
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
