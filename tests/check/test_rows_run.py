# SPDX-License-Identifier: Apache-2.0
"""What a run reports: a program per row of 03 section 9.4, its severity under each kind of checking, what it names."""

import pytest
from pypto import CompileError, DeadlockError, ProtocolError, RaceError
from pypto.runtime import RunConfig, SimOptions
from rows import COPY, arrays, compile_for, diagnostics, line_of, text_of

STAGE = "data = pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], data)\n"
FETCH = "r = pld.tile.remote_load(data, peer=(me + 1) % n, offsets=[0, 0], shape=[1, 64])  # <- here\ny = pl.store(r, [0, 0], y)\n"
MEET = "signal = pld.tensor.barrier(signal)\n"
NOTIFY = "pld.system.notify(signal, {}, [{}, 0], {}, op=pld.NotifyOp.{})"
WAIT = "pld.system.wait(signal, [{}, 0], {}, cmp=pld.WaitCmp.{})"
NEXT, LAST = "(me + 1) % n", "(me + n - 1) % n"

TELL = """
@pl.jit.incore
def tell(y: pl.Out[pl.Tensor[[1, 64], pl.FP32]], signal: pld.DistributedTensor[[4, 1], pl.INT32]):
    me = pld.rank(pld.get_comm_ctx(signal))
    y = pl.store(pl.tile.full([1, 64], pl.FP32, 0.0), [0, 0], y)
    pld.system.notify(signal, me, [0, 0], 1, op=pld.NotifyOp.AtomicAdd)  # <- tell
    return y

"""

LATER_GROUP = """
@pl.jit.incore
def fetch(y: pl.Out[pl.Tensor[[1, 64], pl.FP32]], data: pld.DistributedTensor[[1, 64], pl.FP32]):
    ctx = pld.get_comm_ctx(data)
    me = pld.rank(ctx)
    r = pld.tile.remote_load(data, peer=(me + 1) % pld.nranks(ctx), offsets=[0, 0], shape=[1, 64])  # <- here
    y = pl.store(r, [0, 0], y)
    return y


@pl.jit
def fetch_on_device(y: pl.Out[pl.Tensor[[1, 64], pl.FP32]], data: pld.DistributedTensor[[1, 64], pl.FP32]):
    y = fetch(y, data)
    return y

"""

TWO_GROUPS = {
    "before": LATER_GROUP,
    "kernel": STAGE + COPY,
    "buffers": """\
data_buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)
signal_buf = pld.alloc_window_buffer([4, 1], dtype=pl.INT32)
for q in pl.range(pld.world_size()):
    first = pld.window(data_buf, [1, 64], dtype=pl.FP32)
    signal = pld.window(signal_buf, [4, 1], dtype=pl.INT32)
    on_device(x[q], y[q], first, signal, device=q)""",
    "views": "data = pld.window(data_buf, [1, 64], dtype=pl.FP32)",
    "dispatch": "fetch_on_device(y[r], data, device=r)",
}

LANES = "for lane in pl.split_aiv(2, mode=pl.SplitMode.NONE):\n"


def body(*lines):
    return {"kernel": "\n".join(lines) + "\n" + COPY}


