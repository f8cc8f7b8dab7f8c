# SPDX-License-Identifier: Apache-2.0
"""Cross-core transfers and barriers: types, codes, counts and what happens when they do not match (02 sections 21, 23)."""

import numpy as np
import pytest
from opkit import define
from pypto import ir
from pypto.runtime import RunConfig

FEED = """
        pl.tpush_to_aic(pl.mul(pl.load(x, [0, 0], [16, 16]), 2.0), split=0)
        p: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)
        out = pl.store(p, [0, 0], out)
        pl.tfree_to_aic(p)
"""
CUBE = """
        s: pl.Tile[[16, 16], pl.FP32, pl.Mem.Mat] = pl.tpop_from_aiv(split=0)
        p = pl.matmul(s, s)
        pl.tfree_to_aiv(s)
        pl.tpush_to_aiv(p, split=0)
"""
FEED_SETUP = """
        back = pl.reserve_buffer(name="c2v", size=2048, base=pl.AUTO)
        peer = pl.import_peer_buffer(name="v2c", peer_func="square")
        pl.aiv_initialize_pipe(back, peer, dir_mask=3, slot_size=1024, slot_num=2)
"""
CUBE_SETUP = """
        ring = pl.reserve_buffer(name="v2c", size=2048, base=pl.AUTO)
        peer = pl.import_peer_buffer(name="c2v", peer_func="feeder")
        pl.aic_initialize_pipe(peer, ring, dir_mask=3, slot_size=1024, slot_num=2)
"""
X = np.random.default_rng(301).standard_normal((16, 16)).astype(np.float32)


def transfer(
    tmp_path, feed=FEED, cube=CUBE, feed_setup=FEED_SETUP, cube_setup=CUBE_SETUP, shape=(16, 16), platform="a2a3sim"
):
    text = f"""
@pl.program
class Channel:
    @pl.function(type=pl.FunctionType.AIV)
    def feeder(self, x: pl.Tensor[{list(shape)}, pl.FP32], out: pl.Out[pl.Tensor[{list(shape)}, pl.FP32]]
               ) -> pl.Tensor[{list(shape)}, pl.FP32]:
{feed_setup.strip(chr(10))}
{feed.strip(chr(10))}
        return out

    @pl.function(type=pl.FunctionType.AIC)
    def square(self):
{cube_setup.strip(chr(10))}
{cube.strip(chr(10))}

    @pl.function(type=pl.FunctionType.Group)
    def pair(self, x: pl.Tensor[{list(shape)}, pl.FP32], out: pl.Out[pl.Tensor[{list(shape)}, pl.FP32]]
             ) -> pl.Tensor[{list(shape)}, pl.FP32]:
        self.square()
        out = self.feeder(x, out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[{list(shape)}, pl.FP32], out: pl.Out[pl.Tensor[{list(shape)}, pl.FP32]]
             ) -> pl.Tensor[{list(shape)}, pl.FP32]:
        out = self.pair(x, out)
        return out
"""
    x, out = np.resize(X, shape).astype(np.float32), np.zeros(shape, np.float32)
    compiled = ir.compile(define(text)["Channel"], output_dir=tmp_path / "o", dump_passes=False, platform=platform)
    compiled(x, out)
    return x, out


def test_both_ways(tmp_path):  # O-2101, O-2103
    x, out = transfer(tmp_path)
    np.testing.assert_allclose(out, 4 * x @ x, rtol=1e-4, atol=1e-4)


def test_spellings_of_pl_system(tmp_path):  # O-105, O-107, O-2105: shape and dtype, buffer.base, both namespaces
    feed = (
        FEED.replace("pl.tpush", "pl.system.tpush")
        .replace("pl.tfree", "pl.system.tfree")
        .replace(
            "p: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)",
            "p = pl.tile.tpop_from_aic(shape=[16, 16], dtype=pl.FP32, split=0, id=0)",
        )
    )
    cube = CUBE.replace("pl.tpush_to_aiv(p, split=0)", "pl.tile.tpush_to_aiv(p, split=0, id=0, span=None)")
    setup = (
        CUBE_SETUP.replace("peer, ring, dir_mask", "peer.base, ring.base, dir_mask")
        .replace("pl.reserve", "pl.system.reserve")
        .replace("pl.aic_", "pl.system.aic_")
    )
    x, out = transfer(tmp_path, feed, cube, cube_setup=setup)
    np.testing.assert_allclose(out, 4 * x @ x, rtol=1e-4, atol=1e-4)


