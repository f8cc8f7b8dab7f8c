# SPDX-License-Identifier: Apache-2.0
"""Text of kernels whose vector work is divided between the lanes: it names the cut and runs to the same result."""

import re

import numpy as np
import pypto.language as pl
import pytest
from pypto import ir
from pypto.runtime import RunConfig

RNG = np.random.default_rng(41)
UP_DOWN, LEFT_RIGHT = pl.SplitMode.UP_DOWN, pl.SplitMode.LEFT_RIGHT
PLATFORMS = ["a2a3sim", "a5sim"]
SENTINEL = 7.0


def f16(*shape):
    return RNG.standard_normal(shape, dtype=np.float32).astype(np.float16)


def f32(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


def c(value):
    return f"pl.const({value}, pl.INDEX)"


def read_back(program, args, shape, tmp_path, platform="a2a3sim"):
    """Runs the program and the text of its lowered form: equal bytes, cells that nobody writes included. The text."""
    config = RunConfig(platform=platform)
    whole, again = np.full(shape, SENTINEL, np.float32), np.full(shape, SENTINEL, np.float32)
    program(*args, whole, config=config)
    text = str(program.lower(config=config))
    assert str(pl.parse(text)) == text
    ir.compile(pl.parse(text), output_dir=tmp_path / "again", platform=platform)(*args, again)
    np.testing.assert_array_equal(again, whole)
    return text, whole


def make_divided(rows, valid_rows, valid_cols, mode):
    """exp of a product of which a part is valid."""

    @pl.jit
    def k(
        a: pl.Tensor[[rows, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16], o: pl.Out[pl.Tensor[[rows, 32], pl.FP32]]
    ):
        with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(mode)], name_hint="part"):
            left = pl.load(a, [0, 0], [rows, 64], target_memory=pl.Mem.Mat)
            right = pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat)
            p = pl.set_validshape(pl.matmul(left, right), valid_rows, valid_cols)
            o = pl.store(pl.exp(p), [0, 0], o)
        return o

    return k


LANE = "subblock_idx"
# rows, valid rows, valid columns, mode: the pop, the valid shape of what it yields ("" = the whole box), where lane 1 stores
CUTS = {
    "whole": (16, 16, 32, UP_DOWN, "split=1", "", 8),
    "lane 1 one row short": (16, 15, 32, UP_DOWN, "split=1", f"pl.min({c(15)} - {LANE} * {c(8)}, {c(8)}), 32", 8),
    "lane 1 empty": (16, 5, 32, UP_DOWN, "split=1", f"pl.max({c(5)} - {LANE} * {c(8)}, {c(0)}), 32", 8),
    "lane 0 full, lane 1 empty": (16, 8, 32, UP_DOWN, "split=1", f"{c(8)} - {LANE} * {c(8)}, 32", 8),
    "odd valid part": (16, 13, 32, UP_DOWN, "split=3, lane_stride=7", f"pl.min({c(13)} - {LANE} * {c(7)}, {c(7)}), 32", 7),
    "even valid part": (16, 12, 32, UP_DOWN, "split=3, lane_stride=6", f"pl.min({c(12)} - {LANE} * {c(6)}, {c(6)}), 32", 6),
    "odd box": (17, 17, 32, UP_DOWN, "split=3", f"pl.min({c(17)} - {LANE} * {c(9)}, {c(9)}), 32", 9),
    "valid part of an odd box": (17, 12, 32, UP_DOWN, "split=3, lane_stride=6", f"pl.min({c(12)} - {LANE} * {c(6)}, {c(6)}), 32", 6),
    "columns narrowed beside": (16, 16, 20, UP_DOWN, "split=1", "8, 20", 8),
    "columns": (16, 16, 32, LEFT_RIGHT, "split=2", "", 16),
    "valid columns": (16, 9, 20, LEFT_RIGHT, "split=4, lane_stride=10", f"9, pl.min({c(20)} - {LANE} * {c(10)}, {c(10)})", 10),
    "odd valid columns": (16, 16, 31, LEFT_RIGHT, "split=2", f"16, pl.min({c(31)} - {LANE} * {c(16)}, {c(16)})", 16),
}  # fmt: skip


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", CUTS)
def test_the_compiler_divides(name, platform, tmp_path):  # 04 TXT-5; 01 L-127, L-129; 02 O-2104, O-2105
    rows, valid_rows, valid_cols, mode, pop, valid, second = CUTS[name]
    a, b = f16(rows, 64), f16(64, 32)
    program = make_divided(rows, valid_rows, valid_cols, mode)
    text, got = read_back(program, [a, b], (rows, 32), tmp_path, platform)
    want = np.full((rows, 32), SENTINEL, np.float32)
    product = a.astype(np.float32) @ b.astype(np.float32)
    want[:valid_rows, :valid_cols] = np.exp(product[:valid_rows, :valid_cols])
    np.testing.assert_allclose(got, want, rtol=1e-3)
    assert "def part_aiv(" in text and "def part_aic(" in text and '"split_aiv": True' in text
    assert "= pl.tile.get_subblock_idx()" in text
    assert f"pl.tile.tpop_from_aic({pop})" in text and f"pl.tile.tpush_to_aiv(p, {pop})" in text
    assert re.findall(r"pl\.TileView\(valid_shape=\[(.*?)\]\)", text) == ([valid] if valid else [])
    offsets = f"[{LANE} * {second}, 0]" if mode == UP_DOWN else f"[0, {LANE} * {second}]"
    assert re.search(r"pl\.tile\.store\(exp, " + re.escape(offsets), text)
    assert "tile.aiv_shard" not in text and "tile.aic_gather" not in text


