# SPDX-License-Identifier: Apache-2.0
"""The decorators of typed programs: ``pl.function``, ``pl.program``, ``pl.inline``."""

import os
import sys

from pypto import _core
from pypto._enums import FunctionType, Level, Role  # pyright: ignore
from pypto._errors import ParserSyntaxError, ParserTypeError, caller_span

TYPE_CHECKING = False  # `typing` is not free to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, overload

_OPTIMIZED = 1  # code flag of function bodies; class bodies and modules do not have it


def check_source(function):
    """Raise OSError at once when a function's source cannot be read (01 L-65)."""
    code = function.__code__
    path = code.co_filename
    if os.path.isfile(path) or _core.source_available(path):
        return
    raise OSError(
        f"the source of function '{function.__name__}' cannot be read: there is no Python file {path!r} "
        "(functions typed into a shell or made by exec have none)"
    )


def captured_names(function, frame, namespace=None):
    """Names that the decorators and annotations of ``function`` use and the frames around its definition define.

    Python evaluates those expressions where the function is defined, so its closure need not have them."""
    module = frame.f_globals is frame.f_locals
    if module and namespace is None:
        return None
    names = _core.annotation_names(function.__code__)
    found = {}
    scopes = [] if namespace is None else [namespace]
    while frame is not None and frame.f_locals is not frame.f_globals:
        scopes.append(frame.f_locals)
        if frame.f_code.co_flags & _OPTIMIZED:
            break
        frame = frame.f_back
    for name in names:
        for scope in scopes:
            if name in scope:
                found[name] = scope[name]
                break
    return found or None


def _enum_option(option, value, enum):
    if value is None:
        return -1
    if not isinstance(value, enum):
        raise ParserSyntaxError(
            f"Unknown {enum.__name__} value: {value!r} for {option}= of @pl.function",
            caller_span(),
            f"write pl.{enum.__name__}.<member>; members: {', '.join(enum.__members__)}",
        )
    return int(value)


class _Method:
    """A ``@pl.function`` method, waiting for its ``@pl.program``."""

    def __init__(self, function, options):
        self.function = function
        self.options = options
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__

    def source(self, frame, namespace):
        return _make_source(self.function, self.options, captured_names(self.function, frame, namespace))


def _is_sub_worker(options):
    level, role = options["level"], options["role"]
    return role is not None and role == Role.SubWorker and level is not None and level >= Level.HOST


def _make_source(function, options, captured):
    return _core.FunctionSource(
        function,
        "sub_worker" if _is_sub_worker(options) else "method",
        type=_enum_option("type", options["type"], FunctionType),
        level=_enum_option("level", options["level"], Level),
        role=_enum_option("role", options["role"], Role),
        auto_scope=options["auto_scope"],
        strict_ssa=options["strict_ssa"],
        attrs=options["attrs"],
        external_source=options["external_source"] or "",
        captured=captured,
    )


def _check_decorator(source):
    """Options of a method are read from source (01 L-42): enums as attributes, ``auto_scope`` as a literal."""
    enums = {"type": FunctionType, "level": Level, "role": Role}
    for callee, keywords in source.decorator_keywords():
        if callee != "function":
            continue
        for name, kind, text, line, column in keywords:
            span = dict(source.span, line=line, column=column)
            if name is None:
                raise ParserSyntaxError("@pl.function does not accept **kwargs inside a @pl.program class", span)
            if name in enums and kind != "none":
                enum = enums[name]
                base, _, member = text.rpartition(".")
                if kind != "attribute" or base.rpartition(".")[2] != enum.__name__ or member not in enum.__members__:
                    raise ParserSyntaxError(
                        f"Unknown {enum.__name__} value: {text or kind}",
                        span,
                        hint=f"write pl.{enum.__name__}.<member>; members: {', '.join(enum.__members__)}",
                    )
            if name == "auto_scope" and kind != "bool":
                raise ParserSyntaxError("auto_scope must be a boolean literal (True or False)", span)


