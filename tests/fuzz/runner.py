# SPDX-License-Identifier: Apache-2.0
"""Runs one random program through the normal path and through the interpreter, and compares every output cell."""

from __future__ import annotations

import linecache
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pypto.language  # noqa: F401  (what the texts import)
from generator import Program, make
from interpreter import Illegal, Interpreter
from pypto import ir
from pypto.runtime import RunConfig, SimOptions
from values import Unspecified


@dataclass
class Coverage:
    """What the programs exercised."""

    operations: Counter = field(default_factory=Counter)
    forms: Counter = field(default_factory=Counter)
    outcome: Counter = field(default_factory=Counter)

    def add(self, at: Interpreter) -> None:
        self.operations.update(at.calls.count)
        self.forms.update(at.forms)

    def table(self) -> str:
        rows: dict[str, list[str]] = {}
        for (name, kind, dt), n in sorted(self.operations.items()):
            rows.setdefault(f"{name} ({kind})", []).append(f"{dt} {n}")
        text = [f"{name:<36}{', '.join(cells)}" for name, cells in rows.items()]
        text += [f"{name:<48}{n}" for name, n in sorted(self.forms.items())]
        text += [f"{name:<48}{n}" for name, n in sorted(self.outcome.items())]
        return "\n".join(text)


class Mismatch(AssertionError):
    """The two disagree."""


def load(program: Program):
    """Define the program from its text; the front end reads the source through linecache."""
    name = f"<random {program.seed}>"
    linecache.cache[name] = (len(program.source), None, program.source.splitlines(True), name)
    scope: dict = {"__name__": "random_program"}
    exec(compile(program.source, name, "exec"), scope)
    return scope["Random"] if program.form == "class" else scope["main"]


def execute(program: Program, sim: SimOptions | None = None) -> list[np.ndarray]:
    arrays = [a.copy() if isinstance(a, np.ndarray) else a for a in program.arguments]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        entry = load(program)
        if program.form == "class":
            ir.compile(entry, platform=program.platform)(*arrays, config=RunConfig(platform=program.platform, sim=sim))
        else:
            entry(*arrays, config=RunConfig(platform=program.platform, sim=sim))
    return arrays


def interpret(program: Program, coverage: Coverage | None = None):
    at = Interpreter(program.source, program.platform)
    with np.errstate(all="ignore"):
        views = at.run("main", program.arguments, baked=program.form == "jit")
    if coverage is not None:
        coverage.add(at)
    return views


def difference(got: np.ndarray, view) -> str | None:
    want = view.live()
    g, w = got, want.x
    same = g.view(f"u{g.itemsize}") == w.view(f"u{w.itemsize}")
    if g.dtype.kind not in "iub":
        gf, wf = g.astype(np.float64), w.astype(np.float64)
        same |= np.isnan(gf) & np.isnan(wf)
        with np.errstate(all="ignore"):
            same |= (want.err > 0) & (np.abs(gf - wf) <= want.err * 1.001 + 1e-45)
    bad = want.known & ~same
    if not bad.any():
        return None
    p = tuple(int(i) for i in np.argwhere(bad)[0])
    return f"{int(bad.sum())} cells differ, first {p}: got {got[p]!r}, want {w[p]!r} (bound {want.err[p]:.3g})"


def check(seed: int, coverage: Coverage | None = None, maker: Callable[[int], Program] = make) -> str:
    """Compare one program; gives how it ended."""
    program = maker(seed)
    illegal = None
    try:
        views = interpret(program, coverage)
    except Unspecified:  # the rules fix no values for this one: it may stop or go on
        try:
            execute(program)
        except RuntimeError:
            pass
        return "not judged"
    except Illegal as e:
        illegal = str(e)
    try:
        arrays = execute(program)
    except Exception as e:
        if illegal is not None:
            return "rejected by both"
        raise Mismatch(f"seed {seed}: rejected: {type(e).__name__}: {e}\n{program.source}") from e
    if illegal is not None:
        raise Mismatch(f"seed {seed}: must be an error ({illegal}), ran\n{program.source}")
    for index, (got, view) in enumerate(zip(arrays, views, strict=True)):
        if view is not None:
            text = difference(got, view)
            if text:
                raise Mismatch(f"seed {seed}: argument {index}: {text}\n{program.source}")
    return "equal"
