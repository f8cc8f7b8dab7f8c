# SPDX-License-Identifier: Apache-2.0
"""What the benches share: timing, reports, and how programs are run."""

import ctypes
import time
from collections.abc import Callable

import numpy as np
from pypto.runtime import RunConfig, SimOptions

# One thread: the peers run with one, too.
OFF = RunConfig(platform="a2a3sim", sim=SimOptions(checks="off", threads=1))
RNG = np.random.default_rng(12)


def best_us(run: Callable[[], object], calls: int, repeats: int = 7) -> float:
    """The least mean time of one call, in microseconds."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(calls):
            run()
        best = min(best, (time.perf_counter() - start) / calls)
    return best * 1e6


def report(name: str, ours_us: float, peer: str, peer_us: float, aim: str) -> None:
    print(f"{name:<44} {ours_us:12.2f} us   {peer} {peer_us:12.2f} us   ratio {peer_us / ours_us:6.2f}   aim {aim}")


def copy_us(nbytes: int) -> float:
    """Time that the C library takes to copy so many bytes, without the call itself."""
    source, target = (np.ones(nbytes + 64, np.uint8) for _ in range(2))
    copy, a, b = ctypes.memmove, target.ctypes.data, source.ctypes.data
    calls = max(3, min(20000, 2**28 // nbytes))
    return max(best_us(lambda: copy(a, b, nbytes), calls, 15) - best_us(lambda: copy(a, b, 0), calls, 15), 1e-3)
