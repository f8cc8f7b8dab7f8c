// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/ir/ir.h"
#include "core/passes/definitions.h"

namespace pypto::passes {

/// The ranks that dispatches of a host function reach (03 D-31, D-50).
struct DeviceSet {
  bool world = false;       ///< every rank of the world
  std::set<int64_t> ranks;  ///< else these
  bool empty() const { return !world && ranks.empty(); }
  bool join(const DeviceSet& o) {
    const DeviceSet before = *this;
    world = world || o.world;
    ranks.insert(o.ranks.begin(), o.ranks.end());
    return before.world != world || before.ranks.size() != ranks.size();
  }
};

/// Window buffers of a host orchestrator: which variables are views of which buffer, and which devices see
/// them.
class WindowScan {
 public:
  WindowScan(const ir::Function& host, int world_size);
  /// Variables that hold the buffers (results of alloc_window_buffer) a window expression may be a view of.
  std::set<const ir::Var*> buffers(const ir::ExprPtr& window) const;
  /// Ranks of the domain of a window expression; empty when no dispatch receives it.
  DeviceSet devices(const ir::ExprPtr& window) const;
  /// Ranks that some dispatch pins or may reach, and where the first of the pinning loops or calls stands.
  const DeviceSet& reached() const { return reached_; }
  const Span& pin() const { return pin_; }
  /// The ranks that each pinned dispatch names by constants, and where it stands.
  const std::vector<std::pair<DeviceSet, Span>>& pins() const { return pins_; }
  /// Ranks that share a buffer, by the variable that names it; null for other variables and idle buffers.
  const DeviceSet* of_buffer(const ir::Var* buffer) const;
  /// Number of ranks of the domain, or -1 when it is the world and that is not known.
  int64_t size(const DeviceSet& set) const;
  /// An extent in this world, in which pld.world_size() is a number; -1 when the host knows it only when it
  /// runs.
  int64_t extent(const ir::Dim& dim) const;

 private:
  struct LoopRange {
    bool world = false;
    bool known = false;
    int64_t from = 0, to = 0;
  };
  void bind(const ir::Block& block, bool& changed);
  void visit(const ir::Block& block);
  DeviceSet target(const ir::ExprPtr& device) const;
  ir::ExprPtr origin(ir::ExprPtr e) const;
  ir::ExprPtr in_this_world(const ir::ExprPtr& e) const;

  int world_size_;
  Definitions definitions_;
  std::unordered_map<const ir::Var*, std::set<const ir::Var*>> views_;
  std::unordered_map<const ir::Var*, LoopRange> loops_;
  mutable std::unordered_map<const ir::Var*, ir::ExprPtr> values_;  ///< of names, by in_this_world
  std::unordered_map<const ir::Var*, DeviceSet> sets_;              ///< by buffer
  std::vector<const ir::Expr*> collectives_;
  std::vector<std::pair<const ir::Var*, Span>> loop_spans_;
  DeviceSet reached_;
  Span pin_;
  std::vector<std::pair<DeviceSet, Span>> pins_;
};

/// Refuses constant ranks outside the world (03 D-32, X-6).
void check_pinned_ranks(const ir::Module& module, const std::vector<int>& device_ids);

/// Refuses communication domains of more ranks than the cards' communicators take (03 D-56).
void check_domain_sizes(const ir::Module& module, int world_size);

/// Warns of ranks of the world that no dispatch of a host function with pinned dispatches reaches (03 X-8).
void warn_idle_ranks(ir::Module& module, int world_size);

}  // namespace pypto::passes
