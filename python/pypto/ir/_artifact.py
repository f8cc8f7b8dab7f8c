# SPDX-License-Identifier: Apache-2.0
"""The artifact directory: what is written by a compile and read by `from_dir`."""

from __future__ import annotations

import contextlib
import os
import time
import zlib
from _thread import allocate_lock, get_ident
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pypto import _core, _env
from pypto._lazy import LazyModule
from pypto._log import log_info
from pypto._platform import backend_of, check_platform, default_platform, is_hardware
from pypto.ir import _texts
from pypto.ir._comm_domains import comm_domains
from pypto.ir._options import CompileOptions
from pypto.ir.distributed_config import DistributedConfig
from pypto.passes._context import runtime_kind_from_name

if TYPE_CHECKING:
    import json
    from pathlib import Path
else:
    json = LazyModule("json")

PROGRAM = "program.bin"
SINGLE_META = "compiled_meta.json"
DIST_META = "distributed_meta.json"
MANIFEST = "report/generated.json"
_SCHEMA = {SINGLE_META: 1, DIST_META: 2}

_lock = allocate_lock()
_busy: set[str] = set()


def _after_fork() -> None:
    global _lock
    _lock = allocate_lock()
    _busy.clear()


os.register_at_fork(after_in_child=_after_fork)


# ------------------------------------------------------------------------------------------------- directories


@contextlib.contextmanager
def _explained(folder: str) -> Iterator[None]:
    """Say of an error of the file system what was to be written, where, and what to pass instead."""
    try:
        yield
    except OSError as error:
        # The errors of making a missing parent name the parent; others may be of what a compile runs meanwhile.
        path = error.filename
        if error.errno is None or not isinstance(path, str) or not (path.startswith(folder) or folder.startswith(path)):
            raise
        reason = error.strerror
        if isinstance(error, FileExistsError):
            reason = "it is a file, not a directory"
        hint = "pass output_dir= (RunConfig: save_kernels_dir=) or set PYPTO_PROG_BUILD_DIR to a writable directory"
        raise type(error)(
            error.errno, f"cannot write the compiled program below {folder!r}: {reason}; {hint}", error.filename
        ) from error


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        raise type(error)(
            error.errno,
            "cannot write the compiled program: the working directory does not exist any more; change to one that "
            "does, or pass an absolute output_dir= (RunConfig: save_kernels_dir=)",
        ) from error


def _fresh(name: str) -> str:
    """Make and return a new directory for program `name` below the build directory."""
    base = _env.get("PYPTO_PROG_BUILD_DIR", "build_output")
    if not os.path.isabs(base):
        base = os.path.join(_working_directory(), base)
    stem = f"{name}_{time.strftime('%Y%m%d_%H%M%S')}"
    with _explained(base):
        os.makedirs(base, exist_ok=True)
        for number in range(1, 100000):
            folder = os.path.join(base, stem if number == 1 else f"{stem}_{number}")
            try:
                os.mkdir(folder)
                return folder
            except FileExistsError:
                continue
    raise OSError(f"no free directory name for {stem} in {base}")


@contextlib.contextmanager
def directory(output_dir: str | None, name: str) -> Iterator[str]:
    """Hold the artifact directory of one compile: the one asked for, or a new one.

    Raises
    ------
    RuntimeError
        If another compile of this process is writing the same directory.
    """
    if output_dir is None:
        folder, fresh = _fresh(name), True
    else:
        if "\0" in output_dir:
            raise ValueError(f"output_dir {output_dir!r} contains a null character, which no path can")
        folder = output_dir if os.path.isabs(output_dir) else os.path.join(_working_directory(), output_dir)
        fresh = not os.path.exists(folder)
        with _explained(folder):
            os.makedirs(folder, exist_ok=True)
    key = os.path.realpath(folder)
    with _lock:
        if key in _busy:
            raise RuntimeError(f"another compile is writing {folder} right now; give each compile its own output_dir")
        _busy.add(key)
    try:
        with _explained(folder):
            yield folder
    except BaseException:
        if fresh:
            with contextlib.suppress(OSError):
                os.rmdir(folder)  # only if nothing was written
        raise
    finally:
        with _lock:
            _busy.discard(key)


