// SPDX-License-Identifier: Apache-2.0
#include "core/base/numeric.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace pypto {
namespace {

/// The 24 leading bits of a magnitude, with everything below folded into the last one: rounding this to fewer
/// than 24 bits gives the same as rounding the magnitude itself.
float sticky_float(uint64_t magnitude) {
  const int extra = 64 - std::countl_zero(magnitude | 1) - 24;
  if (extra <= 0) return static_cast<float>(magnitude);
  uint64_t head = magnitude >> extra;
  if (magnitude & ((uint64_t{1} << extra) - 1)) head |= 1;
  return std::ldexp(static_cast<float>(head), extra);
}

uint64_t magnitude_of(int64_t value) {
  return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

template <class T>
T load_as(const void* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <class T>
void store_as(void* p, T v) {
  std::memcpy(p, &v, sizeof v);
}

template <class F>
F round_mode(F value, CastMode mode) {
  if (!std::isfinite(value)) return value;
  const F toward_zero = std::trunc(value);
  const F fraction = std::fabs(value - toward_zero);  // exact
  const F one = std::copysign(F{1}, value);
  switch (mode) {
    case CastMode::kNone:
    case CastMode::kTrunc:
      return toward_zero;
    case CastMode::kFloor:
      return std::floor(value);
    case CastMode::kCeil:
      return std::ceil(value);
    case CastMode::kRound:
      return fraction >= F{0.5} ? toward_zero + one : toward_zero;
    case CastMode::kRint:
    case CastMode::kOdd: {
      if (fraction != F{0.5}) return fraction > F{0.5} ? toward_zero + one : toward_zero;
      const bool is_odd = std::fmod(toward_zero, F{2}) != F{0};
      return is_odd == (mode == CastMode::kOdd) ? toward_zero : toward_zero + one;
    }
  }
  return toward_zero;
}

}  // namespace

uint16_t int64_to_fp16(int64_t value) {
  const uint16_t magnitude = uint64_to_fp16(magnitude_of(value));
  return static_cast<uint16_t>(value < 0 ? magnitude | 0x8000u : magnitude);
}
uint16_t int64_to_bf16(int64_t value) {
  const uint16_t magnitude = uint64_to_bf16(magnitude_of(value));
  return static_cast<uint16_t>(value < 0 ? magnitude | 0x8000u : magnitude);
}
uint16_t uint64_to_fp16(uint64_t value) { return fp32_to_fp16(sticky_float(value)); }
uint16_t uint64_to_bf16(uint64_t value) { return fp32_to_bf16(sticky_float(value)); }

float round_by_mode(float value, CastMode mode) { return round_mode(value, mode); }
double round_by_mode(double value, CastMode mode) { return round_mode(value, mode); }

int32_t saturate_int32(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 2147483647.0) return std::numeric_limits<int32_t>::max();
  if (value <= -2147483648.0) return std::numeric_limits<int32_t>::min();
  return static_cast<int32_t>(value);
}
int64_t saturate_int64(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 9223372036854775808.0) return std::numeric_limits<int64_t>::max();
  if (value <= -9223372036854775808.0) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}
uint32_t saturate_uint32(double value) {
  if (!(value > 0)) return 0;
  if (value >= 4294967295.0) return std::numeric_limits<uint32_t>::max();
  return static_cast<uint32_t>(value);
}
uint64_t saturate_uint64(double value) {
  if (!(value > 0)) return 0;
  if (value >= 18446744073709551616.0) return std::numeric_limits<uint64_t>::max();
  return static_cast<uint64_t>(value);
}

int64_t float_to_integer(double value, DType dtype) {
  switch (dtype) {
    case DType::kInt4:
      return std::isnan(value) ? 0 : static_cast<int64_t>(std::clamp(value, -8.0, 7.0));
    case DType::kUInt4:
      return std::isnan(value) ? 0 : static_cast<int64_t>(std::clamp(value, 0.0, 15.0));
    case DType::kInt32:
      return saturate_int32(value);
    case DType::kUInt32:
      return saturate_uint32(value);
    case DType::kUInt64:
      return static_cast<int64_t>(saturate_uint64(value));
    case DType::kInt64:
    case DType::kIndex:
    case DType::kTaskId:
      return saturate_int64(value);
    case DType::kBool:
      return value != 0;
    default:
      return wrap_integer(saturate_int32(value), dtype);
  }
}

bool integer_overflows(double value, DType dtype) {
  if (std::isnan(value)) return true;
  const int bits = dtype_bits(dtype);
  if (is_unsigned_int(dtype)) return value < 0 || value >= std::ldexp(1.0, bits);
  if (dtype == DType::kBool) return value != 0 && value != 1;
  return value < -std::ldexp(1.0, bits - 1) || value >= std::ldexp(1.0, bits - 1);
}

