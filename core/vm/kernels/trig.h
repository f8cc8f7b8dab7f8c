// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

/// Sine and cosine of rows, and what their scalar and vector code share.
namespace pypto::vm {

inline constexpr double kTwoOverPi = 0.63661977236758134308;
inline constexpr double kPiOver2 = 1.57079632679489661923;
/// pi / 2 in three pieces of 33 bits: k times a piece is exact for |k| < 2^20.
inline constexpr double kPiOver2High = 0x1.921fb544p+0;
inline constexpr double kPiOver2Middle = 0x1.0b4611a6p-34;
inline constexpr double kPiOver2Low = 0x1.3198a2e037073p-69;
/// Arguments below this are reduced with these pieces.
inline constexpr float kVectorRange = 524288.0f;

/// Taylor series on |r| <= pi/4 in r^2; the first term left out is below 1e-11. sin r = r + r^3 p.
inline constexpr double kSine[] = {-1.0 / 39916800.0, 1.0 / 362880.0, -1.0 / 5040.0, 1.0 / 120.0, -1.0 / 6.0};
/// cos r = 1 + r^2 p.
inline constexpr double kCosine[] = {1.0 / 479001600.0, -1.0 / 3628800.0, 1.0 / 40320.0,
                                     -1.0 / 720.0,      1.0 / 24.0,       -0.5};

/// out[i] = sin_any(in[i]), out[i] = cos_any(in[i]).
void sin_row(const float* in, float* out, size_t n);
void cos_row(const float* in, float* out, size_t n);

}  // namespace pypto::vm
