# SPDX-License-Identifier: Apache-2.0
"""Lowered programs as a device runs them: kernels of tiles, mixed kernels as pairs (01 L-67, L-144, L-170; 04 SER-3)."""

import numpy as np
import pypto.language as pl
import pytest
import torch
from pypto import ir
from pypto.debug import torch_codegen
from pypto.runtime import RunConfig

RNG = np.random.default_rng(23)
PLATFORMS = ["a2a3sim", "a5sim"]


@pl.jit
def activated(
    a: pl.Tensor[[32, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16], y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="act"):
        y[:] = pl.exp(pl.mul(pl.matmul(a, b, out_dtype=pl.FP32), 0.05))
    return y


@pl.jit
def attended(q: pl.Tensor[[32, 64], pl.FP16], k: pl.Tensor[[64, 64], pl.FP16], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
    """Scores, softmax over blocks, and a second product: tiles pass both ways in a loop."""
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="att"):
        total = pl.full([32, 64], dtype=pl.FP32, value=0.0)
        norm = pl.full([32, 1], dtype=pl.FP32, value=0.0)
        for j in pl.range(4):
            part = pl.slice(k, [16, 64], [j * 16, 0])
            s = pl.exp(pl.mul(pl.matmul(q, part, b_trans=True, out_dtype=pl.FP32), 0.1))
            norm = pl.add(norm, pl.row_sum(s))
            total = pl.add(total, pl.matmul(pl.cast(s, pl.FP16), part, out_dtype=pl.FP32))
        y[:] = pl.row_expand_div(total, norm)
    return y


@pl.jit
def kept(a: pl.Tensor[[16, 64], pl.FP32], b: pl.Tensor[[64, 64], pl.FP32], y: pl.Out[pl.Tensor[[32, 64], pl.FP32]]):
    """What a product reads is stored, too: as it was loaded, and as the vector core made it."""
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="kept"):
        x = pl.load(a, [0, 0], [16, 64])
        w = pl.load(b, [0, 0], [64, 64])
        acc = pl.load(a, [0, 0], [16, 64])
        for i in pl.range(3):
            acc = pl.mul(pl.matmul(acc, w), 0.125)
        y = pl.store(acc, [0, 0], y)
        y = pl.store(x, [16, 0], y)
        y = pl.store(pl.matmul(x, w), [16, 0], y, atomic=pl.AtomicType.Add)
    return y


@pl.jit
def lanes(a: pl.Tensor[[17, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16], y: pl.Out[pl.Tensor[[17, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="rows"):
        c = pl.matmul(a, b, out_dtype=pl.FP32)
        for aiv_id in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
            y = pl.assemble(y, pl.mul(pl.aiv_shard(c), 3.0), [aiv_id * 9, 0])
    return y


@pl.jit
def branches(
    a: pl.Tensor[[32, 32], pl.FP32],
    n: pl.Tensor[[1], pl.INT32],
    y: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
):
    """Control flow that both cores follow, an accumulator that one of them keeps."""
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="turns"):
        count = pl.read(n, [0])
        acc = pl.matmul(a, a)
        for i in pl.range(count):
            if i % 2 == 0:
                acc = pl.matmul_acc(acc, a, a)
        y[:] = pl.abs(acc)
    return y


def f16(*shape):
    return RNG.standard_normal(shape, dtype=np.float32).astype(np.float16)


def wide(a):
    return a.astype(np.float32)


def softmax_of(q, k):
    s = np.exp(0.1 * wide(q) @ wide(k).T)
    return (wide(s.astype(np.float16)) @ wide(k)) / s.sum(1, keepdims=True)


A32 = RNG.standard_normal((32, 32), dtype=np.float32)
CASES = {
    "act": (activated, [f16(32, 64), f16(64, 32)], (32, 32), lambda a, b: np.exp(0.05 * wide(a) @ wide(b))),
    "att": (attended, [f16(32, 64), f16(64, 64)], (32, 64), softmax_of),
    "rows": (lanes, [f16(17, 64), f16(64, 32)], (17, 32), lambda a, b: 3 * wide(a) @ wide(b)),
    "turns": (branches, [A32, np.array([5], np.int32)], (32, 32), lambda a, n: np.abs(4 * (a @ a))),
}


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", CASES)
def test_the_pair_computes_the_same(name, platform, tmp_path):  # L-67, L-170; SER-2, SER-3
    program, args, shape, reference = CASES[name]
    config = RunConfig(platform=platform)
    whole = np.zeros(shape, np.float32)
    program(*args, whole, config=config)
    np.testing.assert_allclose(whole, reference(*args), rtol=1e-2, atol=1e-2)
    lowered = program.lower(config=config)
    kinds = {f.name: f.func_type for f in lowered.functions.values()}
    assert kinds[f"{name}_aic"] == pl.FunctionType.AIC
    assert kinds[f"{name}_aiv"] == pl.FunctionType.AIV
    assert kinds[name] == pl.FunctionType.Group
    pair = np.zeros(shape, np.float32)
    ir.compile(pl.parse(str(lowered)), output_dir=tmp_path / "pair", platform=platform)(*args, pair)
    np.testing.assert_array_equal(pair, whole)


@pl.jit
def padded(a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 48], pl.FP32], y: pl.Out[pl.Tensor[[32, 48], pl.FP32]]):
    """A product that is valid in part crosses to a store that fits only that part."""
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="part"):
        left = pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
        right = pl.load(b, [0, 0], [64, 64], valid_shape=[64, 48], target_memory=pl.Mem.Mat)
        y = pl.store(pl.add(pl.move(pl.matmul(left, right), pl.Mem.Vec), 1.0), [0, 0], y)
    return y


