# SPDX-License-Identifier: Apache-2.0
"""JIT functions: specialised from the arguments of a call, cached under keys with guards (04 section 4)."""

import operator
import sys
from _thread import RLock

from pypto import _core
from pypto._core import DataType
from pypto._enums import FunctionType, Level  # pyright: ignore
from pypto.language._annotations import (
    RUNTIME,
    DirectionAnnotation,
    ScalarAnnotation,
    Tensor,
    TensorAnnotation,
)
from pypto.language._functions import captured_names, check_external, check_source

TYPE_CHECKING = False  # `typing` is not free to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, overload

_MISSING = object()
_SIGNATURE = ...  # an argument that the annotation describes


class _Param:
    """A parameter as binding needs it."""

    __slots__ = ("annotation", "bare", "default", "direction", "dtype", "keyword_only", "kind", "name", "shape")

    def __init__(self, name):
        self.name = name
        self.kind = "any"
        self.direction = "In"
        self.dtype = self.shape = None
        self.bare = False
        self.default = _MISSING
        self.keyword_only = False
        self.annotation = _MISSING


def _extent(value):
    """Return the extent that an annotation states; -1 where only the front end, which reads it again, can say."""
    if isinstance(value, bool):
        return -1
    try:
        extent = operator.index(value)
    except TypeError:
        return -1
    return extent if -(2**63) <= extent < 2**63 else -1


def _classify(param, annotation):
    """Fill kind, direction, dtype and shape from an evaluated annotation."""
    if isinstance(annotation, DirectionAnnotation):
        param.direction = annotation.direction
        annotation = annotation.inner
        if isinstance(annotation, str):
            return
    if isinstance(annotation, type) and issubclass(annotation, Tensor):
        param.kind = "tensor"
        param.bare = True
    elif isinstance(annotation, TensorAnnotation):
        param.kind = "tensor"
        if isinstance(annotation.dtype, DataType):
            param.dtype = annotation.dtype
            if isinstance(annotation.shape, (list, tuple)):
                param.shape = [_extent(d) for d in annotation.shape]
    elif isinstance(annotation, ScalarAnnotation) or isinstance(annotation, DataType):
        param.kind = "scalar"
        dtype = annotation if isinstance(annotation, DataType) else annotation.dtype
        param.dtype = dtype if isinstance(dtype, DataType) else None


def _evaluate(text, function, captured):
    scope = dict(captured or ())
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            scope[name] = cell.cell_contents
        except ValueError:
            pass
    value = eval(text, function.__globals__, scope)
    return eval(value, function.__globals__, scope) if isinstance(value, str) else value


