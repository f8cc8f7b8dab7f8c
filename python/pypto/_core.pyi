# SPDX-License-Identifier: Apache-2.0
"""The native core as Python sees it.

Everything here is private to the package: public modules re-export it under the names of the documentation.

What the native side and ``pypto.language`` expect from the other Python modules
-------------------------------------------------------------------------------
``pypto.ir.compiler``
    ``_options_for(config) -> tuple``: hashable tuple of every field of the config (and of the active ``PassContext``) that a
        compiled program depends on (04 JIT-23); the first item is the platform.
    ``_compile_native(program, config, world_size) -> Compiled``: calls ``_core.compile`` with the config's options.
    ``_from_jit(compiled, config) -> CompiledProgram | DistributedCompiledProgram``: the public object of a specialisation
        (``compiled.source`` is the program as read, ``compiled.program`` the lowered one).
``<that object>._call_jit(args: list, config)``
    runs it with one argument per parameter, in order (an omitted pure ``Out`` is None: return style). It is the warm path.
"""  # noqa: E501

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__version__: str

# ---------------------------------------------------------------------------------------------------- basic values

class DataType:
    """An element type: hashable, compared by value. ``DataType(code)``; members ``FP32`` ... are class attributes."""

    BOOL: DataType
    INT4: DataType
    INT8: DataType
    INT16: DataType
    INT32: DataType
    INT64: DataType
    INDEX: DataType
    UINT4: DataType
    UINT8: DataType
    UINT16: DataType
    UINT32: DataType
    UINT64: DataType
    FP4: DataType
    FP8E4M3FN: DataType
    FP8E5M2: DataType
    FP8E8M0: DataType
    FP16: DataType
    FP32: DataType
    BF16: DataType
    HF4: DataType
    HF8: DataType
    TASK_ID: DataType
    DEFAULT_CONST_INT: DataType
    DEFAULT_CONST_FLOAT: DataType
    def __init__(self, code: int) -> None: ...
    def get_bit(self) -> int: ...
    def get_byte(self) -> int: ...
    def to_string(self) -> str: ...
    def to_c_type_string(self) -> str: ...
    def is_float(self) -> bool: ...
    def is_int(self) -> bool: ...
    def is_signed_int(self) -> bool: ...
    def is_unsigned_int(self) -> bool: ...
    def code(self) -> int: ...
    @property
    def member(self) -> str:
        """Name under ``pl``: ``"FP32"``."""

DTYPE_NAMES: list[str]
"""Member names in the order of the dtype table."""

def enum_table() -> dict[str, list[tuple[str, int]]]:
    """Enum name -> (member, value) pairs, aliases included. ``pypto._enums`` builds the IntEnums from it."""

class DynVar:
    """A dynamic dimension symbol; ``+ - * // %`` with ints and symbols give a :class:`SymExpr`."""

    name: str
    def __init__(self, name: str) -> None: ...

class SymExpr:
    """Integer expression over dynamic symbols."""

def op_table() -> list[tuple[str, str, str, str, str]]:
    """(namespace, name, signature, doc, row name) per spelling; namespaces "pl", "pl.tensor", "pld", ..."""

def register_enum(name: str, cls: type) -> None: ...
def nearest(name: str, candidates: Sequence[str]) -> str:
    """The candidate nearest by edit distance; empty when none is near."""

def construct_path(obj: object) -> str | None: ...
def register_construct(obj: object, path: str) -> None:
    """Makes the front end recognise ``obj`` by identity as language object ``path`` (such as ``"pl.range"``)."""

# ------------------------------------------------------------------------------------------------------- diagnostics

class Span:
    filename: str
    line: int
    column: int
    begin_line: int
    begin_column: int
    end_line: int
    end_column: int
    def __init__(self, filename: str = ..., line: int = ..., column: int = ...) -> None: ...

class Diagnostic:
    """04 OBS-30. Fields that do not apply are None or empty."""

    id: str
    severity: str
    title: str
    message: str
    help: str
    rank: int | None
    core: str | None
    task: int | None
    kernel: str | None
    block: int | None
    lane: int | None
    file: str | None
    line: int | None
    column: int | None
    replay: str | None
    accesses: list[Any]
    waits: list[Any]
    error_class: str
    notes: list[tuple[str, str | None]]
    label: str
    span: Span | None
    def render(self, color: bool = False) -> str: ...
    def location(self) -> str:
        """Arrow line and excerpt."""
    def to_dict(self) -> dict[str, Any]: ...
    def exception(self) -> BaseException:
        """The exception object that raising this diagnostic would give."""

