// SPDX-License-Identifier: Apache-2.0

// The 8- and 4-bit float formats (02 O-302, O-1103, O-1107).
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/base/numeric.h"

namespace pypto {
namespace {

/// Finite positive values of a small format with their codes, ascending in value. Codes ascend with the
/// values in every format except HF8, where the even code still marks the even mantissa.
struct CodeTable {
  std::array<float, 256> value{};
  std::array<uint8_t, 256> code{};
  int count = 0;
  float overflow_from = 0;  ///< magnitudes above this leave the table
};

CodeTable make_table(float (*decode)(uint8_t), int codes, float next_after_last) {
  CodeTable t;
  for (int c = 0; c < codes; ++c) {
    const float v = decode(static_cast<uint8_t>(c));
    if (!std::isfinite(v)) continue;
    t.value[static_cast<size_t>(t.count)] = v;
    t.code[static_cast<size_t>(t.count)] = static_cast<uint8_t>(c);
    ++t.count;
  }
  std::array<int, 256> order{};
  for (int i = 0; i < t.count; ++i) order[static_cast<size_t>(i)] = i;
  std::sort(order.begin(), order.begin() + t.count,
            [&](int a, int b) { return t.value[static_cast<size_t>(a)] < t.value[static_cast<size_t>(b)]; });
  CodeTable sorted;
  sorted.count = t.count;
  for (int i = 0; i < t.count; ++i) {
    sorted.value[static_cast<size_t>(i)] = t.value[static_cast<size_t>(order[static_cast<size_t>(i)])];
    sorted.code[static_cast<size_t>(i)] = t.code[static_cast<size_t>(order[static_cast<size_t>(i)])];
  }
  sorted.overflow_from = (sorted.value[static_cast<size_t>(t.count - 1)] + next_after_last) / 2;
  return sorted;
}

/// Nearest entry, ties to the even code. `magnitude` is finite and within the table.
uint8_t nearest_code(const CodeTable& t, float magnitude) {
  const float* begin = t.value.data();
  const float* end = begin + t.count;
  const float* above = std::lower_bound(begin, end, magnitude);
  if (above == end) return t.code[static_cast<size_t>(t.count - 1)];
  const auto i = static_cast<size_t>(above - begin);
  if (*above == magnitude || i == 0) return t.code[i];
  const double to_above = static_cast<double>(*above) - magnitude;
  const double to_below = static_cast<double>(magnitude) - t.value[i - 1];
  if (to_above != to_below) return to_above < to_below ? t.code[i] : t.code[i - 1];
  return (t.code[i] & 1) == 0 ? t.code[i] : t.code[i - 1];
}

float decode_e4m3(uint8_t code) {
  const int exponent = (code >> 3) & 15;
  const int mantissa = code & 7;
  float v = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                          : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  if ((code & 0x7f) == 0x7f) v = std::numeric_limits<float>::quiet_NaN();
  return code & 0x80 ? -v : v;
}

float decode_hf8(uint8_t code) {
  if (code == 0x80) return std::numeric_limits<float>::quiet_NaN();
  const int rest = code & 0x7f;
  float v;
  if (rest == 0x6f) {
    v = std::numeric_limits<float>::infinity();
  } else if (rest < 8) {  // dot 0000: powers of two below the normal range
    v = rest == 0 ? 0.0f : std::ldexp(1.0f, rest - 23);
  } else {
    // The prefix tells how many of the following bits are exponent; the exponent is sign and magnitude
    // with a leading one that is not stored.
    int exponent_bits, field_bits;
    if (rest >= 0x60) {
      exponent_bits = 4, field_bits = 5;
    } else if (rest >= 0x40) {
      exponent_bits = 3, field_bits = 5;
    } else if (rest >= 0x20) {
      exponent_bits = 2, field_bits = 5;
    } else if (rest >= 0x10) {
      exponent_bits = 1, field_bits = 4;
    } else {
      exponent_bits = 0, field_bits = 3;
    }
    const int mantissa_bits = field_bits - exponent_bits;
    const int field = rest & ((1 << field_bits) - 1);
    const int mantissa = field & ((1 << mantissa_bits) - 1);
    int exponent = 0;
    if (exponent_bits > 0) {
      const int stored = field >> mantissa_bits;
      const int low = stored & ((1 << (exponent_bits - 1)) - 1);
      const int magnitude = (1 << (exponent_bits - 1)) | low;
      exponent = (stored >> (exponent_bits - 1)) & 1 ? -magnitude : magnitude;
    }
    v = std::ldexp(static_cast<float>((1 << mantissa_bits) + mantissa), exponent - mantissa_bits);
  }
  return code & 0x80 ? -v : v;
}

float decode_fp4(uint8_t code) {
  static constexpr float kValues[8] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  const float v = kValues[code & 7];
  return code & 8 ? -v : v;
}

const CodeTable& e4m3_table() {
  static const CodeTable t = make_table(decode_e4m3, 128, 480.0f);
  return t;
}
const CodeTable& hf8_table() {
  static const CodeTable t = make_table(decode_hf8, 128, 49152.0f);
  return t;
}
const CodeTable& fp4_table() {
  static const CodeTable t = make_table(decode_fp4, 8, 8.0f);
  return t;
}

}  // namespace

float fp8e4m3_to_fp32(uint8_t code) { return decode_e4m3(code); }
uint8_t fp32_to_fp8e4m3(float value) {
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  const float magnitude = std::fabs(value);
  if (!(magnitude <= e4m3_table().overflow_from)) return static_cast<uint8_t>(sign | 0x7f);
  return static_cast<uint8_t>(sign | nearest_code(e4m3_table(), magnitude));
}

float fp8e5m2_to_fp32(uint8_t code) { return fp16_to_fp32(static_cast<uint16_t>(code << 8)); }
uint8_t fp32_to_fp8e5m2(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint8_t>((bits >> 24) & 0x80u);
  if (std::isnan(value)) return static_cast<uint8_t>(sign | 0x7e);
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude >= 61440.0)
    return static_cast<uint8_t>(sign | 0x7c);  // the tie above 57344 goes to infinity (even)
  if (magnitude == 0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), -14);
  const double quantum = std::ldexp(1.0, exponent - 2);
  const double scaled =
      round_by_mode(magnitude / quantum, CastMode::kRint);  // division by a power of two is exact
  const auto steps = static_cast<int>(scaled);              // 0..8
  return static_cast<uint8_t>(sign | static_cast<uint8_t>(((exponent + 14) << 2) + steps));
}

