# SPDX-License-Identifier: Apache-2.0
"""Reductions, broadcasts, partial and three-operand forms, comparison and selection through the language (02 sections 13 - 17)."""

import numpy as np
import pytest
import torch
from opkit import FLOATS, INTEGERS, NUMPY, operands, rounded, run, same

SHAPE = (6, 45)
SENTINEL = 77
REGIONS = [(6, 45), (3, 7), (1, 1), (5, 33)]
SUMS = ("FP16", "BF16", "FP32", "INT16", "INT32")
LOW = ("INT16", "INT32", "FP16", "FP32")  # row_min, O-1503
ARGS = ("FP16", "FP32", "INT16", "INT32")


def tame(dtype, shape, seed):
    """Numbers whose sums stay finite, with edges; no NaN, no zeros of two signs side by side."""
    x = operands(dtype, shape, seed, nan=False)
    if dtype in FLOATS:
        wide = x.astype(np.float32)
        x = np.where(np.abs(wide) < 1e3, wide, np.sign(wide) * 3).astype(NUMPY[dtype])
    return x


def wrap(total, dtype):
    return np.asarray(total).astype(NUMPY[dtype])


def row_sum(x, dtype, product=False):
    """O-307: sixteen partial results, then halves."""
    if dtype in INTEGERS:
        f = np.prod if product else np.sum
        return wrap(f(x.astype(np.int64), axis=1, keepdims=True), dtype)
    step = np.multiply if product else np.add
    wide = x.astype(np.float32)
    p = np.full((x.shape[0], 16), 1 if product else 0, np.float32)
    with np.errstate(all="ignore"):
        for j in range(x.shape[1]):
            p[:, j % 16] = step(p[:, j % 16], wide[:, j])
        for half in (8, 4, 2, 1):
            p = step(p[:, :half], p[:, half : 2 * half])
    return rounded(p, dtype)


def col_sum(x, dtype, tree=False):
    """O-1505: every addition rounds to the type."""
    add = (
        (lambda a, b: rounded(a.astype(np.float32) + b.astype(np.float32), dtype))
        if dtype in FLOATS
        else (lambda a, b: a + b)
    )
    rows = list(x)
    if not tree:
        total = rows[0]
        for r in rows[1:]:
            total = add(total, r)
        return total[None]
    n = len(rows)
    while n > 1:
        h = n // 2
        last = rows[n - 1]
        rows = [add(rows[2 * k], rows[2 * k + 1]) for k in range(h)]
        if n % 2:
            rows[0] = add(rows[0], last)
        n = h
    return rows[0][None]


def col_prod(x, dtype):
    total = np.ones(x.shape[1], np.float32 if dtype in FLOATS else np.int64)
    with np.errstate(all="ignore"):
        for r in x:
            total = total * r.astype(total.dtype)
    return rounded(total[None], dtype) if dtype in FLOATS else wrap(total[None], dtype)


# op -> (reference of the valid part, dtypes, tile form takes a scratch tile)
ROWS = {
    "row_sum": (row_sum, SUMS),
    "row_max": (lambda x, d: x.max(1, keepdims=True), SUMS),
    "row_min": (lambda x, d: x.min(1, keepdims=True), LOW),
    "row_prod": (lambda x, d: row_sum(x, d, product=True), SUMS),
    "row_argmax": (lambda x, d: x.argmax(1)[:, None].astype(np.int32), ARGS),
    "row_argmin": (lambda x, d: x.argmin(1)[:, None].astype(np.int32), ARGS),
}
COLUMNS = {
    "col_sum": (col_sum, SUMS),
    "col_max": (lambda x, d: x.max(0, keepdims=True), SUMS),
    "col_min": (lambda x, d: x.min(0, keepdims=True), SUMS),
    "col_prod": (col_prod, SUMS),
    "col_argmax": (lambda x, d: x.argmax(0)[None].astype(np.int32), ARGS),
    "col_argmin": (lambda x, d: x.argmin(0)[None].astype(np.int32), ARGS),
}
SCRATCH = ("col_argmax", "col_argmin")


