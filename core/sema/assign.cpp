// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// Assignments: what a name is bound to (01 L-82 - L-86, L-185).
namespace pypto::sema {

ir::StmtPtr FunctionBuilder::make(ir::StmtKind kind, const Span& span) {
  auto s = std::make_shared<ir::Stmt>();
  s->kind = kind;
  s->span = span;
  return s;
}

void FunctionBuilder::emit_assign(const VarPtr& var, ExprPtr value, const Span& span,
                                  const TypePtr& annotated) {
  note_host_scalar(*var, value);
  auto s = make(ir::StmtKind::kAssign, span);
  s->targets = {var};
  s->value = std::move(value);
  s->annotation = annotated;
  emit(std::move(s));
}

void FunctionBuilder::emit_eval(ExprPtr value, const Span& span) {
  auto s = make(ir::StmtKind::kEval, span);
  s->value = std::move(value);
  emit(std::move(s));
}

/// Keeps a value in variables of its own, so that statements emitted from here on cannot change what it is.
Value FunctionBuilder::spill(const Value& v, const char* base, const Span& span) {
  if (v.is_tuple()) {
    Value out = v;
    out.host = {};
    for (auto& i : out.items) i = spill(i, base, span);
    return out;
  }
  if (!v.is_expr()) return v;
  const auto kind = v.expr->kind;
  if (kind == ir::ExprKind::kInt || kind == ir::ExprKind::kFloat || kind == ir::ExprKind::kString ||
      kind == ir::ExprKind::kNone || kind == ir::ExprKind::kDType) {
    return v;
  }
  if (!v.expr->type || v.expr->type->kind == ir::TypeKind::kNone) return v;
  auto s = make(ir::StmtKind::kAssign, span);
  s->value = v.expr;
  if (v.expr->type->kind == ir::TypeKind::kTuple) {
    std::vector<Value> items;
    for (const auto& t : v.expr->type->elements) {
      const VarPtr var = temp(base, t, span);
      s->targets.push_back(var);
      items.push_back(Value::of(ir::var_ref(var, span)));
    }
    emit(std::move(s));
    return Value::tuple(std::move(items));
  }
  const VarPtr var = temp(base, v.expr->type, span);
  if (v.is_scalar()) {
    if (kernel_region() && (device_conditions_ > 0 || reads_device_data(v.expr)))
      device_data_.insert(var.get());
    std::set<int> params;
    if (rank_dependent(v.expr, &params)) rank_vars_.insert(var.get());
    if (!params.empty()) rank_params_[var.get()].insert(params.begin(), params.end());
  }
  s->targets = {var};
  note_host_scalar(*var, v.expr);
  emit(std::move(s));
  auto e = std::make_shared<ir::Expr>(*ir::var_ref(var, span));
  e->type = v.expr->type;
  return Value::of(e);
}

/// A writable parameter whose name now stands for something else (01 L-54).
void FunctionBuilder::note_rebinding(const std::string& name, const Value& value, const Span& span) {
  if (frame_ != root_.get() || name.empty()) return;
  for (size_t i = 0; i < fn->params.size(); ++i) {
    if (fn->params[i]->name != name || fn->directions[i] == ir::ParamDirection::kIn) continue;
    if (value.is_expr() && value.expr->type && derives_from_param(value.expr->type, static_cast<int>(i)))
      return;
    if (!jit_ && value.is_expr() && value.expr->kind == ir::ExprKind::kOp &&
        (value.expr->op == ir::OpId::k_create_tensor || value.expr->op == ir::OpId::k_full)) {
      reject(ErrorClass::kParserTypeError, span,
             "Output parameter '" + name + "' of function '" + fn->name + "' cannot be reassigned via pl." +
                 ir::op_row(value.expr->op).name,
             "write into it: " + name + "[:] = ..., or use another name",
             {{"'" + name + "' is declared", fn->params[i]->span}});
    }
    if (!param_rebound_[i].known()) param_rebound_[i] = span;
  }
}

void FunctionBuilder::assign(const std::string& name, Value value, const Span& span, const TypePtr& annotated,
                             bool plain_copy) {
  const BindingPtr before = find_binding(name);
  if (fn->strict_ssa && before && !before->loop_variable && before->undefined.empty()) {
    Diagnostic d;
    d.cls = ErrorClass::kSSAViolationError;
    d.message = "Variable '" + name + "' is already defined; strict_ssa=True forbids rebinding";
    d.span = span;
    d.hint = "use a new name";
    d.previous_span = before->span;
    d.notes.push_back({"'" + name + "' is first defined", before->span});
    throw Failure(std::move(d));
  }
  auto b = std::make_shared<Binding>();
  b->span = span;
  if (value.kind == Value::Kind::kNothing) {
    reject(ErrorClass::kParserTypeError, span, "The right side of '" + name + " = ...' has no value");
  }
  if (value.is_host() && value.host.kind == HostKind::kOpaque) {
    reject(ErrorClass::kParserTypeError, span,
           "Unsupported closure variable type: " +
               (value.host.text.empty() ? std::string("object") : value.host.text),
           "use its attributes where they are needed");
  }
  if (value.is_host() || (value.is_expr() && value.expr->kind == ir::ExprKind::kString)) {
    b->kind = Binding::Kind::kValue;
    b->value = std::move(value);
    bind(name, b);
    return;
  }
  if (value.is_expr() && value.expr->kind == ir::ExprKind::kDType) {
    HostValue h;
    h.kind = HostKind::kDType;
    h.dtype = static_cast<DType>(value.expr->int_value);
    b->kind = Binding::Kind::kValue;
    b->value = Value::of_host(h);
    bind(name, b);
    return;
  }
  if (value.is_expr() && value.expr->type->kind == ir::TypeKind::kNone) {
    emit_eval(value.expr, span);
    b->kind = Binding::Kind::kNoValue;
    bind(name, b);
    return;
  }
  if (value.is_tuple() || value.expr->type->kind == ir::TypeKind::kTuple) {
    // A tuple exists while compiling only: its elements get variables of their own.
    std::vector<Value> items;
    if (value.is_tuple()) {
      int k = 0;
      for (const auto& i : value.items) {
        const std::string part = name + "_" + std::to_string(k++);
        const bool run_time = i.is_expr() && i.expr->kind != ir::ExprKind::kInt &&
                              i.expr->kind != ir::ExprKind::kFloat && i.expr->kind != ir::ExprKind::kString &&
                              i.expr->kind != ir::ExprKind::kNone;
        const bool symbol_ref =
            run_time && i.expr->kind == ir::ExprKind::kVar && i.expr->var->kind == ir::VarKind::kSymbol;
        items.push_back(run_time && !symbol_ref ? spill(i, part.c_str(), span) : i);
      }
    } else {
      auto s = make(ir::StmtKind::kAssign, span);
      s->value = value.expr;
      int k = 0;
      for (const auto& t : value.expr->type->elements) {
        const VarPtr var = variable("%" + name + "_" + std::to_string(k), t, span);
        ++k;
        s->targets.push_back(var);
        auto e = std::make_shared<ir::Expr>(*ir::var_ref(var, span));
        e->type = t;
        items.push_back(Value::of(e));
      }
      emit(std::move(s));
    }
    b->kind = Binding::Kind::kValue;
    b->value = Value::tuple(std::move(items));
    bind(name, b);
    return;
  }
  note_rebinding(name, value, span);
  ExprPtr e = value.expr;
  if (e->untyped) e = ir::convert_scalar(e, e->type->dtype, "a literal");
  TypePtr type = e->type;
  // `b = a` copies a tile (01 L-185): the statement does, so the new name has a storage of its own.
  if (plain_copy && type->is_tile() && e->kind == ir::ExprKind::kVar)
    type = with_storage(type, new_storage(name));
  if (e->type->storage && e->type->storage->name.empty()) e->type->storage->name = name;
  const VarPtr var = variable(name, type, span);
  emit_assign(var, e, span, annotated);
  b->kind = Binding::Kind::kVar;
  b->var = var;
  b->type = type;
  if (e->kind == ir::ExprKind::kInt || e->kind == ir::ExprKind::kFloat) b->constant = e;
  if (e->type->is_scalar() && is_int(e->type->dtype)) b->lower = lower_bound(e);
  if (const RegionInfo* region = kernel_region(); region && base_place_ != ir::kPlaceKernel) {
    b->regions = {region->id};
    b->blocks = region->blocks;
  }
  if (e->type->is_scalar()) {
    if (kernel_region() && (device_conditions_ > 0 || reads_device_data(e))) device_data_.insert(var.get());
    std::set<int> params;
    if (rank_dependent(e, &params)) rank_vars_.insert(var.get());
    if (!params.empty()) rank_params_[var.get()].insert(params.begin(), params.end());
  }
  for (RegionInfo* r : regions_) {
    if (r->kind == ir::ScopeKind::kCluster) r->defined.insert(var);
  }
  bind(name, b);
}

void FunctionBuilder::assign_targets(const std::vector<std::string>& names, Value value, const Span& span) {
  size_t have = 1;
  if (value.is_tuple()) {
    have = value.items.size();
  } else if (value.is_expr() && value.expr->type->kind == ir::TypeKind::kTuple) {
    have = value.expr->type->elements.size();
  } else {
    reject(ErrorClass::kParserTypeError, span,
           "Cannot unpack " +
               (value.is_expr() ? ir::type_text(*value.expr->type) : std::string("this value")) + " into " +
               std::to_string(names.size()) + " names: it is not a tuple");
  }
  if (have != names.size()) {
    reject(ErrorClass::kParserTypeError, span,
           "Cannot unpack " + std::to_string(have) + " value(s) into " + std::to_string(names.size()) +
               " name(s)",
           have > names.size() ? "add names, or '_' for values you do not need" : "remove names");
  }
  if (value.is_tuple()) {
    // All values are read before the first name changes (a, b = b, a).
    if (names.size() > 1) {
      bool copy = false;
      for (const auto& i : value.items) copy = copy || (i.is_expr() && i.expr->kind != ir::ExprKind::kInt);
      if (copy) {
        for (auto& i : value.items) {
          if (i.is_expr() && i.expr->kind == ir::ExprKind::kVar &&
              i.expr->var->kind != ir::VarKind::kSymbol &&
              std::any_of(names.begin(), names.end(), [&](const std::string& n) {
                const BindingPtr b = find_binding(n);
                return b && b->var == i.expr->var;
              })) {
            const TypePtr t = i.expr->type;
            i = spill(i, "_v", span);
            if (i.is_expr() && i.expr->kind == ir::ExprKind::kVar) {
              auto e = std::make_shared<ir::Expr>(*i.expr);
              e->type = t;
              i.expr = e;
            }
          } else if (i.is_expr() && i.expr->kind == ir::ExprKind::kOp) {
            i = spill(i, "_v", span);
          }
        }
      }
    }
    for (size_t i = 0; i < names.size(); ++i) assign(names[i], value.items[i], span);
    return;
  }
  // One statement, several targets.
  auto s = make(ir::StmtKind::kAssign, span);
  s->value = value.expr;
  std::vector<std::pair<std::string, BindingPtr>> bindings;
  for (size_t i = 0; i < names.size(); ++i) {
    const TypePtr& t = value.expr->type->elements[i];
    if (t->storage && t->storage->name.empty()) t->storage->name = names[i];
    Value part;
    part.kind = Value::Kind::kExpr;
    part.expr = ir::item_expr(value.expr, static_cast<int>(i), span);
    note_rebinding(names[i], part, span);
    const BindingPtr before = find_binding(names[i]);
    if (fn->strict_ssa && before && names[i] != "_") {
      Diagnostic d;
      d.cls = ErrorClass::kSSAViolationError;
      d.message = "Variable '" + names[i] + "' is already defined; strict_ssa=True forbids rebinding";
      d.span = span;
      d.previous_span = before->span;
      throw Failure(std::move(d));
    }
    VarPtr var = variable(names[i], t, span);
    // The same name twice ("_, _ = ...") needs two cells.
    if (std::find(s->targets.begin(), s->targets.end(), var) != s->targets.end()) var = temp("_v", t, span);
    s->targets.push_back(var);
    auto b = std::make_shared<Binding>();
    b->var = var;
    b->type = t;
    b->span = span;
    if (const RegionInfo* region = kernel_region(); region && base_place_ != ir::kPlaceKernel) {
      b->regions = {region->id};
      b->blocks = region->blocks;
    }
    for (RegionInfo* r : regions_) {
      if (r->kind == ir::ScopeKind::kCluster) r->defined.insert(var);
    }
    bindings.emplace_back(names[i], b);
  }
  emit(std::move(s));
  for (auto& [n, b] : bindings) bind(n, b);
}

}  // namespace pypto::sema