def test_frees_may_be_delayed_and_grouped(tmp_path):  # O-2103, B-28: order is strict, frees need not follow at once
    feed = """
        for i in pl.range(2):
            pl.tpush_to_aic(pl.mul(pl.load(x, [i * 16, 0], [16, 16]), 2.0), split=0)
        p: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)
        q: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)
        out = pl.store(q, [16, 0], out)
        out = pl.store(p, [0, 0], out)
        pl.tfree_to_aic(p)
        pl.tfree_to_aic(q)
"""
    cube = """
        for _ in pl.range(2):
            s: pl.Tile[[16, 16], pl.FP32, pl.Mem.Mat] = pl.tpop_from_aiv(split=0)
            p = pl.matmul(s, s)
            pl.tfree_to_aiv(s)
            pl.tpush_to_aiv(p, split=0)
"""
    x, out = transfer(tmp_path, feed, cube, shape=(32, 16))
    np.testing.assert_allclose(out[:16], 4 * x[:16] @ x[:16], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(out[16:], 4 * x[16:] @ x[16:], rtol=1e-4, atol=1e-4)


CASES = [
    # O-2101
    ("O-2101", {"feed_setup": FEED_SETUP.replace("dir_mask=3", "dir_mask=4"), "cube_setup": CUBE_SETUP.replace("dir_mask=3", "dir_mask=4")}, ["dir_mask"]),
    ("O-2101", {"feed_setup": FEED_SETUP.replace("slot_num=2", "slot_num=1")}, ["feeder", "square", "slot_num"]),
    ("O-2101", {"feed_setup": FEED_SETUP.replace("slot_num=2", "slot_num=2, local_slot_num=1"), "platform": "a5sim"}, ["local_slot_num"]),  # O-310
    # O-2102
    ("O-2102", {"feed_setup": FEED_SETUP.replace('name="v2c"', 'name="v3c"')}, ["v3c"]),
    ("O-2102", {"feed_setup": FEED_SETUP.replace('peer_func="square"', 'peer_func="cube"')}, ["cube"]),
    ("O-2102", {"feed_setup": FEED_SETUP.replace("size=2048", "size=512")}, ["512", "1024"]),
    # O-2104
    ("O-2104", {"feed": FEED.replace("2.0), split=0", "2.0), split=5")}, ["split", "5"]),
    ("O-2104", {"feed": FEED.replace("tpop_from_aic(split=0)", "tpop_from_aic(split=1)")}, ["split"]),
    # O-2105
    ("O-2105", {"feed": FEED.replace("p: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)", "p = pl.tpop_from_aic(split=0)")}, ["tpop_from_aic"]),
    ("O-2105", {"feed": FEED.replace("p: pl.Tile[[16, 16], pl.FP32, pl.Mem.Vec] = pl.tpop_from_aic(split=0)", "p = pl.tpop_from_aic(shape=[16, 16], split=0)")}, ["shape", "dtype"]),
    # O-2106
    ("O-2106", {"cube": CUBE.replace("pl.FP32, pl.Mem.Mat", "pl.INT8, pl.Mem.Mat")}, ["int32", "fp32"]),
    # O-2107
    ("O-2107", {"feed": FEED.replace("        pl.tfree_to_aic(p)\n", "")}, ["feeder", "AIV"]),
    ("O-2107", {"cube": CUBE.replace("        pl.tpush_to_aiv(p, split=0)\n", "")}, ["feeder", "AIV"]),
    ("O-2107", {"feed": FEED.replace("        pl.tpush", "        pl.tpush_to_aic(pl.load(x, [0, 0], [16, 16]), split=0)\n        pl.tpush", 1)}, ["AIC"]),
    ("O-2107", {"cube": CUBE.replace("        pl.tfree_to_aiv(s)\n", "        pl.tfree_to_aiv(s)\n        pl.tfree_to_aiv(s)\n")}, ["tfree_to_aiv"]),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[f"{c[0]}-{k}" for k, c in enumerate(CASES)])
def test_mismatches(tmp_path, case):  # O-2101, O-2102, O-2103, O-2104, O-2105, O-2106, O-2107, B-29
    _, change, words = case
    with pytest.raises(Exception) as caught:
        transfer(tmp_path, **change)
    text = str(caught.value)
    assert "InternalError" not in type(caught.value).__name__
    for word in [*words, "case_"]:
        assert word in text, (word, text)


def mixed(body, rows=32):
    return f"""
@pl.jit
def f(a: pl.Tensor[[{rows}, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32], o: pl.Out[pl.Tensor[[{rows}, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        c = pl.matmul(pl.load(a, [0, 0], [{rows}, 32]), pl.load(b, [0, 0], [32, 32]))
{body}
    return o
"""


def test_unequal_lanes_under_none():  # O-2111, 01 L-126: names the first differing cell
    body = """
        for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):
            v = pl.add(pl.aiv_shard(c), pl.cast(lane, pl.FP32) if False else 0.0)
            back = pl.aic_gather(v)
        o = pl.store(pl.matmul(back, pl.load(b, [0, 0], [32, 32])), [0, 0], o)
"""
    good = body.replace("pl.cast(lane, pl.FP32) if False else 0.0", "1.0")
    a, b = (np.random.default_rng(k).standard_normal((32, 32)).astype(np.float32) for k in (302, 303))
    o = np.zeros_like(a)
    define(mixed(good))["f"](a, b, o, config=RunConfig(platform="a2a3sim"))
    np.testing.assert_allclose(o, (a @ b + 1) @ b, rtol=1e-3, atol=1e-3)
    bad = body.replace("pl.cast(lane, pl.FP32) if False else 0.0", "pl.cast(lane, pl.FP32)")
    with pytest.raises(Exception) as caught:
        define(mixed(bad))["f"](a, b, o, config=RunConfig(platform="a2a3sim"))
    assert "[0, 0]" in str(caught.value) and "lane" in str(caught.value)


@pytest.mark.parametrize("argument", ["split=3", "split=-1", "split=1, lane_stride=40", "split=1, lane_stride=0"])
def test_outlined_forms_check_their_codes(argument):  # O-2109
    body = f"        v = pl.tile.aiv_shard(c, {argument})\n        o = pl.store(v, [0, 0], o)"
    a = np.zeros((32, 32), np.float32)
    with pytest.raises(Exception, match=r"split|lane_stride"):
        define(mixed(body))["f"](a, a, a.copy(), config=RunConfig(platform="a2a3sim"))


@pytest.mark.parametrize("change,words", [
    ("if i == 3:\n                pl.system.syncall(core_type='aiv_only', mode='soft', gm_workspace=ws, used_cores=8)", ["syncall"]),
    ("if i != 3:\n                pl.system.syncall(core_type='aiv_only', mode='soft', gm_workspace=ws, used_cores=8)", ["syncall"]),
    ("pl.system.syncall(core_type='aiv_only', mode='soft', gm_workspace=ws, used_cores=7)", ["syncall", "7", "8"]),
])  # fmt: skip
def test_missing_participants(change, words):  # O-2302, O-2301, B-30: not a hang
    text = f"""
@pl.jit
def f(x: pl.Tensor[[8, 32], pl.FP32], tmp: pl.Out[pl.Tensor[[8, 32], pl.FP32]],
      ws: pl.InOut[pl.Tensor[[16], pl.INT32]], out: pl.Out[pl.Tensor[[8, 32], pl.FP32]]):
    for i in pl.spmd(8):
        tmp = pl.store(pl.mul(pl.load(x, [i, 0], [1, 32]), 2.0), [i, 0], tmp)
        {change.replace(chr(10) + "                ", chr(10) + "            ")}
        out = pl.store(pl.load(tmp, [i, 0], [1, 32]), [i, 0], out)
    return tmp, out
"""
    x = np.ones((8, 32), np.float32)
    with pytest.raises(Exception) as caught:
        define(text)["f"](x, x.copy(), np.zeros(16, np.int32), x.copy(), config=RunConfig(platform="a2a3sim"))
    for word in words:
        assert word in str(caught.value), (word, str(caught.value))
