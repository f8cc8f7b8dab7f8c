// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// Explicit carries and pl.yield_ (01 L-92, L-97, L-98).
namespace pypto::sema {

using syn::ExprKind;
using syn::StmtKind;

void FunctionBuilder::bind_carries(LoopInfo& loop, const Span& span) {
  for (size_t i = 0; i < loop.carried.size(); ++i) {
    auto b = std::make_shared<Binding>();
    b->var = loop.carry_vars[i];
    b->type = loop.carry_types[i];
    b->span = span;
    if (const RegionInfo* region = kernel_region(); region && base_place_ != ir::kPlaceKernel) {
      b->regions = {region->id};
      b->blocks = region->blocks;
    }
    bind(loop.carried[i], b);
  }
}

Value FunctionBuilder::eval_yield(const syn::Expr& call, const std::vector<std::string>& names,
                                  const Span& span) {
  if (!call.keywords.empty()) {
    reject(ErrorClass::kParserSyntaxError, span, "pl.yield_ takes positional arguments only");
  }
  const size_t values = call.items.size() - 1;
  if (values == 0) reject(ErrorClass::kParserSyntaxError, span, "pl.yield_ requires at least 1 value");
  const bool branch = !if_yields_.empty() && if_yields_.back()->loops == loops_.size();
  if (!branch && (loops_.size() == frame_->loop_base || !loops_.back()->explicit_carry)) {
    reject(ErrorClass::kParserSyntaxError, span,
           "pl.yield_ is only valid at the end of a loop with init_values, or of both arms of an 'if'");
  }
  if (names.empty()) {
    reject(ErrorClass::kParserSyntaxError, span,
           "This pl.yield_ has no names: a loop or branch requires an "
           "assignment-form pl.yield_",
           "write 'x = pl.yield_(value)'");
  }
  if (names.size() != values) {
    reject(ErrorClass::kParserSyntaxError, span,
           "Mismatch: pl.yield_ has " + std::to_string(values) + " value(s) but " +
               std::to_string(names.size()) + " name(s)");
  }
  if (!branch) {
    loop_yield(*loops_.back(), names, call, span);
    return {};
  }
  if (values > 5) reject(ErrorClass::kParserSyntaxError, span, "pl.yield_ in an 'if' takes at most 5 values");
  IfYield& y = *if_yields_.back();
  if (!y.names.empty() && y.names != names) {
    reject(ErrorClass::kParserSyntaxError, span,
           "The arms of this 'if' must yield to the same names: the 'if' arm yields " +
               std::to_string(y.names.size()) + " value(s) (first '" + y.names[0] + "'), the 'else' arm " +
               std::to_string(names.size()) + " (first '" + names[0] + "')",
           {}, {{"the 'if' arm yields", y.span}});
  }
  std::vector<const syn::Expr*> list;
  for (size_t i = 1; i < call.items.size(); ++i) list.push_back(call.items[i].get());
  const std::vector<Value> got = eval_operands(list);
  if (y.folded) {
    for (size_t i = 0; i < names.size(); ++i) assign(names[i], got[i], span);
    return {};
  }
  auto stmt = make(ir::StmtKind::kYield, span);
  std::vector<std::pair<std::string, BindingPtr>> bindings;
  std::vector<TypePtr> types;
  for (size_t i = 0; i < names.size(); ++i) {
    ExprPtr e = to_expr(got[i], span);
    if (e->untyped) e = ir::convert_scalar(e, e->type->dtype, "a literal");
    if (i < y.types.size() && !meets(*y.types[i], *e->type)) {
      reject(ErrorClass::kParserTypeError, list[i]->span,
             "The arms of this 'if' yield different types to '" + names[i] + "': the 'if' arm " +
                 ir::type_text(*y.types[i]) + ", the 'else' arm " + ir::type_text(*e->type),
             {}, {{"the 'if' arm yields", y.span}});
    }
    types.push_back(e->type);
    const VarPtr var = variable(names[i], e->type, span);
    stmt->targets.push_back(var);
    stmt->values.push_back(e);
    auto b = std::make_shared<Binding>();
    b->var = var;
    b->type = e->type;
    b->span = span;
    if (const RegionInfo* region = kernel_region(); region && base_place_ != ir::kPlaceKernel) {
      b->regions = {region->id};
      b->blocks = region->blocks;
    }
    if (e->type->is_scalar() && kernel_region() && (device_conditions_ > 0 || reads_device_data(e))) {
      device_data_.insert(var.get());
    }
    bindings.emplace_back(names[i], b);
  }
  emit(stmt);
  for (auto& [n, b] : bindings) bind(n, b);
  if (y.names.empty()) {
    y.names = names;
    y.types = types;
    y.span = span;
  }
  y.seen = true;
  return {};
}

void FunctionBuilder::loop_yield(LoopInfo& loop, const std::vector<std::string>& names, const syn::Expr& call,
                                 const Span& span) {
  if (names.size() != loop.carried.size()) {
    reject(ErrorClass::kParserSyntaxError, span,
           "Mismatch: the loop carries " + std::to_string(loop.carried.size()) +
               " value(s) but pl.yield_ has " + std::to_string(names.size()));
  }
  std::vector<const syn::Expr*> list;
  for (size_t i = 1; i < call.items.size(); ++i) list.push_back(call.items[i].get());
  const std::vector<Value> got = eval_operands(list);
  auto stmt = make(ir::StmtKind::kYield, span);
  const bool first = !loop.yielded;
  for (size_t i = 0; i < names.size(); ++i) {
    ExprPtr e = to_expr(got[i], list[i]->span);
    const TypePtr& want = loop.carry_types[i];
    if (e->untyped && want->is_scalar() && want->dtype != DType::kTaskId) {
      try {
        e = ir::convert_scalar(e, want->dtype, "carried value '" + loop.carried[i] + "'");
      } catch (Failure& f) {
        if (!f.diagnostic().span.known()) f.diagnostic().span = list[i]->span;
        throw;
      }
    }
    bool move = false;
    if (!meets(*want, *e->type, &move)) {
      reject(ErrorClass::kParserTypeError, list[i]->span,
             "Cannot reassign '" + loop.carried[i] + "' with a different type: was " + ir::type_text(*want) +
                 ", got " + ir::type_text(*e->type),
             "a carried value keeps one type", {{"the loop", loop.span}});
    }
    if (want->is_window() && e->type->storage && want->storage && e->type->storage != want->storage &&
        !e->type->storage->name.empty() && !want->storage->name.empty()) {
      reject(ErrorClass::kParserTypeError, list[i]->span,
             "X-17: Rebinding loop-carried DistributedTensor '" + loop.carried[i] +
                 "' to a different buffer: was '" + want->storage->name + "', got '" +
                 e->type->storage->name + "'",
             "keep one buffer per carried name");
    }
    if (move) {
      ir::AttrMap attrs;
      attrs.set(ir::AttrKey::k_target_memory, static_cast<int64_t>(want->space));
      auto t = std::make_shared<ir::Type>(*e->type);
      t->space = want->space;
      e = ir::op_expr(ir::OpId::k_move, {e, nullptr, nullptr, nullptr}, attrs, t, span);
    } else if (want->is_tensor() && want->place == ir::TensorPlace::kOnChip &&
               e->type->place != ir::TensorPlace::kOnChip) {
      // The carried name may now be that address: a write through it is looked at in the next reading.
      const auto both = join_storage(want->storage, e->type->storage);
      if (both != want->storage) {
        loop.carry_types[i] = with_storage(want, both);
        loop.carry_vars[i]->type = loop.carry_types[i];
        loop.met_addresses = true;
      }
      e = ir::op_expr(ir::OpId::k_snapshot, {e}, {},
                      with_storage(with_place(e->type, ir::TensorPlace::kOnChip), new_storage(names[i])),
                      span);
    }
    VarPtr var = names[i] == loop.carried[i] ? loop.carry_vars[i] : variable(names[i], e->type, span);
    stmt->targets.push_back(var);
    stmt->values.push_back(e);
    auto b = std::make_shared<Binding>();
    b->var = var;
    b->type = e->type;
    b->span = span;
    if (const RegionInfo* region = kernel_region(); region && base_place_ != ir::kPlaceKernel) {
      b->regions = {region->id};
      b->blocks = region->blocks;
    }
    if (e->type->is_scalar()) {
      if (kernel_region() && (device_conditions_ > 0 || reads_device_data(e))) {
        device_data_.insert(var.get());
        device_data_.insert(loop.carry_vars[i].get());
      }
      std::set<int> params;
      if (rank_dependent(e, &params)) rank_vars_.insert(var.get());
    }
    if (first) {
      loop.results.push_back(var);
      loop.result_bindings.push_back(b);
    }
  }
  if (first) {
    loop.result_names = names;
  } else if (loop.result_names != names) {
    reject(ErrorClass::kParserSyntaxError, span, "Every pl.yield_ of one loop must yield to the same names",
           {}, {{"the first pl.yield_", loop.yield_span}});
  }
  loop.yielded = true;
  loop.yield_span = span;
  emit(stmt);
  for (size_t i = 0; i < names.size(); ++i) bind(names[i], loop.result_bindings[i]);
}

/// Carried names that the body rebinds without a yield: what stands in another cell at the end of an
/// iteration (another memory, an on-chip value for an address) is brought into the carried one (01 L-97,
/// L-98).
void FunctionBuilder::rebind_carries(const LoopInfo& loop, const LoopInfo::Edge& edge) {
  Site site;
  site.span = loop.span;
  for (size_t i = 0; i < loop.carried.size(); ++i) {
    const auto it = edge.flow.names.find(loop.carried[i]);
    if (it == edge.flow.names.end()) continue;
    const Binding& b = *it->second;
    const VarPtr& var = loop.carry_vars[i];
    if (b.kind == Binding::Kind::kVar && b.var == var) continue;
    const bool scalar = b.kind == Binding::Kind::kValue && b.value.is_expr() && b.value.is_scalar();
    TypePtr type = b.type;
    if (scalar) {
      const ExprPtr& e = b.value.expr;
      type = e->untyped && var->type->is_scalar() ? var->type : e->type;
    }
    if (!type || !meets(*var->type, *type)) {
      reject(ErrorClass::kParserTypeError, b.span.known() ? b.span : loop.span,
             "Cannot reassign '" + loop.carried[i] + "' with a different type: was " +
                 ir::type_text(*var->type) + ", got " +
                 (type ? ir::type_text(*type) : std::string("a compile-time value")),
             "a carried value keeps one type", {{"the loop", loop.span}});
    }
    convert_into(var, b, edge.block, edge.before_last, loop.span);
  }
}

/// Carried addresses whose place the body takes over by an on-chip value: the initial value is then read.
std::vector<size_t> FunctionBuilder::carries_on_chip(const LoopInfo& loop,
                                                     const std::vector<LoopInfo::Edge>& back) const {
  std::vector<size_t> out;
  const auto on_chip = [](const TypePtr& t) {
    return t && t->is_tensor() && t->place == ir::TensorPlace::kOnChip;
  };
  for (size_t i = 0; loop.explicit_carry && i < loop.carried.size(); ++i) {
    const ir::Type& want = *loop.carry_types[i];
    if (!want.is_tensor() || want.place != ir::TensorPlace::kGlobal) continue;
    bool lifted = loop.yielded && i < loop.results.size() && on_chip(loop.result_bindings[i]->type);
    const auto look = [&](const std::vector<LoopInfo::Edge>& edges) {
      for (const auto& edge : edges) {
        const auto it = edge.flow.names.find(loop.carried[i]);
        if (it != edge.flow.names.end() && it->second->kind == Binding::Kind::kVar)
          lifted |= on_chip(it->second->type);
      }
    };
    if (!loop.yielded) look(back);
    look(loop.breaks);
    if (lifted) out.push_back(i);
  }
  return out;
}

void FunctionBuilder::finish_carries(LoopInfo& loop, const ir::StmtPtr& stmt, std::vector<ExprPtr> inits,
                                     const std::vector<std::string>& init_names, bool once) {
  if (!loop.explicit_carry) return;
  for (size_t i = 0; i < inits.size(); ++i) {
    const TypePtr& t = loop.carry_types[i];
    if (t->is_tensor() && t->place == ir::TensorPlace::kOnChip && inits[i]->type->place != t->place) {
      inits[i] = ir::op_expr(ir::OpId::k_snapshot, {inits[i]}, {}, t, loop.span);
    }
    ir::Carry c;
    c.var = loop.carry_vars[i];
    c.init = inits[i];
    c.result = loop.yielded ? loop.results[i] : c.var;
    if (!meets(*c.var->type, *inits[i]->type)) fail_internal(__FILE__, __LINE__, "carry type");
    stmt->carries.push_back(std::move(c));
  }
  if (loop.yielded) {
    for (size_t i = 0; i < loop.results.size(); ++i) {
      auto b = std::make_shared<Binding>(*loop.result_bindings[i]);
      // No iteration: the initial value.
      Site site;
      site.span = loop.span;
      const auto yielded = b->type->storage;
      b->type = join_types(b->type, inits[i]->type, site);
      if (once && loop.breaks.empty() && yielded) b->type = with_storage(b->type, yielded);
      b->undefined.clear();
      b->constant = nullptr;
      b->lower.reset();
      bind(loop.result_names[i], b);
    }
    for (size_t i = 0; i < init_names.size(); ++i) {
      const std::string& name = init_names[i];
      if (name.empty() || name == loop.result_names[i] || name == loop.carried[i]) continue;
      const BindingPtr b = find_binding(name);
      if (!b || b->kind != Binding::Kind::kVar || !(b->type->is_scalar() || b->type->is_tile())) continue;
      if (b->type->is_scalar() && b->type->dtype == DType::kTaskId) continue;
      auto n = std::make_shared<Binding>(*b);
      n->stale = loop.result_names[i];
      bind(name, n);
    }
  }
  for (size_t i = 0; i < loop.carried.size(); ++i) {
    const std::string& name = loop.carried[i];
    if (loop.yielded &&
        std::find(loop.result_names.begin(), loop.result_names.end(), name) != loop.result_names.end()) {
      continue;
    }
    const BindingPtr b = find_binding(name);
    auto n = std::make_shared<Binding>();
    if (b) *n = *b;
    n->kind = Binding::Kind::kVar;
    if (const RegionInfo* region = kernel_region(); region && base_place_ != ir::kPlaceKernel) {
      n->regions = {region->id};
      n->blocks = region->blocks;
    }
    n->var = loop.carry_vars[i];
    Site site;
    const bool own = b && b->kind == Binding::Kind::kVar && b->var == loop.carry_vars[i];
    n->type = own ? join_types(b->type, inits[i]->type, site) : loop.carry_types[i];
    n->undefined.clear();
    n->constant = nullptr;
    n->lower.reset();
    n->loop_variable = false;
    bind(name, n);
  }
}

}  // namespace pypto::sema
