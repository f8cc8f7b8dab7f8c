// SPDX-License-Identifier: Apache-2.0

// Sine and cosine of FP32 in double precision, for any finite argument (02 O-313). Vectors take the same
// operations in the same order as the scalar code, which takes over for large arguments.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/vm/kernels/trig.cpp"
#include <hwy/foreach_target.h>

#include <hwy/highway.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/vm/kernels/kernels.h"
#include "core/vm/kernels/trig.h"

HWY_BEFORE_NAMESPACE();
namespace pypto::vm {
namespace HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_HAVE_FLOAT64 && HWY_TARGET != HWY_SCALAR
using DD = hn::ScalableTag<double>;
using DF = hn::Rebind<float, DD>;
using VD = hn::VFromD<DD>;

/// sin(x) for kCos false, cos(x) for true; lanes of at most kVectorRange in magnitude.
template <bool kCos>
HWY_INLINE hn::VFromD<DF> trig_lanes(DF df, hn::VFromD<DF> x) {
  const DD d;
  const hn::RebindToSigned<DD> di;
  const VD wide = hn::Abs(hn::PromoteTo(d, x));
  const VD k = hn::Round(hn::Mul(wide, hn::Set(d, kTwoOverPi)));
  VD r = hn::Sub(wide, hn::Mul(k, hn::Set(d, kPiOver2High)));
  r = hn::Sub(r, hn::Mul(k, hn::Set(d, kPiOver2Middle)));
  r = hn::Sub(r, hn::Mul(k, hn::Set(d, kPiOver2Low)));
  // The low bits of k + 1.5 2^52 are those of k.
  auto quadrant = hn::BitCast(di, hn::Add(k, hn::Set(d, 6755399441055744.0)));
  if (kCos) quadrant = hn::Add(quadrant, hn::Set(di, 1));
  const VD z = hn::Mul(r, r);
  const auto step = [&](VD p, double c) HWY_ATTR { return hn::Add(hn::Mul(p, z), hn::Set(d, c)); };
  VD s = hn::Set(d, kSine[0]);
  for (int i = 1; i < 5; ++i) s = step(s, kSine[i]);
  s = hn::Add(r, hn::Mul(hn::Mul(r, z), s));
  VD c = hn::Set(d, kCosine[0]);
  for (int i = 1; i < 6; ++i) c = step(c, kCosine[i]);
  c = hn::Add(hn::Set(d, 1.0), hn::Mul(z, c));
  const auto odd = hn::Ne(hn::And(quadrant, hn::Set(di, 1)), hn::Zero(di));
  const VD value = hn::IfThenElse(hn::RebindMask(d, odd), c, s);
  const auto flips = hn::BitCast(d, hn::ShiftLeft<62>(hn::And(quadrant, hn::Set(di, 2))));
  auto out = hn::DemoteTo(df, hn::Xor(value, flips));
  if (!kCos)
    out = hn::Xor(out, hn::And(x, hn::BitCast(df, hn::Set(hn::RebindToUnsigned<DF>(), 0x80000000u))));
  return out;
}

template <bool kCos>
void trig_row(const float* in, float* out, size_t n) {
  const DF d;
  const size_t lanes = hn::Lanes(d);
  const auto range = hn::Set(d, kVectorRange);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto x = hn::LoadU(d, in + i);
    const auto inside = hn::Lt(hn::Abs(x), range);  // false for NaN
    if (HWY_LIKELY(hn::AllTrue(d, inside))) {
      hn::StoreU(trig_lanes<kCos>(d, x), d, out + i);
    } else {
      for (size_t j = i; j < i + lanes; ++j) out[j] = kCos ? cos_any(in[j]) : sin_any(in[j]);
    }
  }
  for (; i < n; ++i) out[i] = kCos ? cos_any(in[i]) : sin_any(in[i]);
}
#else
template <bool kCos>
void trig_row(const float* in, float* out, size_t n) {
  for (size_t i = 0; i < n; ++i) out[i] = kCos ? cos_any(in[i]) : sin_any(in[i]);
}
#endif

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
  if (wide < kVectorRange) {
    const double k = std::nearbyint(wide * kTwoOverPi);
    double rest = wide - k * kPiOver2High;
    rest -= k * kPiOver2Middle;
    rest -= k * kPiOver2Low;
    return {static_cast<int>(static_cast<int64_t>(k) & 3), rest};
  }
  return reduce_large(x);
}

double sin_series(double r) {
  const double z = r * r;
  double p = kSine[0];
  for (int i = 1; i < 5; ++i) p = p * z + kSine[i];
  return r + r * z * p;
}
double cos_series(double r) {
  const double z = r * r;
  double p = kCosine[0];
  for (int i = 1; i < 6; ++i) p = p * z + kCosine[i];
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
