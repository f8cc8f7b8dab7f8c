# SPDX-License-Identifier: Apache-2.0
"""The same arithmetic at tile level and at tensor level: inputs, result, and two bodies.

A body names its inputs `a`, `b`, `c`: tiles that were loaded, respectively tensors; the last line is the result.
"""

from __future__ import annotations

from dataclasses import dataclass

R, C = 24, 40


@dataclass
class Twin:
    """One piece of arithmetic, written twice."""

    name: str
    inputs: list[tuple[tuple[int, int], str]]
    result: tuple[tuple[int, int], str]
    tile: str
    tensor: str


def both(name, inputs, result, body, tile_extra=None):
    """Bodies that differ only in the scratch operands of the tile form, written `{tmp:ROWSxCOLSxDT}`."""
    import re

    def scratch(m):
        rows, cols, dt = m[1].split("x")
        return f", pl.create_tile([{rows}, {cols}], dtype=pl.{dt})"

    return Twin(name, inputs, result, re.sub(r"\{tmp:([^}]*)\}", scratch, body), re.sub(r"\{tmp:[^}]*\}", "", body))


F, H, B, I = "FP32", "FP16", "BF16", "INT32"
FULL, COL, ROW = (R, C), (R, 1), (1, C)

TWINS = [
    both("chain", [(FULL, F), (FULL, F)], (FULL, F), "pl.maximum(pl.sub(pl.mul(a, b), pl.abs(a)), 0.25)"),
    both("half chain", [(FULL, H), (FULL, H)], (FULL, H), "pl.add(pl.mul(pl.add(a, b), b), pl.neg(a))"),
    both("bfloat chain", [(FULL, B), (FULL, B)], (FULL, B), "pl.mul(pl.sub(a, b), pl.exp(pl.minimum(b, 1.0)))"),
    both("integers", [(FULL, I), (FULL, I)], (FULL, I), "pl.minimum(pl.mul(pl.add(a, b), 77777), pl.sub(b, 5))"),
    both("broadcast", [(FULL, F), (COL, F), (ROW, F)], (FULL, F), "pl.add(pl.mul(a, b), c)"),
    both(
        "softmax", [(FULL, F)], (FULL, F),
        "m = pl.row_max(a{tmp:24x40xFP32})\ne = pl.exp(pl.row_expand_sub(a, m))\n"
        "pl.row_expand_div(e, pl.row_sum(e{tmp:24x40xFP32}))",
    ),
    both(
        "rms norm", [(FULL, F), (ROW, F)], (FULL, F),
        "s = pl.row_sum(pl.mul(a, a){tmp:24x40xFP32})\nr = pl.rsqrt(pl.add(pl.mul(s, 0.025), 1e-6))\n"
        "pl.col_expand_mul(pl.row_expand_mul(a, r), b)",
    ),
    both("half sums", [(FULL, H)], (COL, H), "pl.row_sum(a{tmp:24x40xFP16})"),
    both("column sums", [(FULL, B)], (ROW, B), "pl.col_sum(a)"),
    both("products", [(FULL, F)], (COL, F), "pl.row_prod(a{tmp:24x40xFP32})"),
    both("extrema", [(FULL, I)], (ROW, I), "pl.sub(pl.col_max(a), pl.col_min(a))"),
    both("arg", [(FULL, F)], (COL, I), "pl.row_argmax(a{tmp:24x40xFP32})"),
    both(
        "quantise", [(FULL, F)], (FULL, "INT8"),
        'v = pl.cast(pl.mul(a, 31.0), pl.INT32, mode="rint")\n'
        'pl.cast(pl.cast(pl.maximum(pl.minimum(v, 127), -128), pl.FP16), pl.INT8, mode="trunc")',
    ),
    both("matmul", [((R, 32), F), ((32, C), F)], (FULL, F), "pl.mul(pl.matmul(a, b), 0.5)"),
    Twin(
        "half matmul, transposed", [((R, 32), H), ((C, 32), H)], (FULL, F),
        "pl.add(pl.matmul(a, pl.tile.transpose_view(b)), 1.0)",
        "pl.add(pl.matmul(a, b, out_dtype=pl.FP32, b_trans=True), 1.0)",
    ),
    Twin(
        "integer matmul", [((R, 64), "INT8"), ((64, C), "INT8")], (FULL, I),
        "pl.add(pl.matmul(a, b), 3)", "pl.add(pl.matmul(a, b, out_dtype=pl.INT32), 3)",
    ),
    Twin(
        "accumulation", [((R, 16), F), ((16, C), F), (FULL, F)], (FULL, F),
        "s = pl.matmul(a, b)\nfor i in pl.range(3):\n    s = pl.matmul_acc(s, a, b)\npl.sub(c, s)",
        "s = pl.matmul(a, b)\nfor i in pl.range(3):\n    s = pl.matmul_acc(s, a, b)\npl.sub(c, s)",
    ),
    both("movement", [(FULL, F)], (FULL, F), "pl.transpose(pl.reshape(pl.concat(a, a), [80, 24]), 0, 1)[0:24, 0:40]"),
    both(
        "padding", [(FULL, F)], (COL, F),
        "p = pl.fillpad(pl.set_validshape(a, 24, 33), pad_value=pl.PadValue.min)\npl.row_max(p{tmp:24x40xFP32})",
    ),
    both(
        "carried", [(FULL, F), (COL, F)], (FULL, F),
        "s = pl.mul(a, 0.0)\nfor i in pl.range(5):\n    s = pl.add(pl.mul(s, 0.75), pl.row_expand_mul(a, b))\ns",
    ),
    both("trigonometry", [(FULL, F)], (FULL, F), "pl.add(pl.sin(pl.mul(a, 30.0)), pl.mul(pl.cos(a), pl.log(pl.abs(a))))"),
    both("roots", [(FULL, F)], (FULL, F), "pl.div(pl.sqrt(pl.abs(a)), pl.add(pl.recip(a), pl.rsqrt(pl.abs(a))))"),
]  # fmt: skip


def source(twin: Twin, level: str) -> str:
    """A JIT program of one region."""
    names = "abc"[: len(twin.inputs)]
    params = [f"g{n}: pl.Tensor[{list(s)}, pl.{dt}]" for n, (s, dt) in zip(names, twin.inputs, strict=True)]
    shape, dt = twin.result
    lines = [f"def twin({', '.join(params)}, out: pl.Out[pl.Tensor[{list(shape)}, pl.{dt}]]):"]
    lines.append("    with pl.at(level=pl.Level.CORE_GROUP):")
    body = (twin.tile if level == "tile" else twin.tensor).split("\n")
    for n, (s, _) in zip(names, twin.inputs, strict=True):
        lines.append(f"        {n} = pl.load(g{n}, [0, 0], {list(s)})" if level == "tile" else f"        {n} = g{n}")
    lines += ["        " + line for line in body[:-1]]
    result = body[-1]
    lines.append(f"        out = pl.store({result}, [0, 0], out)" if level == "tile" else f"        out[:] = {result}")
    return "import pypto.language as pl\n\n\n@pl.jit\n" + "\n".join(lines) + "\n    return out\n"
