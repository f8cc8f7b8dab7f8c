# SPDX-License-Identifier: Apache-2.0
"""`CompiledProgram`: a single-device program that can be called."""

from __future__ import annotations

import os
from _thread import RLock
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pypto import _core
from pypto._checks import check_run_config
from pypto._platform import arch_of, backend_of
from pypto.ir._options import CompileOptions
from pypto.runtime import _dtypes, _run

if TYPE_CHECKING:
    from pathlib import Path

ParamInfo = _core.ParamInfo
_ParamInfo = ParamInfo


def _to_torch_dtype(dtype: Any) -> Any:
    """Return the torch type of a `DataType`, or `None` when torch has none."""
    return _dtypes.torch_dtype(dtype)


def _to_runtime_shape(shape: Sequence[int], dtype: Any) -> list[int]:
    """Return the extents of the array that holds a tensor of `shape`: FP4 packs two values per element."""
    return _dtypes.runtime_shape(shape, dtype)


def _extract_param_infos(program: Any) -> list[Any]:
    """Return the parameters of the entry of an `ir.Program` or a compiled program."""
    if isinstance(program, ProgramBase):
        return program._params
    return list(_core.compile(program).params())


class ChipCallable:
    """The loaded form of one entry. Opaque; may be run on any thread, repeatedly."""

    def __init__(self, owner: ProgramBase, entry: str | None) -> None:
        self.owner = owner
        self.entry = entry

    def __repr__(self) -> str:
        return f"<loaded program {self.entry or self.owner.name!r}>"


class CallConfig:
    """Settings of one dispatch, as `build_call_config` collects them."""

    def __init__(self, aicpu_thread_num: int = 0, dfx_dir: str | None = None, config: Any = None) -> None:
        self.aicpu_thread_num = aicpu_thread_num
        self.dfx_dir = dfx_dir
        self.config = config

    def __repr__(self) -> str:
        return f"CallConfig(aicpu_thread_num={self.aicpu_thread_num})"


