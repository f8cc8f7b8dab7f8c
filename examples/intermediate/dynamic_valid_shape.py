# SPDX-License-Identifier: Apache-2.0
"""One compiled program for every number of rows, padding and all.

Teaches: pl.dynamic dimensions; valid_shape computed at run time; pl.fillpad before a reduction down the rows
Run:     python examples/intermediate/dynamic_valid_shape.py -p a2a3sim -d 0
Expect:  OK
Next:    device_time.py
"""

import argparse
import sys

import numpy as np
import pypto.language as pl
from pypto.runtime import RunConfig

COLS, TILE = 64, 32
R = pl.dynamic("R")


@pl.jit.incore
def column_max(
    x: pl.Tensor[[R, COLS], pl.FP32],
    best: pl.InOut[pl.Tensor[[1, COLS], pl.FP32]],
    first: pl.Scalar[pl.INDEX],
):
    count = pl.min(TILE, pl.dim(x, 0) - first)
    t = pl.load(x, [first, 0], [TILE, COLS], valid_shape=[count, COLS])
    # Rows that do not exist must not win: fill them with the smallest value.
    t = pl.fillpad(t, pad_value=pl.PadValue.min)
    top = pl.maximum(pl.col_max(t), pl.load(best, [0, 0], [1, COLS]))
    best = pl.store(top, [0, 0], best)
    return best


@pl.jit
def program(
    x: pl.Tensor[[R, COLS], pl.FP32],
    best: pl.InOut[pl.Tensor[[1, COLS], pl.FP32]],
):
    for first in pl.range(0, pl.dim(x, 0), TILE):
        best = column_max(x, best, first)
    return best


def golden(x: np.ndarray) -> np.ndarray:
    return x.max(axis=0, keepdims=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", type=int, default=0, help="device id")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    config = RunConfig(platform=args.platform, device_id=args.device)

    rng = np.random.default_rng(15)
    best = np.empty((1, COLS), dtype=np.float32)
    if args.compile_only:
        x = rng.standard_normal((TILE, COLS), dtype=np.float32)
        print(f"compile_only done: {program.compile(x, best, config=config).output_dir}")
        return 0
    for rows in (1, 31, 32, 33, 100):
        x = rng.standard_normal((rows, COLS), dtype=np.float32) - 5  # all negative, so a zero row would win
        best[:] = -np.inf
        program(x, best, config=config)
        np.testing.assert_array_equal(best, golden(x))
    assert len(program._cache) == 1  # one program served every number of rows
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
