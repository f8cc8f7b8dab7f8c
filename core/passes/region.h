// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/ir/ir.h"
#include "core/passes/definitions.h"
#include "core/passes/liveness.h"

namespace pypto::passes {

/// Names of a module's functions, so that new ones differ from all of them.
class FunctionNames {
 public:
  explicit FunctionNames(const ir::Module& module);
  /// `wanted`, or with the first free suffix `_1`, `_2`, ...
  std::string unique(const std::string& wanted);

 private:
  std::set<std::string> taken_;
};

/// Scopes that become functions of their own.
inline bool is_region(ir::ScopeKind k) {
  return k == ir::ScopeKind::kIncore || k == ir::ScopeKind::kSpmd || k == ir::ScopeKind::kCluster;
}

/// A region about to become a function.
struct Region {
  const ir::Stmt* stmt = nullptr;  ///< for locations
  ir::Block body;
  std::string name;  ///< already unique
  ir::FunctionType type = ir::FunctionType::kInCore;
  ir::Level level = ir::Level::kNone;
  ir::Role role = ir::Role::kNone;
  std::string kind = "pl.at";            ///< for messages
  std::shared_ptr<ir::ScopeInfo> facts;  ///< what the call and the function carry on
  bool blocks = false;                   ///< launched over facts->core_num blocks
  std::optional<Liveness::At> live_after;
  const VarSet* defined_before = nullptr;
  const Definitions* definitions = nullptr;  ///< of the owner, outside its regions
};

/// What replaces the region in the function around it.
struct OutlinedRegion {
  ir::FunctionPtr function;
  ir::Block code;  ///< creation of outputs, the call, scalars and addresses that are read later
};

/// Turns a region of `owner` into a function of its own and the code that calls it (01 L-111, L-186).
OutlinedRegion outline_region(ir::Function& owner, const Region& region);

/// The call statement of a task: plain when nothing but the call has to be said, else in submit form, which
/// also binds the task handle (01 L-130). `results` receive the callee's results.
ir::StmtPtr make_task_call(ir::Function& owner, const ir::FunctionPtr& callee, std::vector<ir::ExprPtr> args,
                           std::vector<ir::VarPtr> results, const ir::ScopeInfo& facts, bool blocks,
                           std::vector<bool> no_dep, const Span& span);

}  // namespace pypto::passes
