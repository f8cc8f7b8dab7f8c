# SPDX-License-Identifier: Apache-2.0
"""How long would it take on a device? The simulator's virtual clock compares three ways to cut the same work.

Teaches: SimOptions(device_time=True), last_report, save_timeline
Run:     python examples/intermediate/device_time.py -p a2a3sim -d 0
Expect:  OK
Next:    ../distributed/01_hello_rank.py
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import pypto.language as pl
from pypto import ir
from pypto.runtime import RunConfig, SimOptions, last_report

ROWS, COLS = 512, 128


def program_of(tile: int):
    """The program with tiles of `tile` rows: one task for each."""

    @pl.program
    class Gelu:
        @pl.function(type=pl.FunctionType.InCore)
        def rows(
            self,
            x: pl.Tensor[[tile, COLS], pl.FP32],
            out: pl.Out[pl.Tensor[[tile, COLS], pl.FP32]],
        ) -> pl.Tensor[[tile, COLS], pl.FP32]:
            t = pl.load(x, [0, 0], [tile, COLS])
            e = pl.exp(pl.mul(t, -1.702))
            y = pl.div(t, pl.add(e, 1.0))
            return pl.store(y, [0, 0], out)

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            x: pl.Tensor[[ROWS, COLS], pl.FP32],
            out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
        ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
            for first in pl.range(0, ROWS, tile):  # tasks of different rows do not wait for each other
                part = pl.slice(out, [tile, COLS], [first, 0])
                part = self.rows(pl.slice(x, [tile, COLS], [first, 0]), part)
            return out

    return Gelu


def golden(x: np.ndarray) -> np.ndarray:
    return x / (1.0 + np.exp(-1.702 * x.astype(np.float64)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-p", "--platform", default="a2a3sim", choices=["a2a3", "a2a3sim", "a5", "a5sim"])
    parser.add_argument("-d", "--device", type=int, default=0, help="device id")
    parser.add_argument("--compile-only", action="store_true")
    args = parser.parse_args()
    sim = SimOptions(device_time=True) if args.platform.endswith("sim") else None

    x = np.random.default_rng(11).standard_normal((ROWS, COLS), dtype=np.float32)
    for tile in (8, 32, 64):
        compiled = ir.compile(program_of(tile), platform=args.platform)
        if args.compile_only:
            continue
        out = np.zeros_like(x)
        compiled(x, out, config=RunConfig(platform=args.platform, device_id=args.device, sim=sim))
        np.testing.assert_allclose(out, golden(x), rtol=1e-5, atol=1e-6)
        report = last_report()
        print(f"{report.ranks[0].tasks:2} tasks of {tile:2} rows: {report.device_time_us:5.2f} us")
    if not args.compile_only:
        print(report.time_note)
        with tempfile.TemporaryDirectory() as folder:
            trace = SimOptions(trace=Path(folder) / "timeline.json")  # for ui.perfetto.dev
            compiled(x, out, config=RunConfig(platform=args.platform, device_id=args.device, sim=trace))
            events = json.loads((Path(folder) / "timeline.json").read_text())["traceEvents"]
        on_core = [e for e in events if e.get("cat") in ("transfer", "instruction")]
        core = on_core[0]["tid"] // 16  # a core and its pipes are 16 threads of the file
        steps = [f"{e['name']} {e['dur'] * 1000:.0f} ns" for e in on_core if e["tid"] // 16 == core]
        print("on its core: " + ", ".join(steps))
    print("OK")
    return 0


if __name__ == "__main__":
    sys.exit(main())
