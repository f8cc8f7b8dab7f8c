// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/ir/ir.h"

namespace pypto::passes {

using VarSet = std::unordered_set<const ir::Var*>;

/// Which variables are read later, at the end of each statement and at the start of each body. Kept as the
/// places where a variable becomes live or dead, so that its size grows with the program alone.
class Liveness {
 public:
  /// `at_end`: variables read after the block.
  explicit Liveness(const ir::Block& block, VarSet at_end = {});

  /// The variables that are live at one place.
  class At {
   public:
    size_t count(const ir::Var* v) const { return of_->is_live(v, place_) ? 1 : 0; }

   private:
    friend class Liveness;
    At(const Liveness* of, int place) : of_(of), place_(place) {}
    const Liveness* of_;
    int place_;
  };

  /// Read after the statement, on some path.
  At after(const ir::Stmt& s) const { return {this, places_.at(&s).after}; }
  /// Read in the statement or after it, before it (or anything later) defines them.
  At before(const ir::Stmt& s) const { return {this, places_.at(&s).before}; }
  /// The value on entry is read by the body of a scope (not counting what is read after it).
  const VarSet& start() const { return live_; }

 private:
  struct Loop {
    const VarSet* on_break;
    const VarSet* on_continue;
    const ir::Stmt* loop;
  };
  struct Places {
    int after = 0, before = 0;
  };
  bool is_live(const ir::Var* v, int place) const;
  void add(const ir::Var* v);
  void remove(const ir::Var* v);
  void become(const VarSet& set);
  void add_uses(const ir::ExprPtr& e);
  VarSet changed_since(size_t mark) const;
  const VarSet& exposed(const ir::Stmt& loop);
  void run(const ir::Block& block);
  void run(const ir::Stmt& s);
  void branch(const ir::Stmt& s);
  void loop(const ir::Stmt& s);

  VarSet live_;                      ///< at the place that the walk, from the end to the start, has reached
  std::vector<const ir::Var*> log_;  ///< variables in the order in which they became live or dead
  std::unordered_map<const ir::Var*, std::vector<int>> changes_;  ///< their places, ascending
  std::unordered_map<const ir::Stmt*, Places> places_;
  std::unordered_map<const ir::Stmt*, VarSet> exposed_;  ///< by loop: read in a round before it is defined
  std::vector<Loop> loops_;
  int place_ = 0;
  bool recording_ = true;
};

/// Variables whose value at the start of a block is read in it.
VarSet live_at_start(const ir::Block& block);

}  // namespace pypto::passes
