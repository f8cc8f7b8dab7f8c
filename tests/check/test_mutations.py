# SPDX-License-Identifier: Apache-2.0
"""Every synchronising statement of the ladder and of the model is needed: without it, or with it weakened, the run is
reported or its result is wrong. What survives is listed with the reason why it means the same.
"""

import pathlib
import re
import warnings
from dataclasses import dataclass

import numpy as np
import pytest
from mutants import mutants, two_rounds
from pypto import Error
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions, last_report

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


def vectors(world, x_rows=1, y_rows=1, size=64):
    rng = np.random.default_rng(world)
    x = rng.standard_normal((world, x_rows, size), dtype=np.float32)
    return [x, np.full((world, y_rows, size), -5, dtype=np.float32)]


def total(x):
    return np.broadcast_to(x.sum(axis=0), x.shape)


@dataclass(frozen=True)
class Subject:
    """A program under test: where it is, what runs, with what, and what comes out; `loop` runs it for two rounds."""

    file: str
    entry: str
    kernels: tuple[str, ...]
    arrays: object
    golden: object  # of the arrays
    nightly: bool = False
    loop: bool | None = None  # None: one round; True: two with a closing barrier; False: two without

    @property
    def name(self):
        rounds = "" if self.loop is None else "-twice"
        return f"{pathlib.Path(self.file).stem[:2]}-{self.kernels[0]}{rounds}"


STEP = {p.name[:2]: f"distributed/{p.name}" for p in (EXAMPLES / "distributed").glob("[0-9]*.py")}


def ladder(step, entry, kernel, golden, loop=None, **rows):
    return Subject(
        STEP[step],
        entry,
        (kernel,),
        lambda world: vectors(world, **{k: world if v == "P" else v for k, v in rows.items()}),
        lambda a: {1: golden(a[0] + (loop is not None))},
        nightly=int(step) > 7,
        loop=loop,
    )


def moe_arrays(world):
    import importlib.util

    spec = importlib.util.spec_from_file_location("moe_inputs", EXAMPLES / "models/moe_dispatch_combine.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    inputs = module.make_inputs(world, seed=3)
    expected = module.golden(inputs["x"], inputs["route"], inputs["gates"], inputs["weight"])
    return [*inputs.values(), np.zeros_like(inputs["x"])], expected


SUBJECTS = [
    Subject(
        STEP["04"],
        "program",
        ("barrier_by_hand",),
        lambda world: [np.full((world, world, 1), -1, dtype=np.int32)],
        lambda a: {0: (1 - np.eye(len(a[0]), dtype=np.int32))[:, :, None]},
    ),
    ladder("04", "builtin_program", "next_by_builtin", lambda x: np.roll(x, -1, axis=0)),
    *[
        ladder("05", entry, kernel, golden, loop)
        for loop in (None, True)
        for entry, kernel, golden in (
            ("load_program", "shift_by_load", lambda x: np.roll(x, -1, axis=0)),
            ("store_program", "shift_by_store", lambda x: np.roll(x, 1, axis=0)),
        )
    ],
    *[
        ladder(step, entry, kernel, golden)
        for step in ("06", "07")
        for entry, kernel, golden in (
            ("put_program", "shift_by_put", lambda x: np.roll(x, 1, axis=0)),
            ("get_program", "shift_by_get", lambda x: np.roll(x, -1, axis=0)),
        )
    ],
    ladder("08", "program", "allreduce_mesh", total, size=256),
    ladder("08", "program", "allreduce_mesh", total, True, size=256),
    ladder("09", "program", "allreduce_two_phase", total, x_rows="P", y_rows="P"),
    ladder("09", "program", "allreduce_two_phase", total, True, x_rows="P", y_rows="P"),
    ladder("10", "program", "allreduce_ring", total, x_rows="P", y_rows="P"),
    *[
        ladder("13", "program", "by_hand", lambda x: np.broadcast_to(x[:, 0], (len(x), *x[:, 0].shape)), y_rows="P", size=256)
    ],
    *[
        ladder("14", "program", "by_hand", lambda x: x.sum(axis=0)[:, None], loop, x_rows="P", size=256)
        for loop in (None, False)
    ],
    ladder("15", "program", "by_hand", lambda x: x.swapaxes(0, 1), x_rows="P", y_rows="P", size=256),
]

# Survivors: subject, mutant (regular expressions), worlds, and why the mutant means the same as the program.
EQUIVALENT = [
    (r"0[4-9]-(barrier_by_hand|shift_by_put|shift_by_get)", r"set", (2, 3, 4), "one writer and one round per cell: Set 1 is + 1"),
    (r"0[67]-shift_by_put", r"wrong peer", (), "never the same"),
    (r"14-by_hand", r"delete-last", (2, 3, 4), "one round: nobody writes what the others still read"),
]


def load(text, world, load_source):
    return load_source(re.sub(r"^N_RANKS = 2", f"N_RANKS = {world}", text, flags=re.M))


def text_of(subject) -> str:
    text = (EXAMPLES / subject.file).read_text()
    return text if subject.loop is None else two_rounds(text, subject.kernels[0], subject.loop)


def outcome(subject, text, world, load_source, checks="default") -> str:
    """What becomes of a program: "clean", or what tells that it is wrong."""
    arrays = subject.arrays(world)
    golden = subject.golden(arrays)
    devices = DistributedConfig(device_ids=list(range(world)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            program = getattr(load(text, world, load_source), subject.entry)
            compiled = program.compile(*arrays, config=RunConfig(platform="a2a3sim", distributed_config=devices))
        except Error as error:
            return f"rejected: {error}"
    if caught:
        return f"warning: {caught[0].message}"
    compiled(*arrays, config=RunConfig(platform="a2a3sim", sim=SimOptions(collect=True, checks=checks)))
    found = last_report().diagnostics
    if found:
        return f"reported: {found[0].id}"
    if not all(np.allclose(arrays[i], g, rtol=1e-4, atol=1e-4) for i, g in golden.items()):
        return "golden mismatch"
    return "clean"


def equivalent(subject, mutant, world) -> bool:
    return any(
        re.search(s, subject.name) and re.search(m, mutant.key) and world in worlds for s, m, worlds, _ in EQUIVALENT
    )


def check(subject, load_source):
    text = text_of(subject)
    survivors, count = [], 0
    for world in (2, 3, 4):
        assert outcome(subject, text, world, load_source, "strict") == "clean", world  # 03 X-73
        for mutant in mutants(text, subject.kernels):
            count += 1
            if outcome(subject, mutant.text, world, load_source) == "clean" and not equivalent(subject, mutant, world):
                survivors.append((world, mutant.key))
    assert count > 0
    assert len(survivors) <= 0.01 * count, survivors


@pytest.mark.parametrize("subject", [s for s in SUBJECTS if not s.nightly], ids=lambda s: s.name)
def test_mutants(subject, load_source):
    check(subject, load_source)


@pytest.mark.nightly
@pytest.mark.parametrize("subject", [s for s in SUBJECTS if s.nightly], ids=lambda s: s.name)
def test_more_mutants(subject, load_source):
    check(subject, load_source)
