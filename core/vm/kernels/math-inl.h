// SPDX-License-Identifier: Apache-2.0

// Exponential and logarithm on FP32 lanes. Only separate multiplications and additions are used, so every
// instruction set gives the same bits (02 O-311); errors stay below the 4 ulp of O-303.
#if defined(PYPTO_VM_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PYPTO_VM_KERNELS_MATH_INL_H_
#undef PYPTO_VM_KERNELS_MATH_INL_H_
#else
#define PYPTO_VM_KERNELS_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

HWY_BEFORE_NAMESPACE();
namespace pypto::vm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// accumulator * x + c in two roundings.
template <class D>
HWY_INLINE hn::VFromD<D> horner(D d, hn::VFromD<D> accumulator, hn::VFromD<D> x, float c) {
  return hn::Add(hn::Mul(accumulator, x), hn::Set(d, c));
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

/// e^x. x = n ln2 + r with |r| <= ln2 / 2 (ln2 in two pieces, the first short enough that n times it is
/// exact); e^r = 1 + r + r^2 q(r), q of degree 4 fitted for the least relative error (3e-9). The scaling
/// rounds once, so results that are subnormal are as good as others. NaN passes every step: Max and Min
/// return their second operand for it.
template <class D>
HWY_INLINE hn::VFromD<D> exp_lanes(D d, hn::VFromD<D> x) {
  const auto clamped = hn::Min(hn::Set(d, 90.0f), hn::Max(hn::Set(d, -105.0f), x));
  const auto n = hn::Round(hn::Mul(clamped, hn::Set(d, 1.44269504088896341f)));
  auto r = hn::Sub(clamped, hn::Mul(n, hn::Set(d, 0.693359375f)));
  r = hn::Add(r, hn::Mul(n, hn::Set(d, 2.12194440054690583e-4f)));
  auto q = hn::Set(d, 1.381440205e-03f);
  q = horner(d, q, r, 8.368811570e-03f);
  q = horner(d, q, r, 4.166839644e-02f);
  q = horner(d, q, r, 1.666651964e-01f);
  q = horner(d, q, r, 4.999999404e-01f);
  const auto p = hn::Add(hn::Add(hn::Mul(hn::Mul(q, r), r), r), hn::Set(d, 1.0f));
  return scale_by_power(d, p, n);
}

/// ln x. x = 2^k m with sqrt(1/2) <= m < sqrt(2); with f = m - 1 and s = f / (2 + f), ln m = 2 atanh(s) as an
/// odd series in s, arranged so that the leading terms f - f*f/2 carry the precision.
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
  const auto s = hn::Div(f, hn::Add(f, hn::Set(d, 2.0f)));
  const auto z = hn::Mul(s, s);
  auto p = hn::Set(d, 2.0f / 11.0f);
  p = horner(d, p, z, 2.0f / 9.0f);
  p = horner(d, p, z, 2.0f / 7.0f);
  p = horner(d, p, z, 2.0f / 5.0f);
  p = horner(d, p, z, 2.0f / 3.0f);
  p = hn::Mul(p, z);
  const auto half_square = hn::Mul(hn::Mul(f, f), hn::Set(d, 0.5f));
  // ln m = f - (half_square - s * (half_square + p))
  const auto tail =
      hn::Add(hn::Mul(s, hn::Add(half_square, p)), hn::Mul(kf, hn::Set(d, -2.12194440054690583e-4f)));
  auto result = hn::Add(hn::Add(hn::Sub(tail, half_square), f), hn::Mul(kf, hn::Set(d, 0.693359375f)));
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
