# SPDX-License-Identifier: Apache-2.0
"""The benches: each times our program against the peer a user would pick instead, in one process run, and checks the
result first. Figures are ratios; a wrong answer fails the bench.

Run: make bench            (all)
     python bench/run.py chain cold   (some)
"""

import argparse
import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import operations
import pypto.language as pl
import pypto.language.distributed as pld
from measure import OFF, RNG, best_us, report
from pypto.ir.distributed_compiled_program import DistributedConfig
from pypto.runtime import RunConfig, SimOptions

ROOT = Path(__file__).resolve().parent.parent


# ---------------------------------------------------------------- processes


def cold() -> None:
    """Whole processes: an example against importing NumPy."""
    env = dict(os.environ, PYTHONPATH=str(ROOT / "python"))
    env.pop(
        "PYTHONDONTWRITEBYTECODE", None
    )  # the first of the repeats may leave compiled modules, as it does for users

    def process(*argv: str) -> float:
        best = float("inf")
        for _ in range(7):
            start = time.perf_counter()
            done = subprocess.run([sys.executable, *argv], env=env, capture_output=True, text=True, cwd=ROOT)
            best = min(best, time.perf_counter() - start)
            assert done.returncode == 0 and (argv[0] == "-c" or done.stdout.endswith("OK\n")), done.stderr
        return best * 1e6

    numpy_us = process("-c", "import numpy")
    for program in ("examples/beginner/hello_world.py", "examples/distributed/05_remote_load_store.py"):
        ours = process(program)
        ratio = ours / numpy_us
        print(f"{program:<44} {ours / 1e3:12.1f} ms   NumPy {numpy_us / 1e3:8.1f} ms   {ratio:6.2f} x   aim <= 1.5 x")


# ---------------------------------------------------------------- compiling

KERNEL_HEAD = """import pypto.language as pl


@pl.jit
def kernel(
    x: pl.Tensor[[64, 128], pl.FP32],
    y: pl.Tensor[[64, 128], pl.FP32],
    gain: pl.Scalar[pl.INT32],
    out: pl.Out[pl.Tensor[[64, 128], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        a = pl.load(x, [0, 0], [64, 128])
        b = pl.load(y, [0, 0], [64, 128])
        tmp = pl.tile.create([64, 128], pl.FP32)
"""
KERNEL_BLOCKS = (
    """t = pl.add(pl.mul(a, 1.5), b)
t = pl.maximum(t, 0.25)
u = pl.sub(t, a)
u = pl.mul(u, 0.5)
a = pl.minimum(u, b)""",
    """m = pl.row_max(a, tmp)
c = pl.exp(pl.row_expand_sub(a, m))
s = pl.row_sum(c, tmp)
a = pl.row_expand_div(c, s)
b = pl.mul(b, 0.75)""",
    """for i in pl.range(4):
    u = pl.mul(a, 0.5)
    v = pl.add(u, b)
    a = pl.minimum(v, 2.0)
b = pl.neg(b)""",
    """if gain > 2:
    a = pl.add(a, b)
else:
    a = pl.sub(a, b)
b = pl.abs(b)""",
    """k = gain * 3 + 1
row = pl.load(y, [k % 8, 0], [1, 128])
a = pl.col_expand_mul(a, row)
a = pl.mul(a, 0.125)
b = pl.sub(b, a)""",
)
KERNEL_TAIL = """        out = pl.store(a, [0, 0], out)
    return out
"""


def numpy_kernel(a: np.ndarray, b: np.ndarray, gain: int, blocks: int) -> np.ndarray:
    row = b[gain * 3 + 1 & 7]
    for n in range(blocks):
        if n % 5 == 0:
            a = np.minimum((np.maximum(a * np.float32(1.5) + b, np.float32(0.25)) - a) * np.float32(0.5), b)
        elif n % 5 == 1:
            c = np.exp(a - a.max(axis=1, keepdims=True))
            a, b = c / c.sum(axis=1, keepdims=True), b * np.float32(0.75)
        elif n % 5 == 2:
            for _ in range(4):
                a = np.minimum(a * np.float32(0.5) + b, np.float32(2))
            b = -b
        elif n % 5 == 3:
            a, b = a + b if gain > 2 else a - b, np.abs(b)
        else:
            a = a * row * np.float32(0.125)
            b = b - a
    return a


