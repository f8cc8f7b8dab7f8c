# SPDX-License-Identifier: Apache-2.0
"""Objects of the language that programs name: operations, loops, regions, directives. The front end recognises them by
identity; called by ordinary Python they have no meaning (01 L-5)."""

from pypto import _core


class Operation:
    """An operation of the language; legal in decorated bodies only."""

    def __init__(self, path, name, signature, doc):
        self.path = path
        self.__name__ = name
        self.__qualname__ = path
        self.__text_signature__ = f"({signature})"
        self.__doc__ = f"{name}({signature})\n\n{doc}"

    @property
    def __signature__(self):
        import inspect

        def parameter(text, kind):
            name, eq, default = text.partition("=")
            value = inspect.Parameter.empty
            if eq:
                try:
                    value = eval(default, {"__builtins__": {}}, {})
                except Exception:
                    value = default
            return inspect.Parameter(name.strip(), kind, default=value)

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        out = []
        for part in self.__text_signature__[1:-1].split(","):
            text = part.strip()
            if text == "*":
                kind = inspect.Parameter.KEYWORD_ONLY
            elif text:
                out.append(parameter(text, kind))
        return inspect.Signature(out)

    def __call__(self, *args, **kwargs):
        raise RuntimeError(f"{self.path} is only valid inside a decorated function: it is an operation of the language")

    def __repr__(self):
        return f"<operation {self.path}{self.__text_signature__}>"


class _Loop:
    """What a loop iterator returns outside a body."""

    __slots__ = ("args",)

    def __init__(self, args):
        self.args = args

    def __iter__(self):
        if self.args and all(type(a) is int for a in self.args) and len(self.args) <= 3:
            return iter(range(*self.args))
        return iter(())


class _Region:
    """What a region returns outside a body: enters, leaves and iterates without meaning."""

    __slots__ = ()

    def __enter__(self):
        return None

    def __exit__(self, *error):
        return False

    def __iter__(self):
        return iter(())


def range_(*args, init_values=None, attrs=None):
    """Iterate in order: ``for i in pl.range(start, stop, step)`` (01 L-93)."""
    return _Loop(args)


def parallel(*args, init_values=None, attrs=None):
    """Iterate with iterations declared independent (01 L-99)."""
    return _Loop(args)


def pipeline(*args, stage=None, init_values=None, attrs=None):
    """Iterate like ``pl.range``; ``stage`` iterations may overlap (01 L-100)."""
    return _Loop(args)


def unroll(*args, attrs=None):
    """Repeat the body while the program is read; the loop variable is a constant (01 L-101)."""
    return _Loop(args)


def while_(*args, init_values=None):
    """Explicit while loop: ``for (x,) in pl.while_(init_values=(x0,))`` (01 L-102)."""
    if init_values is None:
        raise ValueError("pl.while_() requires init_values")
    return _Loop(())


def yield_(*values):
    """Hand values over to the next iteration or out of a branch (01 L-92, L-97)."""
    return values[0] if len(values) == 1 else values


def cond(condition):
    """Condition of a ``pl.while_`` loop (01 L-102)."""


def const(value, dtype):
    """A constant of exactly that element type (01 L-13)."""
    return value


def static_print(*args):
    """Print while the program is read (01 L-105)."""


def static_assert(condition, message=""):
    """Check a compile-time condition while the program is read (01 L-106)."""


def func_attr(attrs):
    """Attributes of the function, as its first statement (01 L-56)."""


def at(
    level=None, role=None, *, optimizations=None, deps=None, no_dep_args=None, dumps=None, allow_early_resolve=False,
    name_hint="", windowize=False,
):  # fmt: skip
    """Place a body at a level of the machine; ``pl.Level.CORE_GROUP`` makes it a kernel (01 L-109)."""
    return _Region()


def cluster(*, name_hint=""):
    """Schedule cube and vector kernels together on one cluster (01 L-115)."""
    return _Region()


def spmd(core_num=None, *, sync_start=False, name_hint="", optimizations=None, deps=None, allow_early_resolve=False,
         predicate=None):  # fmt: skip
    """Run a kernel body as ``core_num`` blocks (01 L-116)."""
    return _Region()


def split_aiv(n, *, mode=None):
    """Run a body on the two vector lanes of a cluster (01 L-122)."""
    if isinstance(n, bool) or not isinstance(n, int) or n != 2:
        raise ValueError(f"pl.split_aiv: the number of lanes must be the integer 2, got {n!r}")
    return _Region()


def scope(*, mode=None):
    """Lifetime scope of created tensors (01 L-121)."""
    return _Region()


def manual_scope():
    """A scope in which only explicit dependencies order tasks (01 L-121, L-166)."""
    return _Region()


def _only_inside(path):
    def refuse(*args, **kwargs):
        raise RuntimeError(f"{path} is only valid inside a decorated function")

    refuse.__name__ = path.rpartition(".")[2]
    return refuse


submit = _only_inside("pl.submit")
submit.__doc__ = "Submit a kernel as a task and take its handle (01 L-130)."
spmd_submit = _only_inside("pl.spmd_submit")
spmd_submit.__doc__ = "Submit a kernel over several blocks (01 L-130)."
task_dummy = _only_inside("pl.system.task_dummy")
task_dummy.__doc__ = "task_dummy(deps)\n\nA handle that is ready when all of deps are (01 L-137)."


def task_invalid():
    """The invalid task handle (01 L-137)."""
    return None


def no_dep(tensor):
    """Leave an argument out of the automatic dependencies (01 L-138)."""
    return tensor


def dump_tag(tensor):
    """Mark a tensor for the argument dump (01 L-139)."""


def split(mode, *, slot_num=None):
    """Divide a mixed kernel's vector work between the two lanes (01 L-114)."""
    return ("split", mode)


def cross_core_slot(*, slot_num):
    """Depth of the channel between cube and vector core (01 L-114)."""
    return ("cross_core_slot", slot_num)


class ArgDirectionName:
    """A name of ``pl.adir``: exists in printed call attributes only (01 L-140)."""

    __slots__ = ("path",)

    def __init__(self, path):
        self.path = path

    def __repr__(self):
        return self.path


EXPORTS = {
    "range": range_, "parallel": parallel, "unroll": unroll, "pipeline": pipeline, "while_": while_, "yield_": yield_,
    "cond": cond, "const": const, "static_print": static_print, "static_assert": static_assert, "func_attr": func_attr,
    "at": at, "cluster": cluster, "spmd": spmd, "split_aiv": split_aiv, "scope": scope, "manual_scope": manual_scope,
    "submit": submit, "spmd_submit": spmd_submit, "no_dep": no_dep, "dump_tag": dump_tag, "split": split,
    "cross_core_slot": cross_core_slot,
}  # fmt: skip
range_.__name__ = "range"


def operations():
    """Namespace -> name -> object, for every row of the operation table."""
    spaces = {}
    for namespace, name, signature, doc, _ in _core.op_table():
        path = f"{namespace}.{name}"
        op = Operation(path, name, signature, doc)
        _core.register_construct(op, path)
        spaces.setdefault(namespace, {})[name] = op
    return spaces