def function(
    func=None, *, type=FunctionType.Opaque, level=None, role=None, attrs=None, auto_scope=True, strict_ssa=False,
    external_source=None,
) -> "Any":  # fmt: skip
    """Declare a function of a typed program (01 L-42).

    In a ``@pl.program`` class it declares a method of the program; elsewhere it makes one ``ir.Function``.
    """
    options = {
        "type": type, "level": level, "role": role, "attrs": attrs, "auto_scope": auto_scope, "strict_ssa": strict_ssa,
        "external_source": external_source,
    }  # fmt: skip
    for option, value, enum in (("type", type, FunctionType), ("level", level, Level), ("role", role, Role)):
        _enum_option(option, value, enum)
    if not isinstance(auto_scope, bool):
        raise ParserSyntaxError(f"auto_scope must be a boolean literal, got {auto_scope!r}", caller_span())
    if not isinstance(strict_ssa, bool):
        raise ParserSyntaxError(f"strict_ssa must be a boolean, got {strict_ssa!r}", caller_span())
    if attrs is not None:
        import warnings

        warnings.warn(
            "W-DEPRECATED: attrs= on @pl.function is deprecated; "
            "write pl.func_attr({...}) as the first statement of the body",
            DeprecationWarning,
            stacklevel=2,
        )

    def decorate(f):
        if not callable(f) or not hasattr(f, "__code__"):
            raise ParserTypeError(
                f"@pl.function decorates a Python function, got {f.__class__.__name__}", caller_span()
            )
        if external_source is not None:
            check_external(external_source, f, "@pl.function")
        outer = f.__qualname__.rpartition(".")[0]
        if outer and not outer.endswith("<locals>"):
            return _Method(f, options)
        check_source(f)
        return _core.build_function(_make_source(f, options, captured_names(f, sys._getframe(1))))

    return decorate if func is None else _with_frame(decorate, func)


def _with_frame(decorate, func):
    # `decorate` looks at its caller's frame; called bare, that is `function`'s caller.
    outer = func.__qualname__.rpartition(".")[0] if hasattr(func, "__qualname__") else ""
    if outer and not outer.endswith("<locals>"):
        return decorate(func)
    if not hasattr(func, "__code__"):
        return decorate(func)
    check_source(func)
    options = {
        "type": FunctionType.Opaque,
        "level": None,
        "role": None,
        "attrs": None,
        "auto_scope": True,
        "strict_ssa": False,
        "external_source": None,
    }
    return _core.build_function(_make_source(func, options, captured_names(func, sys._getframe(2))))


def check_external(path, function, owner):
    """Resolve the source file of an external kernel; relative paths start at the Python file."""
    try:
        path = os.fspath(path)
    except TypeError:
        raise ParserTypeError(
            f"{owner}: external_source of '{function.__name__}' must be the path of a C++ file, got {path!r}",
            caller_span(),
        ) from None
    full = path if os.path.isabs(path) else os.path.join(os.path.dirname(function.__code__.co_filename), path)
    if not os.path.isfile(full):
        raise ValueError(f"{owner}: external source of '{function.__name__}' file not found: {full}")
    return full


if TYPE_CHECKING:

    @overload
    def program(cls: type) -> _core.Program: ...
    @overload
    def program(cls: None = None, *, strict_ssa: bool = False) -> Callable[[type], _core.Program]: ...


def program(cls=None, *, strict_ssa=False) -> "Any":
    """Turn a class of ``@pl.function`` methods into an ``ir.Program`` (01 L-43)."""

    def build(c, frame):
        if not isinstance(c, __builtins_type):
            raise ParserSyntaxError(f"@pl.program decorates a class, got {c.__class__.__name__}", caller_span())
        namespace = {k: v for k, v in c.__dict__.items() if not k.startswith("__")}
        methods = [m for m in namespace.values() if isinstance(m, _Method)]
        where = {"filename": frame.f_code.co_filename, "line": frame.f_lineno, "column": 1}
        if not methods:
            raise ParserSyntaxError(
                f"class '{c.__name__}' contains no @pl.function method",
                where,
                hint="decorate the methods that belong to the program with @pl.function",
            )
        visible = {k: v for k, v in namespace.items() if not isinstance(v, _Method)}
        sources = []
        for method in methods:
            check_source(method.function)
            source = method.source(frame, visible)
            _check_decorator(source)
            sources.append(source)
        return _core.build_program(c.__name__, sources, strict_ssa, c)

    if cls is None:
        return lambda c: build(c, sys._getframe(1))
    return build(cls, sys._getframe(1))


__builtins_type = type


class InlineFunction:
    """A helper whose body is inserted at each call (01 L-59)."""

    def __init__(self, function, captured):
        self._func = function
        self._source = _core.FunctionSource(function, "helper", captured=captured)
        self.__name__ = function.__name__
        self.__qualname__ = function.__qualname__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__wrapped__ = function

    @property
    def name(self):
        """Name of the helper."""
        return self.__name__

    def __call__(self, *args, **kwargs) -> "Any":
        raise TypeError(
            f"inline function '{self.__name__}' is only valid inside a decorated function; call it from one"
        )

    def __repr__(self):
        return f"InlineFunction({self.__name__!r})"


_core.register_function_class(InlineFunction)


def inline(func):
    """Make a helper whose body is inserted at each call (01 L-59)."""
    if not hasattr(func, "__code__"):
        raise ParserTypeError(f"@pl.inline decorates a Python function, got {func.__class__.__name__}", caller_span())
    check_source(func)
    return InlineFunction(func, captured_names(func, sys._getframe(1)))


EXPORTS = {"function": function, "program": program, "inline": inline, "InlineFunction": InlineFunction}
