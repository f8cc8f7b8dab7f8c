# SPDX-License-Identifier: Apache-2.0
"""What the planted files share: the host and device tiers of the ladder around a kernel, arrays, expectations."""

from dataclasses import dataclass

import numpy as np
import pypto.language as pl
import pypto.language.distributed as pld

NR = pl.dynamic("NR")
SIZE = 64


# ---------------------------------------------------------------- expectations


@dataclass(frozen=True)
class Report:
    """A finding of the run: its id and the marks (`# <- mark`) of the lines that it names."""

    id: str
    marks: tuple[str, ...] = ("here",)
    severity: str = "error"


@dataclass(frozen=True)
class Rejected:
    """The compiler's or the call's refusal: class, id (or none), a piece of its message, the mark of the line."""

    error: type[BaseException]
    id: str
    fragment: str = ""
    mark: str = "here"


@dataclass(frozen=True)
class Warns:
    """A warning of the compiler that contains the text and names the line."""

    text: str
    mark: str = "here"


@dataclass(frozen=True)
class Mismatch:
    """The run's results are not the golden ones."""


@dataclass(frozen=True)
class Accepted:
    """The run's results are the golden ones."""


def race(id: str, first: str = "here", second: str = "and here", severity: str = "error") -> Report:
    return Report(id, (first, second), severity)


# ---------------------------------------------------------------- arrays


def arrays(nranks: int, x_rows: int = 1, y_rows: int = 1, size: int = SIZE) -> tuple[np.ndarray, np.ndarray]:
    """Random x and zero y with a block of rows for every rank."""
    rng = np.random.default_rng(100 * nranks + 10 * x_rows + y_rows)
    x = rng.standard_normal((nranks, x_rows, size), dtype=np.float32)
    return x, np.zeros((nranks, y_rows, size), dtype=np.float32)


# ---------------------------------------------------------------- the two upper tiers


def host(kernel, x_rows=1, y_rows=1, data_rows=1, signal_rows=NR):
    """`kernel(x, y, data, signal)` on every rank; each count of rows is 1 or `NR`."""
    wide = 1 if data_rows is NR else 0
    cells = 1 if signal_rows is NR else 0

    @pl.jit
    def on_device(
        x: pl.Tensor[[x_rows, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[y_rows, SIZE], pl.FP32]],
        data: pld.DistributedTensor[[data_rows, SIZE], pl.FP32],
        signal: pld.DistributedTensor[[signal_rows, 1], pl.INT32],
    ):
        y = kernel(x, y, data, signal)
        return y

    @pl.jit.host
    def program(
        x: pl.Tensor[[NR, x_rows, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[NR, y_rows, SIZE], pl.FP32]],
    ):
        data_buf = pld.alloc_window_buffer([wide * pld.world_size() + 1 - wide, SIZE], dtype=pl.FP32)
        signal_buf = pld.alloc_window_buffer([cells * pld.world_size() + 1 - cells, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            data = pld.window(data_buf, [wide * pld.world_size() + 1 - wide, SIZE], dtype=pl.FP32)
            signal = pld.window(signal_buf, [cells * pld.world_size() + 1 - cells, 1], dtype=pl.INT32)
            on_device(x[r], y[r], data, signal, device=r)

    return program


def two_windows(kernel, dst_rows=1, src_rows=1, dtype=pl.FP32):
    """`kernel(x, y, src, dst, signal)` on every rank; one signal cell."""

    @pl.jit
    def on_device(
        x: pl.Tensor[[1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[1, SIZE], pl.FP32]],
        src: pld.DistributedTensor[[src_rows, SIZE], pl.FP32],
        dst: pld.DistributedTensor[[dst_rows, SIZE], dtype],
        signal: pld.DistributedTensor[[1, 1], pl.INT32],
    ):
        y = kernel(x, y, src, dst, signal)
        return y

    @pl.jit.host
    def program(
        x: pl.Tensor[[NR, 1, SIZE], pl.FP32],
        y: pl.Out[pl.Tensor[[NR, 1, SIZE], pl.FP32]],
    ):
        src_buf = pld.alloc_window_buffer([src_rows, SIZE], dtype=pl.FP32)
        dst_buf = pld.alloc_window_buffer([dst_rows, SIZE], dtype=dtype)
        signal_buf = pld.alloc_window_buffer([1, 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            src = pld.window(src_buf, [src_rows, SIZE], dtype=pl.FP32)
            dst = pld.window(dst_buf, [dst_rows, SIZE], dtype=dtype)
            signal = pld.window(signal_buf, [1, 1], dtype=pl.INT32)
            on_device(x[r], y[r], src, dst, signal, device=r)

    return program


def signals_only(kernel):
    """`kernel(y, signal)` on every rank: INT32 results, one row of cells per rank."""

    @pl.jit
    def on_device(
        y: pl.Out[pl.Tensor[[NR, 1], pl.INT32]],
        signal: pld.DistributedTensor[[NR, 1], pl.INT32],
    ):
        y = kernel(y, signal)
        return y

    @pl.jit.host
    def program(y: pl.Out[pl.Tensor[[NR, NR, 1], pl.INT32]]):
        signal_buf = pld.alloc_window_buffer([pld.world_size(), 1], dtype=pl.INT32)
        for r in pl.range(pld.world_size()):
            signal = pld.window(signal_buf, [pld.world_size(), 1], dtype=pl.INT32)
            on_device(y[r], signal, device=r)

    return program