# id; pieces; ranks; severities in default, strict and off ("-": not looked for); what the first report names
ROWS = {
    "X-40 plain read of a cell": (
        "X-40",
        body(NOTIFY.format(NEXT, 0, 1, "AtomicAdd") + "  # <- here", "v = pl.read(signal, [0, 0])"),
        2,
        "EE-",
        ["reads", "notifies (value 1)", "signal_buf"],
    ),
    "X-40 host order only": (
        "X-40",
        TWO_GROUPS,
        2,
        "WE-",
        ["host order only", "hardware does not", "'data' of 'kernel'", "'data' of 'fetch'"],
    ),
    "X-40 tasks of a manual scope": (
        "X-40",
        {
            "kernel": STAGE.strip() + "  # <- here\n" + COPY,
            "device": "with pl.manual_scope():\n    y = kernel(x, y, data, signal)\n    y = kernel(x, y, data, signal)",
        },
        1,
        "EE-",
        ["task 0", "task 1", "slot reuse"],
    ),
    "X-41": (
        "X-41",
        {"kernel": MEET + FETCH},
        2,
        "-W-",
        ["elements [0, 0:64]", "bytes 0 to 256", "'data_buf' of rank 1", "rank 0"],
    ),
    "X-41 in part": (
        "X-41",
        {"kernel": "data = pl.store(pl.load(x, [0, 0], [1, 32]), [0, 16], data)\n" + MEET + FETCH},
        2,
        "-W-",
        ["bytes 0 to 64", "128 of 256 bytes"],
    ),
    "X-41 get": (
        "X-41",
        {"kernel": MEET + f"pld.tensor.get(y, {NEXT}, data)  # <- here"},
        2,
        "-W-",
        ["'data_buf' of rank 1"],
    ),
    "X-42": (
        "X-40/X-42",
        {"kernel": STAGE + FETCH},
        2,
        "EE-",
        ["read before stage", "bytes 0 to 256", "nothing orders"],
    ),
    "X-44 Set and Set": (
        "X-44",
        body(NOTIFY.format(0, 0, "me + 1", "Set") + "  # <- here"),
        3,
        "EE-",
        ["value 1", "value 2", "the cell becomes"],
    ),
    "X-44 Set and add": (
        "X-44",
        body(
            "if me == 1:",
            "    " + NOTIFY.format(0, 0, 5, "Set"),
            "if me == 2:",
            "    " + NOTIFY.format(0, 0, 1, "AtomicAdd") + "  # <- here",
        ),
        3,
        "EE-",
        ["value 5", "value 1"],
    ),
    "X-44 plain write": (
        "X-44",
        body(NOTIFY.format(NEXT, 0, 1, "AtomicAdd") + "  # <- here", "pl.write(signal, [0, 0], 0)"),
        2,
        "EE-",
        ["plain write", "notifies (value 1)"],
    ),
    "X-46": (
        "X-46",
        body(WAIT.format(1, 1, "Ge") + "  # <- here"),
        2,
        "EEE",
        ["rank 0", "rank 1", "signal_buf[1, 0] >= 1, which is 0", "nobody has notified this cell"],
    ),
    "X-46 history": (
        "X-46",
        body(
            "if me == 1:",
            "    " + NOTIFY.format(0, 0, 1, "AtomicAdd"),
            "else:",
            "    " + WAIT.format(0, 2, "Ge") + "  # <- here",
        ),
        2,
        "EEE",
        ["signal_buf[0, 0] >= 2, which is 1", "history of the cell: rank 1 at", "finished: rank 1"],
    ),
    "X-47": (
        "X-47",
        body(NOTIFY.format(NEXT, "me + 2", 1, "AtomicAdd"), WAIT.format(NEXT, 1, "Ge") + "  # <- here"),
        2,
        "EEE",
        ["waits for signal_buf[1, 0]", "signal_buf[3, 0] by rank 1"],
    ),
    "X-48": (
        "X-48",
        body(
            "if me > 0:",
            "    " + NOTIFY.format(0, 0, 1, "AtomicAdd"),
            "else:",
            "    " + WAIT.format(0, 1, "Eq") + "  # <- here",
        ),
        3,
        "EE?",
        ["signal_buf[0, 0]", "from 1 to 2"],
    ),
    "X-48, the cell cleared before the next credit comes": (
        "X-48",
        body(
            "if me == 0:",
            "    " + WAIT.format(0, 1, "Eq") + "  # <- here",
            "    " + NOTIFY.format(0, 0, -1, "AtomicAdd"),
            "    " + WAIT.format(0, 1, "Ge"),
            "if me == 1:",
            "    " + NOTIFY.format(0, 0, 1, "AtomicAdd"),
            "    " + NOTIFY.format(2, 1, 1, "AtomicAdd"),
            "    " + WAIT.format(1, 1, "Ge"),
            "    " + NOTIFY.format(0, 0, 1, "AtomicAdd"),  # not told that rank 0 has seen the first
            "if me == 2:",
            "    " + WAIT.format(1, 1, "Ge"),
            "    " + NOTIFY.format(1, 1, 1, "AtomicAdd"),
        ),
        3,
        "EE?",
        ["signal_buf[0, 0]", "adds 1 to the cell"],
    ),
    "X-49": (
        "X-49",
        {
            "before": TELL,
            "kernel": WAIT.format(0, 1, "Ge") + "  # <- here\n" + COPY,
            "device": "with pl.manual_scope():\n    for i in pl.range(96):\n        y = kernel(x, y, data, signal)\n    y = tell(y, signal)",
        },
        1,
        "EEE",
        ["rank 0 (device 0)", "48 blocked wait(s)", "ready task"],
    ),
    "X-50": (
        "X-50",
        body("if me != 1:", "    signal = pld.tensor.barrier(signal)  # <- here"),
        3,
        "EEE",
        ["barrier", "ranks 0, 2", "not by ranks 1 (finished)"],
    ),
    "X-51 kind": (
        "X-51",
        body(
            "if me == 0:",
            "    data = pld.tensor.broadcast(data, signal, root=0)",
            "else:",
            "    data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum)  # <- here",
        ),
        2,
        "EE?",
        ["differs in kind", "rank 0 has broadcast", "rank 1 has allreduce"],
    ),
    "X-51 op": (
        "X-51",
        body(
            "if me == 0:",
            "    data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Max)",
            "else:",
            "    data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum)  # <- here",
        ),
        2,
        "EE-",
        ["differs in op", "Max", "Sum"],
    ),
    "X-51 root": (
        "X-51",
        body(
            "if me == 0:",
            "    data = pld.tensor.broadcast(data, signal, root=0)",
            "else:",
            "    data = pld.tensor.broadcast(data, signal, root=1)  # <- here",
        ),
        2,
        "EE-",
        ["differs in root", "has 0", "has 1"],
    ),
    "X-51 shape": (
        "X-51",
        body(
            "if me == 0:",
            "    half = data[0:1, 0:32]",
            "    half = pld.tensor.allreduce(half, signal, op=pld.ReduceOp.Sum)",
            "else:",
            "    data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum)  # <- here",
        ),
        2,
        "EE-",
        ["differs in shape", "target [1, 32]", "target [1, 64]"],
    ),
    "X-30, a target with gaps that another kernel cut": (
        "X-30",
        {
            "data_shape": "[4, 64]",
            "before": """
@pl.jit.incore
def reduce(part: pld.DistributedTensor[[4, 8], pl.FP32], signal: pld.DistributedTensor[[4, 1], pl.INT32]):
    part = pld.tensor.allreduce(part, signal)  # <- here
    return part

""",
            "device": "y = kernel(x, y, data, signal)\nreduce(pl.slice(data, [4, 8], [0, 0]), signal)",
        },
        2,
        "EEE",
        ["requires a packed source", "'part'", "[4, 8]"],
    ),
    "X-46, a deferred wait": (
        "X-46",
        {
            "device": "with pl.at(level=pl.Level.CORE_GROUP) as tid:\n"
            "    pld.system.defer_wait(signal, [1, 0], 3, cmp=pld.WaitCmp.Ge)  # <- here\n"
            "y = kernel(x, y, data, signal)"
        },
        2,
        "EEE",
        ["waits for signal_buf[1, 0] >= 3, which is 0", "nobody has notified this cell"],
    ),
    "X-51, other valid parts": (
        "X-51",
        {
            "data_shape": "[4, 64]",
            "kernel": "part = pl.slice(data, [4, 64], [0, 0], valid_shape=[me + 1, 64])\n"
            "pld.tensor.allreduce(part, signal)  # <- here\n" + COPY,
        },
        2,
        "EE?",
        ["differs in shape", "valid [1, 64]", "valid [2, 64]"],
    ),
    "X-51, other parts of one window": (
        "X-51",
        {
            "data_shape": "[4, 64]",
            "kernel": "pld.tensor.allreduce(pl.slice(data, [2, 64], [me, 0]), signal)  # <- here\n" + COPY,
        },
        2,
        "EE?",
        ["operand buffers", "'data_buf' at", "'data_buf' from byte 256"],
    ),
    "X-51, blocks counted at run time": (
        "X-51",
        {
            "kernel": MEET.replace("\n", "  # <- here\n") + COPY,
            "device": "with pl.spmd(pld.nranks(pld.get_comm_ctx(data))):\n    y = kernel(x, y, data, signal)",
        },
        2,
        "EE-",
        ["barrier", "2 blocks"],
    ),
    "X-52": (
        "X-52",
        body(NOTIFY.format(NEXT, "me", 1, "AtomicAdd"), WAIT.format(NEXT, 1, "Ge"), MEET.strip() + "  # <- here"),
        2,
        "EE-",
        ["barrier", "signal_buf[1, 0] = 1", "left by notifies of rank 1"],
    ),
    "X-54 data": (
        "X-54",
        {
            "kernel": "r = pld.tile.remote_load(data, peer=0, offsets=[0, me], shape=[1, 64])  # <- here\ny = pl.store(r, [0, 0], y)"
        },
        2,
        "EEE",
        ["remote_load", "dimension 1", "offset 1 + extent 64", "64"],
    ),
    "X-54 cell": (
        "X-54",
        body(NOTIFY.format(0, "me + 3", 1, "AtomicAdd") + "  # <- here"),
        2,
        "EEE",
        ["notify", "[4, 0]", "extent 4"],
    ),
    "X-54 overlap": (
        "X-54",
        body("pld.tensor.put(data, me, data, dst_offsets=[0, 8], src_offsets=[0, 0], shape=[1, 32])  # <- here"),
        2,
        "EEE",
        ["overlapping self transfer", "bytes 32 to 128"],
    ),
    "X-55": (
        "X-55",
        {
            "kernel": STAGE
            + MEET
            + f"r = pld.tile.remote_load(data, peer={NEXT}, offsets=[0, 4], shape=[1, 32])  # <- here\ny = pl.store(r, [0, 0], y)"
        },
        2,
        "-W-",
        ["byte 16", "32 bytes"],
    ),
    "X-56": (  # 01 L-128: both lanes perform it
        "X-56",
        body(LANES + "    " + NOTIFY.format(NEXT, 0, 1, "AtomicAdd") + "  # <- here", WAIT.format(0, 2, "Ge")),
        2,
        "WE-",
        ["block 0", "signal_buf[0, 0] of rank", "is now 2"],
    ),
    "X-58": (
        "X-40/X-58",
        {
            "kernel": LANES
            + f"    t = pl.load(x, [0, lane * 32], [1, 32])\n    pld.tile.remote_store(t, data, peer={NEXT}, offsets=[0, lane * 32])\n    if lane == 0:\n        "
            + NOTIFY.format(NEXT, 0, 1, "AtomicAdd")
            + "\n"
            + WAIT.format(0, 1, "Ge")
            + "\ny = pl.store(pl.load(data, [0, 0], [1, 64]), [0, 0], y)  # <- here"
        },
        2,
        "EE-",
        ["lane-guarded release", "lane 1", "bytes 128 to 256"],
    ),
    "X-59": (
        "X-40/X-59",
        {"kernel": NOTIFY.format(NEXT, 0, 1, "AtomicAdd") + "\n" + WAIT.format(0, 1, "Ge") + "\n" + FETCH + STAGE},
        3,
        "EE-",
        ["handshake direction"],
    ),
    "X-60": (
        "X-40/X-60",
        {
            "kernel": f"pld.tensor.put(data, {NEXT}, x)\ny = pl.store(pl.load(data, [0, 0], [1, 64]), [0, 0], y)  # <- here"
        },
        2,
        "EE-",
        ["put without signal"],
    ),
    "X-61": (
        "X-40/X-61",
        body("pld.tensor.put(data, 0, x)  # <- here"),
        2,
        "EE-",
        ["two writers", "'data_buf' of rank 0"],
    ),
    "X-62 task": (
        "X-62",
        {
            "before": TELL,
            "kernel": WAIT.format(0, 1, "Ge") + "  # <- here\n" + COPY,
            "device": "y = kernel(x, y, data, signal)\ny = tell(y, signal)",
        },
        1,
        "EEE",
        ["task 1 'tell'", "window 'signal_buf'", "task 0 'kernel'"],
    ),
    "X-62 dispatch": (
        "X-62",
        body(
            "if me == 0:",
            "    " + WAIT.format(0, 1, "Ge") + "  # <- here",
            "else:",
            "    " + NOTIFY.format(0, 0, 1, "AtomicAdd"),
        )
        | {"dispatch": "on_device(x[0], y[0], data, signal, device=r)"},
        2,
        "EEE",
        ["dispatch for rank 1", "dispatch for rank 0", "tensor 'y'"],
    ),
    # Every rank calls the barrier, but the second dispatch waits for the first one to release `y`.
    "X-62 collective": (
        "X-62",
        body("signal = pld.tensor.barrier(signal)  # <- here")
        | {"dispatch": "on_device(x[0], y[0], data, signal, device=r)"},
        3,
        "EEE",
        ["dispatch for rank 1", "dispatch for rank 0", "tensor 'y'", "(not started)"],
    ),
    "X-63": (
        "X-63",
        {
            "device": "with pl.at(level=pl.Level.CORE_GROUP) as tid:\n    for i in pl.range(70):\n        pld.system.defer_wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)  # <- here\ny = kernel(x, y, data, signal)"
        },
        2,
        "EEE",
        ["clause f", "64 conditions", "task 0"],
    ),
    "X-68": (
        "X-68",
        body(NOTIFY.format("me", 0, 2147483647, "AtomicAdd"), NOTIFY.format("me", 0, 1, "AtomicAdd") + "  # <- here"),
        2,
        "EE-",
        ["signal_buf[0, 0]", "2147483647 + 1", "kernel 'kernel'"],
    ),
}
NAMES = {"E": "error", "W": "warning"}