# ------------------------------------------------------------------------------------------------------------ programs

class Node:
    """Base of every statement-view object (04 SER-10); read-only."""

    span: Span
    def as_python(self, prefix: str = "pl", concise: bool = False, format: bool = True) -> str: ...

class Op:
    """An operation or a callee, as a call in a body names it."""

    name: str

class Function(Node):
    name: str
    func_type: enum.IntEnum
    level: enum.IntEnum | None
    role: enum.IntEnum | None
    params: list[Any]
    param_directions: list[enum.IntEnum]
    return_types: list[Any]
    body: Node
    attrs: Mapping[str, Any]
    requires_runtime_binding: bool
    is_sub_worker: bool
    auto_scope: bool
    return_params: list[int]
    """Per result: index of the parameter whose storage it is, or -1 (01 L-50)."""
    host_function: Callable[..., Any] | None
    """Sub-workers: the Python function."""

class Program(Node):
    name: str
    arch: str
    lowered: bool
    functions: Mapping[str, Function]
    entry: Function | None
    """04 PRG-2; None for a multi-entry program."""
    entries: list[str]
    """Names of the Orchestration functions when there is no single entry, else []."""
    is_distributed: bool
    """Some function is at level HOST or above."""
    sub_workers: dict[str, Function]
    warnings: list[Diagnostic]
    def get_function(self, name: str) -> Function | None: ...
    def clone(self, arch: str | None = None) -> Program:
        """A deep copy, read again for another architecture if asked (``"a2a3"``, ``"a5"``)."""

def python_print(node: Node, prefix: str = "pl", concise: bool = False, explicit_layout: bool = False) -> str: ...
def structural_equal(a: Node, b: Node, enable_auto_mapping: bool = False) -> bool: ...
def structural_difference(a: Node, b: Node) -> str | None:
    """Path to the first difference with both sides printed; None if equal."""

def structural_hash(node: Node, enable_auto_mapping: bool = False) -> int: ...
def serialize(node: Program | Function) -> bytes: ...
def deserialize(data: bytes) -> Program | Function: ...
def verify(program: Program) -> list[Diagnostic]: ...
def name_function(program: Program, identifier: str, name: str) -> None:
    """A function of a text gets back the name that was written as an identifier; before the program is used."""

def print_full_names(program: Program) -> None:
    """A program read from the text of a lowered one prints as it was written."""

def pass_names() -> list[str]: ...
def apply_pass(
    name: str,
    program: Program,
    *,
    planner: str = "PYPTO",
    double_buffer_c: bool = False,
    analyze_auto_scopes_for_deps: bool = False,
    world_size: int = 0,
) -> Program: ...

# --------------------------------------------------------------------------------------------------------- compilation

class ParamInfo:
    """A parameter of an entry."""

    name: str
    direction: enum.IntEnum
    """As declared (``ParamDirection``)."""
    effective_direction: enum.IntEnum
    is_tensor: bool
    shape: list[int] | None
    """-1 for a dynamic dimension; None for a scalar."""
    dims: list[Any] | None
    """As ``shape`` with the text of symbolic extents."""
    dtype: DataType
    type_text: str
    location: str
    """``file:line:column`` of the declaration."""
    baked: int | float | bool | None
    """Value of a compiled-in scalar (04 JIT-20)."""

class Compiled:
    """A lowered program with its executable form: immutable, shared by threads, no device."""

    name: str
    arch: str
    distributed: bool
    source: Program | None
    """The program as handed in."""
    program: Program
    """After lowering."""
    entry: str | None
    entries: list[str]
    sub_workers: dict[str, bool]
    """Name -> needs a callback at run time."""
    memory: list[dict[str, Any]]
    """Memory report: ``kernel space used limit tiles`` (04 OBS-19)."""
    warnings: list[Diagnostic]
    """All findings of building and compiling; Python warnings were already issued for them."""
    def params(self, entry: str | None = None) -> list[ParamInfo]: ...
    def returns(self, entry: str | None = None) -> list[int]:
        """Per result of the entry: index of the parameter it is, or -1."""
    def kernels(self) -> list[tuple[str, str]]:
        """(name, "aic" / "aiv" / "mix") of every kernel function, in order."""
    def uses_sdma(self) -> bool: ...
    def save(self) -> bytes:
        """Portable bytes: the executable form and the program it was made from (04 PLAT-5)."""
    def disassemble(self) -> str: ...

