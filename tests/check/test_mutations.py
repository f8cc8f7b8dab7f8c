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
from mutants import host_rounds, mutants, two_rounds
from pypto import Error
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions, last_report
from rows import load_file

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
    entry: object  # its name, or a function of the module
    kernels: tuple[str, ...]
    arrays: object
    golden: object  # of the arrays
    nightly: bool = False
    loop: bool | None = None  # None: one round; True: two with a closing barrier; False: two without
    remake: object = None  # of the text: two rounds by the host

    @property
    def name(self):
        rounds = "-rounds" if self.remake else "" if self.loop is None else "-twice"
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


def reveal_arrays(world, ring):
    x, y = vectors(world, size=256)
    return [x, y, np.full((world, 2 * (world - 1), world) if ring else (world, world, 1), -1, dtype=np.int32)]


def composed_arrays(world):
    x, y = vectors(world, y_rows=world, size=256)
    return [np.random.default_rng(9).standard_normal(x.shape, dtype=np.float32), x, y, np.zeros_like(x)]


MOE = "models/moe_dispatch_combine.py"
MOE_MODULE = load_file(EXAMPLES / MOE, "moe_for_mutations")


def moe_arrays(world):
    inputs = MOE_MODULE.make_inputs(world, seed=3)
    return [*inputs.values(), np.zeros_like(inputs["x"])]


def moe_golden(a):
    return {5: MOE_MODULE.golden(a[0], a[1], a[2], a[4])}


def twice(arrays):
    """For two rounds: other data in the second."""
    return lambda world: [np.stack([a, a[::-1] + 1]) for a in arrays(world)]


def by_host(step, entry, kernel, golden, per_round="", cells=0, ring=None, **rows):
    """A program whose host runs two rounds; `cells` (a number or of the world) is what they leave in the signal."""

    def make(world):
        if step == "04":
            return [np.full((2, world, world, 1), -1, np.int32), np.full((world, world, 1), -1, np.int32)]
        if ring is not None:
            made = twice(lambda w: reveal_arrays(w, ring))(world)
            return [*made, np.full(made[2].shape[1:], -1, np.int32)]
        made = twice(lambda w: vectors(w, **{k: w if v == "P" else v for k, v in rows.items()}))(world)
        return [*made, np.full((world, 1 if per_round else world, 1), -1, np.int32)]

    def want(a):
        if step == "04":
            arrived = (1 - np.eye(a[0].shape[1], dtype=np.int32))[:, :, None]
            return {0: np.stack([arrived, 2 * arrived]), 1: 2 * arrived}
        out = {1: np.stack([golden(x) for x in a[0]])}
        if ring is not None:
            return out | {2: np.zeros_like(a[2]), 3: np.zeros_like(a[3])}
        return out | {2: np.full_like(a[2], cells(a[0].shape[1]) if callable(cells) else cells)}

    return Subject(
        STEP[step], entry, (kernel,), make, want, nightly=True, remake=lambda text: host_rounds(text, kernel, per_round)
    )


RESET = """
@pl.jit.incore
def reset_kernel(
    combined: pld.DistributedTensor[[TOKENS, HIDDEN], pl.FP32],
    arrived: pld.DistributedTensor[[NR, 1], pl.INT32],
    done: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    combined = pl.store(pl.tile.full([TOKENS, HIDDEN], dtype=pl.FP32, value=0.0), [0, 0], combined)
    for i in pl.range(pld.nranks(pld.get_comm_ctx(done))):
        pl.write(arrived, [i, 0], pl.const(0, pl.INT32))
        pl.write(done, [i, 0], pl.const(0, pl.INT32))


@pl.jit
def reset(
    combined: pld.DistributedTensor[[TOKENS, HIDDEN], pl.FP32],
    arrived: pld.DistributedTensor[[NR, 1], pl.INT32],
    done: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    reset_kernel(combined, arrived, done)


@pl.jit.incore
def dispatch("""


def moe_rounds(text):
    """Two layers' worth of tokens through the same windows."""
    text = text.replace("@pl.jit.incore\ndef dispatch(", RESET.strip())
    text = text.replace(
        "    for r in pl.range(pld.world_size()):\n", MOE_VIEWS + "    for r in pl.range(pld.world_size()):\n"
    )
    return host_rounds(text, "dispatch", between="reset(combined_all, arrived_all, done_all, device=r)")


