# SPDX-License-Identifier: Apache-2.0
"""Operations that are large enough to be shared among host threads; the core tests run them saved, with every sanitizer."""

import numpy as np
import pypto.language as pl
from pypto.runtime import RunConfig

ROWS, COLS = 700, 2053
M, N, K = 400, 400, 850


@pl.jit
def chain(
    x: pl.Tensor[[ROWS, COLS], pl.FP32],
    y: pl.Tensor[[ROWS, COLS], pl.FP32],
    out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.sub(pl.mul(pl.maximum(pl.add(pl.mul(x, 1.5), y), 0.0), y), x)
    return out


@pl.jit
def softmax(x: pl.Tensor[[ROWS, COLS], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        e = pl.exp(pl.row_expand_sub(x, pl.row_max(x)))
        out[:] = pl.row_expand_div(e, pl.row_sum(e))
    return out


@pl.jit
def product(a: pl.Tensor[[M, K], pl.FP32], b: pl.Tensor[[K, N], pl.FP32], out: pl.Out[pl.Tensor[[M, N], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.matmul(a, b)
    return out


def main() -> None:
    rng = np.random.default_rng(6)
    config = RunConfig(platform="a2a3sim")
    x, y = (rng.standard_normal((ROWS, COLS), dtype=np.float32) for _ in range(2))
    out = np.zeros_like(x)
    chain(x, y, out, config=config)
    np.testing.assert_array_equal(out, np.maximum(x * np.float32(1.5) + y, np.float32(0)) * y - x)
    softmax(x, out, config=config)
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(axis=1, keepdims=True), rtol=1e-5)
    a, b = (rng.standard_normal(s, dtype=np.float32) for s in ((M, K), (K, N)))
    c = np.zeros((M, N), np.float32)
    product(a, b, c, config=config)
    np.testing.assert_allclose(c, a @ b, rtol=1e-3, atol=1e-3)
    print("OK")


if __name__ == "__main__":
    main()
