// SPDX-License-Identifier: Apache-2.0

// Conversions between element types (02 section 11). Everything that involves a float goes through FP32,
// which holds every value of the narrower floats and of integers up to 24 bits exactly, so that one rounding
// remains.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/vm/kernels/cast.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "core/vm/kernels/half.h"
#include "core/vm/kernels/kernels.h"
#include "core/vm/kernels/lanes-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pypto::vm {
namespace HWY_NAMESPACE {
namespace {

// ------------------------------------------------------------------ to FP32

template <class E>
void widen_float(const void* in, void* out, size_t n) {
  using L = Lanes<E>;
  const hn::ScalableTag<float> d;
  const auto* x = static_cast<const E*>(in);
  auto* o = static_cast<float*>(out);
  size_t i =
      each_vector(n, hn::Lanes(d), [&](size_t at) HWY_ATTR { hn::StoreU(L::load(d, x + at), d, o + at); });
  for (; i < n; ++i) o[i] = compute_value(x[i]);
}

/// Integers of at most 32 signed or 16 unsigned bits.
template <class T>
void widen_integer(const void* in, void* out, size_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto* x = static_cast<const T*>(in);
  auto* o = static_cast<float*>(out);
  size_t i = each_vector(n, hn::Lanes(d), [&](size_t at) HWY_ATTR {
    if constexpr (sizeof(T) == 4) {
      hn::StoreU(hn::ConvertTo(d, hn::LoadU(di, x + at)), d, o + at);
    } else {
      const hn::Rebind<T, decltype(d)> narrow;
      hn::StoreU(hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(narrow, x + at))), d, o + at);
    }
  });
  for (; i < n; ++i) o[i] = static_cast<float>(x[i]);
}

/// Small integers to 16-bit floats, which FP32 between them does not change.
template <class T, class E>
void integer_to_half(const void* in, void* out, size_t n) {
  using L = Lanes<E>;
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::Rebind<T, decltype(d)> narrow;
  const auto* x = static_cast<const T*>(in);
  auto* o = static_cast<E*>(out);
  size_t i = each_vector(n, hn::Lanes(d), [&](size_t at) HWY_ATTR {
    L::store(d, hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(narrow, x + at))), o + at);
  });
  for (; i < n; ++i) o[i] = element_of<E>(static_cast<float>(x[i]));
}

UnaryKernel vector_half(DType from, DType to) {
  const bool brain = to == DType::kBf16;
  if (!brain && to != DType::kFp16) return nullptr;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  if (UnaryKernel native = brain ? nullptr : half_from_integer(from)) return native;
#endif
  switch (from) {
    case DType::kInt8:
      return brain ? &integer_to_half<int8_t, Bf16> : &integer_to_half<int8_t, Fp16>;
    case DType::kUInt8:
      return brain ? &integer_to_half<uint8_t, Bf16> : &integer_to_half<uint8_t, Fp16>;
    case DType::kInt16:
      return brain ? &integer_to_half<int16_t, Bf16> : &integer_to_half<int16_t, Fp16>;
    default:
      return nullptr;
  }
}

UnaryKernel vector_widen(DType dtype) {
  switch (dtype) {
    case DType::kFp16:
      return &widen_float<Fp16>;
    case DType::kBf16:
      return &widen_float<Bf16>;
    case DType::kInt8:
      return &widen_integer<int8_t>;
    case DType::kInt16:
      return &widen_integer<int16_t>;
    case DType::kInt32:
      return &widen_integer<int32_t>;
    case DType::kBool:
    case DType::kUInt8:
      return &widen_integer<uint8_t>;
    case DType::kUInt16:
      return &widen_integer<uint16_t>;
    default:
      return nullptr;
  }
}

// ------------------------------------------------------------------ from FP32

