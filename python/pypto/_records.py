# SPDX-License-Identifier: Apache-2.0
"""Dataclasses that cost nothing to define, for the modules that every process imports.

The standard decorator writes the source of several methods for each class and compiles it: a third of a millisecond per
class, in every process. Here the methods are shared, and what other code asks of a dataclass (`fields`, `replace`,
`asdict`, a signature) is made by the standard module on the first request.
"""

from __future__ import annotations

from typing import Any

_MISSING = object()


class _Default:
    __slots__ = ("factory", "value")

    def __init__(self, value: Any, factory: Any) -> None:
        self.value = value
        self.factory = factory


def field(*, default: Any = _MISSING, default_factory: Any = _MISSING) -> Any:
    """Say what a field has when the caller gives nothing."""
    return _Default(default, default_factory)


class _FromStandard:
    """An attribute that the standard module makes when somebody looks for it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        import dataclasses
        import inspect

        for cls in owner.__mro__:
            if cls.__dict__.get(self.name) is self:
                break
        made: dict[str, Any] = {"__annotations__": cls.__annotations__, "__module__": cls.__module__}
        for name, default in cls._defaults.items():  # type: ignore[attr-defined]
            if default.factory is not _MISSING:
                made[name] = dataclasses.field(default_factory=default.factory)
            else:
                made[name] = dataclasses.field(default=default.value)
        twin = dataclasses.dataclass(type(cls.__name__, (), made), frozen=cls._frozen)  # type: ignore[call-overload,attr-defined]
        cls.__dataclass_fields__ = twin.__dataclass_fields__  # type: ignore[attr-defined]
        cls.__dataclass_params__ = twin.__dataclass_params__  # type: ignore[attr-defined]
        cls.__signature__ = inspect.signature(twin)  # type: ignore[attr-defined]
        return getattr(cls, self.name)


def _init(self: Any, *args: Any, **kwargs: Any) -> None:
    names, defaults, values = self.__match_args__, self._defaults, self.__dict__
    if len(args) > len(names):
        raise TypeError(f"{type(self).__name__}.__init__() takes at most {len(names)} arguments, got {len(args)}")
    given = len(args)
    for i, name in enumerate(names):
        if i < given:
            if name in kwargs:
                raise TypeError(f"{type(self).__name__}.__init__() got multiple values for argument {name!r}")
            values[name] = args[i]
        elif name in kwargs:
            values[name] = kwargs.pop(name)
        else:
            default = defaults.get(name)
            if default is None:
                raise TypeError(f"{type(self).__name__}.__init__() missing required argument: {name!r}")
            values[name] = default.value if default.factory is _MISSING else default.factory()
    if kwargs:
        raise TypeError(f"{type(self).__name__}.__init__() got an unexpected keyword argument {next(iter(kwargs))!r}")
    check = getattr(self, "__post_init__", None)
    if check is not None:
        check()


def _values(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, name) for name in self.__match_args__])


def _repr(self: Any) -> str:
    inner = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
    return f"{type(self).__qualname__}({inner})"


def _eq(self: Any, other: Any) -> Any:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(_values(self))


def _refuse(self: Any, name: str, value: Any = None) -> None:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot {'assign to' if value is not None else 'change'} field {name!r}")


def dataclass(cls: Any = None, *, frozen: bool = False) -> Any:
    """Make a dataclass of `cls`, whose fields are all its annotations."""
    if cls is None:
        return lambda c: dataclass(c, frozen=frozen)
    own = cls.__dict__
    names = tuple(own.get("__annotations__", ()))
    defaults: dict[str, _Default] = {}
    for name in names:
        value = own.get(name, _MISSING)
        if value is _MISSING:
            continue
        if not isinstance(value, _Default):
            value = _Default(value, _MISSING)
        elif value.factory is not _MISSING:
            delattr(cls, name)
        if value.factory is _MISSING:
            setattr(cls, name, value.value)
        defaults[name] = value
    cls._defaults, cls._frozen, cls.__match_args__ = defaults, frozen, names
    cls.__init__, cls.__eq__ = _init, _eq
    cls.__hash__ = _hash if frozen else None
    if "__repr__" not in own:
        cls.__repr__ = _repr
    if frozen:
        cls.__setattr__ = cls.__delattr__ = _refuse
    for name in ("__dataclass_fields__", "__dataclass_params__", "__signature__"):
        setattr(cls, name, _FromStandard(name))
    return cls


def field_names(record: Any) -> tuple[str, ...]:
    """Return the names of the fields of a record or its class."""
    return record.__match_args__


def replace(record: Any, **changes: Any) -> Any:
    """Return a copy of `record` with other values in some fields."""
    return type(record)(**{**{name: getattr(record, name) for name in record.__match_args__}, **changes})