def compiling() -> None:
    """First specialisation of a kernel of 200 lines; each time a new file and function."""
    blocks = 37  # of five lines
    body = [f"        {line}" for n in range(blocks) for line in KERNEL_BLOCKS[n % 5].splitlines()]
    text = KERNEL_HEAD + "\n".join(body) + "\n" + KERNEL_TAIL
    x, y = (RNG.standard_normal((64, 128), dtype=np.float32) for _ in range(2))
    best = float("inf")
    with tempfile.TemporaryDirectory() as folder:
        for n in range(15):
            path = Path(folder, f"kernel_{n}.py")
            path.write_text(text)
            spec = importlib.util.spec_from_file_location(path.stem, path)
            assert spec is not None and spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[path.stem] = module
            spec.loader.exec_module(module)
            out = np.zeros_like(x)
            start = time.perf_counter()
            compiled = module.kernel.compile(x, y, 3, out, config=OFF)
            best = min(best, time.perf_counter() - start)
        compiled(x, y, 3, out, config=OFF)
    np.testing.assert_allclose(out, numpy_kernel(x, y, 3, blocks), rtol=1e-4, atol=1e-4)
    name = f"first specialisation, {len(text.splitlines())} lines"
    print(f"{name:<44} {best * 1e3:12.2f} ms   aim <= 20 ms")


# ---------------------------------------------------------------- one device

CHAIN_TRIPS = 64