def compile(
    program: Program,
    *,
    arch: str = "a2a3",
    planner: str = "PYPTO",
    double_buffer_c: bool = False,
    analyze_auto_scopes_for_deps: bool = False,
    world_size: int = 0,
    device_ids: Sequence[int] = (),
    devices: bool = False,
    after: Callable[[str, Program], None] | None = None,
) -> Compiled:
    """Lowers and emits. ``after`` is called after each pass with its name and a copy of the program. Issues Python
    warnings for new findings; raises the exception classes of ``pypto._errors``. Releases the GIL while it works."""

def device_form(program: Program) -> Program:
    """The lowered program as a device runs it: kernels of tiles, mixed ones as pairs (01 L-67)."""

def load(data: bytes) -> Compiled:
    """Inverse of :meth:`Compiled.save`. ValueError for damaged bytes."""

def set_poll_hook(hook: Callable[[], object] | None) -> None:
    """For tests: what compiling, printing, saving and loading call at every poll instead of looking for signals."""

def set_emit_debug(force_copies: bool, chains: bool) -> None:
    """For tests: how programs compiled from now on in this process are emitted. ``force_copies`` copies every tile that
    is assigned or sliced; without ``chains`` element-wise operations run one by one. Results do not depend on it."""

def instruction_sets() -> list[str]:
    """The host's instruction sets that this build contains, the best one first."""

def use_instruction_set(name: str) -> None:
    """For tests: the one that programs compiled from now on use; "" is the best one. Results do not depend on it."""

# ------------------------------------------------------------------------------------------------------------- running

class RunOptions:
    """Options of a run; every field can be assigned. Reusable."""

    schedule: str
    seed: int
    replay: str
    threads: int
    checks: str
    step_limit: int
    collect: bool
    delay_remote: bool
    rank_weights: dict[int, int]
    device_time: bool
    device_ids: list[int]
    ring_task_window: int
    ring_heap: int
    ring_dep_pool: int
    want_task_graph: bool
    want_timeline: bool
    timeline_level: int
    def __init__(self, **fields: Any) -> None: ...
    def use_hardware(self, name: str, params: dict[str, dict[str, float]]) -> None:
        """Replaces parameters of the timing model, by architecture and key; `name` says where they come from."""

    def stop(self) -> None:
        """Asks a run that uses these options to end; from any thread."""

class DeviceArg:
    """A resident tensor as argument: memory at ``pointer`` on ``rank``; ``keep`` is held during the run."""

    def __init__(
        self,
        pointer: int,
        dtype: DataType,
        shape: Sequence[int],
        *,
        rank: int = 0,
        keep: object = None,
        unwritten: bool = False,
    ) -> None: ...

class StackedArg:
    """A stacked resident tensor: row ``i`` at ``pointers[i]`` on ``ranks[i]``."""

    def __init__(
        self,
        pointers: Sequence[int],
        dtype: DataType,
        full_shape: Sequence[int],
        ranks: Sequence[int],
        *,
        keep: object = None,
    ) -> None: ...

class World:
    """Devices, windows and signals that outlive one run."""

    window_groups: int

def make_world(device_ids: Sequence[int], persistent: bool = False, reset: bool = True) -> World: ...

class RunReport:
    world_size: int
    device_time_us: float
    host_time_us: float
    ok: bool
    ranks: list[dict[str, Any]]
    """``rank tasks kernels comm by_peer rounds peak_memory device_time_us``; ``comm`` is a dict of the counters of 03 K-1."""  # noqa: E501
    diagnostics: list[Diagnostic]
    tasks: list[dict[str, Any]]
    edges: list[dict[str, Any]]
    windows: list[dict[str, Any]]
    dispatches: list[dict[str, Any]]
    timed: bool
    parameter_source: str
    parameters: list[tuple[str, float, str]]
    """``key value tag`` of the timing model, when the virtual clock ran."""
    events: list[tuple[Any, ...]]
    """``kind rank core pipe begin_us end_us name kernel file line bytes peer id`` of the timeline."""

def check_args(
    compiled: Compiled,
    args: Sequence[Any],
    *,
    entry: str | None = None,
    function: str | None = None,
    devices: bool = True,
) -> None:
    """Checks one argument per parameter (04 ARG-1 - ARG-12) without running; also issues W-ARG-OVERLAP and
    W-DYN-EXTENT. ``devices=False``: resident tensors are refused with the one-shot text (DEV-5)."""

