// SPDX-License-Identifier: Apache-2.0

// Per instruction set: the FP32 micro-kernel and the packing of B panels. Include only from gemm.cpp.
#if defined(PYPTO_VM_KERNELS_GEMM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PYPTO_VM_KERNELS_GEMM_INL_H_
#undef PYPTO_VM_KERNELS_GEMM_INL_H_
#else
#define PYPTO_VM_KERNELS_GEMM_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>

#include "core/vm/kernels/fma-inl.h"
#include "core/vm/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pypto::vm {
namespace HWY_NAMESPACE {
namespace {

// Loops over rows and vectors of registers must be unrolled for the registers to be registers; -O2 does not
// do it.
#undef PYPTO_UNROLL
#if defined(__clang__)
#define PYPTO_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define PYPTO_UNROLL _Pragma("GCC unroll 16")
#else
#define PYPTO_UNROLL
#endif

// Vectors of a panel, and rows of it, chosen so that the accumulators fit the registers and hide the latency
// of FMA.
constexpr int64_t kPanelVectors = 2;
#if HWY_CAP_GE512
constexpr int64_t kMaxRows = 8;
#elif HWY_NATIVE_FMA
constexpr int64_t kMaxRows = 6;
#else
constexpr int64_t kMaxRows = 2;
#endif
// Whether part of a vector can be loaded and stored without touching the rest.
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
constexpr bool kMasked = true;
#else
constexpr bool kMasked = false;
#endif

// Blocks: a panel of B (kBlockK x kPanel) stays in L1, a block of A (kBlockM x kBlockK) in L2.
constexpr int64_t kBlockK = 256;
constexpr int64_t kBlockM = 96;
constexpr int64_t kBlockN = 1024;

using DF = hn::CappedTag<float, 16>;
using VF = hn::VFromD<DF>;
constexpr int64_t kLanes = static_cast<int64_t>(HWY_MAX_BYTES) / 4 < 16 ? HWY_MAX_BYTES / 4 : 16;
constexpr int64_t kPanel = kPanelVectors * kLanes;

HWY_INLINE VF fused(VF a, VF b, VF c) { return fused_lanes(DF(), a, b, c); }

/// One block of rows times one panel of columns.
struct Panel {
  int64_t k = 0;
  const float* a = nullptr;  ///< a[r * a_row + p * a_col]
  int64_t a_row = 0, a_col = 1;
  const float* b = nullptr;  ///< b[p * b_row + j]
  int64_t b_row = 0;
  float* c = nullptr;  ///< c[r * c_row + j]
  int64_t c_row = 0;
  int64_t cols = 0;  ///< columns of the panel that exist
  bool from_zero = false;
};

template <int kRows, int kVectors, bool kTail>
HWY_NOINLINE void run_panel(const Panel& t) {
  const DF d;
  const int64_t c_row = t.c_row, a_row = t.a_row, a_col = t.a_col, b_row = t.b_row;
  [[maybe_unused]] const auto mask =
      hn::FirstN(d, static_cast<size_t>(kTail ? t.cols - (kVectors - 1) * kLanes : kLanes));
  const auto load = [&](const float* p, int v) HWY_ATTR {
    if constexpr (kTail && kMasked) {
      if (v == kVectors - 1) return hn::MaskedLoad(mask, d, p + v * kLanes);
    }
    return hn::LoadU(d, p + v * kLanes);
  };
  VF sum[kRows][kVectors];
  PYPTO_UNROLL
  for (int r = 0; r < kRows; ++r) {
    PYPTO_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      sum[r][v] = t.from_zero ? hn::Zero(d) : load(t.c + r * c_row, v);
    }
  }
  // Three rows share a pointer, so that addresses need few registers.
  constexpr int kPointers = (kRows + 2) / 3;
  const float* rows[kPointers];
  PYPTO_UNROLL
  for (int i = 0; i < kPointers; ++i) rows[i] = t.a + 3 * i * a_row;
  const float* b = t.b;
  for (int64_t p = 0; p < t.k; ++p) {
    VF x[kVectors];
    PYPTO_UNROLL
    for (int v = 0; v < kVectors; ++v) x[v] = load(b, v);
    PYPTO_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const VF y = hn::Set(d, rows[r / 3][(r % 3) * a_row]);
      PYPTO_UNROLL
      for (int v = 0; v < kVectors; ++v) sum[r][v] = fused(y, x[v], sum[r][v]);
    }
    PYPTO_UNROLL
    for (int i = 0; i < kPointers; ++i) rows[i] += a_col;
    b += b_row;
  }
  PYPTO_UNROLL
  for (int r = 0; r < kRows; ++r) {
    PYPTO_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      float* at = t.c + r * c_row + v * kLanes;
      if constexpr (kTail && kMasked) {
        if (v == kVectors - 1) {
          hn::BlendedStore(sum[r][v], mask, d, at);
          continue;
        }
      }
      hn::StoreU(sum[r][v], d, at);
    }
  }
}