float fp8e8m0_to_fp32(uint8_t code) {
  if (code == 255) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(1.0f, code - 127);
}
uint8_t fp32_to_fp8e8m0(float value) {
  if (!(value > 0) || std::isinf(value)) return 255;
  const int exponent = std::ilogb(value);
  const float fraction = std::ldexp(value, -exponent);  // [1, 2)
  int code = exponent + 127;
  if (fraction > 1.5f || (fraction == 1.5f && (code & 1))) ++code;
  return static_cast<uint8_t>(std::clamp(code, 0, 254));
}

float hf8_to_fp32(uint8_t code) { return decode_hf8(code); }
uint8_t fp32_to_hf8(float value) {
  if (std::isnan(value)) return 0x80;
  const uint8_t sign = std::signbit(value) ? 0x80 : 0;
  const float magnitude = std::fabs(value);
  if (magnitude > hf8_table().overflow_from) return static_cast<uint8_t>(sign | 0x6f);
  const uint8_t code = nearest_code(hf8_table(), magnitude);
  return code == 0 ? 0 : static_cast<uint8_t>(sign | code);  // there is no negative zero
}

float fp4_to_fp32(uint8_t code) { return decode_fp4(code); }
uint8_t fp32_to_fp4(float value) {
  if (std::isnan(value)) return 0;
  const uint8_t sign = std::signbit(value) ? 8 : 0;
  return static_cast<uint8_t>(sign | nearest_code(fp4_table(), std::fabs(value)));
}

}  // namespace pypto
