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

/// p 2^n, rounded once, for integer-valued lanes |n| <= 152 and p near 1.
template <class D>
HWY_INLINE hn::VFromD<D> scale_by_power(D d, hn::VFromD<D> p, hn::VFromD<D> n) {
#if HWY_TARGET == HWY_AVX3
  (void)d;
  return hn::VFromD<D>{_mm512_scalef_ps(p.raw, n.raw)};
#else
  // Two factors, as 2^n alone may not be representable. The first product is exact.
  const hn::RebindToSigned<D> di;
  const auto bias = hn::Set(di, 127);
  const auto whole = hn::ConvertTo(di, n);
  const auto half = hn::ShiftRight<1>(whole);
  const auto first = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const auto second = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(whole, half), bias)));
  return hn::Mul(hn::Mul(p, first), second);
#endif
}

/// e^x. x = n ln2 + r with |r| <= ln2 / 2 (ln2 in two pieces); e^r = 1 + r + r^2 q(r), q of degree 4 fitted
/// for the least relative error (3e-9). The scaling rounds once, so results that are subnormal are as good as
/// others. NaN passes every step: Max and Min return their second operand for it.
template <class D>
HWY_INLINE hn::VFromD<D> exp_lanes(D d, hn::VFromD<D> x) {
  const auto clamped = hn::Min(hn::Set(d, 90.0f), hn::Max(hn::Set(d, -105.0f), x));
  const auto n = hn::Round(hn::Mul(clamped, hn::Set(d, 1.44269504088896341f)));
  auto r = fused_lanes(d, n, hn::Set(d, -0x1.62e430p-1f), clamped);
  r = fused_lanes(d, n, hn::Set(d, 0x1.05c610p-29f), r);
  auto q = hn::Set(d, 1.381440205e-03f);
  q = horner(d, q, r, 8.368811570e-03f);
  q = horner(d, q, r, 4.166839644e-02f);
  q = horner(d, q, r, 1.666651964e-01f);
  q = horner(d, q, r, 4.999999404e-01f);
  const auto p = hn::Add(fused_lanes(d, hn::Mul(r, r), q, r), hn::Set(d, 1.0f));
  return scale_by_power(d, p, n);
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