template <class E>
void narrow_float(const float* in, void* out, size_t n, CastMode) {
  using L = Lanes<E>;
  const hn::ScalableTag<float> d;
  auto* o = static_cast<E*>(out);
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  // Without NaN the conversion instruction is all there is to do; one comparison looks for NaN in two
  // vectors.
  if constexpr (std::is_same_v<E, Fp16>) {
    const hn::Rebind<hwy::float16_t, decltype(d)> half;
    const size_t lanes = hn::Lanes(d);
    size_t done = 0;
    for (; done + 4 * lanes <= n; done += 4 * lanes) {
      const auto a = hn::LoadU(d, in + done), b = hn::LoadU(d, in + done + lanes);
      const auto c = hn::LoadU(d, in + done + 2 * lanes), e = hn::LoadU(d, in + done + 3 * lanes);
      const auto nan = static_cast<__mmask16>(_mm512_cmp_ps_mask(a.raw, b.raw, _CMP_UNORD_Q) |
                                              _mm512_cmp_ps_mask(c.raw, e.raw, _CMP_UNORD_Q));
      if (HWY_UNLIKELY(nan != 0)) {
        for (size_t v = 0; v < 4; ++v) L::store(d, hn::LoadU(d, in + done + v * lanes), o + done + v * lanes);
        continue;
      }
      auto* to = reinterpret_cast<hwy::float16_t*>(o + done);
      hn::StoreU(hn::DemoteTo(half, a), half, to);
      hn::StoreU(hn::DemoteTo(half, b), half, to + lanes);
      hn::StoreU(hn::DemoteTo(half, c), half, to + 2 * lanes);
      hn::StoreU(hn::DemoteTo(half, e), half, to + 3 * lanes);
    }
    in += done;
    o += done;
    n -= done;
  }
#endif
  size_t i =
      each_vector(n, hn::Lanes(d), [&](size_t at) HWY_ATTR { L::store(d, hn::LoadU(d, in + at), o + at); });
  for (; i < n; ++i) o[i] = element_of<E>(in[i]);
}

/// Rounded to integer values; as round_by_mode. Infinities and NaN pass through.
template <CastMode kMode, class D, class V>
HWY_INLINE V round_lanes(D d, V x) {
  if constexpr (kMode == CastMode::kRint) return hn::Round(x);
  if constexpr (kMode == CastMode::kFloor) return hn::Floor(x);
  if constexpr (kMode == CastMode::kCeil) return hn::Ceil(x);
  // Ties away from zero: the sum rounds up to the next integer from the half on, and not before.
  if constexpr (kMode == CastMode::kRound)
    return hn::Trunc(hn::Add(x, hn::CopySign(hn::Set(d, 0x1.fffffep-2f), x)));
  const auto toward_zero = hn::Trunc(x);
  if constexpr (kMode == CastMode::kNone || kMode == CastMode::kTrunc) return toward_zero;
  const auto fraction = hn::Abs(hn::Sub(x, toward_zero));
  const auto half = hn::Set(d, 0.5f);
  const auto away = hn::Add(toward_zero, hn::CopySign(hn::Set(d, 1.0f), x));
  // Ties to odd: a tie at an even integer moves away from zero. Ties exist only where halving is exact.
  const auto halved = hn::Mul(toward_zero, half);
  const auto is_even = hn::Eq(halved, hn::Trunc(halved));
  const auto moves = hn::Or(hn::Gt(fraction, half), hn::And(hn::Eq(fraction, half), is_even));
  return hn::IfThenElse(moves, away, toward_zero);
}

/// Saturated to INT32, NaN to 0.
template <class D, class V>
HWY_INLINE hn::VFromD<hn::RebindToSigned<D>> int32_lanes(D d, V rounded) {
  const hn::RebindToSigned<D> di;
  const auto is_number = hn::Eq(rounded, rounded);
  const auto clean = hn::IfThenElseZero(is_number, rounded);
  const auto too_big = hn::RebindMask(di, hn::Ge(clean, hn::Set(d, 2147483648.0f)));
  const auto low = hn::Max(clean, hn::Set(d, -2147483648.0f));
  const auto safe = hn::IfThenElse(hn::Ge(clean, hn::Set(d, 2147483648.0f)), hn::Zero(d), low);
  return hn::IfThenElse(too_big, hn::Set(di, 0x7fffffff), hn::ConvertTo(di, safe));
}

/// What int32_lanes gives for values below 2^31 (too small ones are the least integer, which conversion
/// instructions give for all they cannot represent).
template <class D, class V>
HWY_INLINE hn::VFromD<hn::RebindToSigned<D>> int32_below(D d, V value) {
  const hn::RebindToSigned<D> di;
  (void)d;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  return hn::VFromD<decltype(di)>{_mm512_cvttps_epi32(value.raw)};
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  return hn::VFromD<decltype(di)>{_mm256_cvttps_epi32(value.raw)};
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_SSE4
  return hn::VFromD<decltype(di)>{_mm_cvttps_epi32(value.raw)};
#else
  return hn::ConvertTo(di, value);
#endif
}

