// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// Compile-time statements and function attributes (01 L-13, L-33, L-56, L-105, L-106).
namespace pypto::sema {

using syn::ExprKind;
using syn::StmtKind;

Value FunctionBuilder::const_(const syn::Expr& e) {
  if (e.items.size() != 3 || !e.keywords.empty()) {
    reject(ErrorClass::kParserSyntaxError, e.span,
           "pl.const requires exactly 2 arguments: pl.const(value, dtype)");
  }
  const auto& number = *e.items[1];
  Value v;
  const bool literal = number.kind == ExprKind::kInt || number.kind == ExprKind::kFloat ||
                       number.kind == ExprKind::kBool ||
                       (number.kind == ExprKind::kUnary && (number.text == "-" || number.text == "+"));
  if (literal || is_static(number)) v = eval(number);
  const bool is_number =
      v.is_expr() && (v.expr->kind == ir::ExprKind::kInt || v.expr->kind == ir::ExprKind::kFloat);
  if (!is_number) {
    reject(ErrorClass::kParserSyntaxError, number.span,
           "The first argument of pl.const must be a numeric literal, got " + source_text(number),
           "use pl.cast for run-time values");
  }
  const DType dtype = read_dtype(*e.items[2]);
  ExprPtr c = v.expr;
  const bool from_float = c->kind == ir::ExprKind::kFloat;
  if (from_float && (is_int(dtype) || dtype == DType::kBool)) {
    reject(ErrorClass::kParserTypeError, number.span,
           "pl.const: float literal " + source_text(number) + " cannot have dtype " +
               std::string(dtype_text(dtype)));
  }
  if (dtype == DType::kTaskId) {
    reject(ErrorClass::kParserTypeError, e.span, "pl.const cannot make a task handle", "use None");
  }
  if (is_float(dtype)) {
    const double value = from_float ? c->float_value : static_cast<double>(c->int_value);
    // Rounded to the dtype by the one conversion that everything uses.
    return Value::of(
        ir::convert_scalar(ir::float_const(value, DType::kFp32, e.span, true), dtype, "pl.const"));
  }
  auto untyped = ir::int_const(c->int_value, DType::kIndex, e.span, true);
  if (dtype == DType::kBool) return Value::of(ir::bool_const(c->int_value != 0, e.span));
  try {
    return Value::of(ir::convert_scalar(untyped, dtype, "pl.const"));
  } catch (Failure& f) {
    if (!f.diagnostic().span.known()) f.diagnostic().span = number.span;
    if (f.diagnostic().cls == ErrorClass::kTypeError || f.diagnostic().cls == ErrorClass::kValueError) {
      f.diagnostic().cls = ErrorClass::kParserTypeError;
    }
    throw;
  }
}

void FunctionBuilder::static_print(const syn::Expr& e) {
  if (e.items.size() < 2 || !e.keywords.empty()) {
    reject(ErrorClass::kParserSyntaxError, e.span, "pl.static_print requires at least 1 argument");
  }
  const auto show = [&](const Value& v) -> std::string {
    if (v.is_tuple()) {
      std::string out = v.is_list ? "[" : "(";
      for (size_t i = 0; i < v.items.size(); ++i) {
        const Value& x = v.items[i];
        out += i ? ", " : "";
        if (const auto n = try_constant_int(x))
          out += std::to_string(*n);
        else if (x.is_expr() && x.expr->type->is_scalar() && x.expr->kind == ir::ExprKind::kVar)
          out += x.expr->var->name;
        else if (x.is_expr())
          out += ir::type_text(*x.expr->type);
        else
          out += x.host.text;
      }
      return out + (v.is_list ? "]" : ")");
    }
    if (v.is_host()) {
      return v.host.kind == HostKind::kDType ? std::string(dtype_text(v.host.dtype)) : v.host.text;
    }
    if (!v.is_expr()) return "None";
    switch (v.expr->kind) {
      case ir::ExprKind::kInt:
        if (v.expr->type->dtype == DType::kBool) return v.expr->int_value ? "True" : "False";
        return std::to_string(v.expr->int_value);
      case ir::ExprKind::kFloat: {
        syn::Expr f;
        f.kind = ExprKind::kFloat;
        f.float_value = v.expr->float_value;
        return source_text(f);
      }
      case ir::ExprKind::kString:
        return v.expr->text;
      case ir::ExprKind::kNone:
        return "None";
      default:
        return ir::type_text(*v.expr->type);
    }
  };
  std::string line = "static_print [" + e.span.file_line() + "]:";
  for (size_t i = 1; i < e.items.size(); ++i) {
    const auto& a = *e.items[i];
    line += " ";
    if (a.kind == ExprKind::kJoinedStr) {
      for (const auto& part : a.items) {
        if (part->kind == ExprKind::kFormatted) {
          if (part->int_value != -1 && part->int_value != 0) {
            reject(ErrorClass::kUnsupportedFeatureError, part->span,
                   "f-string conversions are not supported in pl.static_print");
          }
          if (part->items.size() > 1 && part->items[1]) {
            reject(ErrorClass::kUnsupportedFeatureError, part->span,
                   "f-string format specs are not supported in pl.static_print");
          }
          line += show(eval(*part->items[0]));
        } else {
          line += part->text;
        }
      }
      continue;
    }
    line += show(eval(a));
  }
  program_.print(frame_->host, line);
}

void FunctionBuilder::static_assert_(const syn::Expr& e) {
  if (e.items.size() < 2 || e.items.size() > 3 || !e.keywords.empty()) {
    reject(ErrorClass::kParserSyntaxError, e.span,
           "pl.static_assert takes a condition and an optional literal message");
  }
  std::string message;
  if (e.items.size() == 3) {
    if (e.items[2]->kind != ExprKind::kString) {
      reject(ErrorClass::kParserSyntaxError, e.items[2]->span,
             "The message of pl.static_assert must be a string literal");
    }
    message = e.items[2]->text;
  }
  const auto& condition_syntax = *e.items[1];
  std::optional<bool> holds;
  if (is_static(condition_syntax)) {
    const Value v = fold(condition_syntax);
    if (v.is_expr() && v.expr->kind == ir::ExprKind::kInt) holds = v.expr->int_value != 0;
    if (v.is_expr() && v.expr->kind == ir::ExprKind::kFloat) holds = v.expr->float_value != 0;
    if (v.is_expr() && v.expr->kind == ir::ExprKind::kNone) holds = false;
    if (v.is_expr() && v.expr->kind == ir::ExprKind::kString) holds = !v.expr->text.empty();
    if (v.is_tuple()) holds = !v.items.empty();
    if (v.is_host()) holds = true;
  } else {
    const Value v = eval(condition_syntax);
    if (v.is_expr() && v.expr->kind == ir::ExprKind::kInt) holds = v.expr->int_value != 0;
  }
  if (!holds) {
    reject(
        ErrorClass::kParserError, condition_syntax.span,
        "The condition of pl.static_assert must be compile-time evaluable: " + source_text(condition_syntax));
  }
  if (!*holds) {
    reject(ErrorClass::kParserError, e.span,
           "static_assert failed: " + (message.empty() ? source_text(condition_syntax) : message) +
               (message.empty() ? "" : " (" + source_text(condition_syntax) + ")"));
  }
}

// ------------------------------------------------------------------ function attributes

void FunctionBuilder::read_func_attrs() {
  const auto& body = source_->def->body;
  first_statement_ = 0;
  while (first_statement_ < body.size()) {
    const auto& s = *body[first_statement_];
    if (s.kind != StmtKind::kExpr || !s.value) break;
    if (s.value->kind == ExprKind::kString && first_statement_ == 0) {
      ++first_statement_;
      continue;
    }
    if (s.value->kind != ExprKind::kCall) break;
    const HostValue h = resolve_host(*s.value->items[0]);
    if (h.kind != HostKind::kConstruct || h.text != "pl.func_attr") break;
    func_attr(*s.value);
    ++first_statement_;
  }
}

void FunctionBuilder::func_attr(const syn::Expr& e) {
  if (e.items.size() != 2 || !e.keywords.empty() || e.items[1]->kind != ExprKind::kDict) {
    reject(ErrorClass::kParserSyntaxError, e.span, "pl.func_attr takes exactly one positional dict argument",
           "write pl.func_attr({\"key\": value})");
  }
  const auto& dict = *e.items[1];
  for (size_t i = 0; i + 1 < dict.items.size(); i += 2) {
    if (!dict.items[i]) {
      reject(ErrorClass::kParserSyntaxError, dict.span, "'**' is not supported inside pl.func_attr");
    }
    const auto& key = *dict.items[i];
    const auto& value = *dict.items[i + 1];
    if (key.kind != ExprKind::kString) {
      reject(ErrorClass::kParserSyntaxError, key.span,
             "pl.func_attr keys must be string literals, got " + source_text(key));
    }
    if (key.text == "auto_scope" || key.text == "external_source") {
      reject(ErrorClass::kParserSyntaxError, key.span, "'" + key.text + "' cannot be set with pl.func_attr",
             "use the decorator's " + key.text + "= argument");
    }
    for (const auto& a : fn->attrs) {
      if (a.key == key.text && func_attr_keys_.count(key.text)) {
        reject(ErrorClass::kParserSyntaxError, key.span, "Duplicate key '" + key.text + "' in pl.func_attr");
      }
    }
    func_attr_keys_.insert(key.text);
    ir::FunctionAttr attr;
    attr.key = key.text;
    attr.value = source_text(value);
    if (value.kind == ExprKind::kString) attr.value = "\"" + value.text + "\"";
    const bool param = value.kind == ExprKind::kName && find_binding(value.text) &&
                       find_binding(value.text)->kind == Binding::Kind::kVar;
    if (!param) {
      const Value v = eval(value);
      if (const auto n = try_constant_int(v)) {
        attr.int_value = *n;
        attr.value = std::to_string(*n);
      } else if (v.is_expr() && v.expr->kind == ir::ExprKind::kInt) {
        attr.int_value = v.expr->int_value;
        attr.value = v.expr->int_value ? "True" : "False";
      } else if (v.is_host() && v.host.kind == HostKind::kEnum) {
        attr.int_value = v.host.int_value;
        attr.value = "pl." + v.host.text;
      }
    }
    const auto old = std::find_if(fn->attrs.begin(), fn->attrs.end(),
                                  [&](const ir::FunctionAttr& a) { return a.key == key.text; });
    if (old != fn->attrs.end()) {
      *old = attr;
    } else {
      fn->attrs.push_back(attr);
    }
  }
}

/// `param.bind_dynamic(dim, var)`: declares only; what it says was read before the parameters were typed.
bool FunctionBuilder::bind_dynamic(const syn::Expr& e) {
  const auto& callee = *e.items[0];
  if (callee.kind != ExprKind::kAttribute || callee.text != "bind_dynamic") return false;
  const auto& base = *callee.items[0];
  if (base.kind != ExprKind::kName) {
    reject(ErrorClass::kParserSyntaxError, e.span, "bind_dynamic must be called on a parameter");
  }
  const Value v = eval(base);
  if (!v.is_expr() || !v.expr->type->is_tensor()) {
    reject(ErrorClass::kParserTypeError, base.span,
           "bind_dynamic needs a tensor parameter, '" + base.text + "' is none");
  }
  std::vector<const syn::Expr*> args(2, nullptr);
  for (size_t i = 1; i < e.items.size() && i < 3; ++i) args[i - 1] = e.items[i].get();
  for (const auto& k : e.keywords) {
    if (k.name == "dim")
      args[0] = k.value.get();
    else if (k.name == "var")
      args[1] = k.value.get();
  }
  if (!args[0] || !args[1] || e.items.size() > 3) {
    reject(ErrorClass::kParserSyntaxError, e.span, "bind_dynamic takes (dim, var)");
  }
  const auto dim = try_constant_int(eval(*args[0]));
  if (!dim) {
    reject(ErrorClass::kParserTypeError, args[0]->span, "bind_dynamic dim must be a compile-time int");
  }
  const int rank = v.expr->type->rank();
  if (*dim < -rank || *dim >= rank) {
    reject(ErrorClass::kParserTypeError, args[0]->span,
           "bind_dynamic dim " + std::to_string(*dim) + " is out of range for '" + base.text + "' of rank " +
               std::to_string(rank));
  }
  const Value var = eval(*args[1]);
  if (!var.is_host() || var.host.kind != HostKind::kDynVar) {
    reject(ErrorClass::kParserTypeError, args[1]->span, "bind_dynamic var must be a pl.dynamic(...) symbol");
  }
  return true;
}

}  // namespace pypto::sema
