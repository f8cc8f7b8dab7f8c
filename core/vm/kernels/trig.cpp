// SPDX-License-Identifier: Apache-2.0

// Sine and cosine of FP32 for any finite argument (02 O-313): arguments of usual size in vectors with fused
// multiply-adds, large ones one by one in double precision. Which way an element takes depends on its value
// alone, and both are the same on every instruction set (O-311).
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/vm/kernels/trig.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/vm/kernels/fma-inl.h"
#include "core/vm/kernels/kernels.h"
#include "core/vm/kernels/trig.h"

HWY_BEFORE_NAMESPACE();
namespace pypto::vm {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::CappedTag<float, 16>;
using VF = hn::VFromD<DF>;

/// sin(x) for kCos false, cos(x) for true; lanes of at most kVectorRange in magnitude. x = k pi/2 + r + low,
/// where low is what r rounds off; both series carry it.
template <bool kCos>
HWY_INLINE VF trig_lanes(DF d, VF x) {
  const hn::RebindToUnsigned<DF> du;
  const auto fma = [&](VF a, VF b, VF c) HWY_ATTR { return fused_lanes(d, a, b, c); };
  const auto number = [&](float v) HWY_ATTR { return hn::Set(d, v); };
  const VF wide = hn::Abs(x);
  // Adding 1.5 2^23 rounds to an integer, whose low bits are those of the sum.
  const VF magic = number(12582912.0f);
  const VF shifted = fma(wide, number(static_cast<float>(kTwoOverPi)), magic);
  const VF k = hn::Sub(shifted, magic);
  const VF exact = fma(k, number(-kHalfPi[1]), fma(k, number(-kHalfPi[0]), wide));
  const VF r = fma(k, number(-kHalfPi[2]), exact);
  // What the rounding of r lost can be told exactly, except where r is so small that it matters little.
  const VF lost = fma(k, number(-kHalfPi[2]), hn::Sub(exact, r));
  VF low = hn::IfThenElseZero(hn::Ge(hn::Abs(r), number(0x1p-9f)), lost);
  low = fma(k, number(-kHalfPi[3]), low);
  auto quadrant = hn::BitCast(du, shifted);
  if (kCos) quadrant = hn::Add(quadrant, hn::Set(du, 1u));
  const VF z = hn::Mul(r, r);
  VF s = number(kSine[0]);
  for (int i = 1; i < 3; ++i) s = fma(s, z, number(kSine[i]));
  s = hn::Add(r, fma(hn::Mul(r, z), s, low));
  VF c = number(kCosine[0]);
  for (int i = 1; i < 3; ++i) c = fma(c, z, number(kCosine[i]));
  const VF half = hn::Mul(z, number(0.5f)), one = number(1.0f);
  const VF near = hn::Sub(one, half);
  const VF rest = hn::Sub(hn::Sub(one, near), half);
  c = hn::Add(near, hn::Add(rest, fma(hn::Mul(z, z), c, hn::Neg(hn::Mul(r, low)))));
  const auto odd = hn::Ne(hn::And(quadrant, hn::Set(du, 1u)), hn::Zero(du));
  const VF value = hn::IfThenElse(hn::RebindMask(d, odd), c, s);
  auto sign = hn::ShiftLeft<30>(hn::And(quadrant, hn::Set(du, 2u)));
  if (!kCos) sign = hn::Xor(sign, hn::And(hn::BitCast(du, x), hn::Set(du, 0x80000000u)));
  return hn::Xor(value, hn::BitCast(d, sign));
}

/// A vector of which the first `n` lanes count; what the vector code cannot do is done one by one.
template <bool kCos>
HWY_INLINE void trig_vector(DF d, const float* in, float* out, size_t n) {
  const VF x = hn::LoadU(d, in);
  if (HWY_LIKELY(hn::AllTrue(d, hn::Lt(hn::Abs(x), hn::Set(d, kVectorRange))))) {  // false for NaN
    hn::StoreU(trig_lanes<kCos>(d, x), d, out);
    return;
  }
  alignas(64) float wide[16], value[16];
  hn::Store(x, d, wide);
  hn::Store(trig_lanes<kCos>(d, x), d, value);
  for (size_t i = 0; i < n; ++i) {
    const bool inside = std::fabs(wide[i]) < kVectorRange;
    out[i] = inside ? value[i] : kCos ? cos_any(wide[i]) : sin_any(wide[i]);
  }
}

template <bool kCos>
void trig_row(const float* in, float* out, size_t n) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) trig_vector<kCos>(d, in + i, out + i, lanes);
  if (const size_t rest = n - i; rest != 0) {
    alignas(64) float buffer[16] = {};
    std::memcpy(buffer, in + i, rest * sizeof(float));
    trig_vector<kCos>(d, buffer, buffer, lanes);
    std::memcpy(out + i, buffer, rest * sizeof(float));
  }
}

