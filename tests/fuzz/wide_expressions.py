# SPDX-License-Identifier: Apache-2.0
"""Operations that the first generator leaves out: a second family of random programs uses them as well."""

from __future__ import annotations

from expressions import BITWISE, FLOATS
from generator import Generator, Program
from values import BITS

SCATTERED = ("INT8", "INT16", "INT32", "FP16", "BF16", "FP32")
MEMORY = ("INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "FP16", "BF16", "FP32")


class WideGenerator(Generator):
    """Expressions of more kinds."""

    def makers(self, dt: str, shape):
        out = super().makers(dt, shape)
        if len(shape) != 2:
            return out
        out += [self.filled, self.stacked, self.compared, self.cut_out]
        if dt in SCATTERED and min(shape) > 1:
            out += [self.scattered] * 2 + [self.updated]
        if dt == "FP32":
            out += [self.wave]
        if dt in ("FP32", "FP16", "INT32"):
            out += [self.remainder]
        if dt in BITWISE:
            out += [self.exclusive]
        if dt in ("INT16", "INT32", "UINT16", "UINT32") and shape[0] == 1 and shape[1] > 1:
            out += [self.counted] * 3
        if dt in ("INT16", "UINT16", "INT32", "UINT32", "FP16", "FP32") or (
            self.a5 and dt in ("INT8", "UINT8", "BF16")
        ):
            out += [self.triangle]
        if dt in ("FP32", "INT32") and self.level == "tile":
            out += [self.biased, self.turned]
        if self.level == "tensor" and dt in (*FLOATS, "INT32", "INT8"):
            out += [self.combined]
        if self.level == "tile" and dt in MEMORY:
            out += [self.from_memory] * 2
        if dt in ("FP16", "FP32") and self.level == "tile":
            out += [self.leaky]
        return out

    def value(self, dt, shape, depth) -> tuple[str, tuple | None]:
        """An operand that is a new value: never an address or another name."""
        text, valid = self.array(dt, shape, depth)
        return f"pl.maximum({text}, {self.literal(dt)})", valid

    def filled(self, dt, shape, depth):
        a, va = self.array(dt, shape, depth)
        if self.rng.random() < 0.5:
            value = self.scalar_operand(dt)
            return f"pl.{self.rng.choice(['', self.level + '.'])}expands({a}, {value})", tuple(shape)
        m, n = self.rng.randint(1, shape[0]), self.rng.randint(1, shape[1])
        small, _ = self.array(dt, (m, n), depth)
        pad = self.rng.choice(["zero", "max", "min"])
        return f"pl.fillpad_expand({small}, {list(shape)}, pl.PadValue.{pad})", tuple(shape)

    def stacked(self, dt, shape, depth):
        """Through three axes and back (02 O-203)."""
        m, n = shape
        parts = self.rng.choice([p for p in (1, 2, 4, m) if m % p == 0])
        three = [parts, m // parts, n]
        a, va = self.array(dt, shape, depth)
        b, vb = self.array(dt, shape, depth)
        if va != tuple(shape) or vb != tuple(shape):
            return None
        a, b = f"pl.reshape({a}, {three})", f"pl.reshape({b}, {three})"
        text = f"pl.{self.rng.choice(['add', 'mul', 'maximum'])}({a}, {b})"
        if dt in ("FP32", "FP16", "INT32") and self.rng.random() < 0.4:
            text = f"pl.{self.rng.choice(['abs', 'neg'])}({text})"
        return f"pl.reshape({text}, [{m}, {n}])", tuple(shape)

    def compared(self, dt, shape, depth):
        """A comparison written as an operator (01 L-21)."""
        op = self.rng.choice(["<", "<=", ">", ">=", "==", "!="])
        if self.level == "tensor":
            if dt not in ("FP32", "INT32", "FP16"):
                return None
            a, _ = self.array(dt, shape, depth)
            b = self.literal(dt) if self.rng.random() < 0.4 else self.array(dt, shape, depth)[0]
            return f"({a} {op} {b})", tuple(shape)
        src = self.rng.choice(("FP32", "INT32", "FP16"))
        a, _ = self.array(src, shape, depth)
        x, vx = self.array(dt, shape, depth)
        y, _ = self.array(dt, shape, depth)
        tmp = "pl.create_tile([1, 32], dtype=pl.UINT8)"
        return f"pl.sel({a} {op} {self.literal(src)}, {x}, {y}, {tmp})", vx

    def cut_out(self, dt, shape, depth):
        """A part of something larger, by `extract` or by a window."""
        wide = (shape[0] + self.rng.randint(0, 3), shape[1] + self.rng.choice([0, 1, 8]))
        a, va = self.array(dt, wide, depth)
        if va != wide:
            return None
        i, j = (self.offset(n, m) for n, m in zip(shape, wide, strict=True))
        if self.level == "tile":
            return f"pl.tile.extract({a}, {i}, {j}, {list(shape)}, target_memory=pl.Mem.Vec)", tuple(shape)
        return f"pl.slice(pl.add({a}, {self.literal(dt)}), {list(shape)}, [{i}, {j}])", tuple(shape)

    def scattered(self, dt, shape, depth):
        rng = self.rng
        m, n = shape
        index = "INT32" if BITS[dt] == 32 else "INT16"
        if self.level == "tensor":
            a, va = self.array(dt, shape, depth)
            if va != tuple(shape):
                return None
            if rng.random() < 0.4 and n % 2 == 0:
                s, vs = self.array(dt, (m, n // 2), depth)
                mask = rng.choice(["P0101", "P1010"])
                text = f"pl.scatter({s}, mask_pattern=pl.tile.MaskPattern.{mask}, dst={a})"
                return (text, tuple(shape)) if vs == (m, n // 2) else None
            h, w = rng.randint(1, m), rng.choice([1, min(4, n), n])
            s, vs = self.array(dt, (h, w), depth)
            i, vi = self.array(index, (h, w), max(0, depth - 1))
            if vs != (h, w) or vi != (h, w):
                return None
            low = max(k for k in (0, 1, 3, 7, 15, 31) if k < n)
            return f"pl.scatter({a}, {rng.choice(['-1', '1'])}, pl.ands({i}, {low}), {s})", tuple(shape)
        a, va = self.value(dt, shape, depth)
        s, vs = self.array(dt, shape, depth)
        i, vi = self.array(index, shape, max(0, depth - 1))
        if va != tuple(shape) or vs != tuple(shape) or vi != tuple(shape):
            return None
        low = max(k for k in (0, 1, 3, 7, 15, 31) if k < m * n)
        return f"pl.tile.scatter({a}, {s}, pl.ands({i}, {low}))", tuple(shape)

    def updated(self, dt, shape, depth):
        m, n = shape
        count = self.rng.randint(1, m)
        a, va = self.value(dt, shape, depth)
        s, vs = self.array(dt, (count, n), depth)
        i, vi = self.array("INT32", (1, count), max(0, depth - 1))
        if va != tuple(shape) or vs != (count, n) or vi != (1, count):
            return None
        low = max(k for k in (0, 1, 3, 7, 15) if k < m)
        return f"pl.scatter_update({a}, -2, pl.ands({i}, {low}), {s})", tuple(shape)

    def wave(self, dt, shape, depth):
        a, va = self.array(dt, shape, depth)
        return f"pl.{self.rng.choice(['sin', 'cos'])}({a})", va

    def remainder(self, dt, shape, depth):
        a, va = self.array(dt, shape, depth)
        c = self.rng.choice(["3", "-7", "100"]) if dt == "INT32" else self.rng.choice(["0.75", "-2.5", "3.0"])
        if self.level == "tile" and dt == "INT32" and self.rng.random() < 0.5:
            tmp = f"pl.create_tile({list(shape)}, dtype=pl.{dt})"
            return f"pl.rems({a}, {c}, {tmp})", va
        return f"pl.fmods({a}, {c})", va

    def exclusive(self, dt, shape, depth):
        a, va = self.array(dt, shape, depth)
        tmp = f", pl.create_tile({list(shape)}, dtype=pl.{dt})" if self.level == "tile" else ""
        return f"pl.xors({a}, {self.rng.choice([1, 5, 100])}{tmp})", va

    def counted(self, dt, shape, depth):
        name = self.rng.choice(["tile.arange", "tile.ci"] if self.level == "tile" else ["arange", "tensor.ci"])
        down = ", descending=True" if self.rng.random() < 0.3 and dt[0] == "I" else ""
        return f"pl.{name}({self.rng.randint(0, 9)}, {list(shape)}, dtype=pl.{dt}{down})", tuple(shape)

    def triangle(self, dt, shape, depth):
        upper = ", upper=True" if self.rng.random() < 0.4 else ""
        text = f"pl.tri({self.rng.randint(-3, 5)}, {list(shape)}, dtype=pl.{dt}{upper})"
        if self.level == "tile":
            return text, tuple(shape)
        return None

    def biased(self, dt, shape, depth):
        m, n = shape
        src, k = ("INT8" if dt == "INT32" else self.rng.choice(FLOATS)), self.rng.choice([8, 16])
        a, va = self.array(src, (m, k), depth)
        b, vb = self.array(src, (k, n), depth)
        names = [v for v in self.scope.vars if v.kind in ("in", "io") and v.dt == dt and v.shape[1:] >= (n,)]
        if va != (m, k) or vb != (k, n) or not names or min(shape) < 2:
            return None
        v = self.rng.choice(names)
        bias = f"pl.load({v.name}, [{self.rng.randrange(v.shape[0])}, 0], [1, {n}], target_memory=pl.Mem.Mat)"
        return f"pl.abs(pl.matmul_bias({a}, {b}, {bias}))", (m, n)

    def turned(self, dt, shape, depth):
        """A product with operands turned in place, or one in a batch of one."""
        m, n = shape
        src, k = ("INT8" if dt == "INT32" else self.rng.choice(FLOATS)), self.rng.choice([8, 16, 17])
        if min(shape) < 2:
            return None
        if self.rng.random() < 0.3:
            a, va = self.array(src, (2 * m, k), depth)
            b, vb = self.array(src, (2 * k, n), depth)
            if va != (2 * m, k) or vb != (2 * k, n):
                return None
            text = f"pl.batch_matmul(pl.reshape({a}, [2, {m}, {k}]), pl.reshape({b}, [2, {k}, {n}]))"
            return f"pl.abs(pl.reshape({text}, [{2 * m}, {n}]))[{m}:{2 * m}, :]", (m, n)
        ta, tb = self.rng.random() < 0.4, self.rng.random() < 0.6
        a, va = self.array(src, (k, m) if ta else (m, k), depth)
        b, vb = self.array(src, (n, k) if tb else (k, n), depth)
        if va is None or vb is None:
            return None
        va, vb = va[::-1] if ta else va, vb[::-1] if tb else vb
        if vb[0] < va[1]:
            return None
        a = f"pl.tile.transpose_view({a})" if ta else a
        b = f"pl.tile.transpose_view({b})" if tb else b
        return f"pl.abs(pl.matmul({a}, {b}))", (va[0], vb[1])

    def combined(self, dt, shape, depth):
        a, va = self.value(dt, shape, depth)
        b, _ = self.value(dt, shape, depth)
        m, n = (self.rng.randint(1, e) for e in shape)
        b = f"pl.set_validshape({b}, {m}, {n})"
        return f"pl.part_{self.rng.choice(['add', 'mul', 'max', 'min'])}({a}, {b})", va

    def from_memory(self, dt, shape, depth):
        """Elements or rows of a parameter by index (02 O-1912, O-1914), or blocks of 32 bytes (O-1907)."""
        m, n = shape
        names = [v for v in self.scope.vars if v.kind == "in" and v.dt == dt and len(v.shape) == 2]
        if not names:
            return None
        v = self.rng.choice(names)
        oob = self.rng.choice(['"clamp"', '"wrap"', '"zero"', "1", "2", "3"])
        if v.shape[1] == n and v.shape[1] * BITS[dt] // 8 % 32 == 0 and m > 1 and self.rng.random() < 0.5:
            i, vi = self.array("INT32", (1, m), max(0, depth - 1))
            if vi != (1, m):
                return None
            return f"pl.mgather({v.name}, {i}, gather_oob={oob})", (m, n)
        if not self.a5 and v.shape[1] * BITS[dt] // 8 % 32:
            return None
        if n * BITS[dt] // 8 % 32 and not self.a5:
            return None
        i, vi = self.array("INT32", shape, max(0, depth - 1))
        return f'pl.mgather({v.name}, {i}, "elem", gather_oob={oob})', vi

    def leaky(self, dt, shape, depth):
        a, va = self.array(dt, shape, depth)
        b, vb = self.array(dt, shape, depth)
        if va is None or va != vb:
            return None
        tmp = f"pl.create_tile([{shape[0] + 1}, {-(-shape[1] // 8)}], dtype=pl.UINT8)"
        return f"pl.prelu({a}, {b}, {tmp})", va


def make_wide(seed: int) -> Program:
    return WideGenerator(seed).program()


__all__ = ["WideGenerator", "make_wide"]
