# SPDX-License-Identifier: Apache-2.0
"""Small programs that the tests of the runtime run."""

import pypto.language as pl
import pypto.language.distributed as pld

ROWS, COLS = 16, 32


@pl.program
class Add:
    @pl.function(type=pl.FunctionType.InCore)
    def add_tiles(
        self,
        x: pl.Tensor[[ROWS, COLS], pl.FP32],
        y: pl.Tensor[[ROWS, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        a = pl.load(x, [0, 0], [ROWS, COLS])
        b = pl.load(y, [0, 0], [ROWS, COLS])
        return pl.store(pl.add(a, b), [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        x: pl.Tensor[[ROWS, COLS], pl.FP32],
        y: pl.Tensor[[ROWS, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        out = self.add_tiles(x, y, out)
        return out


@pl.program
class ScaleAdd:
    """Out first, scalars between tensors: positions matter."""

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
        s: pl.Scalar[pl.FP32],
        x: pl.Tensor[[ROWS, COLS], pl.FP32],
        acc: pl.InOut[pl.Tensor[[ROWS, COLS], pl.FP32]],
    ) -> tuple[pl.Tensor[[ROWS, COLS], pl.FP32], pl.Tensor[[ROWS, COLS], pl.FP32]]:
        t = pl.mul(pl.load(x, [0, 0], [ROWS, COLS]), s)
        old = pl.load(acc, [0, 0], [ROWS, COLS])
        out = pl.store(t, [0, 0], out)
        acc = pl.store(pl.add(old, t), [0, 0], acc)
        return out, acc

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
        s: pl.Scalar[pl.FP32],
        x: pl.Tensor[[ROWS, COLS], pl.FP32],
        acc: pl.InOut[pl.Tensor[[ROWS, COLS], pl.FP32]],
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        out, acc = self.kernel(out, s, x, acc)
        return out


N = pl.dynamic("N")


@pl.program
class Rows:
    """A dynamic number of rows: doubles each."""

    @pl.function(type=pl.FunctionType.InCore)
    def row(
        self,
        x: pl.Tensor[[N, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[N, COLS], pl.FP32]],
        i: pl.Scalar[pl.INDEX],
    ) -> pl.Tensor[[N, COLS], pl.FP32]:
        t = pl.load(x, [i, 0], [1, COLS])
        return pl.store(pl.mul(t, 2.0), [i, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[N, COLS], pl.FP32], out: pl.Out[pl.Tensor[[N, COLS], pl.FP32]]
    ) -> pl.Tensor[[N, COLS], pl.FP32]:
        for i in pl.range(pl.dim(x, 0)):
            out = self.row(x, out, i)
        return out


@pl.program
class TwoEntries:
    @pl.function(type=pl.FunctionType.InCore)
    def double_tile(
        self, x: pl.Tensor[[ROWS, COLS], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        return pl.store(pl.mul(pl.load(x, [0, 0], [ROWS, COLS]), 2.0), [0, 0], out)

    @pl.function(type=pl.FunctionType.InCore)
    def negate_tile(
        self, x: pl.Tensor[[ROWS, COLS], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        return pl.store(pl.neg(pl.load(x, [0, 0], [ROWS, COLS])), [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def double(
        self, x: pl.Tensor[[ROWS, COLS], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        out = self.double_tile(x, out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def negate(
        self, x: pl.Tensor[[ROWS, COLS], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        out = self.negate_tile(x, out)
        return out


NR = pl.dynamic("NR")


@pl.program
class PerRank:
    """Each rank adds its number to its row block; the sum of a resident tensor joins in."""

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        x: pl.Tensor[[ROWS, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
        rank: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        t = pl.load(x, [0, 0], [ROWS, COLS])
        return pl.store(pl.add(t, pl.cast(rank, pl.FP32)), [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        x: pl.Tensor[[ROWS, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
        rank: pl.Scalar[pl.INT32],
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        out = self.kernel(x, out, rank)
        return out

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        x: pl.Tensor[[NR, ROWS, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[NR, ROWS, COLS], pl.FP32]],
    ) -> pl.Tensor[[NR, ROWS, COLS], pl.FP32]:
        for r in pl.range(pld.world_size()):
            self.chip(x[r], out[r], r, device=r)
        return out


@pl.program
class Counter:
    """Adds x to a window that starts as it was left, and copies it out: shows whether windows persist."""

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self,
        x: pl.Tensor[[1, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[1, COLS], pl.FP32]],
        box: pld.DistributedTensor[[1, COLS], pl.FP32],
    ) -> pl.Tensor[[1, COLS], pl.FP32]:
        total = pl.add(pl.load(box, [0, 0], [1, COLS]), pl.load(x, [0, 0], [1, COLS]))
        box = pl.store(total, [0, 0], box)
        return pl.store(total, [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self,
        x: pl.Tensor[[1, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[1, COLS], pl.FP32]],
        box: pld.DistributedTensor[[1, COLS], pl.FP32],
    ) -> pl.Tensor[[1, COLS], pl.FP32]:
        out = self.kernel(x, out, box)
        return out

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        x: pl.Tensor[[NR, 1, COLS], pl.FP32],
        out: pl.Out[pl.Tensor[[NR, 1, COLS], pl.FP32]],
    ):
        buf = pld.alloc_window_buffer([1, COLS], dtype=pl.FP32)
        for r in pl.range(pld.world_size()):
            box = pld.window(buf, [1, COLS], dtype=pl.FP32)
            self.chip(x[r], out[r], box, device=r)


@pl.program
class WithCallbacks:
    """Device work, a concrete sub-worker, an abstract one, and device work on what they wrote."""

    @pl.function(type=pl.FunctionType.InCore)
    def kernel(
        self, x: pl.Tensor[[ROWS, COLS], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        return pl.store(pl.add(pl.load(x, [0, 0], [ROWS, COLS]), 1.0), [0, 0], out)

    @pl.function(type=pl.FunctionType.Orchestration)
    def chip(
        self, x: pl.Tensor[[ROWS, COLS], pl.FP32], out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]
    ) -> pl.Tensor[[ROWS, COLS], pl.FP32]:
        out = self.kernel(x, out)
        return out

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def triple(a: pl.Tensor[[ROWS, COLS], pl.FP32], b: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]):
        b[:] = a * 3

    @pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)
    def inspect(a: pl.Tensor[[ROWS, COLS], pl.FP32], b: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]]): ...

    @pl.function(level=pl.Level.HOST, role=pl.Role.Orchestrator)
    def host(
        self,
        x: pl.Tensor[[ROWS, COLS], pl.FP32],
        mid: pl.InOut[pl.Tensor[[ROWS, COLS], pl.FP32]],
        out: pl.Out[pl.Tensor[[ROWS, COLS], pl.FP32]],
    ):
        self.chip(x, mid, device=0)
        self.triple(mid, out)
        self.inspect(out, mid)
        self.chip(mid, out, device=0)


@pl.jit
def jit_axpy(x: pl.Tensor, y: pl.Tensor, out: pl.Out[pl.Tensor], a: pl.Scalar[pl.FP32]):
    with pl.at(level=pl.Level.CORE_GROUP, name_hint="axpy"):
        out[:] = pl.add(pl.mul(x, a), y)
    return out
