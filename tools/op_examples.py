# SPDX-License-Identifier: Apache-2.0
"""What the operations page says about shapes, types and numerics, with an example of each operation.

One entry per operation name: shapes, element types, numerics, example. In an example `@` is the spelling of the row,
`{x}` is the tensor `x` or the tile `tx` by the level of the row. The tests compile and run every example
(`tests/ops/test_ops_reference.py`) on the operands of `OPERANDS`.
"""

from __future__ import annotations

from typing import NamedTuple

from op_programs import PLD, SHOWN

# Tensors of the examples; the tile of `x` is called `tx`, and so on.
OPERANDS = {
    "x": ("FP32", [16, 64]),
    "y": ("FP32", [16, 64]),
    "h": ("FP16", [16, 64]),
    "i": ("INT32", [16, 64]),
    "j": ("INT32", [16, 64]),
    "k": ("INT16", [16, 64]),
    "u": ("UINT32", [16, 64]),
    "col": ("FP32", [16, 1]),
    "row": ("FP32", [1, 64]),
    "m": ("FP32", [64, 64]),
    "q": ("FP32", [2, 16, 64]),
    "z": ("FP32", [1, 16, 64]),
    "places": ("INT32", [1, 16]),
    "f8": ("FP8E4M3FN", [64, 64]),
    "sa": ("UINT8", [64, 2]),
    "sb": ("UINT8", [2, 64]),
}


class Entry(NamedTuple):
    """Facts of one operation name."""

    shapes: str
    types: str
    numerics: str
    example: str
    platform: str = "a2a3sim"
    place: str = "kernel"


ARITHMETIC = "INT8-INT64, UINT8-UINT64, FP16, BF16, FP32; mixed pairs promote (O-301)"
WRAPS = "integers wrap; 16-bit floats in FP32, rounded once (O-303, O-305)"
BITS = "INT8-INT32, UINT8-UINT32; a5 also 64-bit"
FLOATS = "FP16, BF16, FP32"
SUMS = "FP16, BF16, FP32, INT16, INT32"
ARGS = "FP16, FP32, INT16, INT32; result INT32"
EXACT = "exact"
BROADCAST = "NumPy broadcast of the operands; valid region of the first"
SAME = "shape and valid region of the operand"
ROW = "`[..., N]` to `[..., 1]`; valid cells only"
COLUMN = "`[..., M, N]` to `[..., 1, N]`; valid cells only"
SCALAR = "shape and valid region of the array operand"
NONE = "no result"
PRODUCT = "FP32 for floats, INT32 for INT8; k ascending, one fused multiply-add per term (O-307)"
MATRIX = "FP16, BF16, FP32 or INT8, equal"
MOVES = "copies bits"
QUERY = "a scalar"

OPERATIONS: dict[str, Entry] = {}


def _add(names: str, shapes: str, types: str, numerics: str, example: str, platform: str = "a2a3sim",
         place: str = "kernel") -> None:  # fmt: skip
    for name in names.split():
        OPERATIONS[name] = Entry(shapes, types, numerics, example, platform, place)


# ---------------------------------------------------------------- creation
_add("create_tensor", "as given; constants in a kernel's on-chip form", "any", "contents unspecified, or `init_value`",
     "a = @([16, 64], dtype=pl.FP32)\na[:, :] = x")  # fmt: skip
