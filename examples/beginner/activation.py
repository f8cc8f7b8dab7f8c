# SPDX-License-Identifier: Apache-2.0
"""Activation functions: ReLU, sigmoid, SiLU and the tanh form of GELU, built from a few operations.

Teaches: composing operations; one kernel with several outputs
Run:     python examples/beginner/activation.py -p a2a3sim -d 0
Expect:  OK
Next:    matmul.py
"""

import argparse
import sys

import numpy as np
import pypto.language as pl
from pypto.runtime import RunConfig

ROWS, COLS = 64, 128
GELU_A = 0.7978845608028654  # sqrt(2 / pi)
GELU_B = 0.044715


@pl.jit.incore
def activations(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    relu: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    silu: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    gelu: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
):
    t = pl.load(x, [0, 0], [ROWS, COLS])
    relu = pl.store(pl.relu(t), [0, 0], relu)

    # silu(t) = t * sigmoid(t) = t / (1 + exp(-t))
    denominator = pl.add(pl.exp(pl.neg(t)), 1.0)
    silu = pl.store(pl.div(t, denominator), [0, 0], silu)

    # gelu(t) = t * sigmoid(2 * a * (t + b * t^3)): the tanh form, with tanh(z) = 2 * sigmoid(2z) - 1
    cube = pl.mul(pl.mul(t, t), t)
    inner = pl.mul(pl.add(t, pl.mul(cube, GELU_B)), -2.0 * GELU_A)
    gelu = pl.store(pl.div(t, pl.add(pl.exp(inner), 1.0)), [0, 0], gelu)
    return relu, silu, gelu


@pl.jit
def program(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    relu: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    silu: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    gelu: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
):
    relu, silu, gelu = activations(x, relu, silu, gelu)
    return relu, silu, gelu


def golden(x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    tanh = np.tanh(GELU_A * (x + GELU_B * x**3))
    return np.maximum(x, 0), x / (1 + np.exp(-x)), 0.5 * x * (1 + tanh)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", type=int, default=0, help="device id")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    config = RunConfig(platform=args.platform, device_id=args.device)

    x = np.random.default_rng(3).standard_normal((ROWS, COLS), dtype=np.float32) * 3
    outs = [np.zeros_like(x) for _ in range(3)]
    if args.compile_only:
        print(f"compile_only done: {program.compile(x, *outs, config=config).output_dir}")
        return 0
    program(x, *outs, config=config)
    for name, got, want in zip(("relu", "silu", "gelu"), outs, golden(x), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=name)
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
