# SPDX-License-Identifier: Apache-2.0
"""Rows of 03 section 9 about domains, worlds and stored padding: a program per case, in kernels and on the host."""

import numpy as np
import pytest
from pypto.runtime import RunConfig, SimOptions
from rows import COPY, arrays, compile_for, line_of, text_of

FOUR = {"signal_shape": "[4, 1]"}
MATRIX = "data = pl.store(pl.load(x, [0, 0], [1, 64]), [me, 0], data)\n"

# Collectives of kernels whose constant extents are too small (or, for the ring's columns, not equal): what, pieces,
# ranks, what the message names.
TOO_SMALL = [
    ("barrier", {"signal_shape": "[3, 1]", "kernel": f"signal = pld.tensor.barrier(signal)  # <- here\n{COPY}"}, 4,
     ["barrier", "'signal'", "shape[0] is 3", "at least 4"]),
    ("allreduce", {"signal_shape": "[1, 1]", "kernel": f"data = pld.tensor.allreduce(data, signal)  # <- here\n{COPY}"},
     2, ["allreduce", "'signal'", "shape[0] is 1", "at least 2"]),
    ("ring rows", {"signal_shape": "[4, 3]",
                   "kernel": f"data = pld.tensor.allreduce(data, signal, mode='ring')  # <- here\n{COPY}"}, 4,
     ["ring", "'signal'", "shape[0] is 4", "at least 6"]),
    ("ring columns", {"signal_shape": "[8, 5]",
                      "kernel": f"data = pld.tensor.allreduce(data, signal, mode='ring')  # <- here\n{COPY}"}, 4,
     ["ring", "'signal'", "shape[1] is 5", "4 needed"]),
    ("reduce_scatter", {"data_shape": "[2, 64]",
                        "kernel": f"{MATRIX}data = pld.tensor.reduce_scatter(data, signal)  # <- here\n{COPY}"}, 3,
     ["reduce_scatter", "'data'", "shape[0] is 2", "at least 3"]),
    ("allgather", {"data_shape": "[2, 64]",
                   "kernel": f"data = pld.tensor.allgather(x, data, signal)  # <- here\n{COPY}"}, 3,
     ["allgather", "'data'", "shape[0] is 2", "at least 3"]),
    ("all_to_all", {"data_shape": "[1, 64]",
                    "kernel": f"data = pld.tensor.all_to_all(x, data, signal)  # <- here\n{COPY}"}, 2,
     ["all_to_all", "shape[0] is 1", "at least 2"]),
]  # fmt: skip


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize("pieces,nranks,names", [c[1:] for c in TOO_SMALL], ids=[c[0] for c in TOO_SMALL])
def test_constant_extents_cover_the_domain(pieces, nranks, names, platform, load_source):  # 03 C-9, C-22, X-30
    text = text_of(**{**FOUR, **pieces})
    with pytest.raises(Exception) as caught:
        compile_for(load_source(text).program, arrays(nranks), nranks, platform)
    said = str(caught.value)
    assert caught.value.diagnostic.id == "X-30" and f".py:{line_of(text)}:" in said, said
    for name in names:
        assert name in said, (name, said)


@pytest.mark.parametrize("extra", [0, 2])
def test_extents_that_cover_it_are_accepted(extra, load_source):  # 03 C-9: the excess is neither read nor written
    text = text_of(signal_shape=f"[{3 + extra}, 1]", kernel=f"signal = pld.tensor.barrier(signal)\n{COPY}")
    x, y = arrays(3)
    compiled, said = compile_for(load_source(text).program, (x, y), 3)
    assert said == []
    compiled(x, y, config=RunConfig(sim=SimOptions(checks="strict")))
    np.testing.assert_array_equal(y, x)