class EntryView:
    """Parameters and results of one entry, and how a call of it binds its arguments."""

    _word = "CompiledProgram"

    def _bind_entry(self, native: Any, entry: str | None) -> None:
        self._entry_name = entry
        params = list(native.params(entry))
        self._params: list[Any] = params
        self._count = len(params)
        self._outs = [i for i, p in enumerate(params) if p.is_tensor and p.direction.name == "Out"]
        self._returns = list(native.returns(entry))
        self._title = entry or native.entry or native.name

    @property
    def param_names(self) -> list[str]:
        """Names of the parameters in order."""
        return [p.name for p in self._params]

    @property
    def output_indices(self) -> list[int]:
        """Positions of the pure `Out` parameters."""
        return list(self._outs)

    @property
    def has_return(self) -> bool:
        """Whether the entry returns something."""
        return bool(self._returns)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], list[int]]:
        """Return one argument per parameter and the positions that were allocated here (return style)."""
        if kwargs:
            args = self._merge(args, kwargs)
        count = len(args)
        if count == self._count:
            return list(args), []
        if self._returns and self._outs and count == self._count - len(self._outs):
            given = iter(args)
            values = [None if i in self._outs else next(given) for i in range(self._count)]
            return self._allocate(values, self._outs)
        raise TypeError(self._count_message(count))

    def _count_message(self, got: int) -> str:
        both = ""
        if self._returns:
            both = f" or {self._count - len(self._outs)} (return)"
        return (
            f"{self._word} expects {self._count} (in-place){both} arguments, got {got}. Parameters: {self.param_names}"
        )

    def _merge(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        names = self.param_names
        unknown = [k for k in kwargs if k not in names]
        if unknown:
            raise TypeError(f"{self._title}() got an unexpected keyword argument {unknown[0]!r}. Parameters: {names}")
        slots = dict(zip(names, args, strict=False))
        for key, value in kwargs.items():
            if key in slots:
                raise TypeError(f"{self._title}() got multiple values for argument {key!r}")
            slots[key] = value
        missing = [n for n in names if n not in slots]
        outs = [names[i] for i in self._outs]
        if missing and missing != outs:
            raise TypeError(self._count_message(len(slots)))
        return tuple(slots[n] for n in names if n in slots)

    def _allocate(self, values: list[Any], which: list[int]) -> tuple[list[Any], list[int]]:
        use_torch = any(_is_torch(v) for v in values)
        for i in which:
            param = self._params[i]
            if any(n < 0 for n in param.shape):
                raise ValueError(
                    f"Output parameter {param.name!r} with shape {list(param.dims or param.shape)} contains dynamic "
                    f"dimensions. Pass all tensors explicitly (in-place style)."
                )
            values[i] = _dtypes.empty_array(param.shape, param.dtype, use_torch)
        return values, list(which)

    @staticmethod
    def _result(values: list[Any], made: list[int]) -> Any:
        if not made:
            return None
        return values[made[0]] if len(made) == 1 else tuple(values[i] for i in made)


def _is_torch(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] == "torch"


class ProgramBase(EntryView):
    """What single-device and distributed programs have in common: a directory, a platform, a loaded program."""

    def __init__(
        self, native: Any, options: CompileOptions, *, program: Any = None, output_dir: str | Path | None = None
    ) -> None:
        self._native = native
        self._options = options
        self._program = program
        self._output_dir = output_dir
        self._written = output_dir is not None
        self._extras: Any = None
        self._lock = RLock()
        self._other_archs: dict[str, Any] = {}
        self._chip_callables: dict[str | None, ChipCallable] = {}
        self._name = native.name
        if not native.entries:
            self._bind_entry(native, None)
        else:
            self._bind_nothing()

    def _bind_nothing(self) -> None:
        self._entry_name = None
        self._params, self._count, self._outs, self._returns = [], 0, [], []
        self._title = self._native.name

    # ------------------------------------------------------------------------------------------- description

    @property
    def name(self) -> str:
        """Name of the program."""
        return self._name

    @property
    def platform(self) -> str:
        """Platform it was compiled for."""
        return self._options.platform

    @property
    def backend_type(self) -> Any:
        """Backend of the platform."""
        return backend_of(self._options.platform)

    @property
    def program(self) -> Any:
        """The program; `None` after `from_dir`."""
        return self._program

    @property
    def runtime_name(self) -> str:
        """Name of the device runtime."""
        return self._options.runtime_name

    @property
    def runtime_config(self) -> dict[str, Any]:
        """Settings of the device runtime."""
        return self._options.runtime_config(self._native)

    def _get_metadata(self) -> tuple[list[Any], list[int], list[Any]]:
        """Return `(params, output_indices, return_types)`."""
        return list(self._params), list(self._outs), self._return_types()

    def _return_types(self) -> list[Any]:
        types = []
        for index in self._returns:
            types.append(self._params[index].type_text if 0 <= index < self._count else None)
        return types

    def load(self) -> Any:
        """Load the program now; it is loaded already when the object exists."""
        return self

    # --------------------------------------------------------------------------------------------- directory

    @property
    def output_dir(self) -> Path:
        """The artifact directory; complete when this attribute has been read."""
        self._ensure_written()
        from pathlib import Path

        assert self._output_dir is not None
        if not isinstance(self._output_dir, Path):
            self._output_dir = Path(self._output_dir)
        return self._output_dir

    def _ensure_written(self) -> None:
        if self._written:
            return
        with self._lock:
            if not self._written:
                from pypto.ir import _artifact

                with _artifact.directory(self._options.output_dir, self._name) as folder:
                    self._write(folder, self._extras)

    def _write(self, folder: str, extras: Any = None) -> None:
        """Write the whole directory."""
        from pypto.ir import _artifact

        _artifact.write(folder, self, extras)
        self._output_dir = folder
        self._written = True

    def __str__(self) -> str:
        return str(self.output_dir)

    def __fspath__(self) -> str:
        return str(self.output_dir)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, (str, os.PathLike)) and not isinstance(other, ProgramBase):
            from pathlib import Path

            return self.output_dir == Path(os.fspath(other))
        if isinstance(other, ProgramBase):
            # Two programs without a directory yet are different objects with different directories.
            return self._written and other._written and self.output_dir == other.output_dir
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.output_dir)

    def __repr__(self) -> str:
        where = f", output_dir={str(self._output_dir)!r}" if self._written else ""
        return f"<{self._word} {self._name!r} for {self.platform}: ({', '.join(self.param_names)}){where}>"

    # ----------------------------------------------------------------------------------------------- running

    def _native_for(self, platform: str) -> Any:
        """Return the loaded program for the architecture of `platform`, lowered again if it is another one."""
        arch = arch_of(platform)
        if arch == self._native.arch:
            return self._native
        with self._lock:
            found = self._other_archs.get(arch)
            if found is None:
                found = self._lower_again(arch)
                self._other_archs[arch] = found
        return found

    def _lower_again(self, arch: str) -> Any:
        source = self._native.source
        if source is None:
            raise ValueError(
                f"program {self._name!r} was compiled for {self._native.arch} only and cannot be lowered "
                f"for {arch}; compile it again"
            )
        options = self._options
        return _core.compile(
            source.clone(arch),
            arch=arch,
            planner=options.planner.name,
            double_buffer_c=options.double_buffer_c,
            analyze_auto_scopes_for_deps=options.analyze_auto_scopes_for_deps,
            world_size=options.world_size if self._native.distributed else 0,
        )

    def build_call_config(
        self, config: Any = None, *, aicpu_thread_num: int | None = None, dfx_dir: Any = None
    ) -> CallConfig:
        """Return the settings of a dispatch."""
        if config is not None:
            check_run_config("build_call_config()", config)
        threads = aicpu_thread_num
        if threads is None:
            threads = config.aicpu_thread_num if config is not None else None
        if threads is None:
            threads = self.runtime_config["aicpu_thread_num"]
        return CallConfig(threads, None if dfx_dir is None else os.fspath(dfx_dir), config)

    def validate_ir(self, tensors: Any, expected: Any, *, rtol: float = 5e-2, atol: float = 5e-2) -> None:
        """Run the torch form of every dumped stage on `tensors` and compare with `expected`."""
        from pypto.debug import validate_pass_ir_codegen_results

        dumps = self.output_dir / "passes_dump"
        if not dumps.is_dir():
            raise FileNotFoundError(f"{dumps}: there is no dump; compile with dump_passes=True")
        validate_pass_ir_codegen_results(dumps, tensors, expected, rtol=rtol, atol=atol)


