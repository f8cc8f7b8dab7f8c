# SPDX-License-Identifier: Apache-2.0
"""Operations that few programs use, each in a small program against NumPy."""

import numpy as np
import pypto.language as pl
import pytest
from pypto.runtime import RunConfig

F = pl.FP32
RNG = np.random.default_rng(55)
A2 = RunConfig(platform="a2a3sim")
A5 = RunConfig(platform="a5sim")


def f32(*shape, scale=1.0):
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


@pl.jit
def sine_cosine(x: pl.Tensor[[16, 64], F], s: pl.Out[pl.Tensor[[16, 64], F]], c: pl.Out[pl.Tensor[[16, 64], F]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        s[:] = pl.sin(x)
        c[:] = pl.cos(x)
    return s, c


def test_sine_cosine():  # 02 section 10
    x = f32(16, 64, scale=30)
    x[0, :4] = [0, 1e4, -1e4, np.pi]
    s, c = np.zeros_like(x), np.zeros_like(x)
    sine_cosine(x, s, c, config=A2)
    np.testing.assert_allclose(s, np.sin(x.astype(np.float64)), atol=2e-6)
    np.testing.assert_allclose(c, np.cos(x.astype(np.float64)), atol=2e-6)


@pl.jit
def three_operands(x: pl.Tensor[[8, 32], F], y: pl.Tensor[[8, 32], F], z: pl.Tensor[[8, 32], F],
                   a: pl.Out[pl.Tensor[[8, 32], F]], b: pl.Out[pl.Tensor[[8, 32], F]],
                   c: pl.Out[pl.Tensor[[8, 32], F]], d: pl.Out[pl.Tensor[[8, 32], F]]):  # fmt: skip
    with pl.at(level=pl.Level.CORE_GROUP):
        tx = pl.load(x, [0, 0], [8, 32])
        ty = pl.load(y, [0, 0], [8, 32])
        tz = pl.load(z, [0, 0], [8, 32])
        a = pl.store(pl.addc(tx, ty, tz), [0, 0], a)
        b = pl.store(pl.subc(tx, ty, tz), [0, 0], b)
        c = pl.store(pl.addsc(tx, 2.5, tz), [0, 0], c)
        d = pl.store(pl.subsc(tx, 2.5, tz), [0, 0], d)
    return a, b, c, d


def test_three_operands():  # 02 O-1403: one rounding per step, left to right
    x, y, z = f32(8, 32, scale=1e6), f32(8, 32), f32(8, 32, scale=1e-3)
    outs = [np.zeros_like(x) for _ in range(4)]
    three_operands(x, y, z, *outs, config=A2)
    half = np.float32(2.5)
    np.testing.assert_array_equal(outs[0], (x + y) + z)
    np.testing.assert_array_equal(outs[1], (x - y) - z)
    np.testing.assert_array_equal(outs[2], (x + half) + z)
    np.testing.assert_array_equal(outs[3], (x - half) - z)


@pl.jit
def column_difference(x: pl.Tensor[[16, 32], F], v: pl.Tensor[[1, 32], F], w: pl.Tensor[[16, 1], F],
                      a: pl.Out[pl.Tensor[[16, 32], F]], b: pl.Out[pl.Tensor[[16, 32], F]]):  # fmt: skip
    with pl.at(level=pl.Level.CORE_GROUP):
        a[:] = pl.col_expand_expdif(x, v)
        b[:] = pl.row_expand_expdif(x, w)
    return a, b


def test_expanded_exponential_of_a_difference():  # 02 section 16
    x, v, w = f32(16, 32), f32(1, 32), f32(16, 1)
    a, b = np.zeros_like(x), np.zeros_like(x)
    column_difference(x, v, w, a, b, config=A2)
    np.testing.assert_allclose(a, np.exp(x - v), rtol=1e-5)
    np.testing.assert_allclose(b, np.exp(x - w), rtol=1e-5)


@pl.jit
def masks(x: pl.Tensor[[8, 40], F], y: pl.Tensor[[8, 40], F], above: pl.Out[pl.Tensor[[8, 5], pl.UINT8]],
          equal: pl.Out[pl.Tensor[[8, 5], pl.UINT8]]):  # fmt: skip
    with pl.at(level=pl.Level.CORE_GROUP):
        tx = pl.load(x, [0, 0], [8, 40])
        ty = pl.load(y, [0, 0], [8, 40])
        above = pl.store(pl.cmps(tx, 0.25, cmp_type=4), [0, 0], above)
        equal = pl.store(pl.cmp(tx, ty, cmp_type=0), [0, 0], equal)
    return above, equal


def test_packed_masks():  # 02 O-1302: bit j mod 8 of byte j div 8
    x, y = np.round(f32(8, 40) * 4) / 4, np.round(f32(8, 40) * 4) / 4
    above, equal = np.zeros((8, 5), np.uint8), np.zeros((8, 5), np.uint8)
    masks(x, y, above, equal, config=A2)
    np.testing.assert_array_equal(above, np.packbits(x > 0.25, axis=1, bitorder="little"))
    np.testing.assert_array_equal(equal, np.packbits(x == y, axis=1, bitorder="little"))


def philox(keys, counters, step, rounds=10):
    """The four words of Philox-4x32 at a 128-bit counter advanced by `step`."""
    m0, m1, w0, w1, low = 0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85, 0xFFFFFFFF
    counter = (sum(c << 32 * i for i, c in enumerate(counters)) + step) % (1 << 128)
    c = [counter >> 32 * i & low for i in range(4)]
    k0, k1 = keys
    for r in range(rounds):
        if r:
            k0, k1 = k0 + w0 & low, k1 + w1 & low
        p0, p1 = m0 * c[0], m1 * c[2]
        c = [p1 >> 32 ^ c[1] ^ k0, p1 & low, p0 >> 32 ^ c[3] ^ k1, p0 & low]
    return c


@pl.jit
def random_words(out: pl.Out[pl.Tensor[[3, 128], pl.UINT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out[:] = pl.random(1, 2, -1, 4, 5, 6, [3, 128])
    return out


def test_random_is_philox():  # 02 O-507
    assert philox((0, 0), (0, 0, 0, 0), 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]  # published
    out = np.zeros((3, 128), np.uint32)
    random_words(out, config=A5)
    want = np.zeros_like(out)
    for row in range(3):
        for lane in range(64):
            words = philox((1, 2), (0xFFFFFFFF, 4, 5, 6), row * 128 // 4 + lane)
            want[row, lane], want[row, 64 + lane] = words[0], words[1]
    np.testing.assert_array_equal(out, want)
    with pytest.raises(Exception, match="random"):
        random_words(out, config=A2)


@pl.jit
def matches(x: pl.Tensor[[8, 64], pl.INT32], where: pl.Out[pl.Tensor[[8, 16], pl.INT32]],
            count: pl.Out[pl.Tensor[[1, 8], pl.INT32]]):  # fmt: skip
    with pl.at(level=pl.Level.CORE_GROUP):
        found, n = pl.tensor.gather_compare(x, 3, cmp_mode="eq", out_cols=16, offset=100)
        where[:] = found
        count[:] = n
    return where, count


def test_positions_of_matches():  # 02 O-1906
    x = RNG.integers(0, 6, (8, 64), np.int32)
    x[2] = 3  # more matches than columns
    where, count = np.zeros((8, 16), np.int32), np.zeros((1, 8), np.int32)
    matches(x, where, count, config=A2)
    np.testing.assert_array_equal(count[0], (x == 3).sum(1))
    for row in range(8):
        found = np.flatnonzero(x[row] == 3)[:16] + 100
        np.testing.assert_array_equal(where[row, : len(found)], found)


@pl.jit
def reserved(x: pl.Tensor[[8, 16], F], y: pl.Out[pl.Tensor[[8, 16], F]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        room: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 1024)
        y = pl.store(pl.neg(pl.load(x, [0, 0], [8, 16])), [0, 0], y)
    return y


def test_reservation_changes_no_value():  # 02 O-107
    x, y = f32(8, 16), np.zeros((8, 16), np.float32)
    reserved(x, y, config=A2)
    np.testing.assert_array_equal(y, -x)


@pl.jit
def ordered_scalars(n: pl.Tensor[[4], pl.INT32], out: pl.Out[pl.Tensor[[8], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.read(n, [0])
        b = pl.read(n, [1])
        if a <= b:
            pl.write(out, [0], 1)
        if a > b:
            pl.write(out, [1], 1)
        if a >= b:
            pl.write(out, [2], 1)
        if a < b or a == 7:
            pl.write(out, [3], 1)
        if a < b and b == 7:
            pl.write(out, [4], 1)
        if not a == b:
            pl.write(out, [5], 1)
    return out


@pytest.mark.parametrize("a,b", [(1, 2), (2, 1), (3, 3), (7, 2), (2, 7), (7, 7)])
def test_comparisons_of_scalars(a, b):  # 01 L-17
    out = np.zeros(8, np.int32)
    ordered_scalars(np.array([a, b, 0, 0], np.int32), out, config=A2)
    want = [a <= b, a > b, a >= b, a < b or a == 7, a < b and b == 7, a != b, 0, 0]
    np.testing.assert_array_equal(out, np.array(want, np.int32))


@pl.jit
def pipes(x: pl.Tensor[[16, 16], F], y: pl.Out[pl.Tensor[[16, 16], F]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [16, 16])
        pl.system.sync_src(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=0)
        pl.system.sync_dst(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=0)
        t = pl.add(t, 1.0)
        pl.system.bar_v()
        pl.system.bar_all()
        y = pl.store(t, [0, 0], y)
        pl.system.fence()
        pl.system.cacheinvalid()
    return y


@pl.jit
def cube_pipes(a: pl.Tensor[[16, 16], F], b: pl.Tensor[[16, 16], F], c: pl.Out[pl.Tensor[[16, 16], F]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        ta = pl.load(a, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
        tb = pl.load(b, [0, 0], [16, 16], target_memory=pl.Mem.Mat)
        pl.system.bar_m()
        c = pl.store(pl.matmul(ta, tb), [0, 0], c)
    return c


def test_ordering_of_pipes_changes_nothing():  # 02 O-2304, O-2305
    x, y = f32(16, 16), np.zeros((16, 16), np.float32)
    pipes(x, y, config=A2)
    np.testing.assert_array_equal(y, x + 1)
    a, b, c = f32(16, 16), f32(16, 16), np.zeros((16, 16), np.float32)
    cube_pipes(a, b, c, config=A2)
    np.testing.assert_allclose(c, a @ b, rtol=1e-4, atol=1e-5)


@pl.jit
def prefetched(x: pl.Tensor[[1, 256], F], y: pl.Out[pl.Tensor[[1, 256], F]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        ctx = pl.prefetch.make_context()
        event = pl.prefetch.async_prefetch(x, ctx)
        session = pl.prefetch.session(ctx)
        pl.prefetch.wait(event, session)
        y = pl.store(pl.mul(pl.load(x, [0, 0], [1, 256]), 3.0), [0, 0], y)
    return y


def test_prefetch_changes_no_value():  # 02 O-2502
    x, y = f32(1, 256), np.zeros((1, 256), np.float32)
    prefetched(x, y, config=A2)
    np.testing.assert_array_equal(y, x * np.float32(3))


@pl.jit
def one_block_per_core(out: pl.Out[pl.Tensor[[128, 8], pl.INT32]], counts: pl.Out[pl.Tensor[[2], pl.INT32]]):
    clusters = pl.system.available_cluster_count()
    lanes = pl.system.available_aiv_count()
    none = pl.system.task_invalid()
    gate = pl.system.task_dummy(deps=[none])
    with pl.at(level=pl.Level.CORE_GROUP, deps=[gate]):
        pl.write(counts, [0], clusters)
        pl.write(counts, [1], lanes)
    for b in pl.spmd(lanes):
        out = pl.store(pl.tile.full([1, 8], dtype=pl.INT32, value=1), [b, 0], out)
    return out, counts


@pytest.mark.parametrize("config,clusters,lanes", [(A2, 24, 48), (A5, 36, 72)])
def test_counts_of_cores(config, clusters, lanes):  # 02 O-2306, O-2307
    out, counts = np.zeros((128, 8), np.int32), np.zeros(2, np.int32)
    one_block_per_core(out, counts, config=config)
    np.testing.assert_array_equal(counts, [clusters, lanes])
    np.testing.assert_array_equal(out.sum(1), [8] * lanes + [0] * (128 - lanes))


@pl.jit
def lanes(x: pl.Tensor[[32, 16], F], y: pl.Out[pl.Tensor[[32, 16], F]], who: pl.Out[pl.Tensor[[2, 8], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="halves"):
        for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            sub = pl.tile.get_subblock_idx()
            t = pl.load(x, [lane * 16, 0], [16, 16])
            y = pl.store(pl.add(t, 1.0), [lane * 16, 0], y)
            pl.write(who, [lane, 0], pl.cast(sub, pl.INT32) + pl.const(5, pl.INT32))
    return y, who


def test_lane_index():  # 02 section 22
    x, y, who = f32(32, 16), np.zeros((32, 16), np.float32), np.zeros((2, 8), np.int32)
    lanes(x, y, who, config=A2)
    np.testing.assert_array_equal(y, x + 1)
    np.testing.assert_array_equal(who[:, 0], [5, 6])
