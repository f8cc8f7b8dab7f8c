# SPDX-License-Identifier: Apache-2.0
"""What bodies mean: names, loops, branches, helpers, regions - run on the simulator and compared with NumPy."""

import numpy as np
import pypto.language as pl
import pytest
from pypto.runtime import RunConfig

RNG = np.random.default_rng(11)
CONFIG = RunConfig(platform="a2a3sim")
R, C = 16, 32
SCALES = [1.5, -2.0, 0.25]


def f32(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


class Settings:
    factor = 3.0
    rows = R
    dims = (R, C)


CFG = Settings()


@pl.jit.inline
def pick(t, kind: int):
    if kind == 0:
        return pl.add(t, 1.0)
    if kind == 1:
        return pl.mul(t, 2.0)
    return pl.neg(t)


@pl.inline
def clamp_low(t, flag: pl.Scalar[pl.INT32]):
    if flag > 3:
        return pl.maximum(t, 0.0)
    if flag > 1:
        u = pl.mul(t, 2.0)
        return pl.maximum(u, -1.0)
    return t


@pl.inline
def tally(counts, at: pl.Scalar[pl.INDEX], by: pl.Scalar[pl.INT32]):
    counts[at] = counts[at] + by


@pl.jit
def constant_arms(x: pl.Tensor[CFG.dims, pl.FP32], y: pl.Out[pl.Tensor[[CFG.rows, C], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        acc = pl.load(x, [0, 0], [R, C])
        for k in pl.unroll(3):
            acc = pick(acc, k)
            acc = pl.mul(acc, SCALES[k])
        for k in pl.unroll(2):
            if k == 1:
                acc = pl.add(acc, CFG.factor**2)
        y = pl.store(acc, [0, 0], y)
    return y


def test_unroll_closures_and_constant_conditions():  # L-14, L-15, L-91, L-101, L-59
    x, y = f32(R, C), np.zeros((R, C), np.float32)
    constant_arms(x, y, config=CONFIG)
    want = -((x + np.float32(1)) * np.float32(1.5) * np.float32(2) * np.float32(-2)) * np.float32(0.25) + np.float32(9)
    np.testing.assert_allclose(y, want, rtol=1e-6)


@pl.jit
def early_return(x: pl.Tensor[[R, C], pl.FP32], f: pl.Tensor[[1], pl.INT32], y: pl.Out[pl.Tensor[[R, C], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        flag = pl.read(f, [0])
        t = clamp_low(pl.load(x, [0, 0], [R, C]), flag)
        y = pl.store(pl.add(t, 1.0), [0, 0], y)
    return y


@pytest.mark.parametrize("flag", [0, 2, 5])
def test_early_return_of_a_helper(flag):  # L-52, L-59
    x, y = f32(R, C), np.zeros((R, C), np.float32)
    early_return(x, np.array([flag], np.int32), y, config=CONFIG)
    want = np.maximum(x, 0) if flag > 3 else np.maximum(2 * x, -1) if flag > 1 else x
    np.testing.assert_allclose(y, want + 1, rtol=1e-6)


@pl.jit.incore
def early_kernel(x: pl.Tensor[[R, C], pl.FP32], flag: pl.Scalar[pl.INT32], y: pl.Out[pl.Tensor[[R, C], pl.FP32]]):
    if flag > 3:
        return pl.store(pl.load(x, [0, 0], [R, C]), [0, 0], y)
    t = pl.exp(pl.load(x, [0, 0], [R, C]))
    if flag == 2:
        t = pl.neg(t)
        return pl.store(t, [0, 0], y)
    return pl.store(pl.add(t, 1.0), [0, 0], y)


@pl.jit
def early_entry(x: pl.Tensor[[R, C], pl.FP32], f: pl.Tensor[[1], pl.INT32], y: pl.Out[pl.Tensor[[R, C], pl.FP32]]):
    y = early_kernel(x, pl.read(f, [0]), y)
    return y


@pytest.mark.parametrize("flag", [0, 2, 5])
def test_early_return_of_a_kernel(flag):  # L-52
    x, y = f32(R, C), np.zeros((R, C), np.float32)
    early_entry(x, np.array([flag], np.int32), y, config=CONFIG)
    want = x if flag > 3 else -np.exp(x) if flag == 2 else np.exp(x) + 1
    np.testing.assert_allclose(y, want, rtol=1e-5)


@pl.jit
def counts(n: pl.Tensor[[1], pl.INT32], out: pl.InOut[pl.Tensor[[8], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        arr = pl.array.create(4, pl.INT32)
        last = pl.cast(0, pl.INT32)
        seen = 0
        for i in pl.range(pl.read(n, [0])):
            if i == 5:
                break
            if i % 2 == 1:
                continue
            tally(arr, i % 4, 10)
            last = pl.cast(i, pl.INT32)
            seen = seen + 1
        copy = arr
        tally(arr, 1, 7)
        pl.write(out, [0], arr[0])
        pl.write(out, [1], arr[1])
        pl.write(out, [2], arr[2])
        pl.write(out, [3], copy[1])
        pl.write(out, [4], last)
        pl.write(out, [5], pl.cast(seen, pl.INT32))
    return out


@pytest.mark.parametrize("n", [0, 3, 9])
def test_arrays_by_reference_and_jumps(n):  # L-59, L-83, L-103, L-132
    out = np.full(8, -1, np.int32)
    counts(np.array([n], np.int32), out, config=CONFIG)
    arr = [0] * 4
    last = seen = 0
    for i in range(n):
        if i == 5:
            break
        if i % 2 == 1:
            continue
        arr[i % 4] += 10
        last = i
        seen += 1
    np.testing.assert_array_equal(out, [arr[0], 7, arr[2], 0, last, seen, -1, -1])


@pl.jit
def carried(
    x: pl.Tensor[[R, C], pl.FP32],
    n: pl.Tensor[[1], pl.INT32],
    y: pl.Out[pl.Tensor[[R, C], pl.FP32]],
    z: pl.Out[pl.Tensor[[1], pl.INT64]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(x, [0, 0], [R, C])
        stop = pl.read(n, [0])
        for i, (a, k) in pl.range(10, init_values=(t, 0)):
            nxt = pl.add(a, 1.0)
            if i == stop:
                break
            done, total = pl.yield_(nxt, k + i)
        y = pl.store(done, [0, 0], y)
        pl.write(z, [0], pl.cast(total, pl.INT64))
    return y, z


@pytest.mark.parametrize("n", [0, 4, 50])
def test_explicit_carry_with_break(n):  # L-97, L-103
    x, y, z = f32(R, C), np.zeros((R, C), np.float32), np.zeros(1, np.int64)
    carried(x, np.array([n], np.int32), y, z, config=CONFIG)
    trips = min(n, 10)
    want = x.copy()
    for _ in range(trips):
        want = want + np.float32(1)
    np.testing.assert_array_equal(y, want)
    assert z[0] == sum(range(trips))


@pl.jit
def halving(n: pl.Tensor[[1], pl.INT32], out: pl.Out[pl.Tensor[[2], pl.INT64]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        start = pl.cast(pl.read(n, [0]), pl.INDEX)
        for v, steps in pl.while_(init_values=(start, 0)):
            pl.cond(v > 1)
            if v % 2 == 0:
                w = pl.yield_(v // 2)
            else:
                w = pl.yield_(3 * v + 1)
            rest, count = pl.yield_(w, steps + 1)
        pl.write(out, [0], pl.cast(rest, pl.INT64))
        pl.write(out, [1], pl.cast(count, pl.INT64))
    return out


@pytest.mark.parametrize("n", [1, 7, 27])
def test_while_with_carries_and_yielding_arms(n):  # L-92, L-102
    out = np.zeros(2, np.int64)
    halving(np.array([n], np.int32), out, config=CONFIG)
    v, steps = n, 0
    while v > 1:
        v, steps = (v // 2 if v % 2 == 0 else 3 * v + 1), steps + 1
    np.testing.assert_array_equal(out, [v, steps])


@pl.jit
def reused_names(
    x: pl.Tensor[[R, C], pl.FP32], y: pl.Out[pl.Tensor[[R, C], pl.FP32]], z: pl.Out[pl.Tensor[[R, 1], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="first"):
        t = pl.mul(x, 2.0)
        y[:] = t
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="second"):
        t = pl.row_sum(y)
        z[:, 0:1] = t
    return y, z


def test_a_name_may_change_its_type_in_a_straight_line():  # L-83, L-111
    x, y, z = f32(R, C), np.zeros((R, C), np.float32), np.zeros((R, 1), np.float32)
    reused_names(x, y, z, config=CONFIG)
    np.testing.assert_array_equal(y, x * 2)
    np.testing.assert_allclose(z[:, 0], (x * 2).sum(1), rtol=1e-4, atol=1e-4)


@pl.jit
def tensor_out_of_region(x: pl.Tensor[[R, C], pl.FP32], y: pl.Out[pl.Tensor[[R, C], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="make"):
        tmp = pl.exp(x)
        keep = pl.create_tensor([R, C], dtype=pl.FP32)
        keep[:] = pl.add(x, 1.0)
    for i in pl.range(2):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="use"):
            tmp = pl.add(tmp, keep)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="last"):
        y[:] = tmp
    return y


def test_tensors_leave_regions_and_are_carried_by_loops():  # L-111, L-186, L-96
    x, y = f32(R, C), np.zeros((R, C), np.float32)
    tensor_out_of_region(x, y, config=CONFIG)
    want = np.exp(x)
    for _ in range(2):
        want = want + (x + np.float32(1))
    np.testing.assert_allclose(y, want, rtol=1e-5)


N = pl.dynamic("N")


@pl.jit.incore
def add_rows(a: pl.Tensor[[N, C], pl.FP32], row: pl.Scalar[pl.INDEX], out: pl.InOut[pl.Tensor[[N, C], pl.FP32]]):
    if row + 4 <= N:
        out = pl.store(pl.add(pl.load(a, [row, 0], [4, C]), 1.0), [row, 0], out)
    return out


@pl.jit
def dynamic_rows(a: pl.Tensor, out: pl.Out[pl.Tensor]):
    rows, cols = a.shape
    for i in pl.range(rows // 4):
        last = add_rows(a, i * 4, out)
    return last


def test_dynamic_rows_flow_from_the_callee():  # L-69, L-74, L-85
    dynamic_rows._cache.clear()
    for rows in (4, 12, 20):
        a, out = f32(rows, C), np.zeros((rows, C), np.float32)
        dynamic_rows(a, out, config=CONFIG)
        np.testing.assert_array_equal(out, a + 1)
    assert len(dynamic_rows._cache) == 1


@pl.jit
def sizes(x: pl.Tensor, y: pl.Out[pl.Tensor], count: int = 2, scale: float = 0.5):
    rows = x.shape[0]
    half = rows // count
    with pl.at(level=pl.Level.CORE_GROUP):
        for k in pl.unroll(count):
            t = pl.load(x, [k * half, 0], [half, x.shape[1]])
            y = pl.store(pl.mul(t, scale * (k + 1)), [k * half, 0], y)
    return y


@pytest.mark.parametrize("count", [2, 4])
def test_baked_scalars_are_literals(count):  # L-68, L-74
    x, y = f32(R, C), np.zeros((R, C), np.float32)
    sizes(x, y, count, config=CONFIG)
    want = np.concatenate([x[k * R // count : (k + 1) * R // count] * np.float32(0.5 * (k + 1)) for k in range(count)])
    np.testing.assert_array_equal(y, want)


@pl.jit
def parallel_handles(
    x: pl.Tensor[[4, C], pl.FP32], y: pl.Out[pl.Tensor[[4, C], pl.FP32]], z: pl.Out[pl.Tensor[[1, C], pl.FP32]]
):
    tids = pl.array.create(4, pl.TASK_ID)
    tmp = pl.create_tensor([4, C], dtype=pl.FP32)
    with pl.manual_scope():
        for i in pl.parallel(4):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="a") as tid:
                tmp[i : i + 1, :] = pl.exp(x[i : i + 1, :])
            tids[i] = tid
        for i in pl.parallel(4):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="b", deps=[tids[i]]) as done:
                y[i : i + 1, :] = pl.add(tmp[i : i + 1, :], 1.0)
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="c", deps=[done]):
            z[:] = pl.add(y[0:1, :], y[3:4, :])
    return y, z


def test_handles_in_arrays_and_of_parallel_loops():  # L-133, L-135, L-166
    x, y, z = f32(4, C), np.zeros((4, C), np.float32), np.zeros((1, C), np.float32)
    parallel_handles(x, y, z, config=CONFIG)
    np.testing.assert_allclose(y, np.exp(x) + 1, rtol=1e-5)
    np.testing.assert_allclose(z[0], y[0] + y[3], rtol=1e-6)
