# SPDX-License-Identifier: Apache-2.0
"""Ten programs, each written twice: as a class (`@pl.program`) and as JIT functions. Both must be the same program.

A twin has the class, the JIT entry, a maker of arguments in the order of the parameters, and what the outputs must be.
Names of functions differ on purpose: in the class the kernel is a method, in the JIT form a module-level function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pypto.language as pl

F = pl.FP32


@dataclass
class Twin:
    """One program in both forms."""

    name: str
    cls: Any
    jit: Any
    arguments: Callable[[np.random.Generator], list[Any]]
    golden: Callable[..., list[np.ndarray]]


def f32(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape, dtype=np.float32)


# ------------------------------------------------------------------ 1: element-wise chain


@pl.program
class ChainClass:
    @pl.function(type=pl.FunctionType.InCore)
    def body(
        self, x: pl.Tensor[[32, 64], F], y: pl.Tensor[[32, 64], F], out: pl.Out[pl.Tensor[[32, 64], F]]
    ) -> pl.Tensor[[32, 64], F]:
        a = pl.load(x, [0, 0], [32, 64])
        b = pl.load(y, [0, 0], [32, 64])
        c = pl.sub(pl.mul(a, b), pl.abs(a))
        out = pl.store(pl.maximum(c, 0.25), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[32, 64], F], y: pl.Tensor[[32, 64], F], out: pl.Out[pl.Tensor[[32, 64], F]]
    ) -> pl.Tensor[[32, 64], F]:
        out = self.body(x, y, out)
        return out


@pl.jit.incore
def chain_body(x: pl.Tensor[[32, 64], F], y: pl.Tensor[[32, 64], F], out: pl.Out[pl.Tensor[[32, 64], F]]):
    a = pl.load(x, [0, 0], [32, 64])
    b = pl.load(y, [0, 0], [32, 64])
    c = pl.sub(pl.mul(a, b), pl.abs(a))
    out = pl.store(pl.maximum(c, 0.25), [0, 0], out)
    return out


@pl.jit
def chain(x: pl.Tensor[[32, 64], F], y: pl.Tensor[[32, 64], F], out: pl.Out[pl.Tensor[[32, 64], F]]):
    out = chain_body(x, y, out)
    return out


# ------------------------------------------------------------------ 2: scalar arguments and a loop of tasks


@pl.program
class RowsClass:
    @pl.function(type=pl.FunctionType.InCore)
    def rows(
        self,
        x: pl.Tensor[[64, 32], F],
        out: pl.Out[pl.Tensor[[64, 32], F]],
        first: pl.Scalar[pl.INDEX],
        step: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[64, 32], F]:
        t = pl.load(x, [first, 0], [16, 32])
        out = pl.store(pl.add(t, pl.cast(step, F)), [first, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64, 32], F], out: pl.Out[pl.Tensor[[64, 32], F]]) -> pl.Tensor[[64, 32], F]:
        for i in pl.range(4):
            out = self.rows(x, out, i * 16, i)
        return out


@pl.jit.incore
def rows_body(
    x: pl.Tensor[[64, 32], F],
    out: pl.Out[pl.Tensor[[64, 32], F]],
    first: pl.Scalar[pl.INDEX],
    step: pl.Scalar[pl.INT32],
):
    t = pl.load(x, [first, 0], [16, 32])
    out = pl.store(pl.add(t, pl.cast(step, F)), [first, 0], out)
    return out


@pl.jit
def rows(x: pl.Tensor[[64, 32], F], out: pl.Out[pl.Tensor[[64, 32], F]]):
    for i in pl.range(4):
        out = rows_body(x, out, i * 16, i)
    return out


# ------------------------------------------------------------------ 3: matrix product through the memories


@pl.program
class ProductClass:
    @pl.function(type=pl.FunctionType.InCore)
    def product(
        self, a: pl.Tensor[[32, 64], F], b: pl.Tensor[[64, 48], F], c: pl.Out[pl.Tensor[[32, 48], F]]
    ) -> pl.Tensor[[32, 48], F]:
        a1 = pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
        b1 = pl.load(b, [0, 0], [64, 48], target_memory=pl.Mem.Mat)
        acc = pl.matmul(pl.move(a1, target_memory=pl.Mem.Left), pl.move(b1, target_memory=pl.Mem.Right))
        c = pl.store(acc, [0, 0], c)
        return c

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, a: pl.Tensor[[32, 64], F], b: pl.Tensor[[64, 48], F], c: pl.Out[pl.Tensor[[32, 48], F]]
    ) -> pl.Tensor[[32, 48], F]:
        c = self.product(a, b, c)
        return c


@pl.jit.incore
def product_body(a: pl.Tensor[[32, 64], F], b: pl.Tensor[[64, 48], F], c: pl.Out[pl.Tensor[[32, 48], F]]):
    a1 = pl.load(a, [0, 0], [32, 64], target_memory=pl.Mem.Mat)
    b1 = pl.load(b, [0, 0], [64, 48], target_memory=pl.Mem.Mat)
    acc = pl.matmul(pl.move(a1, target_memory=pl.Mem.Left), pl.move(b1, target_memory=pl.Mem.Right))
    c = pl.store(acc, [0, 0], c)
    return c


@pl.jit
def product(a: pl.Tensor[[32, 64], F], b: pl.Tensor[[64, 48], F], c: pl.Out[pl.Tensor[[32, 48], F]]):
    c = product_body(a, b, c)
    return c


# ------------------------------------------------------------------ 4: a region in place, tensor level


@pl.program
class NormClass:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[16, 64], F], w: pl.Tensor[[1, 64], F], out: pl.Out[pl.Tensor[[16, 64], F]]
    ) -> pl.Tensor[[16, 64], F]:
        with pl.at(level=pl.Level.CORE_GROUP, name_hint="scaled_rows"):
            square = pl.row_sum(pl.mul(x, x))
            scale = pl.rsqrt(pl.add(pl.mul(square, 1.0 / 64), 1e-3))
            out[:] = pl.col_expand_mul(pl.row_expand_mul(x, scale), w)
        return out


@pl.jit
def norm(x: pl.Tensor[[16, 64], F], w: pl.Tensor[[1, 64], F], out: pl.Out[pl.Tensor[[16, 64], F]]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="scaled_rows"):
        square = pl.row_sum(pl.mul(x, x))
        scale = pl.rsqrt(pl.add(pl.mul(square, 1.0 / 64), 1e-3))
        out[:] = pl.col_expand_mul(pl.row_expand_mul(x, scale), w)
    return out


# ------------------------------------------------------------------ 5: explicit carries


@pl.program
class CarryClass:
    @pl.function(type=pl.FunctionType.InCore)
    def body(self, x: pl.Tensor[[8, 32], F], out: pl.Out[pl.Tensor[[8, 32], F]], low: pl.Out[pl.Tensor[[8, 32], F]]) -> tuple[pl.Tensor[[8, 32], F], pl.Tensor[[8, 32], F]]:  # fmt: skip
        first = pl.load(x, [0, 0], [8, 32])
        zero = pl.tile.full([8, 32], dtype=F, value=0.0)
        for i, (a, b) in pl.range(5, init_values=(first, zero)):
            a_next = pl.mul(a, 1.5)
            b_next = pl.minimum(b, a)
            a_end, b_end = pl.yield_(a_next, b_next)
        out = pl.store(a_end, [0, 0], out)
        low = pl.store(b_end, [0, 0], low)
        return out, low

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[8, 32], F], out: pl.Out[pl.Tensor[[8, 32], F]], low: pl.Out[pl.Tensor[[8, 32], F]]) -> tuple[pl.Tensor[[8, 32], F], pl.Tensor[[8, 32], F]]:  # fmt: skip
        out, low = self.body(x, out, low)
        return out, low


@pl.jit.incore
def carry_body(x: pl.Tensor[[8, 32], F], out: pl.Out[pl.Tensor[[8, 32], F]], low: pl.Out[pl.Tensor[[8, 32], F]]):
    first = pl.load(x, [0, 0], [8, 32])
    zero = pl.tile.full([8, 32], dtype=F, value=0.0)
    for i, (a, b) in pl.range(5, init_values=(first, zero)):
        a_next = pl.mul(a, 1.5)
        b_next = pl.minimum(b, a)
        a_end, b_end = pl.yield_(a_next, b_next)
    out = pl.store(a_end, [0, 0], out)
    low = pl.store(b_end, [0, 0], low)
    return out, low


@pl.jit
def carry(x: pl.Tensor[[8, 32], F], out: pl.Out[pl.Tensor[[8, 32], F]], low: pl.Out[pl.Tensor[[8, 32], F]]):
    out, low = carry_body(x, out, low)
    return out, low


# ------------------------------------------------------------------ 6: branches and a while loop


@pl.program
class BranchClass:
    @pl.function(type=pl.FunctionType.InCore)
    def body(
        self, x: pl.Tensor[[8, 16], F], n: pl.Tensor[[1], pl.INT32], out: pl.Out[pl.Tensor[[8, 16], F]]
    ) -> pl.Tensor[[8, 16], F]:
        count = pl.read(n, [0])
        t = pl.load(x, [0, 0], [8, 16])
        if count > 3:
            r = pl.neg(t)
        else:
            r = pl.exp(t)
        i = pl.cast(count, pl.INDEX)
        while i > 0:
            r = pl.add(r, t)
            i = i - 1
        out = pl.store(r, [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[8, 16], F], n: pl.Tensor[[1], pl.INT32], out: pl.Out[pl.Tensor[[8, 16], F]]
    ) -> pl.Tensor[[8, 16], F]:
        out = self.body(x, n, out)
        return out


@pl.jit.incore
def branch_body(x: pl.Tensor[[8, 16], F], n: pl.Tensor[[1], pl.INT32], out: pl.Out[pl.Tensor[[8, 16], F]]):
    count = pl.read(n, [0])
    t = pl.load(x, [0, 0], [8, 16])
    if count > 3:
        r = pl.neg(t)
    else:
        r = pl.exp(t)
    i = pl.cast(count, pl.INDEX)
    while i > 0:
        r = pl.add(r, t)
        i = i - 1
    out = pl.store(r, [0, 0], out)
    return out


@pl.jit
def branch(x: pl.Tensor[[8, 16], F], n: pl.Tensor[[1], pl.INT32], out: pl.Out[pl.Tensor[[8, 16], F]]):
    out = branch_body(x, n, out)
    return out


# ------------------------------------------------------------------ 7: a dynamic dimension with a ragged tail

R = pl.dynamic("R")


@pl.program
class RaggedClass:
    @pl.function(type=pl.FunctionType.InCore)
    def body(
        self, x: pl.Tensor[[R, 32], F], out: pl.Out[pl.Tensor[[R, 32], F]], first: pl.Scalar[pl.INDEX]
    ) -> pl.Tensor[[R, 32], F]:
        count = pl.min(16, pl.dim(x, 0) - first)
        t = pl.load(x, [first, 0], [16, 32], valid_shape=[count, 32])
        out = pl.store(pl.recip(pl.add(pl.abs(t), 1.0)), [first, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[R, 32], F], out: pl.Out[pl.Tensor[[R, 32], F]]) -> pl.Tensor[[R, 32], F]:
        for first in pl.range(0, pl.dim(x, 0), 16):
            out = self.body(x, out, first)
        return out


@pl.jit.incore
def ragged_body(x: pl.Tensor[[R, 32], F], out: pl.Out[pl.Tensor[[R, 32], F]], first: pl.Scalar[pl.INDEX]):
    count = pl.min(16, pl.dim(x, 0) - first)
    t = pl.load(x, [first, 0], [16, 32], valid_shape=[count, 32])
    out = pl.store(pl.recip(pl.add(pl.abs(t), 1.0)), [first, 0], out)
    return out


@pl.jit
def ragged(x: pl.Tensor[[R, 32], F], out: pl.Out[pl.Tensor[[R, 32], F]]):
    for first in pl.range(0, pl.dim(x, 0), 16):
        out = ragged_body(x, out, first)
    return out


# ------------------------------------------------------------------ 8: blocks of one task


@pl.program
class SpmdClass:
    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[64, 32], F], out: pl.Out[pl.Tensor[[64, 32], F]]) -> pl.Tensor[[64, 32], F]:
        for b in pl.spmd(4, name_hint="blocks"):
            t = pl.load(x, [b * 16, 0], [16, 32])
            out = pl.store(pl.mul(t, 3.0), [b * 16, 0], out)
        return out


@pl.jit
def spmd(x: pl.Tensor[[64, 32], F], out: pl.Out[pl.Tensor[[64, 32], F]]):
    for b in pl.spmd(4, name_hint="blocks"):
        t = pl.load(x, [b * 16, 0], [16, 32])
        out = pl.store(pl.mul(t, 3.0), [b * 16, 0], out)
    return out


# ------------------------------------------------------------------ 9: a shared helper and two kernels with a tensor between


@pl.inline
def gate(t, scale):
    """t / (1 + exp(-scale * t))."""
    return pl.div(t, pl.add(pl.exp(pl.mul(t, -scale)), 1.0))


@pl.program
class TwoClass:
    @pl.function(type=pl.FunctionType.InCore)
    def left(self, x: pl.Tensor[[16, 32], F], out: pl.Out[pl.Tensor[[16, 32], F]]) -> pl.Tensor[[16, 32], F]:
        out = pl.store(gate(pl.load(x, [0, 0], [16, 32]), 1.5), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.InCore)
    def right(
        self, x: pl.Tensor[[16, 32], F], y: pl.Tensor[[16, 32], F], out: pl.Out[pl.Tensor[[16, 32], F]]
    ) -> pl.Tensor[[16, 32], F]:
        a = pl.load(x, [0, 0], [16, 32])
        b = pl.load(y, [0, 0], [16, 32])
        out = pl.store(pl.sub(gate(a, 0.5), b), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[16, 32], F], out: pl.Out[pl.Tensor[[16, 32], F]]) -> pl.Tensor[[16, 32], F]:
        tmp = pl.create_tensor([16, 32], dtype=F)
        tmp = self.left(x, tmp)
        out = self.right(x, tmp, out)
        return out


@pl.jit.incore
def two_left(x: pl.Tensor[[16, 32], F], out: pl.Out[pl.Tensor[[16, 32], F]]):
    out = pl.store(gate(pl.load(x, [0, 0], [16, 32]), 1.5), [0, 0], out)
    return out


@pl.jit.incore
def two_right(x: pl.Tensor[[16, 32], F], y: pl.Tensor[[16, 32], F], out: pl.Out[pl.Tensor[[16, 32], F]]):
    a = pl.load(x, [0, 0], [16, 32])
    b = pl.load(y, [0, 0], [16, 32])
    out = pl.store(pl.sub(gate(a, 0.5), b), [0, 0], out)
    return out


@pl.jit
def two(x: pl.Tensor[[16, 32], F], out: pl.Out[pl.Tensor[[16, 32], F]]):
    tmp = pl.create_tensor([16, 32], dtype=F)
    tmp = two_left(x, tmp)
    out = two_right(x, tmp, out)
    return out


# ------------------------------------------------------------------ 10: tasks with handles in a manual scope


@pl.program
class TasksClass:
    @pl.function(type=pl.FunctionType.InCore)
    def square(self, x: pl.Tensor[[32, 32], F], out: pl.Out[pl.Tensor[[32, 32], F]]) -> pl.Tensor[[32, 32], F]:
        t = pl.load(x, [0, 0], [32, 32])
        out = pl.store(pl.mul(t, t), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.InCore)
    def turn(self, x: pl.Tensor[[32, 32], F], out: pl.Out[pl.Tensor[[32, 32], F]]) -> pl.Tensor[[32, 32], F]:
        t = pl.load(x, [0, 0], [32, 32])
        out = pl.store(pl.transpose(t, 0, 1), [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(self, x: pl.Tensor[[32, 32], F], out: pl.Out[pl.Tensor[[32, 32], F]]) -> pl.Tensor[[32, 32], F]:
        tmp = pl.create_tensor([32, 32], dtype=F)
        with pl.manual_scope():
            tmp, first = pl.submit(self.square, x, tmp)
            out, _ = pl.submit(self.turn, tmp, out, deps=[first])
        return out


@pl.jit.incore
def tasks_square(x: pl.Tensor[[32, 32], F], out: pl.Out[pl.Tensor[[32, 32], F]]):
    t = pl.load(x, [0, 0], [32, 32])
    out = pl.store(pl.mul(t, t), [0, 0], out)
    return out


@pl.jit.incore
def tasks_turn(x: pl.Tensor[[32, 32], F], out: pl.Out[pl.Tensor[[32, 32], F]]):
    t = pl.load(x, [0, 0], [32, 32])
    out = pl.store(pl.transpose(t, 0, 1), [0, 0], out)
    return out


@pl.jit
def tasks(x: pl.Tensor[[32, 32], F], out: pl.Out[pl.Tensor[[32, 32], F]]):
    tmp = pl.create_tensor([32, 32], dtype=F)
    with pl.manual_scope():
        tmp, first = pl.submit(tasks_square, x, tmp)
        out, _ = pl.submit(tasks_turn, tmp, out, deps=[first])
    return out


def _gate(x: np.ndarray, scale: float) -> np.ndarray:
    return x / (1 + np.exp(-scale * x.astype(np.float64)))


def _carried(x: np.ndarray) -> list[np.ndarray]:
    return [x * 1.5**5, np.minimum(0, np.minimum(x, x * 1.5**4))]


TWINS = [
    Twin("chain", ChainClass, chain, lambda r: [f32(r, 32, 64), f32(r, 32, 64), np.zeros((32, 64), np.float32)],
         lambda x, y: [np.maximum(x * y - np.abs(x), 0.25)]),
    Twin("rows", RowsClass, rows, lambda r: [f32(r, 64, 32), np.zeros((64, 32), np.float32)],
         lambda x: [x + np.repeat(np.arange(4), 16)[:, None]]),
    Twin("product", ProductClass, product, lambda r: [f32(r, 32, 64), f32(r, 64, 48), np.zeros((32, 48), np.float32)],
         lambda a, b: [a.astype(np.float64) @ b]),
    Twin("norm", NormClass, norm, lambda r: [f32(r, 16, 64), f32(r, 1, 64), np.zeros((16, 64), np.float32)],
         lambda x, w: [x / np.sqrt((x.astype(np.float64) ** 2).mean(1, keepdims=True) + 1e-3) * w]),
    Twin("carry", CarryClass, carry, lambda r: [f32(r, 8, 32), np.zeros((8, 32), np.float32), np.ones((8, 32), np.float32)], _carried),
    Twin("branch", BranchClass, branch, lambda r: [f32(r, 8, 16), np.array([5], np.int32), np.zeros((8, 16), np.float32)],
         lambda x, n: [-x + 5 * x]),
    Twin("ragged", RaggedClass, ragged, lambda r: [f32(r, 41, 32), np.zeros((41, 32), np.float32)], lambda x: [1 / (np.abs(x) + 1)]),
    Twin("spmd", SpmdClass, spmd, lambda r: [f32(r, 64, 32), np.zeros((64, 32), np.float32)], lambda x: [x * 3]),
    Twin("two", TwoClass, two, lambda r: [f32(r, 16, 32), np.zeros((16, 32), np.float32)], lambda x: [_gate(x, 0.5) - _gate(x, 1.5)]),
    Twin("tasks", TasksClass, tasks, lambda r: [f32(r, 32, 32), np.zeros((32, 32), np.float32)], lambda x: [(x * x).T]),
]  # fmt: skip