def make_chain(n: int):
    @pl.jit
    def chain(x: pl.Tensor[[n, n], pl.FP32], y: pl.Tensor[[n, n], pl.FP32], out: pl.Out[pl.Tensor[[n, n], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            a = pl.load(x, [0, 0], [n, n])
            b = pl.load(y, [0, 0], [n, n])
            for _ in pl.range(CHAIN_TRIPS):
                t = pl.add(pl.mul(a, 1.5), b)
                a = pl.sub(pl.mul(pl.maximum(t, 0.0), b), a)
            out = pl.store(a, [0, 0], out)
        return out

    return chain


@pl.jit
def chain_1024(
    x: pl.Tensor[[1024, 1024], pl.FP32],
    y: pl.Tensor[[1024, 1024], pl.FP32],
    out: pl.Out[pl.Tensor[[1024, 1024], pl.FP32]],
):
    with pl.at(level=pl.Level.CORE_GROUP):
        t = pl.add(pl.mul(x, 1.5), y)
        out[:] = pl.sub(pl.mul(pl.maximum(t, 0.0), y), x)
    return out


def numpy_chain(a: np.ndarray, b: np.ndarray, trips: int) -> np.ndarray:
    for _ in range(trips):
        t = a * np.float32(1.5) + b
        a = np.maximum(t, np.float32(0)) * b - a
    return a


def chain() -> None:
    """Five FP32 operations inside one kernel."""
    for n, aim in ((64, ">= 3"), (128, ">= 3"), (1024, ">= 2")):
        x, y = (0.5 * RNG.standard_normal((n, n), dtype=np.float32) for _ in range(2))
        out = np.zeros_like(x)
        trips = 1 if n == 1024 else CHAIN_TRIPS
        program = chain_1024 if n == 1024 else make_chain(n)
        program(x, y, out, config=OFF)
        np.testing.assert_array_equal(out, numpy_chain(x, y, trips))
        ours = best_us(lambda p=program, o=out, a=x, b=y: p(a, b, o, config=OFF), 10) / trips
        peer = best_us(lambda a=x, b=y, t=trips: numpy_chain(a, b, t), 10) / trips
        report(f"five-op chain {n} x {n}", ours, "NumPy", peer, aim)


@pl.jit
def one_task(x: pl.Tensor[[8, 32], pl.FP32], out: pl.Out[pl.Tensor[[8, 32], pl.FP32]]):
    with pl.at(level=pl.Level.CORE_GROUP):
        out = pl.store(pl.add(pl.load(x, [0, 0], [8, 32]), 1.0), [0, 0], out)
    return out


def warm() -> None:
    """A warm call of a compiled one-task program."""
    x, out = RNG.standard_normal((8, 32), dtype=np.float32), np.zeros((8, 32), np.float32)
    compiled = one_task.compile(x, out, config=OFF)
    compiled(x, out, config=OFF)
    np.testing.assert_array_equal(out, x + np.float32(1))
    us = best_us(lambda: compiled(x, out, config=OFF), 500)
    print(f"{'warm call of a one-task program':<44} {us:12.1f} us   aim <= 20 us")
    us = best_us(lambda: one_task(x, out, config=OFF), 500)
    print(f"{'warm direct JIT call of it':<44} {us:12.1f} us")


def make_matmul(n: int, trips: int, transposed: bool, dt: pl.DataType = pl.FP32):
    @pl.jit
    def product(a: pl.Tensor[[n, n], dt], b: pl.Tensor[[n, n], dt], out: pl.Out[pl.Tensor[[n, n], pl.FP32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            ta = pl.load(a, [0, 0], [n, n], target_memory=pl.Mem.Mat)
            tb = pl.load(b, [0, 0], [n, n], target_memory=pl.Mem.Mat)
            if transposed:
                tb = pl.tile.transpose_view(tb)
            for _ in pl.range(trips):
                c = pl.matmul(ta, tb)
            out = pl.store(c, [0, 0], out)
        return out

    return product


def matmul() -> None:
    """FP32 products inside one kernel against NumPy's BLAS (set OPENBLAS_NUM_THREADS=1)."""
    for transposed in (False, True):
        for n in (16, 32, 64, 128, 256):
            trips = max(4, 2**25 // n**3)  # so that the call counts for nothing
            a, b = (RNG.standard_normal((n, n), dtype=np.float32) for _ in range(2))
            out = np.zeros_like(a)
            program = make_matmul(n, trips, transposed)
            program(a, b, out, config=OFF)
            right = b.T if transposed else b
            np.testing.assert_allclose(out, a @ right, rtol=1e-3, atol=1e-3)
            ours = best_us(lambda p=program, x=a, y=b, o=out: p(x, y, o, config=OFF), 5) / trips
            peer = best_us(lambda x=a, y=right, o=out, t=trips: [np.matmul(x, y, out=o) for _ in range(t)], 5) / trips
            report(f"matmul {'NT' if transposed else 'NN'} {n}", ours, "BLAS", peer, ">= 0.9")


def make_int8_matmul(n: int, trips: int):
    @pl.jit
    def product(a: pl.Tensor[[n, n], pl.INT8], b: pl.Tensor[[n, n], pl.INT8], out: pl.Out[pl.Tensor[[n, n], pl.INT32]]):
        with pl.at(level=pl.Level.CORE_GROUP):
            ta = pl.load(a, [0, 0], [n, n], target_memory=pl.Mem.Mat)
            tb = pl.load(b, [0, 0], [n, n], target_memory=pl.Mem.Mat)
            for _ in pl.range(trips):
                c = pl.matmul(ta, tb)
            out = pl.store(c, [0, 0], out)
        return out

    return product


def narrow_matmul() -> None:
    """FP16 and INT8 products inside one kernel against our FP32 ones."""
    for n in (16, 32, 64, 128, 256):
        trips = max(4, 2**25 // n**3)
        a, b = (RNG.integers(-8, 8, (n, n)) for _ in range(2))
        us = {}
        for dtype, kind in ((np.float32, pl.FP32), (np.float16, pl.FP16), (np.int8, pl.INT8)):
            x, y = a.astype(dtype), b.astype(dtype)
            out = np.zeros((n, n), np.int32 if kind is pl.INT8 else np.float32)
            program = make_int8_matmul(n, trips) if kind is pl.INT8 else make_matmul(n, trips, False, kind)
            program(x, y, out, config=OFF)
            np.testing.assert_array_equal(out, a @ b)
            us[dtype] = best_us(lambda p=program, v=x, w=y, o=out: p(v, w, o, config=OFF), 5) / trips
        report(f"matmul FP16 {n}", us[np.float16], "FP32", us[np.float32], ">= 0.9")
        report(f"matmul INT8 {n}", us[np.int8], "FP32", us[np.float32], ">= 1.5")


# ---------------------------------------------------------------- many ranks

NR = pl.dynamic("NR")
SIZE = 1024


@pl.jit.incore
def shift_kernel(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    ctx = pld.get_comm_ctx(data)
    data = pl.store(pl.load(x, [0, 0], [1, SIZE]), [0, 0], data)
    signal = pld.tensor.barrier(signal)
    peer = (pld.rank(ctx) + 1) % pld.nranks(ctx)
    y = pl.store(pld.tile.remote_load(data, peer=peer, offsets=[0, 0], shape=[1, SIZE]), [0, 0], y)
    return y


@pl.jit
def shift_device(
    x: pl.Tensor[[1, SIZE], pl.FP32],
    y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
    data: pld.DistributedTensor[[1, SIZE], pl.FP32],
    signal: pld.DistributedTensor[[NR, 1], pl.INT32],
):
    return shift_kernel(x, y, data, signal)


@pl.jit.host
def shift(x: pl.Tensor[[NR, 1, SIZE], pl.FP32], y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]]):
    data_buf = pld.alloc_window_buffer([1, SIZE], dtype=pl.FP32)
    signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
    for r in pl.range(pld.world_size()):
        data = pld.window(data_buf, [1, SIZE], dtype=pl.FP32)
        signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
        shift_device(x[r], y[r], data, signal, device=r)


def world(p: int) -> RunConfig:
    return RunConfig(platform="a2a3sim", distributed_config=DistributedConfig(device_ids=list(range(p))))


def ranks() -> None:
    """Barrier + ring shift of 4 KiB: time with checks on and off, peak memory of the process so far."""
    for p in (2, 8, 64, 256, 1024):
        x = RNG.standard_normal((p, 1, SIZE), dtype=np.float32)
        y = np.zeros_like(x)
        compiled = shift.compile(x, y, config=world(p))
        us = {}
        for checks in ("off", "default"):
            config = RunConfig(sim=SimOptions(checks=checks))
            us[checks] = best_us(lambda c=compiled, a=x, b=y, g=config: c(a, b, config=g), 1, 3 if p > 64 else 9)
            np.testing.assert_array_equal(y, np.roll(x, -1, axis=0))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        on, off = us["default"] / 1e3, us["off"] / 1e3
        name = f"barrier + shift, {p} ranks"
        print(f"{name:<44} {on:12.2f} ms   checks off {off:9.2f} ms   cost {on / off:5.2f} x   peak {peak} MiB")


def prepared() -> None:
    """Warm dispatch of a prepared 2-rank program."""
    x = RNG.standard_normal((2, 1, SIZE), dtype=np.float32)
    y = np.zeros_like(x)
    with shift.compile(x, y, config=world(2)).prepare() as worker:
        for checks, aim in (("off", 50), ("default", 100)):
            config = RunConfig(sim=SimOptions(checks=checks))
            worker(x, y, config=config)
            np.testing.assert_array_equal(y, np.roll(x, -1, axis=0))
            us = best_us(lambda g=config: worker(x, y, config=g), 200)
            print(f"{f'prepared 2-rank dispatch, checks {checks}':<44} {us:12.1f} us   aim <= {aim} us")


BENCHES = {
    "cold": cold,
    "compile": compiling,
    **{f.__name__: f for f in (warm, chain, matmul, narrow_matmul, *operations.BENCHES, prepared, ranks)},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of: {', '.join(BENCHES)}")
    args = parser.parse_args()
    for name in args.names or BENCHES:
        if name not in BENCHES:
            parser.error(f"no bench {name!r}; there are {', '.join(BENCHES)}")
        print(f"-- {name}: {(BENCHES[name].__doc__ or '').splitlines()[0]}")
        BENCHES[name]()
    return 0


if __name__ == "__main__":
    sys.exit(main())
