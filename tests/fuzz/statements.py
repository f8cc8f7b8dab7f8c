# SPDX-License-Identifier: Apache-2.0
"""Random statements of a kernel: values, views, aliases, writes in place, branches and loops of every kind."""

from __future__ import annotations

import re

from expressions import CASTABLE, Expressions, Scope, Var
from values import is_float


class Statements(Expressions):
    """Grows blocks of statements. Names made in an inner block are forgotten at its end."""

    def block(self, lines: list[str], pad: str, count: int, depth: int) -> None:
        outer = list(self.scope.vars)
        start = len(lines)
        for _ in range(count):
            self.statement(lines, pad, depth)
        if len(lines) == start:
            lines.append(f"{pad}pass")
        if depth:
            self.scope = Scope(outer)

    def statement(self, lines: list[str], pad: str, depth: int) -> None:
        rng = self.rng
        options = [self.new_value] * 5 + [self.rebind] * 2 + [self.alias] * 2 + [self.view] * 2 + [self.scalar] * 2
        options += (
            [self.write_element] * 2
            + [self.slice_write] * 2
            + [self.array_of_scalars, self.accumulate, self.in_place, self.swap]
        )
        if self.helpers:
            options += [self.call_helper]
        if depth < 2:
            options += [self.branch] * 2 + [self.loop] * 3 + [self.carried_loop] * 2 + [self.while_loop]
        if [v for v in self.scope.vars if v.kind in ("out", "io")]:
            options += [self.early_write]
        rng.choice(options)(lines, pad, depth)

    # --------------------------------------------------------------------------------------------------- plain values

    def new_value(self, lines, pad, depth) -> Var:
        dt, shape = self.rng.choice(self.dtypes), self.rng.choice(self.shapes)
        text, valid = self.array(dt, shape, self.rng.randint(1, 3))
        v = Var(self.fresh("t"), self.level, dt, tuple(shape), valid)
        if text.startswith("pl.matmul"):
            v.acc = True
        lines.append(f"{pad}{v.name} = {text}")
        if text in [w.name for w in self.scope.vars] and self.level == "tensor":
            v.frozen = any(w.name == text and (w.frozen or w.kind != "tensor") for w in self.scope.vars)
        if self.level == "tensor" and re.match(r"(pl\.(slice|reshape|set_validshape)\()*[xq]\d", text):
            v.frozen = True  # an address into global memory: never a place here
        self.scope.vars.append(v)
        return v

    def own(self, **want) -> list[Var]:
        return [v for v in self.scope.find(kind=self.level, **want) if not v.frozen]

    def rebind(self, lines, pad, depth) -> None:
        names = [v for v in self.own() if v.valid is not None and not v.acc]
        if not names:
            return
        v = self.rng.choice(names)
        text, valid = self.array(v.dt, v.shape, 2)
        if (
            valid == v.valid
            and "pl.matmul" not in text[:10]
            and text not in [w.name for w in self.scope.vars]
            and text[0] not in "xq"
            and not text.startswith("pl.slice")
        ):
            if self.rng.random() < 0.2 and v.dt in ("FP32", "INT32"):
                lines.append(f"{pad}{v.name} {self.rng.choice(['+=', '*='])} {text}")
            else:
                lines.append(f"{pad}{v.name} = {text}")

    def swap(self, lines, pad, depth) -> None:
        names = [v for v in self.own() if not v.acc and v.valid is not None]
        pairs = [
            (a, b)
            for a in names
            for b in names
            if a.name < b.name and (a.dt, a.shape, a.valid) == (b.dt, b.shape, b.valid)
        ]
        if pairs:
            a, b = self.rng.choice(pairs)
            lines.append(f"{pad}{a.name}, {b.name} = {b.name}, {a.name}")

    def alias(self, lines, pad, depth) -> None:
        names = [v for v in self.own() if not v.acc]
        if names:
            a = self.rng.choice(names)
            b = Var(self.fresh("b"), a.kind, a.dt, a.shape, a.valid)
            lines.append(f"{pad}{b.name} = {a.name}")
            self.scope.vars.append(b)

    def view(self, lines, pad, depth) -> None:
        """A window, another shape or other extents of a value: the same cells under another name."""
        rng = self.rng
        names = [v for v in self.own() if not v.acc and len(v.shape) == 2]
        if not names:
            return
        a = rng.choice(names)
        m, n = a.shape
        kind = rng.choice(["window", "slice", "reshape", "valid", "bits"])
        b = Var(self.fresh("v"), a.kind, a.dt, a.shape, None)
        if kind in ("window", "slice"):
            h, w = rng.randint(1, m), rng.choice([w for w in (1, 4, 8, n // 2, n) if 0 < w <= n])
            i, j = rng.randint(0, m - h), rng.randint(0, n - w)
            b.shape = (h, w)
            if a.valid is not None:
                b.valid = tuple(min(max(v - o, 0), e) for v, o, e in zip(a.valid, (i, j), (h, w), strict=True))
                if 0 in b.valid:
                    return
            text = (
                f"{a.name}[{i}:{i + h}, {j}:{j + w}]"
                if kind == "window"
                else f"pl.slice({a.name}, [{h}, {w}], [{i}, {j}])"
            )
        elif kind == "reshape":
            if a.valid != a.shape:
                return
            b.shape = rng.choice([(n, m), (m * n, 1), (1, m * n)])
            b.valid = b.shape
            text = f"pl.reshape({a.name}, {list(b.shape)})"
        elif kind == "valid":
            b.valid = (rng.randint(1, m), rng.randint(1, n))
            text = f"pl.set_validshape({a.name}, {b.valid[0]}, {b.valid[1]})"
            if rng.random() < 0.4:
                text = f"pl.set_validshape({a.name}, pl.max(pl.min({self.integer(1)}, {m}), 1), {b.valid[1]})"
                b.valid = None
        else:
            other = {
                "FP32": "INT32",
                "INT32": "FP32",
                "FP16": "INT16",
                "INT16": "FP16",
                "INT8": "UINT8",
                "UINT8": "INT8",
            }
            if a.dt not in other or other[a.dt] not in self.dtypes:
                return
            b.dt, b.valid = other[a.dt], a.valid
            text = f"pl.reinterpret_view({a.name}, pl.{b.dt})"
        b.frozen = rng.random() < 0.5
        lines.append(f"{pad}{b.name} = {text}")
        self.scope.vars.append(b)

    def scalar(self, lines, pad, depth) -> None:
        rng = self.rng
        name = self.fresh("s")
        pick = rng.random()
        arrays = [
            v
            for v in self.scope.vars
            if v.kind in (self.level, "in", "io") and len(v.shape) == 2 and v.valid is not None
        ]
        if pick < 0.35 and arrays:
            v = rng.choice(arrays)
            i, j = (self.within(n) for n in v.valid)
            lines.append(f"{pad}{name} = pl.read({v.name}, [{i}, {j}])")
            self.scope.vars.append(Var(name, "scalar", v.dt, frozen=True))
        elif pick < 0.5:
            lines.append(f"{pad}{name} = {self.condition()}")
            self.scope.vars.append(Var(name, "scalar", "BOOL", frozen=True))
        elif pick < 0.65:
            dt = rng.choice(["INT32", "INT64", "FP32", "INT16"])
            lines.append(f"{pad}{name}: pl.Scalar[pl.{dt}] = {self.literal(dt)}")
            self.scope.vars.append(Var(name, "scalar", dt, frozen=dt not in ("INT32", "INT64")))
        elif pick < 0.8:
            dt = rng.choice(["INT32", "FP32", "INT8", "FP16"])
            lines.append(f"{pad}{name} = pl.cast({self.integer()}, pl.{dt})")
            self.scope.vars.append(Var(name, "scalar", dt, frozen=True))
        else:
            floats = [v.name for v in self.scope.vars if v.kind == "scalar" and v.dt == "FP32"]
            if floats:
                a = rng.choice(floats)
                e = rng.choice([f"{a} * 0.5 + 1.25", f"({a} - 2.0) / 4.0", f"pl.max({a}, 0.25)", f"-{a}"])
                lines.append(f"{pad}{name} = {e}")
                self.scope.vars.append(Var(name, "scalar", "FP32", frozen=True))

    # ------------------------------------------------------------------------------------------------------- in place

    def value_of(self, dt: str) -> str:
        names = [v.name for v in self.scope.vars if v.kind == "scalar" and v.dt == dt]
        return self.rng.choice(names) if names and self.rng.random() < 0.5 else self.literal(dt)

    def write_element(self, lines, pad, depth) -> None:
        names = [v for v in self.own() if not v.acc and len(v.shape) == 2]
        if names:
            v = self.rng.choice(names)
            i, j = (self.within(n) for n in v.shape)
            target = f"{v.name} = " if self.rng.random() < 0.4 else ""
            lines.append(f"{pad}{target}pl.write({v.name}, [{i}, {j}], {self.value_of(v.dt)})")

    def slice_write(self, lines, pad, depth) -> None:
        names = [v for v in self.own() if not v.acc and len(v.shape) == 2 and v.valid == v.shape]
        if not names:
            return
        v = self.rng.choice(names)
        h, w = self.rng.randint(1, v.shape[0]), self.rng.choice([v.shape[1], min(8, v.shape[1])])
        i, j = self.rng.randint(0, v.shape[0] - h), self.rng.randint(0, v.shape[1] - w)
        text, valid = self.array(v.dt, (h, w), 1)
        if valid != (h, w):
            return
        pick = self.rng.random()
        if pick < 0.5:
            lines.append(f"{pad}{v.name}[{i}:{i + h}, {j}:{j + w}] = {text}")
        elif pick < 0.8:
            lines.append(f"{pad}{v.name} = pl.assemble({v.name}, {text}, [{i}, {j}])")
        elif self.level == "tensor":
            lines.append(f"{pad}pl.assemble({v.name}, {text}, [{i}, {j}])")

    def in_place(self, lines, pad, depth) -> None:
        if self.level == "tile":
            names = [v for v in self.own() if not v.acc and v.valid not in (None, v.shape)]
            if names:
                v = self.rng.choice(names)
                lines.append(
                    f"{pad}{v.name} = pl.tile.fillpad_inplace({v.name}, pl.PadValue.{self.rng.choice(['zero', 'max'])})"
                )
                v.valid = v.shape if not depth else None
                if depth:
                    v.frozen = True

    def accumulate(self, lines, pad, depth) -> None:
        rng = self.rng
        src = rng.choice(["FP32", "FP16", "BF16", "INT8"])
        wide = "INT32" if src == "INT8" else "FP32"
        m, n = self.shapes[0]
        k = rng.choice([8, 16])
        if min(m, n) < 2:
            return
        name, acc = self.fresh("acc"), None
        a, va = self.array(src, (m, k), 1)
        b, vb = self.array(src, (k, n), 1)
        if va != (m, k) or vb != (k, n):
            return
        extra = f", out_dtype=pl.{wide}" if self.level == "tensor" and src != wide else ""
        lines.append(f"{pad}{name} = pl.matmul({a}, {b}{extra})")
        for _ in range(rng.randint(1, 2)):
            c, vc = self.array(src, (m, k), 0)
            d, vd = self.array(src, (k, n), 0)
            if vc != (m, k) or vd != (k, n):
                continue
            if rng.random() < 0.4:
                lines.append(f"{pad}for i_{name} in pl.range({rng.randint(0, 3)}):")
                cond = f", init_cond=(i_{name} == 0)" if rng.random() < 0.4 else ""
                lines.append(f"{pad}    {name} = pl.matmul_acc({name}, {c}, {d}{cond})")
            else:
                bare = "" if rng.random() < 0.3 else f"{name} = "
                lines.append(f"{pad}{bare}pl.matmul_acc({name}, {c}, {d})")
        if wide in self.dtypes:
            self.scope.vars.append(Var(name, self.level, wide, (m, n), (m, n), frozen=True, acc=True))

    def array_of_scalars(self, lines, pad, depth) -> None:
        name = self.fresh("arr")
        dt = self.rng.choice(["INT32", "INT64", "BOOL"])
        lines.append(f"{pad}{name} = pl.array.create(4, pl.{dt})")
        value = (lambda: self.condition()) if dt == "BOOL" else (lambda: f"pl.cast({self.integer(1)}, pl.{dt})")
        lines.append(f"{pad}{name}[{self.within(4)}] = {value()}")
        if self.rng.random() < 0.5:
            lines.append(f"{pad}for i_{name} in pl.range(4):")
            lines.append(
                f"{pad}    {name}[i_{name}] = "
                + (value() if dt == "BOOL" else f"{name}[i_{name}] + pl.cast(i_{name}, pl.{dt})")
            )
        s = self.fresh("s")
        lines.append(f"{pad}{s} = {name}[{self.within(4)}]")
        self.scope.vars.append(Var(s, "scalar", dt, frozen=True))

    def call_helper(self, lines, pad, depth) -> None:
        if self.level != "tile":
            return
        h = self.rng.choice(self.helpers)
        p = h.params[0]
        a = [v for v in self.own(dt=p.dt, shape=p.shape) if not v.acc]
        if not a:
            v = Var(self.fresh("t"), "tile", p.dt, p.shape, None)
            text, v.valid = self.array(p.dt, p.shape, 1)
            if text.startswith("pl.matmul") or text.isidentifier():
                return
            lines.append(f"{pad}{v.name} = {text}")
            self.scope.vars.append(v)
            a = [v]
        b, _ = self.array(p.dt, p.shape, 1)
        out = Var(self.fresh("t"), "tile", p.dt, p.shape, None)
        lines.append(f"{pad}{out.name} = {h.name}({self.rng.choice(a).name}, {b})")
        self.scope.vars.append(out)

    # ---------------------------------------------------------------------------------------------------- control flow

    def branch(self, lines, pad, depth) -> None:
        lines.append(f"{pad}if {self.condition()}:")
        if self.rng.random() < 0.25:  # both arms make one name
            dt, shape = self.rng.choice(self.dtypes), self.rng.choice(self.shapes)
            name = self.fresh("m")
            explicit = self.rng.random() < 0.4
            for k in range(2):
                text, _ = self.array(dt, shape, 2)
                same = [v.name for v in self.own(dt=dt, shape=tuple(shape)) if not v.acc]
                if same and self.rng.random() < 0.5:  # one of two storages, or the tile itself (L-83, L-185)
                    text = self.rng.choice(same)
                    lines.append(f"{pad}    {name} = pl.yield_({text})" if explicit else f"{pad}    {name} = {text}")
                    if k == 0:
                        lines.append(f"{pad}else:")
                    continue
                if text.startswith("pl.matmul") or (
                    self.level == "tensor" and (text.isidentifier() or "[" in text[:6] or text.startswith("pl.slice"))
                ):
                    text = f"pl.maximum({text}, {self.literal(dt)})"
                lines.append(f"{pad}    {name} = pl.yield_({text})" if explicit else f"{pad}    {name} = {text}")
                if k == 0:
                    lines.append(f"{pad}else:")
            self.scope.vars.append(Var(name, self.level, dt, tuple(shape), None))
            return
        self.block(lines, pad + "    ", self.rng.randint(1, 3), depth + 1)
        if self.rng.random() < 0.5:
            if self.rng.random() < 0.3:
                lines.append(f"{pad}elif {self.condition()}:")
                self.block(lines, pad + "    ", 1, depth + 1)
            lines.append(f"{pad}else:")
            self.block(lines, pad + "    ", self.rng.randint(1, 2), depth + 1)

    def bounds(self) -> str:
        rng = self.rng
        return rng.choice(["2", "3", "0", "1, 4", "4, 0, -1", "5, 1, -2", "0, 6, 2", "2, 2", "3, 1",
                           f"pl.min({self.integer(1)}, 3)", f"0, pl.max(pl.min({self.integer(1)}, 4), -1)"])  # fmt: skip

    def loop(self, lines, pad, depth) -> None:
        rng = self.rng
        i = self.fresh("i")
        kind = rng.choice(["range", "range", "pipeline", "parallel", "unroll"])
        bounds = rng.choice(["2", "3", "1, 4", "4, 0, -2", "0"]) if kind == "unroll" else self.bounds()
        extra = f", stage={rng.randint(1, 3)}" if kind == "pipeline" else ""
        lines.append(f"{pad}for {i} in pl.{kind}({bounds}{extra}):")
        inner = pad + "    "
        outer = list(self.scope.vars)
        if kind != "unroll":
            self.scope.vars.append(Var(i, "scalar", "INDEX", frozen=True))
        start = len(lines)
        for _ in range(rng.randint(1, 3)):
            self.statement(lines, inner, depth + 1)
        if kind in ("range", "pipeline") and rng.random() < 0.3:
            lines.append(f"{inner}if {self.condition()}:")
            lines.append(f"{inner}    {rng.choice(['break', 'continue'])}")
            self.statement(lines, inner, depth + 1)
        if len(lines) == start:
            lines.append(f"{inner}pass")
        self.scope = Scope(outer)

    def carried_loop(self, lines, pad, depth) -> None:
        """`init_values` with `yield_` or with a plain rebinding (L-97)."""
        rng = self.rng
        names = [v for v in self.own() if v.valid is not None and not v.acc]
        if not names:
            return
        first = rng.choice(names)
        c, n, i = self.fresh("c"), self.fresh("r"), self.fresh("i")
        carry = [(c, first)]
        count = self.fresh("k") if rng.random() < 0.4 else None
        init = f"{first.name}," + (" pl.const(1, pl.INT32)," if count else "")
        heads = f"{c}," + (f" {count}," if count else "")
        lines.append(f"{pad}for {i}, ({heads}) in pl.range({self.bounds()}, init_values=({init})):")
        inner = pad + "    "
        outer = list(self.scope.vars)
        self.scope.vars += [
            Var(c, self.level, first.dt, first.shape, first.valid, frozen=True),
            Var(i, "scalar", "INDEX", frozen=True),
        ]
        if count:
            self.scope.vars.append(Var(count, "scalar", "INT32", frozen=True))
        if rng.random() < 0.3:  # in place on the carried value: the initial name sees it (L-97, L-185)
            at = ", ".join(self.within(e) for e in first.shape)
            lines.append(f"{inner}pl.write({c}, [{at}], {self.value_of(first.dt)})")
        for _ in range(rng.randint(0, 2)):
            self.statement(lines, inner, depth + 1)
        for _ in range(10):
            text, valid = self.array(first.dt, first.shape, 2)
            known = [w.name for w in self.scope.vars]
            if (
                valid == first.valid
                and text not in known
                and not text.startswith(("pl.matmul", "pl.slice", "pl.reshape", "pl.set_validshape"))
                and text[0] not in "xq"
            ):
                break
        else:
            text = f"pl.add({c}, {self.literal(first.dt)})"
        out = n
        if rng.random() < 0.6:
            more = f", {n}k" if count else ""
            lines.append(f"{inner}{n}v = {text}")
            values = f"{n}v" + (f", {count} * pl.const(2, pl.INT32)" if count else "")
            if count:
                lines.append(f"{inner}{n}, {n}k = pl.yield_({values})")
            else:
                lines.append(f"{inner}{n} = pl.yield_({values})")
        else:
            lines.append(f"{inner}{c} = {text}")
            if count:
                lines.append(f"{inner}{count} = {count} + pl.const(1, pl.INT32)")
            out = c
        self.scope = Scope(outer)
        self.scope.vars.append(Var(out, self.level, first.dt, first.shape, first.valid, frozen=True))
        if count:
            self.scope.vars.append(Var(f"{n}k" if out == n else count, "scalar", "INT32", frozen=True))

    def while_loop(self, lines, pad, depth) -> None:
        w = self.fresh("w")
        lines.append(f"{pad}{w}: pl.Scalar[pl.INT32] = {self.rng.randint(0, 3)}")
        lines.append(f"{pad}while {w} > 0:")
        inner = pad + "    "
        outer = list(self.scope.vars)
        self.scope.vars.append(Var(w, "scalar", "INT32", frozen=True))
        lines.append(f"{inner}{w} = {w} - pl.const(1, pl.INT32)")
        self.statement(lines, inner, depth + 1)
        if self.rng.random() < 0.3:
            lines.append(f"{inner}if {self.condition()}:")
            lines.append(f"{inner}    break")
        self.scope = Scope(outer)

    # -------------------------------------------------------------------------------------------------------- outputs

    def early_write(self, lines, pad, depth) -> None:
        self.write_out(lines, pad, self.rng.choice([v for v in self.scope.vars if v.kind in ("out", "io")]))

    def write_out(self, lines, pad, out: Var) -> None:
        rng = self.rng
        if out.style == "element":
            i, j = (self.within(n) for n in out.shape)
            lines.append(f"{pad}pl.write({out.name}, [{i}, {j}], {self.value_of(out.dt)})")
            return
        names = [v for v in self.scope.vars if v.kind == self.level and len(v.shape) == 2
                 and all(n <= m for n, m in zip(v.shape, out.shape, strict=True))]  # fmt: skip
        if names and rng.random() < 0.8:
            v = rng.choice(names)
            text, shape, valid = v.name, v.shape, v.valid
            if v.dt != out.dt:
                if v.dt not in CASTABLE or out.dt not in CASTABLE:
                    return self.write_new(lines, pad, out)
                text = f"pl.cast({text}, pl.{out.dt})"
            return self.put(lines, pad, out, text, shape, valid, None)
        return self.write_new(lines, pad, out)

    def write_new(self, lines, pad, out: Var) -> None:
        shape = self.rng.choice(self.shapes)
        text, valid = self.array(out.dt, shape, 2)
        self.put(lines, pad, out, text, shape, valid, None)

    def put(self, lines, pad, out: Var, text: str, shape, valid, row: str | None) -> None:
        rng = self.rng
        i = row or self.offset(shape[0], out.shape[0])
        j = self.offset(shape[1], out.shape[1])
        if self.level == "tile" and rng.random() < 0.7:
            bare = "" if rng.random() < 0.3 else f"{out.name} = "
            lines.append(f"{pad}{bare}pl.store({text}, [{i}, {j}], {out.name})")
        elif rng.random() < 0.5 or valid != tuple(shape):
            bare = "" if rng.random() < 0.3 else f"{out.name} = "
            lines.append(f"{pad}{bare}pl.assemble({out.name}, {text}, [{i}, {j}])")
        else:
            parts = [
                f"{o}:{int(o) + n}" if o.isdigit() else f"{o} : {o} + {n}" for o, n in zip((i, j), shape, strict=True)
            ]
            lines.append(f"{pad}{out.name}[{', '.join(parts)}] = {text}")


__all__ = ["Statements", "is_float"]
