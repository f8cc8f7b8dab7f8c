// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "core/ir/ir.h"

namespace pypto::ir {

VarPtr Function::add_var(std::string var_name, TypePtr var_type, VarKind kind, Span var_span) {
  auto v = std::make_shared<Var>();
  v->name = std::move(var_name);
  v->type = std::move(var_type);
  v->kind = kind;
  v->span = std::move(var_span);
  v->id = static_cast<int>(vars.size());
  vars.push_back(v);
  return v;
}

const FunctionAttr* Function::attr(std::string_view key) const {
  for (const auto& a : attrs) {
    if (a.key == key) return &a;
  }
  return nullptr;
}

FunctionPtr Module::find(std::string_view wanted) const {
  for (const auto& f : functions) {
    if (f->name == wanted) return f;
  }
  return nullptr;
}

FunctionPtr Module::entry() const {
  FunctionPtr orchestration, only;
  int orchestrations = 0;
  int callable = 0;
  for (const auto& f : functions) {
    if (f->is_sub_worker) continue;
    if (f->is_host()) return f;
    ++callable;
    only = f;
    if (f->type == FunctionType::kOrchestration) {
      ++orchestrations;
      orchestration = f;
    }
  }
  if (orchestrations > 0) return orchestrations == 1 ? orchestration : nullptr;
  return callable == 1 ? only : nullptr;
}

}  // namespace pypto::ir
