# SPDX-License-Identifier: Apache-2.0
"""Texts with which `lower` refuses kernels of both cores: pipes that do not fit, cuts that the lanes cannot share."""

import pypto.language as pl
import pytest


def oversized_pipe():  # 01 L-172
    """Eight slots of 128 KiB in Mat, beside a right operand of 16 KiB."""

    @pl.jit
    def k(
        x: pl.Tensor[[128, 512], pl.BF16], w: pl.Tensor[[512, 16], pl.BF16], o: pl.Out[pl.Tensor[[128, 16], pl.FP32]]
    ):
        with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.cross_core_slot(slot_num=8)]):
            v = pl.add(pl.load(x, [0, 0], [128, 512]), 1.0)
            o = pl.store(pl.matmul(v, pl.load(w, [0, 0], [512, 16], target_memory=pl.Mem.Mat)), [0, 0], o)
        return o

    return k


def oversized_pipe_of_lanes():
    @pl.jit
    def k(
        x: pl.Tensor[[128, 512], pl.BF16], w: pl.Tensor[[512, 16], pl.BF16], o: pl.Out[pl.Tensor[[128, 16], pl.FP32]]
    ):
        with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.cross_core_slot(slot_num=8)]):
            for aiv_id in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                joined = pl.aic_gather(pl.add(pl.load(x, [aiv_id * 64, 0], [64, 512]), 1.0))
            o = pl.store(pl.matmul(joined, pl.load(w, [0, 0], [512, 16], target_memory=pl.Mem.Mat)), [0, 0], o)
        return o

    return k


def unplaceable_rows():  # 01 L-127, L-129
    @pl.jit
    def k(
        a: pl.Tensor[[16, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32], r: pl.Tensor[[16, 32], pl.FP32],
        o: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ):  # fmt: skip
        with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):
            o[:] = pl.add(pl.set_validshape(pl.matmul(a, b), 13, 32), r)
        return o

    return k


def unplaceable_rows_of_lanes():
    @pl.jit
    def k(
        a: pl.Tensor[[16, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32], r: pl.Tensor[[16, 32], pl.FP32],
        o: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    ):  # fmt: skip
        with pl.at(level=pl.Level.CORE_GROUP):
            p = pl.set_validshape(pl.matmul(a, b), 13, 32)
            for aiv_id in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                v = pl.add(pl.aiv_shard(p), r[aiv_id * 8 : aiv_id * 8 + 8, :])
                o = pl.assemble(o, v, [aiv_id * 8, 0])
        return o

    return k


def partial_gather():  # 02 O-2111
    @pl.jit
    def k(a: pl.Tensor[[16, 32], pl.FP32], b: pl.Tensor[[32, 32], pl.FP32], o: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            right = pl.load(b, [0, 0], [32, 32], target_memory=pl.Mem.Mat)
            for aiv_id in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                joined = pl.aic_gather(pl.exp(pl.load(a, [aiv_id * 8, 0], [8, 32], valid_shape=[5, 32])))
            o = pl.store(pl.matmul(joined, right), [0, 0], o)
        return o

    return k


def make_sharded(rows, cols, split):
    """A product of [16, 256] of which a part is valid."""

    @pl.jit
    def k(a: pl.Tensor[[16, 64], pl.FP16], b: pl.Tensor[[64, 256], pl.FP16], o: pl.Out[pl.Tensor[[16, 256], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            p = pl.set_validshape(pl.matmul(a, b, out_dtype=pl.FP32), rows, cols)
            for aiv_id in pl.split_aiv(2, mode=split):
                o = pl.assemble(o, pl.exp(pl.aiv_shard(p)), [aiv_id * 8, 0])
        return o

    return k


def extent_of_lanes_at_run_time():  # 02 O-2110
    @pl.jit
    def k(
        a: pl.Tensor[[16, 64], pl.FP16], b: pl.Tensor[[64, 256], pl.FP16], n: pl.Tensor[[1], pl.INT32],
        o: pl.Out[pl.Tensor[[16, 256], pl.FP32]],
    ):  # fmt: skip
        with pl.at(level=pl.Level.CORE_GROUP):
            rows = pl.cast(pl.read(n, [0]), pl.INDEX)
            p = pl.set_validshape(pl.matmul(a, b, out_dtype=pl.FP32), rows, 32)
            for aiv_id in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):
                o = pl.assemble(o, pl.exp(pl.aiv_shard(p)), [aiv_id * 8, 0])
        return o

    return k


PIPE = [
    "Mat buffer usage (1064960 bytes) exceeds platform limit (524288 bytes)",
    "The first 1048576 bytes of that space are reserved by system.reserve_buffer",
    "cross-core pipe ring",
    "pl.cross_core_slot(slot_num=N)",
]
ROWS = ["leaves the two AIV lanes 8 and 5 cells", "independently split value", "pl.tile.set_validshape", "16 / 15"]
COLUMNS = [
    "LEFT_RIGHT splits the column axis",
    "valid column extent (32 of 256)",
    "mode=pl.SplitMode.UP_DOWN",
    "pl.set_validshape",
]
BOTH = ["per-lane row extent", "pl.set_validshape"]
REFUSED = {
    "pipe": (oversized_pipe, PIPE),
    "pipe of lanes": (oversized_pipe_of_lanes, PIPE),
    "rows": (unplaceable_rows, ROWS),
    "rows of lanes": (unplaceable_rows_of_lanes, ROWS),
    "gather": (
        partial_gather,
        ["tile.aic_gather re-joins the two lanes positionally", "(5 of 8)", "pl.fillpad"],
    ),
    "columns": (lambda: make_sharded(16, 32, pl.SplitMode.LEFT_RIGHT), COLUMNS),
    "rows and columns": (lambda: make_sharded(15, 32, pl.SplitMode.UP_DOWN), BOTH),
    "rows at run time and columns": (extent_of_lanes_at_run_time, BOTH),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_by_lower(name):  # 04 TXT-6; 01 L-127; 02 O-2110, O-2111
    make, fragments = REFUSED[name]
    program = make()
    with pytest.raises(ValueError) as caught:
        program.lower()
    for fragment in fragments:
        assert fragment in str(caught.value)
