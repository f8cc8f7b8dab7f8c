// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/ir/ir.h"

namespace pypto::passes {

using VarSet = std::unordered_set<const ir::Var*>;

/// Which variables are read later, at the end of each statement and at the start of each body.
class Liveness {
 public:
  /// `at_end`: variables read after the block.
  explicit Liveness(const ir::Block& block, VarSet at_end = {});

  /// Read after the statement, on some path.
  const VarSet& after(const ir::Stmt& s) const { return after_.at(&s); }
  /// Read in the statement or after it, before it (or anything later) defines them.
  const VarSet& before(const ir::Stmt& s) const { return before_.at(&s); }
  /// The value on entry is read by the body of a scope (not counting what is read after it).
  const VarSet& start() const { return start_; }

 private:
  struct Loop {
    const VarSet* on_break;
    const VarSet* on_continue;
    const ir::Stmt* loop;
  };
  VarSet run(const ir::Block& block, VarSet live);
  VarSet run(const ir::Stmt& s, VarSet live);

  std::unordered_map<const ir::Stmt*, VarSet> after_, before_;
  std::vector<Loop> loops_;
  VarSet start_;
};

/// Variables whose value at the start of a block is read in it.
VarSet live_at_start(const ir::Block& block);

}  // namespace pypto::passes
