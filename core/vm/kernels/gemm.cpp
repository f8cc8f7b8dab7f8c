// SPDX-License-Identifier: Apache-2.0
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/vm/kernels/gemm.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "core/vm/kernels/gemm-inl.h"
#include "core/vm/kernels/gemm.h"
#include "core/vm/kernels/gemm_int-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pypto::vm {
namespace HWY_NAMESPACE {
namespace {

// Rows, or bytes of an operand, up to which reading it where it lies beats packing it.
constexpr int64_t kDirectRows = 2 * kMaxRows;
constexpr int64_t kDirectBytes = 64 << 10;
constexpr int64_t kSmallBytes = 32 << 10;
// Rows of B that are farther apart are packed even for few rows of A: panel by panel each would touch its own
// pages.
constexpr int64_t kWideRowBytes = 4 << 10;

/// Where the panels of a block of B are: in place or packed.
struct PanelsOfB {
  const float* data = nullptr;
  int64_t row = 0;    ///< between rows of a panel
  int64_t panel = 0;  ///< between panels
};

template <class E>
void pack_all(const Gemm& g, int64_t k0, int64_t kb, int64_t n0, int64_t nb, float* out) {
  const E* b = static_cast<const E*>(g.b.data) + k0 * g.b.row + n0 * g.b.col;
  // Wide rows: a few at a time through all panels, so that memory is read in long runs.
  const int64_t step = g.b.col == 1 && g.b.row * static_cast<int64_t>(sizeof(E)) > kWideRowBytes ? 8 : kb;
  for (int64_t p = 0; p < kb; p += step) {
    const int64_t depth = std::min(step, kb - p);
    for (int64_t j = 0; j < nb; j += kPanel) {
      pack_panel(b + p * g.b.row + j * g.b.col, g.b.row, g.b.col, depth, std::min(kPanel, nb - j),
                 out + j * kb + p * kPanel);
    }
  }
}

/// `n` neighbouring elements from `at` on as FP32.
void widen_run(const GemmMatrix& x, int64_t at, int64_t n, float* out) {
  switch (x.dtype) {
    case DType::kFp16:
      return widen_block(static_cast<const Fp16*>(x.data) + at, n, 1, 1, n, out, n, 1);
    case DType::kBf16:
      return widen_block(static_cast<const Bf16*>(x.data) + at, n, 1, 1, n, out, n, 1);
    default:
      return widen_block(static_cast<const float*>(x.data) + at, n, 1, 1, n, out, n, 1);
  }
}

PanelsOfB panels_of_b(const Gemm& g, int64_t k0, int64_t kb, int64_t n0, int64_t nb) {
  const bool in_place = g.b.dtype == DType::kFp32 && g.b.col == 1 && (kMasked || nb % kLanes == 0) &&
                        (kb * nb * 4 <= kDirectBytes || g.m <= kMaxRows / 2 ||
                         (g.m <= kDirectRows && g.b.row * 4 <= kWideRowBytes));
  if (in_place) return {static_cast<const float*>(g.b.data) + k0 * g.b.row + n0, g.b.row, kPanel};
  const int64_t panels = (nb + kPanel - 1) / kPanel;
  auto* out = static_cast<float*>(gemm_workspace(0, panels * kPanel * kb * 4));
  if (panels == 1 && g.b.col == 1 && g.b.row == nb && nb % kLanes == 0) {
    widen_run(g.b, k0 * nb, kb * nb, out);
    return {out, nb, 0};
  }
  switch (g.b.dtype) {
    case DType::kFp16:
      pack_all<Fp16>(g, k0, kb, n0, nb, out);
      break;
    case DType::kBf16:
      pack_all<Bf16>(g, k0, kb, n0, nb, out);
      break;
    default:
      pack_all<float>(g, k0, kb, n0, nb, out);
      break;
  }
  return {out, kPanel, kPanel * kb};
}

struct BlockOfA {
  const float* data = nullptr;
  int64_t row = 0, col = 0;
};

BlockOfA block_of_a(const Gemm& g, int64_t m0, int64_t mb, int64_t k0, int64_t kb) {
  const int64_t at = m0 * g.a.row + k0 * g.a.col;
  const bool contiguous = g.a.col == 1 || (g.a.row == 1 && g.m * g.k * 4 <= kDirectBytes);
  if (g.a.dtype == DType::kFp32 && contiguous) {
    return {static_cast<const float*>(g.a.data) + at, g.a.row, g.a.col};
  }
  auto* out = static_cast<float*>(gemm_workspace(1, mb * kb * 4));
  if (g.a.col == 1 && g.a.row == kb) {
    widen_run(g.a, at, mb * kb, out);
    return {out, kb, 1};
  }
  const bool along_m = g.a.row == 1 && g.a.col != 1;
  const BlockOfA block = {out, along_m ? 1 : kb, along_m ? mb : 1};
  switch (g.a.dtype) {
    case DType::kFp16:
      widen_block(static_cast<const Fp16*>(g.a.data) + at, g.a.row, g.a.col, mb, kb, out, block.row,
                  block.col);
      break;
    case DType::kBf16:
      widen_block(static_cast<const Bf16*>(g.a.data) + at, g.a.row, g.a.col, mb, kb, out, block.row,
                  block.col);
      break;
    default:
      widen_block(static_cast<const float*>(g.a.data) + at, g.a.row, g.a.col, mb, kb, out, block.row,
                  block.col);
      break;
  }
  return block;
}

/// A single row whose B has contiguous k: packing would cost more than the product.
bool gemm_row(const Gemm& g) {
#if HWY_TARGET == HWY_SCALAR
  return false;
#else
  if (g.m != 1 || g.b.row != 1 || g.b.col == 1) return false;
  const float* a = static_cast<const float*>(g.a.data);
  if (g.a.dtype != DType::kFp32 || g.a.col != 1) {
    auto* out = static_cast<float*>(gemm_workspace(1, g.k * 4));
    switch (g.a.dtype) {
      case DType::kFp16:
        widen_block(static_cast<const Fp16*>(g.a.data), 0, g.a.col, 1, g.k, out, 0, 1);
        break;
      case DType::kBf16:
        widen_block(static_cast<const Bf16*>(g.a.data), 0, g.a.col, 1, g.k, out, 0, 1);
        break;
      default:
        widen_block(a, 0, g.a.col, 1, g.k, out, 0, 1);
        break;
    }
    a = out;
  }
  auto* c = static_cast<float*>(g.c);
  const bool from_zero = g.start == GemmStart::kZero;
  switch (g.b.dtype) {
    case DType::kFp16:
      row_product(a, static_cast<const Fp16*>(g.b.data), g.b.col, g.k, g.n, c, from_zero);
      break;
    case DType::kBf16:
      row_product(a, static_cast<const Bf16*>(g.b.data), g.b.col, g.k, g.n, c, from_zero);
      break;
    default:
      row_product(a, static_cast<const float*>(g.b.data), g.b.col, g.k, g.n, c, from_zero);
      break;
  }
  return true;
#endif
}

/// C has contiguous rows and k > 0; the start is zero or the old contents.
void gemm_float(const Gemm& g) {
  if (gemm_row(g)) return;
  auto* c = static_cast<float*>(g.c);
  for (int64_t n0 = 0; n0 < g.n; n0 += kBlockN) {
    const int64_t nb = std::min(kBlockN, g.n - n0);
    for (int64_t k0 = 0; k0 < g.k; k0 += kBlockK) {
      const int64_t kb = std::min(kBlockK, g.k - k0);
      const PanelsOfB b = panels_of_b(g, k0, kb, n0, nb);
      // A few rows of A are widened at a time while all of B is in the first-level cache.
      const bool small = g.a.dtype != DType::kFp32 && kb * nb * 4 <= kSmallBytes;
      const int64_t block = small ? kDirectRows : kBlockM;
      for (int64_t m0 = 0; m0 < g.m; m0 += block) {
        const int64_t mb = std::min(block, g.m - m0);
        const BlockOfA a = block_of_a(g, m0, mb, k0, kb);
        for (int64_t j = 0; j < nb; j += kPanel) {
          Panel t;
          t.k = kb;
          t.a = a.data;
          t.a_row = a.row;
          t.a_col = a.col;
          t.b = b.data + j / kPanel * b.panel;
          t.b_row = b.row;
          t.c = c + m0 * g.c_row + n0 + j;
          t.c_row = g.c_row;
          t.cols = std::min(kPanel, nb - j);
          t.from_zero = g.start == GemmStart::kZero && k0 == 0;
          run_rows(t, mb);
        }
      }
    }
  }
}

}  // namespace

void run_gemm(const Gemm& g) { g.a.dtype == DType::kInt8 ? gemm_int8(g) : gemm_float(g); }

/// Columns below which exchanging the operands' roles uses the vectors better.
int64_t narrow_columns() { return kLanes / 4; }

}  // namespace HWY_NAMESPACE
}  // namespace pypto::vm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cmath>
#include <cstdlib>
#include <new>

