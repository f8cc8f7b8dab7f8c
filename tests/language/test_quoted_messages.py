# SPDX-License-Identifier: Apache-2.0
"""Rejections that need a program of their own: class, words and place of the message.

`^` in a program stands before the token that the message must point at; it is taken out before the program is read.
"""

import re
from pathlib import Path

import pypto
import pytest
from pypto import ir
from pypto.language.parser import diagnostics as d
from pypto.runtime import RunConfig
from rejections import IMPORTS, define, place

METHOD = """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k({}){}:
        {}
"""
X = "self, x: pl.Tensor[[64, 64], pl.FP32]"


def method(parameters=X, returns="", body="pass"):
    return METHOD.format(parameters, returns, body.replace("\n", "\n        "))


def region(body, *, extra="", head="pl.jit", at="", go="k.compile()"):
    """A JIT function with one region; `x`, `w` and `o` are 64x64 FP32."""
    text = f"""
@{head}
def k(x: pl.Tensor[[64, 64], pl.FP32], w: pl.Tensor[[64, 64], pl.FP32], {extra}
      o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="region"{at}):
        {{}}
    return o

go = lambda: {go}
"""
    return text.format(body.replace("\n", "\n        "))


def launch(spmd, core_type, more=""):
    return f"""
@pl.jit
def k(x: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    {"" if more else "^"}for i in {spmd}:
        o[i : i + 1, :] = pl.add(x[i : i + 1, :], 1.0)
        {"^" if more else ""}pl.system.syncall(core_type="{core_type}"{more})
    return o

go = lambda: k.compile()
"""


def channel(setup=True, imports=1, columns=32, slot=16 * 32 * 4, slots=2, cube=True):
    """Vector cores hand a tile to the cube core through a channel that the program sets up by hand."""
    mark = "^" if columns == 30 or not setup else ""
    at = "^" if imports == 0 else ""
    lines = ['peer = pl.import_peer_buffer(name="ring", peer_func="take")'] * imports or ["peer = 0"]
    lines += [f"{at}pl.aiv_initialize_pipe(0, peer, dir_mask=2, slot_size={slot}, slot_num={slots})"] * setup
    take = f"pl.aic_initialize_pipe(0, ring, dir_mask=2, slot_size={slot}, slot_num={slots})" if cube else "pass"
    give = ("\n" + " " * 8).join(lines)
    return f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.AIV)
    def give(self, x: pl.Tensor[[16, {columns}], pl.FP32], o: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        {give}
        {mark}pl.tpush_to_aic(pl.load(x, [0, 0], [16, {columns}]), split=0)

    @pl.function(type=pl.FunctionType.AIC)
    def take(self, x: pl.Tensor[[16, {columns}], pl.FP32], o: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        ring = pl.reserve_buffer(name="ring", size={slot} * {slots}, base=pl.AUTO)
        {take}
        t: pl.Tile[[16, {columns}], pl.FP32, pl.Mem.Mat] = pl.tpop_from_aiv(shape=[16, {columns}], dtype=pl.FP32, split=0)
        o = pl.store(pl.matmul(t, pl.tile.transpose_view(t)), [0, 0], o)
        pl.tfree_to_aiv(t)

    @pl.function(type=pl.FunctionType.Group)
    def both(self, x: pl.Tensor[[16, {columns}], pl.FP32], o: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        self.take(x, o)
        self.give(x, o)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, {columns}], pl.FP32], o: pl.Out[pl.Tensor[[16, 16], pl.FP32]]):
        self.both(x, o)