def make_lanes(rows, valid, second):
    @pl.jit
    def k(
        a: pl.Tensor[[rows, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16], o: pl.Out[pl.Tensor[[rows, 32], pl.FP32]]
    ):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="lanes"):
            left = pl.load(a, [0, 0], [rows, 64], target_memory=pl.Mem.Mat)
            p = pl.matmul(left, pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat))
            p = pl.set_validshape(p, valid, 32)
            for aiv_id in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                o = pl.store(pl.mul(pl.aiv_shard(p), 3.0), [aiv_id * second, 0], o)
        return o

    return k


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize(
    "rows,valid,second,pop,extents",
    [
        (16, 16, 8, "split=1", ""),
        (16, 15, 8, "split=1", f"pl.min({c(15)} - aiv_id * {c(8)}, {c(8)}), 32"),
        (16, 5, 8, "split=1", f"pl.max({c(5)} - aiv_id * {c(8)}, {c(0)}), 32"),
        (17, 17, 9, "split=3", f"pl.min({c(17)} - aiv_id * {c(9)}, {c(9)}), 32"),
    ],
)
def test_the_author_divides(rows, valid, second, pop, extents, platform, tmp_path):  # 04 TXT-5; 01 L-122, L-127
    a, b = f16(rows, 64), f16(64, 32)
    text, got = read_back(make_lanes(rows, valid, second), [a, b], (rows, 32), tmp_path, platform)
    want = np.full((rows, 32), SENTINEL, np.float32)
    want[:valid] = 3 * (a.astype(np.float32) @ b.astype(np.float32))[:valid]
    np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3)
    assert "def lanes_aiv(" in text and "def lanes_aic(" in text and '"split_aiv": True' in text
    assert "aiv_id = pl.tile.get_subblock_idx()" in text and "subblock_idx" not in text.replace("get_subblock_idx", "")
    assert f"pl.tile.tpop_from_aic({pop})" in text
    assert re.findall(r"pl\.TileView\(valid_shape=\[(.*?)\]\)", text) == ([extents] if extents else [])
    assert f"[aiv_id * {second}, 0]" in text
    assert "aiv_shard" not in text


@pytest.mark.parametrize("valid", [3, 8, 11, 16])
def test_extent_known_at_run_time(valid, tmp_path):  # 02 O-2105; 04 TXT-5: both bounds may bind
    @pl.jit
    def k(
        a: pl.Tensor[[16, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16], n: pl.Tensor[[1], pl.INT32],
        o: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ):  # fmt: skip
        with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN)], name_hint="part"):
            rows = pl.cast(pl.read(n, [0]), pl.INDEX)
            left = pl.load(a, [0, 0], [16, 64], target_memory=pl.Mem.Mat)
            p = pl.matmul(left, pl.load(b, [0, 0], [64, 32], target_memory=pl.Mem.Mat))
            o = pl.store(pl.mul(pl.set_validshape(p, rows, 32), 3.0), [0, 0], o)
        return o

    args = [f16(16, 64), f16(64, 32), np.array([valid], np.int32)]
    text, got = read_back(k, args, (16, 32), tmp_path)
    assert f"pl.max(pl.min(rows - subblock_idx * {c(8)}, {c(8)}), {c(0)})" in text
    assert (got[valid:] == SENTINEL).all() and (got[:valid] != SENTINEL).any(axis=1).all()