#include "core/base/poll.h"
#include "core/vm/kernels/parallel.h"

namespace pypto::vm {

HWY_EXPORT(run_gemm);
HWY_EXPORT(narrow_columns);

namespace {

/// Grows only; lives as long as its thread.
struct Workspace {
  void* data = nullptr;
  int64_t bytes = 0;
  ~Workspace() { std::free(data); }
  void* need(int64_t wanted) {
    if (wanted > bytes) {
      std::free(data);
      bytes = (wanted + wanted / 2 + 63) / 64 * 64;
      data = std::aligned_alloc(64, static_cast<size_t>(bytes));
      if (data == nullptr) {
        bytes = 0;
        throw std::bad_alloc();
      }
    }
    return data;
  }
};

template <class T>
void fill_bias(const Gemm& g) {
  auto* c = static_cast<T*>(g.c);
  const auto* bias = static_cast<const T*>(g.bias);
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = 0; j < g.n; ++j) c[i * g.c_row + j * g.c_col] = bias[j * g.bias_col];
  }
}

template <class T>
void copy_result(const Gemm& g, T* dense, bool in) {
  auto* c = static_cast<T*>(g.c);
  for (int64_t i = 0; i < g.m; ++i) {
    for (int64_t j = 0; j < g.n; ++j) {
      T& cell = c[i * g.c_row + j * g.c_col];
      T& copy = dense[i * g.n + j];
      in ? copy = cell : cell = copy;
    }
  }
}

