// SPDX-License-Identifier: Apache-2.0
#include "core/ir/clone.h"

#include <utility>

#include "core/base/poll.h"
#include "core/ir/print.h"

namespace pypto::ir {

VarPtr Cloner::var(const VarPtr& v) {
  if (!v) return nullptr;
  if (const auto it = vars.find(v.get()); it != vars.end()) return it->second;
  if (!owner_) return v;
  VarPtr copy = owner_->add_var(v->name, nullptr, v->kind, v->span);
  vars[v.get()] = copy;  // before its type: an extent may name the variable itself
  copy->type = type(v->type);
  return copy;
}

bool Cloner::foreign(const ExprPtr& e) const {
  if (!e) return false;
  if (e->kind == ExprKind::kVar) return !vars.count(e->var.get()) && !values.count(e->var.get());
  for (const auto& a : e->args) {
    if (foreign(a)) return true;
  }
  return false;
}

Dim Cloner::dim(const Dim& d) {
  if (!d.expr) return d;
  if (forget_foreign_extents && foreign(d.expr)) return Dim();
  Dim out(expr(d.expr));
  if (const auto v = const_int(out.expr); v && *v >= 0) return Dim(*v);
  return out;
}

std::shared_ptr<Storage> Cloner::storage(const std::shared_ptr<Storage>& s) {
  if (!s) return nullptr;
  auto& copy = storages[s.get()];
  if (!copy) copy = std::make_shared<Storage>(*s);
  return copy;
}

TypePtr Cloner::type(const TypePtr& t) {
  if (!t) return nullptr;
  switch (t->kind) {
    case TypeKind::kTensor:
    case TypeKind::kTile:
    case TypeKind::kArray:
    case TypeKind::kTuple:
      break;
    default:
      return t;
  }
  if (const auto it = types_.find(t.get()); it != types_.end()) return it->second;
  auto copy = std::make_shared<Type>(*t);
  const auto dims = [&](std::vector<Dim>& list) {
    for (auto& d : list) d = dim(d);
  };
  dims(copy->shape);
  dims(copy->valid);
  if (t->tensor_view) {
    auto view = std::make_shared<TensorView>(*t->tensor_view);
    dims(view->valid_shape);
    dims(view->stride);
    copy->tensor_view = view;
  }
  if (t->tile_view) {
    auto view = std::make_shared<TileView>(*t->tile_view);
    dims(view->valid_shape);
    dims(view->stride);
    dims(view->start_offset);
    copy->tile_view = view;
  }
  if (t->memref && t->memref->slot) {
    auto ref = std::make_shared<MemRef>(*t->memref);
    ref->slot = forget_foreign_extents && foreign(ref->slot) ? nullptr : expr(ref->slot);
    copy->memref = ref;
  }
  for (auto& e : copy->elements) e = type(e);
  copy->storage = storage(t->storage);
  kept_.push_back(t);
  types_[t.get()] = copy;
  return copy;
}

std::vector<ExprPtr> Cloner::exprs(const std::vector<ExprPtr>& list) {
  std::vector<ExprPtr> out;
  out.reserve(list.size());
  for (const auto& e : list) out.push_back(expr(e));
  return out;
}

std::vector<VarPtr> Cloner::var_list(const std::vector<VarPtr>& list) {
  std::vector<VarPtr> out;
  out.reserve(list.size());
  for (const auto& v : list) out.push_back(var(v));
  return out;
}

std::shared_ptr<CallInfo> Cloner::call_info(const CallInfo& info) {
  auto copy = std::make_shared<CallInfo>(info);
  if (const auto it = functions.find(info.callee.get()); it != functions.end()) copy->callee = it->second;
  copy->core_num = expr(info.core_num);
  copy->deps = exprs(info.deps);
  copy->device = expr(info.device);
  copy->predicate = expr(info.predicate);
  return copy;
}

ExprPtr Cloner::expr(const ExprPtr& e) {
  if (!e) return nullptr;
  poll();
  if (e->kind == ExprKind::kVar) {
    if (const auto it = values.find(e->var.get()); it != values.end()) return it->second;
    VarPtr v = var(e->var);
    if (v == e->var) return e;
    ExprPtr ref = var_ref(std::move(v), e->span);
    // A name that was rebound stands for another storage here than at its first assignment.
    const Type* was = e->type.get();
    const Type* declared = e->var->type.get();
    if (!was || was == declared || !was->storage || was->storage == declared->storage ||
        was->kind != ref->type->kind || was->shape.size() != ref->type->shape.size()) {
      return ref;
    }
    auto here = std::make_shared<Type>(*ref->type);
    here->storage = storage(was->storage);
    here->valid.clear();
    for (const auto& d : was->valid) here->valid.push_back(dim(d));
    auto typed = std::make_shared<Expr>(*ref);
    typed->type = std::move(here);
    return typed;
  }
  auto copy = std::make_shared<Expr>(*e);
  copy->args = exprs(e->args);  // before the type, whose extents speak of the operands' variables
  copy->type = type(e->type);
  if (e->call) copy->call = call_info(*e->call);
  return copy;
}

std::shared_ptr<ScopeInfo> Cloner::scope_info(const ScopeInfo& info) {
  auto copy = std::make_shared<ScopeInfo>(info);
  copy->deps = exprs(info.deps);
  copy->no_dep_args = var_list(info.no_dep_args);
  copy->dumps = var_list(info.dumps);
  copy->task = var(info.task);
  copy->core_num = expr(info.core_num);
  copy->predicate = expr(info.predicate);
  copy->loop_var = var(info.loop_var);
  return copy;
}

StmtPtr Cloner::stmt(const Stmt& s) {
  auto copy = std::make_shared<Stmt>(s);
  // Values before targets: the first mention of a variable decides its place in Function::vars.
  copy->value = expr(s.value);
  copy->values = exprs(s.values);
  copy->start = expr(s.start);
  copy->stop = expr(s.stop);
  copy->step = expr(s.step);
  for (auto& c : copy->carries) {
    c.init = expr(c.init);
    c.var = var(c.var);
    c.result = var(c.result);
  }
  copy->loop_var = var(s.loop_var);
  if (s.scope) copy->scope = scope_info(*s.scope);
  copy->body = block(s.body);
  copy->else_body = block(s.else_body);
  copy->targets = var_list(s.targets);
  copy->annotation = type(s.annotation);
  return copy;
}

Block Cloner::block(const Block& b) {
  Block out;
  out.reserve(b.size());
  for (const auto& s : b) {
    if (StmtPtr copy = stmt(*s)) out.push_back(std::move(copy));
  }
  return out;
}

void clone_into(const Function& from, Function& to, Cloner& cloner) {
  to.name = from.name;
  to.type = from.type;
  to.level = from.level;
  to.role = from.role;
  to.directions = from.directions;
  to.effective_directions = from.effective_directions;
  to.return_params = from.return_params;
  to.has_return_annotation = from.has_return_annotation;
  to.attrs = from.attrs;
  to.auto_scope = from.auto_scope;
  to.strict_ssa = from.strict_ssa;
  to.span = from.span;
  to.is_sub_worker = from.is_sub_worker;
  to.requires_runtime_binding = from.requires_runtime_binding;
  to.host_callable = from.host_callable;
  to.uses_cube = from.uses_cube;
  to.uses_vector = from.uses_vector;
  to.external_source = from.external_source;
  to.opaque_kernel = from.opaque_kernel;
  // All variables first, in order, so that ids stay the same.
  for (const auto& v : from.vars) {
    poll();
    VarPtr copy = to.add_var(v->name, nullptr, v->kind, v->span);
    cloner.vars[v.get()] = copy;
  }
  for (const auto& v : from.vars) cloner.vars[v.get()]->type = cloner.type(v->type);
  to.params = cloner.var_list(from.params);
  to.symbols = cloner.var_list(from.symbols);
  for (const auto& t : from.return_types) to.return_types.push_back(cloner.type(t));
  to.body = cloner.block(from.body);
}

FunctionPtr clone(const Function& f) {
  auto copy = std::make_shared<Function>();
  Cloner cloner(copy.get());
  clone_into(f, *copy, cloner);
  return copy;
}

ModulePtr clone(const Module& m) {
  auto copy = std::make_shared<Module>();
  copy->name = m.name;
  copy->arch = m.arch;
  copy->warnings = m.warnings;
  copy->codegen_errors = m.codegen_errors;
  copy->baked = m.baked;
  copy->lowered = m.lowered;
  std::unordered_map<const Function*, FunctionPtr> functions;
  for (const auto& f : m.functions) {
    auto g = std::make_shared<Function>();
    functions[f.get()] = g;
    copy->functions.push_back(g);
  }
  for (size_t i = 0; i < m.functions.size(); ++i) {
    Cloner cloner(copy->functions[i].get());
    cloner.functions.swap(functions);  // one map serves all functions
    clone_into(*m.functions[i], *copy->functions[i], cloner);
    cloner.functions.swap(functions);
  }
  return copy;
}

}  // namespace pypto::ir