class Entry(EntryView):
    """One entry of a multi-entry program."""

    def __init__(self, owner: CompiledProgram, name: str) -> None:
        self._owner = owner
        self._native = owner._native
        self.name = name
        self._bind_entry(owner._native, name)

    platform = property(lambda self: self._owner.platform, doc="Platform of the program.")
    backend_type = property(lambda self: self._owner.backend_type, doc="Backend of the program.")
    runtime_name = property(lambda self: self._owner.runtime_name, doc="Name of the device runtime.")
    runtime_config = property(lambda self: self._owner.runtime_config, doc="Settings of the device runtime.")
    chip_callable = property(lambda self: self._owner._chip_callable(self.name), doc="The loaded form of the entry.")

    @property
    def output_dir(self) -> Path:
        """Directory of this entry below that of the program."""
        return self._owner.output_dir / "next_levels" / self.name

    def build_orch_args(self, *args: Any, worker: Any) -> tuple[Any, list[Any], bool]:
        """Return `(packed, coerced, return_style)` of a call."""
        return _build_orch_args(self, args)

    def build_call_config(self, config: Any = None, **kwargs: Any) -> CallConfig:
        """Return the settings of a dispatch."""
        return self._owner.build_call_config(config, **kwargs)

    def _get_metadata(self) -> tuple[list[Any], list[int], list[Any]]:
        return list(self._params), list(self._outs), [None for _ in self._returns]

    def __call__(self, *args: Any, config: Any = None, **kwargs: Any) -> Any:
        return _call(self._owner, self, args, config, kwargs)

    def __repr__(self) -> str:
        return f"<entry {self.name!r} of {self._owner!r}>"


