// SPDX-License-Identifier: Apache-2.0
// FP16 arithmetic with AVX512-FP16. Highway's AVX-512 target does not contain these instructions, so these
// kernels are written with intrinsics and chosen by a CPU check; the results are those of FP32, rounded.
#include "core/vm/kernels/half.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(HWY_COMPILE_ONLY_STATIC) && \
    (defined(__clang__) ? __clang_major__ >= 14 : __GNUC__ >= 12)
#define PYPTO_FP16_ARITHMETIC 1
#include <immintrin.h>
#else
#define PYPTO_FP16_ARITHMETIC 0
#endif

namespace pypto::vm {

#if PYPTO_FP16_ARITHMETIC

#define PYPTO_FP16_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512fp16")))
#define PYPTO_FP16_INLINE PYPTO_FP16_TARGET __attribute__((always_inline)) inline

namespace {

constexpr size_t kLanes = 32;

bool available() {
  static const bool available = __builtin_cpu_supports("avx512fp16") && __builtin_cpu_supports("avx512bw") &&
                                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
  return available;
}

/// Lanes [0, rest).
PYPTO_FP16_INLINE __mmask32 first_lanes(size_t rest) {
  return static_cast<__mmask32>((uint64_t{1} << rest) - 1);
}

/// The one quiet NaN of its sign for every quiet NaN, which have the greatest patterns of their sign.
PYPTO_FP16_INLINE __m512i clean(__m512h v) {
  const __m512i bits =
      _mm512_min_epu16(_mm512_castph_si512(v), _mm512_set1_epi16(static_cast<int16_t>(0xfe00)));
  return _mm512_min_epi16(bits, _mm512_set1_epi16(0x7e00));
}

template <BinaryOp kOp>
PYPTO_FP16_INLINE __m512h apply(__m512h a, __m512h b) {
  if constexpr (kOp == BinaryOp::kAdd) return _mm512_add_ph(a, b);
  if constexpr (kOp == BinaryOp::kSub) return _mm512_sub_ph(a, b);
  if constexpr (kOp == BinaryOp::kMul) return _mm512_mul_ph(a, b);
  return _mm512_div_ph(a, b);
}

template <BinaryOp kOp, Spread kSpread>
PYPTO_FP16_TARGET void half_rows(const void* lhs, const void* rhs, void* out, size_t n) {
  const auto* a = static_cast<const uint16_t*>(lhs);
  const auto* b = static_cast<const uint16_t*>(rhs);
  auto* o = static_cast<uint16_t*>(out);
  const __m512h one =
      _mm512_castsi512_ph(_mm512_set1_epi16(static_cast<int16_t>(kSpread == Spread::kLhs   ? *a
                                                                 : kSpread == Spread::kRhs ? *b
                                                                                           : 0)));
#define PYPTO_OPERAND(side, from) \
  (kSpread == Spread::side ? one : _mm512_castsi512_ph(_mm512_loadu_si512(from)))
#define PYPTO_RESULT(at) apply<kOp>(PYPTO_OPERAND(kLhs, a + (at)), PYPTO_OPERAND(kRhs, b + (at)))
  size_t i = 0;
  // A sum of results is NaN if one of them is, so that one comparison tells whether four need cleaning.
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    const __m512h r0 = PYPTO_RESULT(i), r1 = PYPTO_RESULT(i + kLanes);
    const __m512h r2 = PYPTO_RESULT(i + 2 * kLanes), r3 = PYPTO_RESULT(i + 3 * kLanes);
    const __m512h all = _mm512_add_ph(_mm512_add_ph(r0, r1), _mm512_add_ph(r2, r3));
    if (__builtin_expect(_mm512_cmp_ph_mask(all, all, _CMP_UNORD_Q) != 0, 0)) {
      _mm512_storeu_si512(o + i, clean(r0));
      _mm512_storeu_si512(o + i + kLanes, clean(r1));
      _mm512_storeu_si512(o + i + 2 * kLanes, clean(r2));
      _mm512_storeu_si512(o + i + 3 * kLanes, clean(r3));
      continue;
    }
    _mm512_storeu_si512(o + i, _mm512_castph_si512(r0));
    _mm512_storeu_si512(o + i + kLanes, _mm512_castph_si512(r1));
    _mm512_storeu_si512(o + i + 2 * kLanes, _mm512_castph_si512(r2));
    _mm512_storeu_si512(o + i + 3 * kLanes, _mm512_castph_si512(r3));
  }
  for (; i + kLanes <= n; i += kLanes) _mm512_storeu_si512(o + i, clean(PYPTO_RESULT(i)));
#undef PYPTO_RESULT
#undef PYPTO_OPERAND
  if (i == n) return;
  const __mmask32 mask = first_lanes(n - i);
#define PYPTO_OPERAND(side, from) \
  (kSpread == Spread::side ? one : _mm512_castsi512_ph(_mm512_maskz_loadu_epi16(mask, from)))
  _mm512_mask_storeu_epi16(o + i, mask,
                           clean(apply<kOp>(PYPTO_OPERAND(kLhs, a + i), PYPTO_OPERAND(kRhs, b + i))));
#undef PYPTO_OPERAND
}

template <BinaryOp kOp>
BinaryKernel pick(Spread spread) {
  switch (spread) {
    case Spread::kLhs:
      return &half_rows<kOp, Spread::kLhs>;
    case Spread::kRhs:
      return &half_rows<kOp, Spread::kRhs>;
    default:
      return &half_rows<kOp, Spread::kNone>;
  }
}

template <class T>
PYPTO_FP16_INLINE __m512i converted(const T* from, __mmask32 mask) {
  if constexpr (sizeof(T) == 1) {
    const __m256i bytes = _mm256_maskz_loadu_epi8(mask, from);
    const __m512i words = T(-1) < T(0) ? _mm512_cvtepi8_epi16(bytes) : _mm512_cvtepu8_epi16(bytes);
    return _mm512_castph_si512(_mm512_cvtepi16_ph(words));
  } else {
    const __m512i words = _mm512_maskz_loadu_epi16(mask, from);
    return _mm512_castph_si512(T(-1) < T(0) ? _mm512_cvtepi16_ph(words) : _mm512_cvtepu16_ph(words));
  }
}

template <class T>
PYPTO_FP16_TARGET void from_integers(const void* in, void* out, size_t n) {
  const auto* x = static_cast<const T*>(in);
  auto* o = static_cast<uint16_t*>(out);
  size_t i = 0;
#pragma GCC unroll 4
  for (; i + kLanes <= n; i += kLanes) _mm512_storeu_si512(o + i, converted(x + i, ~__mmask32{0}));
  if (i == n) return;
  const __mmask32 mask = first_lanes(n - i);
  _mm512_mask_storeu_epi16(o + i, mask, converted(x + i, mask));
}

/// Those of `numbers` at whose places there is no NaN among 64 elements from `at` on.
PYPTO_FP16_INLINE __mmask32 still_numbers(__mmask32 numbers, const uint16_t* at) {
  return _mm512_mask_cmp_ph_mask(numbers, _mm512_castsi512_ph(_mm512_loadu_si512(at)),
                                 _mm512_castsi512_ph(_mm512_loadu_si512(at + kLanes)), _CMP_ORD_Q);
}

/// Gives the NaN among elements [0, n), a multiple of 64, their one pattern.
PYPTO_FP16_TARGET void clean_row(uint16_t* out, size_t n) {
  __mmask32 even = ~__mmask32{0}, odd = even;
  size_t i = 0;
#pragma GCC unroll 4
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    even = still_numbers(even, out + i);
    odd = still_numbers(odd, out + i + 2 * kLanes);
  }
  if (i < n) even = still_numbers(even, out + i);
  if (__builtin_expect((even & odd) == ~__mmask32{0}, 1)) return;
  for (i = 0; i < n; i += kLanes)
    _mm512_storeu_si512(out + i, clean(_mm512_castsi512_ph(_mm512_loadu_si512(out + i))));
}

