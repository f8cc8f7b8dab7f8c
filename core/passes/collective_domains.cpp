// SPDX-License-Identifier: Apache-2.0
#include "core/passes/collective_domains.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/passes/collective_forms.h"
#include "core/passes/device_sets.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::ExprKind;
using ir::ExprPtr;
using ir::Function;
using ir::OpId;
using ir::StmtKind;

[[noreturn]] void refuse(const char* id, std::string message, const Function& f, const Span& span,
                         std::string hint) {
  Diagnostic d;
  d.cls = ErrorClass::kCompileError;
  d.id = id;
  d.kernel = f.name;
  d.message = std::move(message);
  d.span = span;
  d.hint = std::move(hint);
  throw Failure(std::move(d));
}

/// Which parameters of a device function a window expression may be a view of.
class Roots {
 public:
  explicit Roots(const Function& f) {
    for (size_t i = 0; i < f.params.size(); ++i) of_[f.params[i].get()].insert(static_cast<int>(i));
    for (bool changed = true; changed;) {
      changed = false;
      bind(f.body, changed);
    }
  }

  std::set<int> of(const ExprPtr& e) const {
    if (!e) return {};
    switch (e->kind) {
      case ExprKind::kVar: {
        const auto it = of_.find(e->var.get());
        return it == of_.end() ? std::set<int>() : it->second;
      }
      case ExprKind::kOp: {
        const auto& row = ir::op_row(e->op);
        if (row.alias == ir::AliasClass::kView) return of(e->args[0]);
        if (row.alias == ir::AliasClass::kInPlace && row.inplace_param >= 0) {
          return of(e->args[static_cast<size_t>(row.inplace_param)]);
        }
        return {};
      }
      case ExprKind::kCall: {
        std::set<int> out;
        for (const int p : e->call->callee->return_params) {
          if (p >= 0 && p < static_cast<int>(e->args.size())) out.merge(of(e->args[static_cast<size_t>(p)]));
        }
        return out;
      }
      case ExprKind::kItem:
        return of(e->args[0]);
      default:
        return {};
    }
  }

