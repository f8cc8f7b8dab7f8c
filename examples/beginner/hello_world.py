# SPDX-License-Identifier: Apache-2.0
"""Add two matrices: the smallest program that computes something, written in both forms.

Teaches: @pl.jit and @pl.program; a kernel region; inputs and outputs; calling a program with arrays
Run:     python examples/beginner/hello_world.py -p a2a3sim -d 0
Expect:  OK
Next:    elementwise.py
"""

import argparse
import sys

import numpy as np
import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig

ROWS, COLS = 128, 128


@pl.jit
def add(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor]):
    # Everything in this block is one kernel: it runs on a core of the device.
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.add(x, y)
    return out


@pl.program
class AddProgram:
    """The same program as a class: the kernel loads tiles, computes on them, and stores the result."""

    @pl.function(type=pl.FunctionType.InCore)
    def add_tiles(
        self,
        x: pl.Tensor[[ROWS, COLS], pl.FP32],
        y: pl.Tensor[[ROWS, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        a = pl.load(x, [0, 0], [ROWS, COLS])
        b = pl.load(y, [0, 0], [ROWS, COLS])
        return pl.store(pl.add(a, b), [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[ROWS, COLS], pl.FP32],
        y: pl.Tensor[[ROWS, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        out = self.add_tiles(x, y, out)
        return out


def golden(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x + y


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", type=int, default=0, help="device id")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    config = RunConfig(platform=args.platform, device_id=args.device)

    x = np.arange(ROWS * COLS, dtype=np.float32).reshape(ROWS, COLS)
    y = np.sin(x)
    out = np.zeros_like(x)
    if args.compile_only:
        print(f"compile_only done: {add.compile(x, y, out, config=config).output_dir}")
        return 0

    add(x, y, out, config=config)  # compiles on the first call, writes `out`
    assert np.allclose(out, golden(x, y), rtol=1e-6)

    compiled = ir.compile(AddProgram, platform=args.platform)
    returned = compiled(x, y, config=config)  # without `out`: a new array is returned
    assert np.allclose(returned, golden(x, y), rtol=1e-6)
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
