# SPDX-License-Identifier: Apache-2.0
"""The public enums, made from the core's table. Each exists once; every module that exports one exports this object."""

from enum import EnumMeta, IntEnum

from pypto import _core


class _Meta(EnumMeta):
    """Reports an unknown member as an error of the language that is also an AttributeError."""

    def __getattr__(cls, name):
        members = cls.__dict__.get("_member_map_") or {}
        if name in members:
            return members[name]
        if name.startswith("_"):
            raise AttributeError(name)
        raise _unknown_member(cls.__name__, name, list(members))

    def __getitem__(cls, name):
        members = cls.__dict__.get("_member_map_") or {}
        if isinstance(name, str) and name in members:
            return members[name]
        raise KeyError(f"{cls.__name__}[...] takes the name of a member ({', '.join(members)}), got {name!r}")


# Enums whose members stand in annotations (01 L-28): what a member is called there.
_IN_ANNOTATIONS = {"TensorLayout": "layout", "MemorySpace": "memory space"}


def _unknown_member(enum_name, name, members):
    from pypto import _errors

    what = _IN_ANNOTATIONS.get(enum_name)
    base = _errors.ParserTypeError if what else _errors.ParserSyntaxError
    kind = type(base.__name__, (base, AttributeError), {"__module__": base.__module__})
    near = _core.nearest(name, members)
    hint = f"did you mean {enum_name}.{near}?" if near else None
    text = f"Unknown {what}: {name}. " if what else ""
    text += f"Unknown {enum_name} value: {name}. Expected one of: {', '.join(members)}"
    return kind(text, _errors.caller_span(), hint)


class _LanguageEnum(IntEnum, metaclass=_Meta):
    """Prints as a program writes it."""

    @classmethod
    def _missing_(cls, value):
        members = ", ".join(f"{name} = {int(member)}" for name, member in cls.__members__.items())
        raise ValueError(f"{value!r} is not a valid {cls.__name__}; members: {members}")

    def __str__(self):
        return f"{type(self).__name__}.{self.name}"

    def __repr__(self):
        return f"{_prefix(type(self).__name__)}.{type(self).__name__}.{self.name}"

    def __format__(self, spec):
        return format(str(self), spec)


_PLD = ("NotifyOp", "WaitCmp", "ReduceOp")
_IR = ("ParamDirection", "ArgDirection", "CoreType")


def _prefix(name):
    if name == "MaskPattern":
        return "pl.tile"
    return "pld" if name in _PLD else "ir" if name in _IR else "pl"


__all__ = []
for _name, _members in _core.enum_table().items():
    _cls = _LanguageEnum(_name, _members, module=__name__)
    globals()[_name] = _cls
    _core.register_enum(_name, _cls)  # pyright: ignore
    if _name not in _IR:
        _core.register_construct(_cls, f"{_prefix(_name)}.{_name}")
    __all__.append(_name)


def _attribute_value(text):
    """The Python value of a function attribute from its printed text."""
    if text.startswith(("pl.", "pld.")):
        parts = text.split(".")
        cls = globals().get(parts[-2])
        return getattr(cls, parts[-1]) if cls is not None else text
    if text.lstrip("-").isdigit():
        return int(text)
    import ast

    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
