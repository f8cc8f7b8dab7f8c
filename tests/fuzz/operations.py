# SPDX-License-Identifier: Apache-2.0
"""Operations of chapter 02 on the values of the reference interpreter."""

from __future__ import annotations

import arithmetic as ar
import numpy as np
from values import BITS, NUMPY, Cells, Illegal, Scalar, Unspecified, View, is_float, limits, narrow, prom, wrap

Number = (int, float, bool)
STRIDES = {1: (0, 2), 2: (1, 2), 3: (0, 4), 4: (1, 4), 5: (2, 4), 6: (3, 4), 7: (0, 1)}  # O-1904


def cells(v: View) -> Cells:
    return v.acc if v.acc is not None else v.value()


def cut(c: Cells, sel) -> Cells:
    return c.map(lambda m: m[sel])


def box(extents, offsets=None) -> tuple[slice, ...]:
    offsets = [0] * len(extents) if offsets is None else offsets
    return tuple(slice(o, o + n) for o, n in zip(offsets, extents, strict=True))


def operand(v, beside: str) -> tuple[Cells, str]:
    """A scalar operand as cells: literals take the dtype beside them (O-120), typed scalars keep theirs (O-121)."""
    if isinstance(v, Scalar):
        known = np.array(v.known)
        return Cells(np.array(v.value, NUMPY[v.dt]), known, np.array(v.err)), v.dt
    if isinstance(v, float) and not is_float(beside):
        return Cells.exact(np.array(v, np.float32)), "FP32"
    if is_float(beside):
        return Cells.exact(narrow(np.array(float(v)), beside).reshape(())), beside
    return Cells.exact(np.array(wrap(int(v), beside), NUMPY[beside])), beside


def broadcast(a: Cells, shape) -> Cells:
    return a.map(lambda m: np.broadcast_to(m, shape))


def first_valid(v: View, shape) -> tuple[int, ...]:
    lead = len(shape) - len(v.shape)
    out = list(shape[:lead])
    for axis, n in enumerate(v.shape):
        target = shape[lead + axis]
        out.append(min(v.valid[axis], 1) * target if n == 1 and target != 1 else v.valid[axis])
    return tuple(out)


def bits_as(c: Cells, dt: str) -> Cells:
    """The same bits as cells of another dtype of that width."""
    return Cells(np.ascontiguousarray(c.x).view(NUMPY[dt]), c.known, np.zeros(c.x.shape))


