# SPDX-License-Identifier: Apache-2.0
"""The matrix tile choice (04 section 23)."""

from __future__ import annotations

import pytest
from pypto.passes import l0_tile_chooser as chooser
from pypto.pypto_core import passes

DOUBLE = {"yes": True, "no": False}
ROWS = """
4 | 16,128,128 | any | 16,128,64 | output | no
4 | 64,192,128 | any | 64,128,64 | output | no
4 | 64,384,256 | any | 64,256,32 | output | no
4 | 128,384,64 | any | 128,64,64 | output | no
4 | 160,64,160 | yes | 80,128,64 | output | yes
4 | 144,64,144 | yes | 48,128,64 | output | yes
4 | 256,64,256 | yes | 32,256,64 | B | yes
4 | 448,64,448 | yes | 112,128,64 | output | yes
4 | 320,64,320 | yes | 64,128,64 | output | yes
4 | 384,64,256 | yes | 32,256,64 | B | yes
4 | 16,64,256 | yes | 16,128,64 | output, holds A | yes
4 | 256,64,16 | yes | 128,16,64 | output, holds B | yes
2 | 256,64,256 | yes | 64,256,64 | output | yes
2 | 256,128,544 | no | 256,128,128 | A | no
2 | 48,352,96 | yes | 48,32,352 | A | yes
2 | 192,64,512 | no | 64,512,64 | B | no
2 | 64,80,256 | yes | 32,256,80 | B | yes
""".strip().splitlines()


def config(nbytes, m, k, n, double):
    c = chooser.L0TileConfig()
    c.M, c.N, c.K = m, n, k
    c.l0a_bytes, c.l0b_bytes, c.l0c_bytes = 65536, 65536, 131072
    c.bytes_a = c.bytes_b = nbytes
    c.allow_a_stationary = c.allow_b_stationary = c.allow_k_boundary = True
    c.allow_double_buffer_c = double
    return c


@pytest.mark.parametrize("row", ROWS)
def test_answers(row):
    # TIL-1 to TIL-8, the table of section 23
    nbytes, mkn, allowed, tile, regime, double = (cell.strip() for cell in row.split("|"))
    kinds = {
        "output": chooser.Stationarity.OutputStationary,
        "A": chooser.Stationarity.AStationary,
        "B": chooser.Stationarity.BStationary,
    }
    for allow in (True, False) if allowed == "any" else (DOUBLE[allowed],):
        r = chooser.choose_l0_tile(config(int(nbytes), *map(int, mkn.split(",")), allow))
        assert (r.m, r.n, r.k) == tuple(map(int, tile.split(",")))
        assert r.stationarity is kinds[regime.split(",")[0]]
        assert r.double_buffer_c is DOUBLE[double]
        if "holds" in regime:
            assert r.os_holds_a is regime.endswith("A")


def test_fields():
    c = chooser.L0TileConfig()
    assert (c.M, c.bytes_a, c.bytes_c, c.min_m, c.align_k, c.box_align_m, c.max_n) == (0, 2, 4, 16, 16, 1, 0)
    assert (c.bw_a, c.bw_b, c.bw_drain, c.mad_head, c.mad_fp32_passes) == (129.7, 85.4, 118.0, 21, 2)
    with pytest.raises(AttributeError):
        c.m = 3
    with pytest.raises(TypeError):
        chooser.L0TileConfig(3)
    assert passes.l0_tile_chooser is chooser


def test_estimates():
    # TIL-11
    r = chooser.choose_l0_tile(config(4, 16, 128, 128, False))
    assert r.padded_compute_volume == 16 * 128 * 128 and r.perf_hint == ""
    assert r.estimated_traffic_bytes == 4 * 16 * 128 + 4 * 128 * 128 + 4 * 16 * 128
    assert isinstance(r.estimated_cost_cycles, int) and r.estimated_cost_cycles > 0


@pytest.mark.parametrize("name", ["M", "N", "K", "l0a_bytes", "l0b_bytes", "l0c_bytes", "bytes_a", "align_m"])
def test_not_positive(name):
    # TIL-8
    c = config(2, 64, 64, 64, False)
    setattr(c, name, 0)
    with pytest.raises(ValueError, match=name):
        chooser.choose_l0_tile(c)


def test_nothing_fits():
    c = config(4, 64, 64, 64, False)
    c.l0a_bytes = 64
    with pytest.raises(ValueError):
        chooser.choose_l0_tile(c)
