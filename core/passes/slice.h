// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/ir/clone.h"
#include "core/passes/liveness.h"

namespace pypto::passes {

/// The part of a region that computes some of its scalars and addresses, rewritten so that the control plane
/// can run it: no device data is read, operations in place become the storage they update, created tensors
/// become `creates`.
class ControlSlice {
 public:
  /// `creates`: what a create_tensor expression of the region becomes. `index`: blocks of an spmd region have
  /// no such value in the control plane, so uses of it fail.
  ControlSlice(const ir::Block& region, const std::unordered_map<const ir::Expr*, ir::VarPtr>& creates,
               ir::ExprPtr block_count)
      : region_(region), creates_(creates), block_count_(std::move(block_count)) {}

  /// Builds the slice for `wanted`. False when it needs what only the device knows; see `reason`.
  bool build(const VarSet& wanted);
  const ir::Block& code() const { return code_; }
  /// Variables that the slice assigns.
  const VarSet& assigned() const { return needed_; }
  const std::string& reason() const { return reason_; }

 private:
  void close(const ir::Block& block);
  void need(const ir::ExprPtr& e);
  bool keeps(const ir::Stmt& s) const;
  ir::Block rewrite(const ir::Block& block);
  ir::StmtPtr rewrite(const ir::Stmt& s);
  ir::ExprPtr rewrite(const ir::ExprPtr& e);
  void refuse(const std::string& why);

  const ir::Block& region_;
  const std::unordered_map<const ir::Expr*, ir::VarPtr>& creates_;
  ir::ExprPtr block_count_;
  VarSet needed_;
  std::unordered_set<const ir::Stmt*> kept_loops_;
  bool changed_ = false;
  ir::Block code_;
  std::string reason_;
};

}  // namespace pypto::passes
