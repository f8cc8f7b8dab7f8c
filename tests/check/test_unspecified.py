# SPDX-License-Identifier: Apache-2.0
"""Unspecified values on their way through programs, and what is said of them (01 L-154, 02 O-209, 03 M-37)."""

import numpy as np
import pypto
import pypto.language as pl
import pytest
from pypto.runtime import RunConfig, SimOptions, last_report

CORE = pl.Level.CORE_GROUP
X = np.linspace(0.5, 3.6, 32, dtype=np.float32).reshape(4, 8)


def call(kernel, *args, checks="default"):
    """The reports of one call; an error of the call counts as one."""
    config = RunConfig(platform="a2a3sim", sim=SimOptions(checks=checks))
    try:
        kernel(*args, config=config)
    except pypto.UninitializedReadError as error:
        return [error.diagnostic]
    return [d for d in last_report().diagnostics if d.id == "W-UNSPECIFIED"]


def line(kernel, text):
    """Number of the one line of a kernel that contains `text`."""
    import inspect

    lines, first = inspect.getsourcelines(kernel.__wrapped__ if hasattr(kernel, "__wrapped__") else kernel)
    found = [first + i for i, s in enumerate(lines) if text in s]
    assert len(found) == 1, found
    return found[0]


# ---------------------------------------------------------------- outputs