@pytest.mark.parametrize("row", ROWS)
def test_row(row, load_source):  # 03 X-0, M-33, M-37
    id, pieces, nranks, severities, names = ROWS[row]
    text = text_of(**pieces)
    given = arrays(nranks)
    compiled, _ = compile_for(load_source(text).program, given, nranks)
    for checks, severity in zip(("default", "strict", "off"), severities, strict=True):
        if severity == "?":
            continue  # without the check something else becomes of it
        found = [d for d in diagnostics(compiled, given, checks=checks) if d.severity != "note"]
        if severity == "-":
            assert found == [], (checks, found)
            continue
        assert {(d.id, d.severity) for d in found} == {(id, NAMES[severity])}, (checks, found)
        first = found[0]
        places = {first.line, *(a.line for a in first.accesses), *(w.line for w in first.waits)}
        assert line_of(text) in places, (checks, first)
        said = first.render()
        assert all(name in said for name in names), (names, said)
        assert said.splitlines()[-1].lstrip(" =").startswith("fix: "), said
        assert first.kernel and first.rank >= 0


def fails(load_source, pieces, nranks, error, **sim):
    text = text_of(**pieces)
    given = arrays(nranks)
    compiled, _ = compile_for(load_source(text).program, given, nranks, ids=[4 + 5 * r for r in range(nranks)])
    with pytest.raises(error) as caught:
        compiled(*given, config=RunConfig(platform="a2a3sim", sim=SimOptions(**sim)))
    return caught.value, text


