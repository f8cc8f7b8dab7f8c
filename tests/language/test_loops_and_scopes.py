# SPDX-License-Identifier: Apache-2.0
"""Constants in loops, the dtype of an array, and how long a task handle lives."""

from pathlib import Path

import numpy as np
import pypto.language as pl
import pytest
from pypto.language.parser import diagnostics as d
from pypto.runtime import RunConfig

CONFIG = RunConfig(platform="a2a3sim")
RNG = np.random.default_rng(11)
T = pl.Tensor[[16, 64], pl.FP32]


def f32(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


@pl.jit
def shape_in_loops(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    rows, cols = x.shape
    block = rows // 4
    for i in pl.range(4):
        with pl.at(level=pl.Level.CORE_GROUP):
            for j in pl.range(2):
                half = cols // 2
                t = pl.load(x, [i * block, j * half], [block, half])
                if i > 1:
                    t = pl.add(t, 1.0)
                y = pl.store(t, [i * block, j * half], y)
    return y


@pl.jit.incore
def block_rows(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    m, n = x.shape[0], x.shape[1]
    step = 4
    i = pl.const(0, pl.INDEX)
    while i < m:
        t = pl.load(x, [i, 0], [step, n])
        acc = pl.mul(t, 2.0)
        for _ in pl.range(3):
            acc = pl.add(acc, pl.tile.full([step, n], pl.FP32, 1.0))
        y = pl.store(acc, [i, 0], y)
        i = i + step
    return y


@pl.jit
def shape_in_kernel_loops(x: T, y: pl.Out[T]):
    y = block_rows(x, y)
    return y


def test_constants_stay_constants_in_loops_that_are_read_again():  # L-15, L-74, L-96
    x = f32(16, 64)
    y = np.zeros_like(x)
    shape_in_loops(x, y, config=CONFIG)
    want = x.copy()
    want[8:] += 1
    np.testing.assert_array_equal(y, want)
    y = np.zeros_like(x)
    shape_in_kernel_loops(x, y, config=CONFIG)
    np.testing.assert_array_equal(y, x * 2 + 1 + 1 + 1)


@pl.jit
def replaced_constant(x: T, y: pl.Out[T]):
    width = 16
    with pl.at(level=pl.Level.CORE_GROUP):
        for i in pl.range(4):
            t = pl.load(x, [0, i * 16], [16, 16], valid_shape=[16, width])
            y = pl.store(t, [0, i * 16], y)
            width = width - 4
    return y


def test_a_constant_that_the_loop_replaces_is_carried():  # L-96
    x = f32(16, 64)
    y = np.full_like(x, 7)
    replaced_constant(x, y, config=CONFIG)
    want = np.full_like(x, 7)
    for i in range(4):
        want[:, i * 16 : i * 16 + 16 - 4 * i] = x[:, i * 16 : i * 16 + 16 - 4 * i]
    np.testing.assert_array_equal(y, want)


@pl.jit
def bytes_of_argument(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    width = 128 // x.dtype.get_byte()
    dt = x.dtype
    half = width // (dt.get_byte() // pl.FP16.get_byte())
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:, 0:half] = pl.add(x[:, 0:half], pl.full([16, half], dtype=x.dtype, value=1))
    return y


@pytest.mark.parametrize("dtype,columns", [(np.float32, 16), (np.float16, 64)])
def test_the_dtype_of_an_array_tells_its_bytes(dtype, columns):  # L-8, L-74
    x = f32(16, 64).astype(dtype)
    y = np.zeros_like(x)
    bytes_of_argument(x, y, config=CONFIG)
    want = np.zeros_like(x)
    want[:, :columns] = x[:, :columns] + dtype(1)
    np.testing.assert_array_equal(y, want)


@pl.jit
def known_extents(x: pl.Tensor, y: pl.Out[pl.Tensor]):
    rows, cols = x.shape
    width = min(cols, 32)
    scale = 1.0 / cols
    step = max(2, rows // 4, 3) if rows > 8 else rows
    with pl.at(level=pl.Level.CORE_GROUP):
        for c in pl.range(0, cols, width):
            for r in pl.range(0, rows, step):
                t = pl.load(x, [r, c], [min(rows, step), width])
                y = pl.store(pl.mul(t, scale * float(step)), [r, c], y)
    return y


@pytest.mark.parametrize("rows,cols,step", [(16, 64, 4), (6, 16, 6)])
def test_known_extents_fold_in_builtins_and_beside_floats(rows, cols, step):  # L-15, L-18, L-20, L-74
    x = f32(rows, cols)
    y = np.zeros_like(x)
    known_extents(x, y, config=CONFIG)
    np.testing.assert_array_equal(y, x * np.float32(step / cols))


@pl.jit
def named_after_scope(x: T, y: pl.Out[T]):
    with pl.manual_scope():
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="first") as tid:
            y[:] = pl.add(x, 1.0)
    with pl.at(level=pl.Level.CORE_GROUP, deps=[tid]):
        y[:] = pl.add(y, 1.0)
    return y


@pl.jit
def stored_in_array(x: T, y: pl.Out[T]):
    tids = pl.array.create(2, pl.TASK_ID)
    with pl.manual_scope():
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="first") as tid:
            y[:] = pl.add(x, 1.0)
        tids[0] = tid
    with pl.at(level=pl.Level.CORE_GROUP, deps=[tids]):
        y[:] = pl.add(y, 1.0)
    return y


@pl.jit
def carried_to_next_scope(x: T, y: pl.Out[T]):
    last = None
    for _ in pl.range(3):
        with pl.scope(mode=pl.ScopeMode.MANUAL):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="step", deps=[last]) as tid:
                y[:] = pl.add(x, 1.0)
            last = tid
    return y


@pl.jit
def barrier_of_scope(x: T, y: pl.Out[T]):
    with pl.manual_scope():
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="first") as tid:
            y[:] = pl.add(x, 1.0)
        done = pl.system.task_dummy(deps=[tid])
    after = pl.system.task_dummy(deps=[done])
    with pl.at(level=pl.Level.CORE_GROUP, deps=[after]):
        y[:] = pl.add(y, 1.0)
    return y


