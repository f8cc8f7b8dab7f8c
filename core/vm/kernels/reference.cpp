// SPDX-License-Identifier: Apache-2.0
#include "core/vm/kernels/reference.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace pypto::vm::reference {
namespace {

float load_float(DType dtype, const void* element) { return static_cast<float>(read_float(dtype, element)); }

/// Integers as 64 bits with the dtype's extension; all arithmetic below is modulo 2^64 and then wrapped.
uint64_t load_bits(DType dtype, const void* element) {
  return static_cast<uint64_t>(read_integer(dtype, element));
}

bool int_less(DType dtype, uint64_t a, uint64_t b) {
  return is_unsigned_int(dtype) ? a < b : static_cast<int64_t>(a) < static_cast<int64_t>(b);
}

uint64_t int_divide(DType dtype, uint64_t a, uint64_t b, bool remainder) {
  if (b == 0) return 0;
  if (is_unsigned_int(dtype)) return remainder ? a % b : a / b;
  const auto x = static_cast<int64_t>(a), y = static_cast<int64_t>(b);
  if (y == -1) return remainder ? 0 : 0 - a;
  return static_cast<uint64_t>(remainder ? x % y : x / y);
}

float float_binary(BinaryOp op, DType dtype, float a, float b) {
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kDiv:
      return a / b;
    case BinaryOp::kMax:
      return a > b ? a : b;
    case BinaryOp::kMin:
      return a < b ? a : b;
    case BinaryOp::kFmod:
      return std::fmod(a, b);
    case BinaryOp::kRem: {
      const float r = std::fmod(a, b);
      return r != 0 && std::signbit(r) != std::signbit(b) ? r + b : r;
    }
    case BinaryOp::kExpDif: {
      alignas(4) uint8_t rounded[4];
      write_float(dtype, rounded, a - b);
      return static_cast<float>(std::exp(static_cast<long double>(load_float(dtype, rounded))));
    }
    case BinaryOp::kLeaky:
      return a > 0 ? a : a * b;
    default:
      return std::numeric_limits<float>::quiet_NaN();
  }
}

uint64_t int_binary(BinaryOp op, DType dtype, uint64_t a, uint64_t b) {
  const auto bits = static_cast<uint64_t>(dtype_bits(dtype));
  const bool negative = !is_unsigned_int(dtype) && static_cast<int64_t>(a) < 0;
  switch (op) {
    case BinaryOp::kAdd:
      return a + b;
    case BinaryOp::kSub:
      return a - b;
    case BinaryOp::kMul:
      return a * b;
    case BinaryOp::kDiv:
      return int_divide(dtype, a, b, false);
    case BinaryOp::kMax:
      return int_less(dtype, a, b) ? b : a;
    case BinaryOp::kMin:
      return int_less(dtype, b, a) ? b : a;
    case BinaryOp::kFmod:
      return int_divide(dtype, a, b, true);
    case BinaryOp::kRem: {
      const uint64_t r = int_divide(dtype, a, b, true);
      const bool differs =
          !is_unsigned_int(dtype) && (static_cast<int64_t>(r) < 0) != (static_cast<int64_t>(b) < 0);
      return r != 0 && differs ? r + b : r;
    }
    case BinaryOp::kAnd:
      return a & b;
    case BinaryOp::kOr:
      return a | b;
    case BinaryOp::kXor:
      return a ^ b;
    case BinaryOp::kShl:
      return b >= bits ? 0 : a << b;
    case BinaryOp::kShr:
      if (b >= bits) return negative ? ~uint64_t{0} : 0;
      return negative ? static_cast<uint64_t>(static_cast<int64_t>(a) >> b) : a >> b;
    default:
      return 0;
  }
}

}  // namespace

long double load(DType dtype, const void* element) {
  if (is_float(dtype)) return read_float(dtype, element);
  const int64_t v = read_integer(dtype, element);
  return is_unsigned_int(dtype) ? static_cast<long double>(static_cast<uint64_t>(v))
                                : static_cast<long double>(v);
}

void binary(BinaryOp op, DType dtype, const void* lhs, const void* rhs, void* out) {
  if (is_float(dtype)) {
    write_float(dtype, out, float_binary(op, dtype, load_float(dtype, lhs), load_float(dtype, rhs)));
  } else {
    write_integer(dtype, out,
                  static_cast<int64_t>(int_binary(op, dtype, load_bits(dtype, lhs), load_bits(dtype, rhs))));
  }
}

