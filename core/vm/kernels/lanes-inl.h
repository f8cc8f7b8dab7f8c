// SPDX-License-Identifier: Apache-2.0

// Per instruction set: how elements become vector lanes, and the loops that own tails. Include only from
// files that are compiled through hwy/foreach_target.h.
#if defined(PYPTO_VM_KERNELS_LANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PYPTO_VM_KERNELS_LANES_INL_H_
#undef PYPTO_VM_KERNELS_LANES_INL_H_
#else
#define PYPTO_VM_KERNELS_LANES_INL_H_
#endif

#include <hwy/highway.h>

#include <cstring>

#include "core/vm/kernels/elements.h"

HWY_BEFORE_NAMESPACE();
namespace pypto::vm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ------------------------------------------------------------------ 16-bit floats

/// Exact widening of FP16 bit patterns held in 32-bit lanes; the integer algorithm of fp16_to_fp32.
template <class DU>
HWY_INLINE hn::VFromD<hn::RebindToFloat<DU>> fp16_lanes(DU du, hn::VFromD<DU> bits) {
  const hn::RebindToFloat<DU> df;
  const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(du, 0x8000u)));
  const auto shifted = hn::ShiftLeft<13>(hn::And(bits, hn::Set(du, 0x7fffu)));
  const auto exponent = hn::And(shifted, hn::Set(du, 0x0f800000u));
  const auto rebased = hn::Add(shifted, hn::Set(du, (127u - 15u) << 23));
  const auto special = hn::Eq(exponent, hn::Set(du, 0x0f800000u));
  const auto small = hn::Eq(exponent, hn::Zero(du));
  auto wide = hn::Add(rebased, hn::Set(du, (128u - 16u) << 23));
  const auto is_nan = hn::Ne(hn::And(wide, hn::Set(du, 0x007fffffu)), hn::Zero(du));
  wide = hn::IfThenElse(is_nan, hn::Or(wide, hn::Set(du, 0x00400000u)), wide);
  const auto subnormal = hn::BitCast(du, hn::Sub(hn::BitCast(df, hn::Add(rebased, hn::Set(du, 1u << 23))),
                                                 hn::BitCast(df, hn::Set(du, 113u << 23))));
  const auto rest = hn::IfThenElse(special, wide, hn::IfThenElse(small, subnormal, rebased));
  return hn::BitCast(df, hn::Or(rest, sign));
}

/// FP16 bit patterns in the low halves of 32-bit lanes, rounded to nearest even; as fp32_to_fp16.
template <class DF>
HWY_INLINE hn::VFromD<hn::RebindToUnsigned<DF>> to_fp16_lanes(DF df, hn::VFromD<DF> value) {
  const hn::RebindToUnsigned<DF> du;
  const hn::RebindToSigned<DF> di;  // magnitudes are below 2^31, where signed comparison is cheaper
  const auto all = hn::BitCast(du, value);
  const auto sign = hn::And(all, hn::Set(du, 0x80000000u));
  const auto bits = hn::Xor(all, sign);
  const auto odd = hn::And(hn::ShiftRight<13>(bits), hn::Set(du, 1u));
  auto out = hn::ShiftRight<13>(hn::Add(hn::Add(bits, hn::Set(du, ((15u - 127u) << 23) + 0xfffu)), odd));
  constexpr uint32_t kMagic = ((127u - 15u) + (23u - 10u) + 1u) << 23;
  const auto magic = hn::Set(du, kMagic);
  const auto subnormal =
      hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(df, bits), hn::BitCast(df, magic))), magic);
  const auto magnitude = hn::BitCast(di, bits);
  const auto is_small = hn::RebindMask(du, hn::Lt(magnitude, hn::Set(di, 113 << 23)));
  out = hn::IfThenElse(is_small, subnormal, out);
  const auto is_large = hn::RebindMask(du, hn::Gt(magnitude, hn::Set(di, ((127 + 16) << 23) - 1)));
  const auto is_nan = hn::RebindMask(du, hn::Gt(magnitude, hn::Set(di, 0x7f800000)));
  const auto special = hn::IfThenElse(is_nan, hn::Set(du, 0x7e00u), hn::Set(du, 0x7c00u));
  out = hn::IfThenElse(is_large, special, out);
  return hn::Or(out, hn::ShiftRight<16>(sign));
}

