# SPDX-License-Identifier: Apache-2.0
"""Hard barriers and hand-written channels: what is refused before a run, and what runs (01 L-117, L-169, L-173)."""

import importlib.util

import numpy as np
import pypto.language as pl
import pytest
from pypto import ir
from pypto.runtime import RunConfig

RNG = np.random.default_rng(17)
CORES = {"a2a3sim": 48, "a5sim": 72}


# A launch of blocks that each double their row, meet, and copy the row opposite to their own.
TEXT = """\
import pypto.language as pl


@pl.jit
def program(
    x: pl.Tensor[[80, 32], pl.FP32], t: pl.Out[pl.Tensor[[80, 32], pl.FP32]], o: pl.Out[pl.Tensor[[80, 32], pl.FP32]]
):
    n = WIDTH
    for i in pl.spmd(n, OPTIONSname_hint="reverse"):
        t = pl.store(pl.mul(pl.load(x, [i, 0], [1, 32]), 2.0), [i, 0], t)
        pl.system.syncall(core_type="CORES")
        o = pl.store(pl.load(t, [pl.get_block_num() - 1 - i, 0], [1, 32]), [i, 0], o)
    return t, o
"""


def launch(folder, width, sync_start, core_type="aiv_only"):
    path = folder / "launch.py"
    options = "sync_start=True, " if sync_start else ""
    path.write_text(TEXT.replace("WIDTH", str(width)).replace("OPTIONS", options).replace("CORES", core_type))
    spec = importlib.util.spec_from_file_location("launch", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.program


@pytest.mark.parametrize("platform", CORES)
@pytest.mark.parametrize("width", ["all", "pl.system.available_aiv_count()"])
def test_hard_barrier_over_all_cores(platform, width, tmp_path):  # L-120, L-169
    n = CORES[platform]
    x = RNG.standard_normal((80, 32), dtype=np.float32)
    t, o = np.zeros_like(x), np.zeros_like(x)
    launch(tmp_path, n if width == "all" else width, True)(x, t, o, config=RunConfig(platform=platform))
    np.testing.assert_array_equal(o[:n], 2 * x[:n][::-1])


@pytest.mark.parametrize("platform", CORES)
@pytest.mark.parametrize(
    "rows,sync_start,core_type,fragments",
    [
        (8, True, "aiv_only", ["requires the SPMD launch to fill all", "8 block(s)", 'Use mode="soft"']),
        ("all", False, "aiv_only", ["requires the SPMD launch to set sync_start=True"]),
        ("all", True, "mix", ["can never complete", "no cube cores"]),
        ("all", True, "aic_only", ["can never complete", "no cube cores"]),
        ("more", True, "aiv_only", ["sync_start", "blocks"]),
    ],
)
def test_hard_barrier_refused(platform, rows, sync_start, core_type, fragments, tmp_path):  # L-117, L-169
    rows = {"all": CORES[platform], "more": CORES[platform] + 1}.get(rows, rows)
    with pytest.raises(ValueError) as caught:
        launch(tmp_path, rows, sync_start, core_type).compile(config=RunConfig(platform=platform))
    for fragment in fragments:
        assert fragment in str(caught.value)


def test_query_without_sync_start(tmp_path):  # L-169
    with pytest.raises(ValueError, match="set sync_start=True"):
        launch(tmp_path, "pl.system.available_aiv_count()", False).compile()


def make_channel(*, initialise=True, reserve=True, imported=True, push=True, free=True, shape=(16, 16)):
    """The vector side doubles a tile, the cube side multiplies it; each flag leaves out one step."""

    @pl.program
    class Channel:
        @pl.function(type=pl.FunctionType.AIV)
        def feeder(self, x: pl.Tensor[[16, 16], pl.FP32]):
            if imported:
                peer = pl.import_peer_buffer(name="ring", peer_func="mul")
                pl.aiv_initialize_pipe(0, peer, dir_mask=2, slot_size=1024)
            else:
                pl.aiv_initialize_pipe(0, 0, dir_mask=2, slot_size=1024)
            if push:
                pl.tpush_to_aic(pl.mul(pl.load(x, [0, 0], [16, 16]), 2.0), split=0)

        @pl.function(type=pl.FunctionType.AIC)
        def mul(
            self, w: pl.Tensor[[16, 16], pl.FP32], o: pl.Out[pl.Tensor[[16, 16], pl.FP32]]
        ) -> pl.Tensor[[16, 16], pl.FP32]:
            if initialise:
                if reserve:
                    ring = pl.reserve_buffer(name="ring", size=8 * 1024, base=pl.AUTO)
                    pl.aic_initialize_pipe(0, ring, dir_mask=2, slot_size=1024)
                else:
                    pl.aic_initialize_pipe(0, 0, dir_mask=2, slot_size=1024)
            s: pl.Tile[shape, pl.FP32, pl.Mem.Mat] = pl.tpop_from_aiv(split=0)
            p = pl.matmul(s, pl.load(w, [0, 0], [shape[1], 16]))
            if free:
                pl.tfree_to_aiv(s)
            o = pl.store(p, [0, 0], o)
            return o

        @pl.function(type=pl.FunctionType.Group)
        def pair(
            self, x: pl.Tensor[[16, 16], pl.FP32], w: pl.Tensor[[16, 16], pl.FP32],
            o: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
        ) -> pl.Tensor[[16, 16], pl.FP32]:  # fmt: skip
            self.feeder(x)
            o = self.mul(w, o)
            return o

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self, x: pl.Tensor[[16, 16], pl.FP32], w: pl.Tensor[[16, 16], pl.FP32],
            o: pl.Out[pl.Tensor[[16, 16], pl.FP32]],
        ) -> pl.Tensor[[16, 16], pl.FP32]:  # fmt: skip
            o = self.pair(x, w, o)
            return o

    return Channel


@pytest.mark.parametrize("platform", CORES)
def test_channel_runs(platform, tmp_path):  # L-173
    x, w = (RNG.standard_normal((16, 16), dtype=np.float32) for _ in range(2))
    o = np.zeros_like(x)
    ir.compile(make_channel(), output_dir=tmp_path / "out", platform=platform)(x, w, o)
    np.testing.assert_allclose(o, (2 * x) @ w, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "left_out,fragments",
    [
        ({"initialise": False}, ["'mul'", "has no 'system.aic_initialize_pipe' call"]),
        ({"reserve": False}, ["'mul'", "0 reserve_buffer"]),
        ({"imported": False}, ["'feeder'", "0 import_peer_buffer"]),
        ({"push": False}, ["'mul' pops", "'feeder' pushes nothing"]),
        ({"free": False}, ["'mul'", "never frees a slot", "pl.tfree_to_aiv"]),
        ({"shape": (16, 8)}, ["'feeder' pushes [16, 16] fp32", "'mul' pops [16, 8] fp32"]),
    ],
    ids=lambda v: next(iter(v)) if isinstance(v, dict) else "",
)
def test_channel_refused(left_out, fragments, tmp_path):  # L-173
    with pytest.raises(ValueError) as caught:
        ir.compile(make_channel(**left_out), output_dir=tmp_path / "out")
    for fragment in fragments:
        assert fragment in str(caught.value)
