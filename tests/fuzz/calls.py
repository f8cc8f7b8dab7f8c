# SPDX-License-Identifier: Apache-2.0
"""Calls below `pl` of the reference interpreter: argument forms, places and element access."""

from __future__ import annotations

import arithmetic as ar
import numpy as np
from operations import STRIDES, Operations, bits_as, box, cast_scalar, cells, cut
from scalars import apply, extreme
from values import NUMPY, Cells, Illegal, Scalar, Unspecified, View, is_float, wrap

BINARY = {
    "add": "add", "sub": "sub", "mul": "mul", "div": "div", "maximum": "max", "minimum": "min", "fmod": "fmod",
    "and_": "and", "or_": "or", "xor": "xor", "shl": "shl", "shr": "shr",
}  # fmt: skip
for _name in list(BINARY):
    BINARY[_name.rstrip("_") + "s"] = BINARY[_name]
UNARY = {n: n for n in ("neg", "abs", "exp", "log", "sqrt", "rsqrt", "recip", "relu", "sin", "cos")} | {"not_": "not"}
OPERATORS = {"Add": "add", "Sub": "sub", "Mult": "mul", "Div": "div"}
CODES = {"Eq": 0, "NotEq": 1, "Lt": 2, "LtE": 3, "Gt": 4, "GtE": 5}
MASKS = {"P0101": 1, "P1010": 2, "P0001": 3, "P0010": 4, "P0100": 5, "P1000": 6, "P1111": 7}
SWAPPED = {0: 0, 1: 1, 2: 4, 3: 5, 4: 2, 5: 3}


def ints(values) -> list[int]:
    out = []
    for v in values:
        if isinstance(v, Scalar):
            if not v.known:
                raise Unspecified("an unspecified value is an index")
            v = v.value
        out.append(int(v))
    return out


