# SPDX-License-Identifier: Apache-2.0
"""Scale and shift a matrix by numbers given at the call: scalars compiled in, and scalars of the run.

Teaches: scalar parameters; a compiled-in value (one program per value) against pl.Scalar of a compiled class
Run:     python examples/beginner/scalar_operands.py -p a2a3sim -d 0
Expect:  OK
Next:    activation.py
"""

import argparse
import sys

import numpy as np
import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig

ROWS, COLS = 64, 128


@pl.jit
def scale_shift(x: pl.Tensor, out: pl.Out[pl.Tensor], scale: pl.Scalar[pl.FP32], shift: pl.Scalar[pl.FP32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.add(pl.mul(x, scale), shift)
    return out


@pl.program
class ScaleShift:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        x: pl.Tensor[[ROWS, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
        scale: pl.Scalar[pl.FP32],
        shift: pl.Scalar[pl.FP32],
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        tile = pl.load(x, [0, 0], [ROWS, COLS])
        tile = pl.add(pl.mul(tile, scale), shift)
        return pl.store(tile, [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[ROWS, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
        scale: pl.Scalar[pl.FP32],
        shift: pl.Scalar[pl.FP32],
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        out = self.kernel(x, out, scale, shift)
        return out


def golden(x: np.ndarray, scale: float, shift: float) -> np.ndarray:
    return x * np.float32(scale) + np.float32(shift)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", type=int, default=0, help="device id")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    config = RunConfig(platform=args.platform, device_id=args.device)

    x = np.random.default_rng(2).standard_normal((ROWS, COLS), dtype=np.float32)
    out = np.zeros_like(x)
    if args.compile_only:
        print(f"compile_only done: {scale_shift.compile(x, out, 2.0, 1.0, config=config).output_dir}")
        return 0

    # JIT: each value is part of the program, so a new value makes a new one.
    for scale, shift in [(2.0, 0.5), (-1.25, 3.0)]:
        scale_shift(x, out, scale, shift, config=config)
        np.testing.assert_allclose(out, golden(x, scale, shift), rtol=1e-6, atol=1e-6)
    assert len(scale_shift._cache) == 2

    # Class: one program, the values arrive with each call.
    compiled = ir.compile(ScaleShift, platform=args.platform)
    for scale, shift in [(2.0, 0.5), (-1.25, 3.0), (0.0, -7.5)]:
        compiled(x, out, scale, shift, config=config)
        np.testing.assert_allclose(out, golden(x, scale, shift), rtol=1e-6, atol=1e-6)
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
