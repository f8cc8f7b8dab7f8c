// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// Storages: what a value lives in, and what reads and writes it (01 L-48, L-50, L-87).
namespace pypto::sema {

std::shared_ptr<ir::Storage> FunctionBuilder::new_storage(const std::string& name) {
  auto s = std::make_shared<ir::Storage>();
  s->name = name;
  if (const RegionInfo* r = kernel_region()) {
    s->region_local = base_place_ != ir::kPlaceKernel;
    s->region = r->id;
  }
  storage_facts_[s.get()].serial = next_serial_++;
  kept_.push_back(s);
  succeed(s);
  return s;
}

size_t FunctionBuilder::serial(const ir::Storage* s) const {
  const auto it = storage_facts_.find(s);
  return it == storage_facts_.end() ? 0 : it->second.serial;
}

std::vector<std::shared_ptr<ir::Storage>> FunctionBuilder::leaves(
    const std::shared_ptr<ir::Storage>& s) const {
  if (!s) return {};
  const auto it = storage_facts_.find(s.get());
  if (it == storage_facts_.end() || it->second.members.empty()) return {s};
  return it->second.members;
}

/// The storage of a value that is one of two (01 L-85: merged by path).
std::shared_ptr<ir::Storage> FunctionBuilder::join_storage(const std::shared_ptr<ir::Storage>& a,
                                                           const std::shared_ptr<ir::Storage>& b) {
  if (a == b) return a;
  if (!a) return b;
  if (!b) return a;
  std::vector<std::shared_ptr<ir::Storage>> all = leaves(a);
  for (const auto& s : leaves(b)) {
    if (std::find(all.begin(), all.end(), s) == all.end()) all.push_back(s);
  }
  std::sort(all.begin(), all.end(),
            [&](const auto& x, const auto& y) { return serial(x.get()) < serial(y.get()); });
  if (all == leaves(a)) return a;
  if (all == leaves(b)) return b;
  std::vector<const ir::Storage*> key;
  for (const auto& s : all) key.push_back(s.get());
  auto& out = joined_[key];
  if (!out) {
    LoopMemo* const reading = std::exchange(memo_, nullptr);  // no storage of its own
    out = new_storage(a->name);
    memo_ = reading;
    storage_facts_[out.get()].members = all;
    // Global memory is as good for it as for each of them (01 L-186).
    out->created = std::all_of(all.begin(), all.end(), [](const auto& s) { return s->created; });
  }
  return out;
}

void FunctionBuilder::add_leaves(const std::shared_ptr<ir::Storage>& into,
                                 const std::shared_ptr<ir::Storage>& from) {
  auto& members = storage_facts_[into.get()].members;
  if (members.empty()) return;
  for (const auto& s : leaves(from)) {
    if (std::find(members.begin(), members.end(), s) != members.end()) continue;
    members.push_back(s);
    into->created = into->created && s->created;
    if (into->needs_global) s->needs_global = true;
  }
}

void FunctionBuilder::mark_read(const TypePtr& t, const Span& span) {
  if (!t || !t->storage) return;
  for (const auto& s : leaves(t->storage)) {
    if (s->param < 0) continue;
    const auto p = static_cast<size_t>(s->param);
    facts.read[p] = true;
    if (!param_written_[p].known() && !param_read_first_[p].known()) param_read_first_[p] = span;
  }
}

/// Storage that the region or kernel being read was handed: memory that outlives its on-chip values.
bool FunctionBuilder::outside(const ir::Storage& s) const {
  if (s.param >= 0) return true;
  const RegionInfo* r = kernel_region();
  return r && base_place_ != ir::kPlaceKernel && s.region != r->id && !s.name.empty();
}

void FunctionBuilder::mark_written(const TypePtr& t, const Span& span, const std::string&) {
  if (!t || !t->storage) return;
  t->storage->written = true;
  for (const auto& s : leaves(t->storage)) {
    if (t->is_tensor() && t->place == ir::TensorPlace::kOnChip && outside(*s)) {
      reject(ErrorClass::kParserTypeError, span.known() ? span : fn->span,
             "What is written here is an on-chip value on one path and an address into '" + s->name +
                 "' on another: the write would not reach '" + s->name + "'",
             "write into '" + s->name +
                 "' itself, or take a copy for all paths: b = pl.create_tensor(...); "
                 "b[...] = the slice");
    }
    s->written = true;
    if (s->param < 0) continue;
    const auto p = static_cast<size_t>(s->param);
    facts.written[p] = true;
    if (!promoted_by_callee_) param_written_directly_[p] = true;
    if (!param_written_[p].known()) param_written_[p] = span.known() ? span : fn->span;
  }
}

/// The value is read outside the region that made it, or returned: it lives in global memory (01 L-186).
void FunctionBuilder::mark_leaves_region(const TypePtr& t) {
  if (!t || !t->is_tensor() || !t->storage) return;
  t->storage->needs_global = true;
  for (const auto& s : leaves(t->storage)) s->needs_global = true;
}

/// Attaches storages to an operation's result and records what it reads and writes.
ExprPtr FunctionBuilder::with_effects(const ExprPtr& e, const Span& span) {
  if (!e || e->kind != ir::ExprKind::kOp) return e;
  const ir::OpRow& row = ir::op_row(e->op);
  const std::string effects = row.effects;
  const bool view =
      row.alias == ir::AliasClass::kView || (e->op == ir::OpId::k_transpose && place() != ir::kPlaceKernel);
  for (size_t i = 0; i < e->args.size(); ++i) {
    const auto& a = e->args[i];
    const char effect = i < effects.size() ? effects[i] : '-';
    if (!a || !a->type || !a->type->is_array_like()) continue;
    if (view) continue;  // making an address reads nothing
    switch (effect) {
      case 'r':
      case 's':
      case 'R':
        mark_read(a->type, a->span.known() ? a->span : span);
        break;
      case 'w':
      case 'W':
      case 'n':
      case 'a':
      case 'A':
        mark_written(a->type, span, row.name);
        break;
      case 'x':
        mark_read(a->type, span);
        mark_written(a->type, span, row.name);
        break;
      default:
        break;
    }
  }
  const auto attach = [&](const TypePtr& t) -> TypePtr {
    if (!t->is_array_like()) return t;
    if (view && !e->args.empty() && e->args[0] && e->args[0]->type->is_array_like()) {
      return with_storage(t, e->args[0]->type->storage);
    }
    const bool tile_value = (e->op == ir::OpId::k_assemble) && t->is_tile();
    if (row.alias == ir::AliasClass::kInPlace && row.inplace_param >= 0 && !tile_value) {
      const auto& target = e->args[static_cast<size_t>(row.inplace_param)];
      if (target && target->type->storage) return with_storage(t, target->type->storage);
    }
    if (t->storage && storage_facts_.count(t->storage.get()) == 0) {
      // Made by the operation itself (create_tensor): known from here on.
      storage_facts_[t->storage.get()].serial = next_serial_++;
      kept_.push_back(t->storage);
      if (const RegionInfo* r = kernel_region()) {
        t->storage->region_local = base_place_ != ir::kPlaceKernel;
        t->storage->region = r->id;
      }
      succeed(t->storage);
      return t;
    }
    if (t->storage && row.alias != ir::AliasClass::kValue) return t;
    auto s = new_storage("");
    if (e->op == ir::OpId::k_create_tensor && place() == ir::kPlaceKernel) {
      s->created = true;
      if (t->storage) s->needs_global = t->storage->needs_global;
    }
    return with_storage(t, s);
  };
  if (!e->type) return e;
  TypePtr t = e->type;
  if (t->kind == ir::TypeKind::kTuple) {
    std::vector<TypePtr> parts;
    for (const auto& p : t->elements) parts.push_back(attach(p));
    t = ir::tuple_type(std::move(parts));
  } else {
    t = attach(t);
  }
  if (t == e->type) return e;
  auto out = std::make_shared<ir::Expr>(*e);
  out->type = t;
  return out;
}

void FunctionBuilder::note_call(const ExprPtr& call, const ir::Function& callee) {
  for (size_t i = 0; i < call->args.size() && i < callee.params.size(); ++i) {
    const auto& a = call->args[i];
    if (!a || !a->type || !a->type->is_tensor()) continue;
    const auto d =
        i < callee.effective_directions.size() ? callee.effective_directions[i] : ir::ParamDirection::kIn;
    const FunctionFacts& f = program_.facts(&callee);
    const bool window = a->type->is_window();
    const bool reads = window || f.read.size() <= i ? d != ir::ParamDirection::kOut : f.read[i];
    if (reads && d != ir::ParamDirection::kOut) mark_read(a->type, a->span);
    if (d == ir::ParamDirection::kIn) continue;
    // A parameter that only a callee's own promotion makes an output is reported there, not once per caller.
    const bool declared = i < callee.directions.size() && callee.directions[i] != ir::ParamDirection::kIn;
    promoted_by_callee_ = !declared && !window;
    mark_written(a->type, call->span, callee.name);
    promoted_by_callee_ = false;
  }
}

bool FunctionBuilder::reads_device_data(const ExprPtr& e) const {
  if (!e) return false;
  if (e->kind == ir::ExprKind::kVar) return device_data_.count(e->var.get()) != 0;
  if (e->kind == ir::ExprKind::kOp) {
    switch (e->op) {
      case ir::OpId::k_read:
      case ir::OpId::k_array_get:
      case ir::OpId::k_get_block_idx:
      case ir::OpId::k_get_subblock_idx:
        return true;
      case ir::OpId::k_dim:
        return false;
      default:
        break;
    }
  }
  for (const auto& a : e->args) {
    if (a && a->type && a->type->is_scalar() && reads_device_data(a)) return true;
  }
  return false;
}

bool FunctionBuilder::rank_dependent(const ExprPtr& e, std::set<int>* params) const {
  if (!e) return false;
  if (e->kind == ir::ExprKind::kVar) {
    if (e->var->kind == ir::VarKind::kParam) {
      for (size_t i = 0; i < fn->params.size(); ++i) {
        if (fn->params[i] == e->var && params) params->insert(static_cast<int>(i));
      }
    }
    if (const auto it = rank_params_.find(e->var.get()); it != rank_params_.end() && params) {
      params->insert(it->second.begin(), it->second.end());
    }
    return rank_vars_.count(e->var.get()) != 0;
  }
  bool any = e->kind == ir::ExprKind::kOp && e->op == ir::OpId::k_rank;
  if (e->kind == ir::ExprKind::kOp && e->op == ir::OpId::k_read) return any;
  for (const auto& a : e->args) {
    if (a && a->type && a->type->is_scalar() && rank_dependent(a, params)) any = true;
  }
  return any;
}

bool FunctionBuilder::derives_from_param(const TypePtr& t, int param) const {
  if (!t || !t->storage) return false;
  for (const auto& s : leaves(t->storage)) {
    if (s->param == param) return true;
  }
  return false;
}

}  // namespace pypto::sema
