# SPDX-License-Identifier: Apache-2.0
"""The language: ``import pypto.language as pl``.

Everything a kernel program names is here. Operations come from the core's table; constructs and annotation types are
defined beside this file.
"""

import sys
from types import ModuleType

from pypto import _core, _enums
from pypto.language import _annotations, _constructs, _functions, _jit, _text, parser

_GROUPS = {"tensor", "tile", "system", "array", "prefetch"}


def _namespace(name, path, doc, members):
    """A module made of table entries, importable as ``pypto.language.<name>``."""
    module = ModuleType(f"{__name__}.{name}", doc)
    module.__dict__.update(members)
    module.__all__ = sorted(members)  # pyright: ignore
    module.__path__ = []
    module.__getattr__ = _missing(path)
    sys.modules[module.__name__] = module
    _core.register_construct(module, path)
    return module


def _missing(path):
    def __getattr__(name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise _unknown_name(path, name)

    return __getattr__


def _place_in_annotation(span):
    """What stands in a tensor or tile annotation at a position: its element type, or after that its layout."""
    import linecache

    before = linecache.getline(span["filename"], span["line"])[: span["column"] - 1] if span else ""
    tensor, tile = before.rfind("Tensor["), before.rfind("Tile[")
    start = tensor if tensor > tile else tile
    depth = commas = 0
    for c in before[start:] if start >= 0 else "":
        depth += (c in "[(") - (c in "])")
        commas += c == "," and depth == 1
    return "layout" if commas > 1 else "dtype"


def _unknown_name(path, name):
    from pypto import _errors

    class UnknownName(_errors.ParserTypeError, AttributeError):
        pass

    UnknownName.__name__ = UnknownName.__qualname__ = "AttributeError"
    module = sys.modules.get(path.replace("pld", "pypto.language.distributed").replace("pl.", "pypto.language."), None)
    names = list(getattr(sys.modules[__name__] if path == "pl" else module, "__all__", ()))
    near = _core.nearest(name, names)
    # Python evaluates annotations by itself; what such a name was meant for shows in its spelling.
    kind = ""
    span = _errors.caller_span()
    if path == "pl" and name.isupper():
        kind = f"; Unknown {_place_in_annotation(span)}: {name}"
    elif path in ("pl", "pld") and near in _annotations.EXPORTS and near[:1].isupper():
        kind = f"; Unsupported type annotation: {path}.{name}"
    hint = f"did you mean {path}.{near}?" if near else None
    return UnknownName(f"module '{path}' has no attribute '{name}'{kind}", span, hint)


_ops = _constructs.operations()
_shared = dict(_ops["pl"])
_shared.update(_annotations.EXPORTS)
_shared.update(_constructs.EXPORTS)
_shared.update(_functions.EXPORTS)
_shared.update(_jit.EXPORTS)
_shared.update(_text.EXPORTS)
for _name, _object in _shared.items():
    if _name in ("DynVar", "DataType") or not isinstance(_object, _constructs.Operation):
        if not isinstance(_object, ModuleType):
            _core.register_construct(_object, f"pl.{_name}")
# The shorter of two names for one object is the canonical one.
for _name in ("Ptr", "PrefetchAsyncContext", "AsyncEvent", "AsyncSession"):
    _core.register_construct(_shared[_name], f"pl.{_name}")

for _name in _core.DTYPE_NAMES:
    _shared[_name] = getattr(_core.DataType, _name)
for _name in (
    "FunctionType",
    "ForKind",
    "AtomicType",
    "Level",
    "Role",
    "SplitMode",
    "MemorySpace",
    "PipeType",
    "TensorLayout",
    "TileLayout",
    "PadValue",
    "CompactMode",
    "ScopeMode",
):
    _shared[_name] = getattr(_enums, _name)
_shared["Mem"] = _enums.MemorySpace  # pyright: ignore
for _name in ("ND", "DN", "NZ", "MX_A_ZZ", "MX_B_NN"):
    _shared[_name] = getattr(_enums.TensorLayout, _name)  # pyright: ignore
_shared["AUTO"] = -1

_ops["pl.system"]["task_dummy"] = _constructs.task_dummy
_ops["pl.system"]["task_invalid"] = _constructs.task_invalid
_core.register_construct(_constructs.task_dummy, "pl.system.task_dummy")
_core.register_construct(_constructs.task_invalid, "pl.system.task_invalid")
_ops["pl.tensor"]["no_dep"] = _constructs.no_dep
_ops["pl.tensor"]["dump_tag"] = _constructs.dump_tag
_ops["pl.system"]["AUTO"] = -1
_ops["pl.tile"]["MaskPattern"] = _enums.MaskPattern  # pyright: ignore
_DOCS = {
    "tensor": "Operations on tensors.",
    "tile": "Operations on tiles.",
    "system": "Barriers, channels, tasks and other system operations.",
    "array": "Small arrays of scalars.",
    "prefetch": "Asynchronous prefetch.",
}
for _name, _doc in _DOCS.items():
    _shared[_name] = _namespace(_name, f"pl.{_name}", _doc, _ops.get(f"pl.{_name}", {}))

_optimizations = {}
for _name in ("split", "cross_core_slot"):
    _optimizations[_name] = _shared[_name]
_shared["optimizations"] = _namespace(
    "optimizations", "pl.optimizations", "Entries of ``optimizations=`` lists.", _optimizations
)
_adir = {}
for _name in ("input", "output", "inout", "output_existing", "no_dep", "scalar"):
    _adir[_name] = _constructs.ArgDirectionName(f"pl.adir.{_name}")
    _core.register_construct(_adir[_name], f"pl.adir.{_name}")
_shared["adir"] = _namespace("adir", "pl.adir", "Names of argument directions in printed programs.", _adir)
_shared["parser"] = parser
_core.register_construct(parser, "pl.parser")
_core.register_construct(sys.modules[__name__], "pl")

__all__ = sorted(_shared)
_pld_operations = {space: members for space, members in _ops.items() if space.startswith("pld")}


def __getattr__(name):
    if name == "distributed":
        import importlib

        return importlib.import_module(f"{__name__}.distributed")
    if name.startswith("__"):
        raise AttributeError(name)
    raise _unknown_name("pl", name)


globals().update(_shared)
