# SPDX-License-Identifier: Apache-2.0
"""Class-form programs as end-to-end tests write them, each against NumPy."""

import numpy as np
import pypto.language as pl
import pytest
from pypto import ir
from pypto.backend import BackendType
from pypto.ir.pass_manager import OptimizationStrategy

RNG = np.random.default_rng(77)


def f32(*shape):
    return RNG.standard_normal(shape, dtype=np.float32)


def compiled(program, tmp_path, backend=BackendType.Ascend910B):
    return ir.compile(
        program,
        output_dir=str(tmp_path / "build"),
        strategy=OptimizationStrategy.Default,
        dump_passes=False,
        backend_type=backend,
    )


@pl.program
class Doubler:
    @pl.function(type=pl.FunctionType.InCore)
    def twice(
        self, src: pl.Tensor[[64, 64], pl.FP32], dst: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
    ) -> pl.Tensor[[64, 64], pl.FP32]:
        t = pl.load(src, [0, 0], [64, 64])
        return pl.store(pl.add(t, t), [0, 0], dst)

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, src: pl.Tensor[[64, 64], pl.FP32], dst: pl.Out[pl.Tensor[[64, 64], pl.FP32]]
    ) -> pl.Tensor[[64, 64], pl.FP32]:
        dst = self.twice(src, dst)
        return dst


@pytest.mark.parametrize("backend", [BackendType.Ascend910B, BackendType.Ascend950])
def test_doubler(tmp_path, backend):  # 01 L-41
    c = compiled(Doubler, tmp_path, backend)
    x, y = f32(64, 64), np.zeros((64, 64), np.float32)
    assert c(x, y) is None
    np.testing.assert_array_equal(y, x + x)
    np.testing.assert_array_equal(c(x), x + x)  # 04 PRG-6: return style


@pl.program
class FusedLinear:
    @pl.function(type=pl.FunctionType.InCore)
    def linear(
        self,
        a: pl.Tensor[[64, 64], pl.FP32],
        w: pl.Tensor[[64, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    ) -> pl.Tensor[[64, 64], pl.FP32]:
        a1 = pl.load(a, [0, 0], [64, 64], target_memory=pl.MemorySpace.Mat)
        w1 = pl.load(w, [0, 0], [64, 64], target_memory=pl.MemorySpace.Mat)
        left = pl.move(a1, target_memory=pl.MemorySpace.Left)
        right = pl.move(w1, target_memory=pl.MemorySpace.Right)
        c = pl.matmul(left, right)
        out = pl.store(c, [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.InCore)
    def bias_relu(
        self,
        x: pl.Tensor[[64, 64], pl.FP32],
        b: pl.Tensor[[1, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    ) -> pl.Tensor[[64, 64], pl.FP32]:
        t = pl.load(x, [0, 0], [64, 64])
        bias = pl.load(b, [0, 0], [1, 64])
        r = pl.relu(pl.col_expand_add(t, bias))
        out = pl.store(r, [0, 0], out)
        return out

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self,
        a: pl.Tensor[[64, 64], pl.FP32],
        w: pl.Tensor[[64, 64], pl.FP32],
        b: pl.Tensor[[1, 64], pl.FP32],
        out: pl.Out[pl.Tensor[[64, 64], pl.FP32]],
    ) -> pl.Tensor[[64, 64], pl.FP32]:
        tmp: pl.Tensor[[64, 64], pl.FP32] = pl.create_tensor([64, 64], dtype=pl.FP32)
        tmp = self.linear(a, w, tmp)
        out = self.bias_relu(tmp, b, out)
        return out


def test_fused_linear(tmp_path):
    a, w, b = f32(64, 64), f32(64, 64), f32(1, 64)
    out = np.zeros((64, 64), np.float32)
    compiled(FusedLinear, tmp_path)(a, w, b, out)
    np.testing.assert_allclose(out, np.maximum(a @ w + b, 0), rtol=1e-4, atol=1e-4)


def make_tiled(tile: int, n: int):
    @pl.program
    class Tiled:
        @pl.function(type=pl.FunctionType.InCore)
        def step(
            self,
            x: pl.Tensor[[n, n], pl.FP32],
            y: pl.Out[pl.Tensor[[n, n], pl.FP32]],
            row: pl.Scalar[pl.INDEX],
            factor: pl.Scalar[pl.FP32],
        ) -> pl.Tensor[[n, n], pl.FP32]:
            t = pl.load(x, [row, 0], [tile, n])
            y = pl.store(pl.mul(t, factor), [row, 0], y)
            return y

        @pl.function(type=pl.FunctionType.Orchestration)
        def main(
            self,
            x: pl.Tensor[[n, n], pl.FP32],
            factor: pl.Scalar[pl.FP32],
            y: pl.Out[pl.Tensor[[n, n], pl.FP32]],
        ) -> pl.Tensor[[n, n], pl.FP32]:
            for i, (out,) in pl.range(0, n // tile, init_values=(y,)):
                out = self.step(x, out, i * tile, factor)
                (res,) = pl.yield_(out)
            return res

    return Tiled


@pytest.mark.parametrize("tile,n", [(8, 32), (16, 64)])
def test_factory_of_classes_with_carried_output(tmp_path, tile, n):  # 01 L-43, L-97, case K7
    x, y = f32(n, n), np.zeros((n, n), np.float32)
    compiled(make_tiled(tile, n), tmp_path)(x, 1.5, y)
    np.testing.assert_array_equal(y, x * np.float32(1.5))


@pl.program
class Submits:
    @pl.function(type=pl.FunctionType.InCore)
    def fill(
        self, x: pl.Tensor[[32, 32], pl.FP32], o: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        o = pl.store(pl.exp(pl.load(x, [0, 0], [32, 32])), [0, 0], o)
        return o

    @pl.function(type=pl.FunctionType.InCore)
    def total(
        self,
        a: pl.Tensor[[32, 32], pl.FP32],
        b: pl.Tensor[[32, 32], pl.FP32],
        o: pl.Out[pl.Tensor[[32, 32], pl.FP32]],
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        o = pl.store(pl.add(pl.load(a, [0, 0], [32, 32]), pl.load(b, [0, 0], [32, 32])), [0, 0], o)
        return o

    @pl.function(type=pl.FunctionType.Orchestration)
    def main(
        self, x: pl.Tensor[[32, 32], pl.FP32], o: pl.Out[pl.Tensor[[32, 32], pl.FP32]]
    ) -> pl.Tensor[[32, 32], pl.FP32]:
        a = pl.create_tensor([32, 32], dtype=pl.FP32)
        b = pl.create_tensor([32, 32], dtype=pl.FP32)
        with pl.manual_scope():
            a, t0 = pl.submit(self.fill, x, a)
            b, t1 = pl.submit(self.fill, x, b, deps=[None])
            gate = pl.system.task_dummy(deps=[t0, t1])
            o, _ = pl.submit(self.total, a, b, o, deps=[gate])
        return o


def test_submit_and_dummy_tasks(tmp_path):  # 01 L-130, L-137
    x, o = f32(32, 32), np.zeros((32, 32), np.float32)
    compiled(Submits, tmp_path)(x, o)
    np.testing.assert_allclose(o, 2 * np.exp(x), rtol=1e-5)


def test_print_and_read_back(tmp_path):  # 01 L-79, 04 SER-2
    for program in (Doubler, FusedLinear, make_tiled(8, 32), Submits):
        text = program.as_python()
        assert text.splitlines()[0].startswith("# pypto.program: ")
        again = pl.parse(text)
        assert ir.structural_equal(program, again, enable_auto_mapping=True), text