@pl.jit
def rows_beside_loads(
    a: pl.Tensor[[17, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16], r: pl.Tensor[[17, 32], pl.FP32],
    bias: pl.Tensor[[1, 32], pl.FP32], o: pl.Out[pl.Tensor[[17, 32], pl.FP32]],
):  # fmt: skip
    """Loads are divided like the product, a row that spreads over all of them is not; rows are reduced in their lane."""
    with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN)], name_hint="mix"):
        s = pl.col_expand_add(pl.add(pl.matmul(a, b, out_dtype=pl.FP32), pl.mul(r, 2.0)), bias)
        o[:] = pl.row_expand_sub(s, pl.row_max(s))
    return o


@pl.jit
def both_ways(
    q: pl.Tensor[[32, 64], pl.FP16], k: pl.Tensor[[64, 64], pl.FP16], o: pl.Out[pl.Tensor[[32, 64], pl.FP32]]
):
    """The lanes' halves are joined for the second product, in every trip; what a loop carries is divided."""
    with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN)], name_hint="ways"):
        total = pl.full([32, 64], dtype=pl.FP32, value=0.0)
        norm = pl.full([32, 1], dtype=pl.FP32, value=0.0)
        for j in pl.range(4):
            part = pl.slice(k, [16, 64], [j * 16, 0])
            s = pl.exp(pl.mul(pl.matmul(q, part, b_trans=True, out_dtype=pl.FP32), 0.1))
            norm = pl.add(norm, pl.row_sum(s))
            total = pl.add(total, pl.matmul(pl.cast(s, pl.FP16), part, out_dtype=pl.FP32))
        o[:] = pl.row_expand_div(total, norm)
    return o


@pl.jit
def down_the_rows(
    a: pl.Tensor[[32, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16], o: pl.Out[pl.Tensor[[1, 32], pl.FP32]]
):
    """A reduction over the split axis joins the lanes: the kernel stays on one of them."""
    with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN)], name_hint="down"):
        o[:] = pl.col_max(pl.matmul(a, b, out_dtype=pl.FP32))
    return o


@pl.jit
def overlapping(
    a: pl.Tensor[[32, 32], pl.FP32], r: pl.Tensor[[32, 32], pl.FP32], o: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
):
    """Windows of 16 and of 32 rows into one tensor: halves of them meet, so one lane does it all."""
    with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN)], name_hint="over"):
        o[:] = pl.mul(pl.matmul(a, a), 2.0)
        o = pl.store(pl.exp(pl.load(r, [0, 0], [16, 32])), [8, 0], o)
    return o


@pl.jit
def on_a_grid(
    a: pl.Tensor[[64, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32], o: pl.Out[pl.Tensor[[64, 32], pl.FP32]]
):
    """Windows of 16 rows that begin at multiples of 16, written and read again in a loop: the lanes stay apart."""
    with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN)], name_hint="grid"):
        for i in pl.range(4):
            row = i * 16
            p = pl.matmul(pl.load(a, [row, 0], [16, 32]), pl.load(b, [0, 0], [32, 32]))
            o = pl.store(pl.mul(p, 0.5), [row, 0], o)
            o = pl.store(pl.add(pl.load(o, [row, 0], [16, 32]), 1.0), [row, 0], o)
    return o


@pl.jit
def assembled(
    a: pl.Tensor[[32, 32], pl.FP16], b: pl.Tensor[[32, 32], pl.FP16], r: pl.Tensor[[32, 32], pl.FP32],
    o: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
):  # fmt: skip
    """Tiles that pl.assemble writes into a tensor are stored."""
    with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.LEFT_RIGHT)], name_hint="put"):
        p = pl.matmul(pl.load(a, [0, 0], [32, 32]), pl.load(b, [0, 0], [32, 32]))
        o = pl.assemble(o, pl.maximum(p, pl.load(r, [0, 0], [32, 32])), [0, 0])
    return o


def of_assembled(a, b, r):
    return np.maximum(a.astype(np.float32) @ b.astype(np.float32), r)


def of_overlapping(a, r):
    out = 2 * (a @ a)
    out[8:24] = np.exp(r[:16])
    return out


def of_mixed(a, b, r, bias):
    s = a.astype(np.float32) @ b.astype(np.float32) + 2 * r + bias
    return s - s.max(1, keepdims=True)


def of_ways(q, k):
    q, k = q.astype(np.float32), k.astype(np.float32)
    s = np.exp(0.1 * q @ k.T)
    return s.astype(np.float16).astype(np.float32) @ k / s.sum(1, keepdims=True)


