// SPDX-License-Identifier: Apache-2.0
#include "core/passes/dual_lanes.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/ir/clone.h"
#include "core/ir/print.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::Expr;
using ir::ExprKind;
using ir::ExprPtr;
using ir::Function;
using ir::FunctionPtr;
using ir::FunctionType;
using ir::Stmt;
using ir::StmtKind;

bool both_lanes(const Function& f) {
  const ir::FunctionAttr* dual = f.type == FunctionType::kAIV ? f.attr("dual_aiv_dispatch") : nullptr;
  return dual && (dual->int_value != 0 || dual->value == "True");
}

/// The group `f.name` whose only member is `member`.
FunctionPtr group_of(const Function& f, const FunctionPtr& member) {
  auto g = std::make_shared<Function>();
  g->name = f.name;
  g->type = FunctionType::kGroup;
  g->level = ir::Level::kCoreGroup;
  g->span = f.span;
  g->uses_vector = true;
  g->directions = f.directions;
  g->effective_directions = f.effective_directions;
  g->return_params = f.return_params;
  ir::Cloner cloner(g.get());
  for (const auto& v : f.params) g->params.push_back(cloner.var(v));
  for (const auto& v : f.symbols) g->symbols.push_back(cloner.var(v));
  for (const auto& t : f.return_types) g->return_types.push_back(cloner.type(t));
  auto call = std::make_shared<Expr>();
  call->kind = ExprKind::kCall;
  call->type = ir::none_type();
  call->span = f.span;
  for (const auto& p : g->params) call->args.push_back(ir::var_ref(p, f.span));
  auto info = std::make_shared<ir::CallInfo>();
  info->callee = member;
  info->no_dep.assign(call->args.size(), false);
  call->call = info;
  auto launch = std::make_shared<Stmt>();
  launch->kind = StmtKind::kEval;
  launch->span = f.span;
  launch->value = call;
  g->body.push_back(launch);
  if (!f.return_types.empty()) {
    auto back = std::make_shared<Stmt>();
    back->kind = StmtKind::kReturn;
    back->span = f.span;
    for (const int p : f.return_params) {
      back->values.push_back(ir::var_ref(g->params[static_cast<size_t>(p)], f.span));
    }
    g->body.push_back(back);
  }
  return g;
}

}  // namespace

void dual_lanes(ir::Module& module) {
  std::unordered_set<const Function*> alone, in_group;
  for (const auto& f : module.functions) {
    walk_exprs(f->body, [&](const ExprPtr& e) {
      if (e->kind != ExprKind::kCall || !e->call->callee || !both_lanes(*e->call->callee)) return;
      (f->type == FunctionType::kGroup ? in_group : alone).insert(e->call->callee.get());
    });
  }
  std::unordered_map<const Function*, FunctionPtr> became;
  std::vector<FunctionPtr> out;
  for (const auto& f : module.functions) {
    const bool results =
        std::all_of(f->return_params.begin(), f->return_params.end(), [](int p) { return p >= 0; });
    if (!alone.count(f.get()) || !results) {
      out.push_back(f);
      continue;
    }
    if (in_group.count(f.get())) out.push_back(f);
    const FunctionPtr member = ir::clone(*f);
    member->name = f->name + "_aiv";
    became[f.get()] = group_of(*f, member);
    out.push_back(member);
    out.push_back(became[f.get()]);
  }
  if (became.empty()) return;
  for (const auto& f : out) {
    if (f->type == FunctionType::kGroup) continue;
    walk_exprs(f->body, [&](const ExprPtr& e) {
      if (e->kind != ExprKind::kCall) return;
      const auto it = became.find(e->call->callee.get());
      // The module is a copy of our own: nobody else holds its calls.
      if (it != became.end()) std::const_pointer_cast<ir::CallInfo>(e->call)->callee = it->second;
    });
  }
  module.functions = std::move(out);
}

}  // namespace pypto::passes
