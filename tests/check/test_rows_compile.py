# SPDX-License-Identifier: Apache-2.0
"""What the compiler says about wrong programs of the distributed namespace: a program per row of 03 sections 9.2, 9.3.

Each error names its id, the line in the file and what the row demands; each has a fix.
"""

import pytest
from pypto import CompileError
from pypto.runtime import RunConfig
from rows import COPY, arrays, compile_for, line_of, text_of

BUFFERS = "data_buf = pld.alloc_window_buffer({data_shape}, dtype={data_dtype})"
SIGNAL = "signal_buf = pld.alloc_window_buffer({signal_shape}, dtype={signal_dtype})"
DATA_VIEW = "data = pld.window(data_buf, {data_shape}, dtype={data_dtype})"
SIGNAL_VIEW = "signal = pld.window(signal_buf, {signal_shape}, dtype={signal_dtype})"
CALL = "on_device(x[r], y[r], data, signal, {device})  # <- here"
LOAD = "r = pld.tile.remote_load(data, peer=0, offsets={offsets}, shape=[1, 64])  # <- here\ny = pl.store(r, [0, 0], y)"
NOTIFY = "pld.system.notify(signal, {args}, op=pld.NotifyOp.AtomicAdd)  # <- here\n" + COPY


def dispatch(device):
    return {"dispatch": CALL.replace("{device}", device)}


def buffers(*lines):
    return {"buffers": "\n".join(lines)}


def views(*lines):
    return {"views": "\n".join(lines)}


def load(offsets):
    return {"kernel": LOAD.replace("{offsets}", offsets)}


def notify(args, **more):
    return {"kernel": NOTIFY.replace("{args}", args), **more}


def push(line):
    return f"t = pl.load(x, [0, 0], [1, 64])\n{line}  # <- here\n{COPY}"


SUB_WORKER = """
@pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
def look(w: pl.Tensor[[1, 64], pl.FP32]):
    pass

"""

