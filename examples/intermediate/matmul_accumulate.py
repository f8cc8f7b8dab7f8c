# SPDX-License-Identifier: Apache-2.0
"""A product whose K does not fit on chip: accumulate over blocks of K.

Teaches: matmul_acc and init_cond; an accumulator that lives across a loop; blocks of the result as tasks
Run:     python examples/intermediate/matmul_accumulate.py -p a2a3sim -d 0
Expect:  OK
Next:    assemble.py
"""

import argparse
import sys

import numpy as np
import pypto.language as pl
from pypto.runtime import RunConfig

M, K, N = 128, 512, 128
BM, BK, BN = 64, 128, 64


@pl.jit.incore
def block(
    a: pl.Tensor[[M, K], pl.FP32],
    b: pl.Tensor[[K, N], pl.FP32],
    c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
    row: pl.Scalar[pl.INDEX],
    col: pl.Scalar[pl.INDEX],
):
    acc = pl.create_tile([BM, BN], dtype=pl.FP32, target_memory=pl.MemorySpace.Acc)
    for k in pl.range(0, K, BK):
        left = pl.load(a, [row, k], [BM, BK], target_memory=pl.MemorySpace.Mat)
        right = pl.load(b, [k, col], [BK, BN], target_memory=pl.MemorySpace.Mat)
        # The first block starts the sum, the others add to it.
        acc = pl.matmul_acc(acc, left, right, init_cond=(k == 0))
    c = pl.store(acc, [row, col], c)
    return c


@pl.jit
def product(
    a: pl.Tensor[[M, K], pl.FP32],
    b: pl.Tensor[[K, N], pl.FP32],
    c: pl.Out[pl.Tensor[[M, N], pl.FP32]],
):
    for i in pl.range(0, M, BM):
        for j in pl.range(0, N, BN):
            c = block(a, b, c, i, j)
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

    rng = np.random.default_rng(13)
    a = rng.standard_normal((M, K), dtype=np.float32)
    b = rng.standard_normal((K, N), dtype=np.float32)
    c = np.zeros((M, N), dtype=np.float32)
    if args.compile_only:
        print(f"compile_only done: {product.compile(a, b, c, config=config).output_dir}")
        return 0
    product(a, b, c, config=config)
    np.testing.assert_allclose(c, golden(a, b), rtol=1e-4, atol=1e-3)
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
