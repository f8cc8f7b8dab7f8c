# SPDX-License-Identifier: Apache-2.0
# ruff: noqa: B905  (older Python may run it; names come from the parts before it)
# pyright: reportUndefinedVariable=false, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
"""Operations of emitted torch programs. Copied into every emitted module after `_torch_values.py`."""

import contextlib
import math

import torch

from pypto.debug._torch_values import _block, _data, _ints, _is_value, _scratch, _Value  # noqa: F401

_DTYPES = {
    "BOOL": torch.bool,
    "INT8": torch.int8,
    "INT16": torch.int16,
    "INT32": torch.int32,
    "INT64": torch.int64,
    "INDEX": torch.int64,
    "UINT8": torch.uint8,
    "UINT16": getattr(torch, "uint16", torch.int32),
    "UINT32": getattr(torch, "uint32", torch.int64),
    "UINT64": getattr(torch, "uint64", torch.int64),
    "FP16": torch.float16,
    "FP32": torch.float32,
    "BF16": torch.bfloat16,
    "FP8E4M3FN": getattr(torch, "float8_e4m3fn", torch.float32),
    "FP8E5M2": getattr(torch, "float8_e5m2", torch.float32),
    "TASK_ID": torch.int64,
}


class _DType(int):
    """Stands for an element type in the emitted program."""


def _operands(*values):
    """Return torch operands; numbers that meet a tensor take its element type."""
    tensors = [v.data for v in values if _is_value(v)]
    out = []
    for v in values:
        if _is_value(v):
            out.append(v.data)
        elif isinstance(v, float) and not tensors[0].is_floating_point():
            out.append(torch.tensor(v, dtype=torch.float32))
        else:
            out.append(torch.tensor(v, dtype=tensors[0].dtype))
    return out


def _first(*values):
    return next(v for v in values if _is_value(v))


def _binary(function):
    def apply(lhs, rhs, *_, **__):
        if not _is_value(lhs) and not _is_value(rhs):
            return function(torch.tensor(lhs), torch.tensor(rhs)).item()
        a, b = _operands(lhs, rhs)
        if a.dim() and b.dim() and a.dtype != b.dtype:
            common = torch.promote_types(a.dtype, b.dtype)
            a, b = a.to(common), b.to(common)
        result = function(a, b)
        first = _first(lhs, rhs)
        if result.shape == first.data.shape:
            return first.like(result)
        second = rhs if _is_value(rhs) and rhs.data.shape == result.shape else None
        return second.like(result) if second is not None else _Value(result, None, first.tile)

    return apply


def _unary(function):
    def apply(x, *_, **__):
        if not _is_value(x):
            return function(torch.tensor(float(x))).item()
        return x.like(function(x.data))

    return apply


def _divide(a, b):
    if a.is_floating_point() or b.is_floating_point():
        return a / b
    return torch.div(a, b, rounding_mode="trunc")


def _reduce(axis, function):
    def apply(x, *_, **__):
        cells = x.cells()
        made = function(cells, axis)
        shape = list(x.shape)
        shape[axis] = 1
        out = torch.zeros(shape, dtype=made.dtype)
        out[tuple(slice(0, n) for n in made.shape)] = made
        valid = list(x.extents())
        valid[axis] = 1
        return _Value(out, valid, x.tile)

    return apply


def _extreme(pick):
    return lambda cells, axis: pick(cells, dim=axis, keepdim=True)


def _sum(cells, axis):
    wide = cells.float() if cells.is_floating_point() else cells
    return wide.sum(dim=axis, keepdim=True, dtype=wide.dtype).to(cells.dtype)


def _prod(cells, axis):
    wide = cells.float() if cells.is_floating_point() else cells
    return wide.prod(dim=axis, keepdim=True, dtype=wide.dtype).to(cells.dtype)


def _arg(pick):
    return lambda cells, axis: pick(cells.double(), dim=axis, keepdim=True).to(torch.int32)


