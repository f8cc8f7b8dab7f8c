# SPDX-License-Identifier: Apache-2.0
"""Rules of chapter 01 seen from a whole program: names of modules, symbols, views, returns, meets, capacity, stores."""

import numpy as np
import pypto.language as pl
import pytest
from pypto import ir
from pypto.language.parser import diagnostics as d
from rejections import define, kernel


def numbers(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


# ---------------------------------------------------------------- L-1


@pytest.mark.parametrize(
    "imports,prefix,dist",
    [
        ("import pypto.language as other\nimport pypto.language.distributed as far", "other", "far"),
        ("from pypto import language\nfrom pypto.language import distributed", "language", "distributed"),
        ("import pypto.language\nimport pypto.language.distributed", "pypto.language", "pypto.language.distributed"),
    ],
)
def test_modules_are_found_by_what_they_are(tmp_path, imports, prefix, dist):  # L-1
    """Neither `pl` nor `pld` is a word of the language; the text of a program says `pl` whatever was written."""
    text = f"""
import sys
{imports}
pl = pld = None

@P.program
class Sum:
    @P.function(type=P.FunctionType.InCore)
    def k(self, x: P.Tensor[[2, 8, 32], P.FP32], o: P.Out[P.Tensor[[8, 32], P.FP32]]):
        o[:, :] = P.add(x[0], P.mul(x[1], 2.0))
        return o

    @P.function(type=P.FunctionType.Orchestration)
    def chip(self, x: P.Tensor[[2, 8, 32], P.FP32], o: P.Out[P.Tensor[[8, 32], P.FP32]]):
        o = self.k(x, o)
        return o

    @P.function(level=P.Level.HOST, role=P.Role.Orchestrator)
    def host(self, x: P.Tensor[[2, 8, 32], P.FP32], o: P.Out[P.Tensor[[2, 8, 32], P.FP32]]):
        for r in P.range(D.world_size()):
            self.chip(x, o[r], device=r)
        return o
""".replace("P.", prefix + ".").replace("D.", dist + ".")
    program = define(tmp_path, text)["Sum"]
    shown = program.as_python()
    assert "import pypto.language as pl\n" in shown and "pld.system.world_size()" in shown
    assert "import pypto.language.distributed as pld\n" in shown and "@pl.program" in shown
    assert ir.structural_equal(program, pl.parse(shown), enable_auto_mapping=True)


# ---------------------------------------------------------------- L-9


def test_outputs_are_of_the_kind_of_the_inputs(tmp_path):  # L-9
    torch = pytest.importorskip("torch")

    @pl.program
    class Two:
        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            x: pl.Tensor[[8, 32], pl.FP32],
            y: pl.Tensor[[8, 32], pl.FP32],
            o: pl.Out[pl.Tensor[[8, 32], pl.FP32]],
            n: pl.Out[pl.Tensor[[8, 32], pl.INT32]],
        ):
            with pl.at(level=pl.Level.CORE_GROUP):
                o[:] = pl.sub(x, y)
            with pl.at(level=pl.Level.CORE_GROUP):
                n[:] = pl.cast(pl.mul(x, 100.0), pl.INT32, mode="trunc")
            return o, n

    run = ir.compile(Two, output_dir=tmp_path / "out", dump_passes=False)
    x, y = numbers((8, 32), 1), numbers((8, 32), 2)
    for left, right in (
        (x, y),
        (torch.from_numpy(x), y),
        (x, torch.from_numpy(y)),
        (torch.from_numpy(x), torch.from_numpy(y)),
    ):
        kind = torch.Tensor if torch.Tensor in (type(left), type(right)) else np.ndarray
        o, n = run(left, right)
        assert type(o) is kind and type(n) is kind
        np.testing.assert_array_equal(np.asarray(o), x - y)
        np.testing.assert_array_equal(np.asarray(n), np.trunc(x * np.float32(100)).astype(np.int32))


# ---------------------------------------------------------------- L-31


