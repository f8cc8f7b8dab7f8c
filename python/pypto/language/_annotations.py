# SPDX-License-Identifier: Apache-2.0
"""Annotation types. Python evaluates them when a function is defined; the front end reads them from the source, so the
objects here only remember what was written."""

from pypto import _core, _enums
from pypto._checks import listed, shown
from pypto._core import DataType
from pypto._errors import ParserTypeError, caller_span

DynVar = _core.DynVar


def dynamic(name):
    """Make a dynamic dimension symbol; ``name`` must be an identifier (01 L-29)."""
    return DynVar(name)


def _text(value):
    if isinstance(value, DataType):
        return f"pl.{value.member}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_text(v) for v in value) + "]"
    return repr(value)


# Symbols in the text of an annotation: bare names, neither attributes nor keywords nor calls.
_SYMBOL = r"(?<![\w.\"'])(?!True\b|False\b|None\b|pl\b|pld\b)([A-Za-z_]\w*)(?![\w.(=\"'])"


class _Annotation:
    """An annotation as written."""

    __slots__ = ()

    @property
    def __pypto_annotation__(self):
        """Text that means this annotation in any scope; for names bound to one (``Vec = pl.Tensor[[64], pl.FP32]``)."""
        import re

        text = re.sub(_SYMBOL, r'pl.dynamic("\1")', repr(self))
        return re.sub(r"(?<![\w.])(pld?)\.", r"__pypto_\1__.", text)

    def __or__(self, other):
        return self

    __ror__ = __or__


class TensorAnnotation(_Annotation):
    """``pl.Tensor[shape, dtype, ...]``."""

    __slots__ = ("cls", "dtype", "extras", "shape")

    def __init__(self, cls, items):
        if not isinstance(items, tuple):
            items = (items,)
        self.cls = cls
        self.shape = items[0] if items else None
        self.dtype = items[1] if len(items) > 1 else None
        self.extras = items[2:]

    def __repr__(self):
        items = [self.shape, self.dtype, *self.extras]
        return f"{self.cls._path}[{', '.join(_text(i) for i in items)}]"


class _Shaped:
    """Subscripted, or called with the same items."""

    def __new__(cls, shape, dtype=None, *extras):
        return TensorAnnotation(cls, (shape, dtype, *extras))

    def __class_getitem__(cls, items):
        return TensorAnnotation(cls, items)


class Tensor(_Shaped):
    """A tensor in global memory: ``pl.Tensor[[rows, cols], pl.FP32]``, or bare in a JIT signature."""

    _path = "pl.Tensor"


class DistributedTensor(Tensor):
    """A tensor bound to window memory: ``pld.DistributedTensor[[rows, cols], pl.FP32]``."""

    _path = "pld.DistributedTensor"


class Tile(_Shaped):
    """A tile in an on-chip memory: ``pl.Tile[[rows, cols], pl.FP32, pl.Mem.Vec]``."""

    _path = "pl.Tile"


class ScalarAnnotation(_Annotation):
    """``pl.Scalar[dtype]``."""

    __slots__ = ("dtype",)

    def __init__(self, dtype):
        self.dtype = dtype

    def __repr__(self):
        return f"pl.Scalar[{_text(self.dtype)}]"

    def __eq__(self, other):
        return isinstance(other, ScalarAnnotation) and other.dtype == self.dtype

    def __hash__(self):
        return hash((ScalarAnnotation, self.dtype))


class Scalar:
    """A scalar: ``pl.Scalar[pl.INT32]``."""

    _path = "pl.Scalar"

    def __class_getitem__(cls, dtype):
        return ScalarAnnotation(dtype)


class OtherAnnotation(_Annotation):
    """``pl.Array[...]``, ``pl.Tuple[...]``."""

    __slots__ = ("items", "path")

    def __init__(self, path, items):
        self.path = path
        self.items = items

    def __repr__(self):
        items = self.items if isinstance(self.items, tuple) else (self.items,)
        return f"{self.path}[{', '.join(_text(i) for i in items)}]"


class Array:
    """A small array of scalars: ``pl.Array[4, pl.TASK_ID]``."""

    def __class_getitem__(cls, items):
        return OtherAnnotation("pl.Array", items)


class Tuple:
    """Several results: ``pl.Tuple[T1, T2]``."""

    def __new__(cls, items):
        return OtherAnnotation("pl.Tuple", tuple(listed("pl.Tuple(...)", items, "types")))

    def __class_getitem__(cls, items):
        return OtherAnnotation("pl.Tuple", items)