@pytest.mark.parametrize("platform", PLATFORMS)
def test_text_of_a_stored_operand_reads_back(platform, tmp_path):  # L-144, L-145; SER-2
    a, b = (RNG.standard_normal(shape, dtype=np.float32) for shape in ((16, 64), (64, 64)))
    config = RunConfig(platform=platform)
    whole, again = np.zeros((32, 64), np.float32), np.zeros((32, 64), np.float32)
    kept(a, b, whole, config=config)
    turned = a @ b / 8 @ b / 8 @ b / 8
    np.testing.assert_allclose(whole, np.concatenate([turned, a + a @ b]), rtol=1e-3, atol=1e-3)
    text = str(kept.lower(config=config))
    ir.compile(pl.parse(text), output_dir=tmp_path / "again", platform=platform)(a, b, again)
    np.testing.assert_array_equal(again, whole)


@pytest.mark.parametrize("platform", PLATFORMS)
def test_text_of_a_product_that_is_valid_in_part_reads_back(platform, tmp_path):  # SER-2; 02 O-2105
    a, b = (RNG.standard_normal(shape, dtype=np.float32) for shape in ((32, 64), (64, 48)))
    config = RunConfig(platform=platform)
    whole, again = np.zeros((32, 48), np.float32), np.zeros((32, 48), np.float32)
    padded(a, b, whole, config=config)
    np.testing.assert_allclose(whole, a @ b + 1, rtol=1e-4, atol=1e-4)
    text = str(padded.lower(config=config))
    ir.compile(pl.parse(text), output_dir=tmp_path / "again", platform=platform)(a, b, again)
    np.testing.assert_array_equal(again, whole)


def test_text_of_transfers():  # L-67; 04 TXT-5
    text = str(attended.lower())
    assert "def att_aic(" in text and "def att_aiv(" in text
    for fragment in (
        "pl.tile.tpush_to_aiv(",
        "pl.tile.tpop_from_aic(split=0)",
        "pl.tile.tpush_to_aic(",
        "pl.tile.tpop_from_aiv(split=0)",
        "pl.tile.matmul(",
        "pl.tile.exp(",
        "pl.tile.store(",
        "pl.Tile[[32, 16], pl.FP16",
        "slot_num=2",
    ):
        assert fragment in text, fragment
    odd = str(lanes.lower())
    assert "pl.tile.tpush_to_aiv(c, split=3)" in odd and "tpop_from_aic(split=3)" in odd
    assert "aiv_id = pl.tile.get_subblock_idx()" in odd and '"split_aiv": True' in odd
    assert "tile.aiv_shard" not in odd and "pl.aiv_shard" not in odd