# id, pieces of the program, what the message names
ERRORS = [
    (
        "X-1",
        {"kernel": f"pld.tensor.putt(data, 0, x)  # <- here\n{COPY}"},
        ["Unknown distributed operation 'pld.tensor.putt'", "pld.tensor.put"],
    ),
    ("X-1", {"kernel": f"pld.foo.put(data, 0, x)  # <- here\n{COPY}"}, ["Unknown distributed operation 'pld.foo.put'"]),
    ("X-2", {"kernel": f"q = pld.world_size()  # <- here\n{COPY}"}, ["world_size", "HOST", "kernel"]),
    (
        "X-2",
        {"device": "pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)  # <- here\ny = kernel(x, y, data, signal)"},
        ["wait", "device orchestration", "InCore"],
    ),
    (
        "X-2",
        {"dispatch": "on_device(x[r], y[r], data, signal, device=r)\npld.tensor.put(data, 0, x)  # <- here"},
        ["put", "HOST"],
    ),
    ("X-3", {"device": "y = kernel(x, y, x, signal)  # <- here"}, ["kernel", "data", "DistributedTensor", "Tensor"]),
    (
        "X-3",
        {
            "kernel": "r = pld.tile.remote_load(x, peer=0, offsets=[0, 0], shape=[1, 64])  # <- here\ny = pl.store(r, [0, 0], y)"
        },
        ["DistributedTensor"],
    ),
    ("X-4", {"device": "y = kernel(x, y, data, signal, device=0)  # <- here"}, ["'device'", "kernel"]),
    ("X-5", dispatch("device=r * 2"), ["r * 2", "pl.range(pld.world_size())"]),
    ("X-5", dispatch("device=1.5"), ["1.5"]),
    ("X-5", dispatch("device=-1"), ["-1"]),
    ("X-7", {"dispatch": "on_device(x[r], y[r], data, signal)  # <- here"}, ["on_device", "'data', 'signal'"]),
    ("X-9", {"dispatch": "kernel(x[r], y[r], data, signal)  # <- here"}, ["'kernel'", "'program'"]),
    ("X-10", buffers("data_buf = pld.alloc_window_buffer([1, 64])  # <- here", SIGNAL), ["dtype"]),
    (
        "X-10",
        buffers("data_buf = pld.alloc_window_buffer([0, 64], dtype=pl.FP32)  # <- here", SIGNAL),
        ["positive", "0"],
    ),
    ("X-10", buffers("data_buf = pld.alloc_window_buffer([], dtype=pl.FP32)  # <- here", SIGNAL), ["non-empty"]),
    (
        "X-10",
        buffers("data_buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32, name='d')  # <- here", SIGNAL),
        ["name"],
    ),
    (
        "X-10",
        buffers("data_buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32, align=64)  # <- here", SIGNAL),
        ["align"],
    ),
    ("X-10", buffers("data_buf = pld.alloc_window_buffer(256, dtype=pl.FP32)  # <- here", SIGNAL), ["dtype"]),
    (
        "X-12",
        buffers(BUFFERS, SIGNAL, "idle = pld.alloc_window_buffer([4, 1], dtype=pl.INT32)  # <- here"),
        ["'idle'", "pld.tensor.window"],
    ),
    (
        "X-13",
        buffers("data_buf = pld.alloc_window_buffer([1, 32], dtype=pl.FP32)", SIGNAL)
        | views(DATA_VIEW + "  # <- here", SIGNAL_VIEW),
        ["[1, 64]", "256 bytes", "128", "data_buf"],
    ),
    (
        "X-13",
        buffers("data_buf = pld.alloc_window_buffer(64)", SIGNAL) | views(DATA_VIEW + "  # <- here", SIGNAL_VIEW),
        ["256 bytes", "64"],
    ),
    ("X-14", views("data = pld.window(x, [1, 64], dtype=pl.FP32)  # <- here", SIGNAL_VIEW), ["Ptr handle"]),
    ("X-14", views("data = pld.window(data_buf, [1, 64])  # <- here", SIGNAL_VIEW), ["dtype"]),
    ("X-14", views("data = pld.window(data_buf, [1, 64], dtype=pl.FP32, row=1)  # <- here", SIGNAL_VIEW), ["row"]),
    (
        "X-15",  # W-23: the re-reading of host arrays (04 DTY-3) is not for views
        {
            **views(DATA_VIEW, "signal = pld.window(signal_buf, {signal_shape}, dtype=pl.UINT32)"),
            **dispatch("device=r"),
        },
        ["'signal'", "uint32", "int32"],
    ),
    (
        "X-15",
        views("data = pld.window(data_buf, [1, 32], dtype=pl.FP32)", SIGNAL_VIEW) | dispatch("device=r"),
        ["'data'", "[1, 64]", "[1, 32]"],
    ),
    (
        "X-15",
        views("data = pld.window(data_buf, [1, 64], dtype=pl.INT32)", SIGNAL_VIEW) | dispatch("device=r"),
        ["'data'", "int32", "fp32"],
    ),
    (
        "X-17",
        {
            **buffers(
                BUFFERS,
                "other_buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)",
                SIGNAL,
                DATA_VIEW,
                "other = pld.window(other_buf, [1, 64], dtype=pl.FP32)",
                SIGNAL_VIEW,
            ),
            **views("on_device(x[r], y[r], data, signal, device=r)"),
            "dispatch": "data = other  # <- here",
        },
        ["Rebinding loop-carried DistributedTensor", "data_buf", "other_buf"],
    ),
    (
        "X-18",
        {"before": SUB_WORKER, "dispatch": "on_device(x[r], y[r], data, signal, device=r)\nlook(data)  # <- here"},
        ["data"],
    ),
    ("X-20", notify("-1, [0, 0], 1"), ["-1", "nranks"]),
    ("X-21", notify("0, [0], 1"), ["notify", "1 entries", "rank 2"]),
    ("X-21", load("[0]"), ["remote_load", "1 entries", "rank 2"]),
    (
        "X-21",
        {
            "kernel": f"pld.tensor.put(data, 0, x, dst_offsets=[0], src_offsets=[0, 0], shape=[1, 32])  # <- here\n{COPY}"
        },
        ["put", "rank 2"],
    ),
    (
        "X-22",
        {"kernel": push("pld.tile.remote_store(pl.cast(t, pl.FP16), data, peer=0, offsets=[0, 0])")},
        ["fp16", "fp32"],
    ),
    (
        "X-22",
        {"data_dtype": "pl.FP16", "kernel": f"pld.tensor.put(data, 0, x)  # <- here\n{COPY}"},
        ["fp16", "fp32", "same element type"],
    ),
    ("X-23", notify("0, [0, 0], 1", signal_dtype="pl.FP32"), ["INT32", "fp32"]),
    (
        "X-23",
        {
            "signal_dtype": "pl.INT16",
            "kernel": f"pld.system.wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)  # <- here\n{COPY}",
        },
        ["INT32", "int16"],
    ),
    (
        "X-24",
        {
            "data_dtype": "pl.UINT8",
            "kernel": push(
                "pld.tile.remote_store(pl.cast(t, pl.UINT8), data, peer=0, offsets=[0, 0], atomic=pld.AtomicType.Add)"
            ),
        },
        ["uint8", "INT16"],
    ),
    (
        "X-25",
        {"kernel": f"pld.tensor.put(data, 0, x, chunk_rows=-1, chunk_cols=4)  # <- here\n{COPY}"},
        ["chunk_rows", "-1"],
    ),
    (
        "X-25",
        {"kernel": f"pld.tensor.put(data, 0, x, pipeline=True)  # <- here\n{COPY}"},
        ["pipeline=True requires both chunk_rows>0 and chunk_cols>0"],
    ),
    ("X-27", notify("1.0, [0, 0], 1"), ["peer", "1.0"]),
    ("X-27", notify("1, [0, 0], 1.0"), ["value", "1.0"]),
    (
        "X-27",
        {"kernel": f"pld.system.wait(signal, [0, 0], 1.0, cmp=pld.WaitCmp.Ge)  # <- here\n{COPY}"},
        ["expected", "1.0"],
    ),
    ("X-27", load("[0, 0.5]"), ["offsets", "0.5"]),
    ("X-30", {"kernel": f"signal = pld.tensor.barrier(None)  # <- here\n{COPY}"}, ["signal cannot be None"]),
    ("X-30", {"kernel": f"signal = pld.tensor.barrier(data)  # <- here\n{COPY}"}, ["INT32"]),
    (
        "X-30",
        {"kernel": f"data = pld.tensor.allreduce(data, op=pld.ReduceOp.Sum)  # <- here\n{COPY}"},
        ["requires an explicit signal"],
    ),
    (
        "X-30",
        {"kernel": f"data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum, mode='tree')  # <- here\n{COPY}"},
        ['mode must be "ring" or "mesh"'],
    ),
    (
        "X-30",
        {"kernel": f"data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum, core_num=2)  # <- here\n{COPY}"},
        ["supported only in a HOST orchestrator"],
    ),
    (
        "X-30",
        {
            "data_dtype": "pl.INT16",
            "kernel": f"data = pld.tensor.allreduce(data, signal, op=pld.ReduceOp.Sum)  # <- here\n{COPY}",
        },
        ["FP16", "BF16", "FP32", "INT32", "int16"],
    ),
    (
        "X-30",
        {"kernel": f"data = pld.tensor.broadcast(data, signal, root=9)  # <- here\n{COPY}"},
        ["root (9) must be a valid rank in [0, 2)"],
    ),
    (
        "X-30",
        {
            "signal_shape": "[1, 1]",
            "dispatch": "on_device(x[r], y[r], data, signal, device=r)\npld.tensor.barrier(signal)  # <- here",
        },
        ["signal shape[0]", "participating device count"],
    ),
    *[
        (
            "X-30",
            {"data_shape": "[4, 64]", "kernel": f"{text}\n{COPY}"},
            ["requires a packed source", shape],  # C-29
        )
        for text, shape in (
            ("pld.tensor.allreduce(data[:, 0:8], signal)  # <- here", "[4, 8]"),
            ("pld.tensor.broadcast(pl.slice(data, [2, 32], [me, 0]), signal, root=0)  # <- here", "[2, 32]"),
            ("part = data[0:2, :]\npart = part[:, 8:9]\npld.tensor.reduce_scatter(part, signal)  # <- here", "'part'"),
        )
    ],
    (
        "X-32",
        {
            "kernel": f"for i in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    signal = pld.tensor.barrier(signal)  # <- here\n{COPY}"
        },
        ["split_aiv"],
    ),
    *[
        (
            "X-32",
            {"kernel": f"signal = pld.tensor.barrier(signal)  # <- here\n{COPY}", "device": launch},
            ["pld.tensor.barrier", "2 blocks"],
        )
        for launch in (
            "with pl.spmd(2):\n    y = kernel(x, y, data, signal)",
            "for i in pl.spmd(2):\n    y = kernel(x, y, data, signal)",
            "with pl.cluster():\n    with pl.spmd(2):\n        y = kernel(x, y, data, signal)",
            "blocks = 2\ny, tid = pl.spmd_submit(kernel, x, y, data, signal, core_num=blocks)",
        )
    ],
    ("X-34", {"kernel": "r = pld.tensor.put(data, 0, x)\ny = pl.store(r, [0, 0], y)  # <- here"}, ["'r'"]),
    ("X-54", load("[0, 1]"), ["remote_load", "dimension 1", "offset 1 + extent 64", "64"]),
    ("X-54", load("[0, -1]"), ["remote_load", "dimension 1", "-1"]),
    ("X-54", notify("0, [4, 0], 1"), ["notify", "4"]),
    (
        "X-63",
        {
            "device": "with pl.at(level=pl.Level.CORE_GROUP) as tid:\n"
            "    pld.system.defer_wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)\n"
            "    y[:, :] = x[:, :]  # <- here"
        },
        ["clause c"],
    ),
    (
        "X-63",
        {"kernel": f"pld.system.defer_wait(signal, [0, 0], 1, cmp=pld.WaitCmp.Ge)  # <- here\n{COPY}"},
        ["defer_wait"],
    ),
]


