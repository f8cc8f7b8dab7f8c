# SPDX-License-Identifier: Apache-2.0
"""The programs of the beginner and intermediate examples on other data, other sizes and against other references.

The examples check themselves with golden functions written next to the programs; here each is imported, called with
random arrays, and compared with NumPy expressions written from its description. Then every operator inside its kernels
is exchanged, one at a time, and the same comparison must fail: it does look at every operation.
"""

from __future__ import annotations

import ast
import importlib.util
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pypto
import pytest
from pypto import ir
from pypto.runtime import RunConfig

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Check = Callable[[ModuleType, np.random.Generator, str], None]
CHECKS: dict[str, Check] = {}
_numbers = itertools.count()


def load(source: str, folder: Path) -> ModuleType:
    """Import `source` as a module of its own, from a file (the front end reads the file)."""
    name = f"example_{next(_numbers)}"
    path = folder / f"{name}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def check(path: str) -> Callable[[Check], Check]:
    def register(f: Check) -> Check:
        CHECKS[path] = f
        return f

    return register


def f32(rng, *shape, scale=1.0):
    return (rng.standard_normal(shape) * scale).astype(np.float32)


def close(got, want, rtol=1e-4, atol=1e-5):
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)


def run_class(cls, platform, *args):
    ir.compile(cls, platform=platform, dump_passes=False)(*args)


# ------------------------------------------------------------------------------------------------------ the programs


@check("beginner/hello_world.py")
def hello_world(m, rng, platform):
    config = RunConfig(platform=platform)
    for shape in ((128, 128), (3, 8), (40, 264)):
        x, y = f32(rng, *shape), f32(rng, *shape)
        out = np.full_like(x, 7)
        m.add(x, y, out, config=config)
        np.testing.assert_array_equal(out, x + y)
    x, y, out = f32(rng, 128, 128), f32(rng, 128, 128), np.zeros((128, 128), np.float32)
    run_class(m.AddProgram, platform, x, y, out)
    np.testing.assert_array_equal(out, x + y)


@check("beginner/elementwise.py")
def elementwise(m, rng, platform):
    x, y = f32(rng, 512, 256, scale=2), f32(rng, 512, 256, scale=2)
    out = np.zeros_like(x)
    m.program(x, y, out, config=RunConfig(platform=platform))
    x64, y64 = x.astype(np.float64), y.astype(np.float64)
    close(out, np.logaddexp(0, x64) - np.abs(y64) * np.where(x64 > y64, x64, y64))


@check("beginner/scalar_operands.py")
def scalar_operands(m, rng, platform):
    config = RunConfig(platform=platform)
    for shape, scale, shift in (((64, 128), 2.5, -1.0), ((5, 16), -0.5, 3.0)):
        x = f32(rng, *shape)
        out = np.zeros_like(x)
        m.scale_shift(x, out, scale, shift, config=config)
        close(out, x.astype(np.float64) * scale + shift)
    x, out = f32(rng, 64, 128), np.zeros((64, 128), np.float32)
    run_class(m.ScaleShift, platform, x, out, 1.75, -0.25)
    close(out, x.astype(np.float64) * 1.75 - 0.25)


@check("beginner/activation.py")
def activation(m, rng, platform):
    x = f32(rng, 64, 128, scale=2)
    relu, silu, gelu = (np.full_like(x, -9) for _ in range(3))
    m.program(x, relu, silu, gelu, config=RunConfig(platform=platform))
    x = x.astype(np.float64)
    np.testing.assert_array_equal(relu, np.where(x > 0, x, 0))
    close(silu, x * 0.5 * (1 + np.tanh(x / 2)))
    close(gelu, x * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x * x * x))))


@check("beginner/matmul.py")
def matmul(m, rng, platform):
    for rows, inner, cols in ((64, 96, 128), (16, 32, 48), (32, 160, 16)):
        a, b, c = f32(rng, rows, inner), f32(rng, inner, cols), np.zeros((rows, cols), np.float32)
        m.product(a, b, c, config=RunConfig(platform=platform))
        close(c, np.einsum("ik,kj->ij", a, b, dtype=np.float64), atol=1e-4)
    a, b, c = f32(rng, 64, 96), f32(rng, 96, 128), np.zeros((64, 128), np.float32)
    run_class(m.ProductByHand, platform, a, b, c)
    close(c, np.einsum("ik,kj->ij", a, b, dtype=np.float64), atol=1e-4)


