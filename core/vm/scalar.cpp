// SPDX-License-Identifier: Apache-2.0
#include "core/vm/scalar.h"

#include <cmath>
#include <limits>

#include "core/base/diagnostic.h"
#include "core/base/numeric.h"

namespace pypto::vm {
namespace {

using ir::OpId;

int64_t floor_div(int64_t a, int64_t b) {
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  const int64_t q = a / b;
  return (a % b != 0 && (a % b < 0) != (b < 0)) ? q - 1 : q;
}

int64_t floor_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t r = a % b;
  return (r != 0 && (r < 0) != (b < 0)) ? r + b : r;
}

[[noreturn]] void divide_by_zero(const char* what, int64_t dividend) {
  fail(ErrorClass::kProgramFault,
       std::string("integer ") + what + " by zero: the dividend is " + std::to_string(dividend), {},
       "guard the divisor, or make it a positive constant");
}

Scalar integer_op(OpId op, DType dtype, int64_t a, int64_t b) {
  const bool is_unsigned64 = dtype == DType::kUInt64;
  const auto ua = static_cast<uint64_t>(a);
  const auto ub = static_cast<uint64_t>(b);
  auto wrap = [dtype](uint64_t v) { return scalar_of(wrap_integer(static_cast<int64_t>(v), dtype)); };
  switch (op) {
    case OpId::k_scalar_add:
      return wrap(ua + ub);
    case OpId::k_scalar_sub:
      return wrap(ua - ub);
    case OpId::k_scalar_mul:
      return wrap(ua * ub);
    case OpId::k_scalar_floordiv:
      if (b == 0) divide_by_zero("division", a);
      return is_unsigned64 ? wrap(ua / ub) : wrap(static_cast<uint64_t>(floor_div(a, b)));
    case OpId::k_scalar_mod:
      if (b == 0) divide_by_zero("remainder", a);
      return is_unsigned64 ? wrap(ua % ub) : wrap(static_cast<uint64_t>(floor_mod(a, b)));
    case OpId::k_scalar_lshift:
    case OpId::k_scalar_rshift: {
      const int bits = dtype_bits(dtype);
      if (b < 0 || b >= bits) {
        fail(ErrorClass::kProgramFault, "shift count " + std::to_string(b) + " is outside 0.." +
                                            std::to_string(bits - 1) + " for " +
                                            std::string(dtype_text(dtype)));
      }
      if (op == OpId::k_scalar_lshift) return wrap(ua << b);
      return is_signed_int(dtype) || dtype == DType::kBool ? scalar_of(a >> b) : wrap(ua >> b);
    }
    case OpId::k_min:
      return scalar_of(is_unsigned64 ? static_cast<int64_t>(std::min(ua, ub)) : std::min(a, b));
    case OpId::k_max:
      return scalar_of(is_unsigned64 ? static_cast<int64_t>(std::max(ua, ub)) : std::max(a, b));
    case OpId::k_scalar_eq:
      return scalar_of(int64_t{a == b});
    case OpId::k_scalar_ne:
      return scalar_of(int64_t{a != b});
    case OpId::k_scalar_lt:
      return scalar_of(int64_t{is_unsigned64 ? ua < ub : a < b});
    case OpId::k_scalar_le:
      return scalar_of(int64_t{is_unsigned64 ? ua <= ub : a <= b});
    case OpId::k_scalar_gt:
      return scalar_of(int64_t{is_unsigned64 ? ua > ub : a > b});
    case OpId::k_scalar_ge:
      return scalar_of(int64_t{is_unsigned64 ? ua >= ub : a >= b});
    case OpId::k_scalar_and:
      return scalar_of(int64_t{a != 0 && b != 0});
    case OpId::k_scalar_or:
      return scalar_of(int64_t{a != 0 || b != 0});
    case OpId::k_scalar_neg:
      return wrap(0 - ua);
    case OpId::k_scalar_invert:
      return wrap(~ua);
    case OpId::k_scalar_not:
      return scalar_of(int64_t{a == 0});
    default:
      PYPTO_CHECK(false, "not an integer scalar operation");
  }
}

Scalar float_op(OpId op, DType dtype, double a, double b) {
  // FP16 and BF16 are computed in FP32, then rounded once more (01 L-17).
  const auto fa = static_cast<float>(a);
  const auto fb = static_cast<float>(b);
  auto out = [dtype](float v) { return scalar_of(round_float(v, dtype)); };
  switch (op) {
    case OpId::k_scalar_add:
      return out(fa + fb);
    case OpId::k_scalar_sub:
      return out(fa - fb);
    case OpId::k_scalar_mul:
      return out(fa * fb);
    case OpId::k_scalar_truediv:
      return out(fa / fb);
    case OpId::k_scalar_neg:
      return out(-fa);
    case OpId::k_min:
      return out(fb < fa ? fb : fa);
    case OpId::k_max:
      return out(fb > fa ? fb : fa);
    case OpId::k_scalar_eq:
      return scalar_of(int64_t{fa == fb});
    case OpId::k_scalar_ne:
      return scalar_of(int64_t{fa != fb});
    case OpId::k_scalar_lt:
      return scalar_of(int64_t{fa < fb});
    case OpId::k_scalar_le:
      return scalar_of(int64_t{fa <= fb});
    case OpId::k_scalar_gt:
      return scalar_of(int64_t{fa > fb});
    case OpId::k_scalar_ge:
      return scalar_of(int64_t{fa >= fb});
    case OpId::k_scalar_not:
      return scalar_of(int64_t{fa == 0});
    case OpId::k_scalar_and:
      return scalar_of(int64_t{fa != 0 && fb != 0});
    case OpId::k_scalar_or:
      return scalar_of(int64_t{fa != 0 || fb != 0});
    default:
      PYPTO_CHECK(false, "not a float scalar operation");
  }
}

}  // namespace