@pytest.mark.parametrize("region", REGIONS, ids=str)
@pytest.mark.parametrize("op,dtype", [(op, d) for t in (ROWS, COLUMNS) for op, (_, types) in t.items() for d in types])
def test_reductions(op, dtype, region):  # O-1501, O-1502, O-1503, O-1504, O-1505, O-1506, O-307, B-8, B-9
    x = tame(dtype, SHAPE, 31)
    r, c = region
    row = op in ROWS
    f = (ROWS if row else COLUMNS)[op][0]
    want = f(x[:r, :c], dtype)
    whole = f(x, dtype)
    dirty = x.copy()
    dirty[r:], dirty[:, c:] = (np.nan if dtype in FLOATS else 99), (np.nan if dtype in FLOATS else 99)
    shape = (6, 1) if row else (1, 45)
    tmp = ", tmp" if row or op in SCRATCH else ""
    named = ", tmp_tile=tmp" if tmp else ""
    outs = {f"o{i}": np.full(shape, SENTINEL, want.dtype) for i in range(6)}
    lines = [
        "full = pl.load(d, [0, 0], [6, 45])",
        f"t = pl.set_validshape(full, {r}, {c})",
        "u = pl.set_validshape(full, r, c)",
        f"tmp = pl.create_tile([6, 45], dtype=pl.{dtype})",
        f"o0 = pl.store(pl.{op}(t{tmp}), [0, 0], o0)",
        f"o1 = pl.store(pl.tile.{op}(tile=u{named}), [0, 0], o1)",
        f"o2[:, :] = pl.{op}(x)",
        f"o3[:, :] = pl.tensor.{op}(input=x)",
        f"o4[0:{r if row else 1}, 0:{1 if row else c}] = pl.{op}(d[0:{r}, 0:{c}])",
        f"o5 = pl.store(pl.{op}(input=t{named}), [0, 0], o5)",
    ]
    if op == "col_sum":
        lines[-1] = "o5 = pl.store(pl.col_sum(t, tmp_tile=tmp), [0, 0], o5)"
    run("\n".join(lines), "a2a3sim", {"r": ("INT32", r), "c": ("INT32", c)}, x=x, d=dirty, **outs)
    part = np.full(shape, SENTINEL, want.dtype)
    part[: want.shape[0], : want.shape[1]] = want
    for name, expected in (("o0", part), ("o1", part), ("o2", whole), ("o3", whole), ("o4", part), ("o5", part)):
        if op == "col_sum" and name == "o5":
            expected = part.copy()
            expected[:1, :c] = col_sum(x[:r, :c], dtype, tree=True)
        same(outs[name], expected, f"{op}:{name} {dtype} {region}", signs=False)
    if dtype in FLOATS and op in ("row_sum", "row_max", "col_max"):  # and PyTorch, with a tolerance for sums
        t = torch.from_numpy(x.astype(np.float32))
        other = {
            "row_sum": lambda: t.sum(1, keepdim=True),
            "row_max": lambda: t.amax(1, keepdim=True),
            "col_max": lambda: t.amax(0, keepdim=True),
        }[op]()
        np.testing.assert_allclose(
            outs["o2"].astype(np.float32), other.numpy(), rtol=1e-2, atol=1.0 if op == "row_sum" else 0
        )


def test_order_of_row_sums():  # B-36, O-307
    x = np.array([[1e8, 1, -1e8, 0]], np.float32)
    o = np.zeros((1, 1), np.float32)
    run("o[:, :] = pl.row_sum(x)", x=x, o=o)
    assert o[0, 0] == 1.0
    x = np.zeros((2, 64), np.float32)
    x[0, [0, 16, 1, 8]] = [1e8, 1, -1e8, 3]
    x[1, [0, 8, 4, 12]] = [1e8, -1e8, 1, 2]
    o = np.zeros((2, 1), np.float32)
    run("o[:, :] = pl.row_sum(x)", x=x, o=o)
    np.testing.assert_array_equal(o, row_sum(x, "FP32"))


