// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>

#include "core/ir/clone.h"

/// Making a tensor that is created in a kernel a parameter of the kernel (01 L-186).
namespace pypto::passes {

/// Copies statements; a create_tensor that became an output is the output's parameter.
class CreateCloner : public ir::Cloner {
 public:
  using ir::Cloner::Cloner;
  std::unordered_map<const ir::Expr*, ir::VarPtr> creates;
  ir::ExprPtr expr(const ir::ExprPtr& e) override;
};

/// The variable of a created output never stands for anything else in the block: it can be the parameter
/// itself.
bool names_only(const ir::Block& block, const ir::VarPtr& var, const ir::Expr& create);

/// Drops the assignments of a variable to itself.
ir::Block without_self_moves(ir::Block block);

}  // namespace pypto::passes