go = lambda: ir.compile(P, platform="a2a3sim", dump_passes=False)
"""


CASES = {
    # L-14
    "value of the enclosing scope": (
        "value = object()\n" + method(body="^a = value"),
        d.ParserTypeError,
        ["Unsupported closure variable type: object"],
    ),
    # L-28
    "nested tuple": (
        method(returns=" -> tuple[^tuple[pl.Tensor[[4], pl.FP32], pl.Tensor[[4], pl.FP32]], pl.Tensor[[4], pl.FP32]]"),
        d.ParserTypeError,
        ["Nested tuple types are not supported"],
    ),
    "dtype": (method("self, x: pl.Tensor[[64], ^pl.FP33]"), d.ParserTypeError, ["Unknown dtype: ", "FP33", "FP32"]),
    "layout": (
        method("self, x: pl.Tensor[[64, 64], pl.FP32, ^pl.TensorLayout.XY]"),
        d.ParserTypeError,
        ["Unknown layout: ", "XY"],
    ),
    "memory space": (
        method(body="t: pl.Tile[[64, 64], pl.FP32, ^pl.Mem.Vecc] = pl.load(x, [0, 0], [64, 64])"),
        d.ParserTypeError,
        ["Unknown memory space: ", "Vecc", "Vec"],
    ),
    "constructor": (
        method("self, x: ^pl.Tensr[[64, 64], pl.FP32]"),
        d.ParserTypeError,
        ["Unsupported type annotation: ", "pl.Tensr", "pl.Tensor"],
    ),
    "array extent": (
        method(
            "self, x: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INT32]",
            body="a: pl.Array[^n, pl.INT32] = pl.array.create(4, pl.INT32)",
        ),
        d.ParserTypeError,
        ["Array extent must be an int literal or compile-time constant"],
    ),
    # L-38
    "fixed layout": (
        region(
            "a = pl.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Mat)\n"
            "^b: pl.Tile[[64, 64], pl.FP32, pl.Mem.Left, pl.TileView(blayout=pl.TileLayout.none_box)] = pl.move(a, target_memory=pl.Mem.Left)\n"
            "o = pl.store(pl.matmul(b, pl.load(w, [0, 0], [64, 64])), [0, 0], o)"
        ),
        (ValueError, d.ParserError),
        ["does not allow blayout/slayout to override", "Left"],
    ),
    # L-40
    "hint of an annotation": (
        method(body="^t: pl.Tile[[64, 32], pl.FP32] = pl.load(x, [0, 0], [64, 64])"),
        d.ParserTypeError,
        [
            "has shape dimension 1 = 32 but expression has shape dimension 1 = 64",
            "Change annotation to: pl.Tile[[64, 64], pl.FP32",
        ],
    ),
    "kind of an annotation": (
        method(body="^t: pl.Tensor[[64, 64], pl.FP32] = pl.load(x, [0, 0], [64, 64])"),
        d.ParserTypeError,
        ["Type annotation for 't' is pl.Tensor", " but expression has type pl.Tile"],
    ),
    # L-47
    "function and method of one name": (
        """
@pl.function(type=pl.FunctionType.InCore)
def k(x: pl.Tensor[[64], pl.FP32]):
    pass

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64], pl.FP32]):
        pass

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64], pl.FP32]):
        self.k(x)
        ^k(x)
""",
        d.ParserSyntaxError,
        ["conflicts with program function", "'k'"],
    ),
    "two functions of one name": (
        """
def make(value):
    @pl.function(type=pl.FunctionType.InCore)
    def k(x: pl.InOut[pl.Tensor[[64], pl.FP32]]):
        pl.write(x, [0], value)
    return k

one, two = make(1.0), make(2.0)

@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.InOut[pl.Tensor[[64], pl.FP32]]):
        one(x)
        ^two(x)
""",
        d.ParserSyntaxError,
        ["Conflicting external functions", "'k'"],
    ),
    # L-59
    "inline arguments": (
        """
@pl.inline
def h(a, b):
    return pl.add(a, b)

"""
        + region("o = pl.store(^h(pl.load(x, [0, 0], [64, 64])), [0, 0], o)"),
        d.ParserError,
        ["Inline function 'h' expects 2 argument(s), got 1"],
    ),
    # L-63
    "external kernel with a body": (
        """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.AIV, external_source=HERE)
    def k(self, x: pl.Tensor[[64], pl.FP32]):
        ^y = pl.read(x, [0])