class Operations:
    """One method per operation, with the flat parameter names."""

    def __init__(self) -> None:
        self.count: dict[tuple[str, str, str], int] = {}

    def note(self, name: str, v, extra: str = "") -> None:
        kind = v.kind if isinstance(v, View) else "scalar"
        dt = (v.dt if isinstance(v, View | Scalar) else "literal") + extra
        key = (name, kind, dt)
        self.count[key] = self.count.get(key, 0) + 1

    # ---------------------------------------------------------------------------------------------- element-wise

    def binary(self, op: str, a, b) -> View:
        if isinstance(b, View):
            dt = prom(a.dt, b.dt)
            ca, cb = ar.convert(cells(a), a.dt, dt), ar.convert(cells(b), b.dt, dt)
            if a.acc is not None:
                ca = a.acc
            if b.acc is not None:
                cb = b.acc
        else:
            cb, sdt = operand(b, a.dt)
            keep = a.kind == "tile" or op in ("sub", "and", "or", "xor", "shl", "shr")
            dt = a.dt if keep else prom(a.dt, sdt)
            ca, cb = cells(a) if a.acc is not None else ar.convert(cells(a), a.dt, dt), ar.convert(cb, sdt, dt)
        shape = np.broadcast_shapes(ca.x.shape, cb.x.shape)
        out = ar.binary(op, broadcast(ca, shape), broadcast(cb, shape), dt)
        return View.of(a.kind, out, dt, first_valid(a, shape))

    def unary(self, op: str, a: View) -> View:
        dt, c = a.dt, cells(a)
        if not is_float(dt) and op in ("exp", "sqrt", "rsqrt", "recip"):
            c, dt = ar.cast(c, dt, "FP32"), "FP32"
        return View.of(a.kind, ar.unary(op, c, dt), dt, a.valid)

    def addc(self, lhs, rhs, rhs2, op="add"):
        return self.binary(op, self.binary(op, lhs, rhs), rhs2)

    def lrelu(self, tile, slope):
        c = cells(tile)
        s = broadcast(operand(slope, tile.dt)[0], tile.shape)
        scaled = ar.binary("mul", c, ar.convert(s, operand(slope, tile.dt)[1], tile.dt), tile.dt)
        above = ar.compare(4, c, Cells.exact(np.zeros(tile.shape, NUMPY[tile.dt])))
        return View.of(tile.kind, self.choose(above, c, scaled), tile.dt, tile.valid)

    def prelu(self, tile, slope, tmp):
        c = cells(tile)
        scaled = ar.binary("mul", c, cells(slope), tile.dt)
        above = ar.compare(4, c, Cells.exact(np.zeros(tile.shape, NUMPY[tile.dt])))
        return View.of(tile.kind, self.choose(above, c, scaled), tile.dt, tile.valid)

    @staticmethod
    def choose(mask: Cells, a: Cells, b: Cells) -> Cells:
        m = mask.x.astype(bool)
        return Cells(np.where(m, a.x, b.x), mask.known & np.where(m, a.known, b.known), np.where(m, a.err, b.err))

    def part(self, op: str, a: View, b: View) -> View:  # O-1402
        dt = prom(a.dt, b.dt)
        ca, cb = ar.convert(cells(a), a.dt, dt), ar.convert(cells(b), b.dt, dt)
        ia, ib = a.inside(), b.inside()
        both = ar.binary(op, ca, cb, dt)
        out = self.choose(Cells.exact(ia & ib), both, self.choose(Cells.exact(ia), ca, cb))
        return View.of(a.kind, out, dt, a.valid)

    def cast(self, v, target_type, mode="round"):
        if isinstance(v, int):
            mode = ar.MODES[mode] if isinstance(mode, int) else mode
        mode = ar.MODES[mode] if isinstance(mode, int) else mode
        if isinstance(v, View):
            return View.of(v.kind, ar.cast(v.value(), v.dt, target_type, mode), target_type, v.valid)
        return cast_scalar(v, target_type)

    # ------------------------------------------------------------------------------------- compare and select

    def cmp(self, lhs, rhs, cmp_type=0):
        if isinstance(rhs, View):
            dt = prom(lhs.dt, rhs.dt)
            cb = ar.convert(cells(rhs), rhs.dt, dt)
        else:
            cb, sdt = operand(rhs, lhs.dt)
            dt = lhs.dt if lhs.kind == "tile" else prom(lhs.dt, sdt)
            cb = ar.convert(cb, sdt, dt)
        ca = ar.convert(cells(lhs), lhs.dt, dt)
        shape = np.broadcast_shapes(ca.x.shape, cb.x.shape)
        truth = ar.compare(cmp_type, broadcast(ca, shape), broadcast(cb, shape))
        if lhs.kind == "tensor":  # O-1301
            out = Cells(
                narrow(truth.x.astype(np.float64), dt) if is_float(dt) else truth.x.astype(NUMPY[dt]),
                truth.known,
                truth.err,
            )
            return View.of("tensor", out, dt)
        m, n = shape  # O-1302
        vm, vn = first_valid(lhs, shape)
        width = ((n + 7) // 8 + 31) // 32 * 32
        bits = np.zeros((m, width * 8), bool)
        bits[:, :vn] = truth.x[:, :vn]
        known = np.ones((m, width * 8), bool)
        known[:, :vn] = truth.known[:, :vn]
        packed = np.packbits(bits.reshape(m, width, 8), -1, bitorder="little")[..., 0]
        known = known.reshape(m, width, 8).all(-1)
        return View.of("tile", Cells(packed, known, np.zeros(packed.shape)), "UINT8", (vm, -(-vn // 8)))

    def mask_bits(self, mask: View, n: int) -> Cells:
        c = cells(mask)
        raw = np.ascontiguousarray(c.x).view(np.uint8)
        bits = np.unpackbits(raw, axis=1, bitorder="little")[:, :n].astype(bool)
        known = np.repeat(c.known, 8 * c.x.dtype.itemsize, 1)[:, :n]
        return Cells(bits, known, np.zeros(bits.shape))

    def sel(self, mask, lhs, rhs, tmp):
        dt = prom(lhs.dt, rhs.dt)
        ca, cb = ar.convert(cells(lhs), lhs.dt, dt), ar.convert(cells(rhs), rhs.dt, dt)
        shape = np.broadcast_shapes(ca.x.shape, cb.x.shape)
        bits = self.mask_bits(mask, shape[1])
        return View.of(
            "tile", self.choose(bits, broadcast(ca, shape), broadcast(cb, shape)), dt, first_valid(lhs, shape)
        )

    def sels(self, mask, src, tmp, scalar):
        cb, sdt = operand(scalar, src.dt)
        cb = broadcast(ar.convert(cb, sdt, src.dt), src.shape)
        bits = self.mask_bits(mask, src.shape[1])
        return View.of("tile", self.choose(bits, cells(src), cb), src.dt, src.valid)

    # ------------------------------------------------------------------------------------------- reduce, expand

    def reduce(self, op: str, a: View, tmp=None) -> View:
        row = op.startswith("row")
        axis = len(a.shape) - (1 if row else 2)
        if a.valid[axis] == 0:
            raise Illegal(f"{op}: the reduced axis is empty")  # O-1502
        sel = tuple(slice(0, a.valid[axis]) if i == axis else slice(None) for i in range(len(a.shape)))
        c = cut(cells(a), sel)
        kind = op[4:]
        if kind in ("max", "min"):
            out = ar.extremum(c, a.dt, axis, kind == "max")
        elif kind in ("argmax", "argmin"):
            out = ar.arg_extremum(c, a.dt, axis, kind == "argmax")
        elif row:
            out = ar.row_sum(c, a.dt, kind == "prod")
        elif kind == "sum":
            out = ar.col_sum(c, a.dt, tmp is not None)
        else:
            out = ar.col_prod(c, a.dt)
        valid = tuple(1 if i == axis else v for i, v in enumerate(a.valid))
        return View.of(a.kind, out, "INT32" if "arg" in kind else a.dt, valid)

    def expand(self, op: str, a: View, v: View) -> View:
        dt = prom(a.dt, v.dt)
        kind = op.split("_", 2)[2] if op.count("_") == 2 else ""
        cv = broadcast(ar.convert(cells(v), v.dt, dt), a.shape)
        if not kind:
            return View.of(a.kind, cv, dt, a.valid)
        ca = ar.convert(cells(a), a.dt, dt)
        out = ar.exact_expdif(ca, cv, dt) if kind == "expdif" else ar.binary(kind, ca, cv, dt)
        return View.of(a.kind, out, dt, a.valid)

    def expands(self, target, scalar):
        c, sdt = operand(scalar, target.dt)
        dt = target.dt if target.kind == "tensor" else prom(target.dt, sdt)
        return View.of(target.kind, broadcast(ar.convert(c, sdt, dt), target.shape), dt)

    # --------------------------------------------------------------------------------------------------- padding

    def pad_number(self, pad, dt: str):
        if pad in ("zero", 0):
            return 0
        big = pad in ("max", float("inf"))
        if is_float(dt):
            return np.inf if big else -np.inf
        return limits(dt)[1 if big else 0]

    def fillpad(self, value, pad_value="zero", shape=None):
        shape = value.shape if shape is None else tuple(shape)
        fill = self.pad_number(pad_value, value.dt)
        out = Cells.exact(np.full(shape, fill, np.float64 if is_float(value.dt) else object).astype(NUMPY[value.dt]))
        src = cut(value.value(), box(value.valid))
        for o, s in ((out.x, src.x), (out.known, src.known), (out.err, src.err)):
            o[box(value.valid)] = s
        return View.of(value.kind, out, value.dt)

    def fillpad_inplace(self, tile, pad_value="zero"):
        outside = ~tile.inside()
        fill = np.array(self.pad_number(pad_value, tile.dt)).astype(NUMPY[tile.dt])
        tile.box(outside, Cells.exact(np.full(int(outside.sum()), fill)))
        return tile.same_places(tile.idx)

    # -------------------------------------------------------------------------------------------------- products

    def matmul(self, lhs, rhs, out_dtype=None, a_trans=False, b_trans=False, c_matrix_nz=False):
        acc, valid = self.product(lhs, rhs, a_trans, b_trans, None)
        wide_dt = "INT32" if acc.x.dtype == np.int32 else "FP32"
        if lhs.kind == "tile":
            return View.of("tile", acc, wide_dt, valid)
        dt = out_dtype or prom(lhs.dt, rhs.dt)
        view = View.of("tensor", acc if dt == wide_dt else ar.cast(acc, wide_dt, dt), dt, valid)
        if dt != wide_dt:
            inside = view.inside()
            view.acc = Cells(acc.x, acc.known & inside, acc.err)
        return view

    def product(self, lhs, rhs, a_trans, b_trans, start):
        ca, cb = cells(lhs), cells(rhs)
        va, vb = lhs.valid, rhs.valid
        if a_trans:
            ca, va = ca.map(lambda m: np.swapaxes(m, -1, -2)), (*va[:-2], va[-1], va[-2])
        if b_trans:
            cb, vb = cb.map(lambda m: np.swapaxes(m, -1, -2)), (*vb[:-2], vb[-1], vb[-2])
        if vb[-2] < va[-1]:
            raise Illegal("matmul: right operand is not valid over the contraction")  # O-1804
        k = va[-1]
        ca, cb = ca.map(lambda m: m[..., :k]), cb.map(lambda m: m[..., :k, :])
        integer = not is_float(lhs.dt)
        lead = np.broadcast_shapes(ca.x.shape[:-2], cb.x.shape[:-2])
        m, n = ca.x.shape[-2], cb.x.shape[-1]
        ca, cb = broadcast(ca, (*lead, m, k)), broadcast(cb, (*lead, k, n))
        outs = []
        for i in np.ndindex(*lead):
            s = None if start is None else start.map(lambda q, i=i: q[i])
            outs.append(ar.matmul(ca.map(lambda q, i=i: q[i]), cb.map(lambda q, i=i: q[i]), integer, s))
        out = Cells(*(np.stack([getattr(o, f) for o in outs]).reshape(*lead, m, n) for f in ("x", "known", "err")))
        sides = [((1,) * (len(lead) + 2 - len(v.shape)) + v.shape, w) for v, w in ((lhs, va), (rhs, vb))]
        sides = [(s, (1,) * (len(s) - len(w)) + tuple(w)) for s, w in sides]
        batch = tuple(min(w[a] if s[a] == n else n for s, w in sides) for a, n in enumerate(lead))
        return out, (*batch, va[-2], vb[-1])

    def matmul_acc(self, acc, lhs, rhs, a_trans=False, b_trans=False, init_cond=None):
        first = init_cond is not None and bool(init_cond.value if isinstance(init_cond, Scalar) else init_cond)
        out, valid = self.product(lhs, rhs, a_trans, b_trans, None if first else acc.value())
        inside = View.of(acc.kind, out, acc.dt, valid).inside()
        if first:
            acc.box(box(valid), cut(out, box(valid)))
        else:
            acc.box(inside, cut(out, inside))
        return acc

    # ------------------------------------------------------------------------------------------ gather, scatter

    def gather(self, input, dim, index):  # O-1902
        axis = dim % len(input.shape)
        c, ci = cells(input), cells(index)
        if not ci.known.all():
            raise Unspecified("gather: index is not fixed")
        grid = list(np.indices(index.shape))
        n = input.shape[axis]
        ok = (ci.x >= 0) & (ci.x < n)
        grid[axis] = np.where(ok, ci.x, 0)
        out = c.map(lambda m: m[tuple(grid)])
        return View.of(
            input.kind,
            self.choose(Cells(ok, ci.known, ci.err), out, Cells.exact(np.zeros(index.shape, NUMPY[input.dt]))),
            input.dt,
        )

    def gather_flat(self, src, indices, tmp):  # O-1903
        c, ci = cells(src), cells(indices)
        if not ci.known.all():
            raise Unspecified("gather: index is not fixed")
        ok = (ci.x >= 0) & (ci.x < c.x.size)
        at = np.where(ok, ci.x, 0)
        out = c.map(lambda m: m.reshape(-1)[at])
        zero = Cells.exact(np.zeros(indices.shape, NUMPY[src.dt]))
        return View.of("tile", self.choose(Cells(ok, ci.known, ci.err), out, zero), src.dt)

    def gather_mask(self, src, pattern):  # O-1904
        start, step = STRIDES[pattern]
        return View.of(src.kind, cut(cells(src), (slice(None), slice(start, None, step))), src.dt)

    def scatter(self, input, dim, index, src):  # O-1920
        out = cells(input).map(np.copy)
        self.put_rows(out, cells(index), cells(src))
        return View.of("tensor", out, input.dt, input.valid)

    def put_rows(self, out: Cells, ci: Cells, cs: Cells) -> None:
        if not ci.known.all():
            raise Unspecified("scatter: index is not fixed")
        for b in range(ci.x.shape[0]):
            for k in range(ci.x.shape[1]):
                j = int(ci.x[b, k])
                if not 0 <= j < out.x.shape[1]:
                    raise Illegal("scatter: index outside the row")
                out.x[b, j], out.known[b, j], out.err[b, j] = cs.x[b, k], cs.known[b, k], cs.err[b, k]

    def scatter_flat(self, dst, src, indexes):  # O-1922
        ci, cs = cells(indexes), cells(src)
        places = dst.idx.reshape(-1)
        if not ci.known.all():
            raise Unspecified("scatter: index is not fixed")
        if ((ci.x < 0) | (ci.x >= places.size)).any():
            raise Illegal("scatter: index")
        for p in np.ndindex(*ci.x.shape):
            dst.storage.put(places[int(ci.x[p])].reshape(1), dst.dt, cs.map(lambda m, p=p: m[p].reshape(1)))
        return dst

    def scatter_update(self, input, dim, index, src):  # O-1923
        ci, cs = cells(index), cells(src)
        if not ci.known.all():
            raise Unspecified("scatter_update: index is not fixed")
        out = input if input.kind == "tile" else View.of("tensor", input.value().map(np.copy), input.dt, input.valid)
        for k, row in enumerate(ci.x.reshape(-1)):
            if not 0 <= row < input.shape[0]:
                raise Illegal("scatter_update: row")
            out.box((int(row),), cut(cs, (k,)))
        return out

    # --------------------------------------------------------------------------------------------------- sorting

    def sort32(self, src, idx):
        """Records of a value and its index, each 32 columns descending (FP32)."""
        cv, ci = cells(src), cells(idx)
        if not (cv.known.all() and ci.known.all()) or cv.err.any():
            raise Unspecified("sort32: an operand is not fixed")
        m, n = cv.x.shape
        out = np.zeros((m, 2 * n), np.float32)
        for i, at in np.ndindex(m, n // 32):
            v, w = (c.x[i, 32 * at : 32 * at + 32] for c in (cv, ci))
            order = np.lexsort((w.astype(np.uint32), -v))
            out[i, 64 * at : 64 * at + 64 : 2] = v[order]
            out[i, 64 * at + 1 : 64 * at + 64 : 2] = w.astype(np.uint32).view(np.float32)[order]
        return View.of(src.kind, Cells.exact(out), "FP32")

    def merge_runs(self, src, length):
        c = cells(src)
        if not c.known.all():
            raise Unspecified("mrgsort: an operand is not fixed")
        out = c.x.copy()
        for i in range(out.shape[0]):
            for at in range(0, out.shape[1], 4 * length):
                pairs = c.x[i, at : at + 4 * length].reshape(-1, 2)
                out[i, at : at + 4 * length] = pairs[np.argsort(-pairs[:, 0], kind="stable")].reshape(-1)
        return View.of(src.kind, Cells.exact(out), src.dt)

    # ------------------------------------------------------------------------------------------ shapes and views

    def reshape(self, v, shape):
        shape = tuple(int(n) for n in shape)
        valid = reshape_valid(v.shape, v.valid, shape)
        return self.address(v, v.same_places(v.idx.reshape(shape), valid=valid), lambda m: m.reshape(shape))

    def transpose(self, v, axis1, axis2):
        swap = lambda m: np.swapaxes(m, axis1, axis2)  # noqa: E731
        valid = list(v.valid)
        valid[axis1], valid[axis2] = valid[axis2], valid[axis1]
        return View.of(v.kind, v.value().map(swap), v.dt, valid)

    def transpose_view(self, v):
        return v.same_places(np.swapaxes(v.idx, -1, -2), valid=(*v.valid[:-2], v.valid[-1], v.valid[-2]))

    def set_validshape(self, v, rows, cols):
        for n, limit in ((rows, v.shape[0]), (cols, v.shape[1])):
            if not 0 <= n <= limit:
                raise Illegal("set_validshape: extent outside the shape")
        return self.address(v, v.same_places(v.idx, valid=(rows, cols)), lambda m: m)

    def address(self, base: View, out: View, shaped=None) -> View:
        """In a kernel an address of a tensor, as a value, is what it was when it was made (01 L-87)."""
        if base.kind == "tensor" and self.at.in_kernel:
            out.snap = (cells(base).map(shaped) if shaped else out.live()).map(np.copy)
        return out

    def reinterpret_view(self, v, dtype):
        a, b = BITS[v.dt] // 8, BITS[dtype] // 8
        if a >= b:
            idx = (v.idx[..., None] * (a // b) + np.arange(a // b)).reshape(*v.shape[:-1], -1)
            valid = (*v.valid[:-1], v.valid[-1] * (a // b))
        else:
            if (v.idx[..., :: b // a] % (b // a)).any() or v.valid[-1] % (b // a):
                raise Illegal("reinterpret_view: not aligned")
            idx = v.idx[..., :: b // a] // (b // a)
            valid = (*v.valid[:-1], v.valid[-1] // (b // a))
        return self.address(v, v.same_places(idx, dtype, valid))

    def concat(self, src0, src1):  # O-709
        if src0.valid[1] != src0.shape[1] or src0.valid[0] != src1.valid[0]:
            raise Illegal("concat: valid regions")
        a, b = cells(src0), cells(src1)
        out = Cells(*(np.concatenate([getattr(a, f), getattr(b, f)], 1) for f in ("x", "known", "err")))
        return View.of(src0.kind, out, src0.dt, (src0.valid[0], src0.shape[1] + src1.valid[1]))


def reshape_valid(shape, valid, new):
    """O-806."""
    if tuple(valid) == tuple(shape):
        return new
    if 0 in valid:
        return tuple(0 for _ in new)
    plain = [(n, v) for n, v in zip(shape, valid, strict=True) if n != 1]
    if [n for n, _ in plain] == [n for n in new if n != 1]:
        rest = iter([v for _, v in plain])
        return tuple(1 if n == 1 else next(rest) for n in new)
    lead = 0
    while lead < len(shape) and valid[lead] == 1:
        lead += 1
    if lead < len(shape) and tuple(valid[lead + 1 :]) != tuple(shape[lead + 1 :]):
        raise Illegal("reshape: valid cells are no prefix")
    count = int(np.prod(valid))
    out = []
    inner = int(np.prod(new))
    for n in new:
        inner //= n
        if count >= inner:
            if count % inner:
                raise Illegal("reshape: valid cells are no rectangle")
            out.append(count // inner)
            count = inner
        else:
            out.append(1)
    return tuple(out)


def cast_scalar(v, dt: str):
    """01 L-22."""
    s = (
        v
        if isinstance(v, Scalar)
        else Scalar(v, "FP32" if isinstance(v, float) else "BOOL" if isinstance(v, bool) else "INDEX")
    )
    if s.dt == dt:
        return s
    if dt == "BOOL":
        return Scalar(bool(s.value != 0), "BOOL", s.known)
    if s.dt == "BOOL":
        return Scalar(float(s.value) if is_float(dt) else int(s.value), dt, s.known)
    if is_float(s.dt) and not is_float(dt):
        c = ar.cast(Cells(np.array([s.value], NUMPY[s.dt]), np.array([s.known]), np.array([s.err])), s.dt, dt, "trunc")
        return Scalar(int(c.x[0]), dt, bool(c.known[0]))
    if is_float(dt):
        x = narrow(np.array(float(s.value) if is_float(s.dt) else s.value, np.float64), dt)
        return Scalar(float(x), dt, s.known, s.err + (float(ar.ulp(x, dt)) if s.err else 0.0))
    return Scalar(wrap(int(s.value), dt), dt, s.known)
