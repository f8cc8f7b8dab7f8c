# SPDX-License-Identifier: Apache-2.0
"""Step 01: hello rank. The output alone says which rank produced it.

Teaches: rank identity, pld.world_size(), DistributedConfig, device=r; one dispatch per rank.
Run:     python examples/distributed/01_hello_rank.py -p a2a3sim -d 0,1
Expect:  OK
Next:    02_programming_model.py
"""

import argparse
import sys

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig

N_RANKS = 2
ROWS = COLS = 8


@pl.jit.incore
def add_rank(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    rank: pl.Scalar[pl.INT32],
):
    tile = pl.load(x, [0, 0], [ROWS, COLS])
    y = pl.store(pl.add(tile, pl.cast(rank, pl.FP32)), [0, 0], y)
    return y


@pl.jit
def per_rank(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    y: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    rank: pl.Scalar[pl.INT32],
):
    y = add_rank(x, y, rank)
    return y


@pl.jit.host
def program(
    x: pl.Tensor[[N_RANKS, ROWS, COLS], pl.FP32],
    y: pl.Out[pl.Tensor[[N_RANKS, ROWS, COLS], pl.FP32]],
):
    for r in pl.range(pld.world_size()):
        per_rank(x[r], y[r], r, device=r)


def golden(x: np.ndarray) -> np.ndarray:
    return x + np.arange(len(x), dtype=np.float32)[:, None, None]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", default="0,1", help="comma-separated device ids")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    devices = [int(d) for d in args.device.split(",")]
    if len(devices) != 2:
        raise SystemExit(f"need exactly 2 devices, got {devices}")

    x = np.random.default_rng(1).standard_normal((len(devices), ROWS, COLS), dtype=np.float32)
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