""",
        d.ParserSyntaxError,
        ["must have an empty '...' body"],
    ),
    "external orchestration": (
        """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration, external_source=HERE)
    def k(self, x: pl.Tensor[[64], pl.FP32]): ...
""",
        d.ParserTypeError,
        ["external_source"],
    ),
    # L-73
    "metadata of an argument": (
        """
@pl.jit.incore
def inner(t: pl.Tensor, o: pl.Out[pl.Tensor]):
    o = pl.store(pl.load(t, [0, 0], [64, 64]), [0, 0], o)
    return o

@pl.jit
def k(x: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
    o = ^inner('text', o)
    return o

go = lambda: k.compile()
""",
        ValueError,
        ["missing inferred tensor metadata", "'t'", "'inner'"],
    ),
    # L-83
    "types at a meet": (
        method(body="t = pl.load(x, [0, 0], [64, 64])\nfor i in pl.range(4):\n    ^t = pl.load(x, [0, 0], [32, 64])"),
        d.ParserTypeError,
        ["Cannot reassign 't' with a different type: was Tile[[64, 64], fp32], got Tile[[32, 64], fp32]"],
    ),
    # L-95, L-103, L-106
    "python range": (
        method(body="for i in ^range(4):\n    pass"),
        d.ParserSyntaxError,
        ["For loop must use pl.range()"],
    ),
    "break": (
        """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.InOut[pl.Tensor[[64, 64], pl.FP32]]):
        for i in pl.range(4):
            with pl.at(level=pl.Level.CORE_GROUP):
                x[:] = pl.add(x, 1.0)
                ^break
""",
        d.InvalidOperationError,
        ["'break' outside loop", "pl.at"],
    ),
    "break of spmd": (
        """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.InOut[pl.Tensor[[64, 64], pl.FP32]]):
        for i in pl.spmd(4):
            ^break
""",
        d.InvalidOperationError,
        ["'break'", "pl.spmd"],
    ),
    "assertion": (
        method(body="^pl.static_assert(1 > 2, 'one is less')"),
        d.ParserError,
        ["static_assert failed: one is less", "1 > 2"],
    ),
    # L-117
    "split of a region on the launch": (
        """
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.InOut[pl.Tensor[[64, 64], pl.FP32]]):
        with pl.spmd(4, optimizations=[pl.split(pl.SplitMode.UP_DOWN)]):
            with pl.at(level=pl.Level.CORE_GROUP, optimizations=^[pl.split(pl.SplitMode.UP_DOWN)]):
                i = pl.get_block_idx()
                x[i * 16 : i * 16 + 16, :] = pl.add(x[i * 16 : i * 16 + 16, :], 1.0)