LOOK = """
@pl.jit
def look(y: pl.Out[pl.Tensor[[1, 64], pl.FP32]], signal: pld.DistributedTensor[[4, 1], pl.INT32]):
    with pl.at(level=pl.Level.CORE_GROUP):
        y[:, :] = pl.full([1, 64], dtype=pl.FP32, value=1.0)

"""
LOOK_AT_ALL = (
    "\nothers = pld.window(signal_buf, [4, 1], dtype=pl.INT32)\n"
    "for q in pl.range(pld.world_size()):\n    look(y[q], others, device=q)"
)


@pytest.mark.parametrize("rail", ["kernel", "host"])
def test_windows_of_two_domains(rail, load_source):  # 03 X-31, D-54, C-7
    host = rail == "host"
    line = "data = pld.tensor.allreduce(data, signal)  # <- here"
    pieces = {
        "bound": "2",
        "kernel": COPY if host else f"{line}\n{COPY}",
        "device": "y = kernel(x, y, data, signal)",
        "dispatch": "on_device(x[r], y[r], data, signal, device=r)" + LOOK_AT_ALL,
    }
    text = text_of(LOOK, **pieces)
    if host:
        text = text.rstrip() + "\n    d2 = pld.window(data_buf, [1, 64], dtype=pl.FP32)\n"
        text += "    s2 = pld.window(signal_buf, [4, 1], dtype=pl.INT32)\n"
        text += "    d2 = pld.tensor.allreduce(d2, s2)  # <- here\n"
    with pytest.raises(ValueError) as caught:
        compile_for(load_source(text).program, arrays(4), 4)
    said = str(caught.value)
    assert caught.value.diagnostic.id == "X-31" and f".py:{line_of(text)}:" in said, said
    names = ("'d2'", "'s2'") if host else ("'data'", "'signal'")
    for name in (*names, "{0, 1}", "all ranks"):
        assert name in said, (name, said)


def test_one_kernel_in_two_domains(load_source):  # 03 D-53: each call is judged by its own windows
    text = text_of(
        bound="2",
        signal_shape="[2, 1]",
        kernel="data = pl.store(pl.load(x, [0, 0], [1, 64]), [0, 0], data)\ndata = pld.tensor.allreduce(data, signal)\n"
        + COPY.replace("pl.load(x,", "pl.load(data,"),
        buffers="data_buf = pld.alloc_window_buffer({data_shape}, dtype={data_dtype})\n"
        "signal_buf = pld.alloc_window_buffer({signal_shape}, dtype={signal_dtype})\n"
        "data_buf2 = pld.alloc_window_buffer({data_shape}, dtype={data_dtype})\n"
        "signal_buf2 = pld.alloc_window_buffer({signal_shape}, dtype={signal_dtype})",
    )
    text = (
        text.rstrip()
        + """
    for q in pl.range(2, 4):
        data2 = pld.window(data_buf2, [1, 64], dtype=pl.FP32)
        signal2 = pld.window(signal_buf2, [2, 1], dtype=pl.INT32)
        on_device(x[q], y[q], data2, signal2, device=q)
"""
    )
    x, y = arrays(4)
    compiled, _ = compile_for(load_source(text).program, (x, y), 4)
    compiled(x, y, config=RunConfig(sim=SimOptions(checks="strict")))
    np.testing.assert_array_equal(y, np.repeat([x[0] + x[1], x[2] + x[3]], 2, axis=0))


# ---------------------------------------------------------------- a rank count baked into shapes


@pytest.mark.parametrize("checks", ["default", "strict", "off"])
@pytest.mark.parametrize("baked", [False, True], ids=["array", "annotation"])
def test_a_rank_count_baked_into_shapes(baked, checks, load_source):  # 03 X-16, D-34, D-41
    text = text_of(dispatch="on_device(x[r], y[r], data, signal, device=r)  # <- here")
    if baked:
        text = text.replace("pl.Tensor[[NR, 1, 64], pl.FP32]", "pl.Tensor[[2, 1, 64], pl.FP32]")
    x, y = arrays(2)
    compiled, _ = compile_for(load_source(text).program, (x, y), 3)
    with pytest.raises(RuntimeError) as caught:
        compiled(x, y, config=RunConfig(sim=SimOptions(checks=checks)))
    said = str(caught.value)
    assert caught.value.diagnostic.id == "X-16" and f".py:{line_of(text)}:" in said, said
    for name in ("'x'", "[2, 1, 64]", "index 2", "extent 2", "the world has 3 ranks", 'pl.dynamic("NR")'):
        assert name in said, (name, said)
    assert not y.any()  # at the start of the call: no rank has run


