# SPDX-License-Identifier: Apache-2.0
"""What the benches share: timing, reports, and how programs are run."""

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
    """Time that the C library takes to copy so many bytes, both sides as near to the core as a kernel that works
    on them again and again finds its operands. NumPy copies an element of a structured type with one memmove, so
    that a loop in C does all copies: a call each from Python would cost more than a copy in the first-level cache.
    """
    copies = max(1, min(20000, 2**26 // nbytes))
    element = np.dtype((np.void, nbytes))

    def repeated() -> np.ndarray:
        room = np.ones(nbytes + 128, np.uint8)
        start = -room.ctypes.data % 128  # aligned as the storage of tiles
        return np.lib.stride_tricks.as_strided(room[start : start + nbytes].view(element), (copies,), (0,))

    source, target = repeated(), repeated()
    return best_us(lambda: np.copyto(target, source), 1, 15) / copies
