# SPDX-License-Identifier: Apache-2.0
"""The models: attention, norms, rotation, quantised products, gates, caches, ragged rows."""

from __future__ import annotations

from generator import Program
from model_wide import WIDE, WideModels


class Models(WideModels):
    """One method a family; each draws its shapes, dtypes, spellings and control flow."""

    def attention(self) -> None:
        """Online softmax over blocks of keys, the last one ragged (02 O-211, O-1804, O-1502)."""
        dt = self.pick("FP32", "FP16", "BF16")
        heads, d = self.pick(1, 2, 3), self.pick(8, 16, 24, 32)
        bq, bk = self.pick(4, 8, 16), self.pick(16, 24, 32)
        sq, length = self.rng.randint(1, bq), self.rng.randint(1, 3 * bk)
        low = self.pick(-1e30, -50.0)
        self.array("q", "in", dt, (heads, sq, d), (heads, self.symbol("S", sq), d))
        dim = self.symbol("L", length)
        self.array("k", "in", dt, (heads, length, d), (heads, dim, d))
        self.array("v", "in", dt, (heads, length, d), (heads, dim, d))
        limit = self.pick("dim", "scalar")
        if limit == "scalar":
            self.number("n", "INT32", self.rng.randint(1, length))
        self.array("o", "out", self.pick(dt, "FP32"), (heads, sq, d), (heads, self.symbol("S", sq), d))
        out = self.params[-1].dt
        self.params[-1].dims = self.params[0].dims
        end = "n" if limit == "scalar" else "pl.dim(k, 1)" if self.chance(0.5) else str(dim)
        rows = str(self.params[0].dims[1])
        pad = self.chance(0.4)
        h = "h"
        body = [
            f"qt = {self.window('q', [h, 0, 0], [1, bq, d], [1, rows, d])}",
            f"m = {self.full((bq, 1), 'FP32', low)}",
            f"l = {self.full((bq, 1), 'FP32', 0.0)}",
            f"acc = {self.full((bq, d), 'FP32', 0.0)}",
        ]
        carry = self.pick("rebound", "yield", "first")
        if carry == "yield":
            body.append(f"for j, (m0, l0, acc0) in pl.range(0, {end}, {bk}, init_values=(m, l, acc)):")
        else:
            body.append(self.loop("j", f"0, {end}, {bk}"))
        m, l, acc = ("m0", "l0", "acc0") if carry == "yield" else ("m", "l", "acc")
        inner = [
            f"r = pl.min({bk}, {end} - j)",
            f"kt = {self.window('k', [h, 'j', 0], [1, bk, d], [1, 'r', d])}",
            f"vt = {self.window('v', [h, 'j', 0], [1, bk, d], [1, 'r', d])}",
            f"s = {self.product('qt', 'kt', dt, b_trans=True)}",
            self.pick("s = pl.mul(s, 0.25)", "s = s * 0.25", f"s = pl.{self.level}.muls(s, 0.25)", "s *= 0.25"),
        ]
        if pad:
            inner += ["s = pl.fillpad(s, pad_value=pl.PadValue.min)", "vt = pl.fillpad(vt)"]
        inner.append(f"mj = {self.reduce('row_max', 's', (bq, bk), 'FP32')}")
        update = [
            f"mn = pl.maximum({m}, mj)",
            self.pick(
                "p = pl.exp(pl.row_expand_sub(s, mn))", "p = pl.row_expand_expdif(s, mn)", "p = pl.exp(pl.sub(s, mn))"
            ),
            f"a = pl.exp(pl.sub({m}, mn))",
            f"l1 = pl.add(pl.mul({l}, a), {self.reduce('row_sum', 'p', (bq, bk), 'FP32')})",
            f"pv = {self.product(self.cast('p', 'FP32', dt), 'vt', dt)}",
            f"acc1 = pl.add({self.rows('mul', acc, 'a')}, pv)",
        ]
        if carry == "yield":
            inner += [*update, "m, l, acc = pl.yield_(mn, l1, acc1)"]
        elif carry == "rebound":
            inner += [*update, "m = mn", "l = l1", "acc = acc1"]
        else:
            inner += [
                "if j == 0:",
                "    m = pl.add(mj, 0.0)",
                f"    e = pl.exp({self.rows('sub', 's', 'mj')})",
                f"    l = {self.reduce('row_sum', 'e', (bq, bk), 'FP32')}",
                f"    acc = pl.mul({self.product(self.cast('e', 'FP32', dt), 'vt', dt)}, 1.0)",
                "else:",
                *[f"    {line}" for line in [*update, "m = mn", "l = l1", "acc = acc1"]],
            ]
        body += [f"    {line}" for line in inner]
        final = self.cast(self.rows("div", "acc", "l"), "FP32", out)
        body.append(f"res = pl.set_validshape({final}, {rows}, {d})")
        self.store3("o", [h, 0, 0], "res", (bq, d), body)
        self.over_heads(heads, body)

    def store3(self, name, offsets, value, shape, body) -> None:
        if self.tile and self.chance(0.5):
            body.append(self.put(name, offsets, f"pl.reshape({value}, [1, {shape[0]}, {shape[1]}])"))
        else:
            body.append(self.put(name, offsets, value))

    def over_heads(self, heads: int, body: list[str]) -> None:
        if self.chance(0.5):
            self.place(body, blocks=("h", str(heads)))
        else:
            self.place([self.loop("h", str(heads)), *[f"    {line}" for line in body]])

    def norm(self) -> None:
        """RMS or layer norm over chunks of columns; the rows are ragged (02 O-1502, O-1601)."""
        dt, out = self.pick("FP32", "FP16", "BF16"), self.pick("FP32", "FP16", "BF16")
        rb, cb, chunks = self.pick(4, 8, 16), self.pick(16, 32, 48), self.pick(1, 2, 3)
        width = cb * chunks - self.pick(0, 0, self.rng.randint(1, cb - 1))
        rows = self.rng.randint(1, 3 * rb)
        dim = self.symbol("M", rows)
        self.array("x", "in", dt, (rows, width), (dim, width))
        self.array("g", "in", "FP32", (1, width))
        self.array("y", "out", out, (rows, width), (dim, width))
        layer = self.chance(0.5)
        blocks = -(-rows // rb)
        body = [f"n = pl.min({rb}, {dim} - i)"]
        valid = ["n", f"pl.min({cb}, {width} - c)"]
        get = lambda: self.cast(self.window("x", ["i", "c"], [rb, cb], valid), dt, "FP32")  # noqa: E731
        body += [f"sq = {self.full((rb, 1), 'FP32', 0.0)}", f"su = {self.full((rb, 1), 'FP32', 0.0)}"]
        body += [
            self.loop("c", f"0, {width}, {cb}"),
            f"    t = {get()}",
            f"    sq = pl.add(sq, {self.reduce('row_sum', 'pl.mul(t, t)', (rb, cb), 'FP32')})",
        ]
        if layer:
            body.append(f"    su = pl.add(su, {self.reduce('row_sum', 't', (rb, cb), 'FP32')})")
            body.append(f"mean = pl.mul(su, {1.0 / width!r})")
            body.append(f"var = pl.sub(pl.mul(sq, {1.0 / width!r}), pl.mul(mean, mean))")
        else:
            body.append(f"var = pl.mul(sq, {1.0 / width!r})")
        scale = self.pick("pl.rsqrt(pl.add(var, 1e-3))", "pl.recip(pl.sqrt(pl.add(var, 1e-3)))")
        body.append(f"inv = {scale}")
        body += [self.loop("c", f"0, {width}, {cb}"), f"    t = {get()}"]
        value = "t" if not layer else self.rows("sub", "t", "mean")
        value = self.rows("mul", value, "inv")
        gamma = self.window("g", [0, "c"], [1, cb], ["1", valid[1]])
        body.append(f"    gt = {gamma}")
        value = self.pick(f"pl.col_expand_mul({value}, gt)", f"pl.mul({value}, gt)")
        body.append("    " + self.put("y", ["i", "c"], self.cast(value, "FP32", out)))
        if self.chance(0.5):
            self.place([f"i = b * {rb}", *body], blocks=("b", str(blocks)))
        else:
            self.place([self.loop("i", f"0, {dim}, {rb}"), *[f"    {line}" for line in body]])

    def rotary(self) -> None:
        """Rotation of halves or of neighbours, at positions read from an array (02 O-709, O-1904, O-1921)."""
        dt = self.pick("FP32", "FP16", "BF16")
        rows, half, table = self.rng.randint(1, 9), self.pick(8, 16, 24), 32
        d = 2 * half
        self.array("x", "in", dt, (rows, d), (self.symbol("T", rows), d))
        self.array("cos", "in", "FP32", (table, half))
        self.array("sin", "in", "FP32", (table, half))
        self.array("pos", "in", "INT32", (1, rows), values=[[self.rng.randrange(table) for _ in range(rows)]])
        self.array("y", "out", dt, (rows, d), (self.params[0].dims[0], d))
        pairs = dt in ("FP32", "FP16") and self.chance(0.5)
        body = [
            self.loop("i", str(self.params[0].dims[0])),
            f"    at = {self.pick('pl.read(pos, [0, i])', 'pos[0, i]')}",
            f"    c = {self.window('cos', ['at', 0], [1, half])}",
            f"    s = {self.window('sin', ['at', 0], [1, half])}",
            f"    row = {self.window('x', ['i', 0], [1, d])}",
        ]
        if pairs:
            mask = "pl.tile.MaskPattern"
            name = "pl.tile.gather_mask(row, {})" if self.tile else "pl.gather(row, mask_pattern={})"
            body += [f"    a = {self.cast(name.format(mask + '.P0101'), dt, 'FP32')}"]
            body += [f"    b = {self.cast(name.format(mask + '.P1010'), dt, 'FP32')}"]
        else:
            wide = self.cast("row", dt, "FP32")
            body += [f"    w = pl.add({wide}, 0.0)", f"    a = w[0:1, 0:{half}]", f"    b = w[0:1, {half}:{d}]"]
        body += ["    lo = pl.sub(pl.mul(a, c), pl.mul(b, s))", "    hi = pl.add(pl.mul(b, c), pl.mul(a, s))"]
        lo, hi = self.cast("lo", "FP32", dt), self.cast("hi", "FP32", dt)
        if pairs:
            body.append(f"    z = {self.full((1, d), dt, 0.0)}")
            if self.tile:
                body += [
                    f"    pl.tile.scatter_mask(z, {lo}, {mask}.P0101)",
                    f"    pl.tile.scatter_mask(z, {hi}, {mask}.P1010)",
                ]
            else:
                body += [f"    z = pl.scatter({lo}, mask_pattern={mask}.P0101, dst=z)"]
                body += [f"    z = pl.scatter({hi}, mask_pattern={mask}.P1010, dst=z)"]
            body.append("    " + self.put("y", ["i", 0], "z"))
        elif self.chance(0.5):
            body.append("    " + self.put("y", ["i", 0], f"pl.concat({lo}, {hi})"))
        else:
            body += ["    " + self.put("y", ["i", 0], lo), "    " + self.put("y", ["i", half], hi)]
        self.place(body)

    def quantised(self) -> None:
        """Rows quantised to 8 bits, an integer product over blocks of K, scales put back (02 O-1104, O-1805)."""
        dt, out = self.pick("FP32", "BF16", "FP16"), self.pick("FP32", "BF16", "FP16")
        mb, n = self.pick(8, 16), self.pick(16, 32, 48)
        kb, blocks = self.pick(16, 32), self.pick(1, 2, 3)
        k, rows = kb * blocks, self.rng.randint(1, 2 * mb)
        dim = self.symbol("M", rows)
        self.array("x", "in", dt, (rows, k), (dim, k))
        trans = self.chance(0.5)
        self.array("w", "in", "INT8", (n, k) if trans else (k, n))
        self.array("ws", "in", "FP32", (1, n))
        self.array("y", "out", out, (rows, n), (dim, n))
        body = [
            f"r = pl.min({mb}, {dim} - i)",
            f"xt = {self.cast(self.window('x', ['i', 0], [mb, k], ['r', k]), dt, 'FP32')}",
            f"big = pl.maximum({self.reduce('row_max', 'pl.abs(xt)', (mb, k), 'FP32')}, 1e-4)",
            f"inv = {self.pick('pl.div(pl.expands(big, 127.0), big)', 'pl.mul(pl.recip(big), 127.0)')}",
            f"xq = {self.cast(self.cast(self.rows('mul', 'xt', 'inv'), 'FP32', 'FP16'), 'FP16', 'INT8', self.pick('rint', 'round', 'trunc'))}",
            "scale = pl.mul(big, 0.0078125)",
        ]
        once = blocks == 1 or self.chance(0.3)
        if once:
            wt = self.window("w", [0, 0], [n, k] if trans else [k, n])
            body += [f"wt = {wt}", f"acc = {self.product('xq', 'wt', 'INT8', b_trans=trans)}"]
        else:
            peeled = self.chance(0.5)

            def piece(at):
                window = f"pl.slice(xq, [{mb}, {kb}], [0, {at}])"
                return f"xq[:, {at}:{at + kb}]" if isinstance(at, int) else window

            def load(at):
                return self.window("w", [0, at] if trans else [at, 0], [n, kb] if trans else [kb, n])

            wt = "pl.tile.transpose_view(wt)" if trans and self.tile else "wt"
            extra = ", b_trans=True" if trans and not self.tile else ""
            if peeled:
                body += [f"w0 = {load(0)}", f"acc = {self.product(piece(0), 'w0', 'INT8', b_trans=trans)}"]
                start = kb
            else:
                create = "pl.tile.create([{}, {}], pl.INT32, target_memory=pl.MemorySpace.Acc)"
                create = create if self.tile else "pl.create_tensor([{}, {}], dtype=pl.INT32)"
                body.append(f"acc = {create.format(mb, n)}")
                start, extra = 0, extra + ", init_cond=(kk == 0)"
            body += [
                f"for kk in pl.range({start}, {k}, {kb}):",
                f"    wt = {load('kk')}",
                f"    acc = pl.matmul_acc(acc, {piece('kk')}, {wt}{extra})",
            ]
        body += [
            f"f = {self.cast('acc', 'INT32', 'FP32')}",
            f"f = {self.rows('mul', 'f', 'scale')}",
            f"wsc = {self.window('ws', [0, 0], [1, n])}",
            f"f = {self.pick('pl.col_expand_mul(f, wsc)', 'pl.mul(f, wsc)', 'f * wsc')}",
        ]
        if self.chance(0.5):
            body.append(f"f = pl.set_validshape(f, r, {n})")
            body.append(self.put("y", ["i", 0], self.cast("f", "FP32", out)))
        else:
            body.append(self.put("y", ["i", 0], self.cast(f"pl.set_validshape(f, r, {n})", "FP32", out)))
        self.place([self.loop("i", f"0, {dim}, {mb}"), *[f"    {line}" for line in body]])

    def cache(self) -> None:
        """New rows written to slots of a cache, pages of it gathered back (01 L-151, 02 O-1910, O-1923)."""
        dt = self.pick("FP32", "FP16", "BF16", "INT32")
        page, pages, d, new = self.pick(2, 4), self.pick(4, 6), self.pick(8, 16, 24), self.rng.randint(1, 6)
        total = page * pages
        slots = self.rng.sample(range(-1, total), new)
        order = [self.rng.randrange(pages) for _ in range(self.rng.randint(1, 5))]
        self.array("kv", "io", dt, (total, d))
        self.array("x", "in", dt, (new, d), (self.symbol("N", new), d))
        self.array("slots", "in", "INT32", (new,), (self.params[-1].dims[0],), values=slots)
        self.array("order", "in", "INT32", (1, len(order)), values=[order])
        self.array("y", "out", dt, (len(order) * page, d))
        body = [
            self.loop("i", str(self.params[1].dims[0])),
            f"    s = {self.pick('pl.read(slots, [i])', 'pl.read(slots, i)', 'slots[i]')}",
            f"    if s >= 0{self.pick('', ' and i >= 0')}:",
            f"        row = {self.window('x', ['i', 0], [1, d])}",
            f"        {self.put('kv', ['s', 0], 'row')}",
        ]
        if self.chance(0.3):
            body[3:] = [
                "        pass",
                "    else:",
                "        s = pl.cast(0, pl.INT32)",
                *[f"    {x[4:]}" for x in body[3:]],
            ]
        fetch = self.pick("window", "gather_row") if not self.tile else "window"
        if fetch == "gather_row":
            body.append(f"all = pl.create_l1([{len(order) * page}, {d}], dtype=pl.{dt})")
        body.append(self.loop("j", str(len(order))))
        body.append("    b = order[0, j]")
        if fetch == "gather_row":
            body.append(f"    all = pl.gather_row(all, kv, [j * {page}, 0], [b * {page}, 0], [{page}, {d}])")
            body.append("y[:, :] = all")
        else:
            body.append(f"    t = {self.window('kv', [f'b * {page}', 0], [page, d])}")
            body.append(
                "    " + self.put("y", [f"j * {page}", 0], self.pick("t", "pl.add(t, 1.0)") if dt[0] != "I" else "t")
            )
        self.place(body)

    def ragged(self) -> None:
        """Two nested loops over a ragged matrix with carried column results, a skip and an early end (01 L-97, L-103)."""
        dt = self.pick("FP32", "INT32", "INT16", "FP16")
        rb, cb = self.pick(4, 8), self.pick(16, 24)
        rows, cols = self.rng.randint(1, 3 * rb), self.rng.randint(1, 3 * cb)
        dm, dn = self.symbol("M", rows), self.symbol("N", cols)
        self.array("x", "in", dt, (rows, cols), (dm, dn))
        self.array("y", "out", dt, (rows, cols), (dm, dn))
        self.array("best", "out", dt, (1, cols), (1, dn))
        self.array("sums", "out", dt, (rows, 1), (dm, 1))
        low = -3.0e4 if dt[0] == "F" else -30000
        skip = self.pick("", "if j == 0:", "if i > 0 and j > 0:")
        top = self.pick("carried", "array")
        body = [
            self.loop("j", f"0, {dn}, {cb}"),
            f"    w = pl.min({cb}, {dn} - j)",
            f"    top = {self.full((1, cb), dt, low)}",
        ]
        inner = [
            f"    h = pl.min({rb}, {dm} - i)",
            f"    t = {self.window('x', ['i', 'j'], [rb, cb], ['h', 'w'])}",
        ]
        if skip:
            inner += [
                f"    {skip}",
                "        " + self.put("y", ["i", "j"], "pl.maximum(t, 1)" if dt[0] == "I" else "pl.maximum(t, 0.5)"),
                "        continue",
            ]
        inner.append(f"    u = pl.{self.pick('add', 'mul', 'sub')}(t, t)")
        inner.append("    " + self.put("y", ["i", "j"], "u"))
        peak = self.reduce("col_max", "t", (rb, cb), dt)
        if top == "carried":
            body.append(f"    for i, (tp,) in pl.range(0, {dm}, {rb}, init_values=(top,)):")
            if skip:  # L-97: every path rebinds or keeps the carried name
                inner.append(f"    tp = pl.maximum(tp, {peak})")
            else:
                inner += [f"    tn = pl.maximum(tp, {peak})", "    top = pl.yield_(tn)"]
            last = "tp" if skip else "top"
        else:
            body.append(f"    for i in pl.range(0, {dm}, {rb}):")
            inner.append(f"    top = pl.maximum(top, {peak})")
            last = "top"
        body += [f"    {line}" for line in inner]
        body.append("    " + self.put("best", [0, "j"], f"pl.set_validshape({last}, 1, w)"))
        total = [
            f"for i in pl.range(0, {dm}, {rb}):",
            f"    h = pl.min({rb}, {dm} - i)",
            f"    s = {self.full((rb, 1), dt, 0)}",
            f"    for j in pl.range(0, {dn}, {cb}):",
            f"        t = {self.window('x', ['i', 'j'], [rb, cb], ['h', f'pl.min({cb}, {dn} - j)'])}",
            f"        s = pl.add(s, {self.reduce('row_sum', 't', (rb, cb), dt)})",
            "    " + self.put("sums", ["i", 0], "pl.set_validshape(s, h, 1)"),
        ]
        if self.chance(0.4):
            total = [
                "if pl.read(x, [0, 0]) > 0:" if dt[0] == "I" else "if pl.read(x, [0, 0]) > 0.0:",
                *[f"    {x}" for x in total],
            ]
        self.place([*body, *total])


FAMILIES = ("attention", "norm", "rotary", "quantised", "cache", "ragged", *WIDE)


def make_model(seed: int) -> Program:
    model = Models(seed)
    getattr(model, FAMILIES[seed % len(FAMILIES)])()
    return model.program()


__all__ = ["FAMILIES", "Models", "make_model"]
