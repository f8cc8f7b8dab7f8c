# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: B905  (older Python may run it; names come from the parts before it)
# pyright: reportUndefinedVariable=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
"""Creation, movement, products and gathers of emitted torch programs. Copied in after `_torch_ops.py`."""

import torch

from pypto.debug._torch_ops import (  # noqa: F401
    _cast,
    _Enum,
    _matmul,
    _pad_number,
    _Pl,
    _two_d,
    _window,
    _windows,
    pl,
)
from pypto.debug._torch_values import _data, _ints, _is_value, _scratch, _Value


def _op(function):
    """Make a function an operation of the language."""
    setattr(_Pl, function.__name__, staticmethod(function))
    return function


@_op
def create_tensor(shape, dtype, *_, init_value=None, **__):
    out = _scratch(shape, dtype)
    return _Value(out if init_value is None else out.fill_(init_value))


@_op
def create_tile(shape, dtype, *_, **__):
    return _Value(_scratch(shape, dtype), None, True)


_Pl.create = _Pl.create_l1 = staticmethod(create_tile)


@_op
def full(shape, dtype, value):
    return _Value(_scratch(shape, dtype).fill_(value), None, True)


@_op
def arange(start, shape, dtype=torch.int32, descending=False):
    shape = _ints(shape)
    steps = torch.arange(shape[-1], dtype=torch.int64)
    row = start - steps if descending else start + steps
    return _Value(row.to(dtype).expand(shape).clone(), None, True)


_Pl.ci = staticmethod(arange)


@_op
def tri(diagonal, shape, valid_shape=None, dtype=torch.int32, upper=False):
    rows, cols = _ints(shape)
    r, c = torch.arange(rows)[:, None], torch.arange(cols)[None, :]
    mask = (c - r >= diagonal) if upper else (c - r <= diagonal)
    return _Value(mask.to(dtype), valid_shape, True)


@_op
def dim(x, axis):
    return x.shape[axis]


@_op
def read(x, index):
    index = index if isinstance(index, (list, tuple)) else [index]
    if len(index) == 1 and x.data.dim() > 1:
        return x.data.reshape(-1)[int(index[0])].item()
    return x.data[tuple(_ints(index))].item()


@_op
def write(x, index, value):
    index = index if isinstance(index, (list, tuple)) else [index]
    if len(index) == 1 and x.data.dim() > 1:
        x.data.view(-1)[int(index[0])] = value
    else:
        x.data[tuple(_ints(index))] = value
    return x


@_op
def load(x, offsets, shapes, valid_shape=None, *_, **__):
    data, valid = _window(x, offsets, shapes, valid_shape, True)
    return _Value(data.reshape(_ints(shapes)) if data.dim() != len(shapes) else data, valid, True)


@_op
def store(tile, offsets, target, shapes=None, *, atomic="None_", **_):
    cells = tile.cells() if shapes is None else tile.data[tuple(slice(0, n) for n in _ints(shapes))]
    offsets = _ints(offsets)
    if cells.dim() < target.data.dim():
        cells = cells.reshape([1] * (target.data.dim() - cells.dim()) + list(cells.shape))
    elif cells.dim() > target.data.dim():
        cells = cells.reshape(cells.shape[-target.data.dim() :])
    place = target.data[_windows(cells.shape, offsets)]
    place.copy_(place + cells.to(place.dtype) if str(atomic) == "Add" else cells.to(place.dtype))
    return target


@_op
def assemble(target, source, offset, *, atomic="None_", **_):
    if target.tile:
        target = target.like(target.data.clone())
        source = _Value(source.data, None, True)
    return store(source, offset, target, atomic=atomic)


@_op
def move(x, *_, **__):
    return _Value(x.data.clone(), x.valid, True)


@_op
def concat(a, b):
    return _Value(torch.cat([a.cells(), b.cells()], dim=-1), None, a.tile)


def _slice(x, shape, offset, valid_shape=None, drop_dims=None, **_):
    shape, offset = _ints(shape), _ints(offset)
    take = tuple(slice(o, min(o + n, e)) for o, n, e in zip(offset, shape, x.shape))
    data = x.data[take]
    have = [max(0, min(n, e - o)) for n, e, o in zip(shape, x.extents(), offset)]
    if valid_shape is not None:
        have = [min(a, b) for a, b in zip(have, _ints(valid_shape))]
    if list(data.shape) != shape:
        whole = torch.zeros(shape, dtype=x.dtype)
        whole[tuple(slice(0, n) for n in data.shape)] = data
        data = whole
    valid = have if have != shape else None
    if drop_dims:
        for axis in sorted(_ints(drop_dims), reverse=True):
            data = data.squeeze(axis)
            if valid is not None:
                del valid[axis]
    return _Value(data, valid, x.tile)


_Pl.slice = staticmethod(_slice)


@_op
def extract(x, row, col, shape, **_):
    rows, cols = _ints(shape)
    return _Value(x.data[int(row) : int(row) + rows, int(col) : int(col) + cols].clone(), None, True)


