// SPDX-License-Identifier: Apache-2.0
#include "core/passes/device_sets.h"

#include "core/passes/collective_forms.h"
#include "core/passes/walk.h"

namespace pypto::passes {

using ir::ExprKind;
using ir::ExprPtr;
using ir::OpId;
using ir::StmtKind;

WindowScan::WindowScan(const ir::Function& host, int world_size)
    : world_size_(world_size), definitions_(definitions(host.body)) {
  for (bool changed = true; changed;) {
    changed = false;
    bind(host.body, changed);
  }
  visit(host.body);
  // A collective's other operands take the device set of its data operand (03 D-50).
  for (bool changed = true; changed;) {
    changed = false;
    for (const ir::Expr* e : collectives_) {
      const CollectiveCall c = collective_call(*e);
      const DeviceSet set = devices(c.target ? c.target : c.signal);
      if (set.empty()) continue;
      for (const auto& a : e->args) {
        if (!a) continue;
        for (const ir::Var* b : buffers(a)) changed = sets_[b].join(set) || changed;
      }
    }
  }
}

std::set<const ir::Var*> WindowScan::buffers(const ExprPtr& e) const {
  if (!e) return {};
  switch (e->kind) {
    case ExprKind::kVar: {
      const auto it = views_.find(e->var.get());
      return it == views_.end() ? std::set<const ir::Var*>() : it->second;
    }
    case ExprKind::kOp: {
      const auto& row = ir::op_row(e->op);
      if (row.alias == ir::AliasClass::kView) return buffers(e->args[0]);
      if (row.alias == ir::AliasClass::kInPlace && row.inplace_param >= 0) {
        return buffers(e->args[static_cast<size_t>(row.inplace_param)]);
      }
      return {};
    }
    case ExprKind::kCall: {
      std::set<const ir::Var*> out;
      for (const int p : e->call->callee->return_params) {
        if (p >= 0 && p < static_cast<int>(e->args.size()))
          out.merge(buffers(e->args[static_cast<size_t>(p)]));
      }
      return out;
    }
    case ExprKind::kItem:
      return buffers(e->args[0]);
    default:
      return {};
  }
}

void WindowScan::bind(const ir::Block& block, bool& changed) {
  walk_stmts(block, [&](const ir::StmtPtr& s) {
    const auto add = [&](const ir::VarPtr& v, const ExprPtr& value) {
      if (!v) return;
      if (is_op(value, OpId::k_alloc_window_buffer)) {
        changed = views_[v.get()].insert(v.get()).second || changed;
        return;
      }
      for (const ir::Var* b : buffers(value)) changed = views_[v.get()].insert(b).second || changed;
    };
    if (s->kind == StmtKind::kAssign) {
      for (size_t i = 0; i < s->targets.size(); ++i) {
        const bool display = s->value->kind == ExprKind::kTuple && i < s->value->args.size();
        add(s->targets[i], display ? s->value->args[i] : s->value);
      }
    }
    for (size_t i = 0; s->kind == StmtKind::kYield && i < s->targets.size() && i < s->values.size(); ++i) {
      add(s->targets[i], s->values[i]);
    }
    for (const auto& c : s->carries) {
      add(c.var, c.init);
      add(c.result, c.init);
    }
  });
}

DeviceSet WindowScan::target(const ExprPtr& device) const {
  DeviceSet out;
  const ExprPtr e = origin(device);
  const auto loop = e && e->kind == ExprKind::kVar ? loops_.find(e->var.get()) : loops_.end();
  if (const auto k = ir::const_int(e)) {
    out.ranks.insert(*k);
  } else if (loop == loops_.end() || loop->second.world || !loop->second.known) {
    out.world = true;
  } else {
    for (int64_t r = loop->second.from; r < loop->second.to; ++r) out.ranks.insert(r);
  }
  return out;
}

void WindowScan::visit(const ir::Block& block) {
  for (const auto& s : block) {
    if (s->kind == StmtKind::kFor) {
      LoopRange range;
      const auto from = s->start ? ir::const_int(s->start) : std::optional<int64_t>(0);
      const ExprPtr stop = origin(s->stop);
      const auto to = ir::const_int(stop);
      range.known = from && to;
      if (range.known) {
        range.from = *from;
        range.to = *to;
      }
      range.world = is_op(stop, OpId::k_world_size) && from == 0;
      if (is_op(stop, OpId::k_world_size) && from && *from > 0 && world_size_ > 0) {
        range.known = true;
        range.from = *from;
        range.to = world_size_;
      }
      loops_[s->loop_var.get()] = range;
      loop_spans_.emplace_back(s->loop_var.get(), s->span);
    }
    own_exprs(*s, [&](const ExprPtr& e) {
      walk_expr(e, [&](const ExprPtr& x) {
        if (x->kind == ExprKind::kOp && is_collective(x->op)) collectives_.push_back(x.get());
        if (x->kind != ExprKind::kCall || x->call->callee->is_host()) return;
        if (!x->call->device) {
          reached_.world = true;  // placed by the runtime
          return;
        }
        const DeviceSet set = target(x->call->device);
        reached_.join(set);
        pins_.emplace_back(set, x->span);
        if (!pin_.known()) {
          pin_ = x->span;
          for (const auto& [var, span] : loop_spans_) {
            walk_expr(x->call->device, [&](const ExprPtr& d) {
              if (d->kind == ExprKind::kVar && d->var.get() == var) pin_ = span;
            });
          }
        }
        for (const auto& a : x->args) {
          if (!a || !a->type || !a->type->is_window()) continue;
          for (const ir::Var* b : buffers(a)) sets_[b].join(set);
        }
      });
    });
    visit(s->body);
    visit(s->else_body);
  }
}

DeviceSet WindowScan::devices(const ExprPtr& window) const {
  DeviceSet out;
  for (const ir::Var* b : buffers(window)) {
    if (const auto it = sets_.find(b); it != sets_.end()) out.join(it->second);
  }
  if (world_size_ > 0 && !out.world && static_cast<int64_t>(out.ranks.size()) == world_size_)
    out.world = true;
  return out;
}

const DeviceSet* WindowScan::of_buffer(const ir::Var* buffer) const {
  const auto it = sets_.find(buffer);
  return it == sets_.end() ? nullptr : &it->second;
}

int64_t WindowScan::size(const DeviceSet& set) const {
  if (set.world) return world_size_ > 0 ? world_size_ : -1;
  return static_cast<int64_t>(set.ranks.size());
}

/// What the names and conversions of a scalar lead to.
ExprPtr WindowScan::origin(ExprPtr e) const {
  e = resolved(std::move(e), definitions_);
  while (is_op(e, OpId::k_scalar_cast)) e = resolved(e->args[0], definitions_);
  return e;
}

/// The integer expression with the size of the world and constant definitions in place; null: it has other
/// names.
ExprPtr WindowScan::in_this_world(const ExprPtr& e) const {
  if (!e || ir::const_int(e)) return e;
  if (e->kind == ExprKind::kVar) {
    const auto found = definitions_.find(e->var.get());
    if (found == definitions_.end()) return nullptr;
    // Once for each name: those of sums of sums would double the work at each step.
    const auto [known, fresh] = values_.try_emplace(e->var.get(), nullptr);
    if (fresh) {
      const ExprPtr value = in_this_world(found->second);
      values_[e->var.get()] = value;
      return value;
    }
    return known->second;
  }
  if (e->kind != ExprKind::kOp) return nullptr;
  if (e->op == OpId::k_world_size)
    return world_size_ > 0 ? ir::int_const(world_size_, e->type->dtype, e->span) : nullptr;
  std::vector<ExprPtr> args;
  for (const ExprPtr& a : e->args) {
    args.push_back(in_this_world(a));
    if (!args.back()) return nullptr;
  }
  return ir::simplify(ir::op_expr(e->op, std::move(args), e->attrs, e->type, e->span));
}

int64_t WindowScan::extent(const ir::Dim& dim) const {
  if (dim.is_const()) return dim.value;
  const auto value = ir::const_int(in_this_world(dim.expr));
  return value && *value >= 0 ? *value : -1;
}

void check_pinned_ranks(const ir::Module& module, const std::vector<int>& device_ids) {
  const auto size = static_cast<int64_t>(device_ids.size());
  if (size == 0) return;
  for (const auto& f : module.functions) {
    if (!f->is_host() || f->is_sub_worker) continue;
    const WindowScan scan(*f, static_cast<int>(size));
    for (const auto& [set, span] : scan.pins()) {
      for (const int64_t rank : set.ranks) {
        if (rank >= 0 && rank < size) continue;
        std::string ids;
        for (size_t i = 0; i < device_ids.size() && i < 16; ++i)
          ids += (i ? ", " : "") + std::to_string(device_ids[i]);
        if (device_ids.size() > 16) ids += ", ...";
        Diagnostic d;
        d.cls = ErrorClass::kCompileError;
        d.id = "X-6";
        d.message = "device=" + std::to_string(rank) + " is outside [0, " + std::to_string(size) +
                    ") (device_ids [" + ids + "])";
        d.hint = "fix the loop bound or device_ids";
        d.span = span;
        throw Failure(std::move(d));
      }
    }
  }
}

void check_domain_sizes(const ir::Module& module, int world_size) {
  constexpr int64_t kMost = 64;  // ranks of a communicator of the cards
  if (world_size <= kMost) return;
  for (const auto& f : module.functions) {
    if (!f->is_host() || f->is_sub_worker) continue;
    const WindowScan scan(*f, world_size);
    // Domains are numbered by their first buffer (03 D-51); empty: the world.
    std::set<std::set<int64_t>> seen;
    walk_stmts(f->body, [&](const ir::StmtPtr& s) {
      for (const auto& v : s->targets) {
        const DeviceSet* set = scan.of_buffer(v.get());
        if (!set) continue;
        const bool world = set->world || static_cast<int64_t>(set->ranks.size()) == world_size;
        if (!seen.insert(world ? std::set<int64_t>() : set->ranks).second) continue;
        const int64_t ranks = world ? world_size : static_cast<int64_t>(set->ranks.size());
        if (ranks <= kMost) continue;
        Diagnostic d;
        d.cls = ErrorClass::kCompileError;
        d.id = "D-56";
        d.message = "the communication domain 'comm_d" + std::to_string(seen.size() - 1) + "' of '" +
                    f->name + "' (buffer '" + v->name + "') has " + std::to_string(ranks) +
                    " ranks; a device takes at most " + std::to_string(kMost);
        d.hint = "give fewer device_ids, dispatch to fewer of them, or use the simulator";
        d.span = s->span;
        throw Failure(std::move(d));
      }
    });
  }
}

void warn_idle_ranks(ir::Module& module, int world_size) {
  if (world_size <= 0) return;
  for (const auto& f : module.functions) {
    if (!f->is_host() || f->is_sub_worker) continue;
    const WindowScan scan(*f, world_size);
    if (scan.reached().empty() || scan.reached().world) continue;
    std::string idle;
    for (int r = 0; r < world_size; ++r) {
      if (!scan.reached().ranks.count(r)) idle += (idle.empty() ? "" : ", ") + std::to_string(r);
    }
    if (idle.empty()) continue;
    Diagnostic d;
    d.cls = ErrorClass::kValueError;
    d.severity = Severity::kWarning;
    d.id = "X-8";
    d.message = "no dispatch of '" + f->name + "' reaches rank " + idle + " of the " +
                std::to_string(world_size) + " devices; the dispatches stop at rank " +
                std::to_string(*scan.reached().ranks.rbegin());
    d.span = scan.pin();
    d.hint = "use pl.range(pld.world_size()) or shorten device_ids";
    module.warnings.push_back(std::move(d));
  }
}

}  // namespace pypto::passes
