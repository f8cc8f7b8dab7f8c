# SPDX-License-Identifier: Apache-2.0
"""Programs that the random generator found, made small. Each once computed something else or was refused."""

from __future__ import annotations

import re

import numpy as np
import pypto.language as pl
import pytest
from pypto.language.parser.diagnostics import ParserTypeError
from pypto.runtime import RunConfig

SIM = RunConfig(platform="a2a3sim")


def run(k, *scalars, rows=8, cols=16):
    x = np.arange(rows * cols, dtype=np.float32).reshape(rows, cols)
    o = np.zeros_like(x)
    k(x, *scalars, o, config=SIM)
    return x, o


def test_address_of_a_rebound_name_keeps_its_bytes():  # 01 L-87: in a region
    @pl.jit
    def k(x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.fillpad(x, pad_value=pl.PadValue.max)
            t = pl.add(x, 0.0)
            v = pl.slice(t, [4, 16], [0, 0])
            pl.assemble(t, pl.slice(x, [3, 8], [5, 0]), [0, 8])
            o = pl.assemble(o, v, [0, 0])
            o[4:8, :] = t[0:4, :]
        return o

    x, o = run(k)
    np.testing.assert_array_equal(o[:4], x[:4])
    np.testing.assert_array_equal(o[4:7, 8:16], x[5:8, 0:8])


@pytest.mark.parametrize("through_merged", [True, False])
def test_address_and_a_name_that_is_one_of_two_storages(through_merged):  # 01 L-85, L-87
    @pl.jit
    def k(x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.add(x, 0.0)
            b = pl.add(x, 1.0)
            v = pl.slice(a, [4, 16], [0, 0])
            if pl.read(x, [0, 0]) == 0.0:
                m = a
            else:
                m = b
            w = pl.slice(m, [4, 16], [0, 0])
            if through_merged:
                pl.assemble(m, pl.slice(x, [3, 8], [5, 0]), [0, 8])
            else:
                pl.assemble(a, pl.slice(x, [3, 8], [5, 0]), [0, 8])
            o = pl.assemble(o, v, [0, 0])
            o = pl.assemble(o, w, [4, 0])
        return o

    x, o = run(k)
    np.testing.assert_array_equal(o[:4], x[:4])
    np.testing.assert_array_equal(o[4:], x[:4])


def test_address_cut_from_an_address_is_a_part_of_its_value():  # 01 L-87
    @pl.jit
    def k(x: pl.InOut[pl.Tensor[[8, 16], pl.FP32]], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
        outer = pl.reshape(x, [4, 32])
        with pl.at(level=pl.Level.CORE_GROUP):
            w = outer[0:1, :]
            outer[0:1, :] = pl.add(w, 10.0)
            part = w[0:1, 0:16]
            o[0:1, :] = part
            o[1:2, :] = pl.add(w[0:1, 0:16], 0.0)
            o[2:6, 0:8] = pl.reshape(w, [4, 8])
            o[6:7, :] = pl.slice(pl.reshape(w, [2, 16]), [1, 16], [1, 0])
            part[0:1, 0:8] = pl.full([1, 8], dtype=pl.FP32, value=-1.0)
        with pl.at(level=pl.Level.CORE_GROUP):
            o[7:8, :] = x[0:1, :]
        return o

    x = np.arange(128, dtype=np.float32).reshape(8, 16)
    before = x.copy()
    o = np.zeros_like(x)
    k(x, o, config=SIM)
    np.testing.assert_array_equal(o[0], before[0])
    np.testing.assert_array_equal(o[1], before[0])
    np.testing.assert_array_equal(o[2:6, 0:8], before[0:2].reshape(4, 8))
    np.testing.assert_array_equal(o[6], before[1])
    np.testing.assert_array_equal(o[7], [-1] * 8 + list(before[0, 8:] + 10))


def test_carried_tensor_replaced_by_an_on_chip_value():  # 01 L-97: rebound without a yield
    @pl.jit
    def k(x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for i, (c,) in pl.range(3, init_values=(x,)):
                c = pl.add(c, 1.0)
                c[0:1, :] = pl.full([1, 16], dtype=pl.FP32, value=-1.0)
            o[:] = c
        return o

    x, o = run(k)
    np.testing.assert_array_equal(o[1:], x[1:] + 3)
    np.testing.assert_array_equal(o[0], np.full(16, -1.0))
    assert x[0, 1] == 1  # the parameter itself is not written


@pytest.mark.parametrize("form", ["yielded", "rebound", "merged"])
def test_write_into_a_value_here_and_an_address_there(form):  # 01 L-87, L-97
    """The write would reach the tensor on one path only: refused where it stands, not lost."""
    if form == "yielded":

        @pl.jit
        def k(x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.add(x, 1.0)
                for i, (c,) in pl.range(3, init_values=(t,)):
                    pl.write(c, [3, i], -2.0)
                    r = pl.yield_(pl.reshape(x[0:8, :], [8, 16]))
                o[:] = r
            return o
    elif form == "rebound":

        @pl.jit
        def k(x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.add(x, 1.0)
                for i in pl.range(3):
                    pl.write(t, [3, i], -2.0)
                    t = x[0:8, :]
                o[:] = t
            return o
    else:

        @pl.jit
        def k(x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = x[0:8, :]
                if pl.read(x, [0, 0]) > 0.0:
                    t = pl.add(x, 1.0)
                pl.write(t, [3, 2], -2.0)
                o[:] = t
            return o

    with pytest.raises(
        ParserTypeError, match="an address into 'x' on another: the write would not reach 'x'"
    ) as caught:
        run(k)
    assert re.search(r"pl\.write\(.*\n +\| +\^", str(caught.value))  # the line that writes


def test_value_that_every_trip_makes_may_be_written():  # 01 L-97: the initial address is read in the first trip
    @pl.jit
    def k(x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for i, (c,) in pl.range(3, init_values=(x[0:8, :],)):
                d = pl.add(c, 1.0)
                pl.write(d, [0, i], -1.0)
                r = pl.yield_(d)
            pl.write(r, [1, 2], -5.0)
            o[:] = r
        return o

    x, o = run(k)
    want = x + 3
    want[0, :3] = [1, 0, -1]
    want[1, 2] = -5
    np.testing.assert_array_equal(o, want)


def test_carried_tensor_replaced_and_yielded():  # 01 L-97
    @pl.jit
    def k(x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            for i, (c,) in pl.range(3, init_values=(x[0:8, :],)):
                d = pl.add(c, 1.0)
                r = pl.yield_(d)
            o[:] = r
        return o

    x, o = run(k)
    np.testing.assert_array_equal(o, x + 3)


@pytest.mark.parametrize("level", ["tile", "tensor"])
def test_carried_value_replaced_before_a_jump(level):  # 01 L-97, L-103
    if level == "tensor":

        @pl.jit
        def k(x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                for i, (c, n) in pl.range(5, init_values=(x, pl.const(0, pl.INT32))):
                    n = n + pl.const(1, pl.INT32)
                    if i == 3:
                        c = pl.add(c, 100.0)
                        break
                    if i == 1:
                        continue
                    c = pl.add(c, 1.0)
                o[:] = pl.add(c, pl.cast(n, pl.FP32))
            return o
    else:

        @pl.jit
        def k(x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                t = pl.load(x, [0, 0], [8, 16])
                for i, (c, n) in pl.range(5, init_values=(t, pl.const(0, pl.INT32))):
                    n = n + pl.const(1, pl.INT32)
                    if i == 3:
                        c = pl.add(c, 100.0)
                        break
                    if i == 1:
                        continue
                    c = pl.add(c, 1.0)
                o = pl.store(pl.add(c, pl.cast(n, pl.FP32)), [0, 0], o)
            return o

    x, o = run(k)
    np.testing.assert_array_equal(o, x + 2 + 100 + 4)


def test_carried_scalar_of_another_width_is_refused():  # 01 L-83, L-98
    @pl.jit
    def k(x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [8, 16])
            for i, (c, n) in pl.range(3, init_values=(t, pl.const(1, pl.INT32))):
                c = pl.add(c, 1.0)
                n = n + 1
            o = pl.store(c, [n, 0], o)
        return o

    with pytest.raises(ParserTypeError, match="Cannot reassign 'n' with a different type"):
        run(k)


@pytest.mark.parametrize("flag", [True, False])
def test_yield_in_a_branch_decided_at_compile_time(flag):  # 01 L-91, L-92
    @pl.jit
    def k(x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [8, 16])
            if flag:
                r, s = pl.yield_(pl.add(t, 1.0), t)
            else:
                r, s = pl.yield_(pl.mul(t, 2.0), pl.neg(t))
            o = pl.store(pl.sub(r, s), [0, 0], o)
        return o

    x, o = run(k)
    np.testing.assert_array_equal(o, np.ones_like(x) if flag else 3 * x)


def test_view_of_another_dtype_made_in_a_loop():  # 01 L-85
    @pl.jit
    def k(x: pl.Tensor[[8, 16], pl.FP32], n: pl.Scalar[pl.INT32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.add(x, 1.0)
            for i in pl.range(n):
                v = pl.reinterpret_view(t, pl.INT32)
                t = pl.reinterpret_view(pl.add(v, 1), pl.FP32)
            o[:] = t
        return o

    x, o = run(k, 0)
    np.testing.assert_array_equal(o, x + 1)
    x, o = run(k, 2)
    np.testing.assert_array_equal(o.view(np.int32), (x + 1).view(np.int32) + 2)


@pl.inline
def same(ha, hb):
    return ha


def test_helper_that_returns_its_argument_hands_over_that_tile():  # 01 L-59, L-83
    @pl.jit
    def k(x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [8, 16])
            u = same(t, t)
            pl.write(u, [0, 0], 50.0)
            o = pl.store(t, [0, 0], o)
        return o

    x, o = run(k)
    assert o[0, 0] == 50
    np.testing.assert_array_equal(o.reshape(-1)[1:], x.reshape(-1)[1:])


def test_second_name_of_an_address_is_the_same_value():  # 01 L-87, L-185
    @pl.jit
    def k(x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.add(x, 0.0)
            v = pl.reshape(t, [16, 8])
            b = v
            t[:] = pl.mul(x, 3.0)
            r = pl.reshape(pl.add(x, 1.0), [16, 8])
            for i, (c,) in pl.range(2, init_values=(r,)):
                pl.write(c, [0, 0], 50.0)
            o[0:4, :] = pl.reshape(pl.add(b, 0.0), [8, 16])[0:4, :]
            o[4:8, 0:8] = pl.add(r, 0.0)[0:4, :]
        return o

    x, o = run(k)
    np.testing.assert_array_equal(o[0:4], x[0:4])
    assert o[4, 0] == 50 and o[4, 1] == x[0, 1] + 1


@pytest.mark.parametrize("flag", [True, False])
def test_branch_decided_at_compile_time_inside_a_carrying_loop(flag):  # 01 L-91, L-92, L-97
    @pl.jit
    def k(x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            t = pl.load(x, [0, 0], [8, 16])
            for i, (c, n) in pl.range(3, init_values=(t, pl.const(0, pl.INT32))):
                if flag:
                    m = pl.yield_(pl.add(c, 1.0))
                else:
                    m = pl.yield_(pl.add(c, 2.0))
                r, rn = pl.yield_(m, n + pl.const(1, pl.INT32))
            o = pl.store(r, [0, 0], o)
        return o

    x, o = run(k)
    np.testing.assert_array_equal(o, x + (3 if flag else 6))