def test_the_classes(load_source):  # 03 X-0: RuntimeError, by kind
    for row, error in (
        ("X-42", RaceError),
        ("X-46", DeadlockError),
        ("X-52", ProtocolError),
        ("X-54 cell", IndexError),
    ):
        _, pieces, nranks, _, _ = ROWS[row]
        exc, _ = fails(load_source, pieces, nranks, error)
        assert isinstance(exc, RuntimeError) and not isinstance(exc, CompileError)


def test_where_it_happened(load_source):  # 03 X-0: rank, device, dispatch, kernel, task, block, core, both lines
    exc, text = fails(load_source, ROWS["X-42"][1], 2, RaceError)
    said = str(exc)
    for part in ("rank 0 (device 4)", "rank 1 (device 9)", "kernel 'kernel'", "task 0", "block 0", "AIV 0"):
        assert part in said, said
    assert (
        "dispatch of 'on_device' at " in said
        and f":{text.splitlines().index('        on_device(x[r], y[r], data, signal, device=r)') + 1}" in said
    )
    assert "window 'data_buf' of rank 1 (parameter 'data' of 'kernel')" in said
    assert "last synchronisation of rank 0" in said and "last synchronisation of rank 1" in said
    access = {(a.rank, a.kind, a.line, a.bytes) for a in exc.diagnostics[0].accesses}
    assert access == {(0, "read", line_of(text), 256), (1, "write", line_of(text) - 1, 256)}