/// Multiply-adds that a thread of its own is worth.
constexpr double kThreadWork = double{1 << 26};

/// The product in bands of rows or columns, one to a thread.
void run_bands(const Gemm& g) {
  const double work = static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k);
  if (work < 2 * kThreadWork) return HWY_DYNAMIC_DISPATCH(run_gemm)(g);
  const bool by_row = g.m >= g.n;
  constexpr int64_t kGrain = 32;
  const int64_t grains = ((by_row ? g.m : g.n) + kGrain - 1) / kGrain;
  const auto parts = static_cast<int>(std::min<double>(
      {static_cast<double>(operation_threads()), work / kThreadWork, static_cast<double>(grains)}));
  if (parts <= 1) return HWY_DYNAMIC_DISPATCH(run_gemm)(g);
  run_parts(parts, [&](int p) {
    const int64_t first = grains * p / parts * kGrain, last = grains * (p + 1) / parts * kGrain;
    Gemm band = g;
    const auto advance = [](GemmMatrix& x, int64_t elements) {
      x.data = static_cast<const uint8_t*>(x.data) + elements * dtype_bytes(x.dtype);
    };
    if (by_row) {
      band.m = std::min(last, g.m) - first;
      advance(band.a, first * g.a.row);
      band.c = static_cast<int32_t*>(g.c) + first * g.c_row;
    } else {
      band.n = std::min(last, g.n) - first;
      advance(band.b, first * g.b.col);
      band.c = static_cast<int32_t*>(g.c) + first * g.c_col;
    }
    HWY_DYNAMIC_DISPATCH(run_gemm)(band);
  });
}

/// Multiply-adds between two looks for an interrupt: some tenths of a second.
constexpr auto kPollWork = static_cast<double>(int64_t{1} << 34);

/// A long product in rectangles of its result, with a look for an interrupt before each.
void run_pieces(const Gemm& g) {
  const auto k = static_cast<double>(g.k);
  if (static_cast<double>(g.m) * static_cast<double>(g.n) * k <= kPollWork) return run_bands(g);
  // Wide enough that packing the operands again for every piece does not show.
  const int64_t side = std::max<int64_t>(512, static_cast<int64_t>(std::sqrt(kPollWork / k)) / 64 * 64);
  const auto advance = [](GemmMatrix& x, int64_t elements) {
    x.data = static_cast<const uint8_t*>(x.data) + elements * dtype_bytes(x.dtype);
  };
  for (int64_t row = 0; row < g.m; row += side) {
    for (int64_t col = 0; col < g.n; col += side) {
      detail::poll_now();
      Gemm piece = g;
      piece.m = std::min(side, g.m - row);
      piece.n = std::min(side, g.n - col);
      advance(piece.a, row * g.a.row);
      advance(piece.b, col * g.b.col);
      piece.c = static_cast<int32_t*>(g.c) + row * g.c_row + col * g.c_col;
      run_bands(piece);
    }
  }
}

}  // namespace

void* gemm_workspace(int slot, int64_t bytes) {
  thread_local Workspace spaces[3];
  return spaces[slot].need(bytes);
}

void gemm(const Gemm& product) {
  Gemm g = product;
  if (g.m == 0 || g.n == 0) return;
  if (g.start == GemmStart::kBias) {
    g.a.dtype == DType::kInt8 ? fill_bias<int32_t>(g) : fill_bias<float>(g);
    g.start = GemmStart::kOld;
  }
  if (g.k == 0) {
    if (g.start == GemmStart::kOld) return;
    for (int64_t i = 0; i < g.m; ++i) {
      for (int64_t j = 0; j < g.n; ++j) static_cast<int32_t*>(g.c)[i * g.c_row + j * g.c_col] = 0;
    }
    return;
  }
  if (g.n <= HWY_DYNAMIC_DISPATCH(narrow_columns)() && g.m > g.n) {
    // (A B)^T = B^T A^T: the same products in the same order, with the long side along the vectors.
    std::swap(g.m, g.n);
    const GemmMatrix a = g.a;
    g.a = {g.b.data, g.b.dtype, g.b.col, g.b.row};
    g.b = {a.data, a.dtype, a.col, a.row};
    std::swap(g.c_row, g.c_col);
  }
  if (g.c_col == 1 || g.n == 1) return run_pieces(g);
  Gemm dense = g;
  dense.c = gemm_workspace(2, g.m * g.n * 4);
  dense.c_row = g.n;
  dense.c_col = 1;
  if (g.start == GemmStart::kOld) copy_result(g, static_cast<int32_t*>(dense.c), true);
  run_pieces(dense);
  copy_result(g, static_cast<int32_t*>(dense.c), false);
}

}  // namespace pypto::vm
#endif  // HWY_ONCE
