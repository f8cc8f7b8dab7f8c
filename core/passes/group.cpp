// SPDX-License-Identifier: Apache-2.0
#include "core/passes/group.h"

#include <algorithm>
#include <memory>

#include "core/ir/clone.h"

namespace pypto::passes {
namespace {

using ir::Function;
using ir::FunctionPtr;

ir::StmtPtr call_of(const GroupMember& member, const Function& group) {
  auto call = std::make_shared<ir::Expr>();
  call->kind = ir::ExprKind::kCall;
  call->type = ir::none_type();
  call->span = group.span;
  for (const size_t i : member.params) call->args.push_back(ir::var_ref(group.params[i], group.span));
  auto info = std::make_shared<ir::CallInfo>();
  info->callee = member.fn;
  info->no_dep.assign(call->args.size(), false);
  call->call = info;
  auto launch = std::make_shared<ir::Stmt>();
  launch->kind = ir::StmtKind::kEval;
  launch->span = group.span;
  launch->value = call;
  return launch;
}

}  // namespace

bool returns_parameters(const Function& f) {
  return std::all_of(f.return_params.begin(), f.return_params.end(), [](int p) { return p >= 0; });
}

FunctionPtr make_group(const Function& f, const std::vector<GroupMember>& members) {
  auto g = std::make_shared<Function>();
  g->name = f.name;
  g->type = ir::FunctionType::kGroup;
  g->level = ir::Level::kCoreGroup;
  g->span = f.span;
  g->directions = f.directions;
  g->effective_directions = f.effective_directions;
  g->return_params = f.return_params;
  ir::Cloner cloner(g.get());
  for (const auto& v : f.params) g->params.push_back(cloner.var(v));
  for (const auto& v : f.symbols) g->symbols.push_back(cloner.var(v));
  for (const auto& t : f.return_types) g->return_types.push_back(cloner.type(t));
  for (const auto& member : members) {
    g->uses_cube = g->uses_cube || member.fn->type == ir::FunctionType::kAIC;
    g->uses_vector = g->uses_vector || member.fn->type == ir::FunctionType::kAIV;
    g->body.push_back(call_of(member, *g));
  }
  if (f.return_types.empty()) return g;
  auto back = std::make_shared<ir::Stmt>();
  back->kind = ir::StmtKind::kReturn;
  back->span = f.span;
  for (const int p : f.return_params) {
    back->values.push_back(ir::var_ref(g->params[static_cast<size_t>(p)], f.span));
  }
  g->body.push_back(back);
  return g;
}

}  // namespace pypto::passes