using PanelFn = void (*)(const Panel&);
template <int kVectors, bool kTail>
PanelFn panel_fn(int64_t rows) {
  switch (rows) {
    case 1:
      return run_panel<1, kVectors, kTail>;
    case 2:
      return run_panel<2, kVectors, kTail>;
#if HWY_NATIVE_FMA
    case 3:
      return run_panel<3, kVectors, kTail>;
    case 4:
      return run_panel<4, kVectors, kTail>;
    case 5:
      return run_panel<5, kVectors, kTail>;
    case 6:
      return run_panel<6, kVectors, kTail>;
#endif
#if HWY_CAP_GE512
    case 7:
      return run_panel<7, kVectors, kTail>;
    default:
      return run_panel<8, kVectors, kTail>;
#else
    default:
      return nullptr;
#endif
  }
}

/// All row blocks of `m` rows against one panel of `t.cols` columns.
HWY_INLINE void run_rows(Panel t, int64_t m) {
  const int64_t cols = t.cols;
  const int64_t vectors = (cols + kLanes - 1) / kLanes;
  const bool tail = cols % kLanes != 0;
  const int64_t blocks = (m + kMaxRows - 1) / kMaxRows;
  const int64_t small = m / blocks, large_count = m % blocks;
  // Without masks a short panel is computed in a full-width copy.
  [[maybe_unused]] alignas(64) float copy[kMaxRows * kPanel];
  const float* a = t.a;
  float* c = t.c;
  for (int64_t i = 0; i < blocks; ++i) {
    const int64_t rows = small + (i < large_count ? 1 : 0);
    t.a = a;
    t.c = c;
    if (!tail) {
      (vectors == 1 ? panel_fn<1, false>(rows) : panel_fn<2, false>(rows))(t);
    } else if constexpr (kMasked) {
      (vectors == 1 ? panel_fn<1, true>(rows) : panel_fn<2, true>(rows))(t);
    } else {
      Panel wide = t;
      wide.c = copy;
      wide.c_row = kPanel;
      if (!t.from_zero) {
        for (int64_t r = 0; r < rows; ++r) {
          for (int64_t j = 0; j < kPanel; ++j) copy[r * kPanel + j] = j < cols ? c[r * t.c_row + j] : 0.0f;
        }
      }
      (vectors == 1 ? panel_fn<1, false>(rows) : panel_fn<2, false>(rows))(wide);
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t j = 0; j < cols; ++j) c[r * t.c_row + j] = copy[r * kPanel + j];
      }
    }
    a += rows * t.a_row;
    c += rows * t.c_row;
  }
}

// ------------------------------------------------------------------ packing

/// FP32 lanes of stored elements.
template <class E, class D>
HWY_INLINE hn::VFromD<D> load_lanes(D d, const E* p) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  if constexpr (std::is_same_v<E, Fp16>) {
    const hn::Rebind<hwy::float16_t, D> d16;
    return hn::PromoteTo(d, hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(p)));
  }
#endif
  return Lanes<E>::load(d, p);
}

/// The first `n` of a vector's elements, zeros after them.
template <class E>
HWY_INLINE VF load_short(DF d, const E* p, int64_t n) {
  alignas(64) E buffer[16] = {};
  std::memcpy(buffer, p, static_cast<size_t>(n) * sizeof(E));
  return load_lanes(d, buffer);
}

