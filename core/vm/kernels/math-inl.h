// SPDX-License-Identifier: Apache-2.0

// Exponential and logarithm on FP32 lanes. Only separate multiplications and additions are used, so every instruction
// set gives the same bits (02 O-311); errors stay below the 4 ulp of O-303.
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

/// 2^k for integer lanes -126 <= k <= 127.
template <class D>
HWY_INLINE hn::VFromD<D> power_of_two(D d, hn::VFromD<hn::RebindToSigned<D>> k) {
    const hn::RebindToSigned<D> di;
    return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(k, hn::Set(di, 127))));
}

/// e^x. x = n ln2 + r with |r| <= ln2 / 2 (ln2 in two pieces, the first short enough that n times it is exact), then
/// the Taylor series of e^r; the scaling is split in two so that subnormal results are rounded once.
template <class D>
HWY_INLINE hn::VFromD<D> exp_lanes(D d, hn::VFromD<D> x) {
    const hn::RebindToSigned<D> di;
    const auto clamped = hn::Min(hn::Max(x, hn::Set(d, -105.0f)), hn::Set(d, 90.0f));
    const auto n = hn::Round(hn::Mul(clamped, hn::Set(d, 1.44269504088896341f)));
    auto r = hn::Sub(clamped, hn::Mul(n, hn::Set(d, 0.693359375f)));
    r = hn::Sub(r, hn::Mul(n, hn::Set(d, -2.12194440054690583e-4f)));
    auto p = hn::Set(d, 1.0f / 5040.0f);
    p = horner(d, p, r, 1.0f / 720.0f);
    p = horner(d, p, r, 1.0f / 120.0f);
    p = horner(d, p, r, 1.0f / 24.0f);
    p = horner(d, p, r, 1.0f / 6.0f);
    p = horner(d, p, r, 0.5f);
    p = hn::Add(hn::Add(hn::Mul(hn::Mul(p, r), r), r), hn::Set(d, 1.0f));
    const auto whole = hn::ConvertTo(di, n);
    const auto half = hn::ShiftRight<1>(whole);
    p = hn::Mul(hn::Mul(p, power_of_two(d, half)), power_of_two(d, hn::Sub(whole, half)));
    return hn::IfThenElse(hn::IsNaN(x), hn::Add(x, x), p);
}

/// ln x. x = 2^k m with sqrt(1/2) <= m < sqrt(2); with f = m - 1 and s = f / (2 + f), ln m = 2 atanh(s) as an odd
/// series in s, arranged so that the leading terms f - f*f/2 carry the precision.
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
    const auto tail = hn::Add(hn::Mul(s, hn::Add(half_square, p)), hn::Mul(kf, hn::Set(d, -2.12194440054690583e-4f)));
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