@pytest.mark.parametrize("op", ["row_argmax", "row_argmin", "col_argmax", "col_argmin"])
def test_lowest_index_wins_and_nan_is_never_selected(op):  # O-1504, B-9
    x = np.zeros((32, 40), np.float32)
    x += np.resize([1, 3, 3, -2, -2], 40)
    if op.startswith("col"):
        x = np.ascontiguousarray(x.T[:32, :32])
    x[1:, 5:9] = np.nan
    if op.startswith("col"):
        x[1:, 5:9] = x[1:, :4]
        x[5:9, 1:] = np.nan
    o = np.zeros((x.shape[0], 1) if op.startswith("row") else (1, x.shape[1]), np.int32)
    run(f"o[:, :] = pl.{op}(x)", x=x, o=o)
    f = np.nanargmax if op.endswith("max") else np.nanargmin
    np.testing.assert_array_equal(o.reshape(-1), f(x, axis=1 if op.startswith("row") else 0))


def test_ranks_above_two():  # O-1501, O-203
    x = tame("FP32", (2, 3, 4, 20), 32)
    o0, o1, o2 = (
        np.zeros((2, 3, 4, 1), np.float32),
        np.zeros((2, 3, 1, 20), np.float32),
        np.zeros((2, 3, 4, 1), np.float32),
    )
    o3, v = np.zeros((1,), np.float32), tame("FP32", (20,), 33)
    run(
        """
        o0[:, :, :, :] = pl.row_max(x)
        o1[:, :, :, :] = pl.col_max(x)
        t = pl.load(x, [0, 0, 0, 0], [2, 3, 4, 20])
        tmp = pl.create_tile([2, 3, 4, 20], dtype=pl.FP32)
        o2 = pl.store(pl.row_sum(t, tmp), [0, 0, 0, 0], o2)
        o3[:] = pl.row_min(v)
        """,
        x=x, v=v, o0=o0, o1=o1, o2=o2, o3=o3,
    )  # fmt: skip
    np.testing.assert_array_equal(o0, x.max(-1, keepdims=True))
    np.testing.assert_array_equal(o1, x.max(-2, keepdims=True))
    np.testing.assert_array_equal(o2.reshape(24, 1), row_sum(x.reshape(24, 20), "FP32"))
    np.testing.assert_array_equal(o3, v.min(keepdims=True))


# ---------------------------------------------------------------- section 16

EXPANDS = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum,
}  # fmt: skip
ADD_TYPES = ("INT8", "INT16", "INT32", "FP16", "FP32")


def expand_reference(op, a, v, dtype):
    with np.errstate(all="ignore"):
        if dtype in INTEGERS:
            if op == "div":
                q = np.abs(a.astype(np.int64)) // np.abs(v.astype(np.int64))
                return np.where((a < 0) ^ (v < 0), -q, q).astype(a.dtype)
            return EXPANDS[op](a, v).astype(a.dtype)
        wide, side = a.astype(np.float32), v.astype(np.float32)
        if op == "expdif":
            difference = rounded(wide - side, dtype)
            return rounded(np.exp(difference.astype(np.float64)), dtype)
        return rounded(EXPANDS[op](wide, side), dtype)