int64_t wrap_integer(int64_t value, DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return value != 0;
    case DType::kInt4:
      return static_cast<int64_t>(static_cast<uint64_t>(value) << 60) >> 60;
    case DType::kUInt4:
      return value & 15;
    case DType::kInt8:
      return static_cast<int8_t>(value);
    case DType::kInt16:
      return static_cast<int16_t>(value);
    case DType::kInt32:
      return static_cast<int32_t>(value);
    case DType::kUInt8:
      return static_cast<uint8_t>(value);
    case DType::kUInt16:
      return static_cast<uint16_t>(value);
    case DType::kUInt32:
      return static_cast<uint32_t>(value);
    default:
      return value;
  }
}

double read_float(DType dtype, const void* element) {
  switch (dtype) {
    case DType::kFp32:
      return load_as<float>(element);
    case DType::kFp16:
      return fp16_to_fp32(load_as<uint16_t>(element));
    case DType::kBf16:
      return bf16_to_fp32(load_as<uint16_t>(element));
    case DType::kFp8E4M3FN:
      return fp8e4m3_to_fp32(load_as<uint8_t>(element));
    case DType::kFp8E5M2:
      return fp8e5m2_to_fp32(load_as<uint8_t>(element));
    case DType::kFp8E8M0:
      return fp8e8m0_to_fp32(load_as<uint8_t>(element));
    case DType::kHf8:
      return hf8_to_fp32(load_as<uint8_t>(element));
    case DType::kFp4:
      return fp4_to_fp32(load_as<uint8_t>(element));
    default:
      return static_cast<double>(read_integer(dtype, element));
  }
}

int64_t read_integer(DType dtype, const void* element) {
  switch (dtype_bytes(dtype)) {
    case 1:
      return wrap_integer(load_as<uint8_t>(element), dtype);
    case 2:
      return wrap_integer(load_as<uint16_t>(element), dtype);
    case 4:
      return wrap_integer(load_as<uint32_t>(element), dtype);
    default:
      return load_as<int64_t>(element);
  }
}

void write_float(DType dtype, void* element, double value) {
  const auto single = static_cast<float>(value);
  switch (dtype) {
    case DType::kFp32:
      store_as(element, single);
      break;
    case DType::kFp16:
      store_as(element, fp32_to_fp16(single));
      break;
    case DType::kBf16:
      store_as(element, fp32_to_bf16(single));
      break;
    case DType::kFp8E4M3FN:
      store_as(element, fp32_to_fp8e4m3(single));
      break;
    case DType::kFp8E5M2:
      store_as(element, fp32_to_fp8e5m2(single));
      break;
    case DType::kFp8E8M0:
      store_as(element, fp32_to_fp8e8m0(single));
      break;
    case DType::kHf8:
      store_as(element, fp32_to_hf8(single));
      break;
    case DType::kFp4:
      store_as(element, fp32_to_fp4(single));
      break;
    default:
      write_integer(dtype, element, float_to_integer(value, dtype));
      break;
  }
}

void write_integer(DType dtype, void* element, int64_t value) {
  value = wrap_integer(value, dtype);
  switch (dtype_bytes(dtype)) {
    case 1:
      store_as(element, static_cast<uint8_t>(value));
      break;
    case 2:
      store_as(element, static_cast<uint16_t>(value));
      break;
    case 4:
      store_as(element, static_cast<uint32_t>(value));
      break;
    default:
      store_as(element, value);
      break;
  }
}

void write_extreme(DType dtype, void* element, bool greatest) {
  if (is_float(dtype)) {
    switch (dtype) {
      case DType::kFp8E4M3FN:
        store_as(element, static_cast<uint8_t>(greatest ? 0x7e : 0xfe));
        break;
      case DType::kFp8E8M0:
        store_as(element, static_cast<uint8_t>(greatest ? 254 : 0));
        break;
      case DType::kFp4:
        store_as(element, static_cast<uint8_t>(greatest ? 7 : 15));
        break;
      default:
        write_float(
            dtype, element,
            greatest ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity());
    }
    return;
  }
  const int bits = dtype == DType::kBool ? 1 : dtype_bits(dtype);
  if (is_signed_int(dtype)) {
    const int64_t top = std::numeric_limits<int64_t>::max() >> (64 - bits);
    write_integer(dtype, element, greatest ? top : -top - 1);
  } else {
    write_integer(dtype, element, greatest ? static_cast<int64_t>(~uint64_t{0} >> (64 - bits)) : 0);
  }
}

}  // namespace pypto