class DirectionAnnotation(_Annotation):
    """``pl.Out[...]`` or ``pl.InOut[...]``."""

    __slots__ = ("direction", "inner")

    def __init__(self, direction, inner):
        self.direction = direction
        self.inner = inner

    def __repr__(self):
        return f"pl.{self.direction}[{self.inner!r}]"


class Out:
    """A parameter that the function writes: ``pl.Out[pl.Tensor[...]]``."""

    def __class_getitem__(cls, inner):
        return DirectionAnnotation("Out", inner)


class InOut:
    """A parameter that the function reads and writes: ``pl.InOut[pl.Tensor[...]]``."""

    def __class_getitem__(cls, inner):
        return DirectionAnnotation("InOut", inner)


class PrefetchAsyncContext:
    """Handle of an asynchronous prefetch context."""


class AsyncEvent:
    """Handle of an asynchronous event."""


class AsyncSession:
    """Handle of an asynchronous session."""


class Ptr:
    """Handle of an allocation."""


class MemRefType:
    """Handle type of a declared allocation."""


class CommCtx:
    """Handle of a communication context: ``pld.CommCtx``."""


class IntLike:
    """An integer or an integer scalar of the language; for type checkers."""


TaskId = ScalarAnnotation(DataType.TASK_ID)


class _Runtime(_core.RuntimeMarker):
    """Leaves a scalar parameter of a JIT function to run time: ``k.compile(n=pl.RUNTIME)``."""

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return "RUNTIME"


def _refuse(self, *args):
    raise TypeError("pl.RUNTIME is a compile-time marker for a scalar argument and cannot be used in an expression")


for _name in (
    "add",
    "radd",
    "sub",
    "rsub",
    "mul",
    "rmul",
    "truediv",
    "rtruediv",
    "floordiv",
    "rfloordiv",
    "mod",
    "rmod",
    "neg",
    "lt",
    "le",
    "gt",
    "ge",
    "bool",
    "int",
    "float",
    "index",
):
    setattr(_Runtime, f"__{_name}__", _refuse)

RUNTIME = _Runtime()


class _View:
    """Base of the view objects: compared by value, printed as written."""

    __slots__ = ()

    def _fields(self):
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other):
        return type(other) is type(self) and other._fields() == self._fields()

    def __hash__(self):
        return hash((type(self), repr(self)))

    def __repr__(self):
        given = ", ".join(
            f"{name}={_text(getattr(self, name))}" for name in self.__slots__ if getattr(self, name) is not None
        )
        return f"pl.{type(self).__name__}({given})"


def _only_keywords(name, args, unknown):
    if args:
        raise ParserTypeError(f"pl.{name} takes keyword arguments only, got {len(args)} positional", caller_span())
    if unknown:
        raise ParserTypeError(f"Unknown {name} keyword argument '{next(iter(unknown))}'", caller_span())


def _extents(view, name, value):
    """The entries of a shape, a stride or an offset, none of which may be something else than an extent."""
    if value is None:
        return None
    if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
        raise ParserTypeError(f"pl.{view}: {name}= must be a list of extents, got {shown(value)}", caller_span())
    entries = list(value)
    for i, entry in enumerate(entries):
        if entry is None or isinstance(entry, (bool, float, complex, str, bytes, list, tuple, dict)):
            raise ParserTypeError(
                f"pl.{view}: entry {i} of {name}= must be an int, a dynamic dimension or an integer scalar, "
                f"got {shown(entry)}",
                caller_span(),
            )
    return entries


def _member(view, name, value, enum):
    """A member of the enum, or nothing."""
    if value is not None and not isinstance(value, enum):
        raise ParserTypeError(
            f"pl.{view}: {name}= must be a pl.{enum.__name__} member, got {shown(value)}", caller_span()
        )
    return value


class TensorView(_View):
    """Strides, valid shape, layout and padding of a tensor annotation (01 L-36)."""

    __slots__ = ("layout", "pad", "stride", "valid_shape")

    def __init__(self, *args, valid_shape=None, stride=None, layout=None, pad=None, **unknown):
        _only_keywords("TensorView", args, unknown)
        if layout is None and (valid_shape is not None or stride is not None or pad is not None):
            raise ParserTypeError("pl.TensorView needs layout= when another field is given", caller_span())
        self.valid_shape = _extents("TensorView", "valid_shape", valid_shape)
        self.stride = _extents("TensorView", "stride", stride)
        self.layout = _member("TensorView", "layout", layout, _enums.TensorLayout)  # pyright: ignore
        self.pad = _member("TensorView", "pad", pad, _enums.PadValue)  # pyright: ignore