 private:
  void bind(const ir::Block& block, bool& changed) {
    walk_stmts(block, [&](const ir::StmtPtr& s) {
      const auto add = [&](const ir::VarPtr& v, const ExprPtr& value) {
        if (!v || !v->type || !v->type->is_window()) return;
        for (const int p : of(value)) changed = of_[v.get()].insert(p).second || changed;
      };
      for (size_t i = 0; s->kind == StmtKind::kAssign && i < s->targets.size(); ++i) {
        const bool display = s->value->kind == ExprKind::kTuple && i < s->value->args.size();
        add(s->targets[i], display ? s->value->args[i] : s->value);
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

  std::map<const ir::Var*, std::set<int>> of_;
};

/// A domain: every rank of the world, or these ranks; neither where there is none, or no telling.
using Domain = std::pair<bool, std::set<int64_t>>;
/// The domains of a function's parameters at one of its calls.
using Domains = std::vector<Domain>;

class Checker {
 public:
  explicit Checker(int world_size) : world_size_(world_size) {}

  void dispatches(const Function& host) {
    const WindowScan scan(host, world_size_);
    walk_exprs(host.body, [&](const ExprPtr& e) {
      if (e->kind != ExprKind::kCall || e->call->callee->is_host()) return;
      Domains domains;
      for (const ExprPtr& a : e->args) {
        const bool window = a && a->type && a->type->is_window();
        domains.push_back(window ? domain_of(scan.devices(a)) : Domain());
      }
      visit(*e->call->callee, domains);
    });
  }

 private:
  static Domain domain_of(const DeviceSet& set) {
    return set.world ? Domain{true, {}} : Domain{false, set.ranks};
  }
  int64_t size(const Domain& d) const {
    return d.first ? world_size_ : static_cast<int64_t>(d.second.size());
  }

  void visit(const Function& f, const Domains& domains) {
    if (f.is_sub_worker || !seen_.insert({&f, domains}).second) return;
    const auto known = roots_.try_emplace(&f, f).first;
    const auto domain = [&](const ExprPtr& e) -> Domain {
      if (!e || !e->type || !e->type->is_window()) return {};
      const std::set<int> params = known->second.of(e);
      if (params.size() != 1 || *params.begin() >= static_cast<int>(domains.size())) return {};
      return domains[static_cast<size_t>(*params.begin())];
    };
    walk_exprs(f.body, [&](const ExprPtr& e) {
      if (e->kind == ExprKind::kCall) {
        Domains next;
        for (const ExprPtr& a : e->args) next.push_back(domain(a));
        visit(*e->call->callee, next);
      } else if (e->kind == ExprKind::kOp && is_collective(e->op)) {
        check(f, *e, domain);
      }
    });
  }

  template <class DomainOf>
  void check(const Function& f, const ir::Expr& e, const DomainOf& domain) const {
    const CollectiveCall c = collective_call(e);
    const std::string name = "pld.tensor." + collective_name(c.op);
    const Domain mine = domain(c.signal);
    const int64_t n = size(mine);
    if (n == 0) return;
    for (const ExprPtr& a : e.args) {
      const Domain other = domain(a);
      if (size(other) == 0 || other == mine) continue;
      refuse("X-31",
             name + " takes windows of one domain, but '" + text(c.signal) + "' belongs to " + text(mine) +
                 " and '" + text(a) + "' to " + text(other),
             f, e.span, "allocate both for the same rank loop");
    }
    const auto covers = [&](const char* operand, const ExprPtr& x, size_t dim, int64_t needed, bool exactly) {
      if (!x || !x->type || x->type->shape.size() <= dim || !x->type->shape[dim].is_const()) return;
      const int64_t found = x->type->shape[dim].value;
      if (exactly ? found == needed : found >= needed) return;
      refuse("X-30",
             name + (c.ring ? ", mode=\"ring\"" : "") + ": " + operand + " '" + text(x) + "' shape[" +
                 std::to_string(dim) + "] is " + std::to_string(found) + ", " + (exactly ? "" : "at least ") +
                 std::to_string(needed) + " needed for " + std::to_string(n) + " ranks",
             f, e.span, "take the extent from pld.world_size() and pl.dynamic");
    };
    if (c.ring) {
      if (n > 1) covers("signal", c.signal, 0, 2 * (n - 1), false);
      if (n > 1) covers("signal", c.signal, 1, n, true);
    } else {
      covers("signal", c.signal, 0, n, c.op == OpId::k_all_to_all_v);
    }
    if (c.op == OpId::k_allgather || c.op == OpId::k_reduce_scatter || c.op == OpId::k_all_to_all) {
      covers("target", c.target, 0, n, false);
    }
    if (c.op == OpId::k_all_to_all) covers("input", c.input, 0, n, false);
    if (c.op == OpId::k_broadcast && c.root >= n) {
      refuse("X-30",
             name + ": root (" + std::to_string(c.root) + ") must be a valid rank in [0, " +
                 std::to_string(n) + ")",
             f, e.span, "name a rank of the domain");
    }
  }

  static std::string text(const ExprPtr& e) {
    return e && e->kind == ExprKind::kVar ? e->var->name : "operand";
  }
  static std::string text(const Domain& d) {
    if (d.first) return "all ranks";
    std::string out;
    for (const int64_t r : d.second) out += (out.empty() ? "ranks {" : ", ") + std::to_string(r);
    return out + "}";
  }

  int world_size_;
  std::set<std::pair<const Function*, Domains>> seen_;
  std::map<const Function*, Roots> roots_;
};

}  // namespace

void check_kernel_collectives(const ir::Module& module, int world_size) {
  if (world_size <= 0) return;
  bool any = false;
  for (const auto& f : module.functions) {
    if (f->is_sub_worker || f->is_host()) continue;
    walk_exprs(f->body,
               [&](const ExprPtr& e) { any = any || (e->kind == ExprKind::kOp && is_collective(e->op)); });
  }
  if (!any) return;
  Checker checker(world_size);
  for (const auto& f : module.functions) {
    if (f->is_host() && !f->is_sub_worker) checker.dispatches(*f);
  }
}

}  // namespace pypto::passes
