# SPDX-License-Identifier: Apache-2.0
"""Layer normalisation and RMS normalisation of each row.

Teaches: mean and variance by row_sum; rsqrt; a row of weights for all rows; two programs that share a helper
Run:     python examples/intermediate/normalization.py -p a2a3sim -d 0
Expect:  OK
Next:    matmul_accumulate.py
"""

import argparse
import sys

import numpy as np
import pypto.language as pl
from pypto.runtime import RunConfig

ROWS, COLS = 64, 256
EPS = 1e-5


@pl.inline
def scaled(t, factor, weight):
    """Return t * factor (one number per row) * weight (one number per column)."""
    return pl.col_expand_mul(pl.row_expand_mul(t, factor), weight)


@pl.jit
def layer_norm(x: pl.Tensor, gamma: pl.Tensor, beta: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        mean = pl.mul(pl.row_sum(x), 1.0 / COLS)
        centred = pl.row_expand_sub(x, mean)
        variance = pl.mul(pl.row_sum(pl.mul(centred, centred)), 1.0 / COLS)
        y = scaled(centred, pl.rsqrt(pl.add(variance, EPS)), gamma)
        out[:] = pl.col_expand_add(y, beta)
    return out


@pl.jit
def rms_norm(x: pl.Tensor, gamma: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=pl.Level.CORE_GROUP):
        mean_square = pl.mul(pl.row_sum(pl.mul(x, x)), 1.0 / COLS)
        out[:] = scaled(x, pl.rsqrt(pl.add(mean_square, EPS)), gamma)
    return out


def golden_layer(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt(centred.var(axis=1, keepdims=True) + EPS) * gamma + beta


def golden_rms(x: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    x = x.astype(np.float64)
    return x / np.sqrt((x * x).mean(axis=1, keepdims=True) + EPS) * gamma


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", type=int, default=0, help="device id")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    config = RunConfig(platform=args.platform, device_id=args.device)

    rng = np.random.default_rng(12)
    x = rng.standard_normal((ROWS, COLS), dtype=np.float32) * 2 + 1
    gamma = rng.standard_normal((1, COLS), dtype=np.float32)
    beta = rng.standard_normal((1, COLS), dtype=np.float32)
    out = np.zeros_like(x)
    if args.compile_only:
        print(f"compile_only done: {layer_norm.compile(x, gamma, beta, out, config=config).output_dir}")
        return 0
    layer_norm(x, gamma, beta, out, config=config)
    np.testing.assert_allclose(out, golden_layer(x, gamma, beta), rtol=1e-4, atol=1e-4)
    rms_norm(x, gamma, out, config=config)
    np.testing.assert_allclose(out, golden_rms(x, gamma), rtol=1e-4, atol=1e-4)
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