class TileView(_View):
    """Layout and valid shape of a tile annotation (01 L-37)."""

    __slots__ = ("blayout", "compact", "fractal", "pad", "slayout", "start_offset", "stride", "valid_shape")

    def __init__(
        self,
        *args,
        valid_shape=None,
        stride=None,
        start_offset=None,
        blayout=None,
        slayout=None,
        fractal=None,
        pad=None,
        compact=None,
        **unknown,
    ):
        _only_keywords("TileView", args, unknown)
        self.valid_shape = _extents("TileView", "valid_shape", valid_shape)
        self.stride = _extents("TileView", "stride", stride)
        single = start_offset is not None and not hasattr(start_offset, "__iter__")
        self.start_offset = _extents("TileView", "start_offset", [start_offset] if single else start_offset)
        self.blayout = _member("TileView", "blayout", blayout, _enums.TileLayout)  # pyright: ignore
        self.slayout = _member("TileView", "slayout", slayout, _enums.TileLayout)  # pyright: ignore
        if fractal is not None and (isinstance(fractal, bool) or fractal not in (32, 512, 1024)):
            raise ParserTypeError(f"pl.TileView: fractal= must be 32, 512 or 1024, got {shown(fractal)}", caller_span())
        self.fractal = fractal
        self.pad = _member("TileView", "pad", pad, _enums.PadValue)  # pyright: ignore
        self.compact = _member("TileView", "compact", compact, _enums.CompactMode)  # pyright: ignore


class MemRef:
    """A declared allocation that several tiles may share (01 L-39)."""

    __slots__ = ("base", "byte_offset", "name", "size", "slot", "slots", "space")

    def __init__(self, *args, slots=1, **unknown):
        if unknown:
            raise ParserTypeError(f"Unknown MemRef keyword argument '{next(iter(unknown))}'", caller_span())
        if isinstance(slots, bool) or not isinstance(slots, int) or slots <= 0:
            raise ParserTypeError(f"pl.MemRef: slots must be a positive int literal, got {slots!r}", caller_span())
        self.name = self.base = self.byte_offset = self.size = self.slot = self.space = None
        self.slots = slots
        if len(args) == 1:
            self.name = args[0] if isinstance(args[0], str) else None
            self.base = args[0]
        elif len(args) == 3:
            self.base, self.byte_offset, self.size = args
        elif len(args) == 4:
            self.space, self.base, self.byte_offset, self.size = args
        elif args:
            raise ParserTypeError(
                f"pl.MemRef takes a name, or (base, byte_offset, size), got {len(args)} arguments", caller_span()
            )
        if self.name is None and self.base is not None:
            self.name = getattr(self.base, "name", None) or (
                self.base if isinstance(self.base, str) else str(self.base)
            )

    def __getitem__(self, slot):
        if self.slots == 1:
            raise ParserTypeError(
                "a single-slot allocation cannot be subscripted; declare it with pl.MemRef(slots=N)", caller_span()
            )
        if isinstance(slot, int) and not 0 <= slot < self.slots:
            raise ParserTypeError(
                f"Slot index {slot} is out of range: the allocation has {self.slots} slots", caller_span()
            )
        out = MemRef(slots=self.slots)
        for field in ("name", "base", "byte_offset", "size", "space"):
            setattr(out, field, getattr(self, field))
        out.slot = slot
        return out

    def __repr__(self):
        parts = [] if self.name is None else [repr(self.name)]
        if self.slots != 1:
            parts.append(f"slots={self.slots}")
        return f"pl.MemRef({', '.join(parts)})" + ("" if self.slot is None else f"[{self.slot!r}]")


_core.register_value_classes(TensorView, TileView, MemRef)

EXPORTS = {
    "Tensor": Tensor,
    "Tile": Tile,
    "Scalar": Scalar,
    "Array": Array,
    "Tuple": Tuple,
    "Out": Out,
    "InOut": InOut,
    "DynVar": DynVar,
    "dynamic": dynamic,
    "RUNTIME": RUNTIME,
    "IntLike": IntLike,
    "MemRef": MemRef,
    "MemRefType": MemRefType,
    "Ptr": Ptr,
    "PtrType": Ptr,
    "TensorView": TensorView,
    "TileView": TileView,
    "TaskId": TaskId,
    "PrefetchAsyncContext": PrefetchAsyncContext,
    "PrefetchAsyncContextType": PrefetchAsyncContext,
    "AsyncEvent": AsyncEvent,
    "AsyncEventType": AsyncEvent,
    "AsyncSession": AsyncSession,
    "AsyncSessionType": AsyncSession,
    "DataType": DataType,
}