@check("beginner/concat.py")
def concat(m, rng, platform):
    config = RunConfig(platform=platform)
    for rows, left, right in ((32, 64, 64), (4, 8, 24), (7, 40, 16)):
        a, b, out = f32(rng, rows, left), f32(rng, rows, right), np.zeros((rows, left + right), np.float32)
        m.side_by_side(a, b, out, config=config)
        np.testing.assert_array_equal(out, np.hstack([a, b]))
    a, b, out = f32(rng, 32, 64), f32(rng, 32, 64), np.zeros((32, 128), np.float32)
    m.by_offset(a, b, out, config=config)
    np.testing.assert_array_equal(out, np.hstack([a, b]))


@check("intermediate/fused_linear.py")
def fused_linear(m, rng, platform):
    for rows, inner, cols in ((64, 128, 128), (16, 64, 32), (48, 32, 80)):
        x, w, bias = f32(rng, rows, inner), f32(rng, inner, cols, scale=0.2), f32(rng, 1, cols)
        out = np.zeros((rows, cols), np.float32)
        m.linear_relu(x, w, bias, out, config=RunConfig(platform=platform))
        y = np.einsum("ik,kj->ij", x, w, dtype=np.float64) + bias
        close(out, np.where(y > 0, y, 0), atol=1e-4)


@check("intermediate/softmax.py")
def softmax(m, rng, platform):
    # A spread that overflows exp unless the largest element of the row is subtracted.
    x, out = f32(rng, 200, 96, scale=60), np.zeros((200, 96), np.float32)
    run_class(m.Softmax, platform, x, out)
    x = x.astype(np.float64)
    close(out, np.exp(x - np.logaddexp.reduce(x, axis=1, keepdims=True)), rtol=1e-4, atol=1e-7)


@check("intermediate/normalization.py")
def normalization(m, rng, platform):
    config = RunConfig(platform=platform)
    for rows in (64, 8, 33):
        x, gamma, beta = f32(rng, rows, 256) + 1, f32(rng, 1, 256), f32(rng, 1, 256)
        x[0] = f32(rng, 256, scale=1e-3)  # the small constant decides here
        out = np.zeros_like(x)
        m.layer_norm(x, gamma, beta, out, config=config)
        x64 = x.astype(np.float64)
        variance = np.mean(x64**2, 1, keepdims=True) - np.mean(x64, 1, keepdims=True) ** 2
        close(out, (x64 - x64.mean(1, keepdims=True)) / np.sqrt(variance + 1e-5) * gamma + beta, atol=2e-4)
        out[:] = 0
        m.rms_norm(x, gamma, out, config=config)
        close(out, x64 / np.sqrt(np.mean(x64**2, 1, keepdims=True) + 1e-5) * gamma, atol=2e-4)


@check("intermediate/matmul_accumulate.py")
def matmul_accumulate(m, rng, platform):
    a, b, c = f32(rng, 128, 512), f32(rng, 512, 128), np.zeros((128, 128), np.float32)
    m.product(a, b, c, config=RunConfig(platform=platform))
    close(c, np.einsum("ik,kj->ij", a, b, dtype=np.float64), atol=5e-4)


@check("intermediate/assemble.py")
def assemble(m, rng, platform):
    config = RunConfig(platform=platform)
    x, inner, out = f32(rng, 128, 128), f32(rng, 64, 64), np.zeros((128, 128), np.float32)
    m.transpose_blocks(x, out, config=config)
    np.testing.assert_array_equal(out, np.swapaxes(x, 0, 1))
    m.border(x, inner, out, config=config)
    want = x.copy()
    want[32:96, 32:96] = -inner
    np.testing.assert_array_equal(out, want)


@check("intermediate/dynamic_valid_shape.py")
def dynamic_valid_shape(m, rng, platform):
    for rows in (1, 7, 32, 95, 160):
        x = f32(rng, rows, 64) - 6
        best = np.full((1, 64), -1e30, np.float32)
        best[0, :5] = 9
        m.program(x, best, config=RunConfig(platform=platform))
        want = np.max(x, axis=0)
        want[:5] = 9
        np.testing.assert_array_equal(best[0], want)


