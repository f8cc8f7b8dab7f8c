# SPDX-License-Identifier: Apache-2.0
"""What a report of the simulator says: both accesses of a race, every blocked wait, the index that left an object."""

import numpy as np
import pypto
import pypto.language as pl
import pypto.language.distributed as pld
import pytest
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions, last_report

WORLD = DistributedConfig(device_ids=[0, 1])


def line_of(text: str) -> int:
    """The line of this file that holds `text`."""
    with open(__file__, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if text in line)


def arrays(*shape: int):
    x = np.random.default_rng(5).standard_normal(shape).astype(np.float32)
    return x, np.zeros_like(x)


@pl.jit
def pushes(
    x: pl.Tensor[[16, 32], pl.FP32],
    out: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    data: pld.DistributedTensor[[16, 32], pl.FP32],
    peer: pl.Scalar[pl.INDEX],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.tile.remote_store(pl.load(x, [4, 0], [8, 32]), data, peer, [4, 0])
        out = pl.store(pl.load(data, [0, 0], [16, 32]), [0, 0], out)
    return out


@pl.jit.host
def racy(x: pl.Tensor[[2, 16, 32], pl.FP32], out: pl.Out[pl.Tensor[[2, 16, 32], pl.FP32]]):
    buf = pld.alloc_window_buffer([16, 32], dtype=pl.FP32)
    for r in pl.range(pld.world_size()):
        data = pld.window(buf, [16, 32], dtype=pl.FP32)
        pushes(x[r], out[r], data, 1 - r, device=r)


@pl.jit
def waits(
    x: pl.Tensor[[16, 32], pl.FP32],
    out: pl.Out[pl.Tensor[[16, 32], pl.FP32]],
    signal: pld.DistributedTensor[[2, 1], pl.INT32],
    me: pl.Scalar[pl.INDEX],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        pld.system.wait(signal, [me, 0], 3, cmp=pld.WaitCmp.Ge)
        out[:, :] = pl.mul(x, 2.0)
    return out


@pl.jit.host
def stuck(x: pl.Tensor[[2, 16, 32], pl.FP32], out: pl.Out[pl.Tensor[[2, 16, 32], pl.FP32]]):
    cells = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        signal = pld.window(cells, [2, 1], dtype=pl.INT32)
        waits(x[r], out[r], signal, r, device=r)


@pl.jit
def outside(x: pl.Tensor[[16, 32], pl.FP32], rows: pl.Tensor[[1], pl.INT32], out: pl.Out[pl.Tensor[[16, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        at = pl.cast(pl.read(rows, [0]), pl.INDEX)
        out = pl.store(pl.load(x, [at, 0], [8, 32]), [0, 0], out)
    return out


def test_a_race_names_both_accesses():  # 04 OBS-11, OBS-16
    with pytest.raises(pypto.RaceError) as caught:
        racy(*arrays(2, 16, 32), config=RunConfig(distributed_config=WORLD))
    diagnostic = caught.value.diagnostic
    read, write = sorted(diagnostic.accesses, key=lambda a: a.kind)
    assert (read.kind, write.kind) == ("read", "write") and {read.rank, write.rank} == {0, 1}
    assert read.line == line_of("pl.load(data, [0, 0]") and write.line == line_of("pld.tile.remote_store(pl.load(x, [4")
    for access in (read, write):
        assert access.file == __file__ and access.object == "buf" and access.kernel.startswith("pushes")
        assert access.core.startswith("AIV")
    assert [list(r) for r in write.range] == [[4, 12], [0, 32]] and write.bytes == 8 * 32 * 4
    assert "nothing orders the two accesses" in str(caught.value) and diagnostic.replay
    config = RunConfig(distributed_config=WORLD, sim=SimOptions(replay=diagnostic.replay))
    with pytest.raises(pypto.RaceError) as again:
        racy(*arrays(2, 16, 32), config=config)
    assert str(again.value) == str(caught.value)


def test_a_deadlock_lists_every_wait():  # 04 OBS-14, DST-11
    with pytest.raises(pypto.DeadlockError) as caught:
        stuck(*arrays(2, 16, 32), config=RunConfig(distributed_config=WORLD))
    blocked = caught.value.diagnostic.waits
    assert [w.rank for w in blocked] == [0, 1]
    for w in blocked:
        assert w.line == line_of("pld.system.wait(signal, [me, 0], 3") and w.file == __file__
        assert (w.object, list(w.cell), w.seen, w.comparison, w.needed) == ("cells", [w.rank, 0], 0, ">=", 3)
        assert f"rank {1 - w.rank} (blocked at" in " ".join(w.raisers)


def test_an_index_out_of_bounds_names_what_it_left():  # 04 OBS-12
    x, out = arrays(16, 32)
    outside(x, np.array([8], dtype=np.int32), out)
    np.testing.assert_array_equal(out[:8], x[8:])
    with pytest.raises(pypto.OutOfBoundsError) as caught:
        outside(x, np.array([9], dtype=np.int32), out)
    text, diagnostic = str(caught.value), caught.value.diagnostic
    assert isinstance(caught.value, IndexError)
    for part in ("'x'", "[16, 32]", "9", "17", f"test_report_contents.py:{line_of('pl.load(x, [at')}"):
        assert part in text, part
    assert diagnostic.kernel.startswith("outside") and diagnostic.core.startswith("AIV")


def test_collected_failures_do_not_raise():  # 04 OBS-10
    config = RunConfig(distributed_config=WORLD, sim=SimOptions(collect=True))
    racy(*arrays(2, 16, 32), config=config)
    report = last_report()
    assert not report.ok and len(report.to_dict()["diagnostics"]) >= 1
    with pytest.raises(pypto.RaceError):
        report.raise_if_failed()


@pl.jit
def reads_on(
    x: pl.Tensor[[6, 48], pl.FP32],
    out: pl.Out[pl.Tensor[[6, 48], pl.FP32]],
    data: pld.DistributedTensor[[6, 48], pl.FP32],
    signal: pld.DistributedTensor[[3, 1], pl.INT32],
    cells: pld.DistributedTensor[[4, 2], pl.INT32],
    peer: pl.Scalar[pl.INDEX],
    how: pl.Scalar[pl.INDEX],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        data = pl.store(pl.load(x, [0, 0], [6, 48]), [0, 0], data)
        if how == 0:
            data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Max)
            out = pl.store(pld.tile.remote_load(data, peer, [4, 28], [1, 8]), [4, 28], out)
        else:
            pl.write(cells, [2, 1], 1)
            pld.system.notify(cells, peer, [2, 1], 1, op=pld.NotifyOp.AtomicAdd)
            out = pl.store(pl.load(x, [0, 0], [6, 48]), [0, 0], out)
    return out


@pl.jit.host
def reads_on_host(
    x: pl.Tensor[[3, 6, 48], pl.FP32], out: pl.Out[pl.Tensor[[3, 6, 48], pl.FP32]], how: pl.Scalar[pl.INDEX]
):
    data_buf = pld.alloc_window_buffer([6, 48], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([3, 1], dtype=pl.INT32)
    cells_buf = pld.alloc_window_buffer([4, 2], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [6, 48], dtype=pl.FP32)
        signal = pld.window(signal_buf, [3, 1], dtype=pl.INT32)
        cells = pld.window(cells_buf, [4, 2], dtype=pl.INT32)
        reads_on(x[r], out[r], data, signal, cells, (r + 1) % 3, how, device=r)


@pytest.mark.parametrize(
    "how,place", [(0, "elements [4, 28:36], bytes 880 to 912"), (1, "elements [2, 1], bytes 20 to 24")]
)
def test_places_are_those_of_the_window(how, place):  # 03 X-0: not of the view that a lowered collective makes of it
    x, out = arrays(3, 6, 48)
    for slow in (0, 1, 2):  # either side comes first
        sim = SimOptions(rank_weights={slow: 5})
        with pytest.raises(RuntimeError, match="race") as caught:
            reads_on_host(
                x,
                out,
                how,
                config=RunConfig(
                    platform="a2a3sim", distributed_config=DistributedConfig(device_ids=[0, 1, 2]), sim=sim
                ),
            )
        assert place in str(caught.value)