@pytest.mark.parametrize("side", ["row", "col"])
@pytest.mark.parametrize("op", [*EXPANDS, "expdif"])
@pytest.mark.parametrize("dtype", ["FP32", "FP16", "BF16", "INT32", "INT16", "INT8"])
def test_expanded_operands(op, side, dtype):  # O-1601, O-1602, O-1003
    if op == "expdif" and dtype not in FLOATS:
        return
    if op == "div" and dtype in ("INT8", "BF16"):
        return
    if op == "add" and side == "row" and dtype not in ADD_TYPES:
        return
    a, v = (
        operands(dtype, SHAPE, 34, nan=op not in ("max", "min")),
        operands(dtype, (6, 1) if side == "row" else (1, 45), 35, nan=False),
    )
    if op == "div" and dtype in INTEGERS:
        v[(v == 0) | (v == -1)] = 3
    name, vec = f"{side}_expand_{op}", f"{side}_vec"
    shape = list(v.shape)
    regions = [(6, 45), (4, 17)]
    outs = {f"o{i}": np.full(SHAPE, SENTINEL, a.dtype) for i in range(6)}
    tail = ", tmp=tmp" if name == "row_expand_add" else ""
    run(
        f"""
        ta = pl.load(a, [0, 0], [6, 45])
        tv = pl.load(v, [0, 0], {shape})
        tmp = pl.create_tile([6, 45], dtype=pl.{dtype})
        o0[:, :] = pl.{name}(a, v)
        o1[:, :] = pl.tensor.{name}(tensor=a, {vec}=v)
        o2 = pl.store(pl.{name}(lhs=ta, rhs=tv{tail}), [0, 0], o2)
        o3 = pl.store(pl.tile.{name}(tile=ta, {vec}=tv), [0, 0], o3)
        n = pl.set_validshape(ta, 4, 17)
        o4 = pl.store(pl.{name}(n, {"pl.set_validshape(tv, 4, 1)" if side == "row" else "tv"}), [0, 0], o4)
        o5[:, :] = pl.{name}(lhs=a, rhs=v)
        """,
        a=a, v=v, **outs,
    )  # fmt: skip
    want = expand_reference(op, a, v, dtype)
    limit = 4 if (op in ("div", "expdif") and dtype == "FP32") else 1 if op == "expdif" else 0
    for name_, got in outs.items():
        expected = want
        if name_ == "o4":
            expected = np.full(SHAPE, SENTINEL, a.dtype)
            expected[:4, :17] = want[:4, :17]
        same(got, expected, f"{name}:{name_} {dtype}", limit=limit, signs=op not in ("max", "min"))


@pytest.mark.parametrize("dtype", ["FP32", "FP16", "INT32", "INT16"])
def test_spreading_vectors_and_scalars(dtype):  # O-1603, O-1604
    a, v, w = operands(dtype, SHAPE, 36), operands(dtype, (6, 1), 37), operands(dtype, (1, 45), 38)
    outs = {f"o{i}": np.full(SHAPE, SENTINEL, a.dtype) for i in range(12)}
    run(
        """
        ta = pl.load(a, [0, 0], [6, 45])
        tv = pl.load(v, [0, 0], [6, 1])
        tw = pl.load(w, [0, 0], [1, 45])
        o0[:, :] = pl.row_expand(a, v)
        o1[:, :] = pl.tensor.row_expand(target=a, row_vec=v)
        o2 = pl.store(pl.row_expand(target=ta, row_vec=tv), [0, 0], o2)
        o3 = pl.store(pl.tile.row_expand(ta, tv), [0, 0], o3)
        o4[:, :] = pl.col_expand(target=a, col_vec=w)
        o5[:, :] = pl.tensor.col_expand(a, col_vec=w)
        o6 = pl.store(pl.col_expand(ta, tw), [0, 0], o6)
        o7 = pl.store(pl.tile.col_expand(pl.set_validshape(ta, 2, 9), tw), [0, 0], o7)
        o8[:, :] = pl.expands(a, 3)
        o9[:, :] = pl.tensor.expands(target=a, scalar=s)
        o10 = pl.store(pl.expands(pl.set_validshape(ta, 2, 9), 3), [0, 0], o10)
        o11 = pl.store(pl.tile.expands(target=ta, scalar=s), [0, 0], o11)
        """,
        "a2a3sim", {"s": (dtype, 5)}, a=a, v=v, w=w, **outs,
    )  # fmt: skip
    rows, columns = np.broadcast_to(v, SHAPE), np.broadcast_to(w, SHAPE)
    narrow = np.full(SHAPE, SENTINEL, a.dtype)
    narrow[:2, :9] = columns[:2, :9]
    three, five = np.full(SHAPE, 3, a.dtype), np.full(SHAPE, 5, a.dtype)
    for i, want in enumerate([rows, rows, rows, rows, columns, columns, columns, narrow, three, five, three, five]):
        same(outs[f"o{i}"], np.ascontiguousarray(want), f"expand:{i} {dtype}")