/// Rounded by the mode, or what truncation makes that of.
template <CastMode kMode, class D, class V>
HWY_INLINE V before_truncation(D d, V x) {
  if constexpr (kMode == CastMode::kRound) return hn::Add(x, hn::CopySign(hn::Set(d, 0x1.fffffep-2f), x));
  if constexpr (kMode == CastMode::kNone || kMode == CastMode::kTrunc) return x;
  return round_lanes<kMode>(d, x);
}

template <CastMode kMode>
void round_row(const float* in, float* out, size_t n) {
  map_row<float>(in, out, n, [](auto d, auto x) HWY_ATTR { return round_lanes<kMode>(d, x); });
}

void round_any(const float* in, float* out, size_t n, CastMode mode) {
  switch (mode) {
    case CastMode::kRint:
      return round_row<CastMode::kRint>(in, out, n);
    case CastMode::kRound:
      return round_row<CastMode::kRound>(in, out, n);
    case CastMode::kFloor:
      return round_row<CastMode::kFloor>(in, out, n);
    case CastMode::kCeil:
      return round_row<CastMode::kCeil>(in, out, n);
    case CastMode::kOdd:
      return round_row<CastMode::kOdd>(in, out, n);
    default:
      return round_row<CastMode::kTrunc>(in, out, n);
  }
}

/// Integer to integer of at most 32 bits: the low bits, or extended as the source's signedness says.
template <class From, class To>
void convert_integers(const void* in, void* out, size_t n) {
  const auto* x = static_cast<const From*>(in);
  auto* o = static_cast<To*>(out);
  size_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(From) == sizeof(To)) {
    std::memmove(out, in, n * sizeof(From));
    return;
  } else if constexpr (sizeof(From) < sizeof(To)) {
    using Wide = std::conditional_t<std::is_signed_v<From>, std::make_signed_t<To>, To>;
    const hn::ScalableTag<Wide> d;
    const hn::Rebind<From, decltype(d)> from;
    i = each_vector(n, hn::Lanes(d), [&](size_t at) HWY_ATTR {
      hn::StoreU(hn::PromoteTo(d, hn::LoadU(from, x + at)), d, reinterpret_cast<Wide*>(o + at));
    });
  } else {
    const hn::ScalableTag<std::make_unsigned_t<From>> d;
    const hn::Rebind<To, decltype(d)> to;
    i = each_vector(n, hn::Lanes(d), [&](size_t at) HWY_ATTR {
      const auto v = hn::LoadU(d, reinterpret_cast<const std::make_unsigned_t<From>*>(x + at));
      hn::StoreU(hn::TruncateTo(to, v), to, o + at);
    });
  }
#endif
  for (; i < n; ++i) o[i] = static_cast<To>(x[i]);
}

template <class From>
UnaryKernel convert_from(int width) {
  switch (width) {
    case 1:
      return &convert_integers<From, uint8_t>;
    case 2:
      return &convert_integers<From, uint16_t>;
    case 4:
      return &convert_integers<From, uint32_t>;
    default:
      return nullptr;
  }
}

UnaryKernel vector_integers(DType from, int width) {
  switch (from) {
    case DType::kInt8:
      return convert_from<int8_t>(width);
    case DType::kInt16:
      return convert_from<int16_t>(width);
    case DType::kInt32:
      return convert_from<int32_t>(width);
    case DType::kBool:
    case DType::kUInt8:
      return convert_from<uint8_t>(width);
    case DType::kUInt16:
      return convert_from<uint16_t>(width);
    case DType::kUInt32:
      return convert_from<uint32_t>(width);
    default:
      return nullptr;
  }
}

// Conversion instructions tell in a flag of the processor whether there was a number that INT32 cannot hold,
// and round as a field beside the flag says. Comparisons would take longer than the conversions.
#undef PYPTO_CONVERSION_FLAGS
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && defined(__GNUC__)
#define PYPTO_CONVERSION_FLAGS 1
#else
#define PYPTO_CONVERSION_FLAGS 0
#endif

