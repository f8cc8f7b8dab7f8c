// SPDX-License-Identifier: Apache-2.0

// Per instruction set: INT8 products. Include only from gemm.cpp, after gemm-inl.h.
#if defined(PYPTO_VM_KERNELS_GEMM_INT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PYPTO_VM_KERNELS_GEMM_INT_INL_H_
#undef PYPTO_VM_KERNELS_GEMM_INT_INL_H_
#else
#define PYPTO_VM_KERNELS_GEMM_INT_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "core/vm/kernels/gemm-inl.h"
#include "core/vm/kernels/gemm.h"
#include "core/vm/kernels/gemm_int.h"

HWY_BEFORE_NAMESPACE();
namespace pypto::vm {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kIntBlockK = 1024;  // multiple of 4
constexpr int64_t kIntRows = HWY_CAP_GE512 ? 8 : 4;

/// Quads of k for 32-bit lanes: out[quad][column][4], each byte xor `shift`; zero beyond k and beyond the
/// columns.
void pack_quads(const int8_t* b, int64_t row, int64_t col, int64_t k, int64_t cols, uint8_t shift,
                int8_t* out) {
  const int64_t whole = k / 4;
  const hn::FixedTag<int8_t, 16> d8;
  const hn::Repartition<int16_t, decltype(d8)> d16;
  const hn::Repartition<int32_t, decltype(d8)> d32;
  const hn::Repartition<int64_t, decltype(d8)> d64;
  const auto flip = hn::Set(d8, static_cast<int8_t>(shift));
  const auto put = [&](auto quads, int64_t q, int64_t j) HWY_ATTR {
    hn::StoreU(hn::Xor(hn::BitCast(d8, quads), flip), d8, out + (q * kPanel + j) * 4);
  };
  int64_t done = 0;  // columns packed for all whole quads
#if HWY_TARGET != HWY_SCALAR
  if (col == 1) {
    for (; done + 16 <= cols; done += 16) {
      for (int64_t q = 0; q < whole; ++q) {
        const int8_t* from = b + 4 * q * row + done;
        const auto r0 = hn::LoadU(d8, from), r1 = hn::LoadU(d8, from + row);
        const auto r2 = hn::LoadU(d8, from + 2 * row), r3 = hn::LoadU(d8, from + 3 * row);
        const auto low01 = hn::BitCast(d16, hn::InterleaveLower(d8, r0, r1));
        const auto low23 = hn::BitCast(d16, hn::InterleaveLower(d8, r2, r3));
        const auto high01 = hn::BitCast(d16, hn::InterleaveUpper(d8, r0, r1));
        const auto high23 = hn::BitCast(d16, hn::InterleaveUpper(d8, r2, r3));
        put(hn::InterleaveLower(d16, low01, low23), q, done);
        put(hn::InterleaveUpper(d16, low01, low23), q, done + 4);
        put(hn::InterleaveLower(d16, high01, high23), q, done + 8);
        put(hn::InterleaveUpper(d16, high01, high23), q, done + 12);
      }
    }
  } else if (row == 1) {
    for (; done + 4 <= cols; done += 4) {
      const int8_t* from = b + done * col;
      int64_t q = 0;
      for (; q + 4 <= whole; q += 4) {
        const auto load = [&](int64_t j)
                              HWY_ATTR { return hn::BitCast(d32, hn::LoadU(d8, from + j * col + 4 * q)); };
        const auto r0 = load(0), r1 = load(1), r2 = load(2), r3 = load(3);
        const auto low01 = hn::BitCast(d64, hn::InterleaveLower(d32, r0, r1));
        const auto low23 = hn::BitCast(d64, hn::InterleaveLower(d32, r2, r3));
        const auto high01 = hn::BitCast(d64, hn::InterleaveUpper(d32, r0, r1));
        const auto high23 = hn::BitCast(d64, hn::InterleaveUpper(d32, r2, r3));
        put(hn::InterleaveLower(d64, low01, low23), q, done);
        put(hn::InterleaveUpper(d64, low01, low23), q + 1, done);
        put(hn::InterleaveLower(d64, high01, high23), q + 2, done);
        put(hn::InterleaveUpper(d64, high01, high23), q + 3, done);
      }
      for (; q < whole; ++q) {
        for (int64_t i = 0; i < 16; ++i) {
          out[(q * kPanel + done) * 4 + i] = static_cast<int8_t>(from[i / 4 * col + 4 * q + i % 4] ^ shift);
        }
      }
    }
  }
#endif
  const int64_t quads = (k + 3) / 4, width = shift != 0 && cols <= 16 ? 16 : kPanel;
  for (int64_t q = 0; q < quads; ++q) {
    const int64_t depth = std::min<int64_t>(4, k - 4 * q);
    int8_t* to = out + q * kPanel * 4;
    for (int64_t j = depth == 4 ? done : 0; j < cols; ++j) {
      for (int64_t i = 0; i < 4; ++i) {
        to[4 * j + i] = i < depth ? static_cast<int8_t>(b[(4 * q + i) * row + j * col] ^ shift) : int8_t{0};
      }
    }
    if (cols < width) std::memset(to + 4 * cols, 0, static_cast<size_t>(4 * (width - cols)));
  }
}

/// Rows of A as quads of bytes, zero beyond k.
void pack_bytes_of_a(const int8_t* a, int64_t row, int64_t col, int64_t m, int64_t k, int8_t* out) {
  const int64_t pitch = (k + 3) / 4 * 4;
  for (int64_t r = 0; r < m; ++r) {
    const int8_t* from = a + r * row;
    int8_t* to = out + r * pitch;
    if (col == 1) {
      std::memcpy(to, from, static_cast<size_t>(k));
    } else {
      for (int64_t p = 0; p < k; ++p) to[p] = from[p * col];
    }
    for (int64_t p = k; p < pitch; ++p) to[p] = 0;
  }
}

#if HWY_ARCH_X86
/// c[r][j] += A quads . B quads with 16-bit pair products; `a` holds signed bytes.
template <int kRows>
HWY_NOINLINE void pair_panel(int64_t quads, const int8_t* a, int64_t a_pitch, const int8_t* b, int32_t* c,
                             int64_t c_pitch, bool from_zero) {
  const hn::RebindToSigned<DF> d;
  const hn::Repartition<int16_t, decltype(d)> d16;
  using V = hn::VFromD<decltype(d)>;
  V sum[kRows][2];
  V unused = hn::Zero(d);
  PYPTO_UNROLL
  for (int r = 0; r < kRows; ++r) {
    PYPTO_UNROLL
    for (int v = 0; v < 2; ++v)
      sum[r][v] = from_zero ? hn::Zero(d) : hn::LoadU(d, c + r * c_pitch + v * kLanes);
  }
  for (int64_t q = 0; q < quads; ++q) {
    V even[2], odd[2];  // bytes 0 and 2, bytes 1 and 3 of every quad, as 16-bit pairs
    PYPTO_UNROLL
    for (int v = 0; v < 2; ++v) {
      const auto x =
          hn::BitCast(d16, hn::LoadU(d, reinterpret_cast<const int32_t*>(b + (q * kPanel + v * kLanes) * 4)));
      even[v] = hn::BitCast(d, hn::ShiftRight<8>(hn::ShiftLeft<8>(x)));
      odd[v] = hn::BitCast(d, hn::ShiftRight<8>(x));
    }
    PYPTO_UNROLL
    for (int r = 0; r < kRows; ++r) {
      int32_t group;
      std::memcpy(&group, a + r * a_pitch + q * 4, 4);
      const auto y = hn::BitCast(d16, hn::Set(d, group));
      const auto y_even = hn::ShiftRight<8>(hn::ShiftLeft<8>(y)), y_odd = hn::ShiftRight<8>(y);
      PYPTO_UNROLL
      for (int v = 0; v < 2; ++v) {
        sum[r][v] = hn::ReorderWidenMulAccumulate(d, hn::BitCast(d16, even[v]), y_even, sum[r][v], unused);
        sum[r][v] = hn::ReorderWidenMulAccumulate(d, hn::BitCast(d16, odd[v]), y_odd, sum[r][v], unused);
      }
    }
  }
  PYPTO_UNROLL
  for (int r = 0; r < kRows; ++r) {
    PYPTO_UNROLL
    for (int v = 0; v < 2; ++v) hn::StoreU(sum[r][v], d, c + r * c_pitch + v * kLanes);
  }
}
#else
template <int kRows>
HWY_NOINLINE void pair_panel(int64_t quads, const int8_t* a, int64_t a_pitch, const int8_t* b, int32_t* c,
                             int64_t c_pitch, bool from_zero) {
  const hn::RebindToSigned<DF> d;
  for (int r = 0; r < kRows; ++r) {
    for (int64_t j = 0; j < kPanel; j += kLanes) {
      auto sum = from_zero ? hn::Zero(d) : hn::LoadU(d, c + r * c_pitch + j);
      for (int64_t q = 0; q < quads; ++q) {
        const auto x = hn::LoadU(d, reinterpret_cast<const int32_t*>(b + (q * kPanel + j) * 4));
        const int8_t* group = a + r * a_pitch + q * 4;
        const auto y = [&](int i) HWY_ATTR { return hn::Set(d, group[i]); };
        sum = hn::Add(sum, hn::Mul(hn::ShiftRight<24>(hn::ShiftLeft<24>(x)), y(0)));
        sum = hn::Add(sum, hn::Mul(hn::ShiftRight<24>(hn::ShiftLeft<16>(x)), y(1)));
        sum = hn::Add(sum, hn::Mul(hn::ShiftRight<24>(hn::ShiftLeft<8>(x)), y(2)));
        sum = hn::Add(sum, hn::Mul(hn::ShiftRight<24>(x), y(3)));
      }
      hn::StoreU(sum, d, c + r * c_pitch + j);
    }
  }
}
#endif

void int_panel(int64_t rows, const IntPanel& t) {
  const auto run = [&](auto panel) { panel(t.quads, t.a, t.a_pitch, t.b, t.c, t.c_pitch, t.from_zero); };
  switch (rows) {
    case 1:
      return run(pair_panel<1>);
    case 2:
      return run(pair_panel<2>);
    case 3:
      return run(pair_panel<3>);
#if HWY_CAP_GE512
    case 5:
      return run(pair_panel<5>);
    case 6:
      return run(pair_panel<6>);
    case 7:
      return run(pair_panel<7>);
    case 8:
      return run(pair_panel<8>);
#endif
    default:
      return run(pair_panel<4>);
  }
}

/// A panel with fewer columns than kPanel is computed in a full-width copy.
void short_panel(int64_t rows, const IntPanel& t) {
  if (t.cols == kPanel) return int_panel(rows, t);
  alignas(64) int32_t copy[kIntRows * kPanel] = {};
  IntPanel wide = t;
  wide.c = copy;
  wide.c_pitch = kPanel;
  const auto bytes = static_cast<size_t>(t.cols * 4);
  if (!t.from_zero) {
    for (int64_t r = 0; r < rows; ++r) std::memcpy(copy + r * kPanel, t.c + r * t.c_pitch, bytes);
  }
  int_panel(rows, wide);
  for (int64_t r = 0; r < rows; ++r) std::memcpy(t.c + r * t.c_pitch, copy + r * kPanel, bytes);
}

void gemm_int8(const Gemm& g) {
#if HWY_TARGET == HWY_AVX3
  const bool vnni = vnni_available();
#else
  const bool vnni = false;
#endif
  auto* c = static_cast<int32_t*>(g.c);
  constexpr int64_t kFewRows = 24;
  if (vnni && g.n == 16 && g.m <= kFewRows && g.k % 4 == 0 && g.b.col == 1 && g.a.col == 1) {
    IntPanel t;
    t.quads = g.k / 4;
    t.a = static_cast<const int8_t*>(g.a.data);
    t.a_pitch = g.a.row;
    t.b = static_cast<const int8_t*>(g.b.data);
    t.b_pitch = g.b.row;
    t.c = c;
    t.c_pitch = g.c_row;
    t.cols = g.n;
    t.from_zero = g.start == GemmStart::kZero;
    return vnni_few_rows(g.m, t);
  }
  for (int64_t n0 = 0; n0 < g.n; n0 += kBlockN) {
    const int64_t nb = std::min(kBlockN, g.n - n0);
    for (int64_t k0 = 0; k0 < g.k; k0 += kIntBlockK) {
      const int64_t kb = std::min(kIntBlockK, g.k - k0);
      const int64_t quads = (kb + 3) / 4, panels = (nb + kPanel - 1) / kPanel;
      const int64_t panel_bytes = quads * kPanel * 4;
      auto* packed = static_cast<int8_t*>(gemm_workspace(0, panels * panel_bytes));
      for (int64_t j = 0; j < panels; ++j) {
        const auto* b = static_cast<const int8_t*>(g.b.data) + k0 * g.b.row + (n0 + j * kPanel) * g.b.col;
        pack_quads(b, g.b.row, g.b.col, kb, std::min(kPanel, nb - j * kPanel), vnni ? 0x80 : 0,
                   packed + j * panel_bytes);
      }
      const bool from_zero = g.start == GemmStart::kZero && k0 == 0;
      for (int64_t m0 = 0; m0 < g.m; m0 += kBlockM) {
        const int64_t mb = std::min(kBlockM, g.m - m0);
        const auto* a = static_cast<const int8_t*>(g.a.data) + m0 * g.a.row + k0 * g.a.col;
        int64_t pitch = g.a.row;
        if (g.a.col != 1 || kb % 4 != 0) {
          auto* out = static_cast<int8_t*>(gemm_workspace(1, mb * quads * 4));
          pack_bytes_of_a(a, g.a.row, g.a.col, mb, kb, out);
          a = out;
          pitch = quads * 4;
        }
        IntPanel t;
        t.quads = quads;
        t.a_pitch = pitch;
        t.from_zero = from_zero;
        int32_t row_sums[kBlockM];
        const bool sums_first = vnni && panels > 1;
        if (sums_first) vnni_row_sums(a, pitch, mb, quads * 4, row_sums);
        for (int64_t j = 0; j < panels; ++j) {
          t.b = packed + j * panel_bytes;
          t.cols = std::min(kPanel, nb - j * kPanel);
          for (int64_t r0 = 0; r0 < mb; r0 += kIntRows) {
            const int64_t rows = std::min(kIntRows, mb - r0);
            t.a = a + r0 * pitch;
            t.row_sums = sums_first ? row_sums + r0 : nullptr;
            t.c = c + (m0 + r0) * g.c_row + n0 + j * kPanel;
            t.c_pitch = g.c_row;
            vnni ? vnni_panel(static_cast<int>(rows), t) : short_panel(rows, t);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pypto::vm
HWY_AFTER_NAMESPACE();

#endif  // toggle