class JITFunction:
    """A function that is compiled for the arguments it is called with (01 section 6)."""

    def __init__(self, function, kind, *, level=None, auto_scope=True, captured=None, extern=None):
        self._func = function
        self._kind = kind
        self._captured = captured
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__wrapped__ = function
        self._extern = extern
        options = {}
        if level is not None:
            options["level"] = int(level)
            if level == Level.AIC:
                options["type"] = int(FunctionType.AIC)
            elif level == Level.AIV:
                options["type"] = int(FunctionType.AIV)
        if extern is not None:
            options["external_source"] = extern["source"] or extern["aic_source"]
            options["attrs"] = {k: v for k, v in extern.items() if v}
        self._source = _core.FunctionSource(function, kind, auto_scope=auto_scope, captured=captured, **options)
        self._cache = {}
        self._index = {}
        self._lock = RLock()
        self._params = None
        self._signature = None

    def __repr__(self):
        kind = "orchestration" if self._kind == "jit" else self._kind
        return f"JITFunction({self.__name__!r}, func_type={kind!r})"

    # ------------------------------------------------------------------ parameters

    def _parameters(self):
        """The parameters, read from the annotations on first use (names may be defined after the function)."""
        if self._params is not None:
            return self._params
        function = self._func
        code = function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        names = code.co_varnames[:count]
        annotations = function.__annotations__
        params = []
        for i, name in enumerate(names):
            param = _Param(name)
            param.keyword_only = i >= code.co_argcount
            if name in annotations:
                annotation = annotations[name]
                if isinstance(annotation, str):
                    try:
                        annotation = _evaluate(annotation, function, self._captured)
                    except Exception:
                        annotation = None  # the front end reports it with its location
                if isinstance(annotation, DirectionAnnotation) and isinstance(annotation.inner, str):
                    try:
                        inner = _evaluate(annotation.inner, function, self._captured)
                        annotation = DirectionAnnotation(annotation.direction, inner)
                    except Exception:
                        pass
                param.annotation = annotation
                _classify(param, annotation)
            params.append(param)
        defaults = function.__defaults__ or ()
        for param, value in zip(params[code.co_argcount - len(defaults) : code.co_argcount], defaults, strict=True):
            param.default = value
        for name, value in (function.__kwdefaults__ or {}).items():
            params[names.index(name)].default = value
        facts = [(p.name, p.kind, p.dtype, p.shape) for p in params]
        self._signature = _core.Signature(self.__name__, facts, self._source)
        self._params = params
        return params

    def _fail(self, text, parameter=""):
        """Raise `TypeError` with the place of a parameter, or of the function."""
        place = self._source.place_of(parameter)
        raise TypeError(f"@pl.jit function '{self.__name__}': {text} (declared at {place})")

    def _binding_error(self, args, kwargs):
        """Raise with Python's own text for arguments that do not bind."""
        import inspect

        if self._func.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
            self._fail(
                "*args and **kwargs parameters are not supported; "
                "where another decorator added them, put @pl.jit directly on the function"
            )
        try:
            inspect.signature(self._func).bind(*args, **kwargs)
        except TypeError as error:
            from pypto.runtime import RunConfig

            named = " (config is given by name: config=...)" if any(isinstance(a, RunConfig) for a in args) else ""
            self._fail(str(error) + named)
        self._fail("the arguments do not match the parameters")

    def _place(self, args, kwargs):
        """Arguments by parameter; ``_MISSING`` where none was given."""
        params = self._params or self._parameters()
        n = len(params)
        values = list(args)
        if len(values) > n or (len(values) and params[len(values) - 1].keyword_only):
            self._binding_error(args, kwargs)
        values += [_MISSING] * (n - len(values))
        if kwargs:
            names = [p.name for p in params]
            for name, value in kwargs.items():
                if name not in names:
                    self._binding_error(args, kwargs)
                i = names.index(name)
                if values[i] is not _MISSING:
                    self._binding_error(args, kwargs)
                values[i] = value
        return values

    def _bind(self, args, kwargs):
        """One value per parameter for a call; ``...`` for every pure output when all of them are left out."""
        params = self._params or self._parameters()
        values = self._place(args, kwargs)
        missing = []
        for i, value in enumerate(values):
            if value is _MISSING:
                default = params[i].default
                if default is not _MISSING and default is not RUNTIME:
                    values[i] = default
                else:
                    missing.append(i)
            elif value is RUNTIME:
                name = params[i].name
                self._fail(
                    f"'{name}' received pl.RUNTIME, which is a compile-time marker and no value; "
                    f"use it as {self.__name__}.compile({name}=pl.RUNTIME)",
                    name,
                )
        if missing:
            outputs = [i for i, p in enumerate(params) if p.direction == "Out"]
            if missing != outputs:
                self._binding_error(args, kwargs)
            for i in missing:
                values[i] = _SIGNATURE
        return values

    def _bind_samples(self, args, kwargs):
        """One value per parameter for ``compile`` and ``lower``; without any array the signature speaks (JIT-18)."""
        params = self._params or self._parameters()
        values = self._place(args, kwargs)
        if any(_is_array(v) for v, p in zip(values, params, strict=True) if v is not _MISSING and p.kind != "scalar"):
            return self._bind(args, kwargs)
        for i, param in enumerate(params):
            value = values[i]
            if param.kind == "tensor":
                if value is not _MISSING:
                    self._fail(
                        f"Parameter '{param.name}' is a tensor; got {_core.type_text(value)}. Pass a torch.Tensor "
                        "(host), a NumPy array or a DeviceTensor, or leave it out to compile from the signature",
                        param.name,
                    )
                if param.bare:
                    self._fail(
                        f"cannot specialize from the signature because parameter '{param.name}' has a "
                        f"bare 'pl.Tensor' "
                        "annotation with no shape; write pl.Tensor[[...], dtype] or pass arrays",
                        param.name,
                    )
                values[i] = _SIGNATURE
            elif param.kind == "scalar":
                if value is _MISSING:
                    value = values[i] = param.default
                if value is _MISSING:
                    self._fail(
                        f"scalar parameter '{param.name}' has no value; give "
                        f"one, {self.__name__}.compile({param.name}=1), "
                        f"or leave it to run time, {self.__name__}.compile({param.name}=pl.RUNTIME)",
                        param.name,
                    )
                if value is not RUNTIME and _core.read_number(value) is None:
                    self._fail(
                        f"scalar parameter '{param.name}' must be an int/float/bool value or pl.RUNTIME, "
                        f"got {_core.type_text(value)}",
                        param.name,
                    )
            elif value is _MISSING and param.annotation is _MISSING:
                self._fail(f"cannot infer parameter '{param.name}' from the signature: it has no annotation; "
                           "annotate it or pass arrays", param.name)  # fmt: skip
            elif value is _MISSING:
                values[i] = _SIGNATURE
        return values

    # ------------------------------------------------------------------ specialisation

    def _entry_only(self):
        if self._kind not in ("jit", "host"):
            raise TypeError(
                f"'{self.__name__}' is a @pl.jit.{self._kind} function and not an entry: it cannot be called, "
                f"compiled or "
                f"lowered from Python. Call it from a @pl.jit or @pl.jit.host function (declared "
                f"at {self._source.place_of('')})"
            )

    @staticmethod
    def _config(config):
        if config is None:
            return None
        from pypto.runtime import RunConfig

        if not isinstance(config, RunConfig):
            raise TypeError(f"config must be a RunConfig or None, got {_core.type_text(config)}")
        return config

    def _world_size(self, config):
        if self._kind != "host":
            return 0
        distributed = None if config is None else config.distributed_config
        return 1 if distributed is None else len(distributed.device_ids)

    def _find(self, raw, options):
        for key in self._index.get((raw, options), ()):
            compiled = self._cache.get(key)
            if compiled is not None and key.holds():
                return compiled
        return None

    def _search(self, raw, options):
        """Look through all entries: a dynamic dimension lets one serve many raw keys."""
        compiled = self._find(raw, options)
        if compiled is not None:
            return compiled
        found = [key for key in list(self._cache) if key.matches(raw, options)]
        if found:
            self._index[raw, options] = found
            return self._find(raw, options)
        return None

    def _read(self, values, config, options):
        arch = "a5" if "a5" in options[0] else "a2a3"
        return _core.build_jit(self._source, self._signature, values, arch, options)  # pyright: ignore

    def _specialize(self, values, raw, config, options):
        from pypto.ir import compiler

        with self._lock:
            compiled = self._search(raw, options)
            if compiled is not None:
                return compiled
            if len(self._index) > 4096:
                self._index.clear()
            program, key = self._read(values, config, options)
            native = compiler._compile_native(program, config, self._world_size(config))
            compiled = compiler._from_jit(native, config)
            self._cache[key] = compiled
            self._index.setdefault((raw, options), []).append(key)
            return compiled

    def _options(self, config):
        global _options_for
        if _options_for is None:
            from pypto.ir.compiler import _options_for
        return _options_for(config)

    # ------------------------------------------------------------------ public

    def __call__(self, *args, config=None, **kwargs):
        """Specialise if needed, and run: in place, or returning the outputs that were left out."""
        self._entry_only()
        if config is not None:
            config = self._config(config)
        values = self._bind(args, kwargs)
        options = self._options(config)
        raw = self._signature.key(values)  # pyright: ignore
        compiled = self._find(raw, options)
        if compiled is None:
            compiled = self._specialize(values, raw, config, options)
        return compiled._call_jit([None if v is _SIGNATURE else v for v in values], config)

    def compile(self, *args, config=None, **kwargs):
        """Return the compiled program for sample arguments, or for the signature; nothing is run."""
        self._entry_only()
        config = self._config(config)
        values = self._bind_samples(args, kwargs)
        options = self._options(config)
        raw = self._signature.key(values)  # pyright: ignore
        compiled = self._find(raw, options)
        return self._specialize(values, raw, config, options) if compiled is None else compiled

    def lower(self, *args, config=None, **kwargs):
        """Return the ``ir.Program`` after the compiler's transformations (04 JIT-27)."""
        from pypto.ir import compiler

        self._entry_only()
        config = self._config(config)
        values = self._bind_samples(args, kwargs)
        program, _ = self._read(values, config, self._options(config))
        return _core.device_form(compiler._compile_native(program, config, self._world_size(config)).program)