template <class T, class DU, class V>
HWY_INLINE void put_low(DU du, V whole, T* out) {
  if constexpr (sizeof(T) == 4) {
    hn::StoreU(whole, du, reinterpret_cast<uint32_t*>(out));
  } else {
#if HWY_TARGET != HWY_SCALAR
    const hn::Rebind<T, DU> to;
    hn::StoreU(hn::TruncateTo(to, whole), to, out);
#else
    *out = static_cast<T>(hn::GetLane(whole));
#endif
  }
}

#if PYPTO_CONVERSION_FLAGS
constexpr uint32_t kInvalid = 1, kRoundingField = 0x6000, kRoundDown = 0x2000, kRoundUp = 0x4000;

// Also order the loads and stores between them.
HWY_INLINE uint32_t conversion_state() {
  uint32_t state;
  asm volatile("vstmxcsr %0" : "=m"(state) : : "memory");
  return state;
}
HWY_INLINE void set_conversion_state(uint32_t state) {
  asm volatile("vldmxcsr %0" : : "m"(state) : "memory");
}

/// Rounded as the conversion state says.
template <class D, class V>
HWY_INLINE hn::VFromD<hn::RebindToUnsigned<D>> int32_by_state(D, V value) {
#if HWY_TARGET <= HWY_AVX3
  return hn::VFromD<hn::RebindToUnsigned<D>>{_mm512_cvtps_epi32(value.raw)};
#else
  return hn::VFromD<hn::RebindToUnsigned<D>>{_mm256_cvtps_epi32(value.raw)};
#endif
}

/// As careful_row, for a multiple of four vectors; false if a value is NaN or out of range: `out` is of no
/// use then.
template <CastMode kMode, class T>
HWY_INLINE bool quick_row(const float* in, T* out, size_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  constexpr bool kNearest = kMode == CastMode::kRint, kDown = kMode == CastMode::kFloor,
                 kUp = kMode == CastMode::kCeil;
  const uint32_t before = conversion_state();
  const uint32_t during = (before & ~(kInvalid | kRoundingField)) | (kDown ? kRoundDown : kUp ? kRoundUp : 0);
  if (during != before) set_conversion_state(during);
  each_vector(n, hn::Lanes(d), [&](size_t at) HWY_ATTR {
    const auto x = hn::LoadU(d, in + at);
    if constexpr (kNearest || kDown || kUp) {
      put_low(du, int32_by_state(d, x), out + at);
    } else {
      put_low(du, hn::BitCast(du, int32_below(d, before_truncation<kMode>(d, x))), out + at);
    }
  });
  const uint32_t after = conversion_state();
  if (during != before) set_conversion_state(before);
  return (after & kInvalid) == 0;
}
#endif

/// FP32 to an integer through INT32: rounded by the mode, 32 bits as is, fewer by keeping the low ones.
template <CastMode kMode, class T>
void careful_row(const float* in, T* out, size_t n) {
  const hn::ScalableTag<float> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const size_t lanes = hn::Lanes(d);
  const auto convert = [&](const float* from) HWY_ATTR {
    return hn::BitCast(du, int32_lanes(d, round_lanes<kMode>(d, hn::LoadU(d, from))));
  };
  size_t i = 0;
  const auto bound = hn::Set(d, 2147483648.0f);
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    const auto a0 = before_truncation<kMode>(d, hn::LoadU(d, in + i));
    const auto a1 = before_truncation<kMode>(d, hn::LoadU(d, in + i + lanes));
    const auto a2 = before_truncation<kMode>(d, hn::LoadU(d, in + i + 2 * lanes));
    const auto a3 = before_truncation<kMode>(d, hn::LoadU(d, in + i + 3 * lanes));
    const auto below =
        hn::And(hn::And(hn::Lt(a0, bound), hn::Lt(a1, bound)), hn::And(hn::Lt(a2, bound), hn::Lt(a3, bound)));
    if (HWY_LIKELY(hn::AllTrue(d, below))) {
      put_low(du, hn::BitCast(du, int32_below(d, a0)), out + i);
      put_low(du, hn::BitCast(du, int32_below(d, a1)), out + i + lanes);
      put_low(du, hn::BitCast(du, int32_below(d, a2)), out + i + 2 * lanes);
      put_low(du, hn::BitCast(du, int32_below(d, a3)), out + i + 3 * lanes);
      continue;
    }
    for (size_t v = 0; v < 4; ++v) put_low(du, convert(in + i + v * lanes), out + i + v * lanes);
  }
  for (; i + lanes <= n; i += lanes) put_low(du, convert(in + i), out + i);
  if (const size_t rest = n - i; rest != 0) {
    alignas(64) float buffer[16] = {};
    alignas(64) uint32_t whole[16];
    std::memcpy(buffer, in + i, rest * sizeof(float));
    hn::StoreU(convert(buffer), du, whole);
    for (size_t j = 0; j < rest; ++j) out[i + j] = static_cast<T>(whole[j]);
  }
}