void unary(UnaryOp op, DType dtype, const void* in, void* out) {
  if (!is_float(dtype)) {
    const auto x = static_cast<int64_t>(load_bits(dtype, in));
    int64_t y = 0;
    switch (op) {
      case UnaryOp::kNeg:
        y = static_cast<int64_t>(0 - static_cast<uint64_t>(x));
        break;
      case UnaryOp::kAbs:
        y = x < 0 && !is_unsigned_int(dtype) ? static_cast<int64_t>(0 - static_cast<uint64_t>(x)) : x;
        break;
      case UnaryOp::kRelu:
        y = x > 0 || is_unsigned_int(dtype) ? x : 0;
        break;
      case UnaryOp::kNot:
        y = ~x;
        break;
      case UnaryOp::kRecip:
        y = x == 1 || x == -1 ? x : 0;
        break;
      default:
        break;
    }
    write_integer(dtype, out, y);
    return;
  }
  const float x = load_float(dtype, in);
  const auto wide = static_cast<long double>(x);
  long double y = 0;
  switch (op) {
    case UnaryOp::kNeg:
      y = -wide;
      break;
    case UnaryOp::kAbs:
      y = std::fabs(wide);
      break;
#define PYPTO_FLOAT_UNARY(id, Name, body, definition)                  \
  case UnaryOp::k##Name: {                                             \
    y = [](long double x) -> long double { return definition; }(wide); \
    break;                                                             \
  }
#include "core/ir/float_unary.def"
#undef PYPTO_FLOAT_UNARY
    case UnaryOp::kLog:
      y = std::log(wide);
      break;
    case UnaryOp::kRsqrt:
      y = 1.0L / std::sqrt(wide);
      break;
    case UnaryOp::kRecip:
      y = 1.0L / wide;
      break;
    case UnaryOp::kSin:
      y = std::sin(wide);
      break;
    case UnaryOp::kCos:
      y = std::cos(wide);
      break;
    case UnaryOp::kRelu:
      y = x < 0 ? 0 : wide;
      break;
    case UnaryOp::kNot:
      break;
  }
  write_float(dtype, out, static_cast<double>(static_cast<float>(y)));
}

void cast(DType from, const void* in, DType to, void* out, CastMode mode) {
  if (!is_float(from)) {
    const int64_t v = read_integer(from, in);
    if (!is_float(to)) return write_integer(to, out, v);
    if (to == DType::kFp16 || to == DType::kBf16) {
      const bool brain = to == DType::kBf16;
      const uint16_t bits = from == DType::kUInt64 ? (brain ? uint64_to_bf16(static_cast<uint64_t>(v))
                                                            : uint64_to_fp16(static_cast<uint64_t>(v)))
                                                   : (brain ? int64_to_bf16(v) : int64_to_fp16(v));
      std::memcpy(out, &bits, 2);
      return;
    }
    const float single =
        from == DType::kUInt64 ? static_cast<float>(static_cast<uint64_t>(v)) : static_cast<float>(v);
    return write_float(to, out, single);
  }
  const float x = load_float(from, in);
  if (is_float(to)) return write_float(to, out, x);
  write_integer(to, out, float_to_integer(round_by_mode(x, mode), to));
}

bool compare(CompareOp op, DType dtype, const void* lhs, const void* rhs) {
  const long double a = load(dtype, lhs), b = load(dtype, rhs);
  switch (op) {
    case CompareOp::kEq:
      return a == b;
    case CompareOp::kNe:
      return a != b;
    case CompareOp::kLt:
      return a < b;
    case CompareOp::kLe:
      return a <= b;
    case CompareOp::kGt:
      return a > b;
    case CompareOp::kGe:
      return a >= b;
  }
  return false;
}

void reduce(ReduceOp op, DType dtype, const void* row, size_t n, void* out) {
  const auto* x = static_cast<const uint8_t*>(row);
  const auto width = static_cast<size_t>(dtype_bytes(dtype));
  const BinaryOp step = op == ReduceOp::kSum    ? BinaryOp::kAdd
                        : op == ReduceOp::kProd ? BinaryOp::kMul
                        : op == ReduceOp::kMax  ? BinaryOp::kMax
                                                : BinaryOp::kMin;
  if (!is_float(dtype)) {
    uint64_t result = load_bits(dtype, x);
    for (size_t i = 1; i < n; ++i) result = int_binary(step, dtype, result, load_bits(dtype, x + i * width));
    return write_integer(dtype, out, static_cast<int64_t>(result));
  }
  const float infinity = std::numeric_limits<float>::infinity();
  const float start = op == ReduceOp::kSum    ? 0.0f
                      : op == ReduceOp::kProd ? 1.0f
                      : op == ReduceOp::kMax  ? -infinity
                                              : infinity;
  std::vector<float> p(16, start);
  for (size_t i = 0; i < n; ++i)
    p[i % 16] = float_binary(step, DType::kFp32, p[i % 16], load_float(dtype, x + i * width));
  for (size_t half = 8; half != 0; half /= 2) {
    for (size_t j = 0; j < half; ++j) p[j] = float_binary(step, DType::kFp32, p[j], p[j + half]);
  }
  write_float(dtype, out, p[0]);
}

int32_t arg(DType dtype, const void* row, size_t n, bool greatest) {
  const auto* x = static_cast<const uint8_t*>(row);
  const auto width = static_cast<size_t>(dtype_bytes(dtype));
  size_t best = 0;
  for (size_t i = 1; i < n; ++i) {
    const long double candidate = load(dtype, x + i * width), value = load(dtype, x + best * width);
    if (greatest ? candidate > value : candidate < value) best = i;
  }
  return static_cast<int32_t>(best);
}

}  // namespace pypto::vm::reference
