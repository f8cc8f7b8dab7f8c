// SPDX-License-Identifier: Apache-2.0
// Scalar arithmetic: Python's operators, pl.max, pl.min, pl.cast of a scalar (01 L-17 - L-22).
#include <algorithm>
#include <cmath>

#include "core/ir/infer/typer.h"

namespace pypto::ir {
namespace {

using infer::round_to_dtype;
using infer::wrap_to_dtype;

enum class Family : uint8_t {
  kArithmetic,
  kTrueDivision,
  kIntegerDivision,
  kShift,
  kOrder,
  kEquality,
  kLogic,
  kExtremum
};

struct OperatorInfo {
  OpId op;
  const char* symbol;
  Family family;
};

constexpr OperatorInfo kOperators[] = {
    {OpId::k_scalar_add, "+", Family::kArithmetic},
    {OpId::k_scalar_sub, "-", Family::kArithmetic},
    {OpId::k_scalar_mul, "*", Family::kArithmetic},
    {OpId::k_scalar_truediv, "/", Family::kTrueDivision},
    {OpId::k_scalar_floordiv, "//", Family::kIntegerDivision},
    {OpId::k_scalar_mod, "%", Family::kIntegerDivision},
    {OpId::k_scalar_lshift, "<<", Family::kShift},
    {OpId::k_scalar_rshift, ">>", Family::kShift},
    {OpId::k_scalar_lt, "<", Family::kOrder},
    {OpId::k_scalar_le, "<=", Family::kOrder},
    {OpId::k_scalar_gt, ">", Family::kOrder},
    {OpId::k_scalar_ge, ">=", Family::kOrder},
    {OpId::k_scalar_eq, "==", Family::kEquality},
    {OpId::k_scalar_ne, "!=", Family::kEquality},
    {OpId::k_scalar_and, "and", Family::kLogic},
    {OpId::k_scalar_or, "or", Family::kLogic},
    {OpId::k_max, "pl.max", Family::kExtremum},
    {OpId::k_min, "pl.min", Family::kExtremum},
};

const OperatorInfo& operator_info(OpId op) {
  for (const auto& info : kOperators) {
    if (info.op == op) return info;
  }
  fail_internal(__FILE__, __LINE__, "not a scalar operator");
}

std::string text_of(DType d) { return std::string(dtype_text(d)); }

bool is_const(const ExprPtr& e) { return e->kind == ExprKind::kInt || e->kind == ExprKind::kFloat; }

ExprPtr as_untyped(ExprPtr e, bool untyped) {
  if (e->untyped == untyped) return e;
  auto copy = std::make_shared<Expr>(*e);
  copy->untyped = untyped;
  return copy;
}

int64_t floor_div(int64_t a, int64_t b) {
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  const int64_t q = a / b;
  return (a % b != 0 && ((a < 0) != (b < 0))) ? q - 1 : q;
}

int64_t fold_int(OpId op, int64_t a, int64_t b, DType dtype) {
  const auto ua = static_cast<uint64_t>(a);
  const auto ub = static_cast<uint64_t>(b);
  const bool wide = dtype == DType::kUInt64;
  switch (op) {
    case OpId::k_scalar_add:
      return static_cast<int64_t>(ua + ub);
    case OpId::k_scalar_sub:
      return static_cast<int64_t>(ua - ub);
    case OpId::k_scalar_mul:
      return static_cast<int64_t>(ua * ub);
    case OpId::k_scalar_floordiv:
      return wide ? static_cast<int64_t>(ua / ub) : floor_div(a, b);
    case OpId::k_scalar_mod:
      return wide ? static_cast<int64_t>(ua % ub)
                  : static_cast<int64_t>(ua - ub * static_cast<uint64_t>(floor_div(a, b)));
    case OpId::k_scalar_lshift:
      return static_cast<int64_t>(ua << ub);
    case OpId::k_scalar_rshift:
      return is_unsigned_int(dtype) ? static_cast<int64_t>(ua >> ub) : a >> b;
    case OpId::k_scalar_eq:
      return a == b;
    case OpId::k_scalar_ne:
      return a != b;
    case OpId::k_scalar_lt:
      return wide ? ua < ub : a < b;
    case OpId::k_scalar_le:
      return wide ? ua <= ub : a <= b;
    case OpId::k_scalar_gt:
      return wide ? ua > ub : a > b;
    case OpId::k_scalar_ge:
      return wide ? ua >= ub : a >= b;
    case OpId::k_scalar_and:
      return a != 0 && b != 0;
    case OpId::k_scalar_or:
      return a != 0 || b != 0;
    case OpId::k_max:
      return wide ? static_cast<int64_t>(std::max(ua, ub)) : std::max(a, b);
    case OpId::k_min:
      return wide ? static_cast<int64_t>(std::min(ua, ub)) : std::min(a, b);
    default:
      fail_internal(__FILE__, __LINE__, "no integer folding for this operator");
  }
}

/// In FP32 and then rounded to the dtype (01 L-17).
double fold_float(OpId op, double a, double b, DType dtype) {
  const auto x = static_cast<float>(a);
  const auto y = static_cast<float>(b);
  float r = 0;
  switch (op) {
    case OpId::k_scalar_add:
      r = x + y;
      break;
    case OpId::k_scalar_sub:
      r = x - y;
      break;
    case OpId::k_scalar_mul:
      r = x * y;
      break;
    case OpId::k_scalar_truediv:
      r = x / y;
      break;
    case OpId::k_max:
      r = std::max(x, y);
      break;
    case OpId::k_min:
      r = std::min(x, y);
      break;
    default:
      fail_internal(__FILE__, __LINE__, "no float folding for this operator");
  }
  return round_to_dtype(static_cast<double>(r), dtype);
}

bool fold_compare(OpId op, double a, double b) {
  switch (op) {
    case OpId::k_scalar_eq:
      return a == b;
    case OpId::k_scalar_ne:
      return a != b;
    case OpId::k_scalar_lt:
      return a < b;
    case OpId::k_scalar_le:
      return a <= b;
    case OpId::k_scalar_gt:
      return a > b;
    default:
      return a >= b;
  }
}

[[noreturn]] void mixed(const OperatorInfo& info, DType a, DType b) {
  fail(ErrorClass::kTypeError,
       std::string("operator '") + info.symbol + "' cannot mix integer and float operands: left is " +
           text_of(a) + ", right is " + text_of(b),
       {}, "convert one side with pl.cast(value, dtype)");
}

/// Both operands as one category; untyped integers beside a float become floats. Returns the promoted dtype.
DType unify(const OperatorInfo& info, ExprPtr& lhs, ExprPtr& rhs) {
  for (const ExprPtr& e : {lhs, rhs}) {
    if (!e || !e->type || !e->type->is_scalar() || e->kind == ExprKind::kDType) {
      fail(ErrorClass::kTypeError, std::string("operator '") + info.symbol + "' takes scalars, got " +
                                       (e && e->type ? type_text(*e->type) : "nothing"));
    }
  }
  const DType a = lhs->type->dtype;
  const DType b = rhs->type->dtype;
  if (a == DType::kTaskId || b == DType::kTaskId) {
    fail(ErrorClass::kParserTypeError,
         std::string("operator '") + info.symbol + "' does not accept task handles (left is " + text_of(a) +
             ", right is " + text_of(b) + "); a handle can only be passed on",
         {}, "use it in deps=[...]");
  }
  if (a == DType::kBool || b == DType::kBool) {
    if (info.family == Family::kLogic) return DType::kBool;
    if (info.family == Family::kEquality && a == b) return DType::kBool;
    fail(ErrorClass::kTypeError,
         std::string("operator '") + info.symbol + "' does not accept bool dtype: left is " + text_of(a) +
             ", right is " + text_of(b),
         {}, "convert the BOOL with pl.cast(value, pl.INT32), or combine conditions with and / or");
  }
  if (is_float(a) != is_float(b)) {
    ExprPtr& integer = is_float(a) ? rhs : lhs;
    const ExprPtr& real = is_float(a) ? lhs : rhs;
    // Beside a float an untyped integer is the equal float of that dtype (01 L-18), and so is a known INDEX:
    // the extent `x.shape[1]` under a name of its own.
    if (integer->kind != ExprKind::kInt || (!integer->untyped && integer->type->dtype != DType::kIndex))
      mixed(info, a, b);
    const DType d = real->type->dtype;
    integer = float_const(round_to_dtype(static_cast<double>(integer->int_value), d), d, integer->span,
                          real->untyped);
    return d;
  }
  // The wider wins; at equal width the left one's dtype.
  return dtype_bits(b) > dtype_bits(a) ? b : a;
}

[[noreturn]] void divide_by_zero(const OperatorInfo& info, const ExprPtr& lhs) {
  std::string left = dim_text(Dim(lhs));
  fail(ErrorClass::kZeroDivisionError,
       "integer division or modulo by zero: " + left + " " + info.symbol + " 0", {},
       "the divisor is a constant 0");
}

ExprPtr infer_unary(OpId op, const ExprPtr& operand, const Span& span) {
  const char* symbol = op == OpId::k_scalar_neg ? "-" : op == OpId::k_scalar_invert ? "~" : "not";
  if (!operand || !operand->type || !operand->type->is_scalar() || operand->type->dtype == DType::kTaskId) {
    fail(ErrorClass::kTypeError, std::string("operator '") + symbol + "' takes a scalar, got " +
                                     (operand && operand->type ? type_text(*operand->type) : "nothing"));
  }
  const DType d = operand->type->dtype;
  if (op == OpId::k_scalar_not) {
    if (operand->kind == ExprKind::kInt) return bool_const(operand->int_value == 0, span);
    if (operand->kind == ExprKind::kFloat) return bool_const(operand->float_value == 0, span);
    return op_expr(op, {operand}, {}, scalar_type(DType::kBool), span);
  }
  if (d == DType::kBool) {
    fail(ErrorClass::kTypeError, std::string("operator '") + symbol + "' does not accept bool dtype", {},
         "use not, or pl.cast(value, pl.INT32) first");
  }
  if (op == OpId::k_scalar_invert) {
    if (!is_int(d)) {
      fail(ErrorClass::kTypeError, "operator '~' takes an integer, got " + text_of(d), {},
           "pl.cast it to an integer first");
    }
    if (operand->kind == ExprKind::kInt) {
      return int_const(wrap_to_dtype(~operand->int_value, d), d, span, operand->untyped);
    }
    return op_expr(op, {operand}, {}, scalar_type(d), span);
  }
  if (operand->kind == ExprKind::kInt) {
    const auto v = static_cast<int64_t>(0 - static_cast<uint64_t>(operand->int_value));
    return int_const(wrap_to_dtype(v, d), d, span, operand->untyped);
  }
  if (operand->kind == ExprKind::kFloat) return float_const(-operand->float_value, d, span, operand->untyped);
  return op_expr(op, {operand}, {}, scalar_type(d), span);
}

/// `/` : two floats, or two constants (01 L-17).
ExprPtr infer_true_division(const OperatorInfo& info, ExprPtr lhs, ExprPtr rhs, DType dtype,
                            const Span& span) {
  if (is_int(dtype)) {
    if (!is_const(lhs) || !is_const(rhs)) {
      fail(
          ErrorClass::kTypeError,
          "operator '/' takes floats, got " + text_of(lhs->type->dtype) + " and " + text_of(rhs->type->dtype),
          {}, "use // for integers, or cast both sides first: pl.cast(value, pl.FP32)");
    }
    if (rhs->int_value == 0) divide_by_zero(info, lhs);
    const double v = static_cast<double>(lhs->int_value) / static_cast<double>(rhs->int_value);
    return float_const(round_to_dtype(v, DType::kFp32), DType::kFp32, span, lhs->untyped && rhs->untyped);
  }
  if (is_const(lhs) && is_const(rhs)) {
    return float_const(fold_float(info.op, lhs->float_value, rhs->float_value, dtype), dtype, span,
                       lhs->untyped && rhs->untyped);
  }
  return op_expr(info.op, {lhs, rhs}, {}, scalar_type(dtype), span);
}

ExprPtr infer_shift(const OperatorInfo& info, const ExprPtr& lhs, const ExprPtr& rhs, const Span& span) {
  const DType dtype = lhs->type->dtype;
  if (!is_int(dtype) || !is_int(rhs->type->dtype)) {
    fail(ErrorClass::kTypeError,
         std::string("operator '") + info.symbol + "' takes two integers, got " + text_of(dtype) + " and " +
             text_of(rhs->type->dtype),
         {}, "convert with pl.cast(value, pl.INT32)");
  }
  if (const auto count = const_int(rhs)) {
    if (*count < 0 || *count >= dtype_bits(dtype)) {
      fail(ErrorClass::kParserTypeError,
           std::string("shift count ") + std::to_string(*count) + " of operator '" + info.symbol +
               "' is outside [0, " + std::to_string(dtype_bits(dtype)) + ") for dtype " + text_of(dtype));
    }
    if (const auto value = const_int(lhs)) {
      return int_const(wrap_to_dtype(fold_int(info.op, *value, *count, dtype), dtype), dtype, span,
                       lhs->untyped);
    }
  }
  return op_expr(info.op, {lhs, rhs}, {}, scalar_type(dtype), span);
}

}  // namespace

ExprPtr infer_scalar(OpId op, ExprPtr lhs, ExprPtr rhs, const Span& span) {
  if (op == OpId::k_scalar_neg || op == OpId::k_scalar_invert || op == OpId::k_scalar_not) {
    return infer_unary(op, lhs, span);
  }
  const OperatorInfo& info = operator_info(op);
  if (info.family == Family::kLogic && lhs && rhs && lhs->type && rhs->type &&
      (is_float(lhs->type->dtype) || is_float(rhs->type->dtype))) {
    fail(ErrorClass::kTypeError,
         std::string("operator '") + info.symbol + "' takes BOOL or integer scalars, got " +
             text_of(lhs->type->dtype) + " and " + text_of(rhs->type->dtype),
         {}, "compare the float with 0.0 first");
  }
  const DType dtype = unify(info, lhs, rhs);
  const bool constant = is_const(lhs) && is_const(rhs);
  const bool untyped = lhs->untyped && rhs->untyped;
  switch (info.family) {
    case Family::kTrueDivision:
      return infer_true_division(info, lhs, rhs, dtype, span);
    case Family::kShift:
      return infer_shift(info, lhs, rhs, span);
    case Family::kIntegerDivision:
      if (!is_int(dtype)) {
        fail(ErrorClass::kTypeError,
             std::string("operator '") + info.symbol + "' takes two integers, got " +
                 text_of(lhs->type->dtype) + " and " + text_of(rhs->type->dtype),
             {}, "use / for floats, or pl.cast(value, pl.INT32) first");
      }
      if (const auto divisor = const_int(rhs); divisor && *divisor == 0) divide_by_zero(info, lhs);
      break;
    case Family::kOrder:
    case Family::kEquality:
    case Family::kLogic: {
      if (constant) {
        const bool value = is_float(dtype) ? fold_compare(op, lhs->float_value, rhs->float_value)
                                           : fold_int(op, lhs->int_value, rhs->int_value, dtype) != 0;
        return bool_const(value, span);
      }
      return op_expr(op, {lhs, rhs}, {}, scalar_type(DType::kBool), span);
    }
    default:
      break;
  }
  if (constant && is_float(dtype)) {
    return float_const(fold_float(op, lhs->float_value, rhs->float_value, dtype), dtype, span, untyped);
  }
  if (constant) {
    return int_const(wrap_to_dtype(fold_int(op, lhs->int_value, rhs->int_value, dtype), dtype), dtype, span,
                     untyped);
  }
  return op_expr(op, {lhs, rhs}, {}, scalar_type(dtype), span);
}

namespace infer {

#define PYPTO_SCALAR_ROW(op_name)                                                               \
  ExprPtr type_scalar_##op_name(Typer& t) {                                                     \
    return infer_scalar(t.row->id, t.args[0], t.args.size() > 1 ? t.args[1] : nullptr, t.span); \
  }
PYPTO_SCALAR_ROW(add)
PYPTO_SCALAR_ROW(sub)
PYPTO_SCALAR_ROW(mul)
PYPTO_SCALAR_ROW(truediv)
PYPTO_SCALAR_ROW(floordiv)
PYPTO_SCALAR_ROW(mod)
PYPTO_SCALAR_ROW(lshift)
PYPTO_SCALAR_ROW(rshift)
PYPTO_SCALAR_ROW(eq)
PYPTO_SCALAR_ROW(ne)
PYPTO_SCALAR_ROW(lt)
PYPTO_SCALAR_ROW(le)
PYPTO_SCALAR_ROW(gt)
PYPTO_SCALAR_ROW(ge)
PYPTO_SCALAR_ROW(and)
PYPTO_SCALAR_ROW(or)
PYPTO_SCALAR_ROW(neg)
PYPTO_SCALAR_ROW(invert)
PYPTO_SCALAR_ROW(not)
#undef PYPTO_SCALAR_ROW

namespace {

ExprPtr extremum(Typer& t) {
  const bool greatest = t.row->id == OpId::k_max;
  for (const int i : {0, 1}) {
    if (t.has(i) && t.type(i).is_array_like()) {
      t.bad(i,
            greatest ? "a scalar (pl.maximum takes arrays, pl.row_max reduces)"
                     : "a scalar (pl.minimum takes arrays, pl.row_min reduces)",
            greatest ? "pl.max compares two scalars; use pl.maximum for two arrays or pl.row_max to reduce"
                     : "pl.min compares two scalars; use pl.minimum for two arrays or pl.row_min to reduce");
    }
  }
  return infer_scalar(t.row->id, t.args[0], t.args[1], t.span);
}

}  // namespace

ExprPtr type_max(Typer& t) { return extremum(t); }
ExprPtr type_min(Typer& t) { return extremum(t); }

/// Scalar form of pl.cast: 01 L-22.
ExprPtr type_scalar_cast(Typer& t) {
  const ExprPtr value = t.arg(0);
  const DType target = t.dtype_attr(1, AttrKey::k_target_type);
  if (target == DType::kNone) t.type_error("missing required argument 'target_type'");
  const DType own = value->type->dtype;
  if (own == DType::kTaskId || target == DType::kTaskId || value->kind == ExprKind::kNone) {
    t.type_error("a task handle cannot be converted (from " + text_of(own) + " to " + text_of(target) + ")",
                 "handles can only be passed on, for example in deps=[...]");
  }
  if (own == target) {
    if (!value->untyped) return value;
    return as_untyped(value, false);
  }
  return cast_scalar(value, target);
}

}  // namespace infer
}  // namespace pypto::ir
