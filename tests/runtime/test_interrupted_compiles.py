# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C while a program is read, compiled, printed, compared, saved or loaded, wherever it comes.

The core polls inside every walk over a program. A hook that is called at each poll takes the place of the signal:
it counts polls, or raises at one of them. So every stage is hit, at many places, whatever the machine's speed.
"""

import linecache

import numpy as np
import pypto.language as pl
import pytest
from pypto import _core, ir
from pypto.runtime import RunConfig

CONFIG = RunConfig(platform="a2a3sim")
POINTS = 24

# 120 statements of each kind: straight-line tiles, tensors in regions, loops, branches, products, a task.
SOURCE = (
    """
import pypto.language as pl

TABLE = [float(k) for k in range(40)]

@pl.jit.incore
def twice(x: pl.Tensor[[16, 16], pl.FP32], y: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
    y = pl.store(pl.mul(pl.load(x, [0, 0], [16, 16]), 2.0), [0, 0], y)
    return y

@pl.jit.inline
def inline(t):
    u = pl.add(t, 1.0)
    return pl.sub(u, 1.0)

@pl.jit
def kernel(x: pl.Tensor[[16, 16], pl.FP32], out: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
    a = pl.create_tensor([16, 16], dtype=pl.FP32)
    b = pl.create_tensor([16, 16], dtype=pl.FP32)
    a = twice(x, a)
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.load(a, [0, 0], [16, 16])
        for i in pl.unroll(40):
            t = pl.add(t, TABLE[i])
"""
    + "".join(
        f"""        t{k} = inline(t)
        for i{k} in pl.range(2):
            if i{k} > 0:
                t{k} = pl.mul(t{k}, 1.0)
            else:
                t{k} = pl.maximum(t{k}, t)
        t = t{k}
"""
        for k in range(20)
    )
    + """        b = pl.store(t, [0, 0], b)
"""
    + """    with pl.at(level=pl.Level.CORE_GROUP):
        c = pl.add(pl.matmul(b, x), 0.0)
        out[:] = c
"""
    * 10
    + "    return out\n"
)


def fresh():
    """The entry, read anew: nothing that an earlier compile made is left."""
    name = "<interrupted>"
    linecache.cache[name] = (len(SOURCE), None, SOURCE.splitlines(keepends=True), name)
    scope = {"__name__": __name__}
    exec(compile(SOURCE, name, "exec"), scope)
    return scope["kernel"]


def arrays():
    x = np.random.default_rng(3).integers(-4, 5, (16, 16)).astype(np.float32)
    return x, np.full_like(x, np.nan)


def expected(x):
    t = 2 * x + sum(range(40))
    return t @ x


class Polls:
    """Counts the polls while it is entered; raises KeyboardInterrupt at poll `at`."""

    def __init__(self, at=None):
        self.at, self.count = at, 0

    def __call__(self):
        self.count += 1
        if self.count == self.at:
            raise KeyboardInterrupt

    def __enter__(self):
        _core.set_poll_hook(self)
        return self

    def __exit__(self, *_):
        _core.set_poll_hook(None)


def points(total):
    """Some polls of a stage: the first ones, the last one, and many between."""
    rng = np.random.default_rng(total)
    return sorted({1, 2, 3, total, *(int(k) for k in rng.integers(1, total + 1, POINTS))})


def interrupted(work, least):
    """Runs `work` to its end for the number of polls, then once for each point, cut there."""
    with Polls() as polls:
        result = work()
    assert polls.count >= least
    for at in points(polls.count):
        with Polls(at) as cut, pytest.raises(KeyboardInterrupt):
            work()
        assert cut.count == at  # nothing went on
    return result


def test_a_call_that_specialises():  # 04 DST-34
    with Polls() as polls:
        fresh()(*arrays(), config=CONFIG)
    x, y = arrays()
    for at in points(polls.count):
        kernel = fresh()
        with Polls(at) as cut, pytest.raises(KeyboardInterrupt):
            kernel(x, y, config=CONFIG)
        assert cut.count == at
        assert not kernel._cache and np.isnan(y).all()  # nothing half-made, nothing run
        kernel(x, y, config=CONFIG)
        np.testing.assert_array_equal(y, expected(x))
        assert len(kernel._cache) == 1
        y[:] = np.nan


def test_every_stage_of_a_compile_polls():  # 04 DST-34
    program = fresh().compile(*arrays(), config=CONFIG).program
    seen = []
    with Polls() as polls:
        _core.compile(program, after=lambda name, _: seen.append((name, polls.count)))
    assert [name for name, _ in seen] == _core.pass_names()
    ends = [0, *(n for _, n in seen)]
    for (name, end), start in zip(seen, ends, strict=False):
        assert end - start > 100, name


@pytest.mark.parametrize("name", _core.pass_names())
def test_a_pass(name):  # 04 DST-34
    program = ir.compile(fresh().lower(config=CONFIG), platform="a2a3sim").program
    text = str(program)
    interrupted(lambda: _core.apply_pass(name, program), 100)
    assert str(program) == text  # a pass works on a copy


def test_reading_printing_and_comparing():  # 04 DST-34
    program = fresh().lower(config=CONFIG)
    text = interrupted(lambda: str(program), 500)
    assert text == str(program)
    again = interrupted(lambda: pl.parse(text), 500)
    assert str(again) == text
    interrupted(lambda: ir.structural_equal(program, again, enable_auto_mapping=True), 100)
    interrupted(lambda: _core.verify(program), 500)
    assert str(again) == text


def test_saving_and_loading():  # 04 DST-34
    compiled = fresh().compile(*arrays(), config=CONFIG)
    native = _core.compile(compiled.program)
    data = interrupted(native.save, 500)
    loaded = interrupted(lambda: _core.load(data), 500)
    assert loaded.save()[:9] == data[:9]
    node = interrupted(lambda: _core.serialize(compiled.program), 500)
    assert ir.structural_equal(
        interrupted(lambda: _core.deserialize(node), 500), compiled.program, enable_auto_mapping=True
    )
    interrupted(native.disassemble, 100)


def test_an_artifact_that_was_not_finished_is_not_taken_for_one(tmp_path):  # 04 DST-34, RUN-9
    program = fresh().lower(config=CONFIG)
    with Polls() as polls:
        ir.compile(program, platform="a2a3sim", output_dir=str(tmp_path / "whole"))
    x, y = arrays()
    for at in points(polls.count)[-8:]:
        where = tmp_path / f"at{at}"
        with Polls(at), pytest.raises(KeyboardInterrupt):
            ir.compile(program, platform="a2a3sim", output_dir=str(where))
        ir.compile(program, platform="a2a3sim", output_dir=str(where))(x, y)
        np.testing.assert_array_equal(y, expected(x))


def test_ctrl_c_in_a_compile_time_expression_is_no_error_of_the_program():  # 04 ERR-8
    calls = []

    def interrupt():
        calls.append(1)
        raise KeyboardInterrupt

    @pl.jit
    def kernel(x: pl.Tensor[[4, 8], pl.FP32], out: pl.Out[pl.Tensor[[4, 8], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = pl.add(x, interrupt())
        return out

    x = np.ones((4, 8), np.float32)
    with pytest.raises(KeyboardInterrupt):
        kernel(x, x.copy(), config=CONFIG)
    assert calls and not kernel._cache
