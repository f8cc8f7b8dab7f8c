// SPDX-License-Identifier: Apache-2.0

// Quotients of FP32 lanes in fewer cycles than the division instruction takes. With y the correctly rounded
// 1 / b and q = a y, q + (a - q b) y is the correctly rounded a / b (Markstein), as long as nothing leaves
// the normal range; elsewhere the instruction does it. Include only from files that are compiled through
// hwy/foreach_target.h.
#if defined(PYPTO_VM_KERNELS_DIVIDE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PYPTO_VM_KERNELS_DIVIDE_INL_H_
#undef PYPTO_VM_KERNELS_DIVIDE_INL_H_
#else
#define PYPTO_VM_KERNELS_DIVIDE_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace pypto::vm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// ------------------------------------------------------------------ many quotients by one number

#if HWY_NATIVE_FMA
/// Whether quotients by `b` may come from its reciprocal: 2^-40 <= |b| <= 2^40, and its fraction is not all
/// ones.
HWY_INLINE bool has_quotients(float b) {
  uint32_t bits;
  std::memcpy(&bits, &b, sizeof(bits));
  const float size = std::fabs(b);
  return size >= 0x1p-40f && size <= 0x1p40f && (bits & 0x7fffffu) != 0x7fffffu;
}

/// Bits of |a| plus this have bit 30 set if and only if 2^-63 <= |a| < 2^65: the conjunction of many such
/// sums tells it of all of them.
constexpr uint32_t kQuotientBias = 0x20000000u, kQuotientBit = 0x40000000u;

template <class D>
HWY_INLINE hn::VFromD<hn::RebindToUnsigned<D>> quotient_range(D, hn::VFromD<D> a) {
  const hn::RebindToUnsigned<D> du;
  return hn::Add(hn::BitCast(du, a), hn::Set(du, kQuotientBias));
}
template <class D>
HWY_INLINE bool has_quotients(D, hn::VFromD<hn::RebindToUnsigned<D>> range) {
  const hn::RebindToUnsigned<D> du;
  return hn::AllTrue(du, hn::TestBit(range, hn::Set(du, kQuotientBit)));
}

/// a / b for lanes in that range; `inverse` is 1 / b.
template <class D>
HWY_INLINE hn::VFromD<D> quotient(D, hn::VFromD<D> a, hn::VFromD<D> b, hn::VFromD<D> inverse) {
  const auto q = hn::Mul(a, inverse);
  return hn::MulAdd(hn::NegMulAdd(q, b, a), inverse, q);
}

/// a / b for any lanes. Zeros are common (what a mask leaves of an exponential).
template <class D>
HWY_INLINE hn::VFromD<D> any_quotient(D d, hn::VFromD<D> a, hn::VFromD<D> b, hn::VFromD<D> inverse) {
  const hn::RebindToUnsigned<D> du;
  const auto zero = hn::Eq(a, hn::Zero(d));
  const auto inside = hn::TestBit(quotient_range(d, a), hn::Set(du, kQuotientBit));
  if (HWY_UNLIKELY(!hn::AllTrue(d, hn::Or(hn::RebindMask(d, inside), zero)))) return hn::Div(a, b);
  return hn::IfThenElse(zero, hn::Mul(a, inverse), quotient(d, a, b, inverse));
}
#endif  // HWY_NATIVE_FMA

// ------------------------------------------------------------------ lane by lane

#if HWY_TARGET == HWY_AVX3
/// The correctly rounded 1 / b, unless its fraction is all ones, for lanes far from the ends of the range.
template <class D>
HWY_INLINE hn::VFromD<D> refined_reciprocal(D d, hn::VFromD<D> b) {
  const auto one = hn::Set(d, 1.0f);
  auto y = hn::ApproximateReciprocal(b);
  y = hn::MulAdd(hn::NegMulAdd(b, y, one), y, y);
  return hn::MulAdd(hn::NegMulAdd(b, y, one), y, y);
}
#endif

/// 1 / b. Where nothing else is done meanwhile: the division instruction leaves the other units free.
template <class D>
HWY_INLINE hn::VFromD<D> reciprocal_lanes(D d, hn::VFromD<D> b) {
#if HWY_TARGET == HWY_AVX3
  // 2^-63 <= |b| < 2^65, b's fraction not all ones.
  const auto sum = _mm512_add_epi32(_mm512_castps_si512(b.raw), _mm512_set1_epi32(0x20000001));
  const auto outside = _mm512_testn_epi32_mask(sum, _mm512_set1_epi32(0x40000000));
  const auto ones = _mm512_testn_epi32_mask(sum, _mm512_set1_epi32(0x7fffff));
  if (HWY_LIKELY(_kortestz_mask16_u8(outside, ones))) return refined_reciprocal(d, b);
#endif
  return hn::Div(hn::Set(d, 1.0f), b);
}

}  // namespace HWY_NAMESPACE
}  // namespace pypto::vm
HWY_AFTER_NAMESPACE();

#endif  // toggle