template <CastMode kMode, class T>
void narrow_row(const float* in, T* out, size_t n) {
  size_t i = 0;
#if PYPTO_CONVERSION_FLAGS
  // Reading and setting the flags takes as long as tens of conversions. A row that is converted again must
  // not have been overwritten.
  constexpr size_t kLeast = 512, kMost = 4096;
  for (const bool apart = static_cast<const void*>(in) != out; apart && i + kLeast <= n;) {
    const size_t count = std::min(n - i, kMost) / kLeast * kLeast;
    if (HWY_UNLIKELY((!quick_row<kMode>(in + i, out + i, count)))) careful_row<kMode>(in + i, out + i, count);
    i += count;
  }
#endif
  careful_row<kMode>(in + i, out + i, n - i);
}

template <class T>
void narrow_integer(const float* in, void* out, size_t n, CastMode mode) {
  auto* o = static_cast<T*>(out);
  switch (mode) {
    case CastMode::kRint:
      return narrow_row<CastMode::kRint>(in, o, n);
    case CastMode::kRound:
      return narrow_row<CastMode::kRound>(in, o, n);
    case CastMode::kFloor:
      return narrow_row<CastMode::kFloor>(in, o, n);
    case CastMode::kCeil:
      return narrow_row<CastMode::kCeil>(in, o, n);
    case CastMode::kOdd:
      return narrow_row<CastMode::kOdd>(in, o, n);
    default:
      return narrow_row<CastMode::kTrunc>(in, o, n);
  }
}

NarrowKernel vector_narrow(DType dtype) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
  if (NarrowKernel native = dtype == DType::kFp16 ? half_from_float() : nullptr) return native;
