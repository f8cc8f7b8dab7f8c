# SPDX-License-Identifier: Apache-2.0
"""Two-operand operations through the language: every type, level and operand form against NumPy and PyTorch (02 section 9)."""

import numpy as np
import pytest
import torch
from opkit import FLOATS, INTEGERS, NUMPY, operands, rounded, run, same

SHAPE = (5, 19)
SENTINEL = 77
ALL = FLOATS + INTEGERS


def wide(x):
    return x.astype(np.float32) if x.dtype.name in ("float32", "float16", "bfloat16") else x


def trunc_div(a, b):
    q = np.abs(a.astype(np.int64)) // np.abs(b.astype(np.int64))
    return np.where((a < 0) ^ (b < 0), -q, q)


def floor_rem(a, b):
    return np.remainder(a, b)


# op -> (reference, dtypes on a2, dtypes that a5 adds, needs tmp, limit in ulp of FP32 results)
TABLE = {
    "add": (np.add, ALL, (), 0),
    "sub": (np.subtract, ALL, (), 0),
    "mul": (np.multiply, ALL, (), 0),
    "maximum": (np.maximum, ALL, (), 0),
    "minimum": (np.minimum, ALL, (), 0),
    "div": (None, ("FP32", "FP16", "INT16", "INT32"), (), 0),
    "fmod": (np.fmod, ("FP32", "FP16", "INT32"), ("INT16", "UINT16", "UINT32"), 0),
    "rem": (floor_rem, ("FP32", "FP16", "INT32"), ("INT16", "UINT16", "UINT32"), 0),
    "and_": (np.bitwise_and, ("INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32"), ("INT64", "UINT64"), 0),
    "or_": (np.bitwise_or, ("INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32"), ("INT64", "UINT64"), 0),
    "xor": (np.bitwise_xor, ("INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32"), ("INT64", "UINT64"), 0),
    "shl": (np.left_shift, ("INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32"), ("INT64", "UINT64"), 0),
    "shr": (np.right_shift, ("INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32"), ("INT64", "UINT64"), 0),
}
SCALAR_NAME = {
    op: op + "s" for op in ("add", "sub", "mul", "div", "fmod", "rem", "maximum", "minimum", "xor", "shl", "shr")
}
SCALAR_NAME |= {"and_": "ands", "or_": "ors"}
TENSOR_SCALAR_NAME = {"add", "sub", "mul", "div", "fmod", "and_", "or_", "xor", "shl", "shr"}  # T.<op>s exists
NO_BROADCAST = {"div"}  # tile form
BITS = {"and_", "or_", "xor", "shl", "shr"}
SUBS = ("INT8", "INT16", "INT32", "FP16", "FP32", "BF16")  # O-904

CASES = [(op, d, p) for op, (_, a2, a5, _) in TABLE.items()
         for p, types in (("a2a3sim", a2), ("a5sim", a2 + a5)) for d in types]  # fmt: skip


def reference(op, a, b, dtype):
    with np.errstate(all="ignore"):
        if op == "div" and dtype in INTEGERS:
            return trunc_div(a, b).astype(a.dtype)
        f = np.divide if op == "div" else TABLE[op][0]
        if op in ("shl", "shr"):
            width = 8 * a.dtype.itemsize
            count = np.minimum(b, width - 1).astype(a.dtype)
            out = f(a, count)
            past = np.zeros_like(a)
            if op == "shr" and dtype.startswith("I"):
                past[a < 0] = -1
            return np.where(b >= width, past, out)
        return rounded(f(wide(a), wide(b)), dtype)


def pair(op, dtype):
    """Operands on which the result is specified (O-306, O-308, O-1203)."""
    nan = op not in ("maximum", "minimum")
    x, y = operands(dtype, SHAPE, 1, nan), operands(dtype, SHAPE, 2, nan)
    if op in ("shl", "shr"):
        y = (np.arange(y.size).reshape(SHAPE) % 70).astype(y.dtype)
    if op in ("div", "fmod", "rem"):
        if dtype in INTEGERS:
            y[(y == 0) | (y == NUMPY[dtype](-1 if np.iinfo(NUMPY[dtype]).min else 0))] = 3
        elif op == "rem":
            x[np.isinf(x.astype(np.float32))] = 2
            y[np.isinf(y.astype(np.float32))] = 2
    return x, y


