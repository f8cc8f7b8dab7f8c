// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

/// Sine and cosine of rows, and the constants of their vector code.
namespace pypto::vm {

inline constexpr double kTwoOverPi = 0.63661977236758134308;
/// pi / 2 in four pieces; k times the first or the second, of 11 bits, is exact for |k| < 2^13.
inline constexpr float kHalfPi[] = {0x1.9200000000000p+0f, 0x1.fb40000000000p-12f, 0x1.4442d20000000p-24f,
                                    -0x1.ee59da0000000p-50f};
/// Arguments below this are reduced with these pieces.
inline constexpr float kVectorRange = 8192.0f;

/// On |r| <= pi/4: sin r = r + r^3 p(r^2), cos r = 1 - r^2 / 2 + r^4 p(r^2), fitted for the least error.
inline constexpr float kSine[] = {-1.9515295891e-4f, 8.3321608736e-3f, -1.6666654611e-1f};
inline constexpr float kCosine[] = {2.443315711809948e-5f, -1.388731625493765e-3f, 4.166664568298827e-2f};

/// out[i] = sin(in[i]), out[i] = cos(in[i]).
void sin_row(const float* in, float* out, size_t n);
void cos_row(const float* in, float* out, size_t n);

}  // namespace pypto::vm