@pl.jit
def tile_to_output(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        t = pl.create_tile([4, 8], dtype=pl.FP32)  # never written
        u = pl.add(pl.load(x, [0, 0], [4, 8]), t)
        out = pl.store(u, [0, 0], out)  # the use
    return out


@pl.jit
def half_tensor_to_output(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    t = pl.create_tensor([4, 8], dtype=pl.FP32)  # half of it is written
    with pl.at(level=CORE):
        t = pl.store(pl.load(x, [0, 0], [4, 5]), [0, 0], t)
    with pl.at(level=CORE):
        out = pl.store(pl.exp(pl.load(t, [0, 0], [4, 8])), [0, 0], out)  # the use
    return out


@pl.jit
def padding_to_output(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        t = pl.load(x, [0, 0], [4, 8], valid_shape=[3, 5])  # the padding
        u = pl.set_validshape(pl.exp(t), 4, 8)
        out = pl.store(u, [0, 0], out)  # the use
    return out


@pl.jit
def scalar_to_output(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    t = pl.create_tensor([4, 8], dtype=pl.FP32)  # never written
    with pl.at(level=CORE):
        s = pl.read(t, [1, 2])
        out = pl.store(pl.mul(pl.load(x, [0, 0], [4, 8]), s), [0, 0], out)  # the use
    return out


@pl.jit
def element_to_output(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    t = pl.create_tensor([4, 8], dtype=pl.FP32)  # never written
    with pl.at(level=CORE):
        pl.write(out, [2, 3], pl.read(t, [1, 2]))  # the use
    return out


@pl.jit
def atomic_to_output(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    t = pl.create_tensor([4, 8], dtype=pl.FP32)  # never written
    with pl.at(level=CORE):
        t = pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], t, atomic=pl.AtomicType.Add)
    with pl.at(level=CORE):
        out = pl.store(pl.load(t, [0, 0], [4, 8]), [0, 0], out)  # the use
    return out


OUTPUTS = [
    (tile_to_output, "[0, 0]", 31, "never written"),
    (half_tensor_to_output, "[0, 5]", 11, "half of it"),
    (padding_to_output, "[0, 5]", 16, "the padding"),
    (scalar_to_output, "[0, 0]", 31, "never written"),
    (element_to_output, "[2, 3]", 0, "never written"),
    (atomic_to_output, "[0, 0]", 31, "never written"),
]


@pytest.mark.parametrize("kernel,cell,more,origin", OUTPUTS, ids=lambda v: getattr(v, "__name__", None))
def test_outputs(kernel, cell, more, origin):
    outputs = {}
    for checks in ("default", "strict", "off"):
        out = np.full((4, 8), 7, np.float32)
        reports = call(kernel, X, out, checks=checks)
        outputs[checks] = out
        assert len(reports) == (checks != "off")
        if not reports:
            continue
        (d,) = reports
        assert d.severity == ("warning" if checks == "default" else "error")
        assert f"element {cell} of 'out' of shape [4, 8]" in d.message
        assert ("more are" in d.message) == (more > 0)
        if more:
            assert f"and {more} more" in d.message
        assert d.line == line(kernel, "# the use")
        assert d.block == 0 and d.kernel and d.help
        # The line that left it unspecified is among the notes.
        text = d.message + str(d.to_dict())
        assert f"test_unspecified.py:{line(kernel, '# ' + origin)}" in text
    # Values never depend on the checks (O-209).
    assert np.array_equal(outputs["default"], outputs["off"])
    assert np.array_equal(outputs["strict"], outputs["off"])


# ---------------------------------------------------------------- what decides something


@pl.jit
def decides_branch(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    t = pl.create_tensor([4, 8], dtype=pl.FP32)  # never written
    with pl.at(level=CORE):
        s = pl.read(t, [0, 1]) * 2.0 + 1.0
        if s > 3.0:  # the use
            out = pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], out)
        else:
            out = pl.store(pl.exp(pl.load(x, [0, 0], [4, 8])), [0, 0], out)
    return out


@pl.jit
def decides_bound(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    t = pl.create_tensor([4, 8], dtype=pl.INT32)  # never written
    with pl.at(level=CORE):
        n = pl.read(t, [0, 1])
        for i in pl.range(n + 2):  # the use
            out = pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], out)
    return out


@pl.jit
def decides_offset(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    t = pl.create_tensor([4, 8], dtype=pl.INT32)  # never written
    with pl.at(level=CORE):
        n = pl.read(t, [0, 1])
        out = pl.store(pl.load(x, [n, 0], [1, 8]), [0, 0], out)  # the use
    return out


@pl.jit
def decides_offset_of_a_task(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    t = pl.create_tensor([4, 8], dtype=pl.INT32)  # never written
    n = pl.read(t, [0, 1])
    with pl.at(level=CORE):
        out = pl.store(pl.load(x, [n, 0], [1, 8]), [0, 0], out)  # the use
    return out


@pl.jit
def decides_valid(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        t = pl.create_tile([4, 8], dtype=pl.INT32)  # never written
        n = pl.tile.read(t, [0, 1])
        u = pl.load(x, [0, 0], [4, 8], valid_shape=[4, n])  # the use
        out = pl.store(u, [0, 0], out)
    return out


DECIDES = [
    (decides_branch, "which way a branch goes", "[0, 1]"),
    (decides_bound, "a loop bound", "[0, 1]"),
    (decides_offset, "'offsets' of load", "[0, 1]"),
    (decides_offset_of_a_task, "'offsets' of load", "[0, 1]"),
    (decides_valid, "'valid_shape' of load", "[0, 1]"),
]


@pytest.mark.parametrize("kernel,what,cell", DECIDES, ids=lambda v: getattr(v, "__name__", None))
def test_decides(kernel, what, cell):
    for checks in ("default", "strict"):
        (d,) = call(kernel, X, np.zeros((4, 8), np.float32), checks=checks)
        assert d.severity == "error"
        assert f"an unspecified value decides {what}: cell {cell} of 't' of shape [4, 8]" in d.message
        assert d.line == line(kernel, "# the use")
        assert f"test_unspecified.py:{line(kernel, '# never written')}" in str(d.to_dict())
    assert call(kernel, X, np.zeros((4, 8), np.float32), checks="off") == []


# ---------------------------------------------------------------- what removes the mark


@pl.jit
def valid_part_stored(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        t = pl.load(x, [0, 0], [4, 8], valid_shape=[3, 5])
        out = pl.store(pl.exp(pl.add(t, t)), [0, 0], out)
    return out


@pl.jit
def padding_filled(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        t = pl.load(x, [0, 0], [4, 8], valid_shape=[3, 5])
        u = pl.fillpad(pl.exp(t), pad_value=pl.PadValue.min)
        out = pl.store(u, [0, 0], out)
    return out


@pl.jit
def narrowed(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        t = pl.create_tile([4, 8], dtype=pl.FP32)
        t = pl.assemble(t, pl.load(x, [0, 0], [3, 8]), [0, 0])
        u = pl.set_validshape(pl.exp(t), 3, 8)
        out = pl.store(u, [0, 0], out)
    return out


@pl.jit
def selected(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        t = pl.create_tile([4, 8], dtype=pl.FP32)
        a = pl.load(x, [0, 0], [4, 8])
        tmp = pl.create_tile([4, 8], dtype=pl.UINT8)
        mask = pl.cmps(a, 1.0, cmp_type=4)
        u = pl.sel(mask, a, t, tmp)
        out = pl.store(u, [0, 0], out)
    return out


@pl.jit
def overwritten(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    t = pl.create_tensor([4, 8], dtype=pl.FP32)
    with pl.at(level=CORE):
        out = pl.store(pl.load(t, [0, 0], [4, 8]), [0, 0], out)
    with pl.at(level=CORE):
        for i in pl.range(4):
            out = pl.store(pl.load(x, [i, 0], [1, 8]), [i, 0], out)
    return out


@pl.jit
def written_in_pieces(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    t = pl.create_tensor([4, 8], dtype=pl.FP32)
    for i in pl.range(4):
        for j in pl.range(2):
            with pl.at(level=CORE):
                t = pl.store(pl.load(x, [3 - i, j * 4], [1, 4]), [3 - i, j * 4], t)
    with pl.at(level=CORE):
        if pl.read(t, [3, 7]) > 0.0:
            out = pl.store(pl.load(t, [0, 0], [4, 8]), [0, 0], out)
    return out


@pl.jit
def initialised(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    t = pl.create_tensor([4, 8], dtype=pl.FP32, init_value=0.0)
    with pl.at(level=CORE):
        t = pl.store(pl.load(x, [0, 0], [4, 8]), [0, 0], t, atomic=pl.AtomicType.Add)
    with pl.at(level=CORE):
        out = pl.store(pl.load(t, [0, 0], [4, 8]), [0, 0], out)
    return out


@pl.jit
def part_of_an_output(x: pl.Tensor, out: pl.Out[pl.Tensor]):
    with pl.at(level=CORE):
        out = pl.store(pl.load(x, [0, 0], [2, 8]), [1, 0], out)
    return out


SILENT = [
    valid_part_stored,
    padding_filled,
    narrowed,
    selected,
    overwritten,
    written_in_pieces,
    initialised,
    part_of_an_output,
]


@pytest.mark.parametrize("kernel", SILENT, ids=lambda v: v.__name__)
def test_removed(kernel):
    for checks in ("default", "strict"):
        for _ in range(2):  # storage of the first call is used again
            assert call(kernel, X, np.full((4, 8), 7, np.float32), checks=checks) == []


# ---------------------------------------------------------------- random programs

ROWS, COLS = 6, 16


class Model:
    """Marks of the tiles of a straight-line kernel, kept with NumPy: what this file thinks the rules are."""

    def __init__(self, rng):
        self.rng = rng
        self.source = []
        self.tiles = []  # (name, unspecified cells, valid extents)

    def pick(self):
        return self.tiles[self.rng.integers(len(self.tiles))]

    def add(self, text, unspecified, valid):
        name = f"t{len(self.tiles)}"
        self.source.append(f"{name} = {text}")
        self.tiles.append((name, unspecified, valid))

    def corner(self):
        return int(self.rng.integers(1, ROWS + 1)), int(self.rng.integers(1, COLS + 1))

    def inside(self, valid):
        cells = np.zeros((ROWS, COLS), bool)
        cells[: valid[0], : valid[1]] = True
        return cells

    def step(self):
        kind = self.rng.integers(0, 9)
        whole = (ROWS, COLS)
        if kind == 0 or not self.tiles:
            self.add("pl.load(x, [0, 0], [6, 16])", np.zeros(whole, bool), whole)
        elif kind == 1:
            v = self.corner()
            text = f"pl.load(x, [0, 0], [6, 16], valid_shape=[{v[0]}, {v[1]}])"
            self.add(text, ~self.inside(v), v)
        elif kind == 2:
            self.add("pl.create_tile([6, 16], dtype=pl.FP32)", np.ones(whole, bool), whole)
        elif kind == 3:
            n, u, v = self.pick()
            self.add(f"pl.exp({n})", u | ~self.inside(v), v)
        elif kind in (4, 5):
            (n, u, v), (m, w, o) = self.pick(), self.pick()
            text = f"pl.add({n}, {m})" if kind == 4 else f"pl.maximum({n}, {m})"
            self.add(text, u | w | ~self.inside(v) | ~self.inside(o), v)
        elif kind == 6:
            n, u, v = self.pick()
            self.add(f"pl.fillpad({n}, pad_value=pl.PadValue.zero)", u & self.inside(v), whole)
        elif kind == 7:
            n, u, v = self.pick()
            c = self.corner()
            self.add(f"pl.set_validshape({n}, {c[0]}, {c[1]})", u, c)
        else:
            n, u, v = self.pick()
            if v != whole:
                return
            r, c = int(self.rng.integers(0, 3)), int(self.rng.integers(0, 2)) * 8
            u = u.copy()
            u[r : r + 3, c : c + 8] = False
            self.add(f"pl.assemble({n}, pl.load(x, [1, 0], [3, 8]), [{r}, {c}])", u, whole)


def program(rng, folder, number):
    """A kernel, and the cells of its output that it leaves unspecified."""
    m = Model(rng)
    while len(m.tiles) < 7:
        m.step()
    name, u, v = m.tiles[-1]
    through = bool(rng.integers(0, 2))
    body = ["    with pl.at(level=pl.Level.CORE_GROUP):"]
    body += [f"        {s}" for s in m.source]
    out = np.zeros((ROWS, COLS), bool)
    out[: v[0], : v[1]] = u[: v[0], : v[1]]
    if through:  # by way of a tensor that only this kernel writes
        body.insert(0, "    mid = pl.create_tensor([6, 16], dtype=pl.FP32)")
        body.append(f"        mid = pl.store({name}, [0, 0], mid)")
        body.append("    with pl.at(level=pl.Level.CORE_GROUP):")
        body.append("        out = pl.store(pl.neg(pl.load(mid, [0, 0], [6, 16])), [0, 0], out)")
        out[v[0] :, :] = True
        out[:, v[1] :] = True
    else:
        body.append(f"        out = pl.store({name}, [0, 0], out)")
    text = "import pypto.language as pl\n\n\n@pl.jit\ndef kernel(x: pl.Tensor, out: pl.Out[pl.Tensor]):\n"
    text += "\n".join(body) + "\n    return out\n"
    path = folder / f"random_{number}.py"
    path.write_text(text)
    space = {}
    exec(compile(text, str(path), "exec"), space)
    return text, space["kernel"], out


@pytest.mark.parametrize("seed", range(4))
def test_random_programs(seed, tmp_path):
    rng = np.random.default_rng([154, seed])
    x = rng.standard_normal((ROWS, COLS)).astype(np.float32)
    clean = 0
    for number in range(25):
        text, kernel, unspecified = program(rng, tmp_path, number)
        results = []
        for checks in ("default", "off"):
            out = np.full((ROWS, COLS), 7, np.float32)
            reports = call(kernel, x, out, checks=checks)
            results.append(out)
            if checks == "off":
                assert reports == []
                continue
            clean += not unspecified.any()
            assert len(reports) == bool(unspecified.any()), text
            if not reports:
                continue
            cell = [int(i) for i in np.argwhere(unspecified)[0]]
            count = int(unspecified.sum())
            assert f"element {cell} of 'out'" in reports[0].message, text
            if count > 1:
                assert f"and {count - 1} more" in reports[0].message, text
        assert np.array_equal(results[0], results[1], equal_nan=True), text
    assert 0 < clean < 25
