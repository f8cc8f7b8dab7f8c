// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// Assignment statements and annotated assignments (01 L-40, L-82, L-86).
namespace pypto::sema {

using syn::ExprKind;

std::vector<std::string> FunctionBuilder::target_names(const syn::Expr& target) {
  std::vector<std::string> out;
  if (target.kind == ExprKind::kName) return {target.text};
  if (target.kind != ExprKind::kTuple && target.kind != ExprKind::kList) {
    reject(ErrorClass::kParserSyntaxError, target.span,
           "Unsupported assignment target '" + source_text(target) + "': it must be a variable name");
  }
  for (const auto& i : target.items) {
    if (i->kind != ExprKind::kName) {
      reject(ErrorClass::kParserSyntaxError, i->span,
             "Unsupported assignment target '" + source_text(*i) + "': each target must be a variable name");
    }
    out.push_back(i->text);
  }
  return out;
}

void FunctionBuilder::exec_assign(const syn::Stmt& s) {
  if (s.targets.size() != 1) {
    reject(ErrorClass::kParserSyntaxError, s.span,
           "Unsupported assignment: 'a = b = value' has several targets", "write one assignment per name");
  }
  const auto& target = *s.targets[0];
  const auto& value = *s.value;
  const bool is_call = value.kind == ExprKind::kCall;
  const std::string construct = [&] {
    if (!is_call) return std::string();
    const Callee c = resolve_callee(*value.items[0]);
    return c.kind == Callee::Kind::kConstruct ? c.name : std::string();
  }();
  if (construct == "pl.submit" || construct == "pl.spmd_submit") {
    assign_submit(s, value);
    return;
  }
  if (construct == "pl.yield_") {
    const std::vector<std::string> names = target_names(target);
    eval_yield(value, names, s.span);
    return;
  }
  if (construct == "pld.alloc_window_buffer" || construct == "pld.tensor.alloc_window_buffer") {
    const std::string name = target.kind == ExprKind::kName ? target.text : "";
    const Value buffer = alloc_window(value, name);
    assign(name, buffer, s.span);
    return;
  }
  if (target.kind == ExprKind::kName) {
    const bool copy = value.kind == ExprKind::kName;
    Value v = eval(value);
    // The name of a symbol of this function is its extent; pl.dynamic(...) itself only declares.
    if (copy && v.is_host() && v.host.kind == HostKind::kDynVar && root_->symbols.count(v.host.text)) {
      v = Value::of(to_expr(v, value.span));
    }
    if (value.kind == ExprKind::kCall) v = handed_back(std::move(v), s.span);
    assign(target.text, std::move(v), s.span, nullptr, copy);
    return;
  }
  if (target.kind == ExprKind::kSubscript) {
    Value v = eval(value);
    exec_subscript_write(target, std::move(v), s.span, &value);
    return;
  }
  const std::vector<std::string> names = target_names(target);
  Value v = eval(value);
  assign_targets(names, std::move(v), s.span);
}

/// A helper that returns a tile of its caller hands over that tile (01 L-59, L-83): the new name is a view of
/// it, where `b = a` would be a copy.
Value FunctionBuilder::handed_back(Value v, const Span& span) {
  if (!v.is_expr() || v.expr->kind != ir::ExprKind::kVar || !v.expr->type->is_tile()) return v;
  const ir::Type& t = *v.expr->type;
  if (t.space != ir::MemorySpace::kVec && t.space != ir::MemorySpace::kUnset) return v;
  bool known = false;
  for (const auto& [name, b] : flow().names) known |= b->kind == Binding::Kind::kVar && b->var == v.expr->var;
  if (!known) return v;
  std::vector<ExprPtr> shape;
  for (const auto& d : t.shape) {
    if (!d.is_const()) return v;
    shape.push_back(ir::int_const(d.value, DType::kIndex, span));
  }
  return infer(ir::op_row(ir::OpId::k_reshape), ir::kFormFlat, {v.expr, ir::tuple_expr(shape, span)}, span,
               "pl.reshape");
}

void FunctionBuilder::exec_ann_assign(const syn::Stmt& s) {
  const auto& target = *s.targets[0];
  if (target.kind != ExprKind::kName) {
    reject(ErrorClass::kParserSyntaxError, target.span,
           "Unsupported assignment target '" + source_text(target) + "': it must be a variable name");
  }
  if (!s.value) {
    reject(ErrorClass::kUnsupportedFeatureError, s.span,
           "Annotation without a value: '" + target.text + ": ...' declares nothing",
           "assign a value in the same statement");
  }
  const std::string& name = target.text;
  const Annotation a = annotation(*s.annotation, AnnotationUse::kAssign);
  const bool is_call = s.value->kind == ExprKind::kCall;
  const std::string construct = [&] {
    if (!is_call) return std::string();
    const Callee c = resolve_callee(*s.value->items[0]);
    return c.kind == Callee::Kind::kConstruct ? c.name : std::string();
  }();
  Value v;
  if (construct == "pld.alloc_window_buffer" || construct == "pld.tensor.alloc_window_buffer") {
    v = alloc_window(*s.value, name);
  } else if (construct == "pl.yield_") {
    eval_yield(*s.value, {name}, s.span);
    const BindingPtr b = find_binding(name);
    if (b && b->kind == Binding::Kind::kVar) {
      auto e = std::make_shared<ir::Expr>(*ir::var_ref(b->var, s.span));
      e->type = b->type;
      Value yielded = Value::of(e);
      check_annotation(name, a, yielded, s.span);
    }
    return;
  } else {
    const TypePtr saved = pop_type_;
    pop_type_ = a.type && a.type->is_tile() ? a.type : nullptr;
    v = eval(*s.value);
    pop_type_ = saved;
  }
  const TypePtr facts = check_annotation(name, a, v, s.span);
  assign(name, std::move(v), s.span, facts, s.value->kind == ExprKind::kName);
}

void FunctionBuilder::exec_aug_assign(const syn::Stmt& s) {
  const auto& target = *s.targets[0];
  std::string op = s.text;
  if (!op.empty() && op.back() == '=') op.pop_back();
  const bool array = target.kind == ExprKind::kSubscript && target.items[0]->kind == ExprKind::kName;
  if (target.kind != ExprKind::kName && !array) {
    reject(ErrorClass::kUnsupportedFeatureError, target.span,
           "Augmented assignment to '" + source_text(target) + "' is not supported");
  }
  const Value lhs = eval(target);
  if (array) {
    const Value base = eval(*target.items[0]);
    if (!base.is_expr() || base.expr->type->kind != ir::TypeKind::kArray) {
      reject(ErrorClass::kUnsupportedFeatureError, target.span,
             "Augmented assignment to '" + source_text(target) + "' is supported for arrays only",
             "write x[...] = ... with pl operations");
    }
  }
  const Value rhs = eval(*s.value);
  syn::Expr where;
  where.kind = ExprKind::kOther;
  where.span = s.span;
  where.text = source_text(target) + " " + op + "= " + source_text(*s.value);
  const Value result = binary(op, lhs, rhs, where);
  if (array) {
    exec_subscript_write(target, result, s.span, s.value.get());
  } else {
    assign(target.text, result, s.span);
  }
}

TypePtr FunctionBuilder::check_annotation(const std::string& name, const Annotation& a, Value& value,
                                          const Span& span) {
  if (a.ignored || (!a.type && !a.bare_tensor)) return nullptr;
  if (a.bare_tensor && !a.type) return nullptr;
  const ir::Type& want = *a.type;
  if (!value.is_expr()) {
    if (value.is_host() && value.host.kind == HostKind::kDynVar && want.is_scalar()) {
      value = Value::of(to_expr(value, span));
    } else {
      reject(ErrorClass::kParserTypeError, span,
             "Type annotation for '" + name + "' is " + ir::type_text(want, true) +
                 " but expression has type " + (value.is_tuple() ? "tuple" : "compile-time object"));
    }
  }
  const ir::Type& have = *value.expr->type;
  const std::string hint = "Change annotation to: " + ir::type_text(have, true);
  const auto mismatch = [&](const std::string& text) {
    reject(ErrorClass::kParserTypeError, span, text, hint);
  };
  const bool window_differs = want.is_tensor() && have.is_tensor() && want.is_window() != have.is_window();
  if (want.kind != have.kind || window_differs) {
    mismatch("Type annotation for '" + name + "' is " + ir::type_text(want, true) +
             " but expression has type " + ir::type_text(have, true));
  }
  if (want.is_scalar()) {
    const bool ints = is_int(want.dtype) && is_int(have.dtype);
    if (value.expr->untyped || ints) {
      if (want.dtype == DType::kTaskId || have.dtype == DType::kTaskId) {
        if (want.dtype != have.dtype) {
          mismatch("Annotation of '" + name + "' has dtype " + std::string(dtype_text(want.dtype)) +
                   " but expression has dtype " + std::string(dtype_text(have.dtype)));
        }
        return nullptr;
      }
      try {
        value.expr = ir::convert_scalar(value.expr, want.dtype, "variable '" + name + "'");
      } catch (Failure& f) {
        if (!f.diagnostic().span.known()) f.diagnostic().span = span;
        if (f.diagnostic().cls == ErrorClass::kTypeError) f.diagnostic().cls = ErrorClass::kParserTypeError;
        throw;
      }
      return nullptr;
    }
    if (!same_dtype(want.dtype, have.dtype)) {
      mismatch("Annotation of '" + name + "' has dtype " + std::string(dtype_text(want.dtype)) +
               " but expression has dtype " + std::string(dtype_text(have.dtype)));
    }
    return nullptr;
  }
  if (!want.is_array_like() && want.kind != ir::TypeKind::kArray) return nullptr;
  const bool any_int = want.dtype == DType::kIndex || have.dtype == DType::kIndex;
  if (!same_dtype(want.dtype, have.dtype) && !(any_int && is_int(want.dtype) && is_int(have.dtype))) {
    mismatch("Annotation of '" + name + "' has dtype " + std::string(dtype_text(want.dtype)) +
             " but expression has dtype " + std::string(dtype_text(have.dtype)));
  }
  if (want.rank() != have.rank()) {
    mismatch("Annotation of '" + name + "' has rank " + std::to_string(want.rank()) +
             " but expression has rank " + std::to_string(have.rank()));
  }
  for (size_t i = 0; i < want.shape.size(); ++i) {
    if (want.shape[i].is_const() && have.shape[i].is_const() && want.shape[i].value != have.shape[i].value) {
      mismatch("Annotation of '" + name + "' has shape dimension " + std::to_string(i) + " = " +
               ir::dim_text(want.shape[i]) + " but expression has shape dimension " + std::to_string(i) +
               " = " + ir::dim_text(have.shape[i]));
    }
  }
  if (!want.is_tile()) return a.type;
  // A tile annotation may add memory space, view and allocation.
  auto t = std::make_shared<ir::Type>(have);
  if (want.space != ir::MemorySpace::kUnset) {
    if (have.space != ir::MemorySpace::kUnset && have.space != want.space && !want.memref &&
        value.expr->kind != ir::ExprKind::kOp) {
      mismatch("Type annotation for '" + name + "' is " + ir::type_text(want, true) +
               " but expression has type " + ir::type_text(have, true));
    }
    t->space = want.space;
  }
  if (want.tile_view) {
    t->tile_view = want.tile_view;
    if (!want.tile_view->valid_shape.empty() && value.expr->kind == ir::ExprKind::kOp &&
        (value.expr->op == ir::OpId::k_tpop_from_aic || value.expr->op == ir::OpId::k_tpop_from_aiv)) {
      t->valid = want.tile_view->valid_shape;
    }
  }
  if (want.memref) t->memref = want.memref;
  auto e = std::make_shared<ir::Expr>(*value.expr);
  e->type = t;
  value.expr = e;
  return a.type;
}

}  // namespace pypto::sema