@pytest.mark.parametrize("rows,cols", [(12, 32), (20, 48)])
def test_symbols_compute_like_integers(tmp_path, rows, cols):  # L-31
    """In shapes that the callee declares and in bodies, with numbers on either side."""
    text = """
M, N = pl.dynamic("M"), pl.dynamic("N")
HALF, ODD = M // 2, (100 - M) % 7

@pl.jit.incore
def part(x: pl.Tensor[[M, N], pl.FP32], o: pl.Out[pl.Tensor[[HALF, N], pl.FP32]]):
    o[:, :] = pl.mul(x[0 : M // 2, :], 2.0)
    return o

@pl.jit
def f(x: pl.Tensor[[M, N], pl.FP32], o: pl.Out[pl.Tensor[[M // 2, N], pl.FP32]], n: pl.Out[pl.Tensor[[9], pl.INT64]]):
    o = part(x, o)
    with pl.at(level=pl.Level.CORE_GROUP):
        pl.write(n, [0], pl.cast(M + N, pl.INT64))
        pl.write(n, [1], pl.cast(M - N, pl.INT64))
        pl.write(n, [2], pl.cast(3 * M * N, pl.INT64))
        pl.write(n, [3], pl.cast((M - 100) // 7, pl.INT64))
        pl.write(n, [4], pl.cast((M - 100) % 7, pl.INT64))
        pl.write(n, [5], pl.cast(1000 // M, pl.INT64))
        pl.write(n, [6], pl.cast(ODD, pl.INT64))
        pl.write(n, [7], pl.cast(7 - HALF, pl.INT64))
        pl.write(n, [8], pl.cast(M, pl.INT64))
    return o, n
"""
    x, o, n = numbers((rows, cols), 3), np.zeros((rows // 2, cols), np.float32), np.zeros(9, np.int64)
    define(tmp_path, text)["f"](x, o, n)
    np.testing.assert_array_equal(o, 2 * x[: rows // 2])
    want = [
        rows + cols,
        rows - cols,
        3 * rows * cols,
        (rows - 100) // 7,
        (rows - 100) % 7,
        1000 // rows,
        (100 - rows) % 7,
    ]
    np.testing.assert_array_equal(n, [*want, 7 - rows // 2, rows])
    m = pl.dynamic("M")
    texts = {"M + 3": m + 3, "3 + M": 3 + m, "M - 3": m - 3, "3 - M": 3 - m, "M * 3": m * 3, "M // 3": m // 3, "3 // M": 3 // m,
             "M % 3": m % 3, "3 % M": 3 % m}  # fmt: skip
    assert {text: repr(value) for text, value in texts.items()} == {text: text for text in texts}


# ---------------------------------------------------------------- L-37

TILE = "t: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec, pl.TileView({})] = pl.load(x, [0, 0], [16, 64]{})"


@pytest.mark.parametrize(
    "fields",
    [
        "blayout=pl.TileLayout.row_major, slayout=pl.TileLayout.none_box",
        "fractal=32",
        "fractal=512",
        "fractal=1024",
        "pad=pl.PadValue.zero",
        "compact=pl.CompactMode.normal",
        "compact=pl.CompactMode.null, pad=pl.PadValue.null",
        "",
    ],
)
def test_fields_of_a_tile_view(tmp_path, fields):  # L-37
    kernel(tmp_path, TILE.format(fields, ""))


def test_valid_shape_of_a_tile_view(tmp_path):  # L-37, L-40
    """The view completes the value: only the valid cells are stored, with constants and with scalars."""
    text = """
@pl.jit
def f(x: pl.Tensor[[16, 64], pl.FP32], n: pl.Tensor[[1], pl.INT32], o: pl.Out[pl.Tensor[[2, 16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        k = pl.read(n, [0])
        t: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[5, 40])] = pl.load(
            x, [0, 0], [16, 64], valid_shape=[5, 40])
        u: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[k, 64])] = pl.load(
            x, [0, 0], [16, 64], valid_shape=[k, 64])
        o[0] = t
        o[1] = u
    return o
"""
    x, o = numbers((16, 64), 4), np.zeros((2, 16, 64), np.float32)
    define(tmp_path, text)["f"](x, np.array([9], np.int32), o)
    want = np.zeros((2, 16, 64), np.float32)
    want[0, :5, :40], want[1, :9] = x[:5, :40], x[:9]
    np.testing.assert_array_equal(o, want)


BAD_VIEWS = {
    "pl.TileLayout.row_major": "keyword",
    "fractal=64": "fractal",
    "fractal='a'": "fractal",
    "blayout=3": "layout",
    "pad=1": "PadValue",
    "compact=pl.PadValue.zero": "CompactMode",
    "valid_shape=[1.5, 64]": "1.5",
    "valid_shape=['a', 64]": "",
    "depth=2": "depth",
}


@pytest.mark.parametrize("fields", BAD_VIEWS)
def test_rejected_fields_of_a_tile_view(tmp_path, fields):  # L-37
    with pytest.raises(d.ParserTypeError, match=BAD_VIEWS[fields]):
        kernel(tmp_path, TILE.format(fields, ""))


@pytest.mark.parametrize("fields", BAD_VIEWS)
def test_rejected_fields_of_a_view_made_outside(tmp_path, fields):  # L-37
    """A view held in a name of the module is judged like one that is written in place."""
    text = f"""
VIEW = pl.TileView({fields})

@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
        t: pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec, VIEW] = pl.load(x, [0, 0], [16, 64])
        o = pl.store(t, [0, 0], o)
        return o
"""
    with pytest.raises(d.ParserTypeError, match=BAD_VIEWS[fields]):
        define(tmp_path, text)


# ---------------------------------------------------------------- L-51


@pytest.mark.parametrize(
    "annotation,value,fragment",
    [
        ("pl.Tensor[[64, 64], pl.FP32]", "x, o", "2 value(s)"),
        ("tuple[pl.Tensor[[64, 64], pl.FP32], pl.Tensor[[64, 64], pl.FP32]]", "o", "1 value(s)"),
        ("pl.Scalar[pl.FP32]", "o", "kind"),
        ("pl.Tensor[[64, 64], pl.FP16]", "o", "dtype"),
        ("pl.Tensor[[64, 8, 8], pl.FP32]", "o", "rank"),
        ("pl.Tensor[[4096], pl.FP32]", "o", "rank"),
    ],
)
def test_annotation_of_the_results(tmp_path, annotation, value, fragment):  # L-51
    text = f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.InCore)
    def k(self, x: pl.Tensor[[64, 64], pl.FP32], o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]) -> {annotation}:
        o = pl.store(pl.load(x, [0, 0], [64, 64]), [0, 0], o)
        return {value}
"""
    with pytest.raises(d.ParserTypeError) as info:
        define(tmp_path, text)
    assert fragment in str(info.value) and ".py:9:" in str(info.value)


@pytest.mark.parametrize("other", ["y", "x, o", "pl.dim(x, 0)"])
def test_the_first_return_types_the_others(tmp_path, other):  # L-51, L-52
    text = f"""
@pl.program
class P:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64, 64], pl.FP32], n: pl.Scalar[pl.INT32], y: pl.Out[pl.Tensor[[64], pl.FP32]],
             o: pl.Out[pl.Tensor[[64, 64], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            o[:, :] = pl.add(x, 1.0)
        with pl.at(level=pl.Level.CORE_GROUP):
            y[:] = pl.full([64], pl.FP32, 2.0)
        if n > 3:
            return o
        return {other}
"""
    with pytest.raises(d.ParserTypeError, match="first one gives"):
        define(tmp_path, text)
    define(tmp_path, text.replace(f"return {other}", "return o"))


# ---------------------------------------------------------------- L-83


def test_plain_assignment_copies_a_tile(tmp_path):  # L-83, L-185
    text = """
@pl.jit
def f(x: pl.Tensor[[8, 32], pl.FP32], o: pl.Out[pl.Tensor[[3, 8, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0], [8, 32])
        b = a
        pl.tile.write(a, [1, 2], 50.0)
        c = b
        pl.tile.write(b, [3, 4], 60.0)
        o[0] = a
        o[1] = b
        o[2] = c
    return o
"""
    x, o = numbers((8, 32), 5), np.zeros((3, 8, 32), np.float32)
    define(tmp_path, text)["f"](x, o)
    a, b = x.copy(), x.copy()
    a[1, 2], b[3, 4] = 50, 60
    np.testing.assert_array_equal(o, [a, b, x])


@pytest.mark.parametrize("shape,dtype", [([32, 64], "FP32"), ([64, 64], "FP16")])
@pytest.mark.parametrize(
    "body",
    [
        "for i in pl.range(n):\n    t = {}",
        "if n > 1:\n    t = {}\npl.store(t, [0, 0], o)",
        "for i, (c,) in pl.range(n, init_values=(t,)):\n    c2 = pl.yield_({})",
        "while n > 1:\n    t = {}\n    n = pl.const(0, pl.INT32)",
    ],
)
def test_types_of_definitions_that_meet(tmp_path, body, shape, dtype):  # L-83, L-84
    other = f"pl.tile.full({shape}, dtype=pl.{dtype}, value=1)"
    with pytest.raises(d.ParserTypeError, match="Cannot reassign '[tc]' with a different type: was .*, got "):
        kernel(tmp_path, "t = pl.load(x, [0, 0], [64, 64])\n" + body.format(other))
    kernel(
        tmp_path, "t = pl.load(x, [0, 0], [64, 64])\n" + body.format("pl.tile.full([64, 64], dtype=pl.FP32, value=1)")
    )


# ---------------------------------------------------------------- L-147


def chain(count, rows, last="pl.store(t, [0, 0], o)"):
    lines = ["t = pl.load(x, [0, 0], [ROWS, 64])"] + ["t = pl.exp(t)"] * count + ["o = " + last]
    return f"""
@pl.jit
def f(x: pl.Tensor[[ROWS, 64], pl.FP32], o: pl.Out[pl.Tensor[[ROWS, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="chain"):
        {(chr(10) + " " * 8).join(lines)}
    return o
""".replace("ROWS", str(rows))


@pytest.mark.parametrize(
    "count,rows,fits", [(0, 736, True), (0, 737, False), (1, 368, True), (6, 368, True), (1, 740, False)]
)
def test_room_of_a_chain_of_tiles(tmp_path, count, rows, fits):  # L-147
    """Vec of a2a3 holds 188416 bytes: 736 rows of 256 bytes; an operation needs its source and its result."""
    f = define(tmp_path, chain(count, rows))["f"]
    if fits:
        f.compile()
        return
    with pytest.raises(ValueError, match="exceeds platform limit \\(188416 bytes\\)") as info:
        f.compile()
    for fragment in ("Vec buffer usage (", "chain", f"[{rows}, 64]", "'t'"):
        assert fragment in str(info.value)


# ---------------------------------------------------------------- L-150

STORES = """
@pl.jit
def f(x: pl.Tensor[[16, 64], pl.FP32], o: pl.Out[pl.Tensor[[16, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        {}
    return o
"""
BULK = "o = pl.store(pl.exp(pl.load(x, [0, 0], [16, 64])), [0, 0], o)"
ELEMENTS = ["pl.write(o, [3, 5], 7.0)", "pl.write(o, [15, 63], pl.read(x, [2, 2]))"]


@pytest.mark.parametrize("fence", ["pl.system.fence()", "pl.system.bar_all()"])
def test_element_writes_after_a_fence(tmp_path, fence):  # L-150
    x, o = numbers((16, 64), 6), np.zeros((16, 64), np.float32)
    define(tmp_path, STORES.format("\n        ".join([BULK, fence, *ELEMENTS])))["f"](x, o)
    want = np.exp(x.astype(np.float64))
    want[3, 5], want[15, 63] = 7, x[2, 2]
    np.testing.assert_allclose(o, want, rtol=1e-6)


@pytest.mark.parametrize(
    "lines",
    [
        [BULK, *ELEMENTS],
        ["o[:, :] = pl.exp(x)", *ELEMENTS],
        ["pl.assemble(o, pl.exp(x), [0, 0])", *ELEMENTS],
        [*ELEMENTS, BULK],
        [*ELEMENTS, "pl.system.fence()", BULK],
        [BULK, ELEMENTS[0], "pl.system.fence()", ELEMENTS[1]],
        ["pl.system.bar_all()", BULK, *ELEMENTS],
    ],
)
def test_mixed_writes(tmp_path, lines):  # L-150
    with pytest.raises(ValueError, match="mixes .*scalar stores .*'o'") as info:
        define(tmp_path, STORES.format("\n        ".join(lines)))["f"].compile()
    bulk = 7 + next(k for k, line in enumerate(lines) if line[:4] not in ("pl.w", "pl.s"))
    element = 7 + lines.index(ELEMENTS[0])
    assert f".py:{bulk}" in str(info.value) and f".py:{element}" in str(info.value)


# ---------------------------------------------------------------- L-67

LOWERED = """
@pl.inline
def twice(t):
    return pl.mul(t, 2.0)

@pl.jit.incore
def own(x: pl.Tensor[[32, 32], pl.FP32], o: pl.Out[pl.Tensor[[32, 32], pl.FP32]]):
    o = pl.store(twice(pl.load(x, [0, 0], [32, 32])), [0, 0], o)
    return o

@pl.jit
def main(x: pl.Tensor[[32, 32], pl.FP32], o: pl.Out[pl.Tensor[[5, 32, 32], pl.FP32]]):
    a = pl.create_tensor([32, 32], dtype=pl.FP32)
    a = own(x, a)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="hint"):
        o[0] = twice(a)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="hint"):
        o[1] = pl.exp(x)
    with pl.at(level=pl.Level.CORE_GROUP):
        o[2] = pl.add(x, 1.0)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="cube"):
        pl.store(pl.matmul(pl.load(x, [0, 0], [32, 32]), pl.load(x, [0, 0], [32, 32])), [3, 0, 0], o)
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="both"):
        o[4] = twice(pl.matmul(x, x))
    return o
"""


def test_functions_of_a_lowered_program(tmp_path):  # L-67
    f = define(tmp_path, LOWERED)["main"]
    functions = f.lower().functions
    kinds = {v.name: v.func_type for v in functions.values()}
    assert len(functions) == len(kinds) and list(functions) == list(kinds)
    types = pl.FunctionType
    assert [n for n, t in kinds.items() if t == types.Orchestration] == ["main"]
    assert {n: kinds.get(n) for n in ("own", "hint", "cube", "both", "both_aic", "both_aiv")} == {
        "own": types.AIV, "hint": types.AIV, "cube": types.AIC, "both": types.Group, "both_aic": types.AIC, "both_aiv": types.AIV,
    }  # fmt: skip
    rest = set(kinds) - {"main", "own", "hint", "cube", "both", "both_aic", "both_aiv"}
    again = {n for n in rest if n.startswith("hint_")}
    derived = rest - again
    assert len(again) == 1 and len(derived) == 1 and derived.pop().startswith("main")  # no helper among them
    for v in functions.values():
        assert [hasattr(v, n) for n in "name func_type level role params return_types body".split()] == [True] * 7
    x, o = numbers((32, 32), 9), np.zeros((5, 32, 32), np.float32)
    f(x, o)
    product = x.astype(np.float64) @ x
    np.testing.assert_allclose(o, [4 * x, np.exp(x), x + 1, product, 2 * product], rtol=1e-4, atol=1e-4)
    again = np.zeros_like(o)
    program = pl.parse(f.lower().as_python())
    ir.compile(program, output_dir=tmp_path / "again", platform="a2a3sim", dump_passes=False)(x, again)
    np.testing.assert_array_equal(again, o)


def test_tiles_that_are_never_live_together_share_room(tmp_path):  # L-147
    text = """
@pl.jit
def f(x: pl.Tensor[[700, 64], pl.FP32], o: pl.Out[pl.Tensor[[2, 700, 64], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0], [700, 64])
        o = pl.store(a, [0, 0, 0], o)
        b = pl.load(x, [0, 0], [700, 64])
        o = pl.store(b, [1, 0, 0], o)
    return o
"""
    x, o = numbers((700, 64), 8), np.zeros((2, 700, 64), np.float32)
    define(tmp_path, text)["f"](x, o)
    np.testing.assert_array_equal(o, [x, x])