@check("intermediate/device_time.py")
def device_time(m, rng, platform):
    for tile in (4, 16, 128):
        x, out = f32(rng, 512, 128, scale=2), np.zeros((512, 128), np.float32)
        run_class(m.program_of(tile), platform, x, out)
        # sigmoid(z) = (1 + tanh(z / 2)) / 2
        close(out, x * (1 + np.tanh(0.851 * x.astype(np.float64))) / 2)


@pytest.mark.parametrize("platform", ["a2a3sim", "a5sim"])
@pytest.mark.parametrize("path", CHECKS)
def test_example(path, platform, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = load((EXAMPLES / path).read_text(encoding="utf-8"), tmp_path)
    for seed in (1, 2):
        CHECKS[path](module, np.random.default_rng(seed), platform)


def test_every_example_is_here():
    here = {
        p.relative_to(EXAMPLES).as_posix() for d in ("beginner", "intermediate") for p in (EXAMPLES / d).glob("*.py")
    }
    assert here == set(CHECKS)


# --------------------------------------------------------------------------------------------- exchanged operators

OTHER = {
    "add": "sub", "sub": "add", "mul": "add", "div": "mul", "maximum": "minimum", "minimum": "maximum", "exp": "abs", "log": "abs",
    "neg": "abs", "abs": "neg", "relu": "neg", "rsqrt": "sqrt", "recip": "neg", "row_sum": "row_max", "row_max": "row_min",
    "col_max": "col_min", "col_sum": "col_max", "row_expand_sub": "row_expand_add", "row_expand_add": "row_expand_sub",
    "row_expand_mul": "row_expand_div", "row_expand_div": "row_expand_mul", "col_expand_add": "col_expand_sub",
    "col_expand_mul": "col_expand_div", "min": "max", "max": "min", "zero": "max",
}  # fmt: skip
BINARY = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Sub}
COMPARE = {ast.Eq: ast.NotEq, ast.Lt: ast.GtE, ast.Gt: ast.LtE}
SWAPPED = {"concat", "matmul", "assemble"}


def is_kernel(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any("pl." in ast.unparse(d) for d in node.decorator_list)


def places(tree: ast.Module) -> Iterator[tuple[str, Callable[[], None]]]:
    """Every exchange inside the bodies of kernels: what it is, and the function that makes it in `tree`."""
    for function in (n for n in ast.walk(tree) if is_kernel(n)):
        for node in (n for s in function.body for n in ast.walk(s)):
            where = f"{function.name}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.Attribute) and node.attr in OTHER:
                yield f"{where} {node.attr}", lambda n=node: setattr(n, "attr", OTHER[n.attr])
            elif isinstance(node, ast.BinOp) and type(node.op) in BINARY:
                yield f"{where} {ast.unparse(node)}", lambda n=node: setattr(n, "op", BINARY[type(n.op)]())
            elif isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARE:
                yield f"{where} {ast.unparse(node)}", lambda n=node: setattr(n, "ops", [COMPARE[type(n.ops[0])]()])
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SWAPPED:
                yield f"{where} {node.func.attr}", lambda n=node: n.args.insert(0, n.args.pop(1))


def exchanges() -> list[tuple[str, int, str]]:
    found = []
    for path in CHECKS:
        tree = ast.parse((EXAMPLES / path).read_text(encoding="utf-8"))
        found += [(path, i, what) for i, (what, _) in enumerate(places(tree))]
    return found


@pytest.mark.parametrize("path,index,what", exchanges(), ids=lambda v: str(v).split("/")[-1])
def test_exchanged_operator_is_noticed(path, index, what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tree = ast.parse((EXAMPLES / path).read_text(encoding="utf-8"))
    next(itertools.islice(places(tree), index, None))[1]()
    with pytest.raises(Exception) as noticed, np.errstate(all="ignore"):
        module = load(ast.unparse(tree), tmp_path)
        CHECKS[path](module, np.random.default_rng(3), "a2a3sim")
    assert not isinstance(noticed.value, pypto.InternalError), noticed.value