_add("create_tile", "constant, positive", "any", "contents unspecified", "a = @([16, 64], dtype=pl.FP32)")
_add(
    "create_l1",
    "constant",
    "any",
    "contents unspecified",
    "a = @([16, 64], pl.FP32)\na = pl.gather_row(a, x, [0, 0], [0, 0], [16, 64])",
)
_add(
    "full",
    "as given, fully valid",
    "any",
    "the constant converted to the type (O-304)",
    "a = @([16, 64], dtype=pl.FP32, value=0.5)",
)
_add(
    "arange ci",
    "every dimension but the last is 1",
    "INT16, INT32, UINT16, UINT32",
    "`start + k`, wrapping",
    "a = @(0, [1, 64], dtype=pl.INT32)",
)
_add(
    "tri",
    "rank 2, constant",
    "INT16, UINT16, INT32, UINT32, FP16, FP32; a5 also INT8, UINT8, BF16",
    EXACT,
    "a = @(0, [16, 64], dtype=pl.FP32)",
)
_add(
    "random",
    "rank 2, constant",
    "INT32, UINT32",
    "Philox-4x32, 7 or 10 rounds (O-507)",
    "a = @(1, 2, 3, 4, 5, 6, [16, 64])",
    "a5sim",
)
_add("alloc", NONE, "-", "-", "@(pl.Mem.Vec, 1024)")
# ---------------------------------------------------------------- elements
_add("read", QUERY + "; one index per axis", "any", EXACT, "a = @({x}, [0, 1])")
_add("write", "one index per axis", "the element type", EXACT, "a = {zeros}\na = @(a, [0, 1], 2.5)")
_add("dim", QUERY, "result INDEX", EXACT, "a = @(x, 0)")
_add("max min", "scalars", "integers or floats, promoted", EXACT, "a = @(n, 3)")
# ---------------------------------------------------------------- movement
_add(
    "load",
    "`shapes` constant; valid region cut by the source (O-211)",
    "any; MX layouts FP8E8M0, UINT8",
    MOVES,
    "a = @(x, [0, 0], [8, 64])",
)
_add(
    "store",
    "writes the valid region at `offsets`",
    "equal; Acc also narrows",
    "Acc rounds to nearest even (O-703)",
    "o = @(tx, [0, 0], o)",
)
_add("move", SAME, "any", MOVES, "a = @(tx, pl.Mem.Mat)")
_add("assemble", "target's shape; valid region by O-212", "equal; products also narrow", "products to nearest even",
     "b = {zeros}\na = @(b, {x}, [0, 0])")  # fmt: skip
