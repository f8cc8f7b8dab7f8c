# SPDX-License-Identifier: Apache-2.0
"""A linear layer with bias and ReLU in one kernel: relu(x @ w + b).

Teaches: a kernel that uses the cube core and the vector cores; col_expand_add for a bias row
Run:     python examples/intermediate/fused_linear.py -p a2a3sim -d 0
Expect:  OK
Next:    softmax.py
"""

import argparse
import sys

import numpy as np
import pypto.language as pl
from pypto.runtime import RunConfig

M, K, N = 64, 128, 128


@pl.jit
def linear_relu(x: pl.Tensor, w: pl.Tensor, bias: pl.Tensor, out: pl.Out[pl.Tensor]):
    # One region, two kinds of cores: the compiler hands the product from the cube core to the vector cores.
    with pl.at(level=pl.Level.CORE_GROUP):
        y = pl.matmul(x, w)
        y = pl.col_expand_add(y, bias)
        out[:] = pl.maximum(y, 0.0)
    return out


def golden(x: np.ndarray, w: np.ndarray, bias: np.ndarray) -> np.ndarray:
    return np.maximum(x.astype(np.float64) @ w.astype(np.float64) + bias, 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", type=int, default=0, help="device id")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    config = RunConfig(platform=args.platform, device_id=args.device)

    rng = np.random.default_rng(10)
    x = rng.standard_normal((M, K), dtype=np.float32)
    w = rng.standard_normal((K, N), dtype=np.float32) / np.float32(np.sqrt(K))
    bias = rng.standard_normal((1, N), dtype=np.float32)
    out = np.zeros((M, N), dtype=np.float32)
    if args.compile_only:
        print(f"compile_only done: {linear_relu.compile(x, w, bias, out, config=config).output_dir}")
        return 0
    linear_relu(x, w, bias, out, config=config)
    np.testing.assert_allclose(out, golden(x, w, bias), rtol=1e-4, atol=1e-4)
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