def _windows(shape, offsets):
    return tuple(slice(o, o + n) for o, n in zip(offsets, shape))


def _window(x, offsets, shape, valid, tile):
    """Return a copy of a window; cells that lie outside or are not valid are zero."""
    offsets, shape = _ints(offsets), _ints(shape)
    if len(shape) > x.data.dim():
        shape = shape[-x.data.dim() :]
    if len(shape) < x.data.dim():
        shape = [1] * (x.data.dim() - len(shape)) + shape
    out = _scratch(shape, x.dtype)
    wanted = _ints(valid) if valid is not None else list(shape)
    wanted = [1] * (len(shape) - len(wanted)) + wanted
    have = [max(0, min(w, e - o, n)) for w, e, o, n in zip(wanted, x.extents(), offsets, shape)]
    out[tuple(slice(0, n) for n in have)] = x.data[_windows(have, offsets)]
    return out, (have if have != list(shape) else None)


def _two_d(x, rank):
    """Return a value of `rank` axes: leading axes are merged."""
    if x.data.dim() == rank:
        return x
    return _Value(x.data.reshape(-1, x.shape[-1]), None, x.tile)


def _matmul(a, b, a_trans=False, b_trans=False):
    x, y = a.data, b.data
    x = x.transpose(-1, -2) if a_trans else x
    y = y.transpose(-1, -2) if b_trans else y
    if x.is_floating_point():
        return torch.matmul(x.float(), y.float())
    return torch.matmul(x.to(torch.int64), y.to(torch.int64)).to(torch.int32)


