# SPDX-License-Identifier: Apache-2.0
"""Large operations share their work among host threads; nobody can see how many (02 O-311, 04 section 22, SIM-5)."""

import numpy as np
import pypto.language as pl
import pytest
from pypto.runtime import RunConfig, SimOptions

RNG = np.random.default_rng(5)
THREADS = (1, 2, 4, 0)


def outcomes(run, *shapes):
    """The bytes that a program leaves, for every number of threads."""
    out = []
    for threads in THREADS:
        config = RunConfig(platform="a2a3sim", sim=SimOptions(threads=threads))
        results = [np.full(s, 7, np.float32) for s in shapes]
        run(*results, config=config)
        out.append([r.tobytes() for r in results])
    return out, results


@pl.jit
def chain(
    x: pl.Tensor[[1500, 2053], pl.FP32],
    y: pl.Tensor[[1500, 2053], pl.FP32],
    out: pl.Out[pl.Tensor[[1500, 2053], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.sub(pl.mul(pl.maximum(pl.add(pl.mul(x, 1.5), y), 0.0), y), x)
    return out


@pl.jit
def softmax(
    x: pl.Tensor[[777, 3000], pl.FP32],
    out: pl.Out[pl.Tensor[[777, 3000], pl.FP32]],
    top: pl.Out[pl.Tensor[[777, 1], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        m = pl.row_max(x)
        e = pl.exp(pl.row_expand_sub(x, m))
        out[:] = pl.row_expand_div(e, pl.row_sum(e))
        top[:] = m
    return out, top


@pl.jit
def scaled(x: pl.InOut[pl.Tensor[[2100, 2048], pl.FP32]], v: pl.Tensor[[2100, 1], pl.FP32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        x[:] = pl.row_expand_mul(pl.add(x, 1.0), v)
    return x


def test_element_wise_chain():  # O-311, SIM-5
    x, y = (RNG.standard_normal((1500, 2053), dtype=np.float32) for _ in range(2))
    found, (out,) = outcomes(lambda o, config: chain(x, y, o, config=config), x.shape)
    assert all(f == found[0] for f in found)
    np.testing.assert_array_equal(out, np.maximum(x * np.float32(1.5) + y, np.float32(0)) * y - x)


def test_rows(request):  # O-307, O-311, SIM-5
    x = RNG.standard_normal((777, 3000), dtype=np.float32)
    found, (out, top) = outcomes(lambda o, t, config: softmax(x, o, t, config=config), x.shape, (777, 1))
    assert all(f == found[0] for f in found)
    e = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(axis=1, keepdims=True), rtol=1e-5)
    np.testing.assert_array_equal(top, x.max(axis=1, keepdims=True))


def test_in_place():  # O-311, SIM-5
    x = RNG.standard_normal((2100, 2048), dtype=np.float32)
    v = RNG.standard_normal((2100, 1), dtype=np.float32)

    def run(out, config):
        out[:] = x
        scaled(out, v, config=config)

    found, (out,) = outcomes(run, x.shape)
    assert all(f == found[0] for f in found)
    np.testing.assert_array_equal(out, (x + np.float32(1)) * v)


@pytest.mark.parametrize(("m", "n", "k"), [(700, 300, 1000), (90, 2100, 900)])
@pytest.mark.parametrize("transposed", [False, True])
def test_products(m, n, k, transposed):  # O-307, SIM-5
    @pl.jit
    def product(
        a: pl.Tensor[[m, k], pl.FP32],
        b: pl.Tensor[[n, k] if transposed else [k, n], pl.FP32],
        out: pl.Out[pl.Tensor[[m, n], pl.FP32]],
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = pl.matmul(a, b, b_trans=transposed)
        return out

    a = RNG.standard_normal((m, k), dtype=np.float32)
    b = RNG.standard_normal((n, k) if transposed else (k, n), dtype=np.float32)
    found, (out,) = outcomes(lambda o, config: product(a, b, o, config=config), (m, n))
    assert all(f == found[0] for f in found)
    right = b.T if transposed else b
    np.testing.assert_allclose(out, a.astype(np.float64) @ right.astype(np.float64), rtol=1e-3, atol=1e-3)