_add("extract", "`shape`, constant; exact bounds", "any", MOVES, "a = @(tx, 0, 32, [16, 32], target_memory=pl.Mem.Vec)")
_add("concat", "rank 2; columns add", "equal", MOVES, "a = @({x}, {y})")
_add("slice", "`shape`; valid region by O-211", "any", "view or address", "a = @({x}, [8, 32], [0, 32])")
_add("reshape", "same element count, row-major order", "any", "view", "a = @({x}, [32, 32])")
_add("transpose", "the two axes swapped", "any", MOVES, "a = @({x}, 0, 1)")
_add("transpose_view", "last two axes swapped", "any", "view", "a = pl.matmul(tx, @(ty))")
_add(
    "reinterpret_view",
    "last axis scaled by the sizes, or `shape`",
    "8- to 64-bit integers, FP16, BF16, FP32",
    "same bits",
    "a = @({x}, pl.INT16)",
)
_add("set_validshape", "rank 2; 0 to physical extents", "any", "no data moves", "a = @({x}, 5, 60)")
_add("view", "same element count, or ND and DN swapped", "any", "same bytes", "a = @(x, [32, 32])")
# ---------------------------------------------------------------- arithmetic
_add("add sub mul", BROADCAST, ARITHMETIC, WRAPS, "a = @({x}, {y})")
_add("maximum minimum", BROADCAST, ARITHMETIC, "either operand for NaN (O-308)", "a = @({x}, {y})")
_add(
    "div",
    BROADCAST + "; tiles of one shape",
    "INT16, INT32, FP16, FP32",
    "4 ulp; integers toward zero (O-306)",
    "a = @({x}, {y})",
)
_add("fmod", BROADCAST, "FP16, FP32, INT32; a5 also INT16, UINT16, UINT32", "C fmod, exact", "a = @({x}, {y})")
_add(
    "rem",
    BROADCAST,
    "FP16, FP32, INT32; a5 also INT16, UINT16, UINT32",
    "floor remainder, sign of the divisor",
    "tmp = pl.create_tile([16, 64], dtype=pl.FP32)\na = @(tx, ty, tmp)",
)
_add("adds muls", SCALAR, ARITHMETIC, WRAPS, "a = @({x}, 2.5)")
_add("subs", SCALAR, "INT8, INT16, INT32, FP16, BF16, FP32", WRAPS, "a = @({x}, 2.5)")
_add("divs", SCALAR, "INT16, INT32, FP16, FP32", "4 ulp; integers toward zero", "a = @({x}, 2.5)")
_add("fmods", SCALAR, "FP16, FP32, INT32; a5 also INT16, UINT16, UINT32", "C fmod, exact", "a = @({x}, 0.75)")
_add(
    "rems",
    SCALAR,
    "FP16, FP32, INT32; a5 also INT16, UINT16, UINT32",
    "floor remainder",
    "tmp = pl.create_tile([16, 64], dtype=pl.FP32)\na = @(tx, 0.75, tmp)",
)
_add("maximums minimums", SCALAR, ARITHMETIC, "either operand for NaN", "a = @(tx, 0.0)")
_add("neg abs", SAME, "INT8, INT16, INT32, FP16, BF16, FP32", "exact; the least integer wraps to itself", "a = @({x})")
_add("exp", SAME, FLOATS + "; integer tensors give FP32", "4 ulp in FP32; subnormals kept (O-313)", "a = @({x})")
_add("log", SAME, "FP16, FP32", "4 ulp; `log 0 = -inf`", "a = @(pl.abs({x}))")
_add("sqrt", SAME, FLOATS + "; integer tensors give FP32", "4 ulp; negative gives NaN", "a = @(pl.abs({x}))")
_add("rsqrt", SAME, FLOATS + "; integer tensors give FP32", "4 ulp", "a = @(pl.abs({x}))")
_add("recip", SAME, FLOATS + "; tiles also INT16, INT32", "4 ulp", "a = @({x})")
_add("sin cos", SAME, "FP32", "1e-6 absolute for every finite argument", "a = @({x})")
_add(
    "cast",
    SAME,
    "the pairs of O-1106",
    "floats to nearest even; to integers by `mode` (O-1104)",
    'a = @({x}, pl.INT32, mode="floor")',
)
_add("and_ or_", "tiles broadcast; tensors of one shape", BITS, EXACT, "a = @({i}, {j})")
_add("ands ors", SCALAR, BITS, EXACT, "a = @({i}, 15)")
_add("xor", "tiles broadcast; tensors of one shape", BITS, EXACT, "a = @({i}, {j}{tmp})")
_add("xors", SCALAR, BITS, EXACT, "a = @({i}, 15{tmp})")
_add("not_", SAME, "INT16, UINT16", EXACT, "a = @({k})")
_add(
    "shl shr",
    "one shape; tiles broadcast",
    BITS,
    "counts of the width or more give 0 or the sign (O-1203)",
    "a = @({i}, {j})",
)
_add("shls shrs", SCALAR, BITS, "counts of the width or more give 0 or the sign", "a = @({i}, 3)")
# ---------------------------------------------------------------- comparison, selection, activation
_add("cmp", "tensors: broadcast, 0/1; tiles: packed mask `[M, roundup(ceil(N/8), 32)]`",
     "8- to 32-bit integers, FP16, BF16, FP32; masks UINT8",
     "with NaN only `ne` holds", "a = @({x}, {y}, cmp_type=4)")  # fmt: skip
_add(
    "cmps",
    "packed mask",
    "8- to 32-bit integers, FP16, BF16, FP32; masks UINT8",
    "with NaN only `ne` holds",
    "a = @(tx, 0.0, cmp_type=4)",
)
_add(
    "sel",
    "broadcast; valid region of `lhs`",
    ARITHMETIC,
    EXACT,
    "bits = pl.cmp(tx, 0.0, cmp_type=4)\ntmp = pl.create_tile([1, 32], dtype=pl.UINT8)\na = @(bits, tx, ty, tmp)",
)
_add("sels", SAME, "INT16, UINT16, INT32, UINT32, FP16, FP32; a5 also INT8, UINT8", EXACT,
     "bits = pl.cmp(tx, 0.0, cmp_type=4)\n"
     "tmp = pl.create_tile([1, 32], dtype=pl.UINT8)\na = @(bits, tx, tmp, 0.0)")  # fmt: skip
