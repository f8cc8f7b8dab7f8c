// SPDX-License-Identifier: Apache-2.0

#include "core/sema/builder.h"
#include "core/sema/hints.h"

/// Python operators on scalars (01 L-17 - L-24) and on tensors and tiles (L-21).
namespace pypto::sema {

using syn::ExprKind;

Value FunctionBuilder::eval_unary(const syn::Expr& e) {
  const auto& operand = *e.items[0];
  if (e.text == "-" && operand.kind == ExprKind::kInt && !operand.big) {
    return Value::of(ir::int_const(-operand.int_value, DType::kIndex, e.span, true));
  }
  if (e.text == "-" && operand.kind == ExprKind::kFloat) {
    return Value::of(ir::float_const(-operand.float_value, DType::kFp32, e.span, true));
  }
  if (is_static(e)) return fold(e);
  const Value v = eval(operand);
  if (v.is_array_like()) {
    const std::string help = e.text == "-" ? "pl.neg" : e.text == "~" ? "pl.not_" : "pl.cmp";
    reject(ErrorClass::kTypeError, e.span,
           "Operator '" + e.text + "' does not take a " + ir::type_text(*v.expr->type),
           "use " + help + "(...)");
  }
  const ExprPtr x = to_expr(v, e.span);
  if (x->type->is_scalar() && x->type->dtype == DType::kTaskId) {
    reject(ErrorClass::kParserTypeError, e.span,
           "Task handles cannot be computed with (operator '" + e.text + "')");
  }
  if (!x->type->is_scalar()) {
    reject(ErrorClass::kParserTypeError, e.span,
           "Operator '" + e.text + "' needs a scalar, got " + ir::type_text(*x->type));
  }
  if (e.text == "+") return v;
  const ir::OpId op = e.text == "-"   ? ir::OpId::k_scalar_neg
                      : e.text == "~" ? ir::OpId::k_scalar_invert
                                      : ir::OpId::k_scalar_not;
  return scalar_operator(op, e.text, x, nullptr, e);
}

Value FunctionBuilder::scalar_operator(ir::OpId op, const std::string& text, ExprPtr lhs, ExprPtr rhs,
                                       const syn::Expr& e) {
  for (const auto& x : {lhs, rhs}) {
    if (!x) continue;
    if (!x->type || !x->type->is_scalar()) {
      reject(ErrorClass::kParserTypeError, e.span,
             "Operator '" + text + "' needs scalars, got " + (x->type ? ir::type_text(*x->type) : "nothing"));
    }
    if (x->type->dtype == DType::kTaskId) {
      reject(ErrorClass::kParserTypeError, e.span,
             "Task handles cannot be computed with or compared (operator '" + text + "')",
             "use them in deps=[...], arrays and assignments only");
    }
  }
  ExprPtr out;
  try {
    out = ir::infer_scalar(op, lhs, rhs, e.span);
  } catch (Failure& f) {
    if (!f.diagnostic().span.known()) f.diagnostic().span = e.span;
    throw;
  }
  const bool arithmetic = op == ir::OpId::k_scalar_add || op == ir::OpId::k_scalar_sub ||
                          op == ir::OpId::k_scalar_mul || op == ir::OpId::k_scalar_truediv;
  if (arithmetic && is_float(out->type->dtype) && out->kind == ir::ExprKind::kOp &&
      place() == ir::kPlaceKernel) {
    program_.warn(
        e.span, "X-27",
        "'" + source_text(e) + "' computes on run-time " + std::string(dtype_text(out->type->dtype)) +
            " scalars in a kernel: computed exactly here, but AI-core scalar units are not built for it "
            "and device builds may refuse it",
        "keep index math in integers and do float math on tiles");
  }
  return Value::of(out);
}

Value FunctionBuilder::eval_binary(const syn::Expr& e) {
  const std::vector<Value> v = eval_operands({e.items[0].get(), e.items[1].get()});
  return binary(e.text, v[0], v[1], e);
}

Value FunctionBuilder::binary(const std::string& text, const Value& lhs, const Value& rhs,
                              const syn::Expr& e) {
  static const std::map<std::string, ir::OpId> kOps = {
      {"+", ir::OpId::k_scalar_add},     {"-", ir::OpId::k_scalar_sub},       {"*", ir::OpId::k_scalar_mul},
      {"/", ir::OpId::k_scalar_truediv}, {"//", ir::OpId::k_scalar_floordiv}, {"%", ir::OpId::k_scalar_mod},
      {"<<", ir::OpId::k_scalar_lshift}, {">>", ir::OpId::k_scalar_rshift},
  };
  const auto it = kOps.find(text);
  if (it == kOps.end()) {
    reject(ErrorClass::kUnsupportedFeatureError, e.span, "Unsupported binary operator: " + text,
           hint_for_operator(text) + (hint_for_operator(text).empty() ? "" : "; ") +
               "supported on run-time values: + - * / // % << >>; bitwise operations on tiles are pl.and_, "
               "pl.or_, "
               "pl.xor");
  }
  if (lhs.is_array_like() || rhs.is_array_like()) return array_operator(text, lhs, rhs, e);
  if (lhs.is_tuple() && rhs.is_tuple() && text == "+") {
    Value t = lhs;
    t.items.insert(t.items.end(), rhs.items.begin(), rhs.items.end());
    t.host = {};
    return t;
  }
  return scalar_operator(it->second, text, to_expr(lhs, e.span), to_expr(rhs, e.span), e);
}

Value FunctionBuilder::array_operator(const std::string& text, const Value& lhs, const Value& rhs,
                                      const syn::Expr& e) {
  static const std::map<std::string, ir::OpId> kOps = {
      {"+", ir::OpId::k_add}, {"-", ir::OpId::k_sub}, {"*", ir::OpId::k_mul}, {"/", ir::OpId::k_div}};
  static const std::map<std::string, int> kCompare = {{"==", 0}, {"!=", 1}, {"<", 2},
                                                      {"<=", 3}, {">", 4},  {">=", 5}};
  static const std::map<int, int> kSwapped = {{0, 0}, {1, 1}, {2, 4}, {3, 5}, {4, 2}, {5, 3}};
  const bool scalar_left = !lhs.is_array_like();
  ExprPtr a = to_expr(lhs, e.span);
  ExprPtr b = to_expr(rhs, e.span);
  if (const auto it = kCompare.find(text); it != kCompare.end()) {
    int code = it->second;
    if (scalar_left) {
      std::swap(a, b);
      code = kSwapped.at(code);
    }
    return infer(ir::op_row(ir::OpId::k_cmp), ir::kFormFlat,
                 {a, b, ir::int_const(code, DType::kIndex, e.span, true)}, e.span, "pl.cmp");
  }
  const auto it = kOps.find(text);
  if (it == kOps.end()) {
    static const std::map<std::string, const char*> kHelp = {
        {"//", "pl.div and pl.cast"}, {"%", "pl.fmod"}, {"<<", "pl.shls"}, {">>", "pl.shrs"},
        {"and", "pl.and_"},           {"or", "pl.or_"}};
    const auto help = kHelp.find(text);
    reject(ErrorClass::kTypeError, e.span,
           "Operator '" + text + "' does not take tensors or tiles (" + ir::type_text(*a->type) + ", " +
               ir::type_text(*b->type) + ")",
           help == kHelp.end() ? std::string() : std::string("use ") + help->second);
  }
  if (scalar_left) {
    if (text == "-" || text == "/") {
      reject(ErrorClass::kTypeError, e.span,
             "A scalar on the left of '" + text + "' with a " + ir::type_text(*b->type) +
                 " on the right is not "
                 "supported",
             text == "-" ? "write pl.add(pl.neg(t), s)" : "write pl.mul(pl.recip(t), s)");
    }
    std::swap(a, b);
  }
  return infer(ir::op_row(it->second), ir::kFormFlat, {a, b}, e.span,
               std::string("pl.") + ir::op_row(it->second).name);
}

Value FunctionBuilder::eval_compare(const syn::Expr& e) {
  for (const auto& op : e.ops) {
    if (op == "in" || op == "not in" || op == "is" || op == "is not") {
      reject(ErrorClass::kUnsupportedFeatureError, e.span, "Unsupported comparison: " + op,
             "use == != < <= > >=");
    }
  }
  if (e.ops.size() != 1) {
    reject(ErrorClass::kParserSyntaxError, e.span, "Only simple comparisons supported",
           "write (a < b) and (b < c)");
  }
  const std::vector<Value> v = eval_operands({e.items[0].get(), e.items[1].get()});
  if (v[0].is_array_like() || v[1].is_array_like()) return array_operator(e.ops[0], v[0], v[1], e);
  if (v[0].is_host() && v[1].is_host() && (e.ops[0] == "==" || e.ops[0] == "!=")) {
    // Compile-time objects, such as a.dtype == pl.FP32.
    const auto& a = v[0].host;
    const auto& b = v[1].host;
    if (a.kind == b.kind && (a.kind == HostKind::kDType || a.kind == HostKind::kEnum)) {
      const bool equal = a.kind == HostKind::kDType ? a.dtype == b.dtype : a.text == b.text;
      return Value::of(ir::bool_const(equal == (e.ops[0] == "=="), e.span));
    }
  }
  static const std::map<std::string, ir::OpId> kOps = {
      {"==", ir::OpId::k_scalar_eq}, {"!=", ir::OpId::k_scalar_ne}, {"<", ir::OpId::k_scalar_lt},
      {"<=", ir::OpId::k_scalar_le}, {">", ir::OpId::k_scalar_gt},  {">=", ir::OpId::k_scalar_ge}};
  return scalar_operator(kOps.at(e.ops[0]), e.ops[0], to_expr(v[0], e.items[0]->span),
                         to_expr(v[1], e.items[1]->span), e);
}

Value FunctionBuilder::eval_bool(const syn::Expr& e) {
  std::vector<const syn::Expr*> list;
  for (const auto& i : e.items) list.push_back(i.get());
  const std::vector<Value> v = eval_operands(list);
  const ir::OpId op = e.text == "and" ? ir::OpId::k_scalar_and : ir::OpId::k_scalar_or;
  for (const auto& x : v) {
    if (x.is_array_like()) return array_operator(e.text, v[0].is_array_like() ? v[0] : x, x, e);
  }
  Value out = Value::of(to_expr(v[0], e.items[0]->span));
  for (size_t i = 1; i < v.size(); ++i) {
    out = scalar_operator(op, e.text, out.expr, to_expr(v[i], e.items[i]->span), e);
  }
  return out;
}

}  // namespace pypto::sema
