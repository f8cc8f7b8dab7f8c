// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "core/ir/clone.h"
#include "core/passes/liveness.h"
#include "core/passes/origins.h"

/// Making a tensor that is created in a kernel a parameter of the kernel (01 L-186).
namespace pypto::passes {

/// Copies statements; a create_tensor that became an output is the output's parameter.
class CreateCloner : public ir::Cloner {
 public:
  using ir::Cloner::Cloner;
  std::unordered_map<const ir::Expr*, ir::VarPtr> creates;
  ir::ExprPtr expr(const ir::ExprPtr& e) override;
};

/// Which created tensors of a block can be one storage: those made once, and those made in a loop when the
/// tensor of the round before is not read any more and none starts with an initial value.
class OneStorage {
 public:
  /// `at_end`: variables read after the block.
  OneStorage(const ir::Block& block, const OriginScan& scan, VarSet at_end = {});
  bool can(const ir::Expr& create) const;

 private:
  void walk(const ir::Block& block, bool loop);

  const OriginScan& scan_;
  std::unordered_set<const ir::Expr*> repeated_;
  std::unique_ptr<Liveness> live_;
};

/// The variable of a created output never stands for anything else in the block: it can be the parameter
/// itself.
bool names_only(const ir::Block& block, const ir::VarPtr& var, const ir::Expr& create);

/// Drops the assignments of a variable to itself.
ir::Block without_self_moves(ir::Block block);

}  // namespace pypto::passes