_add("relu", SAME, "FP16, FP32, INT32", EXACT, "a = @(tx)")
_add("lrelu", SAME, "FP16, FP32", "rounded once", "a = @(tx, 0.1)")
_add(
    "prelu",
    "rank 2; slope of the same shape",
    "FP16, FP32",
    "rounded once",
    "tmp = pl.create_tile([17, 32], dtype=pl.UINT8)\na = @(tx, ty, tmp)",
)
_add(
    "part_add part_mul part_max part_min",
    "valid region of the first; cells valid in one operand only are copied",
    ARITHMETIC,
    WRAPS,
    "a = @({x}, {y})",
)
_add("addc subc", BROADCAST, ARITHMETIC, "one rounding per step, left to right", "a = @(tx, ty, tx)")
_add("addsc subsc", BROADCAST, ARITHMETIC, "one rounding per step, left to right", "a = @(tx, 2.5, ty)")
# ---------------------------------------------------------------- reductions
_add("row_sum", ROW, SUMS, "sixteen partial sums in FP32, rounded once (O-307)", "a = @({x}{tmp_tile})")
_add("row_max", ROW, SUMS, EXACT, "a = @({x}{tmp_tile})")
_add("row_min", ROW, "INT16, INT32, FP16, FP32", EXACT, "a = @({x}{tmp_tile})")
_add("row_prod", ROW, SUMS, "sixteen partial products in FP32, rounded once", "a = @({x}{tmp_tile})")
_add("row_argmax row_argmin", ROW, ARGS, "lowest index wins", "a = @({x}{tmp_tile})")
_add("col_sum", COLUMN, SUMS, "every addition rounds to the type; a tree with `tmp_tile` (O-1505)", "a = @({x})")
_add("col_max col_min", COLUMN, SUMS, EXACT, "a = @({x})")
_add("col_prod", COLUMN, SUMS, "rows ascending in FP32, rounded once", "a = @({x})")
_add("col_argmax col_argmin", COLUMN, ARGS, "lowest index wins", "a = @({x}{tmp_tile})")
# ---------------------------------------------------------------- broadcast
_add("row_expand", "target's shape and valid region; `row_vec [..., M, 1]`", ARITHMETIC, MOVES, "a = @({x}, {col})")
_add(
    "row_expand_mul row_expand_sub row_expand_max row_expand_min",
    "`a [..., M, N]` with `v [..., M, 1]`",
    ARITHMETIC,
    WRAPS,
    "a = @({x}, {col})",
)
_add("row_expand_div", "`a [..., M, N]` with `v [..., M, 1]`", ARITHMETIC, "4 ulp", "a = @({x}, {col})")
_add(
    "row_expand_add",
    "`v [..., M, 1]`, on tiles also a lane block (O-1602)",
    "INT8, INT16, INT32, FP16, FP32, equal",
    WRAPS,
    "a = @({x}, {col})",
)
_add(
    "row_expand_expdif",
    "`a [..., M, N]` with `v [..., M, 1]`",
    FLOATS,
    "difference rounded, then exp (4 ulp)",
    "a = @({x}, {col})",
)
_add("col_expand", "target's shape and valid region; `col_vec [..., 1, N]`", ARITHMETIC, MOVES, "a = @({x}, {row})")
_add(
    "col_expand_mul col_expand_add col_expand_sub col_expand_max col_expand_min",
    "`a [..., M, N]` with `v [..., 1, N]`",
    ARITHMETIC,
    WRAPS,
    "a = @({x}, {row})",
)
_add("col_expand_div", "`a [..., M, N]` with `v [..., 1, N]`", ARITHMETIC, "4 ulp", "a = @({x}, {row})")
_add(
    "col_expand_expdif",
    "`a [..., M, N]` with `v [..., 1, N]`",
    FLOATS,
    "difference rounded, then exp (4 ulp)",
    "a = @({x}, {row})",
)
_add("expands", "target's shape, fully valid", ARITHMETIC, "the scalar converted", "a = @({x}, 2.5)")
_add(
    "expand_clone",
    "rank 3; at most one broadcast axis",
    "any",
    MOVES,
    "b = pl.create_tensor([4, 16, 64], dtype=pl.FP32)\nb = @(z, b)\nc = pl.load(b, [0, 0, 0], [4, 16, 64])",
)
_add(
    "fillpad",
    "operand's shape, fully valid",
    "any; FP8, FP4 only zero",
    "pad value of O-1701",
    "a = @(pl.set_validshape({x}, 5, 60), pad_value=pl.PadValue.min)",
)
_add(
    "fillpad_inplace",
    "operand's shape, fully valid",
    "any; FP8, FP4 only zero",
    "pad value of O-1701",
    "a = @(pl.set_validshape(tx, 5, 60), pad_value=pl.PadValue.min)",
)
_add(
    "fillpad_expand",
    "`shape`, each at least the operand's",
    "any; FP8, FP4 only zero",
    "pad value of O-1701",
    "a = @({x}, [32, 64], pl.PadValue.max)",
)
# ---------------------------------------------------------------- products
_add("matmul", "`[M, K] . [K, N]`; tensors also vectors and batches (O-1801)", MATRIX, PRODUCT, "a = @({x}, {m})")
_add(
    "matmul_acc",
    "`acc [M, N]`, in place",
    MATRIX + "; acc FP32 or INT32",
    PRODUCT,
    "a = pl.matmul({x}, {m})\na = @(a, {x}, {m})",
)
_add(
    "matmul_bias",
    "`[M, K] . [K, N] + [1, N]`",
    MATRIX + "; bias FP32 or INT32",
    PRODUCT + ", from the bias",
    "a = @(tx, tm, trow)",
)
_add("batch_matmul", "tiles of rank 2 or more; batches broadcast", MATRIX, PRODUCT, "a = @(tq, tm)")
_add(
    "batch_matmul_acc",
    "acc's batch axes are the broadcast ones",
    MATRIX,
    PRODUCT,
    "a = pl.batch_matmul(tq, tm)\na = @(a, tq, tm)",
)
_add("gemv", "`[1, K] . [K, N]`", MATRIX, PRODUCT, "a = @(trow, tm)")
_add("gemv_acc", "`[1, K] . [K, N]`, in place", MATRIX, PRODUCT, "a = pl.gemv(trow, tm)\na = @(a, trow, tm)")
_add("gemv_bias", "`[1, K] . [K, N] + [1, N]`", MATRIX, PRODUCT, "a = @(trow, tm, trow)")
MX = (  # operands of the block-scaled products
      "tf = pl.load(f8, [0, 0], [64, 64], target_memory=pl.Mem.Mat)\n"
      "ls = pl.move(pl.load(sa, [0, 0], [64, 2], target_memory=pl.Mem.Mat), pl.Mem.LeftScale)\n"
      "rs = pl.move(pl.load(sb, [0, 0], [2, 64], target_memory=pl.Mem.Mat), pl.Mem.RightScale)\n")  # fmt: skip