@pytest.mark.parametrize("id,pieces,names", ERRORS, ids=[f"{e[0]}-{i}" for i, e in enumerate(ERRORS)])
def test_error(id, pieces, names, load_source):  # 03 X-0, 04 ERR-5
    text = text_of(**pieces)
    module = load_source(text)
    with pytest.raises(Exception) as caught:
        compile_for(module.program, arrays(2), 2)
    said = str(caught.value)
    assert caught.value.diagnostic.id == id, said  # 04 OBS-30
    assert f".py:{line_of(text)}:" in said, said
    for name in names:
        assert name in said, (name, said)


# id, pieces, what the warning names
WARNINGS = [
    ("X-8", {"bound": "1", **dispatch("device=r")}, ["rank 1", "2 devices"], False),
    (
        "X-11",
        {
            **buffers(SIGNAL),
            **views("data_buf = pld.alloc_window_buffer([1, 64], dtype=pl.FP32)  # <- here", DATA_VIEW, SIGNAL_VIEW),
        },
        ["data_buf", "line 38"],
        True,
    ),
    (
        "X-27",
        {
            "kernel": "f = pl.cast(me, pl.FP32)\ng = f * 2.0  # <- here\ny = pl.store(pl.add(pl.load(x, [0, 0], [1, 64]), g), [0, 0], y)"
        },
        ["fp32"],
        True,
    ),
    (
        "X-33",
        {"kernel": f"if me == 0:\n    signal = pld.tensor.barrier(signal)  # <- here\n{COPY}"},
        ["barrier"],
        False,
    ),
    (
        "X-69",
        {"kernel": f"pld.system.wait(signal, [0, 0], 0, cmp=pld.WaitCmp.Ge)  # <- here\n{COPY}"},
        ["expected=0"],
        True,
    ),
    (
        "X-57",
        {
            "data_shape": "[64, 64]",
            "kernel": "m = pl.load(data, [0, 0], [64, 64], target_memory=pl.MemorySpace.Mat)\n"
            "left = pl.move(m, target_memory=pl.MemorySpace.Left)\n"
            "right = pl.move(m, target_memory=pl.MemorySpace.Right)\n"
            "product = pl.move(pl.matmul(left, right), target_memory=pl.MemorySpace.Vec)\n"
            "data = pl.store(pl.add(product, 1.0), [0, 0], data)\n"
            "signal = pld.tensor.barrier(signal)\n"  # its own notifies are not the user's matter
            "for q in pl.range(n):\n"
            "    pld.system.notify(signal, q, [me, 0], 1, op=pld.NotifyOp.AtomicAdd)  # <- here\n" + COPY,
        },
        ["'kernel'", "pl.split_aiv"],
        True,
    ),
    (
        "X-29",
        {"data_shape": "[512, 512]", "kernel": "pld.tensor.get(data, (me + 1) % n, data)  # <- here\n" + COPY},
        ["1048576 bytes"],
        True,
    ),
]