/// NaN are looked for in the results, which are half as many vectors as the operands: comparisons compete
/// with the conversions for one unit of the processor. Results are read again when they have left the store
/// buffer.
PYPTO_FP16_TARGET void from_floats(const float* in, void* out, size_t n, CastMode) {
  constexpr size_t kStrip = 1024, kWide = kLanes / 2;
  auto* o = static_cast<uint16_t*>(out);
  const auto convert = [&](size_t i) PYPTO_FP16_TARGET {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(o + i),
                        _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT));
  };
  const size_t whole = n / (2 * kLanes) * (2 * kLanes);
  size_t checked = 0;
  for (size_t i = 0; i < whole;) {
    const size_t end = i + kStrip < whole ? i + kStrip : whole, begin = i;
    for (; i < end; i += 2 * kLanes) {
      convert(i);
      convert(i + kWide);
      convert(i + 2 * kWide);
      convert(i + 3 * kWide);
    }
    if (checked < begin) clean_row(o + checked, begin - checked);
    checked = begin;
  }
  if (checked < whole) clean_row(o + checked, whole - checked);
  for (size_t i = whole; i < n; i += kWide) {
    const auto mask = static_cast<__mmask16>(first_lanes(n - i < kWide ? n - i : kWide));
    const __m256i bits =
        _mm512_maskz_cvtps_ph(mask, _mm512_maskz_loadu_ps(mask, in + i), _MM_FROUND_TO_NEAREST_INT);
    // As clean().
    const __m256i low = _mm256_min_epu16(bits, _mm256_set1_epi16(static_cast<int16_t>(0xfe00)));
    _mm256_mask_storeu_epi16(o + i, mask, _mm256_min_epi16(low, _mm256_set1_epi16(0x7e00)));
  }
}

}  // namespace

BinaryKernel half_kernel(BinaryOp op, Spread spread) {
  if (!available()) return nullptr;
  switch (op) {
    case BinaryOp::kAdd:
      return pick<BinaryOp::kAdd>(spread);
    case BinaryOp::kSub:
      return pick<BinaryOp::kSub>(spread);
    case BinaryOp::kMul:
      return pick<BinaryOp::kMul>(spread);
    case BinaryOp::kDiv:
      return pick<BinaryOp::kDiv>(spread);
    default:
      return nullptr;
  }
}

UnaryKernel half_from_integer(DType from) {
  if (!available()) return nullptr;
  switch (from) {
    case DType::kInt8:
      return &from_integers<int8_t>;
    case DType::kUInt8:
      return &from_integers<uint8_t>;
    case DType::kInt16:
      return &from_integers<int16_t>;
    case DType::kUInt16:
      return &from_integers<uint16_t>;
    default:
      return nullptr;
  }
}

NarrowKernel half_from_float() { return available() ? &from_floats : nullptr; }

#else

NarrowKernel half_from_float() { return nullptr; }
BinaryKernel half_kernel(BinaryOp, Spread) { return nullptr; }
UnaryKernel half_from_integer(DType) { return nullptr; }

#endif

}  // namespace pypto::vm
