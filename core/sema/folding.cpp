// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// Compile-time expressions are evaluated by the host (01 L-15).
namespace pypto::sema {

using syn::ExprKind;

namespace {

/// Constructs whose call is evaluated by Python like any other compile-time expression.
bool folds_when_called(const std::string& construct) {
  return construct == "pl.dynamic" || construct == "pl.DynVar" || construct == "pl.DataType";
}

HostValue make_int(int64_t v) {
  HostValue h;
  h.kind = HostKind::kInt;
  h.int_value = v;
  return h;
}

void target_names_of(const syn::Expr& t, std::set<std::string>& out) {
  if (t.kind == ExprKind::kName) out.insert(t.text);
  for (const auto& i : t.items) {
    if (i) target_names_of(*i, out);
  }
}

}  // namespace

/// Host value of a name or dotted name that is no DSL variable; kMissing otherwise.
HostValue FunctionBuilder::resolve_host(const syn::Expr& e) {
  if (e.kind == ExprKind::kName) {
    if (const BindingPtr b = find_binding(e.text)) {
      if (b->kind == Binding::Kind::kValue && b->value.is_host()) return b->value.host;
      return {};
    }
    return host_lookup(e.text);
  }
  if (e.kind != ExprKind::kAttribute) return {};
  const HostValue base = resolve_host(*e.items[0]);
  if (base.kind == HostKind::kMissing) return {};
  for (Frame* f = frame_; f; f = f->parent) {
    if (f->host) return f->host->attribute(base, e.text);
  }
  return {};
}

bool FunctionBuilder::is_static(const syn::Expr& e, std::set<std::string>* bound) {
  const auto all = [&](const std::vector<syn::ExprPtr>& list, size_t first = 0) {
    for (size_t i = first; i < list.size(); ++i) {
      if (list[i] && !is_static(*list[i], bound)) return false;
    }
    return true;
  };
  switch (e.kind) {
    case ExprKind::kInt:
    case ExprKind::kFloat:
    case ExprKind::kBool:
    case ExprKind::kNone:
    case ExprKind::kString:
      return true;
    case ExprKind::kName: {
      if (bound && bound->count(e.text)) return true;
      if (const BindingPtr b = find_binding(e.text)) {
        if (b->kind != Binding::Kind::kValue || !b->undefined.empty()) return false;
        const auto v = host_value(b->value);
        return v && v->kind != HostKind::kDynVar;
      }
      // A dynamic symbol is an extent, known at run time only (01 L-31).
      const HostValue h = host_lookup(e.text);
      return h.kind != HostKind::kMissing && h.kind != HostKind::kSymbolic && h.kind != HostKind::kDynVar;
    }
    case ExprKind::kAttribute: {
      if (!is_static(*e.items[0], bound)) return false;
      const HostValue h = resolve_host(*e.items[0]);
      // A missing name below the language's own modules is reported as an unknown operation.
      if (h.kind == HostKind::kModule && h.text.rfind("python:", 0) != 0) {
        return resolve_host(e).kind != HostKind::kMissing;
      }
      if (h.kind != HostKind::kMissing) {
        const HostValue member = resolve_host(e);
        return member.kind != HostKind::kDynVar && member.kind != HostKind::kSymbolic;
      }
      return true;
    }
    case ExprKind::kCall: {
      const HostValue callee = resolve_host(*e.items[0]);
      if (callee.kind == HostKind::kConstruct && !folds_when_called(callee.text)) return false;
      if (callee.kind == HostKind::kFunction || callee.kind == HostKind::kModule) return false;
      if (!is_static(*e.items[0], bound) || !all(e.items, 1)) return false;
      return std::all_of(e.keywords.begin(), e.keywords.end(),
                         [&](const syn::Keyword& k) { return is_static(*k.value, bound); });
    }
    case ExprKind::kListComp: {
      std::set<std::string> inner = bound ? *bound : std::set<std::string>();
      for (const auto& g : e.generators) {
        if (!is_static(*g.iter, &inner)) return false;
        target_names_of(*g.target, inner);
        for (const auto& c : g.ifs) {
          if (!is_static(*c, &inner)) return false;
        }
      }
      return is_static(*e.items[0], &inner);
    }
    case ExprKind::kSubscript:
    case ExprKind::kSlice:
    case ExprKind::kTuple:
    case ExprKind::kList:
    case ExprKind::kDict:
    case ExprKind::kSet:
    case ExprKind::kUnary:
    case ExprKind::kBinary:
    case ExprKind::kBool2:
    case ExprKind::kCompare:
    case ExprKind::kIfExp:
    case ExprKind::kJoinedStr:
    case ExprKind::kFormatted:
      return all(e.items);
    default:
      return false;
  }
}

/// The Python value of a compile-time value; empty for anything that exists at run time only.
std::optional<HostValue> FunctionBuilder::host_value(const Value& v) {
  HostValue h;
  switch (v.kind) {
    case Value::Kind::kHost:
      return v.host;
    case Value::Kind::kTuple: {
      h.kind = HostKind::kTuple;
      h.text = v.is_list ? "list" : "tuple";
      h.handle = v.host.kind == HostKind::kTuple ? v.host.handle : -1;
      for (const auto& i : v.items) {
        const auto item = host_value(i);
        if (!item) return std::nullopt;
        h.items.push_back(*item);
      }
      return h;
    }
    case Value::Kind::kExpr:
      switch (v.expr->kind) {
        case ir::ExprKind::kInt:
          if (v.expr->type->dtype == DType::kBool) {
            h.kind = HostKind::kBool;
          } else {
            h.kind = HostKind::kInt;
          }
          h.int_value = v.expr->int_value;
          return h;
        case ir::ExprKind::kFloat:
          h.kind = HostKind::kFloat;
          h.float_value = v.expr->float_value;
          return h;
        case ir::ExprKind::kString:
          h.kind = HostKind::kString;
          h.text = v.expr->text;
          return h;
        case ir::ExprKind::kNone:
          h.kind = HostKind::kNone;
          return h;
        default:
          return std::nullopt;
      }
    default:
      return std::nullopt;
  }
}

/// Small integer arithmetic without asking the host.
std::optional<HostValue> FunctionBuilder::fold_small(const syn::Expr& e) {
  constexpr int64_t kLimit = int64_t{1} << 30;
  if (e.kind == ExprKind::kInt && !e.big) return make_int(e.int_value);
  if (e.kind == ExprKind::kName) {
    HostValue h;
    if (const BindingPtr b = find_binding(e.text)) {
      if (b->kind != Binding::Kind::kValue) return std::nullopt;
      const auto v = host_value(b->value);
      if (!v) return std::nullopt;
      h = *v;
    } else {
      h = host_lookup(e.text);
    }
    if (h.kind == HostKind::kInt && !h.big) return h;
    return std::nullopt;
  }
  if (e.kind == ExprKind::kUnary && e.text == "-") {
    auto v = fold_small(*e.items[0]);
    if (!v || v->int_value == INT64_MIN) return std::nullopt;
    return make_int(-v->int_value);
  }
  if (e.kind != ExprKind::kBinary) return std::nullopt;
  const auto a = fold_small(*e.items[0]);
  if (!a) return std::nullopt;
  const auto b = fold_small(*e.items[1]);
  if (!b) return std::nullopt;
  const int64_t x = a->int_value;
  const int64_t y = b->int_value;
  if (std::abs(x) > kLimit || std::abs(y) > kLimit) return std::nullopt;
  if (e.text == "+") return make_int(x + y);
  if (e.text == "-") return make_int(x - y);
  if (e.text == "*") return make_int(x * y);
  if ((e.text == "//" || e.text == "%") && y != 0) {
    int64_t q = x / y;
    if ((x % y != 0) && ((x < 0) != (y < 0))) --q;
    return make_int(e.text == "//" ? q : x - q * y);
  }
  return std::nullopt;
}

void FunctionBuilder::collect_locals(const syn::Expr& e, std::vector<std::pair<std::string, HostValue>>& out,
                                     std::set<std::string>& seen) {
  if (e.kind == ExprKind::kName) {
    if (!seen.insert(e.text).second) return;
    if (const BindingPtr b = find_binding(e.text)) {
      if (b->kind != Binding::Kind::kValue) return;
      if (const auto h = host_value(b->value)) out.emplace_back(e.text, *h);
    } else if (frame_->parent && frame_->host && frame_->host->lookup(e.text).kind == HostKind::kMissing) {
      const HostValue h = host_lookup(e.text);  // a name of the helper's caller
      if (h.kind != HostKind::kMissing) out.emplace_back(e.text, h);
    }
  }
  for (const auto& i : e.items) {
    if (i) collect_locals(*i, out, seen);
  }
  for (const auto& k : e.keywords) {
    if (k.value) collect_locals(*k.value, out, seen);
  }
  for (const auto& g : e.generators) {
    collect_locals(*g.iter, out, seen);
    for (const auto& c : g.ifs) collect_locals(*c, out, seen);
  }
}

Value FunctionBuilder::fold(const syn::Expr& e) {
  if (const auto small = fold_small(e)) return from_host(*small, e.span);
  std::vector<std::pair<std::string, HostValue>> locals;
  std::set<std::string> seen;
  collect_locals(e, locals, seen);
  try {
    const HostValue h = frame_->host->eval(e, locals);
    if (h.kind == HostKind::kMissing) {
      reject(ErrorClass::kParserTypeError, e.span, "Failed to evaluate expression: " + source_text(e));
    }
    return from_host(h, e.span);
  } catch (const HostError& error) {
    Diagnostic d;
    d.cls = ErrorClass::kParserTypeError;
    d.message =
        "Failed to evaluate expression '" + source_text(e) + "': " + error.type + ": " + error.message;
    d.span = e.span;
    d.host_exception = error.exception;
    throw Failure(std::move(d));
  }
}

Value FunctionBuilder::compile_time(const syn::Expr& e) {
  if (!is_static(e)) {
    reject(ErrorClass::kParserTypeError, e.span,
           "Expression must be compile-time evaluable: " + source_text(e));
  }
  return fold(e);
}

std::optional<int64_t> FunctionBuilder::try_constant_int(const Value& v) {
  if (!v.is_expr() || v.expr->kind != ir::ExprKind::kInt || v.expr->type->dtype == DType::kBool)
    return std::nullopt;
  return v.expr->int_value;
}

int64_t FunctionBuilder::constant_int(const syn::Expr& e, const std::string& what, ErrorClass cls) {
  const Value v = eval(e);
  const auto n = try_constant_int(v);
  if (!n) reject(cls, e.span, what + ", got " + source_text(e));
  return *n;
}

}  // namespace pypto::sema