@pytest.mark.parametrize("id,pieces,names,here", WARNINGS, ids=[w[0] for w in WARNINGS])
def test_warning(id, pieces, names, here, load_source):  # 03 X-0, M-37
    text = text_of(**pieces)
    compiled, said = compile_for(load_source(text).program, arrays(2), 2)
    said = [w for w in said if f"{id}:" in w]
    assert len(said) == 1 and said[0].startswith(f"{id}: "), said  # 04 LOG-5: once, the id first
    assert all(name in said[0] for name in names), said
    if here:
        assert all(f".py:{line_of(text)}]" in w for w in said), said
    assert "help: " in said[0]


@pytest.mark.parametrize("platform,accepted", [("a2a3sim", True), ("a5sim", False)])
def test_bf16_adds_by_platform(platform, accepted, load_source):  # 03 X-24, O-37
    line = (
        "pld.tile.remote_store(pl.cast(t, pl.BF16), data, peer=(me + 1) % n, offsets=[0, 0], atomic=pld.AtomicType.Add)"
    )
    module = load_source(text_of(data_dtype="pl.BF16", kernel=push(line)))
    if accepted:
        compile_for(module.program, arrays(2), 2, platform)
        return
    with pytest.raises(Exception, match="X-24") as caught:
        compile_for(module.program, arrays(2), 2, platform)
    assert "bf16" in str(caught.value) and "a5" in str(caught.value)