MOE_VIEWS = """    combined_all = pld.window(combined_buf, [TOKENS, HIDDEN], dtype=pl.FP32)
    arrived_all = pld.window(arrived_buf, [pld.world_size(), 1], dtype=pl.INT32)
    done_all = pld.window(done_buf, [pld.world_size(), 1], dtype=pl.INT32)
"""


def moe_twice(world):
    first, second = MOE_MODULE.make_inputs(world, seed=3), MOE_MODULE.make_inputs(world, seed=4)
    made = [first[k] if k == "token_ids" else np.stack([first[k], second[k]]) for k in first]
    return [*made, np.zeros_like(made[0])]


def moe_golden_twice(a):
    return {5: np.stack([MOE_MODULE.golden(a[0][k], a[1][k], a[2][k], a[4][k]) for k in range(2)])}


SUBJECTS = [
    by_host("04", "program", "barrier_by_hand", None, "1"),
    *[
        by_host(step, entry, kernel, golden, "1", 2)
        for step in ("06", "07")
        for entry, kernel, golden in (
            ("put_program", "shift_by_put", lambda x: np.roll(x, 1, axis=0)),
            ("get_program", "shift_by_get", lambda x: np.roll(x, -1, axis=0)),
        )
    ],
    by_host(
        "10", "program", "allreduce_ring", total, "2 * (nranks - 1)", lambda p: 4 * (p - 1), x_rows="P", y_rows="P"
    ),
    *[
        by_host(
            "11",
            lambda m, ring=ring: m.make_program(m.ring_by_hand if ring else m.mesh_by_hand, ring),
            "ring_by_hand" if ring else "mesh_by_hand",
            total,
            ring=ring,
        )
        for ring in (False, True)
    ],
    by_host("08", "program", "allreduce_mesh", total, size=256),
    by_host("09", "program", "allreduce_two_phase", total, x_rows="P", y_rows="P"),
    by_host(
        "12",
        lambda m: m.make_program(1, False),
        "by_hand",
        lambda x: np.broadcast_to(x[1], x.shape),
        size=256,
    ),
    by_host(
        "13", "program", "by_hand", lambda x: np.broadcast_to(x[:, 0], (len(x), *x[:, 0].shape)), y_rows="P", size=256
    ),
    by_host("14", "program", "by_hand", lambda x: x.sum(axis=0)[:, None], x_rows="P", size=256),
    by_host("15", "program", "by_hand", lambda x: x.swapaxes(0, 1), x_rows="P", y_rows="P", size=256),
    Subject(
        MOE,
        "program",
        ("dispatch", "await_counts", "send_back", "combine"),
        moe_twice,
        moe_golden_twice,
        nightly=True,
        remake=moe_rounds,
    ),
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
        Subject(
            STEP["11"],
            lambda m, ring=ring: m.make_program(m.ring_by_hand if ring else m.mesh_by_hand, ring),
            ("ring_by_hand" if ring else "mesh_by_hand",),
            lambda world, ring=ring: reveal_arrays(world, ring),
            lambda a: {1: total(a[0]), 2: np.zeros_like(a[2])},
            nightly=True,
        )
        for ring in (False, True)
    ],
    *[
        Subject(
            STEP["12"],
            lambda m: m.make_program(1, False),
            ("by_hand",),
            lambda world: vectors(world, size=256),
            lambda a, add=int(loop is not None): {1: np.broadcast_to(a[0][1] + add, a[0].shape)},
            nightly=True,
            loop=loop,
        )
        for loop in (None, False)
    ],
    ladder(
        "13", "program", "by_hand", lambda x: np.broadcast_to(x[:, 0], (len(x), *x[:, 0].shape)), y_rows="P", size=256
    ),
    *[
        ladder("14", "program", "by_hand", lambda x: x.sum(axis=0)[:, None], loop, x_rows="P", size=256)
        for loop in (None, False)
    ],
    ladder("15", "program", "by_hand", lambda x: x.swapaxes(0, 1), x_rows="P", y_rows="P", size=256),
    *[
        Subject(
            STEP["16"],
            "program",
            ("composed",),
            composed_arrays,
            lambda a, add=int(loop is not None): {
                2: np.broadcast_to(
                    np.arange(1, len(a[1]) + 1, dtype=np.float32)[:, None]
                    * a[0][0, 0]
                    * (a[1][:, 0] + add).sum(axis=0),
                    a[2].shape,
                )
            },
            nightly=True,
            loop=loop,
        )
        for loop in (None, False)
    ],
    Subject(MOE, "program", ("dispatch", "await_counts", "send_back", "combine"), moe_arrays, moe_golden),
]