MX_SHAPES = "`[M, K] . [K, N]`, scales `[M, K/32]`, `[K/32, N]`"
_add(
    "matmul_mx",
    MX_SHAPES,
    "FP8E4M3FN, scales FP8E8M0",
    "FP32, scaled per 32 terms (O-1810)",
    MX + "a = @(tf, ls, tf, rs)",
    "a5sim",
)
_add(
    "matmul_mx_acc",
    MX_SHAPES,
    "FP8E4M3FN, scales FP8E8M0",
    "FP32, in place",
    MX + "a = pl.matmul_mx(tf, ls, tf, rs)\na = @(a, tf, ls, tf, rs)",
    "a5sim",
)
_add(
    "matmul_mx_bias",
    MX_SHAPES + ", bias `[1, N]`",
    "FP8E4M3FN, scales FP8E8M0",
    "FP32, from the bias",
    MX + "a = @(tf, ls, tf, rs, trow)",
    "a5sim",
)
# ---------------------------------------------------------------- gather, scatter, sort
GATHERED = "FP16, FP32, INT16, INT32; index INT32, or INT16 for 16-bit"
_add(
    "gather",
    "index's shape; tiles address the flat source",
    GATHERED,
    "copies bits; out of range gives 0 (O-1905)",
    "a = @({x}, {gather})",
)
_add(
    "gather_mask",
    "`[M, N]` to `[M, N/2]` or `[M, N/4]`",
    "any; `output_dtype` of the same width",
    MOVES,
    "a = @({x}, pl.tile.MaskPattern.P0101)",
)
_add(
    "gather_compare",
    "`[M, out_cols]` and counts `[1, M]`",
    "FP16, FP32, INT16, INT32; results INT32",
    EXACT,
    'a, c = @({i}, 3{u8}, cmp_mode="gt", out_cols=16)',
)
_add("gatherb", "`offset [R, C]` to `[R, 32 C / size]`", "8- to 32-bit, BF16; offsets UINT32", MOVES,
     "a = @(tx, pl.shls(pl.tile.slice(tu, [16, 8], [0, 0]), 5))")  # fmt: skip