/// BF16 bit patterns in the low halves of 32-bit lanes; as fp32_to_bf16.
template <class DF>
HWY_INLINE hn::VFromD<hn::RebindToUnsigned<DF>> to_bf16_lanes(DF df, hn::VFromD<DF> value) {
  const hn::RebindToUnsigned<DF> du;
  const auto bits = hn::BitCast(du, value);
  const auto high = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(high, hn::Set(du, 1u));
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(du, 0x7fffu)), odd));
  const auto is_nan = hn::RebindMask(du, hn::IsNaN(value));
  (void)df;
  return hn::IfThenElse(is_nan, hn::Or(high, hn::Set(du, 0x40u)), rounded);
}

// ------------------------------------------------------------------ elements and lanes

/// Computing lanes of an element type: itself for FP32 and integers, FP32 for the 16-bit floats.
template <class E>
struct Lanes {
  using Tag = hn::ScalableTag<E>;
  template <class D>
  static HWY_INLINE hn::VFromD<D> load(D d, const E* p) {
    return hn::LoadU(d, p);
  }
  template <class D>
  static HWY_INLINE void store(D d, hn::VFromD<D> v, E* p) {
    hn::StoreU(v, d, p);
  }
  template <class D>
  static HWY_INLINE hn::VFromD<D> splat(D d, E e) {
    return hn::Set(d, e);
  }
  /// What storing and loading again does to a value.
  template <class D>
  static HWY_INLINE hn::VFromD<D> round(D, hn::VFromD<D> v) {
    return v;
  }
};

// The conversion instructions of x86 give the same bits but for the payload of NaN, which ours drop.
#undef PYPTO_FP16_INSTRUCTIONS
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)
#define PYPTO_FP16_INSTRUCTIONS 1
#else
#define PYPTO_FP16_INSTRUCTIONS 0
#endif

template <>
struct Lanes<Fp16> {
  using Tag = hn::ScalableTag<float>;
#if PYPTO_FP16_INSTRUCTIONS
  template <class D>
  using Half = hn::Rebind<hwy::float16_t, D>;
  template <class D>
  static HWY_INLINE hn::VFromD<D> load(D d, const Fp16* p) {
    return hn::PromoteTo(d, hn::LoadU(Half<D>(), reinterpret_cast<const hwy::float16_t*>(p)));
  }
  template <class D>
  static HWY_INLINE hn::VFromD<Half<D>> narrow(D, hn::VFromD<D> v) {
    // NaN come out quiet: the greatest patterns of their sign, which the minima cut to 0xfe00 and 0x7e00.
    const hn::Rebind<uint16_t, D> du;
    const hn::Rebind<int16_t, D> di;
    const auto bits = hn::Min(hn::BitCast(du, hn::DemoteTo(Half<D>(), v)), hn::Set(du, 0xfe00));
    return hn::BitCast(Half<D>(), hn::Min(hn::BitCast(di, bits), hn::Set(di, 0x7e00)));
  }
  template <class D>
  static HWY_INLINE void store(D d, hn::VFromD<D> v, Fp16* p) {
    hn::StoreU(narrow(d, v), Half<D>(), reinterpret_cast<hwy::float16_t*>(p));
  }
  template <class D>
  static HWY_INLINE hn::VFromD<D> round(D d, hn::VFromD<D> v) {
    return hn::PromoteTo(d, narrow(d, v));
  }
#else
  template <class D>
  static HWY_INLINE hn::VFromD<D> load(D d, const Fp16* p) {
    const hn::RebindToUnsigned<D> du;
    const hn::Rebind<uint16_t, D> d16;
    (void)d;
    return fp16_lanes(du, hn::PromoteTo(du, hn::LoadU(d16, &p->bits)));
  }
  template <class D>
  static HWY_INLINE void store(D d, hn::VFromD<D> v, Fp16* p) {
    const hn::RebindToSigned<D> di;
    const hn::Rebind<uint16_t, D> d16;
    hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, to_fp16_lanes(d, v))), d16, &p->bits);
  }
  template <class D>
  static HWY_INLINE hn::VFromD<D> round(D d, hn::VFromD<D> v) {
    const hn::RebindToUnsigned<D> du;
    return fp16_lanes(du, to_fp16_lanes(d, v));
  }
#endif
  template <class D>
  static HWY_INLINE hn::VFromD<D> splat(D d, Fp16 e) {
    return hn::Set(d, fp16_to_fp32(e.bits));
  }
};