/// Rows of contiguous columns -> panel rows, whole vectors of which the last is padded with zeros. Rows of a
/// packed panel are kPanel apart.
template <class E>
void pack_rows(const E* b, int64_t row, int64_t k, int64_t cols, float* out) {
  const DF d;
  if (cols == kPanel) {
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t v = 0; v < kPanelVectors; ++v) {
        hn::StoreU(load_lanes(d, b + p * row + v * kLanes), d, out + p * kPanel + v * kLanes);
      }
    }
    return;
  }
  for (int64_t p = 0; p < k; ++p) {
    float* to = out + p * kPanel;
    int64_t j = 0;
    for (; j + kLanes <= cols; j += kLanes) hn::StoreU(load_lanes(d, b + p * row + j), d, to + j);
    if (j < cols) hn::StoreU(load_short(d, b + p * row + j, cols - j), d, to + j);
  }
}

/// Columns of contiguous k (a transposed operand) -> panel rows, by 4 x 4 transpositions in registers.
template <class E>
void pack_columns(const E* b, int64_t col, int64_t k, int64_t cols, float* out) {
  const hn::FixedTag<float, 4> d4;
  const hn::Repartition<uint64_t, decltype(d4)> d64;
  int64_t j = 0;
#if HWY_TARGET != HWY_SCALAR
  for (; j + 4 <= cols; j += 4) {
    const E* c0 = b + j * col;
    int64_t p = 0;
    for (; p + 4 <= k; p += 4) {
      const auto r0 = load_lanes(d4, c0 + p), r1 = load_lanes(d4, c0 + col + p);
      const auto r2 = load_lanes(d4, c0 + 2 * col + p), r3 = load_lanes(d4, c0 + 3 * col + p);
      const auto low01 = hn::BitCast(d64, hn::InterleaveLower(d4, r0, r1));
      const auto low23 = hn::BitCast(d64, hn::InterleaveLower(d4, r2, r3));
      const auto high01 = hn::BitCast(d64, hn::InterleaveUpper(d4, r0, r1));
      const auto high23 = hn::BitCast(d64, hn::InterleaveUpper(d4, r2, r3));
      float* to = out + p * kPanel + j;
      hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(d64, low01, low23)), d4, to);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(d64, low01, low23)), d4, to + kPanel);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveLower(d64, high01, high23)), d4, to + 2 * kPanel);
      hn::StoreU(hn::BitCast(d4, hn::InterleaveUpper(d64, high01, high23)), d4, to + 3 * kPanel);
    }
    for (; p < k; ++p) {
      for (int64_t i = 0; i < 4; ++i) out[p * kPanel + j + i] = compute_value(c0[i * col + p]);
    }
  }
#endif
  for (; j < cols; ++j) {
    for (int64_t p = 0; p < k; ++p) out[p * kPanel + j] = compute_value(b[j * col + p]);
  }
  const int64_t width = (cols + kLanes - 1) / kLanes * kLanes;
  for (int64_t p = 0; cols < width && p < k; ++p) {
    for (int64_t i = cols; i < width; ++i) out[p * kPanel + i] = 0.0f;
  }
}

template <class E>
void pack_panel(const E* b, int64_t row, int64_t col, int64_t k, int64_t cols, float* out) {
  if (col == 1) return pack_rows(b, row, k, cols, out);
  if (row == 1) return pack_columns(b, col, k, cols, out);
  for (int64_t p = 0; p < k; ++p) {
    for (int64_t j = 0; j < kPanel; ++j)
      out[p * kPanel + j] = j < cols ? compute_value(b[p * row + j * col]) : 0.0f;
  }
}

#if HWY_TARGET != HWY_SCALAR
using D4 = hn::FixedTag<float, 4>;
using V4 = hn::VFromD<D4>;

HWY_INLINE V4 fused_four(V4 a, V4 b, V4 c) {
#if HWY_NATIVE_FMA
  return hn::MulAdd(a, b, c);
#else
  return fused(a, b, c);  // vectors have four lanes
#endif
}