# Survivors: subject, mutant and statement (regular expressions), worlds, and why it means the same as the program.
ANY = (2, 3, 4)
EQUIVALENT = [
    (
        r"^0[467]-(barrier_by_hand|shift_by_put|shift_by_get)$",
        r":set ",
        ANY,
        "one writer and one round per cell: Set 1 is + 1",
    ),
    (r"^10-allreduce_ring$", r"^38:set ", ANY, "the first credit finds the cell at 0"),
    (
        r"^11-mesh_by_hand",
        r"^(44|52):set ",
        ANY,
        "the first credit finds the cell at 0: the clearing of round 1 is ordered before the credits of round 2",
    ),
    (
        r"^11-ring_by_hand",
        r":set .*(\[0, me\]|\[k \+ 1, me\]|\[0, left\]), 1",
        ANY,
        "one cell per step: every credit finds its cell at 0",
    ),
    (
        r"^11-ring_by_hand",
        r":wrong row .*\[k, left\], -1",
        (2,),
        "the rows cleared are the same two in the other order",
    ),
    (r"^12-by_hand$", r"^41:delete ", ANY, "in one round the root does not overwrite"),
    (r"^14-by_hand$", r"^42:delete ", ANY, "in one round nobody reads the row that its owner overwrites"),
    (
        r"^(12|14)-by_hand-rounds$",
        r"^5[23]:delete ",
        ANY,
        "the barrier between the rounds stands in for this one",
    ),
    (r"^mo-dispatch", r":set ", ANY, "one writer per cell, and the cells are reset between the rounds"),
    (
        r"^mo-dispatch",
        r":wrong (peer|row) pld.system.notify\(arrived",
        (2,),
        "top 2 of 2 experts: all counts are equal and all rows are awaited",
    ),
    (r"^mo-dispatch", r":wrong row pld.system.(notify|wait)\(done", ANY, "another order of rows that are all awaited"),
]


def load(text, world, load_source):
    return load_source(re.sub(r"^N_RANKS = 2", f"N_RANKS = {world}", text, flags=re.M))


def text_of(subject) -> str:
    text = (EXAMPLES / subject.file).read_text()
    if subject.remake:
        return subject.remake(text)
    return text if subject.loop is None else two_rounds(text, subject.kernels[0], subject.loop)


def outcome(subject, text, world, load_source, checks="default") -> str:
    """What becomes of a program: "clean", or what tells that it is wrong."""
    arrays = subject.arrays(world)
    golden = subject.golden(arrays)
    devices = DistributedConfig(device_ids=list(range(world)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            module = load(text, world, load_source)
            program = subject.entry(module) if callable(subject.entry) else getattr(module, subject.entry)
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


def equivalent(subject, mutant, statement, world) -> bool:
    what = f"{mutant.key} {statement.strip()}"
    return any(re.search(s, subject.name) and re.search(m, what) and world in worlds for s, m, worlds, _ in EQUIVALENT)


def check(subject, load_source):
    text = text_of(subject)
    lines = text.splitlines()
    survivors, count = [], 0
    for world in (2, 3, 4):
        assert outcome(subject, text, world, load_source, "strict") == "clean", world  # 03 X-73
        for mutant in mutants(text, subject.kernels):
            count += 1
            statement = lines[mutant.line - 1]
            if outcome(subject, mutant.text, world, load_source) == "clean" and not equivalent(
                subject, mutant, statement, world
            ):
                survivors.append((world, mutant.key, statement.strip()))
    assert count > 0
    assert len(survivors) <= 0.01 * count, survivors


@pytest.mark.parametrize("subject", [s for s in SUBJECTS if not s.nightly], ids=lambda s: s.name)
def test_mutants(subject, load_source):
    check(subject, load_source)


@pytest.mark.nightly
@pytest.mark.parametrize("subject", [s for s in SUBJECTS if s.nightly], ids=lambda s: s.name)
def test_more_mutants(subject, load_source):
    check(subject, load_source)
