# SPDX-License-Identifier: Apache-2.0
"""Names of operations, calls as statements and inside others, tiles of other ranks, moves, block identity, events."""

import types

import numpy as np
import pypto.language as pl
import pytest
from opkit import define, run
from pypto.language.parser.diagnostics import InvalidOperationError, ParserSyntaxError
from pypto.runtime import RunConfig, SimOptions

FLAT = (
    "create_tensor dim full arange random gather scatter paged_gather expand_clone create_l1 get_block_idx "
    "get_block_num get_subblock_idx no_dep dump_tag"
).split()
TENSOR_ONLY = "create ci arange view adds subs muls divs".split()
TILE_ONLY = (
    "create full ci arange random extract fillpad_inplace gather gather_mask gather_compare scatter scatter_mask "
    "transpose_view batch_matmul_acc adds subs muls divs get_block_idx get_block_num get_subblock_idx"
).split()


def numbers(shape, seed, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def jit(text, *args, platform="a2a3sim", **sim):
    define(text)["f"](*args, config=RunConfig(platform=platform, sim=SimOptions(**sim) if sim else None))


def known(name):
    """Whether the front end finds the operation: called without arguments it then misses them."""
    with pytest.raises(Exception) as caught:
        run(f"{name}(no_such_keyword=1)", x=numbers((8, 8), 1), o=np.zeros((8, 8), np.float32))
    text = str(caught.value)
    assert ("Unknown" in text) != ("no_such_keyword" in text.splitlines()[0]), text
    return "Unknown" not in text


@pytest.mark.parametrize("name", [f"pl.{n}" for n in FLAT if n not in ("no_dep", "dump_tag")])
def test_names_promoted_from_tensor(name):  # O-103
    assert known(name) and known(name.replace("pl.", "pl.tensor."))
    assert callable(getattr(pl, name[3:])) and callable(
        getattr(pl.tensor, {"create_tensor": "create"}.get(name[3:], name[3:]))
    )


@pytest.mark.parametrize("name", [f"pl.tensor.{n}" for n in TENSOR_ONLY] + [f"pl.tile.{n}" for n in TILE_ONLY])
def test_names_of_one_namespace(name):  # O-106
    assert known(name)
    module = getattr(pl, name.split(".")[1])
    assert isinstance(module, types.ModuleType) and hasattr(module, name.split(".")[2])


# ---------------------------------------------------------------- calls

INLINE = """
@pl.inline
def bump(c):
    pl.write(c, [0], pl.read(c, [0]) + pl.const(5, pl.INT32))
    return pl.read(c, [0])

@pl.jit
def f(c: pl.InOut[pl.Tensor[[4], pl.INT32]], o: pl.Out[pl.Tensor[[4], pl.INT32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        h = pl.const(100, pl.INT32)
        pl.write(o, [0], pl.read(c, [0]) * h + bump(c))
        pl.write(o, [1], bump(c) * h + pl.read(c, [0]))
        pl.write(o, [2], pl.sub(pl.mul(pl.read(c, [0]), h), bump(c)))
        pl.write(o, [3], pl.max(pl.read(c, [0]), bump(c) - h) * h + pl.min(bump(c), pl.read(c, [0])))
    return c, o
"""


def test_nested_calls_are_evaluated_from_the_left():  # O-114
    c, o = np.array([3, 8, 9, 10], np.int32), np.zeros(4, np.int32)
    jit(INLINE, c, o)
    np.testing.assert_array_equal(o, [3 * 100 + 8, 13 * 100 + 13, 13 * 100 - 18, 18 * 100 + 28])
    np.testing.assert_array_equal(c, [28, 8, 9, 10])


def test_calls_as_whole_statements():  # O-114, O-214
    x, io, o = numbers((8, 16), 3), numbers((8, 16), 4), numbers((8, 16), 5)
    before = io.copy()
    run(
        """
        pl.exp(x)
        pl.add(pl.load(x, [0, 0], [8, 16]), 1.0)
        pl.store(pl.mul(pl.add(pl.load(x, [2, 0], [4, 16]), 1.0), pl.load(io, [0, 0], [4, 16])), [4, 0], io)
        t = pl.load(io, [0, 0], [8, 16])
        pl.tile.write(t, [1, 2], 7.5)
        pl.tensor.assemble(o, pl.maximum(pl.neg(x), pl.abs(pl.sub(x, 0.5))), [0, 0])
        pl.store(pl.slice(t, [2, 16], [0, 0]), [6, 0], o)
        """,
        x=x, io=io, o=o,
    )  # fmt: skip
    before[4:] = (x[2:6] + 1) * before[:4]
    np.testing.assert_array_equal(io, before)
    want = np.maximum(-x, np.abs(x - np.float32(0.5)))
    want[6:] = before[:2]
    want[7, 2] = 7.5
    np.testing.assert_array_equal(o, want)


@pytest.mark.parametrize("body,name", [("a = x.add(y)", "add"), ("a = pl.load(x, [0, 0], [8, 16]).exp()", "exp"),
                                       ("t = pl.load(x, [0, 0], [8, 16])\nt.mul(t)", "mul")])  # fmt: skip
def test_there_are_no_methods(body, name):  # O-114
    with pytest.raises(InvalidOperationError, match=f"Method '{name}'") as caught:
        run(body + "\no[:, :] = pl.add(x, y)", x=numbers((8, 16), 1), y=numbers((8, 16), 2), o=numbers((8, 16), 3))
    assert f"pl.{name}(" in caught.value.hint


# ---------------------------------------------------------------- shapes and valid shapes


@pytest.mark.parametrize("op", ["neg", "exp", "rsqrt", "relu"])
def test_unary_results_have_the_valid_shape_of_the_operand(op):  # O-1001
    """Only the valid rows count at the edge of the target, which the whole tile would pass."""
    x, o = np.abs(numbers((16, 64), 6)) + np.float32(0.1), np.full((16, 64), 7, np.float32)
    run(
        f"t = pl.load(x, [2, 0], [16, 64], valid_shape=[6, 48], clamp=True)\no = pl.store(pl.{op}(t), [10, 16], o)",
        x=x,
        o=o,
    )
    want = np.full((16, 64), 7, np.float32)
    part = x[2:8, :48].astype(np.float64)
    want[10:, 16:] = {"neg": -part, "exp": np.exp(part), "rsqrt": 1 / np.sqrt(part), "relu": part}[op]
    np.testing.assert_allclose(o, want, rtol=1e-6)


def test_extents_are_those_of_the_shape():  # O-603: a narrower valid shape changes no extent
    x, o, shape = numbers((12, 64), 8), np.zeros((12, 64), np.float32), np.zeros(4, np.int64)
    text = """
R = pl.dynamic("R")

@pl.jit.incore
def inner(x: pl.Tensor[[R, 64], pl.FP32], o: pl.Out[pl.Tensor[[R, 64], pl.FP32]], shape: pl.InOut[pl.Tensor[[4], pl.INT64]]):
    pl.write(shape, [0], pl.cast(pl.dim(x, 0), pl.INT64))
    pl.write(shape, [1], pl.cast(pl.dim(x, -1), pl.INT64))
    v = pl.set_validshape(x, 5, 64)
    pl.write(shape, [2], pl.cast(pl.dim(v, -2), pl.INT64))
    o = pl.store(pl.load(v, [0, 0], [12, 64], clamp=True), [0, 0], o)
    return o, shape

@pl.jit
def f(x: pl.Tensor[[R, 64], pl.FP32], o: pl.Out[pl.Tensor[[R, 64], pl.FP32]], shape: pl.InOut[pl.Tensor[[4], pl.INT64]]):
    o, shape = inner(pl.set_validshape(x, 7, 60), o, shape)
    return o, shape
"""
    jit(text, x, o, shape)
    np.testing.assert_array_equal(shape, [12, 64, 12, 0])
    want = np.zeros((12, 64), np.float32)
    want[:5, :60] = x[:5, :60]
    np.testing.assert_array_equal(o[:, :60], want[:, :60])


def test_tiles_of_three_axes():  # O-203
    x, y = numbers((2, 3, 32), 21), numbers((2, 3, 32), 22)
    o0, o1, o2 = np.zeros_like(x), np.zeros_like(x), np.zeros((2, 3, 1), np.float32)
    o3, o4, o5 = np.zeros((2, 32, 8), np.float32), np.zeros((3, 2, 32), np.float32), np.zeros((6, 32), np.float32)
    z = numbers((2, 8, 32), 23)
    run(
        """
        t = pl.load(x, [0, 0, 0], [2, 3, 32])
        u = pl.load(y, [0, 0, 0], [2, 3, 32])
        o0 = pl.store(pl.cast(pl.cast(pl.sub(pl.mul(t, u), pl.abs(t)), pl.INT32, mode="trunc"), pl.FP32), [0, 0, 0], o0)
        o1 = pl.store(pl.maximum(pl.add(t, 2.0), u), [0, 0, 0], o1)
        o2 = pl.store(pl.row_max(t, pl.create_tile([2, 3, 32], dtype=pl.FP32)), [0, 0, 0], o2)
        o3 = pl.store(pl.transpose(pl.load(z, [0, 0, 0], [2, 8, 32]), 1, 2), [0, 0, 0], o3)
        b = pl.tile.full([3, 2, 32], dtype=pl.FP32, value=4)
        b = pl.assemble(b, pl.neg(pl.load(x, [1, 0, 0], [1, 2, 32])), [2, 0, 0])
        o4 = pl.store(b, [0, 0, 0], o4)
        o5 = pl.store(pl.reshape(t, [6, 32]), [0, 0], o5)
        """,
        x=x, y=y, z=z, o0=o0, o1=o1, o2=o2, o3=o3, o4=o4, o5=o5,
    )  # fmt: skip
    np.testing.assert_array_equal(o0, np.trunc(x * y - np.abs(x)))
    np.testing.assert_array_equal(o1, np.maximum(x + 2, y))
    np.testing.assert_array_equal(o2, x.max(-1, keepdims=True))
    np.testing.assert_array_equal(o3, z.transpose(0, 2, 1))
    want = np.full((3, 2, 32), 4, np.float32)
    want[2] = -x[1, :2]
    np.testing.assert_array_equal(o4, want)
    np.testing.assert_array_equal(o5, x.reshape(6, 32))


def test_regions_of_rank_three_that_are_no_band_of_rows():  # O-203
    body = """
    b = pl.tile.full([3, 4, 32], dtype=pl.FP32, value=4)
    b = pl.assemble(b, pl.load(x, [0, 0, 0], {shape}), {offset})
    o = pl.store(b, [0, 0, 0], o)
    """
    x, want = numbers((3, 4, 32), 24), np.full((3, 4, 32), 4, np.float32)
    o = np.zeros_like(want)
    run(body.format(shape=[2, 4, 32], offset=[1, 0, 0]), x=x, o=o)
    want[1:] = x[:2]
    np.testing.assert_array_equal(o, want)
    with pytest.raises(ValueError, match="assemble"):
        run(body.format(shape=[2, 2, 32], offset=[0, 1, 0]), x=x, o=o)


def test_tiles_of_one_axis_are_one_row():  # O-203
    v, m = numbers((64,), 25), numbers((1, 64), 26)
    o0, o1, o2 = np.zeros(64, np.float32), np.zeros((4, 64), np.float32), np.zeros((1, 1), np.float32)
    run(
        """
        t = pl.load(v, [0], [64])
        o0 = pl.store(pl.add(t, pl.mul(t, 0.5)), [0], o0)
        r = pl.reshape(t, [1, 64])
        o1 = pl.store(pl.add(r, pl.load(m, [0, 0], [1, 64])), [2, 0], o1)
        o2 = pl.store(pl.row_max(r, pl.create_tile([1, 64], dtype=pl.FP32)), [0, 0], o2)
        """,
        v=v, m=m, o0=o0, o1=o1, o2=o2,
    )  # fmt: skip
    np.testing.assert_array_equal(o0, v + v * np.float32(0.5))
    np.testing.assert_array_equal(o1[2], v + m[0])
    assert not o1[[0, 1, 3]].any() and o2[0, 0] == v.max()


# ---------------------------------------------------------------- move


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_moves_keep_values_valid_shape_and_pad_mode():  # O-705
    x = numbers((16, 64), 31)
    o0, o1, o2 = (np.full((16, 64), 7, np.float32) for _ in range(3))
    run(
        """
        t = pl.load(x, [0, 0], [16, 64], valid_shape=[n, 48])
        c = pl.move(t, pl.Mem.Vec)
        o0 = pl.store(c, [0, 0], o0)
        f = pl.fillpad(pl.load(x, [1, 0], [16, 64], valid_shape=[6, 40], clamp=True), pad_value=pl.PadValue.max)
        g = pl.move(f, pl.Mem.Vec)
        pl.tile.write(f, [0, 0], 99.0)
        o1 = pl.store(g, [0, 0], o1)
        s = pl.move(pl.load(x, [4, 0], [16, 64], valid_shape=[6, 48], clamp=True), target_memory=pl.Mem.Vec)
        o2 = pl.store(s, [10, 16], o2)
        """,
        "a2a3sim", {"n": ("INT32", 5)}, x=x, o0=o0, o1=o1, o2=o2,
    )  # fmt: skip
    want = np.full((16, 64), 7, np.float32)
    want[:5, :48] = x[:5, :48]
    np.testing.assert_array_equal(o0, want)
    want = np.full((16, 64), np.inf, np.float32)
    want[:6, :40] = x[1:7, :40]
    np.testing.assert_array_equal(o1, want)
    want = np.full((16, 64), 7, np.float32)
    want[10:, 16:] = x[4:10, :48]
    np.testing.assert_array_equal(o2, want)


@pytest.mark.parametrize("space", ["LeftScale", "RightScale"])
def test_scale_memories_are_those_of_a5(space):  # O-705, O-310
    u, o = np.arange(64, dtype=np.uint8).reshape(2, 32), np.zeros((2, 32), np.uint8)
    body = f"""
    t = pl.load(u, [0, 0], [2, 32], target_memory=pl.Mem.Mat)
    s: pl.Tile[[2, 32], pl.FP8E8M0, pl.Mem.{space}] = pl.move(t, pl.Mem.{space})
    o = pl.store(pl.load(u, [0, 0], [2, 32]), [0, 0], o)
    """
    run(body, "a5sim", u=u, o=o)
    np.testing.assert_array_equal(o, u)
    with pytest.raises(ValueError, match=f"{space} is not supported on the 'a2a3' backend"):
        run(body, "a2a3sim", u=u, o=o)


# ---------------------------------------------------------------- blocks, events, tasks


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
def test_every_core_of_a_cluster_sees_one_block_index(platform):  # O-2201
    text = """
@pl.jit
def f(a: pl.Tensor[[160, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32], o: pl.Out[pl.Tensor[[160, 32], pl.FP32]],
      who: pl.Out[pl.Tensor[[10, 32], pl.INT32]]):
    for i in pl.spmd(5):
        at = pl.get_block_idx()
        c = pl.matmul(pl.load(a, [at * 32, 0], [32, 64]), pl.load(b, [0, 0], [64, 32]))
        for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            here = pl.tile.get_block_idx()
            number = here * 100 + pl.get_block_num() * 10 + pl.tensor.get_subblock_idx()
            o = pl.store(pl.mul(pl.aiv_shard(c), 2.0), [here * 32 + lane * 16, 0], o)
            row = pl.add(pl.tile.full([1, 32], pl.INT32, 0), pl.cast(number, pl.INT32))
            who = pl.store(row, [i * 2 + lane, 0], who)
    return o, who
"""
    a, b = numbers((160, 64), 41), numbers((64, 32), 42)
    o, who = np.zeros((160, 32), np.float32), np.zeros((10, 32), np.int32)
    jit(text, a, b, o, who, platform=platform)
    np.testing.assert_allclose(o, 2 * (a @ b), rtol=1e-4, atol=1e-4)
    want = [block * 100 + 50 + lane for block in range(5) for lane in (0, 1)]
    np.testing.assert_array_equal(who, np.repeat(np.array(want, np.int32)[:, None], 32, 1))


EVENTS = """
@pl.jit
def f(a: pl.Tensor[[32, 32], pl.FP32], ws: pl.InOut[pl.Tensor[[256], pl.INT64]], o: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.system.set_ffts(ws)
        c = pl.matmul(pl.load(a, [0, 0], [32, 32]), pl.load(a, [0, 0], [32, 32]))
        for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            o = pl.store(pl.add(pl.aiv_shard(c), 1.0), [lane * 16, 0], o)
            pl.system.sync_set(5, pipe=pl.PipeType.MTE3, ffts_mode={mode}, core_type="aiv")
        for k in pl.range({waits}):
            pl.system.sync_wait(5, pipe=pl.PipeType.M, core_type="aic")
    return o
"""


@pytest.mark.parametrize("mode,most", [(2, 1), (0, 2), (1, 2)])
def test_sets_of_both_lanes_release_the_cube(mode, most):  # O-2303
    """Each wait takes one event, or one of each lane in mode 2; a wait too many is never satisfied."""
    a = numbers((32, 32), 51)
    for waits in range(1, most + 1):
        o = np.zeros((32, 32), np.float32)
        jit(EVENTS.format(mode=mode, waits=waits), a, np.zeros(256, np.int64), o)
        np.testing.assert_allclose(o, a @ a + 1, rtol=1e-4, atol=1e-4)
    with pytest.raises(Exception, match="sync_wait of event 5"):
        jit(EVENTS.format(mode=mode, waits=most + 1), a, np.zeros(256, np.int64), np.zeros((32, 32), np.float32))


DUMMY = """
@pl.jit.incore
def scale(x: pl.Tensor[[8, 32], pl.FP32], y: pl.Out[pl.Tensor[[8, 32], pl.FP32]]):
    y = pl.store(pl.mul(pl.load(x, [0, 0], [8, 32]), 3.0), [0, 0], y)
    return y

@pl.jit
def f(x: pl.Tensor[[8, 32], pl.FP32], o: pl.Out[pl.Tensor[[8, 32], pl.FP32]]):
    a = pl.create_tensor([8, 32], dtype=pl.FP32, init_value=1)
    b = pl.create_tensor([8, 32], dtype=pl.FP32, init_value=2)
    with pl.manual_scope():
        tids = pl.array.create(3, pl.TASK_ID)
        _a, t0 = pl.submit(scale, x, a)
        tids[1] = t0
        first = pl.system.task_dummy(deps={deps})
        _b, t1 = pl.submit(scale, a, b, deps=[first])
        second = pl.system.task_dummy(deps=[t1, None, first])
        empty = pl.system.task_dummy(deps=[])
        o, _ = pl.submit(scale, b, o, deps=[second, empty])
    return o
"""


@pytest.mark.parametrize("deps", ["[t0]", "[None, t0, pl.system.task_invalid()]", "[tids]", "[None, tids]"])
def test_tasks_without_work_complete_after_their_entries(deps):  # O-2306, 01 L-137
    x = numbers((8, 32), 61)
    text = DUMMY.replace("{deps}", deps)
    for seed in range(6):
        o = np.zeros_like(x)
        jit(text, x, o, schedule="explore", seed=seed)
        np.testing.assert_array_equal(o, (x * np.float32(3) * np.float32(3)) * np.float32(3))


@pytest.mark.parametrize(
    "call,fragment",
    [
        ("[t0]", "positional"),
        ("[t0], deps=[t0]", "positional"),
        ("deps=[t0], foo=1", "foo"),
        ("", "deps"),
        ("depends=[t0]", "depends"),
    ],
)
def test_forms_of_tasks_without_work(call, fragment):  # O-2306, 01 L-137
    text = DUMMY.replace("pl.system.task_dummy(deps={deps})", f"pl.system.task_dummy({call})")
    x = numbers((8, 32), 62)
    with pytest.raises(ParserSyntaxError, match=fragment):
        jit(text, x, np.zeros_like(x))


# ---------------------------------------------------------------- errors and platforms


@pytest.mark.parametrize(
    "call,kind,operation,words",
    [
        ("pl.load(x, [0, 0], [9, 16])", ValueError, "load", ["'tensor'", "9", "8"]),
        ("pl.tile.sin(pl.cast(pl.load(x, [0, 0], [8, 16]), pl.FP16))", TypeError, "sin", ["'tile'", "fp16", "FP32"]),
        ("pl.add(x, pl.load(x, [0, 0], [8, 16]))", TypeError, "add", ["Tensor", "Tile"]),
        ("pl.matmul(x, x)", ValueError, "matmul", ["16", "8"]),
        ("pl.cast(x, pl.FP32)", ValueError, "cast", ["fp32", "Remove the cast"]),
        ("pl.row_expand_add(x, pl.load(x, [0, 0], [8, 1]))", TypeError, "row_expand_add", ["Tensor", "Tile"]),
        ("pl.reshape(x, [7, 16])", ValueError, "reshape", ["[8, 16]", "[7, 16]"]),
        ("pl.concat(x, pl.slice(x, [4, 16], [0, 0]))", ValueError, "concat", ["[8, 16]", "[4, 16]"]),
        ("pl.fillpad(x, pad_value=1.5)", ValueError, "fillpad", ["pad_value", "1.5"]),
    ],
)
def test_errors_name_operation_argument_and_place(call, kind, operation, words):  # O-401
    text = f"""
@pl.jit
def f(x: pl.Tensor[[8, 16], pl.FP32], o: pl.Out[pl.Tensor[[8, 16], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        o[:, :] = x
        a = {call}
    return o
"""
    with pytest.raises(kind) as caught:
        jit(text, numbers((8, 16), 71), np.zeros((8, 16), np.float32))
    first = str(caught.value).splitlines()[0]
    assert f"operation '{operation}'" in first
    for word in words:
        assert word in str(caught.value), str(caught.value)
    assert ".py:7:13" in str(caught.value)


@pytest.mark.parametrize("dtype", ["INT8", "UINT8", "BF16"])
def test_triangles_of_a5_only(dtype):  # O-506, O-310
    body, o = f"o = pl.store(pl.cast(pl.tri(-1, [12, 32], dtype=pl.{dtype}), pl.{{}}), [0, 0], o)", None
    wide = "FP32" if dtype == "BF16" else "FP16"
    o = np.full((12, 32), 7, np.float32 if dtype == "BF16" else np.float16)
    run(body.format(wide), "a5sim", o=o)
    np.testing.assert_array_equal(o, np.tril(np.ones((12, 32)), -1))
    with pytest.raises(ValueError, match="not supported on the 'a2a3' backend"):
        run(body.format(wide), "a2a3sim", o=o)


@pytest.mark.parametrize(
    "body,refused",
    [
        ("t = pl.cast(pl.load(h, [0, 0], [8, 32]), pl.INT4)", "a5sim"),
        ("t = pl.cast(x, pl.UINT16)", "a2a3sim"),
        ("t = pl.cast(x, pl.FP8E4M3FN)", "a2a3sim"),
        ("t = pl.fmod(s, s)", "a2a3sim"),
        ("t = pl.shls(w, 3)", "a2a3sim"),
        ("t = pl.cmp(pl.load(x, [0, 0], [8, 32]), 0.0)\nt = pl.sels(t, pl.load(c, [0, 0], [8, 32]), pl.load(c, [0, 0], [8, 32]), 3)",
         "a2a3sim"),
        ("p = pl.load(x, [0, 0], [8, 32])\nt = pl.prelu(p, p, pl.create_tile([8, 32], dtype=pl.UINT8))", "a2a3sim"),
    ],
)  # fmt: skip
def test_what_one_family_only_has(body, refused):  # O-310
    arrays = {
        "x": numbers((8, 32), 81), "h": numbers((8, 32), 82, np.float16), "s": np.arange(1, 257, dtype=np.int16).reshape(8, 32),
        "w": np.arange(256, dtype=np.int64).reshape(8, 32), "c": np.arange(256).astype(np.uint8).reshape(8, 32),
        "o": np.zeros((8, 32), np.float32),
    }  # fmt: skip
    body = "o[:, :] = pl.mul(x, 2.0)\n" + body
    run(body, {"a2a3sim": "a5sim", "a5sim": "a2a3sim"}[refused], **arrays)
    np.testing.assert_array_equal(arrays["o"], 2 * arrays["x"])
    with pytest.raises(ValueError):
        run(body, refused, **arrays)


def test_rows_gathered_from_memory_on_a2():  # O-310: rows of 32 bytes there, any on a5
    x, o = numbers((8, 12), 91), np.zeros((4, 12), np.float32)
    r = np.array([[5, 0, 7, 5]], np.int32)
    body = "o = pl.store(pl.mgather(x, pl.load(r, [0, 0], [1, 4])), [0, 0], o)"
    run(body, "a5sim", x=x, r=r, o=o)
    np.testing.assert_array_equal(o, x[r[0]])
    with pytest.raises(ValueError, match="a multiple of 32 bytes, got 48"):
        run(body, "a2a3sim", x=x, r=r, o=o)
    wide, o = numbers((8, 16), 92), np.zeros((4, 16), np.float32)
    run(body, "a2a3sim", x=wide, r=r, o=o)
    np.testing.assert_array_equal(o, wide[r[0]])
