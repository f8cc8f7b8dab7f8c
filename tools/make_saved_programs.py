#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes build/saved: the compiled programs of the examples and of the planted mistakes, with what their runs did.

`make saved` runs it; pypto_core_tests then loads and runs the same programs without Python (04 PLAT-5), in every build,
the ones with sanitizers too. Nothing is done while the files belong to this checkout as it is.

NAME.bin is what `program.bin` of an artifact holds. NAME.case records one call of a program and several runs of it:

    "PYPTOCASE1", text file name of the program, text entry function ("" = the program's entry)
    u32 number of blobs, each u64 length and bytes
    u32 number of devices, i32 each
    u32 number of arguments, each
      u8 0    scalar: i64, f64
      u8 1    tensor: u8 dtype code, u8 rank, i64 extents, u32 blob of the input
    u32 number of listed ids + 1 and each as text: what a planted file says must be reported; 0 = nothing is said
    u32 number of runs, each
      u8 schedule, u64 seed, u8 checks    in the order of the enumerations of core/machine/run.h
      text error                          "" = none was raised
      u32 number of reports, each a text as `report_text` makes it
      u32 blob per tensor                 the result

All numbers are little-endian; a text is its u32 length and UTF-8 bytes.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.util
import io
import itertools
import logging
import os
import runpy
import struct
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tests" / "check" / "planted")]
from pypto import _core  # noqa: E402

PLANTED = Path("tests/check/planted")
LARGE = Path("tests/core/large_operations.py")
PLATFORMS = ("a2a3sim", "a5sim")
SCHEDULES = ("fast", "timed", "explore")
CHECKS = ("default", "strict", "off")
RUNS = (
    ("fast", 0, "default"),
    ("fast", 0, "strict"),
    ("fast", 0, "off"),
    ("timed", 0, "default"),
    ("explore", 1, "default"),
    ("explore", 2, "strict"),
)

# ---------------------------------------------------------------- what is called

PAIR = ("0,1",)
ANY = ("0,1", "0,1,2", "3,1,0,2")
LADDER = (
    # step, alternatives of flags, worlds
    ("01_hello_rank", ((),), PAIR),
    ("02_programming_model", ((),), PAIR),
    ("03_window_buffer", ((),), PAIR),
    ("04_barrier", ((), ("--use-builtin",)), PAIR),
    ("05_remote_load_store", (("--mode", "load"), ("--mode", "store")), PAIR),
    ("06_put_get", (("--mode", "put"), ("--mode", "get")), PAIR),
    ("07_dynamic_rank_count", (("--mode", "put"), ("--mode", "get")), ANY),
    ("08_allreduce_mesh", (("--cost",),), ANY),
    ("09_allreduce_two_phase", (("--cost",),), ANY),
    ("10_allreduce_ring", (("--cost",),), ANY),
    ("11_allreduce_reveal", (("--cost", "--mode", "mesh"), ("--cost", "--mode", "ring"), ("--cost",)), ANY),
    ("12_broadcast", tuple(("--root", r, *b) for r in "01" for b in ((), ("--use-builtin",))), ANY),
    ("13_allgather", (("--cost",), ("--use-builtin",)), ANY),
    ("14_reduce_scatter", (("--cost",), ("--use-builtin",)), ANY),
    ("15_all_to_all", (("--cost",), ("--use-builtin",), ("--ragged",)), ANY),
    ("16_putting_it_together", (("--cost",),), ANY),
)


def calls() -> list[tuple[str, Path, list[str]]]:
    """Name, file and arguments of every run of an example."""
    found = []
    for folder in ("beginner", "intermediate"):
        for path in sorted((ROOT / "examples" / folder).glob("*.py")):
            found += [(f"{path.stem}_{p}", path.relative_to(ROOT), ["-p", p]) for p in PLATFORMS]
    wanted = [("distributed", *row) for row in LADDER]
    wanted.append(("models", "moe_dispatch_combine", ((),), ("0,1", "0,1,2,3")))
    for folder, step, flags, worlds in wanted:
        for words, world, platform in itertools.product(flags, worlds, PLATFORMS):
            label = "_".join(w.strip("-") for w in words if w != "--cost")
            name = "_".join(p for p in (step, label, f"P{world.count(',') + 1}", platform) if p)
            found.append((name, Path("examples", folder, f"{step}.py"), ["-p", platform, "-d", world, *words]))
    found.append(("large_operations", LARGE, []))
    return found


# ---------------------------------------------------------------- one call


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<I", len(data)) + data


def report_text(diagnostic: Any) -> str:
    """Severity, id, places `file:line@rank` of its accesses or waits (else its own), message."""
    places = [*diagnostic.accesses, *diagnostic.waits] or [diagnostic]
    where = sorted(
        {f"{os.path.basename(p.file or '')}:{p.line or 0}@{-1 if p.rank is None else p.rank}" for p in places}
    )
    return f"{diagnostic.severity} {diagnostic.id or '-'} {' '.join(where)} | {diagnostic.message}"


def scalar(param: Any, value: Any) -> bytes:
    number, _ = _core.read_number(value)
    if param.dtype.is_float():
        number = float(np.float32(number)) if str(param.dtype) == "fp32" else float(number)
        return struct.pack("<Bqd", 0, int(number), number)
    return struct.pack("<Bqd", 0, int(number), float(number))


class Recorder:
    """Stands in for `_core.run` while something runs, and writes one case for each program and entry that is called."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.run = folder, _core.run
        self.binaries: dict[bytes, str] = {}
        self.cases = 0
        self.skipped: list[str] = []
        self.begin("")

    def begin(self, name: str, listed: set[str] | None = None) -> None:
        self.name, self.listed, self.count = name, listed, 0
        self.seen: list[Any] = []

    def __call__(self, compiled: Any, args: Any, **options: Any) -> Any:
        entry = options.get("entry")
        if not any(c is compiled and e == entry for c, e in self.seen):
            self.seen.append((compiled, entry))
            if compiled.sub_workers or any(isinstance(a, (_core.DeviceArg, _core.StackedArg)) for a in args):
                self.skipped.append(self.name)
            else:
                self.save(compiled, args, entry, options.get("options"))
        return self.run(compiled, args, **options)

    def binary(self, compiled: Any, name: str) -> str:
        data = compiled.save()
        key = hashlib.sha256(data).digest()
        if key not in self.binaries:
            self.binaries[key] = f"{name}.bin"
            (self.folder / f"{name}.bin").write_bytes(data)
        return self.binaries[key]

    def save(self, compiled: Any, args: Any, entry: str | None, options: Any) -> None:
        name = f"{self.name}_{self.count}" if self.count else self.name
        self.count += 1
        self.cases += 1
        params = compiled.params(entry)
        blobs: dict[bytes, int] = {}

        def blob(array: Any) -> bytes:
            return struct.pack("<I", blobs.setdefault(np.ascontiguousarray(array).tobytes(), len(blobs)))

        devices = list(options.device_ids) if options else [0]
        call = struct.pack(f"<I{len(devices)}iI", len(devices), *devices, len(params))
        for param, value in zip(params, args, strict=True):
            if not param.is_tensor:
                call += scalar(param, param.baked if param.baked is not None else value)
                continue
            dtype, shape = _core.array_info(value)[1:3]
            call += struct.pack(f"<BBB{len(shape)}q", 1, dtype.code(), len(shape), *shape) + blob(value)
        runs = struct.pack("<I", len(RUNS))
        for schedule, seed, checks in RUNS:
            copies = [np.array(a, copy=True) if p.is_tensor else a for p, a in zip(params, args, strict=True)]
            error, report = "", None
            wishes = _core.RunOptions(
                schedule=schedule, seed=seed, checks=checks, collect=True, threads=1, device_ids=devices
            )
            try:
                report = self.run(compiled, copies, entry=entry, options=wishes)
            except Exception as e:
                report = getattr(e, "report", None)
                if report is None:
                    raise
                error = e.diagnostic.message
            found = sorted({report_text(d) for d in report.diagnostics})
            runs += struct.pack("<BQB", SCHEDULES.index(schedule), seed, CHECKS.index(checks)) + text(error)
            runs += struct.pack("<I", len(found)) + b"".join(text(f) for f in found)
            runs += b"".join(blob(a) for p, a in zip(params, copies, strict=True) if p.is_tensor)
        call += struct.pack("<I", 0 if self.listed is None else len(self.listed) + 1)
        call += b"".join(text(i) for i in sorted(self.listed or ())) + runs
        data = b"PYPTOCASE1" + text(self.binary(compiled, name)) + text(entry or "") + struct.pack("<I", len(blobs))
        data += b"".join(struct.pack("<Q", len(b)) + b for b in blobs)
        (self.folder / f"{name}.case").write_bytes(data + call)


# ---------------------------------------------------------------- everything


def record_example(recorder: Recorder, name: str, path: Path, argv: list[str]) -> None:
    recorder.begin(name, set())  # a correct program reports nothing
    sys.argv = [str(path), *argv]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        runpy.run_path(str(path), run_name="__main__")
    if not printed.getvalue().endswith("OK\n") or not recorder.count:
        sys.exit(f"{path} {' '.join(argv)}: no OK, or no program was run\n{printed.getvalue()}")


def record_planted(recorder: Recorder, path: Path) -> bool:
    """Call the program of a planted mistake at each of its sizes; False when the compiler or the call refuses it."""
    from pypto.ir.distributed_compiled_program import DistributedConfig
    from pypto.runtime import RunConfig, SimOptions
    from worlds import Report

    spec = importlib.util.spec_from_file_location(f"planted_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    listed = {e.id for e in module.EXPECT if isinstance(e, Report)}
    refused = any(type(e).__name__ == "Rejected" for e in module.EXPECT)
    before = recorder.cases
    for nranks, platform in itertools.product(module.P, PLATFORMS):
        program, arrays, _ = module.build(nranks)
        recorder.begin(f"planted_{path.stem}_P{nranks}_{platform}", None if refused else listed)
        distributed = DistributedConfig(device_ids=list(range(nranks)))
        try:
            compiled = program.compile(*arrays, config=RunConfig(platform=platform, distributed_config=distributed))
            compiled(*arrays, config=RunConfig(platform=platform, sim=SimOptions(collect=True)))
        except Exception:
            if not refused:
                raise
    return recorder.cases > before


def fingerprint() -> str:
    """Of everything that the files depend on."""
    inputs = [Path(_core.__file__), Path(__file__), ROOT / LARGE, *sorted((ROOT / PLANTED).glob("*.py"))]
    inputs += sorted((ROOT / "examples").rglob("*.py")) + sorted((ROOT / "python" / "pypto").rglob("*.py"))
    digest = hashlib.sha256()
    for path in inputs:
        digest.update(f"{path} ".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build" / "saved")
    folder = parser.parse_args().output.resolve()
    stamp, wanted = folder / "stamp", fingerprint()
    if stamp.is_file() and stamp.read_text().split()[0] == wanted:
        return 0
    folder.mkdir(parents=True, exist_ok=True)
    for old in [stamp, *folder.glob("*.bin"), *folder.glob("*.case")]:
        old.unlink(missing_ok=True)
    for name in [n for n in os.environ if n.startswith("PYPTO_")]:
        del os.environ[name]
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)  # what the runs find goes into the files
    recorder = _core.run = Recorder(folder)
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(ROOT):  # locations in the programs are relative
        os.environ["PYPTO_PROG_BUILD_DIR"] = scratch
        for name, path, argv in calls():
            record_example(recorder, name, path, argv)
        examples = recorder.cases
        planted = sorted(PLANTED.glob("[0-9]*.py"))
        refused = sum(not record_planted(recorder, path) for path in planted)
    if recorder.skipped:
        sys.exit(f"these need Python to run and cannot be saved for the tests: {sorted(set(recorder.skipped))}")
    print(
        f"saved: {examples} calls of examples, {recorder.cases - examples} of {len(planted) - refused} planted mistakes"
        f" ({refused} are refused before they run); {len(recorder.binaries)} programs in {folder}"
    )
    stamp.write_text(f"{wanted} {examples} {recorder.cases - examples} {len(recorder.binaries)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
