# SPDX-License-Identifier: Apache-2.0
"""Put two matrices side by side: as one operation, and by storing each at its place in the result.

Teaches: pl.concat; pl.store at an offset; a result written by two tasks that do not overlap
Run:     python examples/beginner/concat.py -p a2a3sim -d 0
Expect:  OK
Next:    ../intermediate/fused_linear.py
"""

import argparse
import sys

import numpy as np
import pypto.language as pl
from pypto.runtime import RunConfig

ROWS, COLS = 32, 64


@pl.jit
def side_by_side(a: pl.Tensor, b: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.concat(a, b)
    return out


@pl.jit.incore
def place(
    source: pl.Tensor[[ROWS, COLS], pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, 2 * COLS], pl.FP32]],
    column: pl.Scalar[pl.INT32],
):
    tile = pl.load(source, [0, 0], [ROWS, COLS])
    out = pl.store(tile, [0, column], out)
    return out


@pl.jit
def by_offset(
    a: pl.Tensor[[ROWS, COLS], pl.FP32],
    b: pl.Tensor[[ROWS, COLS], pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, 2 * COLS], pl.FP32]],
):
    out = place(a, out, 0)
    out = place(b, out, COLS)
    return out


def golden(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.concatenate([a, b], axis=1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", type=int, default=0, help="device id")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    config = RunConfig(platform=args.platform, device_id=args.device)

    rng = np.random.default_rng(5)
    a = rng.standard_normal((ROWS, COLS), dtype=np.float32)
    b = rng.standard_normal((ROWS, COLS), dtype=np.float32)
    out = np.zeros((ROWS, 2 * COLS), dtype=np.float32)
    if args.compile_only:
        print(f"compile_only done: {side_by_side.compile(a, b, out, config=config).output_dir}")
        return 0
    for program in (side_by_side, by_offset):
        out[:] = 0
        program(a, b, out, config=config)
        np.testing.assert_array_equal(out, golden(a, b))
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
