# SPDX-License-Identifier: Apache-2.0
"""Random programs shaped like the kernels of models: what they share of text, parameters, levels and places."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import numpy as np
from generator import PROLOG, Program
from values import NUMPY, is_float


@dataclass
class Param:
    """An array or scalar of the entry. `dims` is what the annotation says, `shape` what is passed."""

    name: str
    kind: str  # "in", "out", "io", "scalar"
    dt: str
    shape: tuple[int, ...] = ()
    dims: tuple = ()
    values: object = None

    def note(self) -> str:
        if self.kind == "scalar":
            return f"{self.name}: pl.Scalar[pl.{self.dt}]"
        base = f"pl.Tensor[[{', '.join(str(d) for d in self.dims)}], pl.{self.dt}]"
        return f"{self.name}: " + {"in": base, "out": f"pl.Out[{base}]", "io": f"pl.InOut[{base}]"}[self.kind]


class Model:
    """Text of one program under way; the models themselves are mixed in."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.platform = self.rng.choice(["a2a3sim", "a5sim"])
        self.form = self.rng.choice(["class", "jit"])
        self.level = self.rng.choice(["tile", "tensor"])
        self.params: list[Param] = []
        self.symbols: list[str] = []
        self.count = 0

    # ------------------------------------------------------------------------------------------------- parameters

    def pick(self, *options):
        return self.rng.choice(options)

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def array(self, name, kind, dt, shape, dims=None, values=None) -> str:
        self.params.append(Param(name, kind, dt, tuple(shape), tuple(dims or shape), values))
        return name

    def number(self, name: str, dt: str, value) -> str:
        self.params.append(Param(name, "scalar", dt, values=value))
        return name

    def symbol(self, name: str, extent: int):
        """A dimension: a symbol bound at the call, or the number itself."""
        if self.chance(0.5):
            if name not in self.symbols:
                self.symbols.append(name)
            return name
        return extent

    def fill(self, p: Param):
        if p.values is not None:
            return np.array(p.values, NUMPY[p.dt]) if p.shape else p.values
        g = self.numbers
        if is_float(p.dt):
            return (g.standard_normal(p.shape) * g.choice([0.5, 1.0, 2.0])).astype(np.float32).astype(NUMPY[p.dt])
        return g.integers(-9, 10, p.shape).astype(NUMPY[p.dt])

    # -------------------------------------------------------------------------------- the two levels of one operation

    @property
    def tile(self) -> bool:
        return self.level == "tile"

    def window(self, name: str, offsets, shape, valid=None) -> str:
        """A window of a tensor in global memory as a rank-2 value: units in front are dropped."""
        lead = len(shape) - 2
        offs, dims = ", ".join(map(str, offsets)), ", ".join(map(str, shape))
        tail = "" if valid is None else f", valid_shape=[{', '.join(map(str, valid))}]"
        if self.tile:
            text = f"pl.load({name}, [{offs}], [{dims}]{tail})"
            return f"pl.reshape({text}, [{shape[-2]}, {shape[-1]}])" if lead else text
        if valid is None and self.chance(0.6):
            parts = [str(o) for o in offsets[:lead]]
            parts += [f"{o} : {o} + {n}" for o, n in zip(offsets[lead:], shape[lead:], strict=True)]
            return f"{name}[{', '.join(parts)}]"
        drop = f", drop_dims={list(range(lead))}" if lead else ""
        return f"pl.slice({name}, [{dims}], [{offs}]{tail}{drop})"

    def put(self, name: str, offsets, text: str, bare: bool | None = None) -> str:
        offs = ", ".join(map(str, offsets))
        head = "" if (self.chance(0.4) if bare is None else bare) else f"{name} = "
        if self.tile and self.chance(0.7):
            return f"{head}pl.store({text}, [{offs}], {name})"
        return f"{head}pl.assemble({name}, {text}, [{offs}])"

    def product(self, a: str, b: str, dt: str, *, b_trans: bool = False) -> str:
        """FP32 (or INT32) product at either level."""
        wide = "INT32" if dt == "INT8" else "FP32"
        if self.tile:
            return f"pl.matmul({a}, {f'pl.tile.transpose_view({b})' if b_trans else b})"
        extra = ", b_trans=True" if b_trans else ""
        extra += f", out_dtype=pl.{wide}" if dt != wide else ""
        return f"pl.matmul({a}, {b}{extra})"

    def reduce(self, op: str, x: str, shape, dt: str) -> str:
        """`op` with a scratch tile where tiles need one."""
        if self.tile and (op.startswith("row") or "arg" in op):
            return f"pl.{op}({x}, pl.create_tile([{shape[0]}, {shape[1]}], dtype=pl.{dt}))"
        return f"pl.{op}({x})"

    def full(self, shape, dt: str, value) -> str:
        name = "pl.tile.full" if self.tile else "pl.full"
        return f"{name}([{shape[0]}, {shape[1]}], dtype=pl.{dt}, value={value})"

    def cast(self, x: str, src: str, dst: str, mode: str = "") -> str:
        if src == dst:
            return x
        return f"pl.cast({x}, pl.{dst}{f', mode={mode!r}' if mode else ''})".replace("'", '"')

    def rows(self, op: str, a: str, v: str) -> str:
        """`a op v` with one value a row: by name or by broadcasting, which a quotient of tiles has not (O-903)."""
        if self.tile and op == "div":
            return f"pl.row_expand_div({a}, {v})"
        return self.pick(f"pl.row_expand_{op}({a}, {v})", f"pl.{op}({a}, {v})")

    # ---------------------------------------------------------------------------------------------------- the program

    def loop(self, name: str, bounds: str) -> str:
        kind = self.pick("range", "range", "pipeline")
        return f"for {name} in pl.{kind}({bounds}{', stage=2' if kind == 'pipeline' else ''}):"

    def place(self, body: list[str], *, blocks: tuple[str, str] | None = None, kernel: bool | None = None) -> None:
        """Write the entry around a body: in a region, over blocks, or in a kernel function of its own."""
        own = self.chance(0.4) if kernel is None else kernel
        own = own and blocks is None
        outs = [p.name for p in self.params if p.kind in ("out", "io")]
        notes = [p.note() for p in self.params]
        names = [p.name for p in self.params]
        returns = ", ".join(p.note().split(": ", 1)[1] for p in self.params if p.kind in ("out", "io"))
        returns = returns.replace("pl.InOut[pl.Tensor", "pl.Tensor").replace("pl.Out[pl.Tensor", "pl.Tensor")
        returns = returns.replace("]]", "]")
        if returns.count("pl.Tensor") > 1:
            returns = f"tuple[{returns}]"
        cls = self.form == "class"
        pad = "    " if cls else ""
        arrow = f" -> {returns}" if cls else ""
        out = [PROLOG]
        out += [f'{s} = pl.dynamic("{s}")\n' for s in self.symbols]
        out.append("\n\n@pl.program\nclass Random:\n" if cls else "\n\n")
        me = ["self"] if cls else []
        result = f"{pad}    return {', '.join(outs)}\n"
        if own:
            mark = "@pl.function(type=pl.FunctionType.InCore)" if cls else "@pl.jit.incore"
            out.append(f"{pad}{mark}\n{pad}def kernel({', '.join(me + notes)}){arrow}:\n")
            out += [f"{pad}    {line}\n" for line in body]
            out.append(result + ("\n" if cls else "\n\n"))
        mark = "@pl.function(type=pl.FunctionType.Orchestration)" if cls else "@pl.jit"
        out.append(f"{pad}{mark}\n{pad}def main({', '.join(me + notes)}){arrow}:\n")
        if own:
            call = f"{'self.' if cls else ''}kernel({', '.join(names)})"
            out.append(f"{pad}    {', '.join(outs)} = {call}\n")
        elif blocks is not None:
            out.append(f"{pad}    for {blocks[0]} in pl.spmd({blocks[1]}):\n")
            out += [f"{pad}        {line}\n" for line in body]
        else:
            out.append(f"{pad}    with pl.at(level=pl.Level.CORE_GROUP):\n")
            out += [f"{pad}        {line}\n" for line in body]
        out.append(result)
        self.source = "".join(out)

    def program(self) -> Program:
        return Program(self.seed, self.source, self.form, self.platform, [self.fill(p) for p in self.params])


__all__ = ["Model", "Param"]