_add(
    "gather_row",
    "one window of global memory, in place",
    "equal",
    MOVES,
    "a = {zeros}\na = @(a, x, [0, 0], [4, 0], [2, 64])",
)
_add(
    "paged_gather",
    "`[max_indices, size]`",
    "FP16, BF16, FP32, INT8; indices INT32",
    MOVES,
    "a = @(x, places, places, 1, 64, 16, space=pl.Mem.Vec)",
)
_add(
    "mgather",
    "row: `[R, cols]`; elem: index's shape",
    "8- to 32-bit, BF16; a5 also FP8, HF8",
    MOVES,
    'a = @(x, tplaces, gather_oob="clamp")',
)
_add(
    "scatter",
    "tensors: rows by `index`; tiles: flat, in place",
    "INT8, INT16, INT32, FP16, BF16, FP32; index INT32 for 4 bytes, else INT16",
    "last write wins",
    "{scatter}",
)
_add("scatter_mask", "`stride N` columns of the target", "any", MOVES, "{scatter_mask}")
_add(
    "scatter_update",
    "rows of a 2-D or 4-D input",
    "any; integer index",
    "last write wins",
    "a = @({x}, -2, {places}, {y})",
)
_add(
    "mscatter",
    "global tensor, in place",
    "FP16, FP32, INT16, INT32; index INT32",
    "last write wins",
    "o = @(tx, ti, o)",
    "a5sim",
)
_add(
    "sort32",
    "last dimension a multiple of 32; 8-byte records",
    "FP16, FP32; index UINT32, INT32",
    "descending, ties by index (O-2001)",
    "a = @({x}, {u})",
)
_add(
    "mrgsort",
    "runs merged in fours, or 2 to 4 operands",
    "FP16, FP32",
    "stable, descending",
    "a = @(pl.sort32({x}, {u}), block_len=64)",
)
_add("mrgsort_format1", "runs merged in fours", "FP16, FP32", "stable, descending", "a = @(pl.sort32(tx, tu), 64)")
_add("mrgsort_format2", "2 to 4 operands merged", "FP16, FP32", "stable, descending",
     "tmp = pl.create_tile([16, 256], dtype=pl.FP32)\n"
     "a = @(pl.sort32(tx, tu), pl.sort32(ty, tu), tmp, exhausted=False)")  # fmt: skip
