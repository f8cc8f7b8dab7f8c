# SPDX-License-Identifier: Apache-2.0
"""`python -m pypto.runtime.execute_artifact`: run directories of the harness and say how it went."""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pypto.runtime._config import (
    _SWIMLANE_CLI_HELP,
    _SWIMLANE_FULL_LEVEL,
    _DfxOpts,
    swimlane_level,
)


def add_collection_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags that say what a run collects."""
    parser.add_argument(
        "--enable-chip-swimlane", "--swimlane", action="store_true", dest="swimlane", help=_SWIMLANE_CLI_HELP
    )
    parser.add_argument("--chip-swimlane-level", "--swimlane-level", type=int, dest="swimlane_level", metavar="N")
    parser.add_argument("--enable-l2-swimlane", action="store_true", dest="swimlane", help=argparse.SUPPRESS)
    parser.add_argument(
        "--dump-args",
        "--enable-dump-args",
        type=int,
        nargs="?",
        const=2,
        default=0,
        metavar="L",
        help="1: marked arguments, 2: all",
    )
    parser.add_argument(
        "--enable-pmu", "--pmu", type=int, nargs="?", const=2, default=0, metavar="N", dest="pmu", help="counter group"
    )
    parser.add_argument("--enable-dep-gen", "--dep-gen", action="store_true", dest="dep_gen", help="task graph")
    parser.add_argument(
        "--enable-scope-stats", "--scope-stats", action="store_true", dest="scope_stats", help="peak use of each scope"
    )


def collection_of(options: argparse.Namespace) -> _DfxOpts:
    """Return what the flags ask for."""
    level = options.swimlane_level
    if level is None:
        level = _SWIMLANE_FULL_LEVEL if options.swimlane else 0
    return _DfxOpts(
        swimlane_level(level), options.dump_args or 0, options.pmu or 0, options.dep_gen, options.scope_stats
    )


def _run_one(work_dir: Path, platform: str, device_id: int, dfx: _DfxOpts, validate: bool) -> str:
    """Run one directory; return PASS, FAIL or INFRA."""
    from pypto._errors import PlatformUnavailableError
    from pypto.runtime import device_runner, runner

    try:
        loaded, name, config = device_runner.compile_and_assemble(work_dir, platform)
        golden = work_dir / "golden.py"
        if not golden.is_file():
            raise FileNotFoundError(f"{golden} does not exist")
    except Exception:
        traceback.print_exc(file=sys.stdout)
        return "INFRA"
    try:
        runner._execute_on_device(
            work_dir,
            golden,
            loaded,
            name,
            platform,
            device_id,
            dfx,
            validate,
            work_dir / "data" / "actual",
            bool(config.get("enable_sdma")),
        )
    except PlatformUnavailableError:
        traceback.print_exc(file=sys.stdout)
        return "INFRA"
    except Exception:
        traceback.print_exc(file=sys.stdout)
        return "FAIL"
    return "PASS"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m pypto.runtime.execute_artifact", description=__doc__)
    parser.add_argument("--work-dir", type=Path)
    parser.add_argument("--platform")
    parser.add_argument("--device-id", type=int, required=True)
    parser.add_argument("--batch-manifest", type=Path)
    parser.add_argument("--no-validate", action="store_true")
    add_collection_flags(parser)
    options = parser.parse_args(argv)
    if (options.work_dir is None) == (options.batch_manifest is None):
        parser.error("give either --work-dir (with --platform) or --batch-manifest")
    dfx = collection_of(options)
    if options.work_dir is not None:
        if options.platform is None:
            parser.error("--work-dir needs --platform")
        result = _run_one(options.work_dir, options.platform, options.device_id, dfx, not options.no_validate)
        print(f"PYPTO_EXEC_RESULT={result}" + (f" device={options.device_id}" if result == "PASS" else ""), flush=True)
        return 0 if result == "PASS" else 1
    try:
        cases: list[dict[str, Any]] = json.loads(options.batch_manifest.read_text(encoding="utf-8"))
        pairs = [(Path(c["work_dir"]), c["platform"]) for c in cases]
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"cannot read the manifest {options.batch_manifest}: {error!r}")
        print("PYPTO_EXEC_RESULT=INFRA", flush=True)
        return 1
    passed = True
    for work_dir, platform in pairs:
        result = _run_one(work_dir, platform, options.device_id, dfx, not options.no_validate)
        passed = passed and result == "PASS"
        print(
            f"PYPTO_EXEC_RESULT={result} work_dir={work_dir}"
            + (f" device={options.device_id}" if result == "PASS" else ""),
            flush=True,
        )
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
