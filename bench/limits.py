# SPDX-License-Identifier: Apache-2.0
"""Conversions whose vectors take more than one instruction each: loops of the fewest that do it, as a limit.

Copying is no limit of these: a processor with one store per cycle converts FP32 to FP16 in two instructions per
vector, one of which must run on the unit that shuffles, and to INT32 with ties away from zero in three on two units.
The loops do what the language asks of numbers in range; they look for no NaN.

The softmax is the one that a person would write for this shape alone: a row at a time through the first cache, an
exponential of about one unit in the last place, exact quotients from the reciprocal of the sum, the next row fetched
meanwhile.
"""

import ctypes
import functools
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from measure import best_us

SOURCE = r"""
#include <immintrin.h>
#include <stddef.h>

#define EACH(name, width, ...)                                                   \
  void name(const char* x, char* o, size_t n, size_t trips) {                    \
    for (size_t t = 0; t < trips; ++t) {                                         \
      _Pragma("GCC unroll 8") for (size_t i = 0; i < n; i += width) { __VA_ARGS__; } \
      __asm__ volatile("" ::: "memory");                                         \
    }                                                                            \
  }

EACH(fp32_to_fp16, 16,
     _mm256_store_si256((__m256i*)(o + 2 * i), _mm512_maskz_cvtps_ph(0xffff, _mm512_load_ps(x + 4 * i), 0)))
EACH(fp32_to_int32, 16, {
  __m512i sign = _mm512_set1_epi32(1u << 31), half = _mm512_castps_si512(_mm512_set1_ps(0x1.fffffep-2f));
  __m512i bits = _mm512_load_si512(x + 4 * i);
  __m512 away = _mm512_castsi512_ps(_mm512_ternarylogic_epi32(bits, sign, half, 0xea));
  _mm512_store_si512(o + 4 * i, _mm512_cvttps_epi32(_mm512_add_ps(away, _mm512_load_ps(x + 4 * i))));
})
EACH(int8_to_fp16, 32, {
  __m512i words = _mm512_cvtepi8_epi16(_mm256_load_si256((const __m256i*)(x + i)));
  _mm512_store_si512(o + 2 * i, _mm512_castph_si512(_mm512_cvtepi16_ph(words)));
})

static inline __m512 exponential(__m512 x) {
  __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(1.44269504f)), 8);
  __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(0.693359375f), x);
  r = _mm512_fnmadd_ps(n, _mm512_set1_ps(-2.12194440e-4f), r);
  __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(1.9875691500e-4f), r, _mm512_set1_ps(1.3981999507e-3f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(8.3334519073e-3f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(4.1665795894e-2f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.6666665459e-1f));
  p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.0000001201e-1f));
  p = _mm512_fmadd_ps(_mm512_mul_ps(p, r), r, _mm512_add_ps(r, _mm512_set1_ps(1)));
  return _mm512_scalef_ps(p, n);
}

void softmax(const float* x, float* o, size_t rows, size_t columns) {
  for (size_t i = 0; i < rows; ++i, x += columns, o += columns) {
    const float* next = i + 1 < rows ? x + columns : x;
    __m512 top[4], sum[4];
    for (int k = 0; k < 4; ++k) top[k] = _mm512_loadu_ps(x + 16 * k), sum[k] = _mm512_setzero_ps();
    for (size_t j = 64; j < columns; j += 64)
      _Pragma("GCC unroll 4") for (int k = 0; k < 4; ++k)
        top[k] = _mm512_max_ps(top[k], _mm512_loadu_ps(x + j + 16 * k));
    float most = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(top[0], top[1]), _mm512_max_ps(top[2], top[3])));
    for (size_t j = 0; j < columns; j += 64) {
      _Pragma("GCC unroll 4") for (int k = 0; k < 4; ++k) {
        __m512 e = exponential(_mm512_sub_ps(_mm512_loadu_ps(x + j + 16 * k), _mm512_set1_ps(most)));
        _mm512_storeu_ps(o + j + 16 * k, e);
        sum[k] = _mm512_add_ps(sum[k], e);
      }
    }
    float total = _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(sum[0], sum[1]), _mm512_add_ps(sum[2], sum[3])));
    __m512 by = _mm512_set1_ps(total), inverse = _mm512_set1_ps(1 / total);
    for (size_t j = 0; j < columns; j += 16) {
      __builtin_prefetch(next + j);
      __m512 e = _mm512_loadu_ps(o + j), q = _mm512_mul_ps(e, inverse);
      _mm512_storeu_ps(o + j, _mm512_fmadd_ps(_mm512_fnmadd_ps(q, by, e), inverse, q));
    }
  }
}
"""


@functools.cache
def _loops() -> ctypes.CDLL | None:
    """The loops, if there are a compiler and a processor for them."""
    compiler = shutil.which("gcc") or shutil.which("clang")
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return None
    if compiler is None or "avx512_fp16" not in flags:
        return None
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "limits.c"), Path(folder, "limits.so")
        source.write_text(SOURCE)
        command = [compiler, "-O2", "-march=sapphirerapids", "-w", "-shared", "-fPIC", str(source), "-o", str(library)]
        return ctypes.CDLL(str(library)) if subprocess.run(command, check=False).returncode == 0 else None


def _aligned(nbytes: int) -> np.ndarray:
    room = np.ones(nbytes + 128, np.uint8)
    start = -room.ctypes.data % 128
    return room[start : start + nbytes]


def conversion_us(source: np.ndarray, target: np.ndarray, pair: str) -> float:
    """Time of one conversion of as many elements; 0 where there is no loop for the pair."""
    loops = _loops()
    loop = getattr(loops, pair, None) if loops is not None else None
    if loop is None or source.size % 32 != 0:
        return 0.0
    x, o = _aligned(source.nbytes), _aligned(target.nbytes)
    x[:] = source.reshape(-1).view(np.uint8)
    trips = max(1, min(20000, 2**24 // source.size))
    arguments = (
        ctypes.c_void_p(x.ctypes.data),
        ctypes.c_void_p(o.ctypes.data),
        ctypes.c_size_t(source.size),
        ctypes.c_size_t(trips),
    )
    us = best_us(lambda: loop(*arguments), 1, 9) / trips
    np.testing.assert_array_equal(o.view(target.dtype), target.reshape(-1))
    return us


def softmax_us(x: np.ndarray, want: np.ndarray) -> float:
    """Time of the softmax of rows; 0 where there is no loop for this processor."""
    loops = _loops()
    if loops is None or x.shape[1] % 64 != 0:
        return 0.0
    out = np.zeros_like(x)
    arguments = (
        ctypes.c_void_p(x.ctypes.data),
        ctypes.c_void_p(out.ctypes.data),
        ctypes.c_size_t(x.shape[0]),
        ctypes.c_size_t(x.shape[1]),
    )
    us = best_us(lambda: loops.softmax(*arguments), 3, 15)
    np.testing.assert_allclose(out, want, rtol=2e-6, atol=1e-9)
    return us