def _write_text(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def write_atomic(path: str, text: str) -> None:
    """Write a file so that a reader sees the old or the new content, never a part."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.{get_ident()}.tmp")
    _write_text(temporary, text)
    os.replace(temporary, path)


def _put(folder: str, relative: str, text: str, manifest: dict[str, list[int]] | None) -> None:
    path = os.path.join(folder, relative)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    data = text.encode()
    with open(path, "wb") as file:
        file.write(data)
    if manifest is not None:
        manifest[relative] = [len(data), zlib.crc32(data)]


# ----------------------------------------------------------------------------------------------------- writing


def write(folder: str, compiled: Any, extras: Any = None) -> None:
    """Write everything that belongs to `compiled` into `folder`."""
    native = compiled._native
    if compiled._options.dump_ptoas_passes:
        log_info("dump_ptoas_passes: no vendor assembler here, nothing to dump")
    manifest: dict[str, list[int]] = {}
    _remove_foreign(folder, native)
    kernels = _texts.kernel_functions(native)
    if native.distributed:
        _write_distributed(folder, compiled, kernels, manifest)
    elif native.entries:
        for entry in native.entries:
            _write_entry(folder, f"next_levels/{entry}/", compiled, entry, kernels, manifest)
    else:
        _write_entry(folder, "", compiled, native.entry, kernels, manifest)
    with open(os.path.join(folder, PROGRAM), "wb") as file:
        file.write(native.save())
    if extras is not None and extras.stages:
        dumps = os.path.join(folder, "passes_dump")
        os.makedirs(dumps, exist_ok=True)
        for old in os.listdir(dumps):
            if old[:2].isdigit() and old[2:3] == "_":
                os.unlink(os.path.join(dumps, old))
        for number, (label, text) in enumerate(extras.stages):
            _write_text(os.path.join(dumps, f"{number:02d}_{label}.py"), text if text.endswith("\n") else text + "\n")
    _write_report(folder, native, extras)
    if _env.flag("PYPTO_EMIT_DEBUG_RUNNER", True) and not native.entries:
        _put(folder, "debug/run.py", _texts.debug_runner(compiled), None)
    write_atomic(os.path.join(folder, MANIFEST), json.dumps(manifest, indent=1, sort_keys=True))
    meta = DIST_META if native.distributed else SINGLE_META
    write_atomic(os.path.join(folder, meta), json.dumps(_metadata(compiled, _SCHEMA[meta]), indent=2) + "\n")


def _remove_foreign(folder: str, native: Any) -> None:
    """Remove markers of another kind of build, so that `from_dir` cannot mistake the directory."""
    stale = [SINGLE_META if native.distributed else DIST_META]
    if not native.distributed:
        stale += ["comm_domains.json", "orchestration/host_orch.py"]
    if native.distributed or native.entries:
        stale.append("kernel_config.py")
    for name in stale:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))
    # Texts of an earlier build; files that somebody else put there stay.
    try:
        with open(os.path.join(folder, MANIFEST), encoding="utf-8") as file:
            earlier = json.load(file)
    except (OSError, ValueError):
        earlier = {}
    for name in earlier:
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(folder, name))


def _write_entry(
    folder: str, below: str, compiled: Any, entry: str, kernels: dict[str, Any], manifest: dict[str, list[int]]
) -> None:
    """Write the directory of one device entry: orchestration, kernels, `kernel_config.py`."""
    native, options = compiled._native, compiled._options
    used = _texts.kernels_of(native, entry, kernels)
    _put(folder, f"{below}orchestration/{entry}.cpp", _texts.orchestration(native, entry, used), manifest)
    extension = "pto" if options.skip_ptoas else "cpp"
    if options.skip_ptoas or is_hardware(options.platform):
        for unit in _texts.units(used):
            text = _texts.kernel_unit(native, unit, options, pto=options.skip_ptoas)
            for kind, name in unit.files(options.skip_ptoas):
                _put(folder, f"{below}kernels/{kind}/{name}.{extension}", text, manifest)
            if not options.skip_ptoas:
                _put(
                    folder,
                    f"{below}ptoas/{unit.name}.pto",
                    _texts.kernel_unit(native, unit, options, pto=True),
                    manifest,
                )
    _put(
        folder,
        f"{below}kernel_config.py",
        _texts.kernel_config(entry, used, options.runtime_config(native), extension),
        manifest,
    )


def _write_distributed(folder: str, compiled: Any, kernels: dict[str, Any], manifest: dict[str, list[int]]) -> None:
    native = compiled._native
    host = native.program.get_function(native.entry)
    _put(folder, "orchestration/host_orch.py", _texts.host_orchestration(native, host), manifest)
    for entry in _texts.device_entries(native):
        _write_entry(folder, f"next_levels/{entry}/", compiled, entry, kernels, manifest)
    required = sorted(name for name, needs in native.sub_workers.items() if needs)
    os.makedirs(os.path.join(folder, "sub_workers"), exist_ok=True)
    for name, needs in native.sub_workers.items():
        if not needs:
            _put(folder, f"sub_workers/{name}.py", _texts.sub_worker(compiled, name), manifest)
    write_atomic(os.path.join(folder, "sub_workers", "__required__.json"), json.dumps(required))
    write_atomic(
        os.path.join(folder, "comm_domains.json"),
        json.dumps(comm_domains(host, compiled._options.world_size), indent=2) + "\n",
    )


def _write_report(folder: str, native: Any, extras: Any) -> None:
    report = os.path.join(folder, "report")
    os.makedirs(report, exist_ok=True)
    memory: dict[str, Any] = {}
    for row in native.memory:
        memory.setdefault(row["kernel"], {})[getattr(row["space"], "name", str(row["space"]))] = {
            "capacity": row["limit"],
            "high_water": row["used"],
            "tiles": row["tiles"],
        }
    write_atomic(os.path.join(report, "memory.json"), json.dumps(memory, indent=1) + "\n")
    hints = [d.render() for d in native.warnings]
    if hints:
        _write_text(os.path.join(report, "perf_hints.log"), "\n\n".join(hints) + "\n")
    if extras is not None and extras.profile is not None:
        from pathlib import Path

        extras.profile.write_report(Path(report))


def _metadata(compiled: Any, schema: int) -> dict[str, Any]:
    options = compiled._options
    data: dict[str, Any] = {
        "schema": schema,
        "name": compiled.name,
        "params": [
            {"name": p.name, "direction": p.direction.name, "shape": p.shape, "dtype": str(p.dtype)}
            for p in compiled._params
        ],
        "num_return_types": len(compiled._returns),
        "platform": options.platform,
        "backend_type": backend_of(options.platform).name,
        "runtime": options.runtime_name,
    }
    world = options.distributed_config
    if schema == 2 and world is not None:
        data["distributed_config"] = {
            "device_ids": list(world.device_ids),
            "num_sub_workers": world.num_sub_workers,
            "runtime": world.runtime,
            "aicpu_thread_num": world.aicpu_thread_num,
        }
    return data


# ----------------------------------------------------------------------------------------------------- reading


def _bad(path: Path, what: str) -> ValueError:
    return ValueError(f"{path}: {what}. The directory was written by another version or is damaged: recompile.")


def read_metadata(folder: Path, meta: str) -> dict[str, Any]:
    """Return the checked metadata of an artifact directory."""
    path = folder / meta
    if not path.is_file():
        other = DIST_META if meta == SINGLE_META else SINGLE_META
        if (folder / other).is_file():
            why = (
                "it holds a distributed program: load it with DistributedCompiledProgram.from_dir"
                if other == DIST_META
                else "it holds a single-device program: load it with CompiledProgram.from_dir"
            )
        elif not folder.is_dir():
            why = "the directory does not exist"
        else:
            why = "the compile failed or did not finish, or this is not an artifact directory"
        raise FileNotFoundError(f"{path} does not exist; likely reason: {why}. Otherwise recompile the program.")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise _bad(path, f"cannot be read ({error})") from None
    if not isinstance(data, dict):
        raise _bad(path, f"expected an object, got {type(data).__name__}")
    if data.get("schema") != _SCHEMA[meta]:
        raise _bad(path, f"field 'schema' is {data.get('schema')!r}, expected {_SCHEMA[meta]}")
    params = data.get("params")
    if not isinstance(params, list):
        raise _bad(path, f"field 'params' must be a list, got {type(params).__name__}")
    for i, item in enumerate(params):
        for field in ("name", "direction", "shape", "dtype"):
            if not isinstance(item, dict) or field not in item:
                raise _bad(path, f"field 'params[{i}].{field}' is missing")
        if item["direction"] not in ("In", "Out", "InOut"):
            raise _bad(path, f"field 'params[{i}].direction' is {item['direction']!r}, expected In, Out or InOut")
    for field, kind in (("num_return_types", int), ("platform", str), ("backend_type", str)):
        if not isinstance(data.get(field), kind):
            raise _bad(path, f"field {field!r} must be of type {kind.__name__}, got {data.get(field)!r}")
    return data


def read(
    folder: Path, meta: str, platform: str | None, backend_type: Any, world: DistributedConfig | None = None
) -> tuple[Any, CompileOptions]:
    """Load the program of an artifact directory and the choices it was made with."""
    if platform is not None:
        check_platform(platform)
    data = read_metadata(folder, meta)
    path = folder / meta
    if platform is None:
        platform = default_platform(backend_type) if backend_type is not None else data["platform"]
    try:
        check_platform(platform)
    except ValueError as error:
        raise _bad(path, f"field 'platform': {error}") from None
    if meta == DIST_META and world is None:
        stored = data.get("distributed_config")
        if not isinstance(stored, dict):
            raise _bad(path, "field 'distributed_config' is missing")
        try:
            world = DistributedConfig(**stored)
        except (TypeError, ValueError) as error:
            raise _bad(path, f"field 'distributed_config': {error}") from None
    binary = folder / PROGRAM
    if not binary.is_file():
        raise FileNotFoundError(
            f"{binary} does not exist; the compile failed or the file was removed. Recompile the program."
        )
    try:
        native = _core.load(binary.read_bytes())
    except ValueError as error:
        raise _bad(binary, str(error)) from None
    names = [p.name for p in native.params()] if not native.entries else []
    if names != [p["name"] for p in data["params"]]:
        raise _bad(path, f"field 'params' names {[p['name'] for p in data['params']]}, the program has {names}")
    try:
        runtime = runtime_kind_from_name(data.get("runtime", "tensormap_and_ringbuffer"))
    except ValueError as error:
        raise _bad(path, f"field 'runtime': {error}") from None
    assert platform is not None
    return native, CompileOptions(platform=platform, distributed_config=world, runtime=runtime)


_warned: set[tuple[str, int, int]] = set()


def warn_edited(folder: Path) -> None:
    """Say in one warning which generated text was edited: the stored program runs, not the text."""
    path = folder / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    for relative, (size, crc) in manifest.items():
        try:
            data = (folder / relative).read_bytes()
        except OSError:
            continue
        now = (str(folder / relative), len(data), zlib.crc32(data))
        if now[1:] != (size, crc) and now not in _warned:
            _warned.add(now)
            from pypto.runtime.log_config import runtime_logger

            runtime_logger().warning(
                "%s was edited, but the simulator runs the stored program (%s), not the text; the edit has no effect",
                folder / relative,
                PROGRAM,
            )
