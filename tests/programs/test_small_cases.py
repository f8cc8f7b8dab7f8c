# SPDX-License-Identifier: Apache-2.0
"""Small cases that real kernels tripped over: inputs with their right answers."""

import numpy as np
import pypto.language as pl
import pytest
from pypto.runtime import RunConfig

SIM = RunConfig(platform="a2a3sim")
RNG = np.random.default_rng(5)


def f32(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


def test_k1_concat_columns():
    @pl.jit
    def k(a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[32, 64], pl.FP32], o: pl.Out[pl.Tensor[[32, 128], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.store(pl.concat(pl.load(a, [0, 0], [32, 64]), pl.load(b, [0, 0], [32, 64])), [0, 0], o)
        return o

    a = np.repeat(np.arange(32, dtype=np.float32)[:, None], 64, 1)
    o = np.zeros((32, 128), np.float32)
    k(a, a + 100, o, config=SIM)
    np.testing.assert_array_equal(o, np.concatenate([a, a + 100], 1))


@pytest.mark.parametrize("m,n", [(8, 8), (24, 24), (16, 8)])
def test_k3_transpose(m, n):
    @pl.jit
    def k(x: pl.Tensor[[m, n], pl.FP32], o: pl.Out[pl.Tensor[[n, m], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.store(pl.transpose(pl.load(x, [0, 0], [m, n]), 0, 1), [0, 0], o)
        return o

    x = np.arange(m * n, dtype=np.float32).reshape(m, n)
    o = np.zeros((n, m), np.float32)
    k(x, o, config=SIM)
    np.testing.assert_array_equal(o, x.T)


def test_k6_rebinding_in_a_loop():
    @pl.jit
    def k(x: pl.Tensor[[4, 32], pl.FP32], o: pl.Out[pl.Tensor[[4, 32], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            cur = pl.load(x, [0, 0], [4, 32])
            for _ in pl.range(4):
                nxt = pl.add(cur, 1.0)
                cur = nxt
            o = pl.store(cur, [0, 0], o)
        return o

    x = np.arange(128, dtype=np.float32).reshape(4, 32)
    o = np.zeros_like(x)
    k(x, o, config=SIM)
    np.testing.assert_array_equal(o, x + 4)


@pytest.mark.parametrize("dt,np_dt", [(pl.INT32, np.int32), (pl.FP16, np.float16)])
def test_k9_scalar_operands_keep_the_dtype(dt, np_dt):
    @pl.jit
    def k(x: pl.Tensor[[8, 32], dt], o: pl.Out[pl.Tensor[[8, 32], dt]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.store(pl.add(pl.load(x, [0, 0], [8, 32]), 5), [0, 0], o)
        return o

    x = (np.arange(256) * 7 - 300).reshape(8, 32).astype(np_dt)
    o = np.zeros_like(x)
    k(x, o, config=SIM)
    np.testing.assert_array_equal(o, x + np_dt(5))


def test_k9_bitwise_and():
    @pl.jit
    def k(x: pl.Tensor[[8, 32], pl.INT32], o: pl.Out[pl.Tensor[[8, 32], pl.INT32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.store(pl.ands(pl.load(x, [0, 0], [8, 32]), 255), [0, 0], o)
        return o

    x = (np.arange(256, dtype=np.int32) * 7919 - 12345).reshape(8, 32)
    o = np.zeros_like(x)
    k(x, o, config=SIM)
    np.testing.assert_array_equal(o, x & 255)


def test_k11_store_at_a_negative_offset():
    with pytest.raises(Exception, match="negative") as caught:

        @pl.jit
        def k(x: pl.Tensor[[16, 32], pl.FP32], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.store(pl.load(x, [0, 0], [8, 32]), [-8, 0], o)
            return o

        k(f32(16, 32), np.zeros((16, 32), np.float32), config=SIM)
    assert "test_small_cases.py:" in str(caught.value)


def test_k11_store_at_a_negative_run_time_offset():
    @pl.jit
    def k(x: pl.Tensor[[16, 32], pl.FP32], at: pl.Tensor[[1], pl.INT32], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        row = pl.read(at, [0])
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.store(pl.load(x, [0, 0], [8, 32]), [row, 0], o)
        return o

    o = np.zeros((16, 32), np.float32)
    with pytest.raises(IndexError) as caught:
        k(f32(16, 32), np.array([-8], np.int32), o, config=SIM)
    assert "test_small_cases.py:" in str(caught.value) and "-8" in str(caught.value)
    np.testing.assert_array_equal(o, 0)
    k(f32(16, 32), np.array([8], np.int32), o, config=SIM)  # the next run works
    assert (o[8:] != 0).all() and (o[:8] == 0).all()


def test_k12_counting_down():
    @pl.jit
    def k(o: pl.Out[pl.Tensor[[1, 16], pl.INT32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            n = 0
            for i in pl.range(8, 0, -1):
                pl.write(o, [0, n], pl.cast(i, pl.INT32))
                n = n + 1
        return o

    o = np.zeros((1, 16), np.int32)
    k(o, config=SIM)
    np.testing.assert_array_equal(o[0], [8, 7, 6, 5, 4, 3, 2, 1] + [0] * 8)


def test_k13_reshape_of_a_partial_tile_keeps_the_sentinel():
    @pl.jit
    def k(x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [8, 16], valid_shape=[5, 16])
            there = pl.reshape(t, [16, 8])
            back = pl.reshape(there, [8, 16])
            o = pl.store(pl.exp(back), [0, 0], o)
        return o

    x = f32(8, 16)
    o = np.full((8, 16), -3.25, np.float32)
    k(x, o, config=SIM)
    np.testing.assert_allclose(o[:5], np.exp(x[:5]), rtol=1e-5)
    np.testing.assert_array_equal(o[5:], -3.25)


def test_k14_reshape_that_is_no_rectangle():
    @pl.jit
    def k(x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[4, 32], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [8, 16], valid_shape=[5, 16])
            o = pl.store(pl.reshape(t, [4, 32]), [0, 0], o)
        return o

    with pytest.raises(Exception, match="reshape"):
        k(f32(8, 16), np.zeros((4, 32), np.float32), config=SIM)


def test_k15_row_max_of_negative_data_ignores_padding():
    @pl.jit
    def k(x: pl.Tensor[[8, 64], pl.FP32], o: pl.Out[pl.Tensor[[8, 1], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [8, 64], valid_shape=[8, 47])
            tmp = pl.create_tile([8, 64], dtype=pl.FP32)
            o = pl.store(pl.row_max(t, tmp), [0, 0], o)
        return o

    x = -np.abs(f32(8, 64)) - 1
    x[:, 47:] = 5.0  # stale padding
    o = np.zeros((8, 1), np.float32)
    k(x, o, config=SIM)
    np.testing.assert_array_equal(o, x[:, :47].max(1, keepdims=True))


def test_k17_assemble_a_block_of_rank_three():
    @pl.jit
    def k(x: pl.Tensor[[1, 8, 16], pl.FP32], o: pl.Out[pl.Tensor[[4, 8, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.assemble(o, pl.mul(x, 2.0), [2, 0, 0])
        return o

    x = f32(1, 8, 16)
    o = np.full((4, 8, 16), 9.0, np.float32)
    k(x, o, config=SIM)
    want = np.full((32, 16), 9.0, np.float32)
    want[16:24] = 2 * x[0]
    np.testing.assert_array_equal(o.reshape(32, 16), want)


def test_k20_transposed_right_operand():
    @pl.jit
    def k(a: pl.Tensor[[16, 16], pl.FP32], b: pl.Tensor[[16, 16], pl.FP32], o: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            bt = pl.tile.transpose_view(pl.load(b, [0, 0], [16, 16]))
            o = pl.store(pl.matmul(pl.load(a, [0, 0], [16, 16]), bt), [0, 0], o)
        return o

    a, b = np.zeros((16, 16), np.float32), np.zeros((16, 16), np.float32)
    a[:2, :2], b[:2, :2] = [[1, 2], [3, 4]], [[0, 1], [0, 0]]
    o = np.ones_like(a)
    k(a, b, o, config=SIM)
    want = np.zeros_like(a)
    want[:2, 0] = [2, 4]
    np.testing.assert_array_equal(o, want)


def test_k22_bf16_rounds_to_nearest_even():
    ml_dtypes = pytest.importorskip("ml_dtypes")

    @pl.jit
    def k(x: pl.Tensor[[1, 16], pl.FP32], o: pl.Out[pl.Tensor[[1, 16], pl.BF16]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o = pl.store(pl.cast(pl.load(x, [0, 0], [1, 16]), pl.BF16), [0, 0], o)
        return o

    x = np.linspace(1, 2, 16, dtype=np.float32)[None]
    x[0, :2] = [1.01953125, 1.02734375]
    o = np.zeros((1, 16), ml_dtypes.bfloat16)
    k(x, o, config=SIM)
    assert o[0, :2].astype(np.float32).tolist() == [1.015625, 1.03125]
    np.testing.assert_array_equal(o, x.astype(ml_dtypes.bfloat16))


def test_k24_row_sum_order():
    @pl.jit
    def k(x: pl.Tensor[[8, 4], pl.FP32], o: pl.Out[pl.Tensor[[8, 1], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o[:] = pl.row_sum(x)
        return o

    x = np.tile(np.array([1e8, 1, -1e8, 0], np.float32), (8, 1)) * (1 + np.arange(8, dtype=np.float32))[:, None]
    o = np.zeros((8, 1), np.float32)
    k(x, o, config=SIM)
    np.testing.assert_array_equal(o[:, 0], x[:, 0] + x[:, 2] + (x[:, 1] + x[:, 3]))
    assert o[0, 0] == 1.0


def test_k26_scalar_writes_in_a_later_kernel():
    @pl.jit
    def k(o: pl.Out[pl.Tensor[[1, 32], pl.INT32]]):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="fill"):
            o = pl.store(pl.tile.full([1, 32], dtype=pl.INT32, value=-1), [0, 0], o)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="count"):
            for i in pl.range(4):
                pl.write(o, [0, i], pl.cast(i, pl.INT32))
        return o

    o = np.zeros((1, 32), np.int32)
    k(o, config=SIM)
    np.testing.assert_array_equal(o[0], [0, 1, 2, 3] + [-1] * 28)


def test_k29_row_views_of_one_l1_tile():
    @pl.jit
    def k(x: pl.Tensor[[4, 64], pl.FP32], o: pl.Out[pl.Tensor[[4, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            l1 = pl.create_l1([4, 64], dtype=pl.FP32)
            for r in pl.range(4):
                l1 = pl.gather_row(l1, x, [r, 0], [3 - r, 0], [1, 64])
            o[:] = pl.mul(l1, 1.0)
        return o

    x = f32(4, 64)
    o = np.zeros_like(x)
    k(x, o, config=SIM)
    np.testing.assert_array_equal(o, x[::-1])


def test_g1_write_after_read_in_a_loop():
    @pl.jit
    def k(log: pl.Out[pl.Tensor[[8, 32], pl.INT32]]):
        buf = pl.create_tensor([1, 32], dtype=pl.INT32)
        for i in pl.range(8):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="produce"):
                t = pl.tile.full([1, 32], dtype=pl.INT32, value=0)
                buf = pl.store(pl.add(t, pl.cast(i, pl.INT32)), [0, 0], buf)
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="consume"):
                log = pl.store(pl.load(buf, [0, 0], [1, 32]), [i, 0], log)
        return log

    log = np.zeros((8, 32), np.int32)
    k(log, config=SIM)
    np.testing.assert_array_equal(log, np.repeat(np.arange(8, dtype=np.int32)[:, None], 32, 1))


@pytest.mark.nightly
def test_g3_half_a_million_tasks():
    @pl.jit
    def k(o: pl.Out[pl.Tensor[[1, 32], pl.FP32]]):
        for _ in pl.range(525312):
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.store(pl.add(pl.load(o, [0, 0], [1, 32]), 1.0), [0, 0], o)
        return o

    o = np.zeros((1, 32), np.float32)
    k(o, config=SIM)
    np.testing.assert_array_equal(o, 525312)


def test_g3_many_tasks():
    @pl.jit
    def k(o: pl.Out[pl.Tensor[[1, 32], pl.FP32]]):
        for _ in pl.range(20000):
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.store(pl.add(pl.load(o, [0, 0], [1, 32]), 1.0), [0, 0], o)
        return o

    o = np.zeros((1, 32), np.float32)
    k(o, config=SIM)
    np.testing.assert_array_equal(o, 20000)


def test_g5_four_writers_of_column_bands():
    @pl.jit
    def k(x: pl.Tensor[[16, 128], pl.FP32], o: pl.Out[pl.Tensor[[16, 128], pl.FP32]]):
        for b in pl.parallel(4):
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.store(pl.neg(pl.load(x, [0, b * 32], [16, 32])), [0, b * 32], o)
        return o

    x = f32(16, 128)
    o = np.zeros_like(x)
    k(x, o, config=SIM)
    np.testing.assert_array_equal(o, -x)


# ---------------------------------------------------------------- 02 section 28


def test_b37_a_slice_is_an_address():
    @pl.jit
    def k(
        x: pl.InOut[pl.Tensor[[8, 32], pl.FP32]],
        a: pl.Out[pl.Tensor[[4, 32], pl.FP32]],
        b: pl.Out[pl.Tensor[[4, 32], pl.FP32]],
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            s = x[0:4, :]
            x = pl.store(pl.tile.full([8, 32], dtype=pl.FP32, value=7.0), [0, 0], x)
            a[:] = pl.add(s, 0.0)  # a value: the bytes as of the slice statement
            b = pl.store(pl.load(s, [0, 0], [4, 32]), [0, 0], b)  # a place: the bytes now
        return x, a, b

    x = f32(8, 32)
    old = x.copy()
    a, b = np.zeros((4, 32), np.float32), np.zeros((4, 32), np.float32)
    k(x, a, b, config=SIM)
    np.testing.assert_array_equal(a, old[:4])
    np.testing.assert_array_equal(b, 7.0)
    np.testing.assert_array_equal(x, 7.0)


def test_b38_on_chip_tensors_are_places():
    @pl.jit
    def k(x: pl.Tensor[[8, 32], pl.FP32], o: pl.Out[pl.Tensor[[8, 32], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            buf = pl.mul(x, 1.0)
            b2 = buf
            pl.assemble(buf, pl.full([2, 32], dtype=pl.FP32, value=3.0), [0, 0])
            buf[4:6, :] = pl.full([2, 32], dtype=pl.FP32, value=4.0)
            o[:] = pl.add(b2, 0.0)
        return o

    x = f32(8, 32)
    o = np.zeros_like(x)
    k(x, o, config=SIM)
    want = x.copy()
    want[0:2], want[4:6] = 3.0, 4.0
    np.testing.assert_array_equal(o, want)


def test_b39_a_plain_assignment_copies_a_tile():
    @pl.jit
    def k(
        x: pl.Tensor[[8, 32], pl.FP32], o: pl.Out[pl.Tensor[[8, 32], pl.FP32]], p: pl.Out[pl.Tensor[[8, 32], pl.FP32]]
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.load(x, [0, 0], [8, 32])
            b = a
            pl.write(b, [2, 3], 42.0)
            o = pl.store(a, [0, 0], o)
            p = pl.store(b, [0, 0], p)
        return o, p

    x = f32(8, 32)
    o, p = np.zeros_like(x), np.zeros_like(x)
    k(x, o, p, config=SIM)
    want = x.copy()
    want[2, 3] = 42
    np.testing.assert_array_equal(o, x)
    np.testing.assert_array_equal(p, want)


def test_b42_long_chains_run_and_oversized_reductions_do_not():
    @pl.jit
    def chain(x: pl.Tensor[[4096, 4096], pl.FP32], o: pl.Out[pl.Tensor[[4096, 4096], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o[:] = pl.exp(pl.mul(pl.add(x, 1.0), 0.5))
        return o

    @pl.jit
    def both(x: pl.Tensor[[4096, 4096], pl.FP32], o: pl.Out[pl.Tensor[[4096, 4096], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.exp(x)
            r = pl.row_expand_sub(t, pl.row_max(t))
            o[:] = pl.col_expand_mul(r, pl.col_max(t))
        return o

    x = f32(4096, 4096)
    o = np.zeros_like(x)
    chain(x, o, config=SIM)
    np.testing.assert_allclose(o[::97], np.exp((x[::97] + 1) * np.float32(0.5)), rtol=1e-5)
    with pytest.raises(ValueError, match=r"Vec buffer usage \(\d+ bytes\) exceeds platform limit \(188416 bytes\)"):
        both(x, o, config=SIM)


def test_b16_rounding_modes():
    modes = {"none": 2, "rint": 2, "round": 3, "floor": 2, "ceil": 3, "trunc": 2, "odd": 3}
    x = np.full((1, 8), 2.5, np.float32) + np.arange(8, dtype=np.float32)
    for mode, want in modes.items():

        @pl.jit
        def k(x: pl.Tensor[[1, 8], pl.FP32], o: pl.Out[pl.Tensor[[1, 8], pl.INT32]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                o = pl.store(pl.cast(pl.load(x, [0, 0], [1, 8]), pl.INT32, mode=mode), [0, 0], o)
            return o

        o = np.zeros((1, 8), np.int32)
        k(x, o, config=SIM)
        assert o[0, 0] == want, mode


def test_b3_a_loop_variable_as_operand_needs_a_cast():
    @pl.jit
    def k(x: pl.Tensor[[8, 32], pl.FP32], o: pl.Out[pl.Tensor[[8, 32], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [8, 32])
            for i in pl.range(4):
                t = pl.add(t, i)
            o = pl.store(t, [0, 0], o)
        return o

    with pytest.raises(Exception, match=r"pl\.cast\(<value>, pl\.INT32\)"):
        k(f32(8, 32), np.zeros((8, 32), np.float32), config=SIM)


def test_output_rebound_and_never_written():  # 04 CMP-11
    from pypto.backend.pto_backend import PartialCodegenError

    @pl.jit
    def k(x: pl.Tensor[[8, 32], pl.FP32], r: pl.Out[pl.Tensor[[8, 32], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            r = pl.mul(x, 2.0)
            r = pl.add(x, 1.0)
        return r

    with pytest.raises(PartialCodegenError, match="'r'"):
        k(f32(8, 32), np.zeros((8, 32), np.float32), config=SIM)