ALONE = """
@pl.jit
def alone(y: pl.Out[pl.Tensor[[1, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:, :] = pl.full([1, 64], dtype=pl.FP32, value=1.0)
    return y

"""
CONSTANT_RANKS = [
    dispatch("device=7"),
    {"bound": "3", "dispatch": "on_device(x[0], y[0], data, signal, device=r)  # <- here"},
    {"before": ALONE, "dispatch": "on_device(x[r], y[r], data, signal, device=r)\nalone(y[0], device=3)  # <- here"},
]


@pytest.mark.parametrize("pieces", CONSTANT_RANKS)
def test_constant_ranks_outside_the_world(pieces, load_source):  # 03 D-32, X-6: said by the compiler
    text = text_of(**pieces)
    with pytest.raises(CompileError) as caught:
        compile_for(load_source(text).program, arrays(2), 2, ids=[4, 9])
    said = str(caught.value)
    assert said.startswith("X-6: device=") and "[0, 2)" in said and "[4, 9]" in said, said
    assert f".py:{line_of(text)}:" in said, said


@pytest.mark.parametrize("checks", ["default", "strict", "off"])
@pytest.mark.parametrize(
    "id,pieces,names",
    [
        (
            "X-6",
            {
                "before": ALONE,
                "dispatch": "on_device(x[r], y[r], data, signal, device=r)\nalone(y[r], device=r + 1)  # <- here",
            },
            ["2", "[0, 2)", "[4, 9]"],
        ),
        (
            "X-13",
            buffers("data_buf = pld.alloc_window_buffer([pld.world_size(), 16], dtype=pl.FP32)", SIGNAL)
            | views(DATA_VIEW + "  # <- here", SIGNAL_VIEW),
            ["data_buf", "256 bytes", "128"],
        ),
        ("X-20", notify("me + 1, [0, 0], 1"), ["peer 2", "[0, 2)", "logical ranks 0, 1"]),
    ],
)
def test_at_the_call(id, pieces, names, checks, load_source):  # 03 D-32, M-37: an error with every kind of checking
    from pypto.runtime import SimOptions

    text = text_of(**pieces)
    given = arrays(2)
    compiled, _ = compile_for(load_source(text).program, given, 2, ids=[4, 9])
    with pytest.raises(RuntimeError) as caught:
        compiled(*given, config=RunConfig(platform="a2a3sim", sim=SimOptions(checks=checks)))
    said = str(caught.value)
    assert said.startswith(id), said
    assert f".py:{line_of(text)}:" in said, said
    assert said.rstrip().splitlines()[-1].lstrip(" =").startswith("fix: "), said
    for name in names:
        assert name in said, said
