# SPDX-License-Identifier: Apache-2.0
"""The words 03 quotes for operands of moves and collectives on both rails, and for windows whose domain is not known."""

import re

import pytest
from pypto import CompileError
from rows import COPY, arrays, compile_for, line_of, text_of

HERE = "  # <- here"


def move(line, **more):
    return {"kernel": f"t = pl.load(x, [0, 0], [1, 64])\n{line}{HERE}\n{COPY}", **more}


KERNEL = [
    # O-1, O-30, O-33
    ("tile.remote_load(x, 0, [0, 0], [1, 64])", ["expects a DistributedTensor target"]),
    ("tile.remote_load(data, 0, [0, 32], [1, 64])", ["reads past the end of dimension"]),
    ("tile.remote_load(data, 0, [1, 0], [1, 64])", ["reads past the end of dimension 0"]),
    ("tile.remote_load(data, 0, [0, 32], [1, 64], valid_shape=[1, 33])", ["reads past the end of dimension 1"]),
    ("tile.remote_load(data, 0, [0, 0], [1, 64], valid_shape=[1, 65])", ["valid_shape"]),  # O-32
    ("tile.remote_load(data, 0, [0, 0], [1, 64], valid_shape=[64])", ["valid_shape"]),
    ("tile.remote_load(data, 0, [0, 0], [1, 0])", ["shape", "0"]),
    ("tile.remote_load(data, 0, [0, 0], [1, me])", ["shape"]),
    # O-35, O-38
    ("tile.remote_store(t, data, 0, [0, 1])", ["push exceeds the peer's target region in dimension 1"]),
    ("tile.remote_store(x, data, 0, [0, 0])", ["pld.tensor.remote_store"]),
    ("tensor.remote_store(t, data, 0, [0, 0])", ["pld.tile.remote_store"]),
    ("tile.remote_store(t, x, 0, [0, 0])", ["DistributedTensor"]),
    # O-51, O-53 - O-56
    ("tensor.put(x, 0, data)", ["DistributedTensor dst"]),
    ("tensor.get(data, 0, x)", ["DistributedTensor src"]),
    ("tensor.get(signal, 0, data)", ["same element type"]),
    ("tensor.put(data, 0, x[:, 0:32])", ["shape"]),
    ("tensor.put(data, 0, x, [0, 0], [0, 0])", ["must be provided together"]),
    ("tensor.get(data, 0, data, shape=[1, 64])", ["must be provided together"]),
    ("tensor.put(data, 0, x, [0, -1], [0, 0], [1, 8])", ["dst_offsets dimension 1 must be non-negative"]),
    ("tensor.put(data, 0, x, [0, 0], [-2, 0], [1, 8])", ["src_offsets dimension 0 must be non-negative"]),
    ("tensor.get(data, 0, data, [0, 60], [0, 0], [1, 8])", ["dst subregion dimension 1 exceeds dst shape"]),
    ("tensor.get(data, 0, data, [0, 0], [1, 0], [1, 8])", ["src subregion dimension 0 exceeds src shape"]),
    # O-58
    ("tensor.put(data, 0, x, chunk_rows=True)", ["chunk_rows"]),
    ("tensor.put(data, 0, x, chunk_cols=1.5)", ["chunk_cols"]),
    ("tensor.get(data, 0, data, chunk_cols=-3)", ["chunk_cols", "-3"]),
    (
        "tensor.get(data, 0, data, [0, 0], [0, 0], [n, 8])",
        ["a dynamic leading transfer dim needs a static chunk_rows"],
    ),
    ("tensor.get(data, 0, data, [0, 0], [0, 0], [1, n])", ["chunk_cols"]),
    (
        "tensor.get(data, 0, data, chunk_rows=1, pipeline=True)",
        ["pipeline=True requires both chunk_rows>0 and chunk_cols>0"],
    ),
    # D-4, O-20
    ("tensor.allreduce(data, signal, op=7)", ["ReduceOp.Sum, Max, Min, or Prod"]),
    ("tensor.reduce_scatter(data, signal, op='sum')", ["ReduceOp.Sum, Max, Min, or Prod"]),
    ("system.notify(x, 0, [0, 0], 1, op=pld.NotifyOp.Set)", ["DistributedTensor"]),
    ("system.wait(x, [0, 0], 1, cmp=pld.WaitCmp.Ge)", ["DistributedTensor"]),
    ("system.wait(signal, [0, 0], 1)", ["cmp"]),
    ("system.notify(signal, 0, [0, 0], 1)", ["op"]),
    ("system.notify(signal, 0, [0, 0], 1, op=5)", ["AtomicAdd", "Set"]),
    # O-11, O-14
    ("system.rank(x)", ["CommCtx"]),
    ("system.nranks(data)", ["CommCtx"]),
    ("system.get_comm_ctx(x)", ["DistributedTensor"]),
    # C-5, C-6, C-20 - C-28
    ("tensor.broadcast(data, None, root=0)", ["signal cannot be None"]),
    ("tensor.allreduce(data, None)", ["signal cannot be None"]),
    ("tensor.reduce_scatter(data, None)", ["signal cannot be None"]),
    ("tensor.barrier(x)", ["DistributedTensor"]),
    ("tensor.broadcast(data, signal, root=-1)", ["root"]),
    ("tensor.broadcast(data, signal, root=me)", ["root"]),
    ("tensor.allreduce(data, signal, core_num=0)", ["core_num"]),
    ("tensor.allreduce(data, signal, core_num=True)", ["core_num"]),
    ("tensor.allreduce(data, signal, mode='mess')", ['mode must be "ring" or "mesh"']),
    ("tensor.allgather(x, data, signal)", ["X-30", "'data' shape[0] is 1, at least 2"]),
    ("tensor.all_to_all(x, data, data)", ["INT32"]),
    # D-2, O-3
    ("tensor.allred(data, signal)", ["Unknown distributed operation 'pld.tensor.allred'", "pld.tensor.allreduce"]),
    ("mem.put(data, 0, x)", ["'pld.mem.put'", "system", "tensor", "tile"]),
    ("frobnicate(data)", ["Unknown distributed operation 'pld.frobnicate'"]),
    ("tensor.put(data, 0, x, None, None, None, 1)", ["put"]),  # the parameters after * are keyword-only
    ("system.notify(signal, 0, [0, 0], 1, 0)", ["notify"]),
]