def literal(op, dtype):
    return 3 if dtype in INTEGERS else 2.5 if op not in ("fmod", "rem") else 0.75


def compare(op, got, want, what):
    if op in ("maximum", "minimum", "rem") and got.dtype.name in ("float32", "float16", "bfloat16"):
        return same(got, want, what, signs=False)  # max(-0, +0) may be either; O-906 says nothing of the sign of 0
    same(got, want, what, limit=4 if op == "div" and got.dtype == np.float32 else 0)
    return None


@pytest.mark.parametrize("op,dtype,platform", CASES)
def test_operands_of_every_form(op, dtype, platform):  # O-901, O-902, O-303, O-305, O-1201, O-1203, O-906, O-311
    x, y = pair(op, dtype)
    col, row, one = y[:, :1].copy(), y[:1].copy(), y[2:3, 5:6].copy()
    tmp = ", tmp" if op == "rem" else ""
    body, wants = ["tx = pl.load(x, [0, 0], [5, 19])", "ty = pl.load(y, [0, 0], [5, 19])"], {}
    body += [
        "tcol = pl.load(col, [0, 0], [5, 1])",
        "trow = pl.load(row, [0, 0], [1, 19])",
        "tone = pl.load(one, [0, 0], [1, 1])",
    ]
    body += [f"tmp = pl.create_tile([5, 19], dtype=pl.{dtype})"]
    values = {"x": x, "y": y, "col": col, "row": row, "one": one}
    if op == "xor":
        tmp = ", tmp"

    def add(expression, want, tile):
        name = f"o{len(wants)}"
        wants[name] = (rounded(want, dtype) if want.dtype != NUMPY[dtype] else want, expression)
        body.append(f"{name} = pl.store({expression}, [0, 0], {name})" if tile else f"{name}[:, :] = {expression}")

    full = reference(op, x, y, dtype)
    if op != "rem":  # no tensor form
        add(f"pl.{op}(x, y)", full, False)
        add(f"pl.tensor.{op}(rhs=y, lhs=x)", full, False)
    add(f"pl.{op}(tx, ty{tmp})", full, True)
    add(f"pl.tile.{op}(lhs=tx, rhs=ty{tmp.replace(', tmp', ', tmp=tmp')})", full, True)
    for a, b in (("x", "col"), ("col", "x"), ("x", "row"), ("row", "x"), ("x", "one"), ("one", "x"), ("col", "row")):
        if op in ("div", "fmod") and dtype in INTEGERS and b == "x":
            continue  # zeros in x
        if op == "rem" and b == "x":
            continue
        if op in ("shl", "shr") and b == "x":
            continue  # negative counts
        with np.errstate(all="ignore"):
            want = reference(op, *np.broadcast_arrays(values[a], values[b]), dtype)
        if op not in BITS and op != "rem":
            add(f"pl.{op}({a}, {b})", want, False)
        if op not in NO_BROADCAST and not (op == "xor" and a in ("col", "row", "one")):
            add(f"pl.{op}(t{a}, t{b}{tmp})", want, True)
    outs = {name: np.full(SHAPE, SENTINEL, NUMPY[dtype]) for name in wants}
    run("\n".join(body), platform, **values, **outs)
    for name, (want, expression) in wants.items():
        compare(op, outs[name], want, f"{op}:{expression} {dtype}")


