// SPDX-License-Identifier: Apache-2.0
#include "core/passes/dual_lanes.h"

#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/ir/clone.h"
#include "core/ir/print.h"
#include "core/passes/group.h"
#include "core/passes/walk.h"

namespace pypto::passes {
namespace {

using ir::ExprKind;
using ir::ExprPtr;
using ir::Function;
using ir::FunctionPtr;
using ir::FunctionType;

bool both_lanes(const Function& f) {
  const ir::FunctionAttr* dual = f.type == FunctionType::kAIV ? f.attr("dual_aiv_dispatch") : nullptr;
  return dual && (dual->int_value != 0 || dual->value == "True");
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
    if (!alone.count(f.get()) || !returns_parameters(*f)) {
      out.push_back(f);
      continue;
    }
    if (in_group.count(f.get())) out.push_back(f);
    const FunctionPtr member = ir::clone(*f);
    member->name = f->name + "_aiv";
    std::vector<size_t> all(f->params.size());
    std::iota(all.begin(), all.end(), size_t{0});
    became[f.get()] = make_group(*f, {{member, std::move(all)}});
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