""",
        d.ParserSyntaxError,
        ["belongs on the InCore scope"],
    ),
    # L-123, L-124, L-125
    "lanes twice": (
        region(
            "^for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    o[:] = pl.add(x, 1.0)",
            at=", optimizations=[pl.split(pl.SplitMode.UP_DOWN)]",
        ),
        d.ParserSyntaxError,
        ["mutually exclusive"],
    ),
    "shard outside": (
        region(
            "c = pl.matmul(pl.load(x, [0, 0], [64, 64]), pl.load(w, [0, 0], [64, 64]))\nv = ^pl.aiv_shard(c)\no = pl.store(v, [0, 0], o)"
        ),
        d.ParserError,
        ["must be used inside a 'for ... in pl.split_aiv"],
    ),
    "shard of two": (
        region(
            "c = pl.matmul(pl.load(x, [0, 0], [64, 64]), pl.load(w, [0, 0], [64, 64]))\n"
            "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    v = pl.aiv_shard(c, ^c)"
        ),
        d.ParserError,
        ["takes exactly one positional argument"],
    ),
    "shard with a keyword": (
        region(
            "c = pl.matmul(pl.load(x, [0, 0], [64, 64]), pl.load(w, [0, 0], [64, 64]))\n"
            "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    v = ^pl.aiv_shard(c, split=1)"
        ),
        d.ParserError,
        ["does not accept keyword argument"],
    ),
    "outlined shard of a tensor": (
        region("v = ^pl.tile.aiv_shard(x, split=1)"),
        d.ParserError,
        ["tile-only"],
    ),
    # L-127
    "lanes of unequal size": (
        region(
            "c = pl.matmul(pl.load(x, [0, 0], [64, 64]), pl.load(w, [0, 0], [64, 64]))\n"
            "c = pl.set_validshape(c, 40, 64)\n"
            "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    v = ^pl.aiv_shard(c)\n"
            "    o = pl.store(v, [lane * 32, 0], o)"
        ),
        ValueError,
        ["leaves the two AIV lanes 32 and 8 cells", "independently split value", "pl.tile.set_validshape", "64 / 63"],
    ),
    "gather of a part": (
        region(
            "c = pl.matmul(pl.load(x, [0, 0], [64, 64]), pl.load(w, [0, 0], [64, 64]))\n"
            "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n"
            "    v = pl.set_validshape(pl.exp(pl.aiv_shard(c)), 20, 64)\n    g = ^pl.aic_gather(v)\n"
            "e = pl.matmul(g, pl.load(w, [0, 0], [64, 64]))\no = pl.store(e, [0, 0], o)"
        ),
        ValueError,
        ["tile.aic_gather re-joins the two lanes positionally", "(20 of 32)", "pl.fillpad"],
    ),
    "columns of a part": (
        region(
            "c = pl.matmul(pl.load(x, [0, 0], [64, 64]), pl.load(w, [0, 0], [64, 64]))\n"
            "c = pl.set_validshape(c, 64, 40)\n"
            "for lane in pl.split_aiv(2, mode=pl.SplitMode.LEFT_RIGHT):\n    v = ^pl.aiv_shard(c)\n"
            "    o = pl.store(v, [0, lane * 32], o)"
        ),
        ValueError,
        [
            "LEFT_RIGHT splits the column axis",
            "valid column extent (40 of 64)",
            "mode=pl.SplitMode.UP_DOWN",
            "pl.set_validshape",
        ],
    ),
    "rows with narrowed columns": (
        region(
            "c = pl.matmul(pl.load(x, [0, 0], [64, 64]), pl.load(w, [0, 0], [64, 64]))\n"
            "c = pl.set_validshape(c, 62, 40)\n"
            "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    v = ^pl.aiv_shard(c)\n"
            "    o = pl.store(v, [lane * 32, 0], o)"
        ),
        ValueError,
        ["per-lane row extent", "pl.set_validshape"],
    ),
    # L-139
    "dump_tag in a kernel": (
        method(body="^pl.dump_tag(x)"),
        d.ParserError,
        ["only valid inside an Orchestration or Inline function"],
    ),
    # L-143
    "target of a load": (
        region("t = ^pl.load(x, [0, 0], [64, 64], target_memory=pl.Mem.Left)"),
        (ValueError, d.ParserError),
        ["Left", "pl.move"],
    ),
    # L-146
    "stride that is not whole": (
        region(
            "^t: pl.Tile[[64, 60], pl.FP16, pl.Mem.Vec, pl.TileView(stride=[60, 1])] = pl.load(h, [0, 0], [64, 60])\n"
            "o = pl.store(pl.cast(t, pl.FP32), [0, 0], o)",
            extra="h: pl.Tensor[[64, 64], pl.FP16],",
        ),
        ValueError,
        ["32-byte aligned", "[64, 60]", "fp16", "120 bytes", "a multiple of 32 bytes"],
    ),
    "allocation without room for padding": (
        method(
            "self, x: pl.Tensor[[64, 64], pl.FP16], o: pl.Out[pl.Tensor[[64, 64], pl.FP16]]",
            body="base: pl.Ptr = pl.tile.alloc(pl.Mem.Vec, 64 * 120)\n"
            "^t: pl.Tile[[64, 60], pl.FP16, pl.Mem.Vec, pl.MemRef(base, 0, 64 * 120)] = pl.load(x, [0, 0], [64, 60])\n"
            "o = pl.store(t, [0, 0], o)",
        )
        + "\ngo = lambda: ir.compile(P, platform='a2a3sim', dump_passes=False)\n",
        ValueError,
        ["32-byte aligned", "[64, 60]", "fp16", "7680 bytes", "120 bytes"],
    ),
    # L-147
    "capacity": (
        """
