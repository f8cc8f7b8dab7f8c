// SPDX-License-Identifier: Apache-2.0
// INT8 products with AVX-512 VNNI. Highway's AVX-512 target does not contain these instructions, so this one
// panel is written with intrinsics and chosen by a CPU check; the result is the same exact INT32.
#include "core/vm/kernels/gemm_int.h"

#if (defined(__x86_64__) || defined(_M_X64)) && defined(__GNUC__) && !defined(HWY_COMPILE_ONLY_STATIC)
#define PYPTO_VNNI 1
#if defined(__clang__)
#define PYPTO_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PYPTO_UNROLL _Pragma("GCC unroll 8")
#endif
#include <immintrin.h>
#else
#define PYPTO_VNNI 0
#endif

namespace pypto::vm {

#if PYPTO_VNNI

#define PYPTO_VNNI_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))

namespace {

/// How a panel gets what packing and summing would prepare.
enum class Form {
  kPrepared,
  kSums,     ///< takes the row sums on the way, which is quicker when there is one panel only
  kUnpacked  ///< and transposes quads of 16 columns in registers
};

/// Four rows of 16 bytes as 16 quads, with 128 added.
PYPTO_VNNI_TARGET __attribute__((always_inline)) inline __m512i quads_of_rows(const int8_t* rows,
                                                                              int64_t pitch) {
  __m512i x = _mm512_castsi128_si512(_mm_loadu_si128(reinterpret_cast<const __m128i*>(rows)));
  const auto row = [&](int r) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + r * pitch)); };
  x = _mm512_mask_broadcast_i32x4(x, 0x00f0, row(1));
  x = _mm512_mask_broadcast_i32x4(x, 0x0f00, row(2));
  x = _mm512_mask_broadcast_i32x4(x, 0xf000, row(3));
  // The forms with a mask, as GCC takes the operand that the others leave undefined for an oversight. First
  // the four columns of a 128-bit lane from every row, then the bytes within the lanes.
  const __m512i lanes = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i bytes = _mm512_maskz_broadcast_i32x4(
      0xffff, _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  x = _mm512_shuffle_epi8(_mm512_maskz_permutexvar_epi32(0xffff, lanes, x), bytes);
  return _mm512_xor_si512(x, _mm512_set1_epi8(static_cast<char>(0x80)));
}

template <Form kForm, int kRows, int kVectors>
PYPTO_VNNI_TARGET void panel(const IntPanel& t) {
  constexpr bool kSums = kForm != Form::kPrepared;
  __m512i sum[kRows][kVectors];
  const int64_t last = t.cols - 16 * (kVectors - 1);
  const auto tail = static_cast<__mmask16>(last >= 16 ? 0xffff : (1 << last) - 1);
  PYPTO_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const __m512i fix =
        kSums ? _mm512_setzero_si512()
              : _mm512_set1_epi32(static_cast<int32_t>(static_cast<uint32_t>(t.row_sums[r]) * 128u));
    PYPTO_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const __mmask16 mask = v == kVectors - 1 ? tail : 0xffff;
      const __m512i old =
          t.from_zero ? _mm512_setzero_si512() : _mm512_maskz_loadu_epi32(mask, t.c + r * t.c_pitch + 16 * v);
      sum[r][v] = _mm512_sub_epi32(old, fix);
    }
  }
  __m512i fixes[kRows];
  PYPTO_UNROLL
  for (int r = 0; kSums && r < kRows; ++r) fixes[r] = _mm512_setzero_si512();
  const __m512i shift = _mm512_set1_epi8(static_cast<char>(0x80));
  constexpr int kPointers = (kRows + 2) / 3;
  const int64_t pitch = t.a_pitch;
  const int8_t* rows[kPointers];
  PYPTO_UNROLL
  for (int i = 0; i < kPointers; ++i) rows[i] = t.a + 3 * i * pitch;
  const int8_t* b = t.b;
  for (int64_t q = 0; q < t.quads; ++q) {
    __m512i x[kVectors];
    PYPTO_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      x[v] = kForm == Form::kUnpacked ? quads_of_rows(b, t.b_pitch) : _mm512_loadu_si512(b + 64 * v);
    }
    PYPTO_UNROLL
    for (int r = 0; r < kRows; ++r) {
      int32_t group;
      __builtin_memcpy(&group, rows[r / 3] + (r % 3) * pitch, 4);
      const __m512i y = _mm512_set1_epi32(group);
      if (kSums) fixes[r] = _mm512_dpbusd_epi32(fixes[r], shift, y);
      PYPTO_UNROLL
      for (int v = 0; v < kVectors; ++v) sum[r][v] = _mm512_dpbusd_epi32(sum[r][v], x[v], y);
    }
    PYPTO_UNROLL
    for (int i = 0; i < kPointers; ++i) rows[i] += 4;
    b += kForm == Form::kUnpacked ? 4 * t.b_pitch : 128;
  }
  PYPTO_UNROLL
  for (int r = 0; r < kRows; ++r) {
    PYPTO_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const __mmask16 mask = v == kVectors - 1 ? tail : 0xffff;
      if (kSums) sum[r][v] = _mm512_sub_epi32(sum[r][v], fixes[r]);
      _mm512_mask_storeu_epi32(t.c + r * t.c_pitch + 16 * v, mask, sum[r][v]);
    }
  }
}

}  // namespace