#endif
  switch (dtype) {
    case DType::kFp16:
      return &narrow_float<Fp16>;
    case DType::kBf16:
      return &narrow_float<Bf16>;
    case DType::kInt8:
    case DType::kUInt8:
      return &narrow_integer<uint8_t>;
    case DType::kInt16:
    case DType::kUInt16:
      return &narrow_integer<uint16_t>;
    case DType::kInt32:
      return &narrow_integer<uint32_t>;
    default:
      return nullptr;
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pypto::vm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pypto::vm {
HWY_EXPORT(vector_widen);
HWY_EXPORT(vector_narrow);
HWY_EXPORT(round_any);
HWY_EXPORT(vector_integers);
HWY_EXPORT(vector_half);

namespace {

constexpr size_t kStrip = 512;

template <DType kType>
void widen_scalar(const void* in, void* out, size_t n) {
  const auto* x = static_cast<const uint8_t*>(in);
  auto* o = static_cast<float*>(out);
  const int width = dtype_bytes(kType);
  for (size_t i = 0; i < n; ++i) {
    const void* element = x + i * static_cast<size_t>(width);
    if constexpr (kType == DType::kUInt64) {
      o[i] = static_cast<float>(static_cast<uint64_t>(read_integer(kType, element)));
    } else if (is_float(kType)) {
      o[i] = static_cast<float>(read_float(kType, element));
    } else {
      o[i] = static_cast<float>(read_integer(kType, element));
    }
  }
}

void copy_fp32(const void* in, void* out, size_t n) { std::memmove(out, in, n * sizeof(float)); }

template <DType kType>
void narrow_scalar(const float* in, void* out, size_t n, CastMode) {
  auto* o = static_cast<uint8_t*>(out);
  const int width = dtype_bytes(kType);
  for (size_t i = 0; i < n; ++i) write_float(kType, o + i * static_cast<size_t>(width), in[i]);
}

void narrow_copy(const float* in, void* out, size_t n, CastMode) { std::memmove(out, in, n * sizeof(float)); }

/// Float to the integers that do not go through INT32.
template <DType kType>
void narrow_other(const float* in, void* out, size_t n, CastMode mode) {
  auto* o = static_cast<uint8_t*>(out);
  const auto width = static_cast<size_t>(dtype_bytes(kType));
  float rounded[kStrip];
  for (size_t i = 0; i < n; i += kStrip) {
    const size_t count = std::min(kStrip, n - i);
    HWY_DYNAMIC_DISPATCH(round_any)(in + i, rounded, count, mode);
    for (size_t j = 0; j < count; ++j) {
      write_integer(kType, o + (i + j) * width, float_to_integer(rounded[j], kType));
    }
  }
}

template <class From, class To>
void integer_loop(const void* in, void* out, size_t n) {
  const auto* x = static_cast<const From*>(in);
  auto* o = static_cast<To*>(out);
  for (size_t i = 0; i < n; ++i) o[i] = static_cast<To>(x[i]);
}

template <class From>
UnaryKernel integer_to(int width) {
  switch (width) {
    case 1:
      return &integer_loop<From, uint8_t>;
    case 2:
      return &integer_loop<From, uint16_t>;
    case 4:
      return &integer_loop<From, uint32_t>;
    default:
      return &integer_loop<From, uint64_t>;
  }
}

/// Integer to integer keeps the low bits, so only the source's signedness and the target's width matter.
UnaryKernel integer_kernel(DType from, DType to) {
  const int width = dtype_bytes(to);
  if (UnaryKernel vectors = HWY_DYNAMIC_DISPATCH(vector_integers)(from, width)) return vectors;
  switch (from) {
    case DType::kInt8:
      return integer_to<int8_t>(width);
    case DType::kInt16:
      return integer_to<int16_t>(width);
    case DType::kInt32:
      return integer_to<int32_t>(width);
    case DType::kBool:
    case DType::kUInt8:
      return integer_to<uint8_t>(width);
    case DType::kUInt16:
      return integer_to<uint16_t>(width);
    case DType::kUInt32:
      return integer_to<uint32_t>(width);
    default:
      return integer_to<uint64_t>(width);
  }
}

bool is_nibble(DType d) { return dtype_bits(d) == 4; }

/// 32- and 64-bit integers to the 16-bit floats without passing through FP32.
template <class T, bool kBrain>
void wide_integer_to_16(const void* in, void* out, size_t n) {
  const auto* x = static_cast<const T*>(in);
  auto* o = static_cast<uint16_t*>(out);
  for (size_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<T, uint64_t>) {
      o[i] = kBrain ? uint64_to_bf16(x[i]) : uint64_to_fp16(x[i]);
    } else {
      o[i] = kBrain ? int64_to_bf16(x[i]) : int64_to_fp16(x[i]);
    }
  }
}

UnaryKernel wide_integer_kernel(DType from, DType to) {
  const bool brain = to == DType::kBf16;
  if (!brain && to != DType::kFp16) return nullptr;
  switch (from) {
    case DType::kInt32:
      return brain ? &wide_integer_to_16<int32_t, true> : &wide_integer_to_16<int32_t, false>;
    case DType::kUInt32:
      return brain ? &wide_integer_to_16<uint32_t, true> : &wide_integer_to_16<uint32_t, false>;
    case DType::kInt64:
    case DType::kIndex:
      return brain ? &wide_integer_to_16<int64_t, true> : &wide_integer_to_16<int64_t, false>;
    case DType::kUInt64:
      return brain ? &wide_integer_to_16<uint64_t, true> : &wide_integer_to_16<uint64_t, false>;
    default:
      return nullptr;
  }
}

}  // namespace

UnaryKernel widen_kernel(DType dtype) {
  if (UnaryKernel vectors = HWY_DYNAMIC_DISPATCH(vector_widen)(dtype)) return vectors;
  switch (dtype) {
    case DType::kFp32:
      return &copy_fp32;
    case DType::kInt4:
      return &widen_scalar<DType::kInt4>;
    case DType::kUInt4:
      return &widen_scalar<DType::kUInt4>;
    case DType::kUInt32:
      return &widen_scalar<DType::kUInt32>;
    case DType::kInt64:
    case DType::kIndex:
    case DType::kTaskId:
      return &widen_scalar<DType::kInt64>;
    case DType::kUInt64:
      return &widen_scalar<DType::kUInt64>;
    case DType::kFp4:
      return &widen_scalar<DType::kFp4>;
    case DType::kFp8E4M3FN:
      return &widen_scalar<DType::kFp8E4M3FN>;
    case DType::kFp8E5M2:
      return &widen_scalar<DType::kFp8E5M2>;
    case DType::kFp8E8M0:
      return &widen_scalar<DType::kFp8E8M0>;
    case DType::kHf8:
      return &widen_scalar<DType::kHf8>;
    default:
      return nullptr;
  }
}

NarrowKernel narrow_kernel(DType dtype) {
  if (NarrowKernel vectors = HWY_DYNAMIC_DISPATCH(vector_narrow)(dtype)) return vectors;
  switch (dtype) {
    case DType::kFp32:
      return &narrow_copy;
    case DType::kInt4:
      return &narrow_other<DType::kInt4>;
    case DType::kUInt4:
      return &narrow_other<DType::kUInt4>;
    case DType::kUInt32:
      return &narrow_other<DType::kUInt32>;
    case DType::kInt64:
    case DType::kIndex:
    case DType::kTaskId:
      return &narrow_other<DType::kInt64>;
    case DType::kUInt64:
      return &narrow_other<DType::kUInt64>;
    case DType::kBool:
      return &narrow_other<DType::kBool>;
    case DType::kFp4:
      return &narrow_scalar<DType::kFp4>;
    case DType::kFp8E4M3FN:
      return &narrow_scalar<DType::kFp8E4M3FN>;
    case DType::kFp8E5M2:
      return &narrow_scalar<DType::kFp8E5M2>;
    case DType::kFp8E8M0:
      return &narrow_scalar<DType::kFp8E8M0>;
    case DType::kHf8:
      return &narrow_scalar<DType::kHf8>;
    default:
      return nullptr;
  }
}

UnaryKernel cast_kernel(DType from, DType to) {
  if (same_dtype(from, to) || from == DType::kFp32 || is_nibble(from) || is_nibble(to)) return nullptr;
  if (to == DType::kFp32) return widen_kernel(from);
  if (is_float(from)) return nullptr;
  if (!is_float(to)) return to == DType::kBool ? nullptr : integer_kernel(from, to);
  if (UnaryKernel direct = wide_integer_kernel(from, to)) return direct;
  return HWY_DYNAMIC_DISPATCH(vector_half)(from, to);
}

void cast_row(DType from, const void* in, DType to, void* out, size_t n, CastMode mode) {
  if (same_dtype(from, to)) {
    std::memmove(out, in, n * static_cast<size_t>(dtype_bytes(from)));
    return;
  }
  if (!is_float(from) && !is_float(to)) {
    if (is_nibble(from) || is_nibble(to) || to == DType::kBool) {
      const auto from_width = static_cast<size_t>(dtype_bytes(from));
      const auto to_width = static_cast<size_t>(dtype_bytes(to));
      for (size_t i = 0; i < n; ++i) {
        write_integer(to, static_cast<uint8_t*>(out) + i * to_width,
                      read_integer(from, static_cast<const uint8_t*>(in) + i * from_width));
      }
      return;
    }
    return integer_kernel(from, to)(in, out, n);
  }
  if (!is_float(from)) {
    if (UnaryKernel direct = wide_integer_kernel(from, to)) return direct(in, out, n);
    if (UnaryKernel direct = HWY_DYNAMIC_DISPATCH(vector_half)(from, to)) return direct(in, out, n);
  }
  if (from == DType::kFp32) return narrow_kernel(to)(static_cast<const float*>(in), out, n, mode);
  const UnaryKernel widen = widen_kernel(from);
  if (to == DType::kFp32) return widen(in, out, n);
  const NarrowKernel narrow = narrow_kernel(to);
  const auto from_width = static_cast<size_t>(dtype_bytes(from));
  const auto to_width = static_cast<size_t>(dtype_bytes(to));
  float strip[kStrip];
  for (size_t i = 0; i < n; i += kStrip) {
    const size_t count = std::min(kStrip, n - i);
    widen(static_cast<const uint8_t*>(in) + i * from_width, strip, count);
    narrow(strip, static_cast<uint8_t*>(out) + i * to_width, count, mode);
  }
}

}  // namespace pypto::vm
#endif
