# SPDX-License-Identifier: Apache-2.0
"""Build a matrix from pieces: a block-transposed copy, each block put at its place.

Teaches: slices as values and as places; pl.assemble; pl.transpose of a block
Run:     python examples/intermediate/assemble.py -p a2a3sim -d 0
Expect:  OK
Next:    dynamic_valid_shape.py
"""

import argparse
import sys

import numpy as np
import pypto.language as pl
from pypto.runtime import RunConfig

N, B = 128, 32


@pl.jit
def transpose_blocks(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    for i in pl.range(0, N, B):
        for j in pl.range(0, N, B):
            with pl.at(level=pl.Level.CORE_GROUP):
                piece = pl.transpose(x[i : i + B, j : j + B], 0, 1)
                out = pl.assemble(out, piece, [j, i])
    return out


@pl.jit
def border(x: pl.Tensor, inner: pl.Tensor, out: pl.Out[pl.Tensor]):
    # A slice on the left of `=` is a place: only these bytes are written.
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.mul(x, 1.0)
    with pl.at(level=pl.Level.CORE_GROUP):
        out[B : N - B, B : N - B] = pl.mul(inner, -1.0)
    return out


def golden_border(x: np.ndarray, inner: np.ndarray) -> np.ndarray:
    out = x.copy()
    out[B : N - B, B : N - B] = -inner
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", type=int, default=0, help="device id")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    config = RunConfig(platform=args.platform, device_id=args.device)

    rng = np.random.default_rng(14)
    x = rng.standard_normal((N, N), dtype=np.float32)
    inner = rng.standard_normal((N - 2 * B, N - 2 * B), dtype=np.float32)
    out = np.zeros_like(x)
    if args.compile_only:
        print(f"compile_only done: {transpose_blocks.compile(x, out, config=config).output_dir}")
        return 0
    transpose_blocks(x, out, config=config)
    np.testing.assert_array_equal(out, x.T)
    out[:] = 0
    border(x, inner, out, config=config)
    np.testing.assert_array_equal(out, golden_border(x, inner))
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