_ROUNDING = {"rint": torch.round, "floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc}


def _half_away(x):
    return torch.where(x < 0, -torch.floor(-x + 0.5), torch.floor(x + 0.5))


def _cast(x, dtype, mode="round"):
    if not _is_value(x):
        if dtype.is_floating_point:
            return torch.tensor(float(x)).to(dtype).item()
        return int(x)
    source = x.data
    if source.is_floating_point() and not dtype.is_floating_point:
        rounded = _ROUNDING.get(mode, _half_away)(source.float())
        low, high = (0, 1) if dtype == torch.bool else (torch.iinfo(dtype).min, torch.iinfo(dtype).max)
        return x.like(rounded.double().clamp(low, high).to(dtype))
    return x.like(source.to(dtype))


def _pad_number(pad, dtype):
    """Return the number that a pad value stands for."""
    if isinstance(pad, (int, float)) and not isinstance(pad, _Member):
        if math.isinf(pad):
            pad = _Member("max" if pad > 0 else "min")
        else:
            return 0
    word = str(pad)
    if word == "zero":
        return 0
    if dtype.is_floating_point:
        return math.inf if word == "max" else -math.inf
    limits = torch.iinfo(dtype)
    return limits.max if word == "max" else limits.min


class _Member(str):
    """A member of an enum of the language, by name."""

    __slots__ = ()


class _Enum:
    """An enum of the language: any member by name."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _Member(name)


@contextlib.contextmanager
def _nothing(*_, **__):
    yield None


class _Pl:
    """The language module of the emitted program."""

    Level = Role = FunctionType = MemorySpace = Mem = PadValue = SplitMode = AtomicType = TensorLayout = TileLayout = (
        CompactMode
    ) = PipeType = ForKind = ScopeMode = _Enum()
    add, sub, mul, div = (staticmethod(_binary(f)) for f in (torch.add, torch.sub, torch.mul, _divide))
    maximum = staticmethod(_binary(torch.maximum))
    minimum = staticmethod(_binary(torch.minimum))
    fmod = fmods = staticmethod(_binary(torch.fmod))
    rem = rems = staticmethod(_binary(torch.remainder))
    adds, subs, muls, divs = add, sub, mul, div
    maximums, minimums = maximum, minimum
    and_ = ands = staticmethod(_binary(torch.bitwise_and))
    or_ = ors = staticmethod(_binary(torch.bitwise_or))
    xor = xors = staticmethod(_binary(torch.bitwise_xor))
    shl = shls = staticmethod(_binary(torch.bitwise_left_shift))
    shr = shrs = staticmethod(_binary(torch.bitwise_right_shift))
    neg, abs, exp, sqrt, sin, cos, log = (
        staticmethod(_unary(f)) for f in (torch.neg, torch.abs, torch.exp, torch.sqrt, torch.sin, torch.cos, torch.log)
    )
    recip = staticmethod(_unary(torch.reciprocal))
    rsqrt = staticmethod(_unary(torch.rsqrt))
    not_ = staticmethod(_unary(torch.bitwise_not))
    relu = staticmethod(_unary(torch.relu))
    row_sum, col_sum = staticmethod(_reduce(-1, _sum)), staticmethod(_reduce(-2, _sum))
    row_prod, col_prod = staticmethod(_reduce(-1, _prod)), staticmethod(_reduce(-2, _prod))
    row_max, col_max = (staticmethod(_reduce(a, _extreme(torch.amax))) for a in (-1, -2))
    row_min, col_min = (staticmethod(_reduce(a, _extreme(torch.amin))) for a in (-1, -2))
    row_argmax, col_argmax = (staticmethod(_reduce(a, _arg(torch.argmax))) for a in (-1, -2))
    row_argmin, col_argmin = (staticmethod(_reduce(a, _arg(torch.argmin))) for a in (-1, -2))
    row_expand_add = col_expand_add = add
    row_expand_sub = col_expand_sub = sub
    row_expand_mul = col_expand_mul = mul
    row_expand_div = col_expand_div = div
    row_expand_max = col_expand_max = maximum
    row_expand_min = col_expand_min = minimum
    row_expand_expdif = col_expand_expdif = staticmethod(_binary(lambda a, b: torch.exp(a - b)))
    at = cluster = scope = manual_scope = staticmethod(_nothing)

    # ------------------------------------------------------------------------------------- scalars, control

    @staticmethod
    def const(value, _dtype=None):
        return value

    @staticmethod
    def max(a, b):
        return a if a > b else b

    @staticmethod
    def min(a, b):
        return a if a < b else b

    @staticmethod
    def range(*bounds, **_):
        return range(*_ints(bounds))

    parallel = unroll = pipeline = range

    @staticmethod
    def spmd(count, **_):
        return _Spmd(int(count))

    @staticmethod
    def split_aiv(count, *_, **__):
        return _Lanes(int(count))

    @staticmethod
    def get_block_idx():
        return _block.index

    @staticmethod
    def get_block_num():
        return _block.count

    @staticmethod
    def get_subblock_idx():
        return _block.lane

    @staticmethod
    def no_dep(value):
        return value

    @staticmethod
    def _ignored(*_, **__):
        return None

    dump_tag = func_attr = static_print = static_assert = cond = _ignored
    tfree_to_aic = tfree_to_aiv = aic_initialize_pipe = aiv_initialize_pipe = _ignored
    reserve_buffer = import_peer_buffer = alloc = _ignored

    @staticmethod
    def yield_(*values):
        return values[0] if len(values) == 1 else values

    def __getattr__(self, name):
        if name in _DTYPES:
            return _DTYPES[name]
        if name in ("tensor", "tile", "system"):
            return self
        raise NotImplementedError(f"torch code has no form of pl.{name}")


class _Spmd:
    """Blocks of an spmd region, one after the other; also a context manager for the form without a variable."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        before = _block.index, _block.count
        try:
            for i in range(self.count):
                _block.index, _block.count = i, self.count
                yield i
        finally:
            _block.index, _block.count = before

    def __enter__(self):
        return None

    def __exit__(self, *_):
        return False


class _Lanes(_Spmd):
    """The vector lanes, one after the other."""

    def __iter__(self):
        before = _block.lane
        try:
            for i in range(self.count):
                _block.lane = i
                yield i
        finally:
            _block.lane = before


pl = _Pl()