@pytest.mark.parametrize("op,dtype,platform", CASES)
def test_scalar_operands(op, dtype, platform):  # O-119, O-120, O-121, O-122, O-123, O-904, O-905, O-1201
    if op == "sub" and dtype not in SUBS:
        return
    x, _ = pair(op, dtype)
    number = literal(op, dtype)
    want = reference(op, x, np.full(SHAPE, number, NUMPY[dtype]), dtype)
    tmp = ", tmp" if op in ("rem", "xor") else ""
    tail = "s"
    scalar_op = SCALAR_NAME[op]
    kinds = [str(number), f"pl.const({number}, pl.{dtype})", "s", "CONSTANT"]
    expressions = []
    for k in kinds:
        if op != "rem":
            expressions.append((f"pl.{op}(x, {k})" if op not in BITS else f"pl.{scalar_op}(x, {k})", False))
        if op in TENSOR_SCALAR_NAME:
            expressions.append((f"pl.tensor.{scalar_op}(x, rhs={k})", False))
        if op not in ("rem", *BITS):
            expressions.append((f"pl.{op}(tx, {k})", True))
        expressions.append((f"pl.tile.{scalar_op}(tx, {k}{tmp})", True))
        if op in ("fmod", "rem", "maximum", "minimum", *BITS):
            expressions.append((f"pl.{scalar_op}(tx, {k}{tmp})", True))
    body = ["tx = pl.load(x, [0, 0], [5, 19])", f"tmp = pl.create_tile([5, 19], dtype=pl.{dtype})"]
    for i, (e, tile) in enumerate(expressions):
        body.append(f"o{i} = pl.store({e}, [0, 0], o{i})" if tile else f"o{i}[:, :] = {e}")
    outs = {f"o{i}": np.full(SHAPE, SENTINEL, NUMPY[dtype]) for i in range(len(expressions))}
    text = "\n".join(body).replace("CONSTANT", f"{number}")
    run(text, platform, {"s": (dtype, number)}, x=x, **outs)
    for i, (e, _) in enumerate(expressions):
        compare(op, outs[f"o{i}"], want, f"{scalar_op}:{e} {dtype}")


@pytest.mark.parametrize("valid", [(3, 7), (0, 4), (5, 0), (1, 1), (5, 16)])
@pytest.mark.parametrize("op,dtype", [(op, d) for op, (_, a2, _, _) in TABLE.items() for d in a2])
def test_valid_region_of_the_first_operand(op, dtype, valid):  # O-208, O-210, O-213: padding is never computed with
    x, y = pair(op, dtype)
    if dtype in FLOATS:
        x[valid[0] :] = np.nan
        x[:, valid[1] :] = np.nan
    tmp = ", tmp" if op in ("rem", "xor") else ""
    body = f"""
    full = pl.load(x, [0, 0], [5, 19])
    tx = pl.set_validshape(full, {valid[0]}, {valid[1]})
    ty = pl.load(y, [0, 0], [5, 19]{f", valid_shape={list(valid)}" if op == "div" else ""})
    tmp = pl.create_tile([5, 19], dtype=pl.{dtype})
    o0 = pl.store(pl.{op}(tx, ty{tmp}), [0, 0], o0)
    o1 = pl.store(pl.tile.{SCALAR_NAME[op]}(tx, {literal(op, dtype)}{tmp}), [0, 0], o1)
    n = pl.min(r, 5)
    o2 = pl.store(pl.{op}(pl.set_validshape(full, n, c), pl.set_validshape(ty, n, c){tmp}), [0, 0], o2)
    """
    if op == "sub" and dtype not in SUBS:
        body = "\n".join(line for line in body.splitlines() if "o1" not in line) + "\n    o1 = pl.store(tx, [0, 0], o1)"
    outs = {f"o{i}": np.full(SHAPE, SENTINEL, NUMPY[dtype]) for i in range(3)}
    run(body, "a2a3sim", {"r": ("INT32", valid[0]), "c": ("INT32", valid[1])}, x=x, y=y, **outs)
    r, c = valid
    for name, other in (("o0", y), ("o1", np.full(SHAPE, literal(op, dtype), NUMPY[dtype])), ("o2", y)):
        want = np.full(SHAPE, SENTINEL, NUMPY[dtype])
        part = reference(op, x[:r, :c], other[:r, :c], dtype)
        if name == "o1" and op == "sub" and dtype not in SUBS:
            part = x[:r, :c]
        want[:r, :c] = part
        compare(op, outs[name], want, f"{op}:{name} valid {valid} {dtype}")


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div"])
@pytest.mark.parametrize("dtype", ["FP16", "BF16"])
def test_every_sixteen_bit_pattern_as_left_operand(op, dtype):  # O-312, O-303, against PyTorch
    if op == "div" and dtype == "BF16":
        return
    x = np.arange(65536, dtype=np.uint16).view(NUMPY[dtype]).reshape(256, 256)
    y = np.resize(operands(dtype, (16, 16), 3), (256, 256))
    o0, o1 = np.zeros_like(x), np.zeros_like(x)
    body = f"""
    for i in pl.range(4):
        tx = pl.load(x, [i * 64, 0], [64, 256])
        ty = pl.load(y, [i * 64, 0], [64, 256])
        o0 = pl.store(pl.{op}(tx, ty), [i * 64, 0], o0)
        o1 = pl.store(pl.{op}(tx, 0.3), [i * 64, 0], o1)
    """
    run(body, x=x, y=y, o0=o0, o1=o1)
    kind = torch.float16 if dtype == "FP16" else torch.bfloat16
    a, b = (torch.from_numpy(v.view(np.int16).copy()).view(kind) for v in (x, y))
    third = torch.tensor(0.3, dtype=kind)
    for got, other in ((o0, b), (o1, third)):
        want = getattr(torch, op)(a.float(), other.float()).to(kind).view(torch.int16).numpy().view(NUMPY[dtype])
        same(got, want, f"{op}:all patterns {dtype}", limit=0)