@pytest.mark.parametrize("call,names", KERNEL, ids=[c for c, _ in KERNEL])
def test_in_a_kernel(call, names, load_source):
    text = text_of(**move(f"pld.{call}"))
    with pytest.raises(Exception) as caught:
        compile_for(load_source(text).program, arrays(2), 2)
    said = str(caught.value)
    assert f".py:{line_of(text)}:" in said, said
    for name in names:
        assert name in said, (name, said)


WINDOWS = {
    "one": "[pld.world_size()], dtype=pl.INT32",
    "two": "[pld.world_size(), 2], dtype=pl.INT32",
    "ring": "[2 * pld.world_size() - 1, pld.world_size()], dtype=pl.INT32",
    "few": "[2, 2], dtype=pl.INT32",
    "short": "[1], dtype=pl.INT32",
    "fewer": "[pld.world_size() - 1, 1], dtype=pl.INT32",
    "halved": "[pld.world_size() // 2], dtype=pl.INT32",
    "tight": "[2 * (pld.world_size() - 1), pld.world_size()], dtype=pl.INT32",
    "wide": "[2 * pld.world_size(), pld.world_size() + 1], dtype=pl.INT32",
    "free": "[pld.world_size(), pld.world_size()], dtype=pl.INT32",
    "rows": "[2, 64], dtype=pl.FP32",
    "more": "[2, 64], dtype=pl.FP32",
    "small": "[1, 64], dtype=pl.INT16",
    "halves": "[2, 64], dtype=pl.INT16",
    "other": "[2, 64], dtype=pl.INT16",
    "sent": "[2, 1], dtype=pl.INT32",
    "came": "[2, 1], dtype=pl.INT32",
    "col": "[2, 1], dtype=pl.INT32",
    "data": "[1, 64], dtype=pl.FP32",
    "signal": "[4, 1], dtype=pl.INT32",
}


def host_text(line):
    """The windows that the line names, a rank loop, and the statement after it."""
    lines = []
    named = re.findall(r"\w+", re.sub(r'"[^"]*"', "", line))
    for name, what in WINDOWS.items():
        if name in ("data", "signal") or name in named:
            lines += [f"{name}_buf = pld.alloc_window_buffer({what})", f"{name} = pld.window({name}_buf, {what})"]
    return text_of(buffers="\n".join(lines), views="pass") + f"    {line}{HERE}\n"


