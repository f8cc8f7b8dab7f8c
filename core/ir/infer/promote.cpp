// SPDX-License-Identifier: Apache-2.0
// Promotion and conversion of dtypes (02 O-301, O-304; 01 L-18).
#include <cfenv>
#include <cmath>
#include <limits>

#include "core/ir/infer/typer.h"

namespace pypto::ir {
namespace {

bool promotable(DType d) { return is_float(d) || is_int(d); }

}  // namespace

DType promote(DType a, DType b) {
  if (!promotable(a) || !promotable(b)) return DType::kNone;
  if (a == b) return a;
  if (is_float(a) != is_float(b)) return is_float(a) ? a : b;
  const int bits_a = dtype_bits(a);
  const int bits_b = dtype_bits(b);
  if (bits_a != bits_b) return bits_a > bits_b ? a : b;
  if (is_signed_int(a) != is_signed_int(b)) return is_signed_int(a) ? a : b;
  return a;
}

namespace infer {
namespace {

/// Rounds to nearest even with `mantissa` stored bits and least exponent `least`; overflow gives infinity.
double round_bits(double v, int mantissa, int least, double greatest) {
  if (v == 0 || !std::isfinite(v)) return v;
  const int exponent = std::max(std::ilogb(v), least);
  const double quantum = std::ldexp(1.0, exponent - mantissa);
  const double r = std::nearbyint(v / quantum) * quantum;
  if (std::fabs(r) > greatest) return std::copysign(std::numeric_limits<double>::infinity(), v);
  return r;
}

}  // namespace

double round_to_dtype(double value, DType dtype) {
  switch (dtype) {
    case DType::kFp32:
      return static_cast<double>(static_cast<float>(value));
    case DType::kFp16:
      return round_bits(value, 10, -14, 65504.0);
    case DType::kBf16:
      return round_bits(value, 7, -126, 3.3895313892515355e38);
    default:
      return value;
  }
}

int64_t wrap_to_dtype(int64_t value, DType dtype) {
  if (dtype == DType::kBool) return value != 0;
  const int bits = dtype_bits(dtype);
  if (bits >= 64) return value;
  const auto kept = static_cast<uint64_t>(value) & ((uint64_t{1} << bits) - 1);
  if (is_signed_int(dtype) && (kept >> (bits - 1)) != 0)
    return static_cast<int64_t>(kept | (~uint64_t{0} << bits));
  return static_cast<int64_t>(kept);
}

bool fits_dtype(int64_t value, DType dtype) {
  if (dtype == DType::kUInt64) return value >= 0;
  return wrap_to_dtype(value, dtype) == value;
}

ExprPtr cast_scalar(const ExprPtr& e, DType dtype) {
  const DType own = e->type->dtype;
  if (own == dtype) return e;
  if (e->kind == ExprKind::kInt) {
    if (dtype == DType::kBool) return bool_const(e->int_value != 0, e->span);
    if (is_float(dtype)) {
      const double v = own == DType::kUInt64 ? static_cast<double>(static_cast<uint64_t>(e->int_value))
                                             : static_cast<double>(e->int_value);
      return float_const(round_to_dtype(v, dtype), dtype, e->span);
    }
    return int_const(wrap_to_dtype(e->int_value, dtype), dtype, e->span);
  }
  if (e->kind == ExprKind::kFloat) {
    if (dtype == DType::kBool) return bool_const(e->float_value != 0, e->span);
    if (is_float(dtype)) return float_const(round_to_dtype(e->float_value, dtype), dtype, e->span);
    const double whole = std::trunc(e->float_value);
    const int bits = dtype_bits(dtype);
    const double low = is_signed_int(dtype) ? -std::ldexp(1.0, bits - 1) : 0.0;
    const double high = std::ldexp(1.0, is_signed_int(dtype) ? bits - 1 : bits);
    if (!(whole >= low && whole < high)) {
      fail(ErrorClass::kValueError,
           "the constant " + std::to_string(e->float_value) + " cannot be converted to " +
               std::string(dtype_text(dtype)) + ": it is out of range",
           {}, "use a value in range or a wider dtype");
    }
    const int64_t v = dtype == DType::kUInt64 ? static_cast<int64_t>(static_cast<uint64_t>(whole))
                                              : static_cast<int64_t>(whole);
    return int_const(v, dtype, e->span);
  }
  AttrMap attrs;
  attrs.set(AttrKey::k_target_type, static_cast<int64_t>(dtype));
  return op_expr(OpId::k_scalar_cast, {e, nullptr}, attrs, scalar_type(dtype), e->span);
}

}  // namespace infer

ExprPtr convert_scalar(ExprPtr value, DType dtype, const std::string& what) {
  if (!value || !value->type || (!value->type->is_scalar() && value->kind != ExprKind::kNone)) {
    fail(ErrorClass::kParserTypeError, what + ": expected a scalar of dtype " +
                                           std::string(dtype_text(dtype)) + ", got " +
                                           (value && value->type ? type_text(*value->type) : "nothing"));
  }
  const DType own = value->type->dtype;
  if (own == dtype) {
    if (!value->untyped) return value;
    auto typed = std::make_shared<Expr>(*value);
    typed->untyped = false;
    if (typed->kind == ExprKind::kFloat)
      typed->float_value = infer::round_to_dtype(typed->float_value, dtype);
    return typed;
  }
  const auto mismatch = [&]() {
    const bool index = own == DType::kIndex && is_float(dtype);
    fail(
        ErrorClass::kParserTypeError,
        what + ": expected dtype " + std::string(dtype_text(dtype)) + ", got " + std::string(dtype_text(own)),
        {},
        "convert it explicitly: pl.cast(value, pl." + std::string(dtype_info(dtype).member) + ")" +
            (index ? "; an index is an integer" : ""));
  };
  if (value->kind == ExprKind::kInt && own != DType::kBool &&
      (is_int(dtype) || (value->untyped && is_float(dtype)))) {
    if (is_float(dtype)) {
      return float_const(infer::round_to_dtype(static_cast<double>(value->int_value), dtype), dtype,
                         value->span);
    }
    if (!infer::fits_dtype(value->int_value, dtype)) {
      fail(ErrorClass::kParserTypeError,
           what + ": the value " + std::to_string(value->int_value) + " does not fit dtype " +
               std::string(dtype_text(dtype)),
           {}, "use a value in range, or a wider dtype");
    }
    return int_const(value->int_value, dtype, value->span);
  }
  if (value->kind == ExprKind::kFloat && is_float(dtype) && value->untyped) {
    return float_const(infer::round_to_dtype(value->float_value, dtype), dtype, value->span);
  }
  if (!is_int(own) || !is_int(dtype)) mismatch();
  AttrMap attrs;
  attrs.set(AttrKey::k_target_type, static_cast<int64_t>(dtype));
  const bool narrows = dtype_bits(dtype) < dtype_bits(own) ||
                       (is_signed_int(own) && is_unsigned_int(dtype)) ||
                       (dtype_bits(dtype) == dtype_bits(own) && is_unsigned_int(own) && is_signed_int(dtype));
  // Range-checked at run time (01 L-18): the name is what the report calls the value.
  if (narrows) attrs.set(AttrKey::k_name, what);
  return op_expr(OpId::k_scalar_cast, {value, nullptr}, attrs, scalar_type(dtype), value->span);
}

}  // namespace pypto::ir