def run(
    compiled: Compiled,
    args: Sequence[Any],
    *,
    entry: str | None = None,
    options: RunOptions | None = None,
    callbacks: Mapping[str, Callable[[list[Any]], Any]] | None = None,
    world: World | None = None,
    function: str | None = None,
    devices: bool = True,
    checked: bool = False,
) -> RunReport:
    """Runs once on the calling thread, in place; the GIL is released except in callbacks. Arguments are checked as by
    ``check_args`` (``checked`` is accepted and changes nothing): arrays, numbers, ctypes values, ``DeviceArg``, ``StackedArg``. ``callbacks``: by
    sub-worker name, called with ONE sequence of tensors (04 CBK-3); concrete sub-workers without entry run their own
    Python function. A failing run raises with the report as attribute ``report`` of the exception."""  # noqa: E501

def array_info(array: Any) -> tuple[int, DataType | None, tuple[int, ...], bool, bool, str, str] | None:
    """(address, dtype, shape, contiguous, writable, type name, device) of any array of ARG-1; None if it is no array. ``dtype``
    is None for an unsupported element type."""  # noqa: E501

def dtype_of(value: Any) -> DataType | None:
    """The DataType of a ``DataType``, torch dtype, NumPy dtype or their name; None if unsupported."""

def array_view(
    pointer: int, dtype: DataType, shape: Sequence[int], *, keep: object = None, torch: bool | None = None
) -> Any:
    """A NumPy (or torch, if it was imported) array over memory; no copy."""

def memory_copy(dst: int, src: int, nbytes: int) -> None:
    """memcpy with the GIL released."""

# --------------------------------------------------------------------------- reading Python functions (pypto.language)

class FunctionSource:
    """A decorated Python function as the front end takes it."""

    name: str
    location: str
    span: dict[str, Any]
    has_self: bool
    def __init__(
        self,
        function: Callable[..., Any],
        decl: str,
        *,
        type: int = -1,
        level: int = -1,
        role: int = -1,
        auto_scope: bool = True,
        strict_ssa: bool = False,
        attrs: dict[str, Any] | None = None,
        external_source: str = "",
        captured: dict[str, Any] | None = None,
    ) -> None: ...
    def decorator_keywords(self) -> list[Any]: ...
    def place_of(self, parameter: str) -> str:
        """``file:line:column`` of a parameter's declaration; of the function for an empty name."""

class RuntimeMarker:
    """Class of pl.RUNTIME."""

class Signature:
    """Parameters of a JIT function: (name, "tensor" / "scalar" / "any", dtype or None, shape or None)."""

    def __init__(
        self,
        function: str,
        params: list[tuple[str, str, DataType | None, list[int] | None]],
        source: FunctionSource,
    ) -> None: ...
    def key(self, args: list[Any]) -> bytes: ...

class Specialization:
    """The key of one JIT specialisation: argument pattern, options, guards."""

    guard_count: int
    def holds(self) -> bool: ...
    def matches(self, raw: bytes, options: tuple[Any, ...]) -> bool: ...

def build_program(name: str, functions: Sequence[FunctionSource], strict_ssa: bool, cls: object) -> Program: ...
def build_function(source: FunctionSource) -> Function: ...
def build_jit(
    function: FunctionSource, signature: Signature, args: list[Any], arch: str, options: tuple[Any, ...]
) -> tuple[Program, Specialization]: ...
def annotation_names(code: object) -> list[str]: ...
def source_available(path: str) -> bool: ...
def register_text(path: str, text: str, shown: str, source_map: object) -> None: ...
def forget_text(path: str) -> None: ...
def register_value_classes(tensor_view: type, tile_view: type, memref: type) -> None: ...
def register_function_class(cls: type) -> None: ...
def read_number(value: object) -> tuple[int | float | bool, str | None] | None: ...
def type_text(value: object) -> str: ...
def array_dtype_text(value: object) -> str: ...
def make_diagnostic(
    message: str, span: dict[str, Any] | None, hint: str = "", note: str = "", lines: list[str] = ...
) -> Diagnostic: ...
def get_op(name: str) -> Any: ...

# ------------------------------------------------------------------------------------------------------------ analysis

def choose_l0_tile(config: dict[str, Any]) -> dict[str, Any]:
    """The tile of a matrix product (04 section 23); fields of the config and of the result by name."""

def comm_skeleton(program: Program, kernel: str | None = None, fold: bool = True) -> str:
    """The communication of one kernel, or of all (03 L-2)."""
