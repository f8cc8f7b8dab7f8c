# SPDX-License-Identifier: Apache-2.0
"""A chain of element-wise operations over a matrix that is larger than on-chip memory, tile by tile.

Teaches: tiles; loops over a matrix; operators (+ - * /) and named operations; several tasks in one program
Run:     python examples/beginner/elementwise.py -p a2a3sim -d 0
Expect:  OK
Next:    scalar_operands.py
"""

import argparse
import sys

import numpy as np
import pypto.language as pl
from pypto.runtime import RunConfig

ROWS, COLS, TILE = 512, 256, 32


@pl.jit.incore
def softplus_difference(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    y: pl.Tensor[[ROWS, COLS], pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    row: pl.Scalar[pl.INT32],
):
    a = pl.load(x, [row, 0], [TILE, COLS])
    b = pl.load(y, [row, 0], [TILE, COLS])
    # log(1 + exp(a)) - |b| * max(a, b)
    soft = pl.log(pl.add(pl.exp(a), 1.0))
    out = pl.store(soft - pl.abs(b) * pl.maximum(a, b), [row, 0], out)
    return out


@pl.jit
def program(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    y: pl.Tensor[[ROWS, COLS], pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
):
    # Each trip is one task; they touch different rows, so they may run at the same time on different cores.
    for i in pl.parallel(ROWS // TILE):
        out = softplus_difference(x, y, out, i * TILE)
    return out


def golden(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.log(1 + np.exp(x)) - np.abs(y) * np.maximum(x, y)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", type=int, default=0, help="device id")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    config = RunConfig(platform=args.platform, device_id=args.device)

    rng = np.random.default_rng(1)
    x = rng.standard_normal((ROWS, COLS), dtype=np.float32)
    y = rng.standard_normal((ROWS, COLS), dtype=np.float32)
    out = np.zeros_like(x)
    if args.compile_only:
        print(f"compile_only done: {program.compile(x, y, out, config=config).output_dir}")
        return 0
    program(x, y, out, config=config)
    np.testing.assert_allclose(out, golden(x, y), rtol=1e-5, atol=1e-5)
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
