# SPDX-License-Identifier: Apache-2.0
"""What host-rail collectives refuse before anything runs (03 section 7.6), and that their neighbours are accepted."""

import importlib.util
import sys

import numpy as np
import pytest
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, last_report

P = 3
TEXT = """import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")


@pl.jit.incore
def stage_kernel(x: pl.Tensor[[ROWS, 24], DT], data: pld.DistributedTensor[[ROWS, 24], DT]):
    pld.tensor.put(data, pld.rank(pld.get_comm_ctx(data)), x)
    return data


@pl.jit
def stage(x: pl.Tensor[[ROWS, 24], DT], data: pld.DistributedTensor[[ROWS, 24], DT]):
    return stage_kernel(x, data)


@pl.jit.incore
def take_kernel(y: pl.Out[pl.Tensor[[ROWS, 24], DT]], data: pld.DistributedTensor[[ROWS, 24], DT]):
    pld.tensor.get(y, pld.rank(pld.get_comm_ctx(data)), data)
    return y


@pl.jit
def take(y: pl.Out[pl.Tensor[[ROWS, 24], DT]], data: pld.DistributedTensor[[ROWS, 24], DT]):
    return take_kernel(y, data)


@pl.jit.host
def program(x: pl.Tensor[[NR, ROWS, 24], DT], y: pl.Out[pl.Tensor[[NR, ROWS, 24], DT]]):
    data_buf = pld.alloc_window_buffer([ROWS, 24], dtype=DT)
    n = pld.world_size()
    SIGNAL
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [ROWS, 24], dtype=DT)
        stage(x[r], data, device=r)
    data = pld.window(data_buf, [ROWS, 24], dtype=DT)
    CALL
    for r in pl.range(pld.world_size()):
        result = pld.window(data_buf, [ROWS, 24], dtype=DT)
        take(y[r], result, device=r)
"""


SIGNAL = """signal_buf = pld.alloc_window_buffer([CELLS], dtype=pl.INT32)
    signal = pld.window(signal_buf, [CELLS], dtype=pl.INT32)"""


def program_of(tmp_path, call, cells, rows=1, dtype="pl.FP32"):
    text = TEXT.replace("CALL", call).replace("SIGNAL", SIGNAL.replace("CELLS", cells) if cells else "pass")
    text = text.replace("ROWS", str(rows)).replace("DT", dtype)
    path = tmp_path / "host_rejections_program.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module.program


def run(program, x, p=P):
    y = np.zeros_like(x)
    program(x, y, config=RunConfig(platform="a2a3sim", distributed_config=DistributedConfig(device_ids=list(range(p)))))
    return y


def given(rows=1, dtype=np.float32, p=P):
    return (np.random.default_rng(rows).standard_normal((p, rows, 24)) * 4).astype(dtype)


SUM = "data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum{})"
REJECTED = [
    ("C-51", SUM.format(", core_num=2"), "n", "rank-1 signal is valid only when one signal lane is required"),
    ("C-52", SUM.format(", core_num=4"), "n, 2", "must be at least the required lane count"),
    ("C-53", SUM.format(", core_num=2"), "n, n", "rank-2 signal shape[1] must be constant"),
    ("C-54", SUM.format(""), "2, 1", "signal shape[0]|participating device count"),
    ("C-54", SUM.format(""), "n - 1, 1", "signal shape[0]|participating device count"),
    ("C-54", SUM.format(""), "pld.world_size() // 2 + 1, 1", "signal shape[0]|participating device count"),
    ("C-56", SUM.format(", mode='ring', core_num=2"), "2 * n - 1, n", 'mode="ring" does not support core_num > 1'),
    ("C-56", SUM.format(", mode='ring'"), "4, 3", "must be at least 2*(NR-1) + 1"),
    ("C-56", SUM.format(", mode='ring'"), "2 * (n - 1), n", "must be at least 2*(NR-1) + 1"),
    ("C-56", SUM.format(", mode='ring'"), "2 * (pld.world_size() - 1), 3", "must be at least 2*(NR-1) + 1"),
    ("C-43", SUM.format(", mode='ring'"), "2 * n, n + 1", "must be the rank count (3)"),
    ("C-57", SUM.format(", core_num=73"), "n, 73", "exceeds the backend AIV core count"),
    ("C-28", SUM.format(", mode='tree'"), "n, 1", 'mode must be "ring" or "mesh"'),
    ("C-59", "data = pld.tensor.broadcast(data, signal, root=3)", "n, 1", "root"),
]


@pytest.mark.parametrize("rule,call,cells,said", REJECTED, ids=lambda v: v if isinstance(v, str) and "-" in v else "")
def test_refused(rule, call, cells, said, tmp_path):  # C-28, C-43, C-51 - C-54, C-56, C-57, C-59
    with pytest.raises(Exception) as caught:
        run(program_of(tmp_path, call, cells), given())
    for part in said.split("|"):
        assert part in str(caught.value)
    assert "host_rejections_program.py:" in str(caught.value)


@pytest.mark.parametrize("call", ["allgather(x, data, signal)", "all_to_all(x, data, signal)"])
def test_data_that_is_no_window(call, tmp_path):  # C-50
    with pytest.raises(Exception, match="must be a window-bound DistributedTensor"):
        run(program_of(tmp_path, f"data = pld.tensor.{call}", "n, 1", rows=P), given(P))


def test_one_buffer_for_two_operands(tmp_path):  # C-6
    with pytest.raises(Exception, match="input and target must be different window allocations"):
        run(program_of(tmp_path, "data = pld.tensor.all_to_all(data, data, signal)", "n, 1", rows=P), given(P))


@pytest.mark.parametrize("dtype,np_dtype", [("pl.INT8", np.int8), ("pl.INT64", np.int64)])
def test_dtypes_that_do_not_reduce(dtype, np_dtype, tmp_path):  # C-58
    with pytest.raises(Exception, match="target dtype must be FP16 or FP32 or BF16 or INT32, got " + dtype[3:].lower()):
        run(program_of(tmp_path, SUM.format(""), "n, 1", dtype=dtype), given(dtype=np_dtype))


@pytest.mark.parametrize("p", [1, 3, 4])
@pytest.mark.parametrize(
    "call,cells",
    [
        (SUM.format(""), "n"),
        (SUM.format(", core_num=2"), "n + 1, 3"),
        (SUM.format(", mode='ring'"), "2 * n - 1, n"),
        (SUM.format(", mode='ring'"), "2 * (pld.world_size() - 1) + 1, pld.world_size()"),
        ("data = pld.tensor.allreduce(data, op=pld.ReduceOp.Sum, core_num=3)", ""),
    ],
)
def test_signals_that_are_large_enough(call, cells, p, tmp_path):  # C-8, C-41 - C-43, C-51 - C-56
    x = given(p=p)
    y = run(program_of(tmp_path, call, cells), x, p)
    np.testing.assert_allclose(y, np.broadcast_to(x.sum(0, dtype=np.float64), x.shape), rtol=1e-5, atol=1e-5)
    assert last_report().diagnostics == []