def test_an_error_tells_what_the_others_did(load_source):  # 03 X-70
    pieces = body(
        "if me == 1:",
        "    " + NOTIFY.format("me + 2", 0, 1, "AtomicAdd"),
        "if me != 1:",
        "    " + WAIT.format(0, 1, "Ge"),
    )
    exc, _ = fails(load_source, pieces, 3, IndexError)
    said = str(exc)
    assert said.startswith("X-20") and "rank 1 (device 9)" in said
    assert "rank 0 (device 4) is" in said and "rank 2 (device 14) is" in said


def test_a_race_is_told_before_the_error_that_follows(load_source):  # 03 X-0: in commit order
    push = f"pld.tensor.put(data, {NEXT}, x)\ny = pl.store(pl.load(data, [0, 0], [1, 64]), [0, 0], y)\n"
    exc, _ = fails(load_source, {"kernel": push + MEET + NOTIFY.format("me + n", 0, 1, "AtomicAdd")}, 2, RaceError)
    assert exc.diagnostics[0].id.startswith("X-40")


def test_collect_sorts_by_rank_and_line(load_source):  # 03 X-0
    text = text_of(
        **body(NOTIFY.format(0, "me", 1, "Set"), NOTIFY.format(0, 3, 1, "Set"), NOTIFY.format(0, 2, 1, "Set"))
    )
    given = arrays(3)
    compiled, _ = compile_for(load_source(text).program, given, 3)
    found = diagnostics(compiled, given)
    keys = [(d.rank, d.file, d.line) for d in found]
    assert keys == sorted(keys) and len(found) >= 2