template <>
struct Lanes<Bf16> {
  using Tag = hn::ScalableTag<float>;
  template <class D>
  static HWY_INLINE hn::VFromD<D> load(D d, const Bf16* p) {
    const hn::RebindToUnsigned<D> du;
    const hn::Rebind<uint16_t, D> d16;
    return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(d16, &p->bits))));
  }
  template <class D>
  static HWY_INLINE void store(D d, hn::VFromD<D> v, Bf16* p) {
    const hn::RebindToSigned<D> di;
    const hn::Rebind<uint16_t, D> d16;
    hn::StoreU(hn::DemoteTo(d16, hn::BitCast(di, to_bf16_lanes(d, v))), d16, &p->bits);
  }
  template <class D>
  static HWY_INLINE hn::VFromD<D> splat(D d, Bf16 e) {
    return hn::Set(d, bf16_to_fp32(e.bits));
  }
  template <class D>
  static HWY_INLINE hn::VFromD<D> round(D d, hn::VFromD<D> v) {
    return hn::BitCast(d, hn::ShiftLeft<16>(to_bf16_lanes(d, v)));
  }
};

// ------------------------------------------------------------------ loops

/// step(i) for every whole vector of `n` elements that starts at i; returns where the rest begins. kUnroll of
/// them at a time, so that cheap steps are not bound by the loop around them.
template <int kUnroll = 4, class Step>
HWY_INLINE size_t each_vector(size_t n, size_t lanes, Step step) {
  size_t i = 0;
  if constexpr (kUnroll == 4) {
    for (; i + 4 * lanes <= n; i += 4 * lanes) {
      step(i);
      step(i + lanes);
      step(i + 2 * lanes);
      step(i + 3 * lanes);
    }
  }
  for (; i + lanes <= n; i += lanes) step(i);
  return i;
}

/// out[i] = body(d, in[i]); a short last vector goes through a buffer, so nothing outside the rows is
/// touched.
template <class E, int kUnroll = 1, class Body>
HWY_INLINE void map_row(const E* in, E* out, size_t n, Body body) {
  using L = Lanes<E>;
  const typename L::Tag d;
  const size_t i = each_vector<kUnroll>(
      n, hn::Lanes(d), [&](size_t at) HWY_ATTR { L::store(d, body(d, L::load(d, in + at)), out + at); });
  if (const size_t rest = n - i; rest != 0) {
    alignas(64) E buffer[64 / sizeof(typename L::Tag::T)] = {};
    std::memcpy(buffer, in + i, rest * sizeof(E));
    L::store(d, body(d, L::load(d, buffer)), buffer);
    std::memcpy(out + i, buffer, rest * sizeof(E));
  }
}

/// out[i] = body(d, lhs[i], rhs[i]), with one side a single repeated element where asked.
template <class E, bool kSpreadLhs, bool kSpreadRhs, int kUnroll = 4, class Body>
HWY_INLINE void map_rows(const E* lhs, const E* rhs, E* out, size_t n, Body body) {
  using L = Lanes<E>;
  const typename L::Tag d;
  const auto one = L::splat(d, kSpreadLhs ? lhs[0] : kSpreadRhs ? rhs[0] : E{});
  const size_t i = each_vector<kUnroll>(n, hn::Lanes(d), [&](size_t at) HWY_ATTR {
    if constexpr (kSpreadLhs) {
      L::store(d, body(d, one, L::load(d, rhs + at)), out + at);
    } else if constexpr (kSpreadRhs) {
      L::store(d, body(d, L::load(d, lhs + at), one), out + at);
    } else {
      L::store(d, body(d, L::load(d, lhs + at), L::load(d, rhs + at)), out + at);
    }
  });
  if (const size_t rest = n - i; rest != 0) {
    alignas(64) E buffer[64 / sizeof(typename L::Tag::T)] = {};
    auto left = one, right = one;
    if constexpr (!kSpreadLhs) {
      std::memcpy(buffer, lhs + i, rest * sizeof(E));
      left = L::load(d, buffer);
    }
    if constexpr (!kSpreadRhs) {
      std::memcpy(buffer, rhs + i, rest * sizeof(E));
      right = L::load(d, buffer);
    }
    L::store(d, body(d, left, right), buffer);
    std::memcpy(out + i, buffer, rest * sizeof(E));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pypto::vm
HWY_AFTER_NAMESPACE();

#endif  // toggle