class Calls(Operations):
    """Dispatch by name."""

    def __init__(self, interpreter) -> None:
        super().__init__()
        self.at = interpreter

    def call(self, name: str, args, kw):
        base = name.rsplit(".", 1)[-1]
        args = [*args, *(kw.pop(k) for k in ("rhs",) if k in kw)]
        first = args[0] if args else None
        self.note(base, first)
        if base == "const":
            return Scalar(
                float(ar.narrow(np.array(float(args[0])), args[1])) if is_float(args[1]) else args[0], args[1]
            )
        if base in ("add", "sub", "mul", "div") and not isinstance(first, View):
            return apply({"add": "Add", "sub": "Sub", "mul": "Mult", "div": "Div"}[base], *args)
        if base in BINARY:
            return self.binary(BINARY[base], args[0], args[1])
        if base in UNARY:
            return self.unary(UNARY[base], args[0])
        if base in ("min", "max"):
            return extreme(base, *args)
        if name == "array.create":
            return self.op_array_create(*args)
        if name == "tile.create":
            return self.op_create_tile(*args, **kw)
        if name in ("tile.full", "tile.arange", "tile.ci"):
            return getattr(self, "op_" + base)(*args, kind="tile", **kw)
        if base.startswith("part_"):
            return self.part(base[5:], *args)
        if base in ("addc", "subc", "addsc", "subsc"):
            return self.addc(*args, op=base[:3])
        if base.startswith(("row_", "col_")):
            return self.expand(base, *args[:2]) if "expand" in base else self.reduce(base, *args)
        return getattr(self, "op_" + base)(*args, **kw)

    def operator(self, name, a, b):
        if not isinstance(a, View):
            a, b = b, a
        self.note("operator " + OPERATORS[name], a)
        return self.binary(OPERATORS[name], a, b)

    def comparison(self, name, a, b):
        code = CODES[name]
        if not isinstance(a, View):
            a, b, code = b, a, SWAPPED[code]
        self.note("operator cmp", a)
        return self.cmp(a, b, code)

    # -------------------------------------------------------------------------------------------------- creation

    def op_create_tensor(self, shape, dtype, init_value=None):
        where = "L" if self.at.in_kernel else "G"
        if init_value is None:
            return View.fresh("tensor", ints(shape), dtype, where=where)
        return View.of("tensor", Cells.exact(np.full(ints(shape), init_value).astype(NUMPY[dtype])), dtype, where=where)

    op_create = op_create_tensor

    def op_create_tile(self, shape, dtype, target_memory="Vec"):
        return View.fresh("tile", ints(shape), dtype)

    def op_full(self, shape, dtype, value, kind="tensor"):
        return View.of(kind, Cells.exact(np.full(ints(shape), value).astype(NUMPY[dtype])), dtype)

    def op_arange(self, start, shape, dtype="INT32", descending=False, kind="tensor"):
        n = ints(shape)[-1]
        start = start.value if isinstance(start, Scalar) else start
        line = [wrap(start + (-k if descending else k), dtype) for k in range(n)]
        return View.of(kind, Cells.exact(np.array(line, NUMPY[dtype]).reshape(ints(shape))), dtype)

    # ----------------------------------------------------------------------------------------------- data movement

    def op_load(self, tensor, offsets, shapes, valid_shape=None, target_memory="Vec", clamp=False):
        offsets, shapes = ints(offsets), ints(shapes)
        lead = len(tensor.shape) - len(offsets)
        want = shapes if valid_shape is None else ints(valid_shape)
        valid = []
        for axis, o in enumerate(offsets):
            n = tensor.shape[lead + axis]
            have = min(max(tensor.valid[lead + axis] - o, 0), shapes[axis])
            if not 0 <= want[axis] <= shapes[axis] or o < 0:
                raise Illegal("load: window")
            if want[axis] and o + want[axis] > n and not clamp:
                raise Illegal("load outside the tensor")
            valid.append(min(want[axis], have))
        out = View.fresh("tile", shapes, tensor.dt, valid)
        src = View("tensor", tensor.storage, tensor.idx[(0,) * lead], tensor.dt).live()
        out.box(box(valid), cut(src, box(valid, offsets)))
        return out

    def op_store(self, tile, offsets, output_tensor, shapes=None, atomic=None):
        offsets = ints(offsets)
        c = cut(cells(tile), box(tile.valid))
        if tile.dt != output_tensor.dt:
            c = ar.cast(c, tile.dt, output_tensor.dt)
        if len(tile.shape) < len(offsets):
            c = c.map(lambda m: m.reshape((1,) * (len(offsets) - len(tile.shape)) + m.shape))
        if shapes is not None:
            c = c.map(lambda m: m.reshape(ints(shapes)))
        if c.x.size:
            for o, n, limit in zip(offsets, c.x.shape, output_tensor.shape, strict=True):
                if o < 0 or o + n > limit:
                    raise Illegal("store outside the tensor")
            where = box(c.x.shape, offsets)
            if atomic == "Add":
                c = ar.binary("add", cut(output_tensor.live(), where), c, output_tensor.dt)
            output_tensor.box(where, c)
        return output_tensor

    def op_move(self, tile, target_memory):
        return View.of("tile", tile.value().map(np.copy), tile.dt, tile.valid)

    def op_assemble(self, target, source, offset, atomic=None):
        if atomic == "Add":
            where = box(source.valid, ints(offset))
            c = ar.binary("add", cut(target.live(), where), cut(cells(source), box(source.valid)), target.dt)
            target.box(where, c)
            return target
        return self.assemble_at(target, source, ints(offset))

    def assemble_at(self, target, source, offsets):
        c = cells(source)
        valid = source.valid
        if target.kind == "tile":  # O-707: a new value, the whole physical block
            out = View("tile", *self.copy_of(target), target.dt, target.valid)
            c = self.fit(c, target)
            self.inside(target, offsets, c.x.shape)
            out.box(box(c.x.shape, offsets), c if source.dt == target.dt else ar.cast(c, source.dt, target.dt))
            return out
        c = cut(c, box(valid))
        if source.dt != target.dt or source.acc is not None:
            src = "FP32" if c.x.dtype == np.float32 else source.dt
            c = ar.cast(c, src, target.dt) if src != target.dt else c
        c = self.fit(c, target)
        if c.x.size:
            self.inside(target, offsets, c.x.shape)
            target.box(box(c.x.shape, offsets), c)
        return target

    @staticmethod
    def copy_of(v: View):
        fresh = View.fresh("tile", v.shape, v.dt)
        fresh.box(box(v.shape), v.value())
        return fresh.storage, fresh.idx

    @staticmethod
    def fit(c: Cells, target: View) -> Cells:
        rank = len(target.shape)
        shape = c.x.shape
        while len(shape) > rank and shape[0] == 1:
            shape = shape[1:]
        shape = (1,) * (rank - len(shape)) + shape
        return c.map(lambda m: m.reshape(shape))

    @staticmethod
    def inside(target, offsets, shape):
        for o, n, limit in zip(offsets, shape, target.shape, strict=True):
            if o < 0 or o + n > limit:
                raise Illegal("assemble outside the target")

    def op_concat(self, src0, src1):
        return self.concat(src0, src1)

    # ------------------------------------------------------------------------------------------------ element access

    def read(self, v: View, index):
        self.note("read", v)
        for i, n in zip(index, v.shape, strict=True):
            if not 0 <= i < n:
                raise Illegal("read outside the value")
        c = v.live() if v.where == "G" or v.snap is None else v.value()
        c = v.live()
        p = tuple(index)
        x = c.x[p]
        if v.dt == "BOOL":
            return Scalar(bool(x), "BOOL", bool(c.known[p]))
        return Scalar(float(x) if is_float(v.dt) else int(x), v.dt, bool(c.known[p]), float(c.err[p]))

    def op_read(self, src, offset):
        return self.read(src, ints(offset if isinstance(offset, list | tuple) else [offset]))

    def op_write(self, dst, offset, value):
        index = ints(offset if isinstance(offset, list | tuple) else [offset])
        for i, n in zip(index, dst.shape, strict=True):
            if not 0 <= i < n:
                raise Illegal("write outside the value")
        s = value if isinstance(value, Scalar) else Scalar(value, dst.dt)
        x = ar.narrow(np.array(float(s.value)), dst.dt) if is_float(dst.dt) else np.array(wrap(int(s.value), dst.dt))
        dst.box(tuple(index), Cells(x.astype(NUMPY[dst.dt]), np.array(s.known), np.array(s.err)))
        return dst

    def op_create_l1(self, shape, dtype, transpose=False):
        return View.fresh("tensor", ints(shape), dtype)

    def op_gather_row(self, dst, src, dst_offset, src_offset, shapes, transpose=False, valid_shape=None):  # O-1910
        a, b = ints(dst_offset), ints(src_offset)
        shape = ints(shapes if valid_shape is None else valid_shape)
        c = cut(src.live(), box(shape, b))
        if c.x.shape != tuple(shape):
            raise Illegal("gather_row outside the source")
        if transpose:
            c = c.map(np.transpose)
        self.inside(dst, a, c.x.shape)
        dst.box(box(c.x.shape, a), c)
        return dst

    def op_scatter_mask(self, dst, src, mask_pattern):  # O-1921: (input, dst), O-1922: (dst, src)
        if dst.kind == "tensor":
            dst, src = View.of("tensor", cells(src).map(np.copy), src.dt, src.valid), dst
        start, step = STRIDES[MASKS[mask_pattern]]
        dst.box((slice(None), slice(start, None, step)), cells(src))
        return dst

    def op_dim(self, tensor, axis):
        return Scalar(tensor.shape[axis], "INDEX")

    def op_get_block_idx(self):
        return Scalar(self.at.block[0], "INDEX")

    # --------------------------------------------------------------------------------------------------------- views

    def cut_window(self, v: View, offsets, shape, drop, valid_shape=None):
        where = box(shape, offsets)
        want = shape if valid_shape is None else valid_shape
        valid = [min(w, max(0, min(v.valid[a] - offsets[a], shape[a]))) for a, w in enumerate(want)]
        keep = [a for a in range(len(shape)) if a not in drop]
        final = tuple(shape[a] for a in keep)
        fvalid = [valid[a] for a in keep]
        if v.kind == "tile":
            while len(final) < 2:
                final, fvalid = (1, *final), [1, *fvalid]
        out = v.same_places(v.idx[where].reshape(final), valid=fvalid)
        if v.kind == "tensor" and self.at.in_kernel:  # an address (01 L-87)
            out.snap = cut(cells(v), where).map(lambda m: m.reshape(final).copy())
        return out

    def op_slice(self, v, shape, offset, valid_shape=None, drop_dims=None, pad_value=None, clamp=False):
        shape, offset = ints(shape), ints(offset)
        want = shape if valid_shape is None else ints(valid_shape)
        exact = v.kind == "tile" or not self.at.in_kernel
        for o, n, w, limit in zip(offset, shape, want, v.shape, strict=True):  # O-211
            if o < 0 or not 0 <= w <= n or (o + (n if exact else w) > limit and not clamp):
                raise Illegal("slice outside the value")
        if all(o + n <= limit for o, n, limit in zip(offset, shape, v.shape, strict=True)):
            return self.cut_window(v, offset, shape, list(drop_dims or []), want)
        return self.overhang(v, offset, shape, list(drop_dims or []), want)

    def overhang(self, v: View, offset, shape, drop, want):
        """A window past the edge of a tensor: a value whose cells out there are nobody's."""
        places = [np.arange(o, o + n) for o, n in zip(offset, shape, strict=True)]
        near = [np.minimum(p, limit - 1) for p, limit in zip(places, v.shape, strict=True)]
        outside = np.zeros(shape, bool)
        for axis, (p, limit) in enumerate(zip(places, v.shape, strict=True)):
            outside |= (p >= limit).reshape([-1 if a == axis else 1 for a in range(len(shape))])
        keep = [a for a in range(len(shape)) if a not in drop]
        final = [shape[a] for a in keep]
        valid = [min(w, max(0, min(v.valid[a] - offset[a], shape[a]))) for a, w in enumerate(want)]
        c = cut(cells(v), np.ix_(*near)).map(np.copy)
        c.known &= ~outside
        out = v.same_places(v.idx[np.ix_(*near)].reshape(final), valid=[valid[a] for a in keep])
        out.snap = c.map(lambda m: m.reshape(final))
        return out

    def op_reshape(self, v, shape):
        return self.reshape(v, ints(shape))

    def op_transpose(self, v, axis1, axis2):
        if not self.at.in_kernel:
            return v.same_places(np.swapaxes(v.idx, axis1, axis2))
        return self.transpose(v, axis1, axis2)

    def op_transpose_view(self, v):
        return self.transpose_view(v)

    def op_set_validshape(self, v, valid_rows, valid_cols):
        return self.set_validshape(v, *ints([valid_rows, valid_cols]))

    def op_reinterpret_view(self, v, dtype):
        return self.reinterpret_view(v, dtype)

    # -------------------------------------------------------------------------------------------------- the rest

    def op_cast(self, v, target_type, mode="round"):
        if isinstance(v, View):
            self.note("cast to " + target_type + " " + str(mode), v)
        return self.cast(v, target_type, mode)

    def op_cmp(self, lhs, rhs, cmp_type=0):
        return self.cmp(lhs, rhs, cmp_type)

    op_cmps = op_cmp

    def op_sel(self, mask, lhs, rhs, tmp):
        return self.sel(mask, lhs, rhs, tmp)

    def op_sels(self, mask, src, tmp, scalar):
        return self.sels(mask, src, tmp, scalar)

    def op_lrelu(self, tile, slope):
        return self.lrelu(tile, slope)

    def op_prelu(self, tile, slope, tmp):
        return self.prelu(tile, slope, tmp)

    def op_expands(self, target, scalar):
        return self.expands(target, scalar)

    def op_fillpad(self, value, pad_value="zero"):
        return self.fillpad(value, pad_value)

    def op_fillpad_expand(self, value, shape, pad_value="zero"):
        return self.fillpad(value, pad_value, ints(shape))

    def op_fillpad_inplace(self, tile, pad_value="zero"):
        return self.fillpad_inplace(tile, pad_value)

    def op_matmul(self, *args, **kw):
        return self.matmul(*args, **kw)

    def op_matmul_acc(self, *args, **kw):
        return self.matmul_acc(*args, **kw)

    def op_gather(self, *args, dim=None, index=None, mask_pattern=None, output_dtype=None):
        if mask_pattern is not None:
            return self.op_gather_mask(args[0], mask_pattern, output_dtype)
        if args[0].kind == "tile":
            return self.gather_flat(*args)
        rest = [*args[1:], *([dim] if dim is not None else []), *([index] if index is not None else [])]
        return self.gather(args[0], *rest)

    def op_gather_mask(self, src, mask_pattern, output_dtype=None):
        out = self.gather_mask(src, MASKS[mask_pattern])
        return out if output_dtype is None else View.of(out.kind, bits_as(out.live(), output_dtype), output_dtype)

    def op_extract(self, src, index_row, index_col, shape, target_memory="Vec"):
        at = ints([index_row, index_col])
        self.inside(src, at, ints(shape))
        where = box(ints(shape), at)
        valid = [min(max(v - o, 0), n) for v, o, n in zip(src.valid, at, ints(shape), strict=True)]
        return View.of("tile", cut(cells(src), where).map(np.copy), src.dt, valid)

    def op_tri(self, diagonal, shape, valid_shape=None, dtype="INT32", upper=False):  # O-506
        i, j = np.indices(ints(shape))
        x = (j >= i + diagonal) if upper else (j <= i + diagonal)
        return View.of("tile", Cells.exact(x.astype(NUMPY[dtype])), dtype, valid_shape)

    def op_rems(self, lhs, rhs, tmp):
        c = cells(lhs)
        return View.of("tile", Cells(np.mod(c.x, int(rhs)), c.known, c.err), lhs.dt, lhs.valid)

    def op_matmul_bias(self, lhs, rhs, bias):
        start = cells(bias).map(lambda m: np.broadcast_to(m, (lhs.shape[0], m.shape[1])).copy())
        out, valid = self.product(lhs, rhs, False, False, start)
        return View.of("tile", out, bias.dt, valid)

    def op_batch_matmul(self, lhs, rhs):
        return self.matmul(lhs, rhs)

    def op_mgather(self, mem, idx, coalesce="row", gather_oob="undefined"):  # O-1912, O-1914
        mode = {1: "clamp", 2: "wrap", 3: "zero"}.get(gather_oob, gather_oob)
        rows = coalesce in ("row", 0)
        c = mem.live()
        if not rows:
            c = c.map(lambda m: m.reshape(-1))
        ci = cells(idx)
        if not cut(ci, box(idx.valid)).known.all():
            raise Unspecified("mgather: index is not fixed")
        i = ci.x.astype(np.uint32).astype(np.int64)
        bound = c.x.shape[0]
        near = i % bound if mode == "wrap" else np.minimum(i, bound - 1)
        ok = np.ones(i.shape, bool) if mode != "zero" else i < bound
        near, ok = (near[0], np.repeat(ok[0][:, None], c.x.shape[1], 1)) if rows else (near, ok)
        out = self.choose(Cells.exact(ok), cut(c, near), Cells.exact(np.zeros(ok.shape, c.x.dtype)))
        return View.of("tile", out, mem.dt, (idx.valid[1], mem.shape[1]) if rows else idx.valid)

    def op_sort32(self, src, idx):  # O-2001
        return self.sort32(src, idx)

    def op_mrgsort(self, src0, block_len):  # O-2002
        return self.merge_runs(src0, int(block_len))

    op_ci = op_arange

    def op_scatter(self, *args, mask_pattern=None, dst=None):
        if mask_pattern is not None:  # O-1921: a new value
            return self.op_scatter_mask(args[0], dst, mask_pattern)
        return self.scatter_flat(*args) if args[0].kind == "tile" else self.scatter(*args)

    def op_scatter_update(self, input, dim, index, src):
        return self.scatter_update(input, dim, index, src)

    # ------------------------------------------------------------------------------------------------------- arrays

    def op_array_create(self, extent, dtype):
        zero = False if dtype == "BOOL" else 0
        return [Scalar(zero, dtype) for _ in range(extent)]

    def op_get_element(self, array, index):
        i = ints([index])[0]
        if not 0 <= i < len(array):
            raise Illegal("array index")
        return array[i]

    def op_update_element(self, array, index, value):
        i = ints([index])[0]
        if not 0 <= i < len(array):
            raise Illegal("array index")
        out = list(array)
        out[i] = cast_scalar(value, array[0].dt)
        return out
