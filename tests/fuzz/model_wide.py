# SPDX-License-Identifier: Apache-2.0
"""More models: chains over arrays of any size, gates by sorting, programs of several kernels, divided kernels."""

from __future__ import annotations

from models import Model

FLOATS = ("FP32", "FP16", "BF16")


class WideModels(Model):
    """One method a family, like :class:`model_kernels.Models`."""

    def large(self) -> None:
        """An element-wise chain with reductions along one axis, over arrays that may not fit (01 L-147, 02 O-307)."""
        self.level = "tensor"
        rng = self.rng
        r = self.pick(1, 3, 17, 64, 130, 300, rng.randint(1, 500))
        c = self.pick(1, 7, 16, 100, 333, 1024, rng.randint(1, 1500))
        axis = self.pick("row", "col")
        dts = [self.pick("FP32", "FP32", "FP16", "BF16", "INT32", "INT16", "INT8") for _ in range(2)]
        full: dict[str, list[str]] = {}
        line: dict[str, list[str]] = {}  # the reduced shape: [r, 1] or [1, c]
        other: dict[str, list[str]] = {}  # the shape along the kept axis
        short, long = ((r, 1), (1, c)) if axis == "row" else ((1, c), (r, 1))
        for dt in dict.fromkeys(dts):
            for _ in range(rng.randint(1, 2)):
                name = self.fresh("x")
                if self.chance(0.3):
                    dr, dc, i, j = rng.randint(0, 3), rng.randint(0, 5), 0, 0
                    self.array(name, "in", dt, (r + dr, c + dc))
                    i, j = rng.randint(0, dr), rng.randint(0, dc)
                    full.setdefault(dt, []).append(f"{name}[{i}:{i + r}, {j}:{j + c}]")
                else:
                    full.setdefault(dt, []).append(self.array(name, "in", dt, (r, c)))
            if self.chance(0.6):
                other.setdefault(dt, []).append(self.array(self.fresh("v"), "in", dt, long))
        body: list[str] = []
        for _ in range(rng.randint(3, 9)):
            self.link(body, full, line, other, axis)
        outs = 0
        for dt, names in list(full.items()):
            if outs == 0 or self.chance(0.5):
                o = self.array(self.fresh("o"), "out", dt, (r, c))
                body.append(
                    f"{o}[:, :] = {names[-1]}" if self.chance(0.5) else f"{o} = pl.assemble({o}, {names[-1]}, [0, 0])"
                )
                outs += 1
        for dt, names in line.items():
            o = self.array(self.fresh("o"), "out", dt, short)
            body.append(f"{o}[:, :] = {names[-1]}")
        self.place(body, kernel=False)

    def link(self, body, full, line, other, axis) -> None:
        rng = self.rng
        dt = self.pick(*full)
        x = self.pick(*full[dt][-3:])
        name = self.fresh("t")
        whole = dt in FLOATS
        pick = rng.random()
        if pick < 0.3:
            op = self.pick("add", "sub", "mul", "maximum", "minimum")
            y = self.pick(*full[dt])
            body.append(f"{name} = {self.pick(f'pl.{op}({x}, {y})', f'pl.{op}({y}, {x})')}")
        elif pick < 0.45:
            value = self.pick("0.5", "-1.25", "3.0") if whole else self.pick("2", "-3")
            op = self.pick("add", "sub", "mul", "maximum", "minimum")
            body.append(f"{name} = pl.{op}({x}, {value})")
        elif pick < 0.6:
            ops = ["neg", "abs"] + (["exp", "sqrt", "recip", "rsqrt"] if whole else [])
            op = self.pick(*ops)
            inner = (
                f"pl.minimum({x}, 2.0)"
                if op == "exp"
                else f"pl.add(pl.abs({x}), 0.5)"
                if op in ("sqrt", "recip", "rsqrt")
                else x
            )
            body.append(f"{name} = pl.{op}({inner})")
        elif pick < 0.7:
            to = self.pick(*[d for d in (*FLOATS, "INT32", "INT16") if d != dt])
            mode = self.pick("", ', mode="rint"', ', mode="floor"', ', mode="trunc"')
            body.append(f"{name} = pl.cast({x}, pl.{to}{mode})")
            full.setdefault(to, []).append(name)
            return
        elif pick < 0.85 and dt in ("FP32", "FP16", "INT32", "INT16"):
            op = self.pick("sum", "max", "sum", "max", "min")
            body.append(f"{name} = pl.{axis}_{op}({x})")
            line.setdefault(dt, []).append(name)
            return
        elif dt in line and pick < 0.95:
            op = (
                self.pick("sub", "mul", "max", "min")
                if dt != "FP32"
                else self.pick("sub", "mul", "max", "expdif", "div")
            )
            x = f"pl.minimum({x}, 2.0)" if op == "expdif" else x
            v = self.pick(*line[dt])
            text = f"pl.{axis}_expand_{op}({x}, {v})"
            if op in ("sub", "mul"):
                text = self.pick(text, f"pl.{op}({x}, {v})", f"pl.{op}({v}, {x})")
            body.append(f"{name} = {text}")
        elif dt in other:
            which = "col" if axis == "row" else "row"
            body.append(f"{name} = pl.{which}_expand_{self.pick('mul', 'sub', 'max')}({x}, {self.pick(*other[dt])})")
        else:
            y = self.pick(*full[dt])
            kinds = [f"pl.add(pl.mul({x}, {y}), {x})", f"pl.sub(pl.add({x}, {y}), {y})"]
            if dt in ("FP32", "INT32"):
                kinds.append(f"pl.cmp({x}, {y}, cmp_type={rng.randrange(6)})")
            body.append(f"{name} = {self.pick(*kinds)}")
        full[dt].append(name)

    def gate(self) -> None:
        """The best k of n scores a row: sorted records, or the largest again and again (02 section 20, O-1504)."""
        rows, k = self.rng.randint(1, 6), self.pick(4, 8)
        values = self.numbers.permutation(4096).reshape(-1)
        way = self.pick("sort", "sort", "argmax")
        n = self.pick(32, 64, 128, 256, 96) if way == "sort" else self.pick(8, 24, 40)
        ties = self.pick(1, 1, 64)
        data = (values[: rows * n].reshape(rows, n) // ties - 1000 // ties) / 64.0
        self.array("x", "in", "FP32", (rows, n), (self.symbol("T", rows), n), values=data)
        dim = self.params[0].dims[0]
        self.array("best", "out", "FP32", (rows, k), (dim, k))
        self.array("where", "out", "INT32", (rows, k), (dim, k))
        self.array("w", "out", "FP32", (rows, k), (dim, k))
        body = [self.loop("i", str(dim)), f"    row = {self.window('x', ['i', 0], [1, n])}"]
        if way == "sort":
            start = self.pick("pl.tile.arange", "pl.tile.ci") if self.tile else self.pick("pl.arange", "pl.tensor.ci")
            body.append(
                f"    order = {start}(0, [1, {n}], dtype=pl.{self.pick('INT32', 'UINT32') if self.platform[1] == '5' else 'INT32'})"
            )
            body.append("    rec = pl.sort32(row, order)")
            run = 64
            while run < 2 * n:
                body.append(f"    rec = pl.mrgsort(rec, block_len={run})")
                run *= 4
            body.append(f"    top = {self.pick(f'rec[0:1, 0:{2 * k}]', f'pl.slice(rec, [1, {2 * k}], [0, 0])')}")
            mask = "pl.tile.MaskPattern"
            g = "pl.tile.gather_mask" if self.tile else "pl.gather"
            body.append(f"    v = {g}(top, mask_pattern={mask}.P0101)")
            body.append(f"    at = {g}(top, mask_pattern={mask}.P1010, output_dtype=pl.INT32)")
        else:
            kind = "tile.full" if self.tile else "full"
            body += [
                "    row = pl.add(row, 0.0)",
                f"    v = pl.{kind}([1, {k}], dtype=pl.FP32, value=0.0)",
                f"    at = pl.{kind}([1, {k}], dtype=pl.INT32, value=0)",
                f"    for q in pl.range({k}):",
                f"        j = pl.read({self.reduce('row_argmax', 'row', (1, n), 'FP32')}, [0, 0])",
                "        pl.write(v, [0, q], pl.read(row, [0, j]))",
                "        at = pl.write(at, [0, q], j)",
                "        pl.write(row, [0, j], -1.0e30)",
            ]
        body.append(f"    e = pl.exp({self.rows('sub', 'v', self.reduce('row_max', 'v', (1, k), 'FP32'))})")
        body.append(f"    e = {self.rows('div', 'e', self.reduce('row_sum', 'e', (1, k), 'FP32'))}")
        body += ["    " + self.put(o, ["i", 0], t) for o, t in (("best", "v"), ("where", "at"), ("w", "e"))]
        self.place(body)

    def pipeline(self) -> None:
        """Several tasks with intermediates, windows, transposed and reshaped arguments (01 L-87, L-159)."""
        self.level = "tensor"
        dt = self.pick("FP32", "BF16", "FP16")
        m, k, n = self.pick(8, 16, 20), self.pick(16, 32), self.pick(8, 24)
        parts = self.pick(1, 2, 3)
        self.array("x", "in", dt, (m * parts, k))
        self.array("w1", "in", dt, (n, k))
        self.array("w2", "in", dt, (n, k))
        self.array("y", "out", "FP32", (m * parts, k))
        self.array("z", "out", "FP32", (n, m * parts) if self.chance(0.5) else (m * parts, n))
        turned = self.params[-1].shape[0] == n and n != m * parts
        cls = self.form == "class"
        orch = []
        orch.append(f"hid = pl.create_tensor([{m * parts}, {n}], dtype=pl.FP32)")
        hid = "hid"
        if self.chance(0.4):
            orch.append(f"flat = pl.create_tensor([1, {m * parts * n}], dtype=pl.FP32)")
            orch.append(f"hid = pl.reshape(flat, [{m * parts}, {n}])")
        wt = "w1"
        if self.chance(0.5):
            orch.append("w1t = pl.transpose(w1, 0, 1)")
            wt = "w1t"
        head = self.pick(f"for p in pl.range({parts}):", f"for p in pl.parallel({parts}):")
        orch.append(head)
        rows = self.pick(f"p * {m} : p * {m} + {m}", f"p * {m} : (p + 1) * {m}")
        trans = "" if wt == "w1t" else ", b_trans=True"
        out = ", out_dtype=pl.FP32" if dt != "FP32" else ""
        orch += [
            "    with pl.at(level=pl.Level.CORE_GROUP):",
            f"        xs = x[{rows}, :]",
            f"        u = pl.matmul(xs, {wt}{trans}{out})",
            f"        g = {self.pick('pl.div(u, pl.add(pl.exp(pl.neg(u)), 1.0))', 'pl.mul(u, pl.recip(pl.add(pl.exp(pl.neg(u)), 1.0)))', 'pl.maximum(u, 0.0)')}",
            f"        {self.pick(f'{hid}[{rows}, :] = g', f'{hid} = pl.assemble({hid}, g, [p * {m}, 0])')}",
        ]
        skip = self.chance(0.3)
        if skip:
            orch.append(f"    if p != {self.rng.randrange(parts + 1)}:")
        pad = "        " if skip else "    "
        low = "hid" if dt == "FP32" else f"pl.cast(hid[{rows}, :], pl.{dt})"
        low = f"hid[{rows}, :]" if dt == "FP32" else low
        orch += [
            f"{pad}with pl.at(level=pl.Level.CORE_GROUP):",
            f"{pad}    y[{rows}, :] = pl.matmul({low}, w2{out})",
        ]
        orch.append("with pl.at(level=pl.Level.CORE_GROUP):")
        if turned:
            orch.append(
                "    z[:, :] = pl.transpose(hid, 0, 1)"
                if self.chance(0.5)
                else "    z[:, :] = pl.add(pl.transpose(hid, -1, 0), 1.0)"
            )
        else:
            orch.append("    z[:, :] = pl.mul(hid, 2.0)")
        self.straight(orch, cls)

    def straight(self, orch: list[str], cls: bool) -> None:
        """The entry as written, without a place around it."""
        self.place(["pass"], kernel=False)
        pad = "    " if cls else ""
        head, tail = self.source.split(f"{pad}    with pl.at(level=pl.Level.CORE_GROUP):\n{pad}        pass\n")
        self.source = head + "".join(f"{pad}    {line}\n" for line in orch) + tail

    def divided(self) -> None:
        """A mixed kernel divided between the lanes: the same numbers as undivided (01 L-129)."""
        dt = self.pick("FP32", "FP16", "BF16")
        m, k, n = self.pick(8, 16, 32), self.pick(16, 32), self.pick(16, 32)
        mode = self.pick("UP_DOWN", "LEFT_RIGHT", "NONE")
        self.array("a", "in", dt, (m, k))
        self.array("b", "in", dt, (k, n))
        self.array("c", "in", "FP32", (m, n))
        self.array("bias", "in", "FP32", (1, n))
        self.array("o", "out", "FP32", (m, n))
        self.array("o2", "out", dt, (m, n))
        body = [
            f"at = {self.window('a', [0, 0], [m, k])}",
            f"bt = {self.window('b', [0, 0], [k, n])}",
            f"p = {self.product('at', 'bt', dt)}",
            f"ct = {self.window('c', [0, 0], [m, n])}",
            f"q = {self.pick('pl.add(p, ct)', 'pl.mul(ct, p)', 'pl.maximum(p, ct)', 'pl.sub(p, ct)')}",
        ]
        if mode != "LEFT_RIGHT" and self.chance(0.6):
            body += [f"mx = {self.reduce('row_max', 'q', (m, n), 'FP32')}", f"q = {self.rows('sub', 'q', 'mx')}"]
        if mode != "LEFT_RIGHT" or self.chance(0.5):
            body += [
                f"bs = {self.window('bias', [0, 0], [1, n])}",
                f"q = pl.col_expand_{self.pick('add', 'mul')}(q, bs)",
            ]
        body += [self.put("o", [0, 0], "q"), self.put("o2", [0, 0], self.cast("q", "FP32", dt))]
        self.place(body, kernel=False)
        options = f", optimizations=[pl.split(pl.SplitMode.{mode})]"
        self.source = self.source.replace("pl.Level.CORE_GROUP)", "pl.Level.CORE_GROUP" + options + ")")

    def batched(self) -> None:
        """Products with leading axes, a softmax between them, at tensor level (02 O-1801, O-1501)."""
        self.level = "tensor"
        dt = self.pick("FP32", "FP16", "BF16")
        b, h, s, t, d = self.pick(1, 2), self.pick(1, 2, 3), self.pick(4, 8, 13), self.pick(8, 16, 21), self.pick(8, 16)
        four = self.chance(0.5)
        lead = (b, h) if four else (h,)
        shared = self.chance(0.4)
        self.array("q", "in", dt, (*lead, s, d))
        self.array("k", "in", dt, ((1,) * len(lead) if shared else lead) + (t, d))
        self.array("v", "in", dt, ((1,) * len(lead) if shared else lead) + (t, d))
        self.array("mask", "in", "FP32", (s, t))
        self.array("o", "out", "FP32", (*lead, s, d))
        self.array("top", "out", "FP32", (*lead, s, 1))
        out = ", out_dtype=pl.FP32" if dt != "FP32" else ""
        body = [
            f"p = pl.matmul(q, k, b_trans=True{out})",
            f"p = {self.pick('pl.add(pl.mul(p, 0.25), mask)', 'pl.mul(p, 0.25) + mask', 'pl.sub(pl.mul(p, 0.25), mask)')}",
            "m = pl.row_max(p)",
            f"e = {self.pick('pl.exp(pl.sub(p, m))', 'pl.row_expand_expdif(p, m)', 'pl.exp(pl.row_expand_sub(p, m))')}",
            f"r = {self.pick('pl.row_expand_div(e, pl.row_sum(e))', 'pl.div(e, pl.row_sum(e))')}",
            f"w = pl.matmul({self.cast('r', 'FP32', dt)}, v{out})",
        ]
        where = ", ".join([":"] * (len(lead) + 2))
        body.append(self.pick(f"o[{where}] = w", f"pl.assemble(o, w, [{', '.join(['0'] * (len(lead) + 2))}])"))
        body.append(f"top[{where}] = m")
        self.place(body, kernel=False)


WIDE = ("large", "gate", "pipeline", "divided", "batched")

__all__ = ["WIDE", "WideModels"]