class CompiledProgram(ProgramBase):
    """A single-device program, compiled.

    Calling it runs it once: with one argument per parameter results are written in place and `None` is returned;
    without the `Out` parameters (if the entry returns something) they are allocated and returned. As a path it is its
    directory.
    """

    _word = "CompiledProgram"

    @property
    def orchestration_names(self) -> list[str]:
        """Names of the entries of a multi-entry program, sorted; else empty."""
        return sorted(self._native.entries)

    def _chip_callable(self, entry: str | None) -> ChipCallable:
        with self._lock:
            found = self._chip_callables.get(entry)
            if found is None:
                found = self._chip_callables[entry] = ChipCallable(self, entry)
            return found

    @property
    def chip_callable(self) -> ChipCallable:
        """The loaded form; the same object on every access."""
        if self._native.entries:
            raise TypeError(self._select_message())
        return self._chip_callable(None)

    def build_orch_args(self, *args: Any, worker: Any) -> tuple[Any, list[Any], bool]:
        """Return `(packed, coerced, return_style)` of a call."""
        return _build_orch_args(self, args)

    def _select_message(self) -> str:
        names = self.orchestration_names
        return (
            f"program {self._name!r} has several entries, select one explicitly: {', '.join(names)}; "
            f"for example compiled[{names[0]!r}](...)"
        )

    def __call__(self, *args: Any, config: Any = None, **kwargs: Any) -> Any:
        if self._native.entries:
            raise TypeError(self._select_message())
        return _call(self, self, args, config, kwargs)

    def _call_jit(self, args: list[Any], config: Any) -> Any:
        """Run a JIT call: arguments are classified already, an omitted `Out` is `None`."""
        if config is not None and (
            config.codegen_only
            or config.save_kernels
            or config.dump_passes
            or config.dump_ptoas_passes
            or config.compile_profiling
        ):
            self._ensure_written()
            if config.codegen_only:
                return None
        # `in` would compare arrays; only identity with None counts.
        made = [i for i, a in enumerate(args) if a is None]
        if made:
            args, made = self._allocate(args, made)
        _run.call_single(self, None, args, config, self._title)
        return self._result(args, made)

    def __getitem__(self, name: str) -> Entry:
        if name not in self._native.entries:
            available = self.orchestration_names
            if not available:
                raise KeyError(
                    f"compiled[{name!r}]: program {self._name!r} has one entry, {self._native.entry!r}; "
                    "call the compiled program itself: compiled(...)"
                )
            raise KeyError(f"{name!r} is not an entry of program {self._name!r}; available: {', '.join(available)}")
        return self._entry(name)

    def _entry(self, name: str) -> Entry:
        with self._lock:
            cache = self.__dict__.setdefault("_entries", {})
            if name not in cache:
                cache[name] = Entry(self, name)
            return cache[name]

    def __getattr__(self, name: str) -> Any:
        native = self.__dict__.get("_native")
        if native is not None and not name.startswith("_") and name in native.entries:
            return self._entry(name)
        raise AttributeError(f"'CompiledProgram' object has no attribute {name!r}")

    @classmethod
    def from_dir(
        cls, output_dir: str | os.PathLike[str], *, platform: str | None = None, backend_type: Any = None
    ) -> CompiledProgram:
        """Load the directory of an earlier compile.

        Raises
        ------
        FileNotFoundError
            If it has no metadata of a single-device program.
        ValueError
            If a file of it cannot be read.
        """
        from pathlib import Path

        from pypto.ir import _artifact

        folder = Path(os.fspath(output_dir)).absolute()
        native, options = _artifact.read(folder, _artifact.SINGLE_META, platform, backend_type)
        return cls(native, options, output_dir=folder)


def _build_orch_args(view: Any, args: tuple[Any, ...]) -> tuple[Any, list[Any], bool]:
    values, made = view._bind(args, {})
    _core.check_args(view._native, values, entry=view._entry_name, function=view._title)
    return tuple(values), values, bool(made)


def _call(program: CompiledProgram, view: Any, args: tuple[Any, ...], config: Any, kwargs: dict[str, Any]) -> Any:
    values, made = view._bind(args, kwargs)
    _run.call_single(program, view._entry_name, values, config, view._title)
    return view._result(values, made)


__all__ = ["CompiledProgram", "ParamInfo", "_ParamInfo", "_extract_param_infos", "_to_runtime_shape", "_to_torch_dtype"]