_options_for = None
_core.register_function_class(JITFunction)


def _is_array(value):
    if value is None or isinstance(value, (int, float, str)):
        return False
    if type(value).__name__ in ("DeviceTensor", "StackedDeviceTensor"):
        return True
    info = _core.array_info(value)
    return info is not None and len(info[2]) > 0


class _Kind:
    """One JIT decorator; used bare or called with its options."""

    def __init__(self, kind, name, options):
        self._kind = kind
        self._name = name
        self._options = options
        self.__name__ = name.rpartition(".")[2]

    if TYPE_CHECKING:

        @overload
        def __call__(self, func: Callable[..., Any], /) -> JITFunction: ...
        @overload
        def __call__(
            self, func: None = None, /, *, auto_scope: bool = ..., level: Level | None = ...
        ) -> Callable[[Callable[..., Any]], JITFunction]: ...

    def __call__(self, func=None, /, **options) -> "Any":
        for key in options:
            if key not in self._options:
                article = "an" if key[0] in "aeiou" else "a"
                raise TypeError(f"{self._name} does not accept {article} {key}= argument")
        if func is not None and not hasattr(func, "__code__"):
            raise TypeError(f"{self._name} decorates a Python function, got {type(func).__name__}")
        if func is not None:
            return self._make(func, options, sys._getframe(1))
        if "auto_scope" in options and not isinstance(options["auto_scope"], bool):
            raise TypeError(f"{self._name}: auto_scope= must be a bool, got {options['auto_scope']!r}")
        level = options.get("level")
        if level is not None and not isinstance(level, Level):
            raise TypeError(f"{self._name}: level= must be a pl.Level member or None, got {level!r}")
        if level is not None and level >= Level.HOST:
            raise TypeError(f"{self._name}: level=pl.Level.{level.name} is no level of a kernel; use AIC or AIV")
        return lambda f: self._make(f, options, sys._getframe(1))

    def _make(self, func, options, frame):
        if not hasattr(func, "__code__"):
            raise TypeError(f"{self._name} decorates a Python function, got {type(func).__name__}")
        check_source(func)
        return JITFunction(func, self._kind, captured=captured_names(func, frame), **options)

    def __repr__(self):
        return f"<decorator {self._name}>"


