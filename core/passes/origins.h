// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/ir/ir.h"

namespace pypto::passes {

/// Where the storage of a tensor value may come from.
struct Origin {
  std::set<const ir::Var*> entries;   ///< the value a variable had on entry to the block
  std::set<const ir::Expr*> creates;  ///< a create_tensor of the block
  bool view = false;                  ///< through an address into one of those
  bool fresh = false;                 ///< made by any other operation of the block

  bool operator==(const Origin&) const = default;
  void join(const Origin& o) {
    entries.insert(o.entries.begin(), o.entries.end());
    creates.insert(o.creates.begin(), o.creates.end());
    view |= o.view;
    fresh |= o.fresh;
  }
  bool is_entry() const { return !fresh && !view && creates.empty() && entries.size() == 1; }
  bool is_create() const { return !fresh && !view && entries.empty() && creates.size() == 1; }
};

/// Origins of the tensor variables at the end of a block, by abstract execution of the block.
class OriginScan {
 public:
  explicit OriginScan(const ir::Block& block);
  /// A variable that the block does not assign is its own entry.
  Origin of(const ir::Var* v) const;
  /// Where a create_tensor is assigned, and which other variables may hold an earlier tensor of it there;
  /// nullptr when it is not assigned.
  struct Made {
    const ir::Stmt* stmt = nullptr;
    std::set<const ir::Var*> held;
  };
  const Made* made(const ir::Expr& create) const {
    const auto it = made_.find(&create);
    return it == made_.end() ? nullptr : &it->second;
  }
  /// Origins of the values of a return statement; nullptr when it is never reached.
  const std::vector<Origin>* returned(const ir::Stmt& s) const {
    const auto it = returned_.find(&s);
    return it == returned_.end() ? nullptr : &it->second;
  }

 private:
  using State = std::unordered_map<const ir::Var*, Origin>;
  struct Loop {
    std::optional<State>* exits;
    std::optional<State>* continues;
    const ir::Stmt* stmt;
  };
  void run(const ir::Block& block);
  void run(const ir::Stmt& s);
  void set(const ir::VarPtr& v, Origin o);
  Origin origin(const ir::ExprPtr& e) const;
  static void merge(State& into, const State& from);
  static void jump(std::optional<State>& into, const State& from);

  State state_;
  std::unordered_map<const ir::Stmt*, State> heads_;  ///< by loop: what holds at the top of its body
  void note_creates(const ir::Stmt& s);
  std::unordered_map<const ir::Stmt*, std::vector<Origin>> returned_;
  std::unordered_map<const ir::Expr*, Made> made_;
  bool dead_ = false;  ///< after break, continue or return
  std::vector<Loop> loops_;
};

}  // namespace pypto::passes