HOST = [
    # C-50
    ("tensor.allreduce(x, one)", ["target must be a window-bound DistributedTensor"]),
    ("tensor.broadcast(x, one, root=0)", ["target must be a window-bound DistributedTensor"]),
    ("tensor.reduce_scatter(x, one)", ["target must be a window-bound DistributedTensor"]),
    ("tensor.allgather(x, rows, one)", ["local_data must be a window-bound DistributedTensor"]),
    ("tensor.all_to_all(x, rows, one)", ["input must be a window-bound DistributedTensor"]),
    ("tensor.all_to_all_v(x, rows, col, sent, came)", ["input must be a window-bound DistributedTensor"]),
    ("tensor.barrier(x)", ["signal must be a window-bound DistributedTensor"]),
    # C-51 - C-54
    (
        "tensor.allreduce(data, one, core_num=2)",
        ["rank-1 signal is valid only when one signal lane is required"],
    ),
    ("tensor.allreduce(data, two, core_num=3)", ["must be at least the required lane count"]),
    ("tensor.allreduce(data, fewer)", ["signal shape[0] (1)", "participating device count"]),
    ("tensor.allreduce(data, halved)", ["signal shape[0] (1)", "participating device count"]),
    ("tensor.allreduce(data, free)", ["rank-2 signal shape[1] must be constant"]),
    # C-43, C-56, C-57
    ('tensor.allreduce(data, tight, mode="ring")', ["signal shape[0] (2)", "must be at least 2*(NR-1) + 1"]),
    ('tensor.allreduce(data, wide, mode="ring")', ["signal shape[1] (3)", "must be the rank count (2)"]),
    ('tensor.allreduce(data, ring, mode="ring", core_num=2)', ['mode="ring" does not support core_num > 1']),
    ('tensor.allreduce(data, few, mode="ring")', ["must be at least 2*(NR-1) + 1"]),
    ("tensor.allreduce(data, core_num=1000)", ["exceeds the backend AIV core count"]),
    # C-58
    ("tensor.allreduce(small, one)", ["target dtype must be FP16 or FP32 or BF16 or INT32, got"]),
    ("tensor.reduce_scatter(small, one)", ["target dtype must be FP16 or FP32 or BF16 or INT32, got"]),
    ("tensor.broadcast(small, one, root=0)", ["FP32", "got"]),
    ("tensor.allgather(small, halves, one)", ["FP32", "got"]),
    ("tensor.all_to_all(halves, other, one)", ["FP32", "got"]),
    ("tensor.all_to_all_v(halves, other, col, sent, came)", ["FP32", "got"]),
    # C-59
    ("tensor.broadcast(data, one, root=2)", ["root (2) must be a valid rank in [0, 2)"]),
    ("tensor.broadcast(data, one, root=-1)", ["root (-1) must be a valid rank in [0, "]),
    ("tensor.barrier(short)", ["signal shape[0]", "participating device count"]),
    # C-60, W-5
    ("tensor.allreduce(rows, one)", ["is not consumed by any", "'rows_buf'"]),
    # C-5, C-6
    ("tensor.barrier(None)", ["signal cannot be None"]),
    ("tensor.allreduce(data, None)", ["signal cannot be None"]),
    ("tensor.allgather(data, data, one)", ["local_data and target must be different window allocations"]),
    ("tensor.all_to_all(rows, rows, one)", ["input and target must be different window allocations"]),
    ("tensor.all_to_all_v(rows, more, col, sent, sent)", ["must be different window allocations"]),
    ("tensor.all_to_all_v(rows, more, came, sent, came)", ["must be different window allocations"]),
    ("tensor.broadcast(data, data, root=0)", ["INT32"]),
    ('tensor.allreduce(data, one, mode="tree")', ['mode must be "ring" or "mesh"']),
    ("tensor.allreduce(data, one, core_num=0)", ["core_num"]),
    # 6.1: the tiers of moves and signals
    ("system.notify(one, 0, [0], 1, op=pld.NotifyOp.Set)", ["notify", "HOST", "InCore"]),
    ("tile.remote_load(data, 0, [0, 0], [1, 64])", ["remote_load", "HOST"]),
    ("tensor.get(data, 0, data)", ["get", "HOST"]),
    ("system.rank(pld.get_comm_ctx(data))", ["X-2", "rank"]),
]


@pytest.mark.parametrize("call,names", HOST, ids=[c for c, _ in HOST])
def test_on_the_host(call, names, load_source):
    text = host_text(f"pld.{call}")
    with pytest.raises(Exception) as caught:
        compile_for(load_source(text).program, arrays(2), 2)
    said = str(caught.value)
    assert f".py:{line_of(text)}:" in said, said
    for name in names:
        assert name in said, (name, said)


RING = 'pld.tensor.allreduce(data, ring, mode="ring")'