def of_down(a, b):
    return (a.astype(np.float32) @ b.astype(np.float32)).max(0, keepdims=True)


KERNELS = {
    "mix": (rows_beside_loads, [f16(17, 64), f16(64, 32), f32(17, 32), f32(1, 32)], (17, 32), of_mixed, ["from_aic(split=3)"]),
    "ways": (both_ways, [f16(32, 64), f16(64, 64)], (32, 64), of_ways, ["from_aic(split=1)", "from_aiv(split=1)"]),
    "over": (overlapping, [f32(32, 32), f32(32, 32)], (32, 32), of_overlapping, ["from_aic(split=0)"]),
    "grid": (on_a_grid, [f32(64, 32), f32(32, 32)], (64, 32), lambda a, b: a @ b / 2 + 1, ["from_aic(split=1)"]),
    "put": (assembled, [f16(32, 32), f16(32, 32), f32(32, 32)], (32, 32), of_assembled, ["from_aic(split=2)"]),
    "down": (down_the_rows, [f16(32, 64), f16(64, 32)], (1, 32), of_down, ["from_aic(split=0)"]),
}  # fmt: skip


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", KERNELS)
def test_larger_kernels(name, platform, tmp_path):  # 01 L-129, L-170; 02 O-2104, O-2111; 04 TXT-5
    program, args, shape, reference, pops = KERNELS[name]
    text, got = read_back(program, args, shape, tmp_path, platform)
    np.testing.assert_allclose(got, reference(*args), rtol=1e-2, atol=1e-2)
    for pop in pops:
        assert f"pl.tile.tpop_{pop}" in text
    assert ('"split_aiv": True' in text) == (name not in ("down", "over"))


def test_product_valid_in_part_crosses_whole(tmp_path):  # 02 O-2105: the annotation says what is valid
    @pl.jit
    def k(a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 48], pl.FP32], o: pl.Out[pl.Tensor[[32, 48], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="part"):
            left = pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
            right = pl.load(b, [0, 0], [64, 64], valid_shape=[64, 48], target_memory=pl.Mem.Mat)
            o = pl.store(pl.add(pl.move(pl.matmul(left, right), pl.Mem.Vec), 1.0), [0, 0], o)
        return o

    a, b = f32(32, 64), f32(64, 48)
    text, got = read_back(k, [a, b], (32, 48), tmp_path)
    np.testing.assert_allclose(got, a @ b + 1, rtol=1e-4, atol=1e-4)
    assert "pl.TileView(valid_shape=[32, 48])] = pl.tile.tpop_from_aic(split=0)" in text


def test_size_of_the_pipe(tmp_path):  # 01 L-172; 04 TXT-5: slots x bytes of the joined tile
    @pl.jit
    def k(
        x: pl.Tensor[[300, 512], pl.BF16], rows: pl.Tensor[[1, 128], pl.INT32], w: pl.Tensor[[512, 16], pl.BF16],
        o: pl.Out[pl.Tensor[[128, 16], pl.FP32]],
    ):  # fmt: skip
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="picked"):
            for aiv_id in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                half = pl.create_tile([64, 512], pl.BF16)
                for i in pl.range(64):
                    row = pl.cast(pl.read(rows, [0, aiv_id * 64 + i]), pl.INDEX)
                    half = pl.gather_row(half, x, [i, 0], [row, 0], [1, 512])
                joined = pl.aic_gather(half)
            right = pl.load(w, [0, 0], [512, 16], target_memory=pl.Mem.Mat)
            o = pl.store(pl.matmul(joined, right), [0, 0], o)
        return o

    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    x, w = torch.randn(300, 512).to(torch.bfloat16), torch.randn(512, 16).to(torch.bfloat16)
    rows = RNG.permutation(300)[:128].astype(np.int32)
    text, got = read_back(k, [x, rows[None], w], (128, 16), tmp_path)
    want = x.float()[torch.from_numpy(rows.astype(np.int64))] @ w.float()
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-2, atol=1e-2)
    for fragment in (
        "def picked_aiv(", "def picked_aic(", "pl.Tile[[64, 512], pl.BF16", "pl.tile.gather_row(", "slot_num=2",
        "size=262144", "pl.tile.tpush_to_aic(half, split=1)", "pl.tile.tpop_from_aiv(split=1)", "pl.tile.matmul(",
    ):  # fmt: skip
        assert fragment in text, fragment