double round_float(double value, DType dtype) {
  switch (dtype) {
    case DType::kFp16:
      return fp16_to_fp32(fp32_to_fp16(static_cast<float>(value)));
    case DType::kBf16:
      return bf16_to_fp32(fp32_to_bf16(static_cast<float>(value)));
    default:
      return static_cast<double>(static_cast<float>(value));
  }
}

bool fits(int64_t value, DType dtype) {
  if (dtype == DType::kUInt64) return value >= 0;
  return wrap_integer(value, dtype) == value;
}

Scalar scalar_op(OpId op, DType dtype, Scalar a, Scalar b) {
  return is_float(dtype) ? float_op(op, dtype, a.f, b.f) : integer_op(op, dtype, a.i, b.i);
}

Scalar cast_scalar(Scalar value, DType from, DType to, bool* out_of_range) {
  if (is_float(from)) {
    if (is_float(to)) return scalar_of(round_float(value.f, to));
    if (to == DType::kBool) return scalar_of(int64_t{value.f != 0});
    const double v = value.f;
    if (std::isnan(v)) {
      if (out_of_range) *out_of_range = true;
      return scalar_of(int64_t{0});
    }
    const double t = std::trunc(v);
    const int bits = dtype_bits(to);
    if (bits == 64) {
      if (to == DType::kUInt64) {
        if (t >= 18446744073709551616.0 || t < 0) {
          if (out_of_range) *out_of_range = true;
          return scalar_of(t < 0 ? int64_t{0} : int64_t{-1});
        }
        return scalar_of(static_cast<int64_t>(static_cast<uint64_t>(t)));
      }
      if (t >= 9223372036854775808.0 || t < -9223372036854775808.0) {
        if (out_of_range) *out_of_range = true;
        return scalar_of(t < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max());
      }
      return scalar_of(static_cast<int64_t>(t));
    }
    // 02 O-1104: 32-bit targets saturate; narrower ones saturate to INT32, then keep the low bits.
    const double low = to == DType::kUInt32 ? 0.0 : -2147483648.0;
    const double high = to == DType::kUInt32 ? 4294967295.0 : 2147483647.0;
    const double clamped = std::min(std::max(t, low), high);
    const auto wide = static_cast<int64_t>(clamped);
    const int64_t result = wrap_integer(wide, to);
    if (out_of_range && static_cast<double>(result) != t) *out_of_range = true;
    return scalar_of(result);
  }
  if (is_float(to)) {
    // One rounding from the integer (nearest even): int64 -> float directly.
    const float f = from == DType::kUInt64 ? static_cast<float>(static_cast<uint64_t>(value.i))
                                           : static_cast<float>(value.i);
    if (to == DType::kFp16 || to == DType::kBf16) {
      // Through double is exact for every integer a 16-bit float can tell apart.
      const double d = from == DType::kUInt64 ? static_cast<double>(static_cast<uint64_t>(value.i))
                                              : static_cast<double>(value.i);
      return scalar_of(round_float(d, to));
    }
    return scalar_of(static_cast<double>(f));
  }
  return scalar_of(wrap_integer(value.i, to));
}

Scalar load_element(const uint8_t* p, DType dtype) {
  return is_float(dtype) ? scalar_of(read_float(dtype, p)) : scalar_of(read_integer(dtype, p));
}

void store_element(uint8_t* p, DType dtype, Scalar value) {
  if (is_float(dtype)) {
    write_float(dtype, p, value.f);
  } else {
    write_integer(dtype, p, value.i);
  }
}

void fill_elements(uint8_t* p, DType dtype, double value, int64_t count) {
  const int size = dtype_bytes(dtype);
  uint8_t one[8] = {};
  store_element(one, dtype, is_float(dtype) ? scalar_of(value) : scalar_of(static_cast<int64_t>(value)));
  for (int64_t i = 0; i < count; ++i) std::memcpy(p + i * size, one, static_cast<size_t>(size));
}

}  // namespace pypto::vm
