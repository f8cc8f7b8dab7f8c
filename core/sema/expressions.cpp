// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"
#include "core/sema/hints.h"

/// Expressions: values, attributes, operands in order.
namespace pypto::sema {

using syn::ExprKind;

ExprPtr FunctionBuilder::to_expr(const Value& v, const Span& span) {
  switch (v.kind) {
    case Value::Kind::kExpr:
      return v.expr;
    case Value::Kind::kTuple: {
      std::vector<ExprPtr> items;
      for (const auto& i : v.items) items.push_back(to_argument(i, span));
      return ir::tuple_expr(std::move(items), span);
    }
    case Value::Kind::kHost:
      if (v.host.kind == HostKind::kDynVar) return symbol(v.host.text, span);
      if (v.host.kind == HostKind::kConstruct && v.host.text == "pl.RUNTIME") {
        reject(
            ErrorClass::kTypeError, span,
            "pl.RUNTIME is a compile-time marker for a scalar argument and cannot be used in an expression");
      }
      reject(
          ErrorClass::kParserTypeError, span,
          "Unsupported closure variable type: " + (v.host.kind == HostKind::kDType ? std::string("DataType")
                                                   : v.host.text.empty()           ? std::string("object")
                                                                                   : v.host.text));
    case Value::Kind::kNothing:
      break;
  }
  reject(ErrorClass::kParserTypeError, span, "expression produces no value");
}

/// An operand as infer.h wants it: enums and dtypes are constants with a text.
ExprPtr FunctionBuilder::to_argument(const Value& v, const Span& span) {
  if (v.is_host()) {
    if (v.host.kind == HostKind::kDType) {
      auto e = std::make_shared<ir::Expr>();
      e->kind = ir::ExprKind::kDType;
      e->int_value = static_cast<int64_t>(v.host.dtype);
      e->type = ir::none_type();
      e->span = span;
      e->text = std::string(dtype_text(v.host.dtype));
      return e;
    }
    if (v.host.kind == HostKind::kEnum) {
      auto e = std::make_shared<ir::Expr>(*ir::int_const(v.host.int_value, DType::kIndex, span));
      e->text = v.host.text;
      return e;
    }
  }
  return to_expr(v, span);
}

ExprPtr FunctionBuilder::eval_expr(const syn::Expr& e) { return to_expr(eval(e), e.span); }

Value FunctionBuilder::eval(const syn::Expr& e) {
  Depth depth(expr_depth_);
  switch (e.kind) {
    case ExprKind::kInt:
      if (e.big) {
        reject(ErrorClass::kParserTypeError, e.span, "Integer literal does not fit INDEX (64 bits)");
      }
      return Value::of(ir::int_const(e.int_value, DType::kIndex, e.span, true));
    case ExprKind::kFloat:
      return Value::of(ir::float_const(e.float_value, DType::kFp32, e.span, true));
    case ExprKind::kBool:
      return Value::of(ir::bool_const(e.int_value != 0, e.span));
    case ExprKind::kNone:
      return Value::of(ir::none_const(e.span));
    case ExprKind::kString:
      return Value::of(ir::string_const(e.text, e.span));
    case ExprKind::kName:
      return eval_name(e);
    case ExprKind::kAttribute:
      return eval_attribute(e);
    case ExprKind::kTuple:
    case ExprKind::kList: {
      std::vector<const syn::Expr*> list;
      for (const auto& i : e.items)
        list.push_back(i->kind == ExprKind::kStarred ? i->items[0].get() : i.get());
      std::vector<Value> values = eval_operands(list);
      std::vector<Value> flat;
      for (size_t i = 0; i < values.size(); ++i) {
        if (e.items[i]->kind != ExprKind::kStarred) {
          flat.push_back(std::move(values[i]));
          continue;
        }
        // `[P, *SHAPE]`: the entries of a compile-time tuple (L-14) or of an `a.shape` in place.
        if (values[i].kind != Value::Kind::kTuple) {
          reject(ErrorClass::kUnsupportedFeatureError, e.items[i]->span,
                 "Unsupported expression type: Starred",
                 "only a tuple or list known when compiling, or the shape of a tensor, can be spread with *");
        }
        for (Value& entry : values[i].items) flat.push_back(std::move(entry));
      }
      Value v = Value::tuple(std::move(flat));
      v.is_list = e.kind == ExprKind::kList;
      return v;
    }
    case ExprKind::kCall:
      if (is_static(e)) return fold(e);
      {
        Value v = eval_call(e);
        if (v.kind == Value::Kind::kNothing) {
          const Callee c = resolve_callee(*e.items[0]);
          if (c.function) {
            reject(ErrorClass::kParserTypeError, e.span,
                   "Inline function '" + c.function->name + "' has no return value",
                   "call it as a statement of its own, or let it return something");
          }
        }
        return v;
      }
    case ExprKind::kSubscript:
      return eval_subscript(e);
    case ExprKind::kUnary:
      return eval_unary(e);
    case ExprKind::kBinary:
      if (const auto small = fold_small(e)) return from_host(*small, e.span);
      return is_static(e) ? fold(e) : eval_binary(e);
    case ExprKind::kCompare:
      return is_static(e) ? fold(e) : eval_compare(e);
    case ExprKind::kBool2:
      return is_static(e) ? fold(e) : eval_bool(e);
    case ExprKind::kIfExp:
    case ExprKind::kListComp:
    case ExprKind::kJoinedStr:
    case ExprKind::kFormatted:
    case ExprKind::kDict:
    case ExprKind::kSet:
      if (is_static(e)) return fold(e);
      if (e.kind == ExprKind::kIfExp) {
        // A compile-time condition selects; the other side may be anything.
        std::optional<bool> known = constant_condition(*e.items[0]);
        if (!known) {
          const Value test = eval(*e.items[0]);
          if (test.is_expr() && test.expr->kind == ir::ExprKind::kInt) known = test.expr->int_value != 0;
        }
        if (known) return eval(*e.items[*known ? 1 : 2]);
      }
      break;
    default:
      break;
  }
  static const std::map<ExprKind, const char*> kNames = {
      {ExprKind::kIfExp, "IfExp"},         {ExprKind::kListComp, "ListComp"},
      {ExprKind::kJoinedStr, "JoinedStr"}, {ExprKind::kFormatted, "FormattedValue"},
      {ExprKind::kDict, "Dict"},           {ExprKind::kSet, "Set"},
      {ExprKind::kLambda, "Lambda"},       {ExprKind::kNamedExpr, "NamedExpr"},
      {ExprKind::kStarred, "Starred"},     {ExprKind::kSlice, "Slice"},
      {ExprKind::kEllipsis, "Ellipsis"},
  };
  const auto it = kNames.find(e.kind);
  const std::string name = it != kNames.end() ? it->second : e.text.c_str();
  const std::string instead = hint_for_syntax(name);
  reject(
      ErrorClass::kUnsupportedFeatureError, e.span, "Unsupported expression type: " + name,
      !instead.empty()
          ? instead
          : "use names, literals, arithmetic, comparisons, subscripts and calls of pl operations; if it is a "
            "compile-time value, compute it outside the body");
}

/// Operands in order. What an operand reads must not move behind statements that a later operand expands to.
std::vector<Value> FunctionBuilder::eval_operands(const std::vector<const syn::Expr*>& list) {
  size_t last_expansion = 0;
  for (size_t i = 1; i < list.size(); ++i) {
    if (list[i] && has_expansion(*list[i])) last_expansion = i;
  }
  std::vector<Value> out;
  for (size_t i = 0; i < list.size(); ++i) {
    Value v = list[i] ? eval(*list[i]) : Value();
    if (i < last_expansion && v.is_expr() && v.expr->kind == ir::ExprKind::kOp)
      v = spill(v, "_v", list[i]->span);
    // A task is a statement of its own.
    if (v.is_expr() && v.expr->kind == ir::ExprKind::kCall) v = spill(v, "_r", list[i]->span);
    out.push_back(std::move(v));
  }
  return out;
}

/// Whether evaluating the expression emits statements of its own.
bool FunctionBuilder::has_expansion(const syn::Expr& e) {
  if (e.kind == ExprKind::kCall) {
    const auto& callee = *e.items[0];
    if (callee.kind == ExprKind::kAttribute && is_self(*callee.items[0])) return true;
    const HostValue h = resolve_host(callee);
    if (h.kind == HostKind::kFunction) return true;
    if (h.kind == HostKind::kConstruct && h.text.find("submit") != std::string::npos) return true;
  }
  for (const auto& i : e.items) {
    if (i && has_expansion(*i)) return true;
  }
  for (const auto& k : e.keywords) {
    if (k.value && has_expansion(*k.value)) return true;
  }
  return false;
}

Value FunctionBuilder::eval_name(const syn::Expr& e) { return read_name(e.text, e.span); }

Value FunctionBuilder::eval_attribute(const syn::Expr& e) {
  const auto& base_syntax = *e.items[0];
  if (resolve_host(base_syntax).kind != HostKind::kMissing) {
    const HostValue h = resolve_host(e);
    if (h.kind == HostKind::kMissing) {
      const HostValue base = resolve_host(base_syntax);
      if (base.kind == HostKind::kModule && base.text.rfind("python:", 0) != 0) {
        unknown_operation(e, base.text + "." + e.text);
      }
      if (base.kind == HostKind::kConstruct) {
        reject(ErrorClass::kParserTypeError, e.span, "'" + base.text + "' has no member '" + e.text + "'");
      }
      return fold(e);  // Python says what is wrong
    }
    return from_host(h, e.span);
  }
  const Value base = eval(base_syntax);
  if (base.is_array_like() || (base.is_expr() && base.expr->type->kind == ir::TypeKind::kArray)) {
    if (e.text == "shape") {
      std::vector<Value> dims;
      const ExprPtr array =
          base.expr->kind == ir::ExprKind::kVar ? base.expr : spill(base, "_v", e.span).expr;
      for (int i = 0; i < base.expr->type->rank(); ++i)
        dims.push_back(Value::of(extent_of(array, i, e.span)));
      return Value::tuple(std::move(dims));
    }
    if (e.text == "dtype") {
      HostValue h;
      h.kind = HostKind::kDType;
      h.dtype = base.expr->type->dtype;
      return Value::of_host(h);
    }
    reject(ErrorClass::kParserTypeError, e.span,
           ir::type_text(*base.expr->type) + " has no attribute '" + e.text + "'",
           "there is no method-call sugar: write pl." + e.text + "(" + source_text(base_syntax) + ", ...)");
  }
  if (base.is_scalar() && e.text == "base") return base;  // reserve_buffer's handle (02 section 21)
  if (is_static(base_syntax)) return fold(e);
  reject(ErrorClass::kParserTypeError, e.span,
         "Attribute '" + e.text + "' of a " +
             (base.is_expr() ? ir::type_text(*base.expr->type) : std::string("compile-time value")) +
             " is not available");
}

ExprPtr FunctionBuilder::extent_of(const ExprPtr& base, int dim, const Span& span) {
  const ir::Type& t = *base->type;
  const ir::Dim& d = t.shape[static_cast<size_t>(dim)];
  if (d.is_const()) return ir::int_const(d.value, DType::kIndex, span, true);
  // Symbols do not change; any other expression may have been rebound since, so the extent is asked of the
  // value.
  if (d.expr && d.expr->kind == ir::ExprKind::kVar && d.expr->var->kind == ir::VarKind::kSymbol)
    return d.expr;
  if (t.kind == ir::TypeKind::kArray) return ir::int_const(d.value, DType::kIndex, span, true);
  const Value v = infer(ir::op_row(ir::OpId::k_dim), ir::kFormFlat,
                        {base, ir::int_const(dim, DType::kIndex, span, true)}, span, "pl.dim");
  return v.expr;
}

/// A condition that is known while compiling selects its arm (01 L-91).
std::optional<bool> FunctionBuilder::constant_condition(const syn::Expr& e) {
  if (is_static(e)) {
    const Value v = fold(e);
    if (v.is_expr() && v.expr->kind == ir::ExprKind::kInt && v.expr->type->dtype == DType::kBool) {
      return v.expr->int_value != 0;
    }
  }
  return std::nullopt;
}

ExprPtr FunctionBuilder::condition(const syn::Expr& e, const char* what) {
  const Value v = eval(e);
  if (v.is_scalar() && v.expr->type->dtype == DType::kBool) return v.expr;
  std::string got = "a compile-time value";
  if (v.is_expr() && v.expr->type) got = ir::type_text(*v.expr->type);
  if (v.is_tuple()) got = "a tuple";
  reject(
      ErrorClass::kParserTypeError, e.span,
      std::string(what) + " condition must be a Bool-typed scalar expression, got " + got,
      v.is_array_like()
          ? "a condition is one value: read an element with pl.read, or choose element by element with pl.sel"
          : "compare explicitly, for instance '" + source_text(e) + " != 0'");
}

}  // namespace pypto::sema