@_op
def reshape(x, shape):
    shape = _ints(shape)
    valid = None
    if x.valid is not None and x.data.dim() == len(shape) == 2 and x.extents()[1] == x.shape[1]:
        valid = [x.extents()[0] * x.shape[1] // shape[1], shape[1]]
    return _Value(x.data.reshape(shape), valid, x.tile)


@_op
def transpose(x, axis1, axis2, *_, **__):
    valid = None
    if x.valid is not None:
        valid = list(x.valid)
        valid[axis1], valid[axis2] = valid[axis2], valid[axis1]
    return _Value(x.data.transpose(int(axis1), int(axis2)).contiguous(), valid, x.tile)


@_op
def transpose_view(x):
    return _Value(x.data.transpose(-1, -2), None, True)


@_op
def reinterpret_view(x, dtype, *, shape=None):
    data = x.data.contiguous().view(dtype)
    return _Value(data if shape is None else data.reshape(_ints(shape)), None, x.tile)


@_op
def set_validshape(x, rows, cols):
    return _Value(x.data, [int(rows), int(cols)], x.tile)


@_op
def view(x, shape=None, valid_shape=None, **_):
    return _Value(x.data if shape is None else x.data.reshape(_ints(shape)), valid_shape, x.tile)


@_op
def cast(x, target_type, mode="round"):
    return _cast(x, target_type, mode)


@_op
def cmp(a, b, cmp_type=0):
    names = (torch.eq, torch.ne, torch.lt, torch.le, torch.gt, torch.ge)
    x, y = _data(a), _data(b)
    mask = names[int(cmp_type)](x, y)
    first = a if _is_value(a) else b
    if not first.tile:
        return first.like(mask.to(first.dtype))
    return _Value(mask, first.valid, True)


_Pl.cmps = staticmethod(cmp)


@_op
def sel(mask, a, b, *_, **__):
    return a.like(torch.where(mask.data.bool(), a.data, b.data))


@_op
def sels(mask, x, _tmp, scalar):
    return x.like(torch.where(mask.data.bool(), x.data, torch.tensor(scalar, dtype=x.dtype)))


@_op
def lrelu(x, slope):
    return x.like(torch.where(x.data > 0, x.data, x.data * slope))


@_op
def prelu(x, slope, *_):
    return x.like(torch.where(x.data > 0, x.data, x.data * slope.data))


@_op
def addc(a, b, c):
    return pl.add(pl.add(a, b), c)


@_op
def subc(a, b, c):
    return pl.sub(pl.sub(a, b), c)


_Pl.addsc, _Pl.subsc = staticmethod(addc), staticmethod(subc)


def _part(function):
    def apply(a, b):
        out = a.data.clone()
        ea, eb = a.extents(), b.extents()
        both = tuple(slice(0, min(m, n)) for m, n in zip(ea, eb))
        out[tuple(slice(0, n) for n in eb)] = b.cells()
        out[tuple(slice(0, n) for n in ea)] = a.cells()
        out[both] = function(a.data[both], b.data[both])
        return _Value(out, [max(m, n) for m, n in zip(ea, eb)], a.tile)

    return apply


for _name, _f in (("add", torch.add), ("mul", torch.mul), ("max", torch.maximum), ("min", torch.minimum)):
    setattr(_Pl, f"part_{_name}", staticmethod(_part(_f)))


@_op
def row_expand(target, v):
    return target.like(v.data.expand(target.shape).clone())


_Pl.col_expand = staticmethod(row_expand)


@_op
def expands(target, scalar):
    return _Value(torch.full(target.shape, scalar, dtype=target.dtype), None, target.tile)


@_op
def expand_clone(source, target):
    target.data.copy_(source.data.expand(target.shape))
    return target


@_op
def fillpad(x, pad_value="zero", **_):
    out = torch.full(x.shape, _pad_number(pad_value, x.dtype), dtype=x.dtype)
    out[tuple(slice(0, n) for n in x.extents())] = x.cells()
    return _Value(out, None, x.tile)


@_op
def fillpad_inplace(x, pad_value="zero"):
    x.data.copy_(fillpad(x, pad_value).data)
    return _Value(x.data, None, x.tile)


@_op
def fillpad_expand(x, shape, pad_value="zero"):
    out = torch.full(_ints(shape), _pad_number(pad_value, x.dtype), dtype=x.dtype)
    out[tuple(slice(0, n) for n in x.extents())] = x.cells()
    return _Value(out, None, x.tile)


@_op
def matmul(a, b, out_dtype=None, a_trans=False, b_trans=False, **_):
    made = _matmul(a, b, a_trans, b_trans)
    if out_dtype is not None:
        made = made.to(out_dtype)
    elif not a.tile and a.data.is_floating_point():
        made = made.to(a.dtype)
    return _Value(made, None, a.tile)


@_op
def matmul_acc(acc, a, b, a_trans=False, b_trans=False, init_cond=None):
    made = _matmul(a, b, a_trans, b_trans).to(acc.dtype).reshape(acc.shape)
    acc.data.copy_(made if init_cond else acc.data + made)
    return acc


@_op
def matmul_bias(a, b, bias):
    return _Value(_matmul(a, b) + bias.data, None, True)


_Pl.batch_matmul, _Pl.gemv = staticmethod(matmul), staticmethod(matmul)
_Pl.batch_matmul_acc, _Pl.gemv_acc = staticmethod(matmul_acc), staticmethod(matmul_acc)
_Pl.gemv_bias = staticmethod(matmul_bias)


@_op
def gather(x, index=None, dim=-1, **_):
    if not _is_value(index):
        raise NotImplementedError("torch code has no form of this gather")
    return _Value(torch.gather(x.data, int(dim), index.data.long()), None, x.tile)


@_op
def gather_row(x, index, *_, **__):
    return _Value(x.data[index.data.reshape(-1).long()].clone(), None, True)


@_op
def scatter_update(x, *args, **_):
    index, source = [a for a in args if _is_value(a)][:2]
    out = x.data if not x.tile else x.data.clone()
    flat = out.reshape(-1, out.shape[-1])
    flat[index.data.reshape(-1).long()] = source.data.reshape(-1, out.shape[-1])
    return x.like(out)


@_op
def aiv_shard(x, *_, **__):
    return x


@_op
def aic_gather(x, *_, **__):
    return x