@pytest.mark.parametrize("platform,ranks,said", [("a2a3", 17, "16 or fewer"), ("a5", 16, None), ("a5sim", 17, None)])
def test_host_rings_on_cards(platform, ranks, said, load_source):  # C-43, C-56
    program = load_source(host_text(RING)).program
    if said is None:
        compile_for(program, arrays(ranks), ranks, platform)
        return
    with pytest.raises(Exception, match=said) as caught:
        compile_for(program, arrays(ranks), ranks, platform)
    assert caught.value.diagnostic.id == "X-30" and "17" in str(caught.value)


@pytest.mark.parametrize("platform,bound,fits", [("a2a3", "64", True), ("a5sim", "65", True), ("a5", "65", False)])
def test_ranks_of_a_domain_on_cards(platform, bound, fits, load_source):  # D-56, 05 H-58
    text = text_of(signal_shape="[65, 1]", bound=bound)
    program = load_source(text).program
    if fits:
        compile_for(program, arrays(65), 65, platform)
        return
    with pytest.raises(CompileError, match="'comm_d0' of 'program' .* has 65 ranks; a device takes at most 64"):
        compile_for(program, arrays(65), 65, platform)


# ------------------------------------------------------------- handles and windows whose domain is not known


SECOND = """
@pl.jit.incore
def pick(
    x: pl.Tensor[[1, 64], pl.FP32],
    y: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
    a: pld.DistributedTensor[[1, 64], pl.FP32],
    b: pld.DistributedTensor[[1, 64], pl.FP32],
):
    me = pld.rank(pld.get_comm_ctx(a))
    {line}
    y = pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], y)
    return y


@pl.jit
def second(
    x: pl.Tensor[[1, 64], pl.FP32],
    y: pl.Out[pl.Tensor[[1, 64], pl.FP32]],
    a: pld.DistributedTensor[[1, 64], pl.FP32],
    b: pld.DistributedTensor[[1, 64], pl.FP32],
):
    return pick(x, y, a, b)

"""
EITHER = "if me == 0:\n        w = a\n    else:\n        w = b\n    "
CARRIED = "for i, (d,) in pl.range(3, init_values=(a,)):\n        (d,) = pl.yield_({next})\n    "
TWO = {
    "buffers": "a_buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)\n"
    "b_buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)",
    "views": "a = pld.window(a_buf, [1, 64], dtype=pl.FP32)\nb = pld.window(b_buf, [1, 64], dtype=pl.FP32)",
    "dispatch": "second(x[r], y[r], a, b, device=r)",
}
UNKNOWN = [
    (EITHER + "t = pld.remote_load(w, me, [0, 0], [1, 64])", ["X-17: Cannot determine the communication context"]),
    (EITHER + "n = pld.nranks(pld.get_comm_ctx(w))", ["Cannot determine the communication context", "'a'", "'b'"]),
    (CARRIED.replace("{next}", "b"), ["X-17: Rebinding loop-carried DistributedTensor 'd'", "'a'", "'b'"]),
    ("for i in pl.range(3):\n        a = b", ["Rebinding loop-carried DistributedTensor 'a'"]),
    ("c = pld.get_comm_ctx(a)\n    pl.write(b, [0, 0], c)", ["CommCtx"]),  # T-9
    ("c = pld.get_comm_ctx(a)\n    d = c + 1", ["CommCtx"]),
    ("if pld.get_comm_ctx(a) == pld.get_comm_ctx(b):\n        me = 0", ["CommCtx"]),
    ("part = pl.aiv_shard(a, split=1)", ["DistributedTensor"]),  # T-11
    ("full = pl.full([1, 64], dtype=pl.FP32, value=b)", ["DistributedTensor"]),
    ("some = pl.array.create(2, dtype=pl.INT32)\n    some[0] = a", ["DistributedTensor"]),
]


@pytest.mark.parametrize("line,names", UNKNOWN, ids=range(len(UNKNOWN)))
def test_windows_in_a_kernel(line, names, load_source):  # T-7, T-9, T-11, X-17, X-18
    program = load_source(text_of(before=SECOND.replace("{line}", line), **TWO)).program
    with pytest.raises(Exception) as caught:
        compile_for(program, arrays(2), 2)
    for name in names:
        assert name in str(caught.value), (name, str(caught.value))


