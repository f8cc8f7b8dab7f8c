// SPDX-License-Identifier: Apache-2.0

// Number formats (02 O-302, O-312, O-1103, O-1107) against independent definitions.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/base/numeric.h"

namespace pypto {
namespace {

// O-312: all FP16 patterns by the formula of the format.
TEST(KernelsNumeric, Fp16Decode) {
  for (int bits = 0; bits < 65536; ++bits) {
    const int sign = bits >> 15, exponent = (bits >> 10) & 31, mantissa = bits & 1023;
    const float got = fp16_to_fp32(static_cast<uint16_t>(bits));
    if (exponent == 31) {
      if (mantissa != 0) {
        EXPECT_TRUE(std::isnan(got));
      } else {
        EXPECT_EQ(got, sign ? -INFINITY : INFINITY);
      }
      continue;
    }
    const double magnitude =
        exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    EXPECT_EQ(got, sign ? -magnitude : magnitude);
    EXPECT_EQ(std::signbit(got), sign != 0);
    EXPECT_EQ(fp32_to_fp16(got), bits);
  }
}

/// Nearest value of a 16-bit format by search among all of its finite patterns, ties to the even pattern.
uint16_t search(float value, float (*decode)(uint16_t), uint16_t infinity) {
  uint16_t low = 0, high = infinity;  // magnitudes ascend with the pattern
  const float magnitude = std::fabs(value);
  while (high - low > 1) {
    const auto middle = static_cast<uint16_t>((low + high) / 2);
    (decode(middle) <= magnitude ? low : high) = middle;
  }
  // Beyond the greatest finite value the next step stands for infinity.
  const double below = decode(low);
  const double above = high == infinity ? 2 * below - decode(static_cast<uint16_t>(low - 1)) : decode(high);
  const double to_below = magnitude - below, to_above = above - magnitude;
  uint16_t out = to_below < to_above ? low : to_below > to_above ? high : (low & 1) == 0 ? low : high;
  return static_cast<uint16_t>(std::signbit(value) ? out | 0x8000 : out);
}

// O-312, B-41: ties, subnormals, overflow.
TEST(KernelsNumeric, SixteenBitEncode) {
  std::mt19937 random(7);
  std::vector<float> x = {0.0f,          -0.0f,         65504.0f,      65519.99f,     65520.0f,
                          65536.0f,      5.9604645e-8f, 2.9802322e-8f, 2.9802326e-8f, 6.1035156e-5f,
                          6.0975552e-5f, 1.01953125f,   1.02734375f,   3.3895314e38f, 3.4e38f};
  for (int i = 0; i < 200000; ++i) {
    const float v = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isfinite(v)) x.push_back(v);
    x.push_back(std::ldexp(static_cast<float>(random() % 8192) / 2.0f, static_cast<int>(random() % 40) - 30));
  }
  for (const float v : x) {
    if (std::fabs(v) < 131072.0f) {
      ASSERT_EQ(fp32_to_fp16(v), search(v, fp16_to_fp32, 0x7c00)) << v;
    }
    ASSERT_EQ(fp32_to_bf16(v), search(v, bf16_to_fp32, 0x7f80)) << v;
  }
  EXPECT_EQ(bf16_to_fp32(fp32_to_bf16(1.01953125f)), 1.015625f);
  EXPECT_EQ(bf16_to_fp32(fp32_to_bf16(1.02734375f)), 1.03125f);
  EXPECT_EQ(fp32_to_fp16(1e30f), 0x7c00);
  EXPECT_EQ(fp32_to_fp16(-INFINITY), 0xfc00);
  for (const uint32_t nan : {0x7f800001u, 0xffc00000u, 0x7fffffffu, 0x7fc00001u}) {
    const float v = std::bit_cast<float>(nan);
    EXPECT_TRUE(std::isnan(fp16_to_fp32(fp32_to_fp16(v))));
    EXPECT_TRUE(std::isnan(bf16_to_fp32(fp32_to_bf16(v))));
  }
}

// O-1105: one rounding from 64-bit integers.
TEST(KernelsNumeric, IntegersToSixteenBits) {
  // 2^24 + 2^16 + 1 lies just above a BF16 tie: through FP32 it would round to the tie and then to even.
  EXPECT_EQ(bf16_to_fp32(int64_to_bf16((1 << 24) + (1 << 16) + 1)), 16777216.0f + 131072.0f);
  EXPECT_EQ(bf16_to_fp32(int64_to_bf16((1 << 24) + (1 << 16))), 16777216.0f);
  EXPECT_EQ(bf16_to_fp32(int64_to_bf16(-((1 << 24) + (1 << 16) + 1))), -16777216.0f - 131072.0f);
  EXPECT_EQ(fp16_to_fp32(int64_to_fp16(65519)), 65504.0f);
  EXPECT_EQ(fp16_to_fp32(int64_to_fp16(65520)), INFINITY);
  EXPECT_EQ(bf16_to_fp32(int64_to_bf16(std::numeric_limits<int64_t>::min())), -9223372036854775808.0f);
  EXPECT_EQ(bf16_to_fp32(uint64_to_bf16(~uint64_t{0})), 18446744073709551616.0f);
}

/// Every code decodes and encodes to itself; in between, ties go to the even code.
void check_small(float (*decode)(uint8_t), uint8_t (*encode)(float), int codes) {
  std::vector<std::pair<float, int>> values;
  for (int c = 0; c < codes; ++c) {
    const float v = decode(static_cast<uint8_t>(c));
    if (!std::isfinite(v) || std::signbit(v)) continue;
    values.emplace_back(v, c);
    EXPECT_EQ(encode(v), c) << v;
    if (v != 0) {
      EXPECT_EQ(decode(encode(-v)), -v);
    }
  }
  std::sort(values.begin(), values.end());
  for (size_t i = 0; i + 1 < values.size(); ++i) {
    const auto [low, low_code] = values[i];
    const auto [high, high_code] = values[i + 1];
    const float middle = low + (high - low) / 2;
    EXPECT_EQ(encode(middle), (low_code & 1) == 0 ? low_code : high_code) << middle;
    EXPECT_EQ(encode(std::nextafter(middle, 0.0f)), low_code);
    EXPECT_EQ(encode(std::nextafter(middle, INFINITY)), high_code);
  }
}

TEST(KernelsNumeric, SmallFloats) {
  check_small(fp8e4m3_to_fp32, fp32_to_fp8e4m3, 128);
  check_small(fp8e5m2_to_fp32, fp32_to_fp8e5m2, 128);
  check_small(hf8_to_fp32, fp32_to_hf8, 128);
  check_small(fp4_to_fp32, fp32_to_fp4, 8);
  EXPECT_EQ(fp8e4m3_to_fp32(0x7e), 448.0f);
  EXPECT_EQ(fp8e4m3_to_fp32(0x01), std::ldexp(1.0f, -9));
  EXPECT_EQ(fp8e4m3_to_fp32(0x38), 1.0f);
  EXPECT_TRUE(std::isnan(fp8e4m3_to_fp32(0x7f)));
  EXPECT_TRUE(std::isnan(fp8e4m3_to_fp32(fp32_to_fp8e4m3(INFINITY))));
  EXPECT_EQ(fp8e5m2_to_fp32(0x3c), 1.0f);
  EXPECT_EQ(fp8e5m2_to_fp32(0x7b), 57344.0f);
  EXPECT_EQ(fp32_to_fp8e5m2(1e9f), 0x7c);
  EXPECT_TRUE(std::isnan(fp8e5m2_to_fp32(fp32_to_fp8e5m2(NAN))));
  for (int c = 0; c < 255; ++c)
    EXPECT_EQ(fp8e8m0_to_fp32(static_cast<uint8_t>(c)), std::ldexp(1.0f, c - 127));
  EXPECT_TRUE(std::isnan(fp8e8m0_to_fp32(255)));
}

// HiFloat8: prefix, sign-magnitude exponent with hidden leading one, mantissa.
TEST(KernelsNumeric, Hf8) {
  EXPECT_EQ(hf8_to_fp32(0x08), 1.0f);      // 0 0001 000
  EXPECT_EQ(hf8_to_fp32(0x0c), 1.5f);      // 0 0001 100
  EXPECT_EQ(hf8_to_fp32(0x10), 2.0f);      // 0 001 0 000
  EXPECT_EQ(hf8_to_fp32(0x18), 0.5f);      // 0 001 1 000
  EXPECT_EQ(hf8_to_fp32(0x20), 4.0f);      // 0 01 00 000
  EXPECT_EQ(hf8_to_fp32(0x40), 16.0f);     // 0 10 000 00
  EXPECT_EQ(hf8_to_fp32(0x60), 256.0f);    // 0 11 0000 0
  EXPECT_EQ(hf8_to_fp32(0x6e), 32768.0f);  // 0 11 0111 0
  EXPECT_EQ(hf8_to_fp32(0x6f), INFINITY);
  EXPECT_EQ(hf8_to_fp32(0xef), -INFINITY);
  EXPECT_EQ(hf8_to_fp32(0x7e), std::ldexp(1.0f, -15));  // 0 11 1111 0
  EXPECT_EQ(hf8_to_fp32(0x01), std::ldexp(1.0f, -22));
  EXPECT_EQ(hf8_to_fp32(0x07), std::ldexp(1.0f, -16));
  EXPECT_TRUE(std::isnan(hf8_to_fp32(0x80)));
  EXPECT_EQ(fp32_to_hf8(-0.0f), 0);
  EXPECT_EQ(fp32_to_hf8(1e6f), 0x6f);
  EXPECT_EQ(fp32_to_hf8(NAN), 0x80);
}

TEST(KernelsNumeric, Integers) {
  EXPECT_EQ(wrap_integer(300, DType::kInt8), 44);
  EXPECT_EQ(wrap_integer(200, DType::kInt8), -56);
  EXPECT_EQ(wrap_integer(-1, DType::kUInt16), 65535);
  EXPECT_EQ(wrap_integer(9, DType::kInt4), -7);
  EXPECT_EQ(float_to_integer(3e9, DType::kInt8), -1);  // INT32 first
  EXPECT_TRUE(integer_overflows(128, DType::kInt8));
  EXPECT_FALSE(integer_overflows(-128, DType::kInt8));
  EXPECT_TRUE(integer_overflows(-1, DType::kUInt32));
}

}  // namespace
}  // namespace pypto
