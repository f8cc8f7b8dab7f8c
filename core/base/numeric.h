// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#include "core/base/dtype.h"

/// Scalar conversions between the language's number formats (02 O-303, O-312, O-1103 - O-1107). The SIMD
/// kernels give the same bits as these functions.
namespace pypto {

/// Rounding of float to integer by `cast` (02 section 11); the values are the mode codes.
enum class CastMode : uint8_t { kNone, kRint, kRound, kFloor, kCeil, kTrunc, kOdd };

// ------------------------------------------------------------------ 16-bit floats

/// Exact. A signalling NaN becomes quiet.
inline float fp16_to_fp32(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  uint32_t rest = static_cast<uint32_t>(bits & 0x7fffu) << 13;
  const uint32_t exponent = rest & 0x0f800000u;
  rest += (127u - 15u) << 23;
  if (exponent == 0x0f800000u) {
    rest += (128u - 16u) << 23;
    if (rest & 0x007fffffu) rest |= 0x00400000u;
  } else if (exponent == 0) {
    rest =
        std::bit_cast<uint32_t>(std::bit_cast<float>(rest + (1u << 23)) - std::bit_cast<float>(113u << 23));
  }
  return std::bit_cast<float>(rest | sign);
}

/// Nearest, ties to even; subnormal results kept; overflow to infinity; every NaN becomes a quiet NaN.
inline uint16_t fp32_to_fp16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits & 0x80000000u;
  bits ^= sign;
  uint32_t out;
  if (bits >= (127u + 16u) << 23) {
    out = bits > 0x7f800000u ? 0x7e00u : 0x7c00u;
  } else if (bits < (113u << 23)) {
    // Adding 0.5 moves the wanted bits to the bottom of the mantissa and lets the hardware round.
    constexpr uint32_t kMagic = ((127u - 15u) + (23u - 10u) + 1u) << 23;
    out = std::bit_cast<uint32_t>(std::bit_cast<float>(bits) + std::bit_cast<float>(kMagic)) - kMagic;
  } else {
    const uint32_t odd = (bits >> 13) & 1u;
    out = (bits + ((15u - 127u) << 23) + 0xfffu + odd) >> 13;
  }
  return static_cast<uint16_t>(out | (sign >> 16));
}

inline float bf16_to_fp32(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

/// Nearest, ties to even; NaN becomes quiet.
inline uint16_t fp32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/// Directly rounded (one rounding) conversions of 64-bit integers.
uint16_t int64_to_fp16(int64_t value);
uint16_t int64_to_bf16(int64_t value);
uint16_t uint64_to_fp16(uint64_t value);
uint16_t uint64_to_bf16(uint64_t value);

// ------------------------------------------------------------------ 8- and 4-bit floats

/// FP8E4M3FN: no infinities, 0x7f and 0xff are NaN. Overflow gives NaN.
float fp8e4m3_to_fp32(uint8_t code);
uint8_t fp32_to_fp8e4m3(float value);
/// FP8E5M2: as IEEE, overflow to infinity.
float fp8e5m2_to_fp32(uint8_t code);
uint8_t fp32_to_fp8e5m2(float value);
/// FP8E8M0: code c is 2^(c-127), 255 is NaN. Encoding takes the nearest power (ties to the even code); zero
/// and negative values give NaN, as there is no code for them.
float fp8e8m0_to_fp32(uint8_t code);
uint8_t fp32_to_fp8e8m0(float value);
/// HF8 (HiFloat8): tapered precision; 0x80 is NaN, 0x6f and 0xef are the infinities.
float hf8_to_fp32(uint8_t code);
uint8_t fp32_to_hf8(float value);
/// FP4 (E2M1): 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives; values beyond 6 give 6, NaN gives 0 (no code
/// exists).
float fp4_to_fp32(uint8_t code);
uint8_t fp32_to_fp4(float value);

// ------------------------------------------------------------------ float to integer

/// `value` rounded to an integer value (kNone is toward zero). NaN and infinities pass through.
float round_by_mode(float value, CastMode mode);
double round_by_mode(double value, CastMode mode);
/// Saturating conversions of an integer-valued number; NaN gives 0.
int32_t saturate_int32(double value);
int64_t saturate_int64(double value);
uint32_t saturate_uint32(double value);
uint64_t saturate_uint64(double value);
/// Bits of `value` (already rounded) as an element of an integer dtype by O-1104, sign- or zero-extended.
int64_t float_to_integer(double value, DType dtype);
/// Whether O-1104 changes the value: NaN, or outside the range of `dtype`.
bool integer_overflows(double value, DType dtype);
/// `value` reduced to the range of an integer dtype by keeping its low bits.
int64_t wrap_integer(int64_t value, DType dtype);

// ------------------------------------------------------------------ single elements

/// One element of a float dtype, widened. Sub-byte dtypes: one code per byte.
double read_float(DType dtype, const void* element);
/// One element of an integer dtype, BOOL, INDEX or TASK_ID. UINT64 keeps its bits.
int64_t read_integer(DType dtype, const void* element);
/// Stores with RNE to a float dtype.
void write_float(DType dtype, void* element, double value);
/// Stores the low bits.
void write_integer(DType dtype, void* element, int64_t value);
/// Greatest and least element of a dtype by the table of 02 section 17 (floats: the infinities; float dtypes
/// without infinities: their extremes). `element` receives the bytes.
void write_extreme(DType dtype, void* element, bool greatest);

}  // namespace pypto
