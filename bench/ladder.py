# SPDX-License-Identifier: Apache-2.0
"""Every step of the ladder: the time of its runs with checks on and off, and what checks cost.

The programs are run as they are (they compare their results with their goldens); then each run that they made is
repeated on the same arrays, in turns with checks and without. A step of many small runs is mostly host work.

Run: python bench/ladder.py            (all steps, 2 and 8 ranks)
     python bench/ladder.py 10 -p 4    (some steps)
"""

import argparse
import contextlib
import importlib.util
import io
import sys
import time
from pathlib import Path

import numpy as np
from pypto.ir.distributed_compiled_program import DistributedCompiledProgram
from pypto.runtime import RunConfig, SimOptions

LADDER = Path(__file__).resolve().parent.parent / "examples/distributed"
REPEATS = 9


def runs_of(path: Path, devices: str) -> list[tuple[DistributedCompiledProgram, list]]:
    """Run the program's `main` and return the runs it made: what was compiled, and its arguments."""
    spec = importlib.util.spec_from_file_location(f"ladder_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    runs = []
    call = DistributedCompiledProgram.__call__

    def recorded(compiled, *args, **kwargs):
        runs.append((compiled, [a.copy() if isinstance(a, np.ndarray) else a for a in args]))
        return call(compiled, *args, **kwargs)

    DistributedCompiledProgram.__call__ = recorded
    arguments, sys.argv = sys.argv, [str(path), "-d", devices]
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output):
            status = module.main()
    finally:
        sys.argv = arguments
        DistributedCompiledProgram.__call__ = call
    assert not status and output.getvalue().rstrip().endswith("OK"), output.getvalue()
    assert runs, f"{path.name} makes no run"
    return runs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", metavar="STEP", help="such as 10; all by default")
    parser.add_argument("-p", "--ranks", type=int, help="one world size")
    args = parser.parse_args()
    paths = sorted(p for p in LADDER.glob("[0-9]*.py") if not args.steps or p.name[:2] in args.steps)
    configs = {checks: RunConfig(sim=SimOptions(checks=checks)) for checks in ("off", "default", "strict")}
    for ranks in [args.ranks] if args.ranks else (2, 8):
        for path in paths:
            best = dict.fromkeys(configs, 0.0)
            try:
                made = runs_of(path, ",".join(map(str, range(ranks))))
            except SystemExit as refusal:  # the first steps are written for two
                print(f"{path.stem:<26} P {ranks:3}  {refusal}")
                continue
            for compiled, arrays in made:
                seconds = dict.fromkeys(configs, float("inf"))
                for _ in range(REPEATS):
                    for checks, config in configs.items():
                        start = time.perf_counter()
                        compiled(*arrays, config=config)
                        seconds[checks] = min(seconds[checks], time.perf_counter() - start)
                for checks in best:
                    best[checks] += seconds[checks]
            off = best["off"]
            print(
                f"{path.stem:<26} P {ranks:3}  runs {len(made):3}  off {off * 1e6:9.0f} us   "
                f"on {best['default'] / off:5.2f} x   strict {best['strict'] / off:5.2f} x",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
