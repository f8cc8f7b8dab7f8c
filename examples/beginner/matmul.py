# SPDX-License-Identifier: Apache-2.0
"""A matrix product on the cube core: through the memories by hand, and as one tensor operation.

Teaches: memory spaces (Mat, Left, Right, Acc); pl.load, pl.move, pl.matmul; the tensor form that does it for you
Run:     python examples/beginner/matmul.py -p a2a3sim -d 0
Expect:  OK
Next:    concat.py
"""

import argparse
import sys

import numpy as np
import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig

M, K, N = 64, 96, 128


@pl.jit
def product(a: pl.Tensor, b: pl.Tensor, c: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        c[:] = pl.matmul(a, b)
    return c


@pl.program
class ProductByHand:
    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        a: pl.Tensor[[M, K], pl.FP32],
        b: pl.Tensor[[K, N], pl.FP32],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ) -> pl.Tensor[[M, N], pl.FP32]:
        # Global memory -> L1 (Mat) -> the operand buffers (Left, Right) -> the accumulator (Acc) -> global memory.
        a_l1 = pl.load(a, [0, 0], [M, K], target_memory=pl.MemorySpace.Mat)
        b_l1 = pl.load(b, [0, 0], [K, N], target_memory=pl.MemorySpace.Mat)
        a_l0 = pl.move(a_l1, target_memory=pl.MemorySpace.Left)
        b_l0 = pl.move(b_l1, target_memory=pl.MemorySpace.Right)
        return pl.store(pl.matmul(a_l0, b_l0), [0, 0], c)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[M, K], pl.FP32],
        b: pl.Tensor[[K, N], pl.FP32],
        c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    ) -> pl.Tensor[[M, N], pl.FP32]:
        c = self.kernel(a, b, c)
        return c


def golden(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", type=int, default=0, help="device id")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    config = RunConfig(platform=args.platform, device_id=args.device)

    rng = np.random.default_rng(4)
    a = rng.standard_normal((M, K), dtype=np.float32)
    b = rng.standard_normal((K, N), dtype=np.float32)
    c = np.zeros((M, N), dtype=np.float32)
    if args.compile_only:
        print(f"compile_only done: {product.compile(a, b, c, config=config).output_dir}")
        return 0
    product(a, b, c, config=config)
    np.testing.assert_allclose(c, golden(a, b), rtol=1e-4, atol=1e-4)

    by_hand = ir.compile(ProductByHand, platform=args.platform)(a, b, config=config)
    np.testing.assert_allclose(by_hand, golden(a, b), rtol=1e-4, atol=1e-4)
    # Both add up along K in the same order, so they agree to the last bit.
    np.testing.assert_array_equal(by_hand, c)
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