# ----------------------------------------------------------------


@pytest.mark.parametrize(
    "line,names",
    [
        (
            "t: pl.Tile[[4, 1], pl.INT32, pl.TileView(stride=[1, 1]), pl.Mem.Vec] = pl.load(signal, [0, 0], [4, 1])",
            ["[4, 1]", "int32", "4 bytes", "32-byte aligned"],
        ),
        (
            "t: pl.Tile[[4, 2], pl.INT32, pl.Mem.Vec, pl.MemRef(room, 0, 32)] = pl.load(signal, [0, 0], [4, 2])",
            ["[4, 2]", "int32", "8 bytes", "32 bytes", "32-byte aligned"],
        ),
    ],
    ids=["view", "MemRef"],
)
def test_padding_that_a_view_forbids(line, names, load_source):  # 03 X-26, O-34, 01 L-146
    narrow = "[4, 1]" if "[4, 1]" in line else "[4, 2]"
    kernel = f"room: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 32)\n{line}  # <- here\nsignal = pl.store(pl.add(t, 1), [0, 0], signal)\n"
    text = text_of(signal_shape=narrow, kernel=kernel + COPY)
    with pytest.raises(ValueError) as caught:
        compile_for(load_source(text).program, arrays(2), 2)
    said = str(caught.value)
    assert caught.value.diagnostic.id == "X-26" and f".py:{line_of(text)}:" in said, said
    for name in names:
        assert name in said, (name, said)


@pytest.mark.parametrize("how", ["pl.load(signal, [0, 0], [4, 1])", "pld.tile.remote_load(signal, me, [0, 0], [4, 1])"])
def test_padding_without_a_view(how, load_source):  # 03 O-34: stored padded and read exactly
    kernel = f"for i in pl.range(4):\n    pl.write(signal, [i, 0], pl.cast(i + 3, pl.INT32))\nt = {how}\n"
    kernel += "s = pl.cast(pl.read(t, [0, 0]) + pl.read(t, [1, 0]) * 10 + pl.read(t, [3, 0]) * 100, pl.INT32)\n"
    kernel += "for j in pl.range(64):\n    pl.write(y, [0, j], pl.cast(s, pl.FP32))"
    x, y = arrays(2)
    compiled, _ = compile_for(load_source(text_of(kernel=kernel)).program, (x, y), 2)
    compiled(x, y, config=RunConfig(sim=SimOptions(checks="strict")))
    assert (y == 3 + 40 + 600).all()


@pytest.mark.parametrize(
    "line",
    [
        "t = pld.tile.remote_load(data, (me + 1) % n, [0, 0], [64, 64])",
        "pld.tensor.get(data, (me + 1) % n, data)",
        "pld.tensor.put(data, (me + 1) % n, data)",
    ],
)
def test_block_scaled_windows(line, load_source):  # 03 X-28, O-34
    text = text_of(kernel=f"{line}  # <- here\n{COPY}", data_shape="[64, 64]", data_dtype="pl.FP8E8M0")
    annotation = "pld.DistributedTensor[[64, 64], pl.FP8E8M0]"
    scaled = text.replace(annotation, annotation[:-1] + ", pl.TensorLayout.MX_A_ZZ]")
    assert scaled != text
    with pytest.raises(Exception) as caught:
        compile_for(load_source(scaled).program, arrays(2), 2, "a5sim")
    said = str(caught.value)
    assert caught.value.diagnostic.id == "X-28" and f".py:{line_of(text)}:" in said, said
    assert "MX" in said and "use an ND window" in said, said
