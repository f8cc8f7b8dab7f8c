# SPDX-License-Identifier: Apache-2.0
"""Entries of `optimizations=[...]`: spellings, what they change in the lowered program, results, rejections."""

import re

import numpy as np
import pypto.language as pl
import pytest
from pypto.language.parser import diagnostics as d
from pypto.runtime import RunConfig
from rejections import define

KERNEL = """
SLOTS = 3

@pl.jit
def k(a: pl.Tensor[[32, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32], o: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="mixed", optimizations={}):
        c = pl.matmul(a, b)
        o[:] = pl.maximum(pl.mul(c, 0.5), 0.0)
    return o
"""


def kernel(folder, entries, text=KERNEL):
    return define(folder, text.format(entries))["k"]


def slots(text):
    return {int(n) for n in re.findall(r"slot_num=(\d+)", text)}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "entries,count",
    [
        ("[pl.optimizations.split(pl.SplitMode.LEFT_RIGHT)]", None),
        ("[pl.split(mode=pl.SplitMode.NONE)]", None),
        ("[pl.cross_core_slot(slot_num=6)]", 6),
        ("[pl.optimizations.cross_core_slot(slot_num=SLOTS)]", 3),
        ("[pl.split(pl.SplitMode.NONE, slot_num=5)]", 5),
        ("[pl.split(pl.SplitMode.UP_DOWN), pl.cross_core_slot(slot_num=SLOTS * 2)]", 6),
    ],
)
def test_entries(tmp_path, entries, count):  # L-114, L-172
    """The slots of the lowered program, and a result that no entry changes."""
    k = kernel(tmp_path, entries)
    text = k.lower().as_python()
    if count is not None:
        assert slots(text) == {count}, text
    rng = np.random.default_rng(114)
    a, b = rng.standard_normal((32, 64), np.float32), rng.standard_normal((64, 32), np.float32)
    for platform in ("a2a3sim", "a5sim"):
        o = np.full((32, 32), 7, np.float32)
        k(a, b, o, config=RunConfig(platform=platform))
        np.testing.assert_allclose(o, np.maximum(a @ b * 0.5, 0), rtol=1e-4, atol=1e-4)


def test_slot_count_of_split_is_deprecated(tmp_path):  # L-114
    with pytest.warns(DeprecationWarning, match="cross_core_slot"):
        kernel(tmp_path, "[pl.split(pl.SplitMode.NONE, slot_num=5)]").lower()


def test_no_division_is_as_no_entry(tmp_path):  # L-114, L-129
    """What cannot be cut where its valid part can be shared is refused, unless no division is asked for."""
    text = """
@pl.jit
def k(a: pl.Tensor[[16, 64], pl.FP32], b: pl.Tensor[[64, 32], pl.FP32], r: pl.Tensor[[16, 32], pl.FP32],
      o: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, optimizations=[{}]):
        c = pl.set_validshape(pl.matmul(pl.load(a, [0, 0], [16, 64]), pl.load(b, [0, 0], [64, 32])), 13, 32)
        o = pl.store(pl.add(c, pl.load(r, [0, 0], [16, 32])), [0, 0], o)
    return o
"""
    with pytest.raises(ValueError, match="8 and 5 cells"):
        kernel(tmp_path, "pl.split(pl.SplitMode.UP_DOWN)", text).lower()
    rng = np.random.default_rng(7)
    a, b, r = (rng.standard_normal(s).astype(np.float32) for s in ((16, 64), (64, 32), (16, 32)))
    for entries in ("", "pl.split(pl.SplitMode.NONE)"):
        o = np.full((16, 32), 7, np.float32)
        kernel(tmp_path, entries, text)(a, b, r, o)
        np.testing.assert_allclose(o[:13], (a @ b + r)[:13], rtol=1e-4, atol=1e-4)
        assert (o[13:] == 7).all()


@pytest.mark.parametrize(
    "entries,fragment",
    [
        ("[pl.split()]", "takes exactly 1 positional argument"),
        ("[pl.split(pl.SplitMode.NONE, pl.SplitMode.NONE)]", "takes exactly 1 positional argument"),
        ("[pl.split(1)]", "pl.SplitMode"),
        ("[pl.split(pl.SplitMode.NONE, foo=1)]", "foo"),
        ("[pl.cross_core_slot(4)]", "takes no positional arguments"),
        ("[pl.cross_core_slot(4, slot_num=4)]", "takes no positional arguments"),
        ("[pl.cross_core_slot()]", "requires the slot_num= keyword argument"),
        ("[pl.cross_core_slot(slot_num=0)]", "must be positive"),
        ("[pl.cross_core_slot(slot_num=-2)]", "must be positive"),
        ("[pl.cross_core_slot(slot_num=1.5)]", "slot_num"),
        ("[pl.cross_core_slot(slot_num=2, foo=1)]", "foo"),
        ("[pl.split]", "optimizations"),
        ("[3]", "optimizations"),
        ("pl.split(pl.SplitMode.NONE)", "optimizations"),
    ],
)
def test_rejected(tmp_path, entries, fragment):  # L-114
    with pytest.raises(d.ParserSyntaxError, match=re.escape(fragment)) as info:
        kernel(tmp_path, entries).lower()
    assert re.search(r"case_\d+\.py:8:", str(info.value)), str(info.value)


def test_entries_are_written_at_the_use(tmp_path):  # L-114
    held = "HELD = [pl.SplitMode.NONE]\n" + KERNEL
    with pytest.raises(d.ParserSyntaxError, match="optimizations"):
        kernel(tmp_path, "HELD", held).lower()
    assert pl.optimizations.split is pl.split and pl.optimizations.cross_core_slot is pl.cross_core_slot


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("mode", ["UP_DOWN", "LEFT_RIGHT"])
@pytest.mark.parametrize("rows,cols", [(32, 32), (17, 48), (16, 24)])
def test_divided_kernels_compute_what_whole_ones_do(tmp_path, mode, rows, cols):  # L-129
    """Valid parts of a product, reduced along the axis that is not cut, against NumPy and the undivided kernel."""
    n, m = rows - 3, cols - 5
    text = f"""
@pl.jit
def k(a: pl.Tensor[[{rows}, 64], pl.FP16], b: pl.Tensor[[64, {cols}], pl.FP16],
      o: pl.InOut[pl.Tensor[[{rows}, {cols}], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.{{}})]):
        c = pl.set_validshape(pl.matmul(a, b, out_dtype=pl.FP32), {n}, {m})
        o[0:{rows}, 0:{cols}] = pl.mul(pl.exp(pl.mul(c, -0.25)), c)
    return o
"""
    rng = np.random.default_rng([129, rows])
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((rows, 64), (64, cols)))
    got = {}
    for one in ("NONE", mode):
        got[one] = np.full((rows, cols), 5, np.float32)
        kernel(tmp_path, one, text)(a, b, got[one])
    np.testing.assert_array_equal(got[mode], got["NONE"])
    c = a.astype(np.float64) @ b.astype(np.float64)
    want = np.full((rows, cols), 5.0)
    want[:n, :m] = (np.exp(-0.25 * c) * c)[:n, :m]
    np.testing.assert_allclose(got[mode], want, rtol=1e-4, atol=1e-4)