def test_integer_tensor_with_a_float_literal():  # O-120, O-905, B-2
    x = operands("INT32", SHAPE, 4) % 1000
    o0, o1, o2, o3, o4 = (np.zeros(SHAPE, np.float32) for _ in range(5))
    o5, o6 = np.zeros(SHAPE, np.int32), np.zeros(SHAPE, np.int32)
    run(
        """
        o0[:, :] = pl.add(x, 2.5)
        o1[:, :] = pl.mul(x, 2.5)
        o2[:, :] = pl.maximum(x, 2.5)
        o3[:, :] = pl.div(x, 2.5)
        o4[:, :] = pl.fmod(x, 2.5)
        o5[:, :] = pl.sub(x, 2.5)
        o6 = pl.store(pl.add(pl.load(x, [0, 0], [5, 19]), 2.5), [0, 0], o6)
        """,
        x=x, o0=o0, o1=o1, o2=o2, o3=o3, o4=o4, o5=o5, o6=o6,
    )  # fmt: skip
    f, h = x.astype(np.float32), np.float32(2.5)
    for got, want in ((o0, f + h), (o1, f * h), (o2, np.maximum(f, h)), (o3, f / h), (o4, np.fmod(f, h))):
        same(got, want, "int32 x 2.5", limit=4)
    np.testing.assert_array_equal(o5, x - 2)  # keeps the type: the literal is cut (O-123, O-304)
    np.testing.assert_array_equal(o6, x + 2)


@pytest.mark.parametrize("a", ["INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "FP16", "BF16", "FP32"])
@pytest.mark.parametrize("b", ["INT8", "INT32", "UINT16", "UINT32", "FP16", "BF16", "FP32"])
def test_promotion_of_mixed_types(a, b):  # O-301, O-901
    if a == b:
        return
    x, y = operands(a, SHAPE, 5), operands(b, SHAPE, 6)
    if a in INTEGERS:
        x = (x % 97).astype(x.dtype)
    if b in INTEGERS:
        y = (y % 89).astype(y.dtype)
    size = {n: np.dtype(NUMPY[n]).itemsize for n in (a, b)}
    if (a in FLOATS) != (b in FLOATS):
        out = a if a in FLOATS else b
    elif size[a] != size[b]:
        out = a if size[a] > size[b] else b
    elif a in INTEGERS and a[0] != b[0]:
        out = a if a.startswith("I") else b
    else:
        out = a
    o0, o1 = np.zeros(SHAPE, NUMPY[out]), np.zeros(SHAPE, NUMPY[out])
    run(
        """
        o0[:, :] = pl.mul(x, y)
        o1 = pl.store(pl.mul(pl.load(x, [0, 0], [5, 19]), pl.load(y, [0, 0], [5, 19])), [0, 0], o1)
        """,
        x=x, y=y, o0=o0, o1=o1,
    )  # fmt: skip
    with np.errstate(all="ignore"):
        if a in FLOATS and b in FLOATS:
            want = rounded(wide(x) * wide(y), out)
        else:
            want = rounded(wide(rounded(x, out)) * wide(rounded(y, out)), out)
    same(o0, want, f"mul:{a} x {b}")
    same(o1, want, f"mul:tile {a} x {b}")
