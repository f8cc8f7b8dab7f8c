// SPDX-License-Identifier: Apache-2.0

// Exponential and logarithm on FP32 lanes. Fused multiply-adds are the same on every instruction set, and so
// are the bits (02 O-311); errors stay below the 4 ulp of O-303.
#if defined(PYPTO_VM_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PYPTO_VM_KERNELS_MATH_INL_H_
#undef PYPTO_VM_KERNELS_MATH_INL_H_
#else
#define PYPTO_VM_KERNELS_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

#include "core/vm/kernels/fma-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pypto::vm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// accumulator * x + c, rounded once.
template <class D>
HWY_INLINE hn::VFromD<D> horner(D d, hn::VFromD<D> accumulator, hn::VFromD<D> x, float c) {
  return fused_lanes(d, accumulator, x, hn::Set(d, c));
}

// Adding this to a number of small size rounds it to an integer n, and leaves n + 254 in the low bits.
constexpr float kRounder = 0x1.8p23f + 254.0f;

/// e^x. x = n ln2 + r with |r| <= ln2 / 2 (ln2 in two pieces); e^r = 1 + r (1 + r q(r)), q of degree 4 fitted
/// for the least relative error (3e-9). The scaling by 2^n rounds once, so results that are subnormal are as
/// good as others. NaN passes every step: Min returns its second operand for it. Where the result is zero,
/// none of this is done to x: a processor takes a hundred cycles for an underflow.
template <class D>
HWY_INLINE hn::VFromD<D> exp_lanes(D d, hn::VFromD<D> x) {
#if HWY_TARGET == HWY_AVX3
  const auto some = _mm512_cmp_ps_mask(x.raw, _mm512_set1_ps(-104.0f), _CMP_NLT_UQ);
  // Not limited from above either: p is positive, infinite or, for an infinite x, NaN, and `scalef` gives
  // infinity for each of them when n is large or infinite.
  const auto limited = x;
#else
  const auto none = hn::Lt(x, hn::Set(d, -104.0f));
  const auto limited = hn::Min(hn::Set(d, 90.0f), hn::IfThenZeroElse(none, x));
#endif
  const auto t = horner(d, limited, hn::Set(d, 1.44269504088896341f), kRounder);
  const auto n = hn::Sub(t, hn::Set(d, kRounder));
  auto r = fused_lanes(d, n, hn::Set(d, -0x1.62e430p-1f), limited);
  r = fused_lanes(d, n, hn::Set(d, 0x1.05c610p-29f), r);
  auto p = hn::Set(d, 1.381440205e-03f);
  p = horner(d, p, r, 8.368811570e-03f);
  p = horner(d, p, r, 4.166839644e-02f);
  p = horner(d, p, r, 1.666651964e-01f);
  p = horner(d, p, r, 4.999999404e-01f);
  p = horner(d, p, r, 1.0f);
  p = horner(d, p, r, 1.0f);
#if HWY_TARGET == HWY_AVX3
  return hn::VFromD<D>{_mm512_maskz_scalef_ps(some, p.raw, n.raw)};
#else
  // Two factors, as 2^n alone may not be representable. The first product is exact. Exponents are biased by
  // 127 each, and what lies above their bits is shifted out.
  const hn::RebindToUnsigned<D> du;
  const auto whole = hn::BitCast(du, t);
  const auto half = hn::ShiftRight<1>(whole);
  const auto first = hn::BitCast(d, hn::ShiftLeft<23>(half));
  const auto second = hn::BitCast(d, hn::ShiftLeft<23>(hn::Sub(whole, half)));
  return hn::IfThenZeroElse(none, hn::Mul(hn::Mul(p, first), second));
#endif
}

/// ln x. x = 2^k m with sqrt(1/2) <= m < sqrt(2); with f = m - 1, ln m = f - f^2 / 2 + f^3 p(f), p of
/// degree 8.
template <class D>
HWY_INLINE hn::VFromD<D> log_lanes(D d, hn::VFromD<D> x) {
  const hn::RebindToSigned<D> di;
  const auto is_small = hn::Lt(x, hn::Set(d, std::numeric_limits<float>::min()));
  const auto scaled = hn::IfThenElse(is_small, hn::Mul(x, hn::Set(d, 33554432.0f)), x);  // 2^25: subnormals
  const auto bits = hn::BitCast(di, scaled);
  // Distance from the bits of sqrt(1/2), so that the exponent of m comes out as 0 or -1.
  const auto offset = hn::Sub(bits, hn::Set(di, 0x3f3504f3));
  const auto k = hn::ShiftRight<23>(offset);
  const auto m = hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(k)));
  const auto bias = hn::IfThenElseZero(is_small, hn::Set(d, 25.0f));
  const auto kf = hn::Sub(hn::ConvertTo(d, k), bias);
  const auto f = hn::Sub(m, hn::Set(d, 1.0f));
  const auto z = hn::Mul(f, f);
  auto p = hn::Set(d, 7.0376836292e-2f);
  p = horner(d, p, f, -1.1514610310e-1f);
  p = horner(d, p, f, 1.1676998740e-1f);
  p = horner(d, p, f, -1.2420140846e-1f);
  p = horner(d, p, f, 1.4249322787e-1f);
  p = horner(d, p, f, -1.6668057665e-1f);
  p = horner(d, p, f, 2.0000714765e-1f);
  p = horner(d, p, f, -2.4999993993e-1f);
  p = horner(d, p, f, 3.3333331174e-1f);
  auto tail = fused_lanes(d, kf, hn::Set(d, -2.12194440054690583e-4f), hn::Mul(hn::Mul(p, f), z));
  tail = fused_lanes(d, z, hn::Set(d, -0.5f), tail);
  auto result = fused_lanes(d, kf, hn::Set(d, 0.693359375f), hn::Add(f, tail));
  const auto infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  result = hn::IfThenElse(hn::Eq(x, infinity), infinity, result);
  result = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), hn::Neg(infinity), result);
  const auto nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  result = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), nan, result);
  return hn::IfThenElse(hn::IsNaN(x), hn::Add(x, x), result);
}

}  // namespace HWY_NAMESPACE
}  // namespace pypto::vm
HWY_AFTER_NAMESPACE();

#endif  // toggle
