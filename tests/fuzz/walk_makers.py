# SPDX-License-Identifier: Apache-2.0
"""Legal operands for every row of the operation table, at tile level and at tensor level.

`OP` is the spelling under test. Names stand for inputs: `a`, `b` [16, 32], `r` [16, 1], `c` [1, 32], `p` [32, 16],
`w` [1, 16] of the accumulator dtype, `i` [16, 32] INT32 in 0..15, `q` [2, 16, 32], `s` [2, 32, 16]; `ga` and so on are
the tensors themselves. `TMP` is a scratch tile like `a`; the last line is the result.
"""

from __future__ import annotations

from dataclasses import dataclass, field

FLOATS = ("FP32", "FP16", "BF16")
PLAIN = ("FP32", "FP16", "INT16", "INT32")
SIGNED = ("INT8", "INT16", "INT32")
ALL = (*FLOATS, *SIGNED, "INT64", "UINT8", "UINT16", "UINT32")
BITS = (*SIGNED, "UINT8", "UINT16", "UINT32")
REDUCED = (*FLOATS, "INT16", "INT32")
COMPARED = (*SIGNED, "UINT8", "UINT16", "UINT32", *FLOATS)
PRODUCT = ("FP32", "FP16", "BF16", "INT8")
SELECTED = ("INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "FP16", "FP32")


@dataclass
class Maker:
    """How to call one operation."""

    dtypes: tuple[str, ...]
    tile: str | None = None
    tensor: str | None = None
    shape: tuple[int, ...] = (16, 32)
    out: str = ""  # dtype of the result: "" as the operands, "WIDE" the accumulator's
    a5: tuple[str, ...] = field(default=())  # dtypes that a2 refuses; "all" for every one
    tensor_out: str | None = None


def same(dtypes, text, **more):
    return Maker(dtypes, text, text, **more)


def scratch(dtypes, call, tmp="TMP", **more):
    """The tile form takes a scratch operand that the tensor form does not have."""
    return Maker(dtypes, f"OP({call}, {tmp})", f"OP({call})", **more)


MAKERS: dict[str, Maker] = {
    **{n: same(ALL, "OP(a, b)") for n in ("add", "sub", "mul", "maximum", "minimum")},
    **{n: same(ALL, "OP(a, b)") for n in ("part_add", "part_mul", "part_max", "part_min")},
    "div": same(PLAIN, "OP(a, b)"),
    "fmod": same((*PLAIN, "UINT16", "UINT32"), "OP(a, b)", a5=("INT16", "UINT16", "UINT32")),
    "fmods": same((*PLAIN, "UINT16", "UINT32"), "OP(a, 3)", a5=("INT16", "UINT16", "UINT32")),
    "rem": Maker((*PLAIN, "UINT16", "UINT32"), "OP(a, b, TMP)", a5=("INT16", "UINT16", "UINT32")),
    "rems": Maker((*PLAIN, "UINT16", "UINT32"), "OP(a, 3, TMP)", a5=("INT16", "UINT16", "UINT32")),
    **{n: same(ALL, "OP(a, 3)") for n in ("adds", "muls")},
    "subs": same((*SIGNED, *FLOATS), "OP(a, 3)"),
    "divs": same(PLAIN, "OP(a, 3)"),
    **{n: Maker(ALL, "OP(a, 3)") for n in ("maximums", "minimums")},
    **{n: same((*SIGNED, *FLOATS), "OP(a)") for n in ("neg", "abs")},
    **{n: same(FLOATS, "OP(a)") for n in ("exp", "sqrt", "rsqrt", "recip")},
    "log": same(("FP16", "FP32"), "OP(a)"),
    **{n: same(("FP32",), "OP(a)") for n in ("sin", "cos")},
    "relu": Maker(("FP16", "FP32", "INT32"), "OP(a)"),
    "lrelu": Maker(("FP16", "FP32"), "OP(a, 0.25)"),
    "prelu": Maker(("FP16", "FP32"), "OP(a, b, pl.create_tile([17, 32], dtype=pl.UINT8))"),
    **{n: Maker(ALL, "OP(a, b, b)") for n in ("addc", "subc")},
    **{n: Maker(ALL, "OP(a, 3, b)") for n in ("addsc", "subsc")},
    "cast": same(("FP32", "FP16", "BF16", "INT8", "UINT8", "INT16", "INT64"), "OP(a, pl.INT32)", out="INT32"),
    **{n: same(BITS, "OP(a, b)") for n in ("and_", "or_")},
    **{n: same(BITS, "OP(a, 3)") for n in ("ands", "ors", "shls", "shrs")},
    **{n: same(BITS, "OP(a, pl.ands(b, 7))") for n in ("shl", "shr")},
    "xor": scratch(BITS, "a, b"),
    "xors": scratch(BITS, "a, 3"),
    "not_": same(("INT16", "UINT16"), "OP(a)"),
    "cmp": Maker(COMPARED, "OP(a, b, cmp_type=2)", "OP(a, b, cmp_type=2)", out="UINT8", tensor_out=""),
    "cmps": Maker(COMPARED, "OP(a, 3, cmp_type=5)", out="UINT8"),
    "sel": Maker(ALL, "OP(pl.cmp(i, 7, cmp_type=2), a, b, pl.create_tile([1, 32], dtype=pl.UINT8))"),
    "sels": Maker(
        SELECTED, "OP(pl.cmp(i, 7, cmp_type=2), a, pl.create_tile([1, 32], dtype=pl.UINT8), 3)", a5=("INT8", "UINT8")
    ),
    **{n: scratch(REDUCED, "a", shape=(16, 1)) for n in ("row_sum", "row_max", "row_prod")},
    "row_min": scratch(PLAIN, "a", shape=(16, 1)),
    **{n: scratch(PLAIN, "a", shape=(16, 1), out="INT32") for n in ("row_argmax", "row_argmin")},
    "col_sum": same(REDUCED, "OP(a)", shape=(1, 32)),
    **{n: same(REDUCED, "OP(a)", shape=(1, 32)) for n in ("col_max", "col_min", "col_prod")},
    **{n: scratch(PLAIN, "a", shape=(1, 32), out="INT32") for n in ("col_argmax", "col_argmin")},
    **{n: same(ALL, "OP(a, r)") for n in ("row_expand", "row_expand_mul", "row_expand_sub")},
    **{n: same(ALL, "OP(a, r)") for n in ("row_expand_max", "row_expand_min")},
    "row_expand_add": same(("INT8", "INT16", "INT32", "FP16", "FP32"), "OP(a, r)"),
    "row_expand_div": same(("FP16", "FP32"), "OP(a, r)"),
    "row_expand_expdif": same(("FP16", "FP32"), "OP(a, r)"),
    **{n: same(ALL, "OP(a, c)") for n in ("col_expand", "col_expand_mul", "col_expand_sub", "col_expand_add")},
    **{n: same(ALL, "OP(a, c)") for n in ("col_expand_max", "col_expand_min")},
    "col_expand_div": same(("FP16", "FP32"), "OP(a, c)"),
    "col_expand_expdif": same(("FP16", "FP32"), "OP(a, c)"),
    "expands": same(ALL, "OP(a, 3)"),
    "expand_clone": Maker(("FP32", "FP16"), None, "pl.tensor.expand_clone(gq[0:1, :, :], big)\nga", shape=(16, 32)),
    "fillpad": same(ALL, "OP(pl.set_validshape(a, 5, 7), pad_value=pl.PadValue.max)"),
    "fillpad_expand": same(ALL, "OP(a, [16, 64], pad_value=pl.PadValue.min)", shape=(16, 64)),
    "fillpad_inplace": Maker(ALL, "OP(pl.set_validshape(a, 5, 7), pl.PadValue.max)"),
    "create_tensor": Maker(ALL, None, "t = OP([16, 32], dtype=pl.DT, init_value=0)\npl.add(t, a)"),
    "create": Maker(
        ALL, "t = pl.tile.create([16, 32], pl.DT)\nt = pl.assemble(t, a, [0, 0])\nt",
        "t = pl.tensor.create([16, 32], dtype=pl.DT)\nt[:] = a\nt",
    ),
    "create_tile": Maker(ALL, "t = OP([16, 32], dtype=pl.DT)\nt = pl.assemble(t, a, [0, 0])\nt"),
    "create_l1": Maker(
        ("FP32", "FP16", "BF16", "INT8"), None,
        "t = OP([16, 32], dtype=pl.DT)\nt = pl.gather_row(t, ga, [0, 0], [0, 0], [16, 32])\n"
        "pl.matmul(t, p, out_dtype=pl.WIDE)", shape=(16, 16), out="WIDE",
    ),
    "full": same(ALL, "pl.add(a, OP([16, 32], dtype=pl.DT, value=3))"),
    **{n: same(("INT16", "INT32", "UINT16", "UINT32"), "OP(3, [1, 32], dtype=pl.DT)", shape=(1, 32)) for n in ("arange", "ci")},
    "tri": Maker(
        ("INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", *FLOATS), "OP(2, [16, 32], dtype=pl.DT)",
        a5=("INT8", "UINT8", "BF16"),
    ),
    "random": same(("INT32", "UINT32"), "OP(1, 2, 3, 4, 5, 6, [16, 32], dtype=pl.DT)", a5=("all",)),
    "read": same(ALL, "t = OP(a, [3, 5])\npl.add(a, t)"),
    "write": Maker(ALL, "t = pl.add(a, b)\nOP(t, [3, 5], 7)\nt", "t = pl.add(a, b)\nOP(t, [3, 5], 7)\nt"),
    "dim": Maker(ALL, None, "n = OP(ga, 1)\npl.set_validshape(pl.add(a, b), 16, n)"),
    **{n: Maker(ALL, "n = OP(pl.const(3, pl.INT32), 5)\na[0:16, 0:32]") for n in ("max", "min")},
    "load": Maker(ALL, "OP(ga, [0, 0], [16, 32])"),
    "store": Maker(ALL, "t = OP(a, [0, 0], out)\na"),
    "move": Maker(PRODUCT, "pl.matmul(OP(pl.load(ga, [0, 0], [16, 32], target_memory=pl.Mem.Mat), pl.Mem.Left), p)",
                  shape=(16, 16), out="WIDE"),
    "assemble": Maker(ALL, "OP(a, r, [0, 4])", "t = pl.add(a, b)\nOP(t, r, [0, 4])\nt"),
    "extract": Maker(PRODUCT, "pl.matmul(OP(pl.load(ga, [0, 0], [16, 32], target_memory=pl.Mem.Mat), 0, 0, [16, 16], target_memory=pl.Mem.Left),"
                     " pl.load(gp, [0, 0], [16, 16]))", shape=(16, 16), out="WIDE"),
    "concat": same(ALL, "OP(a, b)", shape=(16, 64)),
    "slice": same(ALL, "pl.add(OP(a, [8, 16], [2, 8]), OP(b, [8, 16], [0, 0]))", shape=(8, 16)),
    "reshape": same(ALL, "pl.add(OP(a, [32, 16]), p)", shape=(32, 16)),
    "transpose": same(ALL, "OP(a, 0, 1)", shape=(32, 16)),
    "transpose_view": Maker(PRODUCT, "pl.matmul(a, OP(b))", shape=(16, 16), out="WIDE"),
    "reinterpret_view": same(("FP32", "INT32", "UINT32"), "pl.add(OP(a, pl.INT32), i)", out="INT32"),
    "set_validshape": same(ALL, "OP(pl.add(a, b), 5, 7)"),
    "view": Maker(ALL, None, "pl.add(OP(ga, [32, 16]), p)", shape=(32, 16)),
    "matmul": Maker(PRODUCT, "OP(a, p)", "OP(a, p, out_dtype=pl.WIDE)", shape=(16, 16), out="WIDE"),
    "matmul_acc": Maker(
        PRODUCT, "t = pl.matmul(a, p)\nt = OP(t, a, p)\nt", "t = pl.matmul(a, p, out_dtype=pl.WIDE)\nt = OP(t, a, p)\nt",
        shape=(16, 16), out="WIDE",
    ),
    "matmul_bias": Maker(PRODUCT, "OP(a, p, w)", shape=(16, 16), out="WIDE"),
    "batch_matmul": Maker(PRODUCT, "OP(q, s)", shape=(2, 16, 16), out="WIDE"),
    "batch_matmul_acc": Maker(PRODUCT, "t = pl.batch_matmul(q, s)\nt = OP(t, q, s)\nt", shape=(2, 16, 16), out="WIDE"),
    "gemv": Maker(PRODUCT, "OP(c, p)", shape=(1, 16), out="WIDE"),
    "gemv_acc": Maker(PRODUCT, "t = pl.gemv(c, p)\nt = OP(t, c, p)\nt", shape=(1, 16), out="WIDE"),
    "gemv_bias": Maker(PRODUCT, "OP(c, p, w)", shape=(1, 16), out="WIDE"),
    "gather": Maker(PLAIN, "OP(a, i, pl.create_tile([16, 32], dtype=pl.INT32))", "OP(a, -1, i)"),
    "gather_mask": same(PLAIN, "OP(a, pl.tile.MaskPattern.P1010)", shape=(16, 16)),
    "gather_compare": Maker(
        PLAIN, "d, n = OP(a, KV, pl.create_tile([16, 32], dtype=pl.UINT8), cmp_mode=\"gt\", out_cols=32)\nn",
        "d, n = OP(a, KV, cmp_mode=\"gt\", out_cols=32)\nn", shape=(1, 16), out="INT32",
    ),
    "gatherb": Maker(("FP32", "INT32", "FP16", "BF16", "INT8", "UINT8", "INT16", "UINT16"), "OP(a, k)", shape=(16, 0)),
    "gather_row": Maker(
        ("FP32", "FP16", "BF16", "INT8", "INT32"), "t = pl.create_tile([16, 32], dtype=pl.DT)\nt = OP(t, ga, [0, 0], [0, 0], [16, 32])\nt",
        "t = pl.create_tensor([16, 32], dtype=pl.DT)\nt = OP(t, ga, [0, 0], [0, 0], [16, 32])\nt",
    ),
    "paged_gather": Maker(
        ("FP32", "FP16", "BF16", "INT8"), None,
        "pl.matmul(OP(ga, gn, gt, 4, 32, 16), p, out_dtype=pl.WIDE)", shape=(16, 16), out="WIDE",
    ),
    "mgather": Maker(("INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", *FLOATS), "OP(ga, n)"),
    "scatter": Maker(
        ("INT8", "INT16", "INT32", *FLOATS), "t = pl.add(a, b)\nOP(t, b, j)\nt", "OP(a, -1, j, b)"
    ),
    "scatter_mask": Maker(
        ("INT32", *FLOATS), "t = pl.concat(a, b)\nOP(t, b, pl.tile.MaskPattern.P0101)\nt",
        "OP(a, pl.concat(a, b), pl.tile.MaskPattern.P0101)", shape=(16, 64),
    ),
    "scatter_update": Maker(
        (*SIGNED, *FLOATS), "t = pl.add(a, b)\nOP(t, -2, n, a)\nt", "OP(a, -2, n, b)"
    ),
    "mscatter": Maker(PLAIN, "OP(a, i, out)\na", a5=("all",)),
    "sort32": Maker(("FP32",), "OP(a, u)", "OP(a, u)", shape=(16, 64)),
    "mrgsort": Maker(
        ("FP32",), "OP(pl.sort32(pl.concat(a, b), pl.concat(u, u)), block_len=64)",
        "OP(pl.sort32(pl.concat(a, b), pl.concat(u, u)), block_len=64)", shape=(16, 128),
    ),
    "mrgsort_format1": Maker(("FP32",), "OP(pl.sort32(pl.concat(a, b), pl.concat(u, u)), 64)", shape=(16, 128)),
    "mrgsort_format2": Maker(
        ("FP32",), "OP(pl.sort32(a, u), pl.sort32(b, u), tmp=pl.create_tile([16, 128], dtype=pl.FP32))", shape=(16, 128)
    ),
    **{
        n: same(("FP32",), "n = OP()\npl.add(a, pl.cast(pl.cast(n, pl.INT32), pl.FP32))")
        for n in ("get_block_idx", "get_block_num", "get_subblock_idx")
    },
    **{
        n: Maker(("FP32",), None, f"pl.system.{n}()\npl.add(a, b)")
        for n in ("bar_v", "bar_m", "bar_all", "fence", "cacheinvalid")
    },
    "set_ffts": Maker(("FP32",), None, "OP(gf)\npl.add(a, b)"),
    "get_element": Maker(("INT32",), "m = pl.array.create(4, pl.DT)\npl.add(a, OP(m, 2))"),
    "update_element": Maker(("INT32",), "m = pl.array.create(4, pl.DT)\nm = OP(m, 2, 5)\npl.add(a, m[2])"),
}  # fmt: skip

#: Rows that need a program of their own (channels, tasks, MX scales, prefetch): another test calls each.
ELSEWHERE = {
    **dict.fromkeys(
        ("tpush_to_aiv", "tpush_to_aic", "tpop_from_aic", "tpop_from_aiv", "tfree_to_aic", "tfree_to_aiv",
         "aic_initialize_pipe", "aiv_initialize_pipe", "reserve_buffer", "import_peer_buffer", "aiv_shard", "aic_gather",
         "syncall", "sync_set", "sync_wait", "sync_src", "sync_dst", "task_dummy", "task_invalid",
         "available_cluster_count", "available_aiv_count", "make_context", "async_prefetch", "session", "wait",
         "matmul_mx", "matmul_mx_acc", "matmul_mx_bias", "no_dep", "dump_tag"),
        "",
    ),
    "alloc": "spelling of printed programs (02 O-107)",
}  # fmt: skip
