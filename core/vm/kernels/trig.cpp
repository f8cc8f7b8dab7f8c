// SPDX-License-Identifier: Apache-2.0

// Sine and cosine of FP32 in double precision, for any finite argument (02 O-313). One scalar algorithm
// everywhere.
#include <bit>
#include <cmath>
#include <cstdint>

#include "core/vm/kernels/kernels.h"

namespace pypto::vm {
namespace {

constexpr double kTwoOverPi = 0.63661977236758134308;
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

/// Taylor series on |r| <= pi/4; the first term left out is below 1e-11.
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
