// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>
#include <vector>

#include "core/ir/ir.h"

namespace pypto::ir {

/// Copies statements and expressions of one function into another (or into itself), replacing variables,
/// types, storages and callees on the way. Everything is copied once: two uses of a variable meet in one
/// copy.
///
/// A variable that has no entry in `vars` gets a fresh copy in `owner` (when set) or stays itself.
class Cloner {
 public:
  explicit Cloner(Function* owner = nullptr) : owner_(owner) {}
  virtual ~Cloner() = default;

  std::unordered_map<const Var*, VarPtr> vars;     ///< what a variable becomes
  std::unordered_map<const Var*, ExprPtr> values;  ///< uses that become an expression (wins over `vars`)
  std::unordered_map<const Function*, FunctionPtr> functions;  ///< callees
  std::unordered_map<const Storage*, std::shared_ptr<Storage>> storages;
  /// Extents of types over variables that have no copy become unknown instead of creating one.
  bool forget_foreign_extents = false;

  VarPtr var(const VarPtr& v);
  virtual ExprPtr expr(const ExprPtr& e);
  TypePtr type(const TypePtr& t);
  Dim dim(const Dim& d);
  virtual std::shared_ptr<Storage> storage(const std::shared_ptr<Storage>& s);
  virtual StmtPtr stmt(const Stmt& s);
  Block block(const Block& b);
  std::vector<ExprPtr> exprs(const std::vector<ExprPtr>& list);
  std::vector<VarPtr> var_list(const std::vector<VarPtr>& list);

 protected:
  std::shared_ptr<CallInfo> call_info(const CallInfo& info);
  std::shared_ptr<ScopeInfo> scope_info(const ScopeInfo& info);

 private:
  bool foreign(const ExprPtr& e) const;

  Function* owner_;
  std::unordered_map<const Type*, TypePtr> types_;
  std::vector<TypePtr> kept_;  ///< keys of types_ stay alive
};

/// Copies `from` into the (empty) function `to` with the given cloner, which must own `to`.
void clone_into(const Function& from, Function& to, Cloner& cloner);

}  // namespace pypto::ir