/// One row of A times kGroups * 4 columns of contiguous k, without packing: 4 x 4 blocks are turned in
/// registers.
template <class E, int kGroups>
void row_times_columns(const float* a, const E* b, int64_t col, int64_t k, float* c, bool from_zero) {
  const D4 d;
  const hn::Repartition<uint64_t, D4> d64;
  V4 sum[kGroups];
  for (int g = 0; g < kGroups; ++g) sum[g] = from_zero ? hn::Zero(d) : hn::LoadU(d, c + 4 * g);
  int64_t p = 0;
  for (; p + 4 <= k; p += 4) {
    const V4 x0 = hn::Set(d, a[p]), x1 = hn::Set(d, a[p + 1]), x2 = hn::Set(d, a[p + 2]),
             x3 = hn::Set(d, a[p + 3]);
    PYPTO_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      const E* at = b + 4 * g * col + p;
      const V4 r0 = load_lanes(d, at), r1 = load_lanes(d, at + col);
      const V4 r2 = load_lanes(d, at + 2 * col), r3 = load_lanes(d, at + 3 * col);
      const auto low01 = hn::BitCast(d64, hn::InterleaveLower(d, r0, r1));
      const auto low23 = hn::BitCast(d64, hn::InterleaveLower(d, r2, r3));
      const auto high01 = hn::BitCast(d64, hn::InterleaveUpper(d, r0, r1));
      const auto high23 = hn::BitCast(d64, hn::InterleaveUpper(d, r2, r3));
      sum[g] = fused_four(x0, hn::BitCast(d, hn::InterleaveLower(d64, low01, low23)), sum[g]);
      sum[g] = fused_four(x1, hn::BitCast(d, hn::InterleaveUpper(d64, low01, low23)), sum[g]);
      sum[g] = fused_four(x2, hn::BitCast(d, hn::InterleaveLower(d64, high01, high23)), sum[g]);
      sum[g] = fused_four(x3, hn::BitCast(d, hn::InterleaveUpper(d64, high01, high23)), sum[g]);
    }
  }
  for (int g = 0; g < kGroups; ++g) hn::StoreU(sum[g], d, c + 4 * g);
  for (; p < k; ++p) {
    for (int j = 0; j < 4 * kGroups; ++j) c[j] = std::fma(a[p], compute_value(b[j * col + p]), c[j]);
  }
}

/// One row of A, contiguous, times n columns of contiguous k.
template <class E>
void row_product(const float* a, const E* b, int64_t col, int64_t k, int64_t n, float* c, bool from_zero) {
  int64_t j = 0;
  for (; j + 16 <= n; j += 16) row_times_columns<E, 4>(a, b + j * col, col, k, c + j, from_zero);
  for (; j + 4 <= n; j += 4) row_times_columns<E, 1>(a, b + j * col, col, k, c + j, from_zero);
  for (; j < n; ++j) {
    float sum = from_zero ? 0.0f : c[j];
    for (int64_t p = 0; p < k; ++p) sum = std::fma(a[p], compute_value(b[j * col + p]), sum);
    c[j] = sum;
  }
}
#endif

/// A block of A as FP32 whose fast axis is contiguous; element (r, p) lands at r * out_row + p * out_col.
template <class E>
void widen_block(const E* a, int64_t row, int64_t col, int64_t m, int64_t k, float* out, int64_t out_row,
                 int64_t out_col) {
  const DF d;
  const bool along_k = out_col == 1;
  const int64_t outer = along_k ? m : k, inner = along_k ? k : m;
  const int64_t outer_in = along_k ? row : col, inner_in = along_k ? col : row;
  const int64_t outer_out = along_k ? out_row : out_col;
  for (int64_t i = 0; i < outer; ++i) {
    const E* from = a + i * outer_in;
    float* to = out + i * outer_out;
    int64_t j = 0;
    if (inner_in == 1) {
      for (; j + kLanes <= inner; j += kLanes) hn::StoreU(load_lanes(d, from + j), d, to + j);
      if (sizeof(E) < 4 && inner - j > 2) {
        alignas(64) float wide[16];
        hn::StoreU(load_short(d, from + j, inner - j), d, wide);
        std::memcpy(to + j, wide, static_cast<size_t>(inner - j) * 4);
        continue;
      }
    }
    for (; j < inner; ++j) to[j] = compute_value(from[j * inner_in]);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pypto::vm
HWY_AFTER_NAMESPACE();

#endif  // toggle
