# SPDX-License-Identifier: Apache-2.0
"""Softmax along rows that do not divide evenly into tiles: the last tile has fewer rows.

Teaches: row reductions and row_expand; a ragged tail with valid_shape; the class form
Run:     python examples/intermediate/softmax.py -p a2a3sim -d 0
Expect:  OK
Next:    normalization.py
"""

import argparse
import sys

import numpy as np
import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig

ROWS, COLS, TILE = 200, 96, 64


@pl.program
class Softmax:
    @pl.function(type=pl.FunctionType.InCore)
    def rows(
        self,
        x: pl.Tensor[[ROWS, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
        first: pl.Scalar[pl.INDEX],
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        count = pl.min(TILE, ROWS - first)  # rows that exist from `first` on
        t = pl.load(x, [first, 0], [TILE, COLS], valid_shape=[count, COLS])
        work = pl.create_tile([TILE, COLS], dtype=pl.FP32)
        e = pl.exp(pl.row_expand_sub(t, pl.row_max(t, work)))
        y = pl.row_expand_div(e, pl.row_sum(e, work))
        return pl.store(y, [first, 0], out)  # writes `count` rows

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[ROWS, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        for first in pl.range(0, ROWS, TILE):
            out = self.rows(x, out, first)
        return out


def golden(x: np.ndarray) -> np.ndarray:
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", type=int, default=0, help="device id")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    config = RunConfig(platform=args.platform, device_id=args.device)

    x = np.random.default_rng(11).standard_normal((ROWS, COLS), dtype=np.float32) * 4
    compiled = ir.compile(Softmax, platform=args.platform)
    if args.compile_only:
        print(f"compile_only done: {compiled.output_dir}")
        return 0
    out = compiled(x, config=config)
    np.testing.assert_allclose(out, golden(x), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(out.sum(axis=1), 1.0, rtol=1e-5)
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