# ---------------------------------------------------------------- blocks and pl.system
_add("get_block_idx get_block_num get_subblock_idx", QUERY, "INDEX", "-", "a = @()")
_add("fence bar_v bar_m bar_all", NONE, "-", "-", "@()")
_add("cacheinvalid", NONE, "-", "-", "@(x, [16, 64], [0, 0])")
_add("sync_src sync_dst", NONE, "-", "-",
     "pl.system.sync_src(set_pipe=pl.PipeType.V, wait_pipe=pl.PipeType.MTE3, event_id=0)\n"
     "pl.system.sync_dst(set_pipe=pl.PipeType.V, wait_pipe=pl.PipeType.MTE3, event_id=0)")  # fmt: skip
_add("task_dummy", "a task id", "TASK_ID", "-", "a = @(deps=[])", place="orchestration")
_add("task_invalid", "a task id", "TASK_ID", "-", "a = @()", place="orchestration")
_add("available_cluster_count available_aiv_count", QUERY, "INT32", "-", "a = @()", place="orchestration")
_add("dump_tag", NONE, "-", "-", "@(x)", place="orchestration")
_add("no_dep", SAME, "any", "no effect on values", "o = copy(@(x), o)", place="orchestration")
# ---------------------------------------------------------------- arrays, prefetch
_add("pl.array.create", "constant extent", "integers, BOOL, TASK_ID", "zeros", "a = @(4, pl.INT32)")
_add("get_element", QUERY, "the array's type", EXACT, "b = pl.array.create(4, pl.INT32)\na = @(b, 1)")
_add(
    "update_element",
    "the array",
    "the array's type",
    EXACT,
    "b = pl.array.create(4, pl.INT32)\nb = @(b, 1, 5)\na = b[1]",
)
_add("make_context", "a context", "-", "-", "a = @()")
_add(
    "async_prefetch",
    "an event; `src [1, ..., N]`",
    "any",
    "no effect on values",
    "c = pl.prefetch.make_context()\na = @(row, c)",
)
_add("session", "a session", "-", "-", "c = pl.prefetch.make_context()\na = @(c)")
_add(
    "pl.prefetch.wait",
    QUERY,
    "BOOL",
    "-",
    "c = pl.prefetch.make_context()\ne = pl.prefetch.async_prefetch(row, c)\na = @(e, pl.prefetch.session(c))",
)

_TENSOR = {"zeros": "pl.full([16, 64], pl.FP32, 0.0)", "tmp": "", "tmp_tile": "", "u8": "", "gather": "1, i",
           "scatter": "a = @(x, 1, i, y)", "scatter_mask": "a = @(x[:, 0:32], y, 1)"}  # fmt: skip
_TILE = {"zeros": "pl.tile.full([16, 64], pl.FP32, 0.0)", "tmp": ", tj", "tmp_tile": ", ty",
         "u8": ", pl.create_tile([16, 64], dtype=pl.UINT8)", "gather": "ti, tj", "scatter": "a = @(tx, ty, ti)",
         "scatter_mask": "a = @(ty, tx[:, 0:32], 1)"}  # fmt: skip


def entry(namespace: str, name: str, row_name: str) -> Entry | None:
    """Return the entry of a spelling, or None if the distributed examples or PROGRAMS show it."""
    for key in (f"{namespace}.{name}", name, row_name):
        if key in OPERATIONS:
            return OPERATIONS[key]
    return None


def example(namespace: str, name: str, found: Entry) -> str:
    """Return the example in the spelling of a row: tensors for `pl` and `pl.tensor`, tiles for `pl.tile`."""
    tile = namespace == "pl.tile"
    tokens = {n: f"t{n}" if tile else n for n in OPERANDS} | (_TILE if tile else _TENSOR)
    text = found.example
    for token in ("scatter_mask", "scatter"):
        text = text.replace("{" + token + "}", tokens[token])
    for token, value in tokens.items():
        text = text.replace("{" + token + "}", value)
    return text.replace("@", f"{namespace}.{name}")


def facts(namespace: str, name: str, row_name: str) -> tuple[str, str, str]:
    """Return shapes, types and numerics of a spelling."""
    if namespace.startswith("pld"):
        return PLD[name]
    found = entry(namespace, name, row_name)
    if found is not None:
        return found.shapes, found.types, found.numerics
    return next(v for k, v in SHOWN.items() if name in k.split())
