// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// Explicit dependencies (01 L-133).
namespace pypto::sema {

using syn::ExprKind;

/// `deps=[...]` (01 L-133).
void FunctionBuilder::read_deps(const syn::Expr& e, std::vector<ExprPtr>& out) {
  bool whole = false;
  bool element = false;
  const auto add = [&](const Value& v, const syn::Expr& where, bool subscript) {
    if (v.is_expr() && v.expr->kind == ir::ExprKind::kNone) {
      out.push_back(v.expr);
      return;
    }
    if (v.is_expr() && v.expr->type->kind == ir::TypeKind::kArray && v.expr->type->dtype == DType::kTaskId) {
      whole = true;
      out.push_back(v.expr);
    } else if (v.is_task()) {
      if (const ManualTask* ended = v.expr->kind == ir::ExprKind::kVar ? ended_scope(v.expr->var) : nullptr) {
        reject(
            ErrorClass::kScopeIsolationError, where.span,
            "deps= entry '" + source_text(where) + "' is the handle of a task of the manual scope at line " +
                std::to_string(ended->scope.line) + ", which has ended",
            "wait inside the scope, or drop the entry where both tasks use one tensor: edges across the end "
            "of a scope are automatic",
            {{"the manual scope", ended->scope}, {"the handle", v.expr->var->span}});
      }
      element = element || subscript;
      out.push_back(v.expr);
    } else {
      reject(
          ErrorClass::kParserTypeError, where.span,
          "deps= entries must be a TaskId variable, an element of a TASK_ID array or a whole TASK_ID array, "
          "got " +
              source_text(where) +
              (v.is_expr() ? " of type " + ir::type_text(*v.expr->type) : std::string()));
    }
    if (whole && element) {
      reject(ErrorClass::kParserTypeError, where.span,
             "deps= cannot mix whole TASK_ID arrays and elements of arrays in one list",
             "list the elements of both, or only whole arrays");
    }
  };
  if (e.kind == ExprKind::kListComp) {
    if (e.generators.size() != 1) {
      reject(ErrorClass::kParserSyntaxError, e.span,
             "A comprehension in deps= must have a single `for` clause");
    }
    const auto& g = e.generators[0];
    if (g.target->kind != ExprKind::kName) {
      reject(ErrorClass::kParserSyntaxError, g.target->span,
             "The comprehension variable must be a plain name");
    }
    if (g.iter->kind == ExprKind::kCall) {
      const Callee c = resolve_callee(*g.iter->items[0]);
      if (c.kind == Callee::Kind::kConstruct) {
        reject(ErrorClass::kParserSyntaxError, g.iter->span,
               "A comprehension in deps= cannot run over a DSL loop (" + c.name + ")",
               "use Python's range(...) with compile-time bounds");
      }
    }
    if (!is_static(*g.iter)) {
      reject(ErrorClass::kParserSyntaxError, g.iter->span,
             "The iterable of a comprehension in deps= depends on an IR variable: " + source_text(*g.iter),
             "its bounds must be compile-time constants");
    }
    Value items = range_items(*g.iter);
    const std::string& name = g.target->text;
    const BindingPtr before = find_binding(name);
    for (const auto& item : items.items) {
      if (!try_constant_int(item)) {
        reject(ErrorClass::kParserSyntaxError, g.iter->span,
               "Items of a comprehension in deps= must be integers");
      }
      bind_value(name, item, g.target->span);
      bool take = true;
      for (const auto& c : g.ifs) {
        if (!is_static(*c)) {
          reject(ErrorClass::kParserSyntaxError, c->span,
                 "The filter of a comprehension in deps= depends on an IR variable: " + source_text(*c));
        }
        const Value t = fold(*c);
        if (!t.is_expr() || t.expr->kind != ir::ExprKind::kInt) {
          reject(ErrorClass::kParserSyntaxError, c->span, "The filter must be a compile-time condition");
        }
        take = take && t.expr->int_value != 0;
      }
      if (take) add(eval(*e.items[0]), *e.items[0], e.items[0]->kind == ExprKind::kSubscript);
    }
    if (before) {
      bind(name, before);
    } else {
      flow().names.erase(name);
    }
    return;
  }
  if (e.kind == ExprKind::kList || e.kind == ExprKind::kTuple) {
    for (const auto& i : e.items) add(eval(*i), *i, i->kind == ExprKind::kSubscript);
    return;
  }
  const Value v = eval(e);
  if (v.is_tuple()) {
    for (const auto& i : v.items) add(i, e, false);
    return;
  }
  reject(ErrorClass::kParserTypeError, e.span,
         "deps= must be a list or tuple, got " + source_text(e) + "; entries must be a TaskId variable",
         "write deps=[" + source_text(e) + "]");
}

/// The items of a compile-time iterable.
Value FunctionBuilder::range_items(const syn::Expr& e) {
  if (e.kind == ExprKind::kCall && e.items[0]->kind == ExprKind::kName && e.items[0]->text == "range" &&
      e.keywords.empty() && e.items.size() >= 2 && e.items.size() <= 4) {
    std::vector<int64_t> n;
    for (size_t i = 1; i < e.items.size(); ++i) {
      const auto c = try_constant_int(eval(*e.items[i]));
      if (!c) break;
      n.push_back(*c);
    }
    if (n.size() == e.items.size() - 1) {
      const int64_t start = n.size() >= 2 ? n[0] : 0;
      const int64_t stop = n.size() >= 2 ? n[1] : n[0];
      const int64_t step = n.size() == 3 ? n[2] : 1;
      std::vector<Value> items;
      if (step != 0) {
        for (int64_t k = start; step > 0 ? k < stop : k > stop; k += step) {
          items.push_back(Value::of(ir::int_const(k, DType::kIndex, e.span, true)));
        }
      }
      return Value::tuple(std::move(items));
    }
  }
  Value v = fold(e);
  if (!v.is_tuple()) {
    // range objects, sets, generators: Python lists them.
    reject(ErrorClass::kParserSyntaxError, e.span,
           "The iterable of a comprehension in deps= must be a range, list or tuple, got " + source_text(e));
  }
  return v;
}

}  // namespace pypto::sema