class _Extern:
    """``@pl.jit.extern``: the signature of a hand-written C++ kernel."""

    __name__ = "extern"

    def __call__(
        self, func=None, /, *, core_type="aiv", source=None, aic_source=None, aiv_source=None, dual_aiv_dispatch=False,
        include_dirs=None, **unknown,
    ) -> "Any":  # fmt: skip
        for key in unknown:
            raise TypeError(f"@pl.jit.extern does not accept {'an' if key[0] in 'aeiou' else 'a'} {key}= argument")
        if core_type not in ("aic", "aiv", "mixed"):
            raise ValueError(f"@pl.jit.extern: core_type must be 'aic', 'aiv' or 'mixed', got {core_type!r}")
        if core_type == "mixed":
            if aic_source is None or aiv_source is None:
                raise ValueError("@pl.jit.extern: core_type='mixed' requires both aic_source= and aiv_source=")
        elif source is None:
            raise ValueError(f"@pl.jit.extern: core_type={core_type!r} requires source=")
        if dual_aiv_dispatch and core_type != "mixed":
            raise ValueError("@pl.jit.extern: dual_aiv_dispatch=True requires core_type='mixed'")
        if include_dirs is not None and (isinstance(include_dirs, (str, bytes)) or hasattr(include_dirs, "__fspath__")):
            raise TypeError(f"@pl.jit.extern: include_dirs must be a sequence of paths, got one path {include_dirs!r}")

        def decorate(f):
            import os

            check_source(f)
            paths = {}
            for key, value in (("source", source), ("aic_source", aic_source), ("aiv_source", aiv_source)):
                if value is None:
                    paths[key] = None
                    continue
                try:
                    paths[key] = check_external(value, f, "@pl.jit.extern")
                except ValueError as error:
                    raise ValueError(str(error).replace("file not found", "source file not found")) from None
            folder = os.path.dirname(f.__code__.co_filename)
            folders = []
            for path in include_dirs or ():
                full = os.path.join(folder, os.fspath(path))
                if not os.path.isdir(full):
                    raise ValueError(f"@pl.jit.extern: include directory not found: {full}")
                folders.append(full)
            extern = dict(paths, core_type=core_type, dual_aiv_dispatch=dual_aiv_dispatch, include_dirs=folders)
            return JITFunction(f, "extern", captured=captured_names(f, sys._getframe(1)), extern=extern)

        return decorate if func is None else decorate(func)

    def __repr__(self):
        return "<decorator @pl.jit.extern>"


class _Jit(_Kind):
    """``@pl.jit`` and the decorators below it."""

    def __init__(self):
        super().__init__("jit", "@pl.jit", {"auto_scope"})
        self.host = _Kind("host", "@pl.jit.host", {"auto_scope"})
        self.incore = _Kind("incore", "@pl.jit.incore", {"level"})
        self.inline = _Kind("inline", "@pl.jit.inline", {"auto_scope"})
        self.opaque = _Kind("opaque", "@pl.jit.opaque", set())
        self.extern = _Extern()


jit = _Jit()

EXPORTS = {"jit": jit, "JITFunction": JITFunction}
