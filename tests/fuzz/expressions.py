# SPDX-License-Identifier: Apache-2.0
"""Random expressions of a wanted dtype and shape, at tile level or tensor level."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from values import is_float

FLOATS = ("FP32", "FP16", "BF16")
NEGATABLE = ("INT8", "INT16", "INT32", "FP32", "FP16", "BF16")
CASTABLE = ("FP32", "FP16", "BF16", "INT8", "UINT8", "INT16", "INT32", "INT64")
REDUCED = ("FP32", "FP16", "BF16", "INT16", "INT32")
PLAIN = ("FP32", "FP16", "INT16", "INT32")  # row_min, arg forms, gather, tile div
BITWISE = ("INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32")
COMPARED = ("INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32", "FP16", "BF16", "FP32")
SELECTED = ("INT8", "INT16", "INT32", "UINT16", "UINT32", "FP16", "FP32")
MODES = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")


@dataclass
class Var:
    """A name of the program text. `valid` is None where it is decided at run time."""

    name: str
    kind: str  # "tile", "tensor" (on chip), "in", "out", "io" (global memory), "scalar", "array"
    dt: str
    shape: tuple[int, ...] = ()
    valid: tuple[int, ...] | None = None
    frozen: bool = False  # may not be rebound or changed here
    acc: bool = False  # lives in the accumulator memory
    style: str = ""  # how an output is written: "bulk" or "element"


@dataclass
class Scope:
    """Names in reach."""

    vars: list[Var] = field(default_factory=list)

    def find(self, **want) -> list[Var]:
        return [v for v in self.vars if all(getattr(v, k) == w for k, w in want.items())]


class Expressions:
    """Grows expressions. `self.scope` holds the names, `self.level` the kind of array values."""

    def __init__(self, rng: Random, platform: str) -> None:
        self.rng = rng
        self.a5 = platform.startswith("a5")
        self.scope = Scope()
        self.level = "tile"
        self.in_body = True

    # ------------------------------------------------------------------------------------------------------ scalars

    def literal(self, dt: str) -> str:
        rng = self.rng
        if is_float(dt):
            return repr(rng.choice([0.5, 1.5, -2.25, 3.0, -0.125, 0.75, 10.0, -1.0]))
        if dt.startswith("U"):
            return str(rng.choice([1, 2, 3, 5, 7, 100]))
        return str(rng.choice([1, 2, 3, -1, -2, 5, 7, -7, 100]))

    def integer(self, depth: int = 2) -> str:
        """An integer scalar expression whose value stays small: names, literals, `//`, `%`, min, max."""
        rng = self.rng
        names = [v.name for v in self.scope.vars if v.kind == "scalar" and v.dt in ("INDEX", "INT32", "INT64")]
        if depth == 0 or rng.random() < 0.4:
            return rng.choice(names) if names and rng.random() < 0.8 else str(rng.randint(1, 9))
        a = self.integer(depth - 1)
        c = rng.randint(2, 7)
        return rng.choice(
            [f"({a} + {self.integer(depth - 1)})", f"({a} - {c})", f"({a} * {c})", f"({a} // {c})", f"({a} % {c})",
             f"pl.min({a}, {self.integer(depth - 1)})", f"pl.max({a}, {c})", f"({a} << 1)", f"({a} >> 1)", f"(-{a})"]
        )  # fmt: skip

    def within(self, limit: int) -> str:
        """An index in [0, limit)."""
        if limit == 1 or self.rng.random() < 0.5:
            return str(self.rng.randrange(limit))
        return f"({self.integer(1)}) % {limit}"

    def condition(self) -> str:
        rng = self.rng
        pick = rng.random()
        op = rng.choice(["<", "<=", ">", ">=", "==", "!="])
        if pick < 0.25:
            arrays = [v for v in self.scope.vars if v.kind in ("in", "io") and len(v.shape) == 2]
            if arrays and self.in_body:
                v = rng.choice(arrays)
                i, j = (self.within(n) for n in v.shape)
                e = rng.choice([f"pl.read({v.name}, [{i}, {j}])", f"{v.name}[{i}, {j}]"])
                right = {"FP": "0.5"}.get(v.dt[:2], "1")
                return f"{e} {op} 0.5" if is_float(v.dt) else f"{e} {op} {right}"
        bools = self.scope.find(kind="scalar", dt="BOOL")
        if pick < 0.35 and bools:
            return rng.choice(["", "not "]) + rng.choice(bools).name
        simple = f"{self.integer()} {op} {self.integer(1)}"
        if pick < 0.5:
            return f"({simple}) {rng.choice(['and', 'or'])} ({self.integer(1)} {op} {rng.randint(0, 6)})"
        if not any(v.kind == "scalar" for v in self.scope.vars):
            return f"pl.const({rng.randint(0, 5)}, pl.INT32) {op} {rng.randint(0, 5)}"
        return simple

    def scalar_operand(self, dt: str) -> str:
        """Right operand of an array: a literal, a typed constant, a scalar name or an element."""
        rng = self.rng
        names = [v.name for v in self.scope.vars if v.kind == "scalar" and v.dt == dt]
        pick = rng.random()
        if names and pick < 0.4:
            return rng.choice(names)
        if pick < 0.55:
            return f"pl.const({self.literal(dt)}, pl.{dt})"
        return self.literal(dt)

    # ------------------------------------------------------------------------------------------------------- arrays

    def full_valid(self, shape) -> tuple[int, ...]:
        return tuple(shape)

    def leaf(self, dt: str, shape) -> tuple[str, tuple | None]:
        rng = self.rng
        names = [v for v in self.scope.vars if v.kind == self.level and v.dt == dt and v.shape == tuple(shape)]
        if names and rng.random() < 0.7:
            v = rng.choice(names)
            return v.name, v.valid
        sources = [
            v for v in self.scope.vars
            if v.kind in ("in", "io") and v.dt == dt and len(v.shape) == len(shape)
            and all(n <= m for n, m in zip(shape, v.shape, strict=True))
        ]  # fmt: skip
        if sources:
            return self.window(rng.choice(sources), shape)
        others = [v for v in self.scope.vars if v.kind in ("in", "io") and v.dt in CASTABLE and v.dt != dt and len(v.shape) == len(shape)
                  and all(n <= m for n, m in zip(shape, v.shape, strict=True))]  # fmt: skip
        if others and dt in CASTABLE and rng.random() < 0.8:
            text, valid = self.window(rng.choice(others), shape)
            return f"pl.cast({text}, pl.{dt})", valid
        full = "pl.tile.full" if self.level == "tile" else "pl.full"
        return f"{full}({list(shape)}, dtype=pl.{dt}, value={self.literal(dt)})", tuple(shape)

    def window(self, v: Var, shape) -> tuple[str, tuple | None]:
        rng = self.rng
        offsets = [self.offset(n, m) for n, m in zip(shape, v.shape, strict=True)]
        if self.level == "tile":
            if rng.random() < 0.3:
                if rng.random() < 0.5:
                    valid = tuple(rng.randint(1, n) for n in shape)
                    return f"pl.load({v.name}, [{', '.join(offsets)}], {list(shape)}, valid_shape={list(valid)})", valid
                texts = [f"pl.max(pl.min({self.integer(1)}, {n}), 1)" for n in shape]
                return (
                    f"pl.load({v.name}, [{', '.join(offsets)}], {list(shape)}, valid_shape=[{', '.join(texts)}])",
                    None,
                )
            return f"pl.load({v.name}, [{', '.join(offsets)}], {list(shape)})", tuple(shape)
        if tuple(shape) == v.shape and rng.random() < 0.6:
            return v.name, tuple(shape)
        if rng.random() < 0.5:
            return f"pl.slice({v.name}, {list(shape)}, [{', '.join(offsets)}])", tuple(shape)
        parts = [
            f"{o} : {o} + {n}" if not o.isdigit() else f"{o} : {int(o) + n}"
            for o, n in zip(offsets, shape, strict=True)
        ]
        return f"{v.name}[{', '.join(parts)}]", tuple(shape)

    def offset(self, n: int, m: int) -> str:
        if n == m or self.rng.random() < 0.6:
            return str(self.rng.randint(0, m - n))
        return f"({self.integer(1)}) % {m - n + 1}"

    def array(self, dt: str, shape, depth: int) -> tuple[str, tuple | None]:
        """(text, valid) of an expression with this dtype and shape."""
        if depth <= 0 or self.rng.random() < 0.12:
            return self.leaf(dt, shape)
        for _ in range(12):
            maker = self.rng.choice(self.makers(dt, shape))
            made = maker(dt, tuple(shape), depth - 1)
            if made is not None:
                return made
        return self.leaf(dt, shape)

    def makers(self, dt: str, shape):
        out = [self.binary] * 4 + [self.with_scalar] * 3 + [self.operator]
        if dt in NEGATABLE:
            out += [self.unary] * 3
        if dt in CASTABLE:
            out += [self.converted] * 2
        if len(shape) == 2:
            out += [self.expanded] * 2 + [self.transposed, self.reshaped, self.joined, self.padded, self.mixed]
            if dt in REDUCED and 1 in shape:
                out += [self.reduced] * 4
            if dt in COMPARED:
                out += [self.selected]
            if dt in ("FP32", "INT32", "FP16", "BF16") and min(shape) > 1:
                out += [self.product] * 2
            if dt in PLAIN:
                out += [self.gathered]
            if dt in BITWISE:
                out += [self.bitwise] * 2
            if dt == "INT32":
                out += [self.index_of]
            if self.level == "tile":
                out += [self.three, self.partial]
        return out

    def binary(self, dt, shape, depth):
        rng = self.rng
        op = rng.choice(["add", "sub", "mul", "maximum", "minimum", "div", "add", "sub", "fmod"])
        if (op == "div" and dt not in PLAIN) or (op == "fmod" and dt not in ("FP32", "FP16", "INT32")):
            return None
        a, va = self.array(dt, shape, depth)
        other = shape
        if len(shape) == 2 and rng.random() < 0.25 and op not in ("div", "fmod"):
            other = rng.choice([(shape[0], 1), (1, shape[1]), (1, 1)])
        b, vb = self.array(dt, other, depth)
        if op == "div" and self.level == "tile" and (va is None or va != vb):
            return None
        name = f"pl.{op}" if rng.random() < 0.8 else f"pl.{self.level}.{op}"
        if rng.random() < 0.15:
            return f"{name}({a}, rhs={b})", va
        return f"{name}({a}, {b})", va

    def operator(self, dt, shape, depth):
        op = self.rng.choice(["+", "-", "*"])
        a, va = self.array(dt, shape, depth)
        if self.rng.random() < 0.4:
            if dt in ("INT64", "UINT16", "UINT32", "UINT8") and op == "-":
                return None
            return f"({a} {op} {self.scalar_operand(dt)})", va
        return f"({a} {op} {self.array(dt, shape, depth)[0]})", va

    def with_scalar(self, dt, shape, depth):
        op = self.rng.choice(["add", "sub", "mul", "maximum", "minimum", "div"])
        if (op == "div" and dt not in PLAIN) or (op == "sub" and dt not in NEGATABLE):
            return None
        a, va = self.array(dt, shape, depth)
        scalar = self.literal(dt) if op == "div" else self.scalar_operand(dt)
        suffix = self.rng.random() < 0.2 and op in ("add", "sub", "mul", "div")
        name = f"pl.{self.level}.{op}s" if suffix else f"pl.{op}"
        return f"{name}({a}, {scalar})", va

    def unary(self, dt, shape, depth):
        ops = ["neg", "abs"]
        if dt in FLOATS:
            ops += ["exp", "sqrt", "rsqrt", "recip", "neg", "abs"] + (["log"] if dt != "BF16" else [])
        if self.level == "tile" and dt in ("FP16", "FP32", "INT32"):
            ops += ["relu"]
        op = self.rng.choice(ops)
        a, va = self.array(dt, shape, depth)
        if op in ("sqrt", "log", "rsqrt") and self.rng.random() < 0.7:
            a = f"pl.abs({a})"
        if op == "exp" and self.rng.random() < 0.7:
            a = f"pl.minimum({a}, 2.0)"
        return f"pl.{op}({a})", va

    def converted(self, dt, shape, depth):
        src = self.rng.choice([d for d in CASTABLE if d != dt])
        a, va = self.array(src, shape, depth)
        if a.startswith("pl.matmul("):
            a = f"pl.abs({a})"
        mode = f', mode="{self.rng.choice(MODES)}"' if self.rng.random() < 0.5 else ""
        return f"pl.cast({a}, pl.{dt}{mode})", va

    def mixed(self, dt, shape, depth):
        """Two dtypes whose promotion is `dt` (O-301)."""
        pairs = {"FP32": [("FP32", "FP16"), ("BF16", "FP32")], "INT32": [("INT32", "INT16"), ("INT8", "INT32")],
                 "INT16": [("INT16", "INT8")], "INT64": [("INT32", "INT64")]}  # fmt: skip
        if dt not in pairs:
            return None
        a, b = self.rng.choice(pairs[dt])
        ta, va = self.array(a, shape, depth)
        tb, _ = self.array(b, shape, depth)
        return f"pl.{self.rng.choice(['add', 'sub', 'mul', 'maximum'])}({ta}, {tb})", va

    def expanded(self, dt, shape, depth):
        rng = self.rng
        row = rng.random() < 0.5
        kind = rng.choice(["mul", "add", "sub", "max", "min", "div", "expdif", ""])
        if (kind == "div" and dt not in ("FP32", "FP16")) or (kind == "expdif" and dt not in ("FP32", "FP16")):
            return None
        if row and kind == "add" and dt not in ("INT8", "INT16", "INT32", "FP16", "FP32"):
            return None
        a, va = self.array(dt, shape, depth)
        v, vv = self.array(dt, (shape[0], 1) if row else (1, shape[1]), depth)
        if row and kind == "add" and (va is None or vv is None or va[0] != vv[0]):
            return None
        if kind == "expdif":
            a = f"pl.minimum({a}, 2.0)"
        return f"pl.{'row' if row else 'col'}_expand{'_' + kind if kind else ''}({a}, {v})", va

    def scratch(self, shape, dt: str) -> str:
        return f", pl.create_tile({list(shape)}, dtype=pl.{dt})" if self.level == "tile" else ""

    def reduced(self, dt, shape, depth):
        rng = self.rng
        row = shape[1] == 1 and (shape[0] != 1 or rng.random() < 0.5)
        wide = (shape[0], rng.choice([8, 16, 24, 40])) if row else (rng.choice([2, 3, 5, 8]), shape[1])
        if wide[1] == 1 or (not row and shape[0] != 1):
            return None
        kind = rng.choice(["sum", "max", "min", "prod", "sum", "max"])
        if kind == "min" and dt not in PLAIN:
            return None
        a, va = self.array(dt, wide, depth)
        if row:
            extra = self.scratch(wide, dt)
        else:
            extra = self.scratch(wide, dt) if kind == "sum" and rng.random() < 0.5 else ""
        valid = None if va is None else ((va[0], 1) if row else (1, va[1]))
        return f"pl.{'row' if row else 'col'}_{kind}({a}{extra})", valid

    def index_of(self, dt, shape, depth):
        if 1 not in shape or shape == (1, 1):
            return None
        row = shape[1] == 1
        wide = (shape[0], self.rng.choice([8, 16, 24])) if row else (self.rng.choice([3, 5, 8]), shape[1])
        src = self.rng.choice(PLAIN)
        a, va = self.array(src, wide, depth)
        valid = None if va is None else ((va[0], 1) if row else (1, va[1]))
        which = self.rng.choice(["argmax", "argmin"])
        return f"pl.{'row' if row else 'col'}_{which}({a}{self.scratch(wide, src)})", valid

    def transposed(self, dt, shape, depth):
        a, va = self.array(dt, shape[::-1], depth)
        return f"pl.transpose({a}, {self.rng.choice(['0, 1', '1, 0', '-1, -2'])})", None if va is None else va[::-1]

    def reshaped(self, dt, shape, depth):
        m, n = shape
        options = [(m * n, 1), (1, m * n)] + [(m * k, n // k) for k in (2, 4) if n % k == 0]
        options += [(m // k, n * k) for k in (2, 4) if m % k == 0]
        options = [o for o in options if o != shape and o[0] <= 64 and o[1] <= 256]
        if not options:
            return None
        option = self.rng.choice(options)
        a, va = self.array(dt, option, depth)
        if va != option:
            return None
        return f"pl.reshape({a}, {list(shape)})", tuple(shape)

    def joined(self, dt, shape, depth):
        if shape[1] % 2 or shape[1] < 16:
            return None
        left = self.rng.choice([shape[1] // 2, 8])
        a, va = self.array(dt, (shape[0], left), depth)
        b, vb = self.array(dt, (shape[0], shape[1] - left), depth)
        if va is None or vb is None or va[1] != left or va[0] != vb[0]:
            return None
        return f"pl.concat({a}, {b})", (va[0], left + vb[1])

    def padded(self, dt, shape, depth):
        a, _ = self.array(dt, shape, depth)
        if self.rng.random() < 0.4 and dt in ("FP32", "FP16", "INT32"):
            rows, cols = self.rng.randint(1, shape[0]), self.rng.randint(1, shape[1])
            a = f"pl.set_validshape({a}, {rows}, {cols})"
        pad = self.rng.choice(["zero", "max", "min"])
        return f"pl.fillpad({a}, pad_value=pl.PadValue.{pad})", tuple(shape)

    def selected(self, dt, shape, depth):
        code = self.rng.randrange(6)
        if self.level == "tensor":
            if dt not in ("FP32", "INT32", "FP16"):
                return None
            a, _ = self.array(dt, shape, depth)
            b = self.scalar_operand(dt) if self.rng.random() < 0.4 else self.array(dt, shape, depth)[0]
            return f"pl.cmp({a}, {b}, cmp_type={code})", tuple(shape)
        src = self.rng.choice(COMPARED)
        a, _ = self.array(src, shape, depth)
        b = self.scalar_operand(src) if self.rng.random() < 0.4 else self.array(src, shape, depth)[0]
        mask = f"pl.cmp({a}, {b}, cmp_type={code})"
        tmp = "pl.create_tile([1, 32], dtype=pl.UINT8)"
        x, vx = self.array(dt, shape, depth)
        if self.rng.random() < 0.4 and dt in SELECTED and (self.a5 or dt != "INT8"):
            return f"pl.sels({mask}, {x}, {tmp}, {self.literal(dt)})", vx
        y, _ = self.array(dt, shape, depth)
        return f"pl.sel({mask}, {x}, {y}, {tmp})", vx

    def product(self, dt, shape, depth):
        m, n = shape
        k = self.rng.choice([8, 16, 17, 32])
        if dt in ("FP16", "BF16"):
            src = dt
            if self.level == "tile":
                a, va = self.array(src, (m, k), 0)
                b, vb = self.array(src, (k, n), 0)
                if va != (m, k) or vb != (k, n):
                    return None
                return f"pl.cast(pl.abs(pl.matmul({a}, {b})), pl.{dt})", (m, n)
            if self.rng.random() < 0.5:
                return None
        else:
            src = self.rng.choice(["FP32", "FP16", "BF16"]) if dt == "FP32" else "INT8"
        a_trans = self.level == "tensor" and self.rng.random() < 0.25
        b_trans = self.level == "tensor" and self.rng.random() < 0.35
        a, va = self.array(src, (k, m) if a_trans else (m, k), min(depth, 1))
        b, vb = self.array(src, (n, k) if b_trans else (k, n), min(depth, 1))
        if self.level == "tile" and (va is None or vb is None or vb[0] < va[1]):
            return None
        if self.level == "tensor":
            if (
                va is None
                or vb is None
                or va != ((k, m) if a_trans else (m, k))
                or vb != ((n, k) if b_trans else (k, n))
            ):
                return None
            extra = (", a_trans=True" if a_trans else "") + (", b_trans=True" if b_trans else "")
            if src != dt:
                extra += f", out_dtype=pl.{dt}"
            return f"pl.matmul({a}, {b}{extra})", (m, n)
        return f"pl.matmul({a}, {b})", (va[0], vb[1])

    def gathered(self, dt, shape, depth):
        m, n = shape
        rng = self.rng
        if rng.random() < 0.3 and n <= 64:
            pattern, step = rng.choice([("P0101", 2), ("P1010", 2), ("P0010", 4), ("P1000", 4)])
            a, _ = self.array(dt, (m, n * step), depth)
            if self.level == "tile":
                return f"pl.tile.gather_mask({a}, pl.tile.MaskPattern.{pattern})", tuple(shape)
            return f"pl.gather({a}, mask_pattern=pl.tile.MaskPattern.{pattern})", tuple(shape)
        source = (m, rng.choice([8, 16, 24])) if self.level == "tensor" else rng.choice([(m, 16), (4, 8)])
        count = source[1] if self.level == "tensor" else source[0] * source[1]
        a, va = self.array(dt, source, depth)
        idx, _ = self.array("INT32", shape, max(0, depth - 1))
        idx = f"pl.ands({idx}, {rng.choice([7, 15])})" if count >= 8 else idx
        if self.level == "tensor":
            if va != source:
                return None
            return f"pl.gather({a}, {rng.choice(['-1', '1'])}, {idx})", tuple(shape)
        tmp = f"pl.create_tile({list(shape)}, dtype=pl.INT32)"
        return f"pl.tile.gather({a}, {idx}, {tmp})", tuple(shape)

    def bitwise(self, dt, shape, depth):
        rng = self.rng
        a, va = self.array(dt, shape, depth)
        op = rng.choice(["ands", "ors", "shls", "shrs", "and_", "or_", "not_", "shl", "xor"])
        if op == "not_":
            return (f"pl.not_({a})", va) if dt in ("INT16", "UINT16") else None
        if op in ("shls", "shrs"):
            return f"pl.{op}({a}, {rng.randint(0, 7)})", va
        if op in ("ands", "ors"):
            return f"pl.{op}({a}, {rng.choice([1, 3, 15, 100])})", va
        b, _ = self.array(dt, shape, depth)
        if op == "shl":
            return f"pl.{rng.choice(['shl', 'shr'])}({a}, pl.ands({b}, 7))", va
        extra = f", pl.create_tile({list(shape)}, dtype=pl.{dt})" if op == "xor" and self.level == "tile" else ""
        return f"pl.{op}({a}, {b}{extra})", va

    def three(self, dt, shape, depth):
        a, va = self.array(dt, shape, depth)
        b, _ = self.array(dt, shape, depth)
        if self.rng.random() < 0.3 and dt in ("FP16", "FP32"):
            return f"pl.lrelu({a}, {self.rng.choice(['0.25', '0.01', '2.0'])})", va
        if self.rng.random() < 0.4:
            return f"pl.{self.rng.choice(['addsc', 'subsc'])}({a}, {self.literal(dt)}, {b})", va
        c, _ = self.array(dt, shape, depth)
        return f"pl.{self.rng.choice(['addc', 'subc'])}({a}, {b}, {c})", va

    def partial(self, dt, shape, depth):
        a, va = self.array(dt, shape, depth)
        b, _ = self.array(dt, shape, depth)
        return f"pl.part_{self.rng.choice(['add', 'mul', 'max', 'min'])}({a}, {b})", va
