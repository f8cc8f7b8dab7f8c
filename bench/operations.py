# SPDX-License-Identifier: Apache-2.0
"""Single operations and short compositions against memcpy, NumPy and PyTorch."""

import time
from collections.abc import Callable
from typing import Any

import limits
import numpy as np
import pypto.language as pl
from measure import OFF, RNG, best_us, copy_us, report
from pypto.runtime import RunConfig, SimOptions

NUMPY = {pl.FP32: np.float32, pl.FP16: np.float16, pl.INT32: np.int32, pl.INT16: np.int16, pl.INT8: np.int8}
# name, rows, columns of FP32 (other types: as many elements), trips
LEVELS = (("L1", 8, 256, 20000), ("L2", 64, 192, 1000), ("DRAM", 4096, 4096, 1))


def one_operand(op: Any, shape: list[int], trips: int, dt: pl.DataType, to: pl.DataType):
    """`op` of a tile, `trips` times; of an array as a whole when `trips` is 1."""
    if trips == 1:

        @pl.jit
        def whole(x: pl.Tensor[shape, dt], out: pl.Out[pl.Tensor[shape, to]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                out[:] = op(x)
            return out

        return whole

    @pl.jit
    def tiles(x: pl.Tensor[shape, dt], out: pl.Out[pl.Tensor[shape, to]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.load(x, [0, 0], shape)
            for _ in pl.range(trips):
                t = op(a)
            out = pl.store(t, [0, 0], out)
        return out

    return tiles


def two_operands(op: Any, shape: list[int], trips: int, dt: pl.DataType):
    if trips == 1:

        @pl.jit
        def whole(x: pl.Tensor[shape, dt], y: pl.Tensor[shape, dt], out: pl.Out[pl.Tensor[shape, dt]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                out[:] = op(x, y)
            return out

        return whole

    @pl.jit
    def tiles(x: pl.Tensor[shape, dt], y: pl.Tensor[shape, dt], out: pl.Out[pl.Tensor[shape, dt]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.load(x, [0, 0], shape)
            b = pl.load(y, [0, 0], shape)
            for _ in pl.range(trips):
                t = op(a, b)
            out = pl.store(t, [0, 0], out)
        return out

    return tiles


def conversion(shape: list[int], trips: int, dt: pl.DataType, to: pl.DataType):
    if trips == 1:

        @pl.jit
        def whole(x: pl.Tensor[shape, dt], out: pl.Out[pl.Tensor[shape, to]]):
            with pl.at(level=pl.Level.CORE_GROUP):
                out[:] = pl.cast(x, to)
            return out

        return whole

    @pl.jit
    def tiles(x: pl.Tensor[shape, dt], out: pl.Out[pl.Tensor[shape, to]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.load(x, [0, 0], shape)
            for _ in pl.range(trips):
                t = pl.cast(a, to)
            out = pl.store(t, [0, 0], out)
        return out

    return tiles


def values(shape: tuple[int, int], dt: pl.DataType) -> np.ndarray:
    x = RNG.standard_normal(shape, dtype=np.float32)
    return x.astype(NUMPY[dt]) if dt in (pl.FP32, pl.FP16) else (50 * x).astype(NUMPY[dt])


def elementwise() -> None:
    """Single operations and casts inside one kernel against copying as many bytes, and NumPy's result.

    Copies are of half as many bytes as the operation reads and writes, or of those that it writes if they are more.
    The other limit, one multiply-add per element, is lower for all of them: the store of a vector takes a cycle, in
    which two vectors of multiply-adds fit. Conversions of several instructions per vector have a loop of those as
    their limit where it takes longer than the copy.
    """
    cases: list[tuple[str, Any, Callable[..., np.ndarray] | None, pl.DataType, pl.DataType]] = [
        ("add", pl.add, np.add, pl.FP32, pl.FP32),
        ("mul", pl.mul, np.multiply, pl.FP32, pl.FP32),
        ("neg", pl.neg, np.negative, pl.FP32, pl.FP32),
        ("add", pl.add, np.add, pl.FP16, pl.FP16),
        ("add", pl.add, np.add, pl.INT32, pl.INT32),
        ("add", pl.add, np.add, pl.INT16, pl.INT16),
        ("cast", None, None, pl.FP32, pl.FP16),
        ("cast", None, None, pl.FP16, pl.FP32),
        ("cast", None, None, pl.FP32, pl.INT32),
        ("cast", None, None, pl.INT32, pl.FP32),
        ("cast", None, None, pl.INT8, pl.FP16),
    ]
    for name, op, peer, dt, to in cases:
        for level, rows, columns, trips in LEVELS:
            shape = [rows, columns]
            two = op in (pl.add, pl.mul)
            x = [values((rows, columns), dt) for _ in range(2 if two else 1)]
            out = np.zeros((rows, columns), NUMPY[to])
            if op is None:
                program = conversion(shape, trips, dt, to)
            elif two:
                program = two_operands(op, shape, trips, dt)
            else:
                program = one_operand(op, shape, trips, dt, to)
            program(*x, out, config=OFF)
            if peer is not None:
                np.testing.assert_array_equal(out, peer(*x))
            elif to is pl.INT32:
                np.testing.assert_allclose(out, x[0], atol=0.5)  # ties: 02 O-1103
            else:
                np.testing.assert_array_equal(out, x[0].astype(NUMPY[to]))
            ours = best_us(lambda p=program, a=x, o=out: p(*a, o, config=OFF), 1, 9) / trips
            copy = copy_us(max((sum(a.nbytes for a in x) + out.nbytes) // 2, out.nbytes))
            limit = max(copy, limits.conversion_us(x[0], out, f"{dt}_to_{to}") if op is None else 0)
            arrow = f"{dt} -> {to}" if dt != to else str(dt)
            times = f"{ours:12.3f} us   copy {copy:12.3f} us   limit {limit:12.3f} us"
            print(f"{f'{name} {arrow}, {level}':<44} {times}   {ours / limit:6.2f} x   aim <= 1.5 x")


def maths() -> None:
    """Functions of FP32 tiles inside one kernel against NumPy, with the greatest error of both in ulp."""
    shape, trips = [64, 128], 200

    @pl.jit
    def sigmoid(x: pl.Tensor[shape, pl.FP32], out: pl.Out[pl.Tensor[shape, pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.load(x, [0, 0], shape)
            for _ in pl.range(trips):
                t = pl.recip(pl.add(pl.exp(pl.neg(a)), 1.0))
            out = pl.store(t, [0, 0], out)
        return out

    @pl.jit
    def tanh(x: pl.Tensor[shape, pl.FP32], out: pl.Out[pl.Tensor[shape, pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.load(x, [0, 0], shape)
            for _ in pl.range(trips):
                e = pl.exp(pl.mul(a, 2.0))
                t = pl.div(pl.sub(e, 1.0), pl.add(e, 1.0))
            out = pl.store(t, [0, 0], out)
        return out

    one = np.float32(1)
    cases: list[tuple[str, Any, Callable[[np.ndarray], np.ndarray], bool]] = [
        ("exp", pl.exp, np.exp, False),
        ("log", pl.log, np.log, True),
        ("rsqrt", pl.rsqrt, lambda x: one / np.sqrt(x), True),
        ("sin", pl.sin, np.sin, False),
        ("cos", pl.cos, np.cos, False),
        ("sigmoid, composed", sigmoid, lambda x: one / (one + np.exp(-x)), False),
        ("tanh, composed", tanh, np.tanh, False),
    ]
    for name, op, peer, positive in cases:
        program = op if "composed" in name else one_operand(op, shape, trips, pl.FP32, pl.FP32)
        x = RNG.standard_normal(shape, dtype=np.float32)
        x = np.abs(x) + np.float32(0.01) if positive else x
        out = np.zeros_like(x)
        program(x, out, config=OFF)
        exact = peer(x.astype(np.float64))
        ulp = np.spacing(np.abs(exact).astype(np.float32))
        errors = [float(np.max(np.abs(y - exact) / ulp)) for y in (out, peer(x))]
        assert "composed" in name or errors[0] <= 4, errors
        ours = best_us(lambda p=program, a=x, o=out: p(a, o, config=OFF), 1, 15) / trips
        theirs = best_us(lambda f=peer, a=x: f(a), trips, 15)
        report(f"{name} (ulp {errors[0]:.2f}, NumPy {errors[1]:.2f})", ours, "NumPy", theirs, ">= 1")


WIDE = [128, 4096]


@pl.jit
def softmax(x: pl.Tensor[WIDE, pl.FP32], out: pl.Out[pl.Tensor[WIDE, pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        e = pl.exp(pl.row_expand_sub(x, pl.row_max(x)))
        out[:] = pl.row_expand_div(e, pl.row_sum(e))
    return out


@pl.jit
def rms_norm(x: pl.Tensor[WIDE, pl.FP32], out: pl.Out[pl.Tensor[WIDE, pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        mean = pl.mul(pl.row_sum(pl.mul(x, x)), 1.0 / 4096)
        out[:] = pl.row_expand_mul(x, pl.rsqrt(pl.add(mean, 1e-6)))
    return out


@pl.jit
def log_softmax(x: pl.Tensor[WIDE, pl.FP32], out: pl.Out[pl.Tensor[WIDE, pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        d = pl.row_expand_sub(x, pl.row_max(x))
        out[:] = pl.row_expand_sub(d, pl.log(pl.row_sum(pl.exp(d))))
    return out


@pl.jit
def masked_softmax(x: pl.Tensor[WIDE, pl.FP32], mask: pl.Tensor[WIDE, pl.FP32], out: pl.Out[pl.Tensor[WIDE, pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        s = pl.add(pl.mul(x, 0.125), mask)
        e = pl.exp(pl.row_expand_sub(s, pl.row_max(s)))
        out[:] = pl.row_expand_div(e, pl.row_sum(e))
    return out


@pl.jit
def layer_norm(
    x: pl.Tensor[WIDE, pl.FP32],
    weight: pl.Tensor[[1, 4096], pl.FP32],
    bias: pl.Tensor[[1, 4096], pl.FP32],
    out: pl.Out[pl.Tensor[WIDE, pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        d = pl.row_expand_sub(x, pl.mul(pl.row_sum(x), 1.0 / 4096))
        variance = pl.mul(pl.row_sum(pl.mul(d, d)), 1.0 / 4096)
        scaled = pl.row_expand_mul(d, pl.rsqrt(pl.add(variance, 1e-5)))
        out[:] = pl.add(pl.col_expand_mul(scaled, weight), bias)
    return out


TILE, TRIPS = [64, 128], 100


@pl.jit
def tile_softmax(x: pl.Tensor[TILE, pl.FP32], out: pl.Out[pl.Tensor[TILE, pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0], TILE)
        tmp = pl.create_tile(TILE, dtype=pl.FP32)
        for _ in pl.range(TRIPS):
            e = pl.exp(pl.row_expand_sub(a, pl.row_max(a, tmp)))
            t = pl.row_expand_div(e, pl.row_sum(e, tmp))
        out = pl.store(t, [0, 0], out)
    return out


@pl.jit
def online_softmax(
    scores: pl.Tensor[TILE, pl.FP32], start: pl.Tensor[[64, 1], pl.FP32], out: pl.Out[pl.Tensor[TILE, pl.FP32]]
):
    """Updates of flash attention with the scores in place of their product with the values."""
    with pl.at(level=pl.Level.CORE_GROUP):
        s = pl.load(scores, [0, 0], TILE)
        tmp = pl.create_tile(TILE, dtype=pl.FP32)
        acc = pl.load(scores, [0, 0], TILE)
        top = pl.load(start, [0, 0], [64, 1])
        total = pl.load(start, [0, 0], [64, 1])
        for _ in pl.range(TRIPS):
            higher = pl.maximum(top, pl.row_max(s, tmp))
            p = pl.exp(pl.row_expand_sub(s, higher))
            alpha = pl.exp(pl.sub(top, higher))
            total = pl.add(pl.mul(total, alpha), pl.row_sum(p, tmp))
            acc = pl.add(pl.row_expand_mul(acc, alpha), p)
            top = higher
        out = pl.store(pl.row_expand_div(acc, total), [0, 0], out)
    return out


def rows() -> None:
    """Functions of rows, of arrays of [128, 4096] and of tiles of [64, 128], against PyTorch eager, one thread."""
    import torch

    torch.set_num_threads(1)
    f = torch.nn.functional
    x, s = RNG.standard_normal(WIDE, dtype=np.float32), RNG.standard_normal(TILE, dtype=np.float32)
    weight, bias = (RNG.standard_normal([1, 4096], dtype=np.float32) for _ in range(2))
    # Causal, as blocks of attention scores are: half of the cells count.
    mask = np.where(np.arange(4096) <= 32 * np.arange(128)[:, None], 0, -1e30).astype(np.float32)
    start = np.ones([64, 1], np.float32)
    t, u, m, one = (torch.from_numpy(a) for a in (x, s, mask, start))
    w, b = torch.from_numpy(weight[0]), torch.from_numpy(bias[0])

    def online(trips: int) -> torch.Tensor:
        acc, top, total = u, one, one
        for _ in range(trips):
            higher = torch.maximum(top, u.amax(1, keepdim=True))
            p = torch.exp(u - higher)
            alpha = torch.exp(top - higher)
            total = total * alpha + p.sum(1, keepdim=True)
            acc = acc * alpha + p
            top = higher
        return acc / total

    cases: list[tuple[str, Any, tuple[np.ndarray, ...], Callable[[], torch.Tensor], int, str]] = [
        ("softmax", softmax, (x,), lambda: torch.softmax(t, 1), 1, ">= 2"),
        ("RMS norm", rms_norm, (x,), lambda: f.rms_norm(t, (4096,), eps=1e-6), 1, ">= 2"),
        ("log-softmax", log_softmax, (x,), lambda: torch.log_softmax(t, 1), 1, ">= 1"),
        ("masked softmax", masked_softmax, (x, mask), lambda: torch.softmax(t * 0.125 + m, 1), 1, ">= 1"),
        ("layer norm", layer_norm, (x, weight, bias), lambda: f.layer_norm(t, (4096,), w, b), 1, ">= 1"),
        ("softmax", tile_softmax, (s,), lambda: torch.softmax(u, 1), TRIPS, ">= 1"),
        ("online softmax update", online_softmax, (s, start), lambda: online(TRIPS), TRIPS, ">= 1"),
    ]
    for name, program, args, peer, trips, aim in cases:
        out = np.zeros_like(args[0])
        compiled = program.compile(*args, out, config=OFF)
        compiled(*args, out, config=OFF)
        np.testing.assert_allclose(out, peer().numpy(), rtol=2e-4, atol=2e-6)
        ours = best_us(lambda c=compiled, a=args, o=out: c(*a, o, config=OFF), 3, 15) / trips
        theirs = best_us(peer, 1 if program is online_softmax else 3, 15)
        report(f"{name} {list(out.shape)}", ours, "PyTorch", theirs / (trips if program is online_softmax else 1), aim)
        best = limits.softmax_us(x, out) if program is softmax else 0.0
        if best:
            report(f"{name} {list(out.shape)}", ours, "intrinsics", best, ">= 0.7")


SORTED, SORTS = [1, 1024], 200


@pl.jit
def sort_1024(
    x: pl.Tensor[SORTED, pl.FP32], i: pl.Tensor[SORTED, pl.UINT32], out: pl.Out[pl.Tensor[[1, 2048], pl.FP32]]
):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0], SORTED)
        b = pl.load(i, [0, 0], SORTED)
        for _ in pl.range(SORTS):
            p = pl.sort32(a, b)
            p = pl.mrgsort(p, block_len=64)
            p = pl.mrgsort(p, block_len=256)
            p = pl.mrgsort(p, block_len=1024)
        out = pl.store(p, [0, 0], out)
    return out


def sorting() -> None:
    """Sorting 1,024 scores with their indices against NumPy's argsort and gather."""
    x = RNG.standard_normal(SORTED, dtype=np.float32)
    i = np.arange(1024, dtype=np.uint32)[None]
    out = np.zeros((1, 2048), np.float32)
    sort_1024(x, i, out, config=OFF)
    order = np.argsort(-x[0], kind="stable")
    np.testing.assert_array_equal(out[0, 0::2], x[0][order])
    np.testing.assert_array_equal(out[0, 1::2].view(np.uint32), order)

    def numpy_sort():
        order = np.argsort(-x[0], kind="stable")
        return x[0][order], order

    ours = best_us(lambda: sort_1024(x, i, out, config=OFF), 1, 15) / SORTS
    report("sort 1,024 with indices", ours, "NumPy", best_us(numpy_sort, SORTS, 15), ">= 1")


def threads() -> None:
    """Large operations with one thread and with all: the same bits in less time."""
    x = RNG.standard_normal([4096, 4096], dtype=np.float32)
    a, b = (RNG.standard_normal([1024, 1024], dtype=np.float32) for _ in range(2))

    @pl.jit
    def gelu_like(x: pl.Tensor[[4096, 4096], pl.FP32], out: pl.Out[pl.Tensor[[4096, 4096], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = pl.mul(x, pl.recip(pl.add(pl.exp(pl.mul(x, -1.702)), 1.0)))
        return out

    @pl.jit
    def product(
        a: pl.Tensor[[1024, 1024], pl.FP32],
        b: pl.Tensor[[1024, 1024], pl.FP32],
        out: pl.Out[pl.Tensor[[1024, 1024], pl.FP32]],
    ):
        with pl.at(level=pl.Level.CORE_GROUP):
            out[:] = pl.matmul(a, b)
        return out

    for name, program, args in (("x sigmoid(1.7 x), 4096 x 4096", gelu_like, (x,)), ("matmul 1024", product, (a, b))):
        us, outs, busy = [], [], 0.0
        for n in (1, 0):
            config = RunConfig(platform="a2a3sim", sim=SimOptions(checks="off", threads=n))
            out = np.zeros_like(args[0])
            program(*args, out, config=config)
            us.append(best_us(lambda p=program, g=config, o=out, v=args: p(*v, o, config=g), 1, 15))
            outs.append(out.tobytes())
            # How many threads worked: on a machine with other work the wall time alone tells little.
            for _ in range(15):
                wall, cpu = time.perf_counter(), time.process_time()
                program(*args, out, config=config)
                busy = max(busy, (time.process_time() - cpu) / (time.perf_counter() - wall))
        assert outs[0] == outs[1]
        print(
            f"{name:<44} {us[0] / 1e3:12.2f} ms   all threads {us[1] / 1e3:9.2f} ms   {us[0] / us[1]:6.2f} x   "
            f"threads busy {busy:.2f}"
        )


BENCHES = (elementwise, maths, rows, sorting, threads)