def test_vector_kernels_have_one_kind():  # L-67
    @pl.jit
    def three(x: pl.Tensor[[16, 32], pl.FP32], y: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        for i in pl.range(3):
            with pl.at(level=pl.Level.CORE_GROUP, name_hint="step"):
                y[:] = pl.add(pl.mul(x, 2.0), y)
        return y

    kinds = [f.func_type for f in three.lower().functions.values()]
    assert kinds.count(pl.FunctionType.AIV) == 1 and kinds.count(pl.FunctionType.Orchestration) == 1
    text = str(three.lower())
    assert "pl.tile.load(" in text and "pl.tile.add(" in text and "pl.tile.store(" in text


def test_slot_bytes():  # 01 L-172; 04 TXT-5
    @pl.jit
    def ring(a: pl.Tensor[[64, 64], pl.FP16], b: pl.Tensor[[64, 64], pl.FP16], y: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.cross_core_slot(slot_num=2)], name_hint="big"):
            y[:] = pl.exp(pl.matmul(a, b, out_dtype=pl.FP32))
        return y

    text = str(ring.lower())
    assert "slot_num=2" in text and f"size={2 * 64 * 64 * 4}" in text


def test_torch_code_of_a_pair():  # 04 OBS-17
    a, b = (torch.from_numpy(x) for x in CASES["act"][1])
    source = torch_codegen(activated.lower())
    assert "_cross_core_rt.push_to_" in source and "_cross_core_rt.pop_from_" in source
    names = {}
    exec(source, names)
    y = torch.zeros(32, 32)
    names["activated"](a, b, y)
    torch.testing.assert_close(y, torch.exp(0.05 * a.float() @ b.float()), rtol=1e-2, atol=1e-2)


def make_divided(mode, code, shape):
    """A hand-written pair whose vector function takes its lane's half, as its split attribute says."""
    half = [shape[0] // 2, shape[1]] if mode == pl.SplitMode.UP_DOWN else [shape[0], shape[1] // 2]

    @pl.program
    class Divided:
        @pl.function(type=pl.FunctionType.AIC)
        def mul(self, a: pl.Tensor[[32, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16]):
            pl.func_attr({"split": mode})
            peer = pl.import_peer_buffer(name="ring", peer_func="scale")
            pl.aic_initialize_pipe(peer, 0, dir_mask=1, slot_size=4096)
            c = pl.matmul(pl.load(a, [0, 0], [32, 64]), pl.load(b, [0, 0], [64, 32]))
            pl.tpush_to_aiv(c, split=code)

        @pl.function(type=pl.FunctionType.AIV)
        def scale(self, y: pl.Out[pl.Tensor[[32, 32], pl.FP32]]) -> pl.Tensor[[32, 32], pl.FP32]:
            pl.func_attr({"split": mode})
            ring = pl.reserve_buffer(name="ring", size=8 * 4096, base=pl.AUTO)
            pl.aiv_initialize_pipe(ring, 0, dir_mask=1, slot_size=4096)
            part: pl.Tile[half, pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=code)
            y = pl.store(pl.mul(part, 2.0), [0, 0], y)
            pl.tfree_to_aic(part)
            return y

        @pl.function(type=pl.FunctionType.Group)
        def pair(
            self, a: pl.Tensor[[32, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16],
            y: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
        ) -> pl.Tensor[[32, 32], pl.FP32]:  # fmt: skip
            pl.func_attr({"split": mode})
            self.mul(a, b)
            y = self.scale(y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, a: pl.Tensor[[32, 64], pl.FP16], b: pl.Tensor[[64, 32], pl.FP16],
            y: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
        ) -> pl.Tensor[[32, 32], pl.FP32]:  # fmt: skip
            y = self.pair(a, b, y)
            return y

    return Divided


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("mode,code", [(pl.SplitMode.UP_DOWN, 1), (pl.SplitMode.LEFT_RIGHT, 2)])
def test_hand_written_pair_with_split(mode, code, platform, tmp_path):  # 01 L-56; 02 O-2104, O-2105
    a, b = CASES["act"][1]
    y = np.zeros((32, 32), np.float32)
    program = make_divided(mode, code, (32, 32))
    ir.compile(program, output_dir=tmp_path / "out", platform=platform)(a, b, y)
    np.testing.assert_allclose(y, 2 * wide(a) @ wide(b), rtol=1e-3, atol=1e-3)