@pytest.mark.parametrize("line", [EITHER + "t = pl.load(w, [0, 0], [1, 64])", CARRIED.replace("{next}", "d")])
def test_windows_of_one_buffer_or_read_at_home(line, load_source):  # T-6, T-7: no peer is asked for
    given = arrays(2)
    compiled, _ = compile_for(load_source(text_of(before=SECOND.replace("{line}", line), **TWO)).program, given, 2)
    compiled(*given)
    assert (given[1] == given[0]).all()


HANDLES = [
    ({"dispatch": "on_device(x[r], y[r], data_buf, signal, device=r)"}, "", ["X-3", "pld.window"]),
    ({"dispatch": "on_device(x[r], y[r], data, signal, device=data_buf + 1)"}, "", ["Ptr"]),
    ({}, "    return data_buf\n", ["Ptr", "host"]),
    ({}, "    return pld.get_comm_ctx(data)\n", ["CommCtx", "host"]),
    ({"buffers": "data_buf = pld.alloc_window_buffer(2.5)"}, "", ["X-10", "integer"]),
    ({"buffers": "data_buf = pld.alloc_window_buffer([1, 3], dtype=pl.INT4)"}, "", ["[1, 3]", "int4"]),
    ({"kernel": "b = pld.alloc_window_buffer(64)\n" + COPY}, "", ["HOST", "InCore"]),
    ({"kernel": "d = pld.window(data, [1, 64], dtype=pl.FP32)\n" + COPY}, "", ["HOST"]),
    # D-21: who may call whom
    ({"kernel": "y = on_device(x, y, data, signal)"}, "", ["'kernel'", "'on_device'"]),
    ({"device": "program(x, y)\ny = kernel(x, y, data, signal)"}, "", ["'on_device'", "'program'"]),
]


@pytest.mark.parametrize("pieces,after,names", HANDLES, ids=range(len(HANDLES)))
def test_handles_and_tiers(pieces, after, names, load_source):  # D-21, T-9, T-10, W-1, W-2
    program = load_source(text_of(**pieces) + after).program
    with pytest.raises(Exception) as caught:
        compile_for(program, arrays(2), 2)
    for name in names:
        assert name in str(caught.value), (name, str(caught.value))


WAIT = "pld.system.defer_wait({signal}, [0, 0], {expected}, cmp=pld.WaitCmp.{cmp})"
DEFER = WAIT.format(signal="signal", expected=1, cmp="Ge")
CLAUSES = [
    ("e", [WAIT.format(signal="signal", expected=1, cmp="Eq") + HERE]),
    ("e", [WAIT.format(signal="signal", expected=-1, cmp="Ge") + HERE]),
    ("d", [WAIT.format(signal="signal[0:2, :]", expected=1, cmp="Ge") + HERE]),
    ("d", ["other = signal", WAIT.format(signal="other", expected=1, cmp="Ge") + HERE]),
    ("c", ["pld.system.notify(signal, me, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)", DEFER + HERE]),
    ("c", [DEFER, "v = pl.read(signal, [1, 0])" + HERE]),
    ("c", ["for q in pl.range(2):", "    " + DEFER, "v = pl.read(signal, [1, 0])" + HERE, DEFER]),
    (None, ["v = pl.read(signal, [1, 0])", "for q in pl.range(2):", "    k = q % 2", "    " + DEFER, DEFER]),
]


@pytest.mark.parametrize("clause,lines", CLAUSES, ids=range(len(CLAUSES)))
def test_the_contract_of_defer_wait(clause, lines, load_source):  # O-27, X-63
    region = ["with pl.at(level=pl.Level.CORE_GROUP) as tid:", "    me = pld.rank(pld.get_comm_ctx(signal))"]
    text = text_of(device="\n".join([*region, *("    " + line for line in lines), "y = kernel(x, y, data, signal)"]))
    program = load_source(text).program
    if clause is None:
        compile_for(program, arrays(2), 2)
        return
    with pytest.raises(Exception, match=f"clause {clause}") as caught:
        compile_for(program, arrays(2), 2)
    assert caught.value.diagnostic.id == "X-63" and f".py:{line_of(text)}:" in str(caught.value)


def test_what_the_others_did_is_said_once(load_source):
    notify = "pld.system.notify(signal, me, [0, 0], 2, op=pld.NotifyOp.AtomicAdd)\n"
    given = arrays(2)
    program = load_source(text_of(kernel=f"{notify}signal = pld.tensor.barrier(signal){HERE}\n{COPY}")).program
    compiled, _ = compile_for(program, given, 2)
    with pytest.raises(RuntimeError, match="X-52.*'signal_buf' is not zero at entry") as caught:
        compiled(*given)
    assert str(caught.value).count("rank 1 (device 1)") == 1