LINES = Path(__file__).read_text().splitlines()


def line_of(kernel, text):
    start = next(i for i, line in enumerate(LINES) if line.startswith(f"def {kernel.__name__}("))
    return next(i for i in range(start, len(LINES)) if text in LINES[i]) + 1


def test_the_handle_of_an_ended_manual_scope_is_rejected():  # L-166, L-178
    x = f32(16, 64)
    with pytest.raises(d.ScopeIsolationError, match="'tid' is the handle of a task of the manual scope") as e:
        named_after_scope.compile(x, np.zeros_like(x))
    assert e.value.span["line"] == line_of(named_after_scope, "deps=[tid]")
    for kernel, where, what in [
        (stored_in_array, "deps=[tids]", "'first', submission 0"),
        (carried_to_next_scope, "deps=[last]", "'step', submission 0"),
        (barrier_of_scope, "deps=[done]", "task_dummy, submission 1"),
    ]:
        with pytest.raises(RuntimeError, match="manual scope that has ended") as e:
            kernel(x, np.zeros_like(x), config=CONFIG)
        assert what in str(e.value)
        assert f"{Path(__file__).name}:{line_of(kernel, where)}:" in str(e.value)


@pl.jit
def handles_of_open_scopes(x: T, y: pl.Out[T]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="before") as before:
        y[:] = pl.add(x, 1.0)
    with pl.manual_scope():
        last = before
        for i in pl.range(3):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="inside", deps=[last]) as tid:
                y[:] = pl.mul(y, 2.0)
            last = tid
        done = pl.system.task_dummy(deps=[last, before])
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="end", deps=[done]):
            y[:] = pl.add(y, 1.0)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="between", deps=[before]) as between:
        y[:] = pl.mul(y, 3.0)
    with pl.manual_scope():
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="again", deps=[before, between]):
            y[:] = pl.add(y, 1.0)
    return y


def test_handles_from_outside_serve_inside_and_after_manual_scopes():  # L-134, L-166
    x = f32(16, 64)
    y = np.zeros_like(x)
    handles_of_open_scopes(x, y, config=CONFIG)
    np.testing.assert_allclose(y, ((x + 1) * 8 + 1) * 3 + 1, rtol=1e-6)


@pl.jit(auto_scope=False)
def handle_of_auto_scopes(x: T, y: pl.Out[T]):
    last = None
    for _ in pl.range(3):
        with pl.scope():
            with pl.at(level=pl.Level.CORE_GROUP, deps=[last]) as tid:
                y[:] = pl.add(x, 1.0)
            last = tid
    with pl.at(level=pl.Level.CORE_GROUP, deps=[last]):
        y[:] = pl.add(y, 1.0)
    return y


def test_auto_scopes_leave_handles_alone():  # L-57, L-135, L-165: the compiler places such scopes unasked
    x = f32(16, 64)
    y = np.zeros_like(x)
    handle_of_auto_scopes(x, y, config=CONFIG)
    np.testing.assert_allclose(y, x + 2, rtol=1e-6)


def test_lists_are_no_values_of_a_loop():  # L-14, L-83
    @pl.jit
    def k(x: T, y: pl.Out[T]):
        place = [0, 0]
        with pl.at(level=pl.Level.CORE_GROUP):
            for _ in pl.range(4):
                y = pl.store(pl.load(x, place, [4, 64]), place, y)
                place = [place[0] + 4, 0]
        return y

    with pytest.raises(d.ParserTypeError, match="Cannot reassign 'place' here: lists and tuples are known while") as e:
        k(f32(16, 64), f32(16, 64), config=CONFIG)
    assert "names of their own" in str(e.value.hint)


def test_an_omitted_output_needs_a_shape():  # L-55, L-73
    @pl.jit
    def k(x: T, y: pl.Out[T]):
        z, _ = pl.submit(block_rows, x)
        return y

    with pytest.raises(ValueError, match="parameter 'y' of 'block_rows' .the argument is left out"):
        k(f32(16, 64), f32(16, 64), config=CONFIG)