void trig(bool cosine, const float* in, float* out, size_t n) {
  cosine ? trig_row<true>(in, out, n) : trig_row<false>(in, out, n);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace pypto::vm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pypto::vm {
HWY_EXPORT(trig);

void sin_row(const float* in, float* out, size_t n) { HWY_DYNAMIC_DISPATCH(trig)(false, in, out, n); }
void cos_row(const float* in, float* out, size_t n) { HWY_DYNAMIC_DISPATCH(trig)(true, in, out, n); }

namespace {

constexpr double kPiOver2 = 1.57079632679489661923;
/// pi / 2 in three pieces of 33 bits: k times a piece is exact for |k| < 2^20.
constexpr double kPiOver2High = 0x1.921fb544p+0;
constexpr double kPiOver2Middle = 0x1.0b4611a6p-34;
constexpr double kPiOver2Low = 0x1.3198a2e037073p-69;

/// Binary digits of 2 / pi, 32 to a word, first digit 2^-1.
constexpr uint32_t kTwoOverPiDigits[] = {0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u,
                                         0x3c439041u, 0xfe5163abu, 0xdebbc561u, 0xb7246e3au, 0x424dd2e0u};

struct Reduced {
  int quadrant;  ///< 0..3
  double rest;   ///< x - quadrant * pi/2 modulo 2 pi, |rest| <= pi/4 or a little more
};

/// 32 digits of 2 / pi from digit `first` on (digits before the first are 0).
uint32_t digits_from(int first) {
  const int word = first >= 0 ? first / 32 : -((-first + 31) / 32);
  const int shift = first - word * 32;
  auto at = [](int i) { return i >= 0 && i < 10 ? static_cast<uint64_t>(kTwoOverPiDigits[i]) : uint64_t{0}; };
  const uint64_t pair = (at(word) << 32) | at(word + 1);
  return static_cast<uint32_t>(pair >> (32 - shift));
}

/// Large arguments: x = m 2^e with integer m. x * 2/pi modulo 4 needs only the digits of 2/pi that are worth
/// between 2^(1-e) and 2^(-126-e), as the higher ones contribute multiples of 4.
Reduced reduce_large(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x) & 0x7fffffffu;
  const int e = static_cast<int>(bits >> 23) - 150;
  const uint64_t m = (bits & 0x7fffffu) | 0x800000u;
  unsigned __int128 window = 0;  // digit worth 2^(1-e) (index e - 2) first
  for (int i = 0; i < 4; ++i) window = (window << 32) | digits_from(e - 2 + 32 * i);
  unsigned __int128 product = window * m;  // modulo 2^128 = modulo 4
  const auto nearest = static_cast<int>(((product >> 125) + 1) >> 1) & 3;
  product -= static_cast<unsigned __int128>(nearest) << 126;
  const auto fraction = static_cast<__int128>(product);  // in units of 2^-126, within a half
  const double rest = std::ldexp(static_cast<double>(static_cast<int64_t>(fraction >> 64)), -62) * kPiOver2;
  return {nearest, rest};
}

Reduced reduce(float x) {
  const double wide = std::fabs(static_cast<double>(x));
  if (wide < 524288.0) {
    const double k = std::nearbyint(wide * kTwoOverPi);
    double rest = wide - k * kPiOver2High;
    rest -= k * kPiOver2Middle;
    rest -= k * kPiOver2Low;
    return {static_cast<int>(static_cast<int64_t>(k) & 3), rest};
  }
  return reduce_large(x);
}

/// Taylor series on |r| <= pi/4 or a little more; the first term left out is below 1e-11.
double sin_series(double r) {
  const double z = r * r;
  double p = -1.0 / 39916800.0;
  p = p * z + 1.0 / 362880.0;
  p = p * z - 1.0 / 5040.0;
  p = p * z + 1.0 / 120.0;
  p = p * z - 1.0 / 6.0;
  return r + r * z * p;
}
double cos_series(double r) {
  const double z = r * r;
  double p = 1.0 / 479001600.0;
  p = p * z - 1.0 / 3628800.0;
  p = p * z + 1.0 / 40320.0;
  p = p * z - 1.0 / 720.0;
  p = p * z + 1.0 / 24.0;
  p = p * z - 0.5;
  return 1.0 + z * p;
}

float quadrant_value(int quadrant, double rest) {
  const double v = (quadrant & 1) ? cos_series(rest) : sin_series(rest);
  return static_cast<float>((quadrant & 2) ? -v : v);
}

}  // namespace

float sin_any(float x) {
  if (!std::isfinite(x)) return x - x;
  if (x == 0) return x;
  const Reduced r = reduce(x);
  const float v = quadrant_value(r.quadrant, r.rest);
  return std::signbit(x) ? -v : v;
}

float cos_any(float x) {
  if (!std::isfinite(x)) return x - x;
  const Reduced r = reduce(x);
  return quadrant_value((r.quadrant + 1) & 3, r.rest);
}

}  // namespace pypto::vm
#endif