@pl.jit
def k(x: pl.Tensor[[512, 512], pl.FP32], o: pl.Out[pl.Tensor[[512, 512], pl.FP32]]):
    ^with pl.at(level=pl.Level.CORE_GROUP, name_hint="big"):
        t = pl.load(x, [0, 0], [512, 512])
        o = pl.store(pl.exp(t), [0, 0], o)
    return o

go = lambda: k.compile()
""",
        ValueError,
        ["Vec buffer usage (", " bytes) exceeds platform limit (188416 bytes)", "big", "[512, 512]"],
    ),
    "channel and tiles": (
        channel(columns=512, slot=16 * 512 * 4, slots=32),
        ValueError,
        [
            "Mat buffer usage (",
            " bytes) exceeds platform limit (524288 bytes)",
            "The first 1048576 bytes of that space are reserved by system.reserve_buffer",
            "cross-core pipe ring",
            "pl.cross_core_slot(slot_num=N)",
        ],
    ),
    # L-148
    "accumulator": (
        region(
            "c = pl.matmul(pl.load(a, [0, 0], [64, 64]), pl.load(a, [0, 0], [64, 64]))\nq = ^pl.store(c, [0, 0], q)\no[:] = pl.add(x, 1.0)",
            extra="a: pl.Tensor[[64, 64], pl.FP16], q: pl.InOut[pl.Tensor[[64, 64], pl.INT16]],",
        ),
        (pypto.Error, d.ParserError),
        ["AccToGmStoreValid", "cube accumulator cannot be stored directly", "int16"],
    ),
    # L-149
    "atomic type": (
        region(
            "q = ^pl.store(pl.load(a, [0, 0], [64, 64]), [0, 0], q, atomic=pl.AtomicType.Add)\no[:] = pl.add(x, 1.0)",
            extra="a: pl.Tensor[[64, 64], pl.UINT16], q: pl.InOut[pl.Tensor[[64, 64], pl.UINT16]],",
        ),
        (pypto.Error, d.ParserError),
        ["AtomicAddDtypeValid", "uint16"],
    ),
    "atomic bf16": (
        region(
            "q = ^pl.store(pl.load(a, [0, 0], [64, 64]), [0, 0], q, atomic=pl.AtomicType.Add)\no[:] = pl.add(x, 1.0)",
            extra="a: pl.Tensor[[64, 64], pl.BF16], q: pl.InOut[pl.Tensor[[64, 64], pl.BF16]],",
            go="k.compile(config=RunConfig(platform='a5sim'))",
        ),
        (pypto.Error, d.ParserError),
        ["AtomicAddDtypeValid", "bf16", "a5"],
    ),
    # L-150
    "mixed writes": (
        region(
            "o = pl.store(pl.load(x, [0, 0], [64, 64]), [0, 0], o)\n^pl.write(o, [0, 0], 1.0)\no = pl.store(pl.load(x, [0, 0], [32, 64]), [32, 0], o)"
        ),
        ValueError,
        ["mixes", "scalar stores", "'o'"],
    ),
    # L-169
    "blocks of a barrier": (
        launch("pl.spmd(8, sync_start=True)", "aiv_only"),
        (pypto.Error, ValueError),
        ["requires the SPMD launch to fill all 48 vector cores", "8 block(s)", 'Use mode="soft"'],
    ),
    "query of a barrier": (
        launch("pl.spmd(pl.system.available_cluster_count(), sync_start=True)", "aiv_only"),
        (pypto.Error, ValueError),
        ["requires the SPMD launch to fill all 48 vector cores", "the other kind's count", "available_aiv_count"],
    ),
    "start of a barrier": (
        launch("pl.spmd(48)", "aiv_only"),
        (pypto.Error, ValueError),
        ["requires the SPMD launch to set sync_start=True"],
    ),
    "cores of a barrier": (
        launch("pl.spmd(48, sync_start=True)", "mix"),
        (pypto.Error, ValueError),
        ["can never complete", "no cube cores", 'core_type="aiv_only"', 'Use mode="soft"'],
    ),
    "workspace of a hard barrier": (
        launch("pl.spmd(48, sync_start=True)", "aiv_only", ", used_cores=48"),
        (ValueError, d.ParserError),
        ["used_cores"],
    ),
    # L-173, L-146
    "channel that is not set up": (
        channel(setup=False),
        ValueError,
        ["'give' uses pipe 0", "has no 'system.aiv_initialize_pipe' call"],
    ),
    "channel that the cube does not set up": (
        channel(cube=False),
        ValueError,
        ["'take' uses pipe 0", "has no 'system.aic_initialize_pipe' call"],
    ),
    "storage of a channel": (channel(imports=0), ValueError, ["'give'", "0 import_peer_buffer"]),
    "slot of a channel": (
        channel(columns=30, slot=16 * 30 * 4),
        ValueError,
        ["32-byte aligned", "[16, 30]", "fp32", "120 bytes", "2048"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_rejected(tmp_path, name):
    text, cls, fragments = CASES[name]
    want = None
    head, mark, _ = text.partition("^")
    if mark:
        row = head.count("\n") + 1 + IMPORTS.count("\n")
        want = (row, len(head.rpartition("\n")[2]) + 1)
    with pytest.raises(cls) as info:
        scope = define(tmp_path, text.replace("^", "", 1), ir=ir, HERE=__file__, RunConfig=RunConfig)
        scope.get("go", lambda: None)()
    error = info.value
    shown = str(error) + str(getattr(error, "hint", ""))
    for fragment in fragments:
        assert fragment in shown, shown
    file, *at = place(error)
    assert file.startswith(str(tmp_path)), shown
    if want:
        assert tuple(at) == want, shown


def test_static_print(tmp_path, capsys):  # L-105
    scope = define(tmp_path, method(body="t = pl.load(x, [0, 0], [64, 64])\npl.static_print('a tile', t, f'{3}')"))
    shown = capsys.readouterr().out
    assert re.match(r"static_print \[[^]]*case_\d+\.py:9\]: a tile Tile\[\[64, 64\], fp32.*\] 3\n$", shown), shown
    assert "P" in scope


# ------------------------------------------------------------------------------------------------ all of them

TESTS = Path(__file__).resolve().parents[1]
# In a quoted message: what stands for something of the program.
PLACEHOLDER = re.compile(r"<[^>]*>|…|\b(?:typename|message|<Enum>|RD|T1|T2|[NMABVHkfxihnabX])\b")


def quoted():
    lines = (TESTS / "data" / "messages.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return [line.split("\t") for line in lines]


def pattern(fragment):
    fragment, pieces, at = fragment.removesuffix("…").rstrip(), [], 0
    for m in PLACEHOLDER.finditer(fragment):
        pieces += [re.escape(fragment[at : m.start()]), r".{0,60}?"]
        at = m.end()
    return "".join(pieces) + re.escape(fragment[at:])


@pytest.fixture(scope="module")
def sources():
    """The Python tests as one text: pieces of strings joined, backslashes of patterns left out."""
    text = "\n".join(p.read_text(encoding="utf-8") for p in sorted(TESTS.rglob("*.py")))
    return re.sub(r"\"\s*\n\s*f?\"|\\", "", text)


@pytest.mark.parametrize("rule,fragment", quoted(), ids=lambda v: v[:50])
def test_quoted_message_has_a_test(sources, rule, fragment):  # L-184
    assert re.search(pattern(fragment), sources), f"no test expects {fragment!r} ({rule})"
