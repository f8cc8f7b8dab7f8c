# SPDX-License-Identifier: Apache-2.0
"""Random programs as Python text: kernels, regions and the orchestration around them, in class form and JIT form."""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

import numpy as np
from expressions import CASTABLE, FLOATS, Expressions, Scope, Var
from statements import Statements
from values import NUMPY, is_float


@dataclass
class Kernel:
    """A kernel function: its name, parameters and text (without decorator)."""

    name: str
    params: list[Var]
    lines: list[str]
    outs: list[Var]


@dataclass
class Program:
    """One random program."""

    seed: int
    source: str
    form: str  # "class" or "jit"
    platform: str
    arguments: list


PROLOG = "import pypto.language as pl\n\n"


class Generator(Statements):
    """Makes one program from a seed."""

    def __init__(self, seed: int) -> None:
        rng = Random(seed)
        platform = rng.choice(["a2a3sim", "a5sim"])
        Expressions.__init__(self, rng, platform)
        self.seed = seed
        self.platform = platform
        self.counter = 0
        self.form = rng.choice(["class", "jit"])
        self.call_prefix = "self." if self.form == "class" else ""
        pool = ["FP32", "FP32", "FP32", "FP16", "BF16", "INT32", "INT32", "INT16", "INT8", "UINT8", "INT64"]
        if self.a5:
            pool += ["UINT16", "UINT32"]
        self.dtypes = list(dict.fromkeys(rng.choice(pool) for _ in range(rng.randint(2, 4))))
        rows = rng.choice([2, 3, 4, 5, 8, 16, 16, 32])
        cols = rng.choice([8, 16, 16, 24, 32, 40, 64, 7])
        self.shapes = [(rows, cols), (rows, cols), (rows, 1), (1, cols)]
        if cols % 2 == 0:
            self.shapes.append((rows, cols // 2))
        self.big = (rows * rng.choice([1, 1, 2, 3]), cols * rng.choice([1, 1, 2]))
        self.dynamic = rng.random() < 0.4
        self.helpers: list[Kernel] = []
        self.tall: set[str] = set()

    def fresh(self, stem: str) -> str:
        self.counter += 1
        return f"{stem}{self.counter}"

    # ---------------------------------------------------------------------------------------------------- parameters

    def tensor_param(self, kind: str, dt: str, shape) -> Var:
        v = Var(self.fresh({"in": "x", "out": "o", "io": "q"}[kind]), kind, dt, tuple(shape), tuple(shape))
        v.style = "element" if kind == "out" and self.rng.random() < 0.15 else "bulk"
        return v

    def annotation(self, v: Var, dynamic: bool = False) -> str:
        if v.kind == "scalar":
            return f"pl.Scalar[pl.{v.dt}]"
        dims = [str(n * (2 if axis == 0 and v.name in self.tall else 1)) for axis, n in enumerate(v.shape)]
        if dynamic:
            dims[0] = "M"
        base = f"pl.Tensor[[{', '.join(dims)}], pl.{v.dt}]"
        return {"in": base, "out": f"pl.Out[{base}]", "io": f"pl.InOut[{base}]"}[v.kind]

    def signature(self, name: str, params: list[Var], returns: list[Var], indent: str) -> str:
        own = ["self"] if self.form == "class" else []
        parts = own + [f"{p.name}: {self.annotation(p, p.shape == self.big and self.dynamic)}" for p in params]
        base = [self.annotation(r, r.shape == self.big and self.dynamic) for r in returns]
        base = [b[b.index("[") + 1 : -1] if b.startswith(("pl.Out", "pl.InOut")) else b for b in base]
        arrow = "" if self.form == "jit" else f" -> {base[0]}" if len(base) == 1 else f" -> tuple[{', '.join(base)}]"
        return f"{indent}def {name}({', '.join(parts)}){arrow}:"

    # ------------------------------------------------------------------------------------------------------- kernels

    def kernel(self) -> Kernel:
        rng = self.rng
        params = [self.tensor_param("in", rng.choice(self.dtypes), self.big) for _ in range(rng.randint(1, 3))]
        if rng.random() < 0.3:
            params.append(self.tensor_param("io", rng.choice(self.dtypes), self.big))
        if rng.random() < 0.5:
            dt = rng.choice(["INT32", "INT64", "FP32", "INDEX"])
            params.insert(rng.randint(0, len(params)), Var(self.fresh("s"), "scalar", dt))
        outs = [self.tensor_param("out", rng.choice(self.dtypes), self.big) for _ in range(rng.choice([1, 1, 2]))]
        params += outs
        writable = outs + [p for p in params if p.kind == "io"]
        self.scope = Scope(list(params))
        if self.dynamic:
            self.scope.vars.append(Var("M", "scalar", "INDEX"))
        self.level = rng.choice(["tile", "tile", "tensor"])
        lines = self.kernel_body(writable, "        " if self.form == "class" else "    ")
        return Kernel(self.fresh("kernel"), params, lines, writable)

    def kernel_body(self, writable: list[Var], pad: str) -> list[str]:
        self.in_body = True
        lines: list[str] = []
        self.block(lines, pad, self.rng.randint(3, 8), 0)
        for out in writable:
            self.write_out(lines, pad, out)
        result = ", ".join(v.name for v in writable)
        if self.rng.random() < 0.15:  # L-52: an early return
            lines.append(f"{pad}if {self.condition()}:")
            lines.append(f"{pad}    return {result}")
            self.statement(lines, pad, 1)
            self.write_out(lines, pad, self.rng.choice(writable))
        lines.append(f"{pad}return {result}")
        return lines

    def helper(self) -> Kernel | None:
        """An inline helper `h(a, b)`: by reference for arrays, by value for scalars (L-59)."""
        rng = self.rng
        dt, shape = rng.choice(self.dtypes), rng.choice(self.shapes[:2])
        self.level = "tile"
        a = Var("ha", "tile", dt, shape, None, frozen=True)
        b = Var("hb", "tile", dt, shape, None, frozen=True)
        self.scope = Scope([a, b])
        lines = []
        text, _ = self.array(dt, shape, 2)
        lines.append(f"    hc = {text}")
        self.scope.vars.append(Var("hc", "tile", dt, shape, None))
        if rng.random() < 0.4:
            lines.append(f"    pl.write(ha, [0, 0], {self.literal(dt)})")
        text, _ = self.array(dt, shape, 1)
        lines.append(f"    return {text}")
        return Kernel(self.fresh("helper"), [a, b], lines, [])

    # ------------------------------------------------------------------------------------------------------- program

    def program(self) -> Program:
        rng = self.rng
        if rng.random() < 0.35:
            self.helpers.append(self.helper())
        kernels = [self.kernel() for _ in range(rng.choice([1, 1, 2]))]
        text, params = self.entry(kernels)
        indent = "    " if self.form == "class" else ""
        out = [PROLOG]
        if self.dynamic:
            out.append('M = pl.dynamic("M")\n\n\n')
        for h in self.helpers:
            out.append("@pl.inline\ndef " + h.name + "(ha, hb):\n" + "\n".join(h.lines) + "\n\n\n")
        if self.form == "class":
            out.append("@pl.program\nclass Random:\n")
        for k in kernels:
            mark = "@pl.function(type=pl.FunctionType.InCore)" if self.form == "class" else "@pl.jit.incore"
            out.append(
                f"{indent}{mark}\n{self.signature(k.name, k.params, k.outs, indent)}\n" + "\n".join(k.lines) + "\n\n\n"
            )
        mark = "@pl.function(type=pl.FunctionType.Orchestration)" if self.form == "class" else "@pl.jit"
        out.append(f"{indent}{mark}\n{text}\n")
        source = "".join(out)
        if self.form == "class":
            source = source.replace("\n\n\n    @", "\n\n    @")
        return Program(self.seed, source, self.form, self.platform, [self.argument(p) for p in params])

    def entry(self, kernels: list[Kernel]) -> tuple[str, list[Var]]:
        rng = self.rng
        pad = "        " if self.form == "class" else "    "
        lines: list[str] = []
        params: list[Var] = []
        written: list[Var] = []
        calls = [rng.choice(kernels) for _ in range(len(kernels) + rng.randint(0, 1))]
        for k in [*kernels, *calls[len(kernels) :]]:
            self.in_body = False
            self.call_kernel(k, params, written, lines, pad)
        if rng.random() < 0.35:
            self.region(params, written, lines, pad)
        if not written:  # every output was an intermediate: say what the program computes
            self.region(params, written, lines, pad)
        lines.append(f"{pad}return {', '.join(v.name for v in written)}")
        signature = self.signature("main", params, written, "    " if self.form == "class" else "")
        return signature + "\n" + "\n".join(lines), params

    def call_kernel(self, k: Kernel, params, written, lines, pad) -> None:
        rng = self.rng
        args = []
        target: dict[str, Var] = {}
        sliced = False
        loop = rng.random() < 0.2
        inner = pad + "    " if loop else pad
        prepare: list[str] = []
        for p in k.params:
            if p.kind == "scalar":
                have = [v for v in params if v.kind == "scalar" and v.dt == p.dt]
                if loop and p.dt in ("INDEX", "INT64"):
                    args.append("step")
                elif rng.random() < 0.5:
                    args.append(self.literal(p.dt))
                else:
                    v = rng.choice(have) if have and rng.random() < 0.5 else Var(self.fresh("n"), "scalar", p.dt)
                    if v not in params:
                        params.append(v)
                    args.append(v.name)
                continue
            writes = p in k.outs
            taken = {re.sub(r"^pl.slice\(|[\[,].*", "", a) for a in args}
            pool = [
                v
                for v in params
                if v.dt == p.dt and v.shape == p.shape and v.name not in taken and (v.kind != "in" or not writes)
            ]
            if not writes and p.kind == "in" and pool and rng.random() < 0.7:
                v = rng.choice(pool)
            elif writes and [v for v in pool if v.kind == "io"] and rng.random() < 0.5:
                v = rng.choice([v for v in pool if v.kind == "io"])
            else:
                v = Var(self.fresh("x" if not writes else "y"), "io" if writes else "in", p.dt, p.shape, p.shape)
                if writes and p.kind == "out" and rng.random() < 0.2:  # an intermediate of the program
                    dims = ", ".join(["M" if self.dynamic else str(p.shape[0]), str(p.shape[1])])
                    prepare.append(f"{pad}{v.name} = pl.create_tensor([{dims}], dtype=pl.{p.dt})")
                    v.kind = "local"
                else:
                    params.append(v)
                    if not self.dynamic and rng.random() < 0.25:
                        self.tall.add(v.name)
            args.append(self.part(v))
            sliced |= writes and args[-1] != v.name
            if writes:
                target[p.name] = v
                if v.kind != "local" and v not in written:
                    written.append(v)
        lines += prepare
        if loop:
            lines.append(f"{pad}for step in pl.range({rng.choice(['2', '0, 3', '3, 0, -1', '1'])}):")
        call = f"{self.call_prefix}{k.name}({', '.join(args)})"
        results = [target[p.name] for p in k.outs]
        if loop or rng.random() < 0.75:
            pass
        elif rng.random() < 0.5:  # a task that may not be submitted
            lines.append(f"{pad}if {self.control_condition(params)}:")
            inner = pad + "    "
        if sliced or rng.random() < 0.25:
            lines.append(f"{inner}{call}")
        else:
            lines.append(f"{inner}{', '.join(v.name for v in results)} = {call}")

    def part(self, v: Var) -> str:
        """The whole of an argument, or a window of rows of a taller one."""
        if v.name not in self.tall:
            return v.name
        rows = v.shape[0]
        at = self.rng.choice([0, rows, self.rng.randint(0, rows)])
        spelling = self.rng.choice(["subscript", "slice"])
        if spelling == "subscript":
            return f"{v.name}[{at}:{at + rows}, :]"
        return f"pl.slice({v.name}, [{rows}, {v.shape[1]}], [{at}, 0])"

    def control_condition(self, params) -> str:
        arrays = [v for v in params if v.shape and v.dt not in ("BF16", "FP16")]
        scalars = [v for v in params if v.kind == "scalar" and v.dt in ("INT32", "INT64")]
        if scalars and self.rng.random() < 0.4:
            return f"{self.rng.choice(scalars).name} {self.rng.choice(['<', '>='])} 4"
        if not arrays:
            return "pl.const(1, pl.INT32) == 1"
        v = self.rng.choice(arrays)
        limit = "0.5" if is_float(v.dt) else "1"
        return f"pl.read({v.name}, [{self.rng.randrange(v.shape[0])}, {self.rng.randrange(v.shape[1])}]) {self.rng.choice(['<', '>'])} {limit}"

    def region(self, params, written, lines, pad) -> None:
        """A region in place, tile level or tensor level, sometimes over blocks of rows."""
        rng = self.rng
        inputs = [v for v in params if v.kind == "in" and v.shape and v.name not in self.tall]
        if not inputs:
            inputs = [self.tensor_param("in", rng.choice(self.dtypes), self.big)]
            params += inputs
        out = Var(self.fresh("y"), "out", rng.choice(self.dtypes), self.big, self.big, style="bulk")
        params.append(out)
        written.append(out)
        self.scope = Scope([*inputs, out])
        self.level = rng.choice(["tile", "tensor"])
        self.in_body = True
        shape = self.shapes[0]
        blocks = self.big[0] // shape[0]
        if rng.random() < 0.4:
            name = "block"
            lines.append(f"{pad}for block in pl.spmd({blocks}):")
            text, valid = self.array(out.dt, shape, 3)
            row = f"block * {shape[0]}"
        else:
            lines.append(f'{pad}with pl.at(level=pl.Level.CORE_GROUP, name_hint="region"):')
            self.block(lines, pad + "    ", rng.randint(1, 4), 0)
            text, valid = self.array(out.dt, shape, 3)
            row = str(rng.randrange(blocks) * shape[0])
        self.put(lines, pad + "    ", out, text, shape, valid, row)

    # ------------------------------------------------------------------------------------------------------ arguments

    def argument(self, v: Var):
        rng = np.random.default_rng(self.seed * 1000 + sum(map(ord, v.name)))
        if v.name in self.tall:
            v = Var(v.name, v.kind, v.dt, (2 * v.shape[0], v.shape[1]))
        if v.kind == "scalar":
            return float(rng.integers(-8, 8)) / 4 if is_float(v.dt) else int(rng.integers(0, 9))
        if is_float(v.dt):
            x = (rng.standard_normal(v.shape) * rng.choice([0.5, 2.0, 8.0])).astype(np.float32)
            odd = rng.random(v.shape)
            x = np.where(odd < 0.03, np.float32(0), x)
            x = np.where((odd > 0.03) & (odd < 0.05), np.float32(-0.0), x)
            x = np.where((odd > 0.05) & (odd < 0.06), np.float32(3e4), x)
            return x.astype(NUMPY[v.dt])
        info = np.iinfo(NUMPY[v.dt])
        low, high = (-9, 10) if info.min < 0 else (0, 12)
        x = rng.integers(low, high, v.shape)
        wide = rng.integers(info.min, info.max, v.shape, dtype=NUMPY[v.dt], endpoint=True)
        return np.where(rng.random(v.shape) < 0.1, wide, x.astype(NUMPY[v.dt]))


def make(seed: int) -> Program:
    return Generator(seed).program()


__all__ = ["CASTABLE", "FLOATS", "Program", "make"]