def test_a_silent_overlap_is_a_note_of_strict_checking(load_source):  # 03 M-24, M-37
    zero = "t = pl.tile.full([1, 64], pl.FP32, 0.0)\npld.tile.remote_store(t, data, peer=0, offsets=[0, 0])\n"
    given = arrays(2)
    compiled, _ = compile_for(load_source(text_of(kernel=zero + COPY)).program, given, 2)
    assert diagnostics(compiled, given) == []
    assert [(d.severity, d.title) for d in diagnostics(compiled, given, checks="strict")] == [
        ("note", "overlap that changes no byte")
    ]


def test_a_fetch_that_races_is_only_a_race(load_source):  # 03
    late = FETCH + "data = pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], data)"
    given = arrays(2)
    compiled, _ = compile_for(load_source(text_of(kernel=late)).program, given, 2)
    assert {d.id for d in diagnostics(compiled, given, checks="strict")} == {"X-40/X-42"}


def test_a_window_that_a_call_left_is_written(load_source):  # 03 W-31, X-41
    given = arrays(2)
    text = text_of(kernel=MEET + FETCH + MEET + STAGE)
    compiled, _ = compile_for(load_source(text).program, given, 2)
    assert [d.id for d in diagnostics(compiled, given, checks="strict")] == ["X-41"]


@pytest.mark.parametrize("value,severity,id", [(-1, "error", "X-66"), (2, None, None), (3, "warning", "X-66")])
def test_counts(value, severity, id, load_source):  # 03 X-66
    import numpy as np
    from pypto.ir.distributed_compiled_program import DistributedConfig

    module = load_source(RAGGED)
    x = np.random.default_rng(3).standard_normal((2, 4, 32), dtype=np.float32)
    counts = np.full((2, 2), value, np.int32)
    y = np.zeros_like(x)
    world = DistributedConfig(device_ids=[0, 1])
    compiled = module.program.compile(x, counts, y, config=RunConfig(platform="a2a3sim", distributed_config=world))
    found = diagnostics(compiled, (x, counts, y))
    assert {(d.id, d.severity) for d in found} == ({(id, severity)} if id else set())
    for d in found:
        assert str(value) in d.message and "M = 2" in d.message and "to rank" in d.message and d.line


RAGGED = """import pypto.language as pl
import pypto.language.distributed as pld


@pl.jit.incore
def kernel(
    x: pl.Tensor[[4, 32], pl.FP32],
    counts: pl.Tensor[[2], pl.INT32],
    y: pl.Out[pl.Tensor[[4, 32], pl.FP32]],
    data: pld.DistributedTensor[[4, 32], pl.FP32],
    signal: pld.DistributedTensor[[2, 1], pl.INT32],
    got: pld.DistributedTensor[[2, 1], pl.INT32],
):
    data = pld.tensor.all_to_all_v(x, data, signal, counts, got)
    for q in pl.range(2):
        n = pl.read(got, [q, 0])
        for i in pl.range(n):
            y = pl.store(pl.load(data, [q * 2 + i, 0], [1, 32]), [q * 2 + i, 0], y)
    return y


@pl.jit
def on_device(
    x: pl.Tensor[[4, 32], pl.FP32],
    counts: pl.Tensor[[2], pl.INT32],
    y: pl.Out[pl.Tensor[[4, 32], pl.FP32]],
    data: pld.DistributedTensor[[4, 32], pl.FP32],
    signal: pld.DistributedTensor[[2, 1], pl.INT32],
    got: pld.DistributedTensor[[2, 1], pl.INT32],
):
    y = kernel(x, counts, y, data, signal, got)
    return y


@pl.jit.host
def program(
    x: pl.Tensor[[2, 4, 32], pl.FP32],
    counts: pl.Tensor[[2, 2], pl.INT32],
    y: pl.Out[pl.Tensor[[2, 4, 32], pl.FP32]],
):
    data_buf = pld.alloc_window_buffer([4, 32], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    got_buf = pld.alloc_window_buffer([2, 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [4, 32], dtype=pl.FP32)
        signal = pld.window(signal_buf, [2, 1], dtype=pl.INT32)
        got = pld.window(got_buf, [2, 1], dtype=pl.INT32)
        on_device(x[r], counts[r], y[r], data, signal, got, device=r)
"""