@pytest.mark.parametrize("dtype", ["FP32", "FP16", "INT8"])
def test_lane_block(dtype):  # O-1602: element j mod (32 / size) of a row is added to column j
    lanes = 32 // np.dtype(NUMPY[dtype]).itemsize
    a, v = tame(dtype, (6, 64), 39), tame(dtype, (6, lanes), 40)
    o = np.zeros_like(a)
    run(
        f"o = pl.store(pl.row_expand_add(pl.load(a, [0, 0], [6, 64]), pl.load(v, [0, 0], [6, {lanes}])), [0, 0], o)",
        a=a,
        v=v,
        o=o,
    )
    same(o, expand_reference("add", a, np.tile(v, 64 // lanes), dtype), "row_expand_add:lane block")


@pytest.mark.parametrize("axis", [None, 0, 1, 2])
def test_expand_clone(axis):  # O-1605
    shape = [3, 4, 16]
    if axis is not None:
        shape[axis] = 1
    x, o0, o1 = operands("FP32", tuple(shape), 41), np.zeros((3, 4, 16), np.float32), np.zeros((3, 4, 16), np.float32)
    run("o0 = pl.expand_clone(x, o0)\npl.tensor.expand_clone(src=x, target=o1)", x=x, o0=o0, o1=o1)
    for got in (o0, o1):
        same(got, np.ascontiguousarray(np.broadcast_to(x, got.shape)), "expand_clone:")


# ---------------------------------------------------------------- sections 13, 14


def bits(mask):
    """A packed mask: bit j mod 8 of byte j div 8."""
    return np.packbits(mask, axis=1, bitorder="little")


@pytest.mark.parametrize("dtype", ["INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32", "FP16", "BF16", "FP32"])
def test_comparisons(dtype):  # O-1301, O-1302, O-308, B-10
    x, y = operands(dtype, (6, 45), 42), operands(dtype, (6, 45), 43)
    y[:, ::3] = x[:, ::3]
    functions = [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal]
    outs, body = {}, ["tx = pl.load(x, [0, 0], [6, 45])", "ty = pl.load(y, [0, 0], [6, 45])"]
    for k in range(6):
        for name, kind, expression in (
            ("ot", NUMPY[dtype], f"pl.cmp(x, y, {k})"),
            ("os", NUMPY[dtype], f"pl.tensor.cmp(lhs=x, rhs=3, cmp_type={k})"),
            ("op", np.uint8, f"pl.cmp(tx, ty, cmp_type={k})"),
            ("oq", np.uint8, f"pl.tile.cmps(tx, 3, {k})"),
            ("or", np.uint8, f"pl.cmps(tx, rhs=3, cmp_type={k})"),
            ("ou", np.uint8, f"pl.cmp(tx, 3, {k})"),
            ("ov", np.uint8, f"pl.tile.cmp(pl.set_validshape(tx, 4, 13), ty, {k})"),
        ):
            outs[f"{name}{k}"] = np.full(
                (6, 6) if kind is np.uint8 and name not in ("ot", "os") else SHAPE, SENTINEL, kind
            )
            tensor = name in ("ot", "os")
            body.append(
                f"{name}{k}[:, :] = {expression}"
                if tensor
                else f"{name}{k} = pl.store({expression}, [0, 0], {name}{k})"
            )
    run("\n".join(body), x=x, y=y, **outs)
    a, b = (v.astype(np.float64) for v in (x, y))
    for k, f in enumerate(functions):
        pairwise, scalar = f(a, b), f(a, 3.0)
        np.testing.assert_array_equal(outs[f"ot{k}"].astype(np.float32), pairwise.astype(np.float32))
        np.testing.assert_array_equal(outs[f"os{k}"].astype(np.float32), scalar.astype(np.float32))
        np.testing.assert_array_equal(outs[f"op{k}"], bits(pairwise))
        for name in ("oq", "or", "ou"):
            np.testing.assert_array_equal(outs[f"{name}{k}"], bits(scalar))
        narrow = np.full((6, 6), SENTINEL, np.uint8)
        narrow[:4, :2] = bits(pairwise[:4, :13])
        np.testing.assert_array_equal(outs[f"ov{k}"], narrow)


@pytest.mark.parametrize("dtype", ["INT16", "INT32", "FP16", "FP32", "BF16"])
def test_selection_between_tiles(dtype):  # O-1303
    x, y = operands(dtype, (6, 45), 44), operands(dtype, (6, 45), 45)
    mask = operands(dtype, (6, 45), 46, nan=False)
    o0, o1 = (np.full(SHAPE, SENTINEL, x.dtype) for _ in range(2))
    run(
        """
        bits = pl.cmp(pl.load(mask, [0, 0], [6, 45]), 0, cmp_type=4)
        tx = pl.load(x, [0, 0], [6, 45])
        ty = pl.load(y, [0, 0], [6, 45])
        tmp = pl.create_tile([1, 32], dtype=pl.UINT8)
        o0 = pl.store(pl.sel(bits, tx, ty, tmp), [0, 0], o0)
        o1 = pl.store(pl.tile.sel(mask=bits, lhs=pl.set_validshape(tx, 3, 11), rhs=ty, tmp=tmp), [0, 0], o1)
        """,
        x=x, y=y, mask=mask, o0=o0, o1=o1,
    )  # fmt: skip
    want = np.where(mask.astype(np.float64) > 0, x, y)
    same(o0, want, f"sel:{dtype}")
    narrow = np.full(SHAPE, SENTINEL, x.dtype)
    narrow[:3, :11] = want[:3, :11]
    same(o1, narrow, f"sel:{dtype}")


@pytest.mark.parametrize("mask_type", ["INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32"])
@pytest.mark.parametrize("dtype", ["INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "FP16", "FP32"])
def test_selection_of_a_scalar(dtype, mask_type):  # O-1304, O-310
    platform = "a5sim" if dtype in ("INT8", "UINT8") else "a2a3sim"
    x = operands(dtype, (6, 64), 47)
    width = 8 * np.dtype(NUMPY[mask_type]).itemsize
    mask = operands(mask_type, (6, 64 // width), 48)
    outs = [np.zeros_like(x) for _ in range(3)]
    run(
        f"""
        m = pl.load(mask, [0, 0], {[6, 64 // width]})
        t = pl.load(x, [0, 0], [6, 64])
        tmp = pl.create_tile([1, 32], dtype=pl.UINT8)
        o0 = pl.store(pl.sels(m, t, tmp, 3), [0, 0], o0)
        o1 = pl.store(pl.tile.sels(mask=m, src=t, tmp=tmp, scalar=s), [0, 0], o1)
        o2 = pl.store(pl.sels(m, t, tmp, 4.0), [0, 0], o2)
        """,
        platform, {"s": (dtype, 9)}, x=x, mask=mask, o0=outs[0], o1=outs[1], o2=outs[2],
    )  # fmt: skip
    chosen = np.unpackbits(mask.view(np.uint8), axis=1, bitorder="little").astype(bool)
    for got, scalar in zip(outs, (3, 9, 4), strict=True):
        same(got, np.where(chosen, x, NUMPY[dtype](scalar)), f"sels:{dtype}")


@pytest.mark.parametrize("dtype", ["FP32", "FP16", "BF16", "INT32", "INT16", "INT8", "UINT8", "UINT16", "UINT32"])
@pytest.mark.parametrize("op", ["part_add", "part_mul", "part_max", "part_min"])
def test_partial_operands(op, dtype):  # O-1402, B-34
    a, b = operands(dtype, SHAPE, 49, nan=False), operands(dtype, SHAPE, 50, nan=False)
    f = {"part_add": np.add, "part_mul": np.multiply, "part_max": np.maximum, "part_min": np.minimum}[op]
    outs = [np.full(SHAPE, SENTINEL, a.dtype) for _ in range(4)]
    run(
        f"""
        ta = pl.set_validshape(pl.load(a, [0, 0], [6, 45]), 5, 20)
        tb = pl.set_validshape(pl.load(b, [0, 0], [6, 45]), 3, 33)
        o0 = pl.store(pl.{op}(ta, tb), [0, 0], o0)
        o1 = pl.store(pl.tile.{op}(src0=tb, src1=ta), [0, 0], o1)
        o2[:, :] = pl.{op}(a, b)
        wide = pl.set_validshape(ta, 6, 45)
        o3 = pl.store(pl.{op}(wide, pl.set_validshape(tb, 0, 0)), [0, 0], o3)
        """,
        a=a, b=b, o0=outs[0], o1=outs[1], o2=outs[2], o3=outs[3],
    )  # fmt: skip
    with np.errstate(all="ignore"):
        both = (
            rounded(f(a.astype(np.float32), b.astype(np.float32)), dtype)
            if dtype in FLOATS
            else f(a, b).astype(a.dtype)
        )
    va, vb = np.zeros(SHAPE, bool), np.zeros(SHAPE, bool)
    va[:5, :20], vb[:3, :33] = True, True
    mixed = np.where(va & vb, both, np.where(va, a, np.where(vb, b, np.zeros_like(a))))
    want0, want1 = np.full(SHAPE, SENTINEL, a.dtype), np.full(SHAPE, SENTINEL, a.dtype)
    want0[:5, :20], want1[:3, :33] = mixed[:5, :20], mixed[:3, :33]
    for got, want in zip(outs, (want0, want1, both, a), strict=True):
        same(got, want, f"{op}:{dtype}", signs=False)


@pytest.mark.parametrize("dtype", ["FP32", "FP16", "BF16", "INT32", "INT8", "UINT16"])
def test_three_operands(dtype):  # O-1403
    x, y, z = (operands(dtype, SHAPE, k) for k in (51, 52, 53))
    row = z[:1].copy()
    outs = {f"o{i}": np.full(SHAPE, SENTINEL, x.dtype) for i in range(8)}
    run(
        """
        tx = pl.load(x, [0, 0], [6, 45])
        ty = pl.load(y, [0, 0], [6, 45])
        tz = pl.load(z, [0, 0], [6, 45])
        tr = pl.load(row, [0, 0], [1, 45])
        o0 = pl.store(pl.addc(tx, ty, tz), [0, 0], o0)
        o1 = pl.store(pl.tile.subc(lhs=tx, rhs=ty, rhs2=tz), [0, 0], o1)
        o2 = pl.store(pl.addsc(tx, 3, tz), [0, 0], o2)
        o3 = pl.store(pl.tile.subsc(lhs=tx, rhs=s, rhs2=tz), [0, 0], o3)
        o4 = pl.store(pl.addc(pl.set_validshape(tx, 2, 30), ty, tz), [0, 0], o4)
        o5 = pl.store(pl.subc(tx, ty, tr), [0, 0], o5)
        o6 = pl.store(pl.tile.addc(tx, tr, tz), [0, 0], o6)
        o7 = pl.store(pl.subsc(tx, 3, tr), [0, 0], o7)
        """,
        "a2a3sim", {"s": (dtype, 5)}, x=x, y=y, z=z, row=row, **outs,
    )  # fmt: skip

    def step(f, a, b):
        b = np.broadcast_to(np.asarray(b, a.dtype), a.shape)
        with np.errstate(all="ignore"):
            return rounded(f(a.astype(np.float32), b.astype(np.float32)), dtype) if dtype in FLOATS else f(a, b)

    add, sub = np.add, np.subtract
    narrow = np.full(SHAPE, SENTINEL, x.dtype)
    narrow[:2, :30] = step(add, step(add, x, y), z)[:2, :30]
    wants = [step(add, step(add, x, y), z), step(sub, step(sub, x, y), z), step(add, step(add, x, 3), z),
             step(sub, step(sub, x, 5), z), narrow, step(sub, step(sub, x, y), row), step(add, step(add, x, row), z),
             step(sub, step(sub, x, 3), row)]  # fmt: skip
    for i, want in enumerate(wants):
        same(outs[f"o{i}"], want, f"addc/subc:{i} {dtype}")


# ---------------------------------------------------------------- section 17

PADS = ["pl.PadValue.zero", "pl.PadValue.max", "pl.PadValue.min", "0", "0.0", "math.inf", "-math.inf"]


@pytest.mark.parametrize("dtype", ["FP32", "FP16", "BF16", "INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32"])
def test_fill_values(dtype):  # O-1701, O-1702, O-1703, O-1704, O-1705, B-22
    x = operands(dtype, (6, 32), 54)
    if dtype in FLOATS:
        table = {"zero": 0.0, "max": np.inf, "min": -np.inf}
    else:
        table = {"zero": 0, "max": np.iinfo(NUMPY[dtype]).max, "min": np.iinfo(NUMPY[dtype]).min}
    values = [table[k] for k in ("zero", "max", "min", "zero", "zero", "max", "min")]
    outs, body = {}, ["full = pl.load(x, [0, 0], [6, 32])", "t = pl.set_validshape(full, r, 17)"]
    for i, pad in enumerate(PADS):
        outs |= {f"oa{i}": np.zeros_like(x), f"ob{i}": np.zeros((8, 64), x.dtype), f"oc{i}": np.zeros_like(x)}
        outs |= {f"od{i}": np.zeros_like(x), f"oe{i}": np.zeros((8, 64), x.dtype)}
        body += [f"oa{i} = pl.store(pl.fillpad(t, pad_value={pad}), [0, 0], oa{i})",
                 f"ob{i} = pl.store(pl.fillpad_expand(t, [8, 64], {pad}), [0, 0], ob{i})",
                 f"c{i} = pl.load(x, [0, 0], [6, 32])",
                 f"oc{i} = pl.store(pl.tile.fillpad_inplace(pl.set_validshape(c{i}, r, 17), pad_value={pad}), [0, 0], oc{i})",
                 f"od{i}[:, :] = pl.tensor.fillpad(tensor=pl.set_validshape(pl.slice(x, [6, 32], [0, 0]), r, 17), pad_value={pad})",
                 f"oe{i}[:, :] = pl.fillpad_expand(pl.set_validshape(pl.slice(x, [6, 32], [0, 0]), r, 17), shape=[8, 64], pad_value={pad})"]  # fmt: skip
    import opkit

    text = opkit.source("\n".join(body), {"x": x, **outs}, {"r": "INT32"}, {})
    f = opkit.define("import math\n" + text)["f"]
    for rows in (4, 0, 6):
        f(x, *outs.values(), np.array([rows], np.int32))
        for i, value in enumerate(values):
            want = np.full((6, 32), value).astype(x.dtype) if dtype in FLOATS else np.full((6, 32), value, x.dtype)
            want[:rows, :17] = x[:rows, :17]
            large = np.full((8, 64), value).astype(x.dtype) if dtype in FLOATS else np.full((8, 64), value, x.dtype)
            large[:rows, :17] = x[:rows, :17]
            for name in "acd":
                same(outs[f"o{name}{i}"], want, f"fillpad:{name} {PADS[i]} {dtype}")
            for name in "be":
                same(outs[f"o{name}{i}"], large, f"fillpad_expand:{name} {PADS[i]} {dtype}")
