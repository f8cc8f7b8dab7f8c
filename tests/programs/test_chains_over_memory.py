# SPDX-License-Identifier: Apache-2.0
"""Chains that read and write global memory themselves give what their operations give one by one.

Rules: 01 L-147 (execution in strips is never visible), 02 O-311 (same bits however work is grouped), O-404 (bounds).
"""

from pathlib import Path

import numpy as np
import pypto.language as pl
import pytest
from pypto import _core
from pypto.runtime import RunConfig

RNG = np.random.default_rng(77)


@pytest.fixture(params=["chains", "one by one"])
def config(request):
    """Runs every test twice: the expected values must not depend on grouping."""
    _core.set_emit_debug(False, request.param == "chains")
    yield RunConfig(platform="a2a3sim")
    _core.set_emit_debug(False, True)


def rows(n, m=64):
    return RNG.standard_normal((n, m), dtype=np.float32)


def test_windows_in_a_loop(config):  # O-311: loads, steps and the store of a trip become one chain
    @pl.jit
    def kernel(
        x: pl.Tensor[[96, 80], pl.FP32], y: pl.Tensor[[96, 80], pl.FP32], out: pl.Out[pl.Tensor[[96, 80], pl.FP32]]
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(6):
                for j in pl.range(2):
                    a = pl.load(x, [i * 16, j * 40], [16, 40])
                    b = pl.load(y, [(5 - i) * 16, j * 40], [16, 40])
                    out = pl.store(pl.sub(pl.mul(a, b), a), [i * 16, (1 - j) * 40], out)
        return out

    x, y, out = rows(96, 80), rows(96, 80), rows(96, 80)
    kernel(x, y, out, config=config)
    want = np.empty_like(x)
    for i in range(6):
        for j in range(2):
            a = x[i * 16 : i * 16 + 16, j * 40 : j * 40 + 40]
            b = y[(5 - i) * 16 : (6 - i) * 16, j * 40 : j * 40 + 40]
            want[i * 16 : i * 16 + 16, (1 - j) * 40 : (2 - j) * 40] = a * b - a
    np.testing.assert_array_equal(out, want)


def test_in_place_array(config):  # O-311: the value read is the one before the assignment
    @pl.jit
    def kernel(x: pl.InOut[pl.Tensor[[256, 200], pl.FP32]], y: pl.Tensor[[256, 200], pl.FP32]):
        with pl.at(level=pl.Level.CORE_GROUP):
            x[:] = pl.add(pl.mul(x, y), x)
            x[:] = pl.mul(pl.add(x, 1.0), y)
        return x

    x, y = rows(256, 200), rows(256, 200)
    want = x * y + x
    want = (want + np.float32(1)) * y
    kernel(x, y, config=config)
    np.testing.assert_array_equal(x, want)


def test_shifted_window_of_one_array(config):  # O-311: source and target overlap
    @pl.jit
    def kernel(x: pl.InOut[pl.Tensor[[130, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.load(x, [0, 0], [128, 64])
            b = pl.load(x, [2, 0], [128, 64])
            x = pl.store(pl.add(pl.mul(a, 3.0), b), [1, 0], x)
        return x

    x = rows(130)
    want = x.copy()
    want[1:129] = x[:128] * np.float32(3) + x[2:]
    kernel(x, config=config)
    np.testing.assert_array_equal(x, want)


def test_use_after_a_store_into_the_source(config):  # O-311: a loaded tile is a copy, an array is not
    @pl.jit
    def kernel(
        x: pl.InOut[pl.Tensor[[32, 64], pl.FP32]],
        y: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
        z: pl.Out[pl.Tensor[[32, 64], pl.FP32]],
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.load(x, [0, 0], [32, 64])
            t = pl.mul(a, 2.0)
            x = pl.store(t, [0, 0], x)
            y = pl.store(pl.add(a, t), [0, 0], y)
            b = pl.load(x, [0, 0], [32, 64])
            z = pl.store(pl.sub(b, 0.5), [0, 0], z)
        return x, y, z

    x, y, z = rows(32), rows(32), rows(32)
    before = x.copy()
    kernel(x, y, z, config=config)
    np.testing.assert_array_equal(x, before * 2)
    np.testing.assert_array_equal(y, before + before * 2)
    np.testing.assert_array_equal(z, before * 2 - np.float32(0.5))


def test_two_stores_of_overlapping_windows(config):  # O-311: the later store wins
    @pl.jit
    def kernel(x: pl.Tensor[[48, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.load(x, [0, 0], [48, 64])
            t = pl.mul(a, 2.0)
            u = pl.add(t, 1.0)
            out = pl.store(t, [0, 0], out)
            out = pl.store(u, [16, 0], out)
        return out

    x, out = rows(48), rows(64)
    kernel(x, out, config=config)
    np.testing.assert_array_equal(out, np.concatenate([x[:16] * 2, x * 2 + np.float32(1)]))


def test_partly_valid_loads(config):  # O-311: padding is neither read nor written
    @pl.jit
    def kernel(x: pl.Tensor[[50, 64], pl.FP32], n: pl.Scalar[pl.INDEX], out: pl.InOut[pl.Tensor[[64, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(2):
                a = pl.load(x, [i * 32, 0], [32, 64], valid_shape=[pl.min(n - i * 32, 32), 64])
                out = pl.store(pl.mul(pl.add(a, 1.0), a), [i * 32, 0], out)
        return out

    x, out = rows(50), rows(64)
    want = out.copy()
    want[:45] = (x[:45] + np.float32(1)) * x[:45]
    kernel(x, 45, out, config=config)
    np.testing.assert_array_equal(out, want)


def test_reductions_and_three_axes(config):  # O-307, O-311
    @pl.jit
    def kernel(x: pl.Tensor[[3, 40, 96], pl.FP32], out: pl.Out[pl.Tensor[[3, 40, 96], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for b in pl.range(3):
                a = pl.load(x, [b, 0, 0], [1, 40, 96])
                scratch = pl.create_tile([1, 40, 96], dtype=pl.FP32, target_memory=pl.Mem.Vec)
                m = pl.row_max(a, scratch)
                out = pl.store(pl.row_expand_sub(a, m), [b, 0, 0], out)
        return out

    x = RNG.standard_normal((3, 40, 96), dtype=np.float32)
    out = np.zeros_like(x)
    kernel(x, out, config=config)
    np.testing.assert_array_equal(out, x - x.max(axis=2, keepdims=True))


def test_store_out_of_bounds_names_its_line(config):  # O-404
    @pl.jit
    def kernel(x: pl.Tensor[[32, 64], pl.FP32], k: pl.Tensor[[1], pl.INT64], out: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            i = pl.read(k, [0])
            a = pl.load(x, [0, 0], [32, 64])
            t = pl.mul(a, 2.0)
            out = pl.store(t, [i, 0], out)  # here
        return out

    source = Path(__file__).read_text().splitlines()
    line = 1 + next(n for n, text in enumerate(source) if text.endswith("# here"))
    with pytest.raises(IndexError, match=rf"out of bounds in dimension 0(.|\n)*:{line}\b"):
        kernel(rows(32), np.array([3]), rows(32), config=config)


def test_scratch_created_between_load_and_reduction(config):  # O-218, O-311: loads may run past a fresh tile
    @pl.jit
    def kernel(
        x: pl.Tensor[[12, 200], pl.FP32],
        out: pl.Out[pl.Tensor[[12, 200], pl.FP32]],
        tops: pl.Out[pl.Tensor[[12, 1], pl.FP32]],
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(0, 12, 4):
                t = pl.load(x, [i, 0], [4, 200])
                scratch = pl.create_tile([4, 200], dtype=pl.FP32)
                top = pl.row_max(t, scratch)
                d = pl.row_expand_sub(t, top)
                more = pl.create_tile([4, 200], dtype=pl.FP32)
                s = pl.row_sum(d, more)
                out = pl.store(pl.row_expand_div(d, s), [i, 0], out)
                tops = pl.store(top, [i, 0], tops)
        return out, tops

    x, out, tops = rows(12, 200), rows(12, 200), rows(12, 1)
    kernel(x, out, tops, config=config)
    d = x - x.max(1, keepdims=True)
    np.testing.assert_array_equal(tops, x.max(1, keepdims=True))
    np.testing.assert_allclose(out, d / d.sum(1, keepdims=True), rtol=1e-5)


def test_a_fresh_tile_takes_a_register_over(config):  # 02 O-209: what is created again holds nothing of before
    @pl.jit
    def kernel(x: pl.Tensor[[64, 64], pl.FP32], out: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for i in pl.range(0, 64, 32):
                a = pl.load(x, [i, 0], [16, 64])
                b = pl.mul(pl.add(a, 1.0), a)
                t = pl.create_tile([16, 64], dtype=pl.FP32)
                t = pl.assemble(t, pl.mul(b, 2.0), [0, 0])
                out = pl.store(pl.sub(t, b), [i, 0], out)
                t = pl.create_tile([16, 64], dtype=pl.FP32)
                t = pl.assemble(t, pl.neg(b), [0, 0])
                out = pl.store(pl.add(t, a), [i + 16, 0], out)
        return out

    x, out = rows(64), rows(64)
    want = np.empty_like(x)
    for i in (0, 32):
        a = x[i : i + 16]
        b = (a + np.float32(1)) * a
        want[i : i + 16] = b * 2 - b
        want[i + 16 : i + 32] = a - b
    kernel(x, out, config=config)
    np.testing.assert_array_equal(out, want)


def test_many_operations_in_a_loop(config):  # O-311: what a trip left behind is not what the next one reads
    @pl.jit
    def kernel(
        x: pl.Tensor[[16, 64], pl.INT32],
        y: pl.Tensor[[16, 64], pl.FP32],
        k: pl.Scalar[pl.INT32],
        ints: pl.Out[pl.Tensor[[16, 64], pl.INT32]],
        floats: pl.Out[pl.Tensor[[16, 64], pl.FP32]],
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.load(x, [0, 0], [16, 64])
            f = pl.load(y, [0, 0], [16, 64])
            for _ in pl.range(9):
                b = pl.add(a, k)
                c = pl.mul(b, b)
                d = pl.sub(c, a)
                e = pl.add(d, 7)
                g = pl.cast(e, pl.FP32)
                h = pl.mul(f, 1.5)
                q = pl.add(g, h)
                m = pl.cast(q, pl.FP16)
                n = pl.cast(m, pl.FP32)
                o = pl.add(n, h)
                p = pl.add(e, k)
            ints = pl.store(p, [0, 0], ints)
            floats = pl.store(o, [0, 0], floats)
        return ints, floats

    x, y = RNG.integers(-9, 9, (16, 64), dtype=np.int32), rows(16)
    ints, floats = np.zeros_like(x), rows(16)
    kernel(x, y, 8, ints, floats, config=config)
    e = (x + 8) * (x + 8) - x + 7
    h = y * np.float32(1.5)
    np.testing.assert_array_equal(ints, e + 8)
    np.testing.assert_array_equal(floats, (e.astype(np.float32) + h).astype(np.float16).astype(np.float32) + h)