bool vnni_available() {
  static const bool available = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
                                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return available;
}

void vnni_panel(int rows, const IntPanel& t) {
  using Panel = void (*)(const IntPanel&);
#define PYPTO_PANELS(form, vectors)                                                                        \
  {                                                                                                        \
    panel<form, 1, vectors>, panel<form, 2, vectors>, panel<form, 3, vectors>, panel<form, 4, vectors>,    \
        panel<form, 5, vectors>, panel<form, 6, vectors>, panel<form, 7, vectors>, panel<form, 8, vectors> \
  }
  static constexpr Panel kUnpacked[8] = PYPTO_PANELS(Form::kUnpacked, 1);
  static constexpr Panel kPacked[2][2][8] = {
      {PYPTO_PANELS(Form::kPrepared, 1), PYPTO_PANELS(Form::kPrepared, 2)},
      {PYPTO_PANELS(Form::kSums, 1), PYPTO_PANELS(Form::kSums, 2)}};
#undef PYPTO_PANELS
  if (t.b_pitch != 0) return kUnpacked[rows - 1](t);
  kPacked[t.row_sums == nullptr][t.cols > 16][rows - 1](t);
}

PYPTO_VNNI_TARGET void vnni_row_sums(const int8_t* a, int64_t pitch, int64_t rows, int64_t bytes,
                                     int32_t* sums) {
  const __m512i ones = _mm512_set1_epi8(1);
  const int64_t rest = bytes % 64;
  const __mmask64 mask = rest == 0 ? 0 : ~uint64_t{0} >> (64 - rest);
  for (int64_t r = 0; r < rows; ++r) {
    const int8_t* from = a + r * pitch;
    __m512i sum = _mm512_setzero_si512();
    int64_t i = 0;
    for (; i + 64 <= bytes; i += 64) sum = _mm512_dpbusd_epi32(sum, ones, _mm512_loadu_si512(from + i));
    if (rest != 0) sum = _mm512_dpbusd_epi32(sum, ones, _mm512_maskz_loadu_epi8(mask, from + i));
    alignas(64) int32_t lanes[16];
    _mm512_store_si512(lanes, sum);
    sums[r] = 0;
    for (const int32_t lane : lanes) sums[r] += lane;
  }
}

void vnni_few_rows(int64_t rows, const IntPanel& panel) {
  IntPanel t = panel;
  for (; rows > 0; rows -= 8) {
    vnni_panel(static_cast<int>(rows < 8 ? rows : 8), t);
    t.a += 8 * t.a_pitch;
    t.c += 8 * t.c_pitch;
  }
}

#else

bool vnni_available() { return false; }
void vnni_few_rows(int64_t, const IntPanel&) {}
void vnni_panel(int, const IntPanel&) {}
void vnni_row_sums(const int8_t*, int64_t, int64_t, int64_t, int32_t*) {}

#endif

}  // namespace pypto::vm
