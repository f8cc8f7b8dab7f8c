// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/ir/ir.h"

namespace pypto::passes {

enum class MemoryPlanner : uint8_t { kPypto, kDsaRp, kPtoas };

struct PassOptions {
  MemoryPlanner planner = MemoryPlanner::kPypto;
  bool double_buffer_c = false;
  bool analyze_auto_scopes_for_deps = false;
  bool devices = false;  ///< compiled for cards, not for the simulator: the limits of a communicator hold
  int world_size = 0;    ///< ranks of the world for distributed programs, 0 = not distributed
  std::vector<int>
      device_ids;  ///< of the world where it was given; empty: what is said of it comes when it runs
  /// Called after each pass with its name and the module (dumps, round-trip checks, timing).
  std::function<void(const std::string& pass, const ir::Module& module)> after;
};

// Each pass rewrites the module in place; see its own header for what it does and what must hold before.
/// Regions (pl.at, pl.spmd, pl.cluster) become functions and calls (01 L-111, L-67): after it no kIncore /
/// kSpmd / kCluster scope is left. Captured variables become parameters in order of first use (tensors
/// first); tensors defined in a region and read after it become Out parameters created before the call;
/// scalars computed in the region without device data and read after it are computed by the control plane
/// too.
void outline(ir::Module& module);
/// Folds constants, drops code that has no effect (never communication, stores, reads used as anchors, 03
/// P-41).
void simplify(ir::Module& module);
/// InCore-rail collectives become the primitives of 03 section 10.2; host-rail ones become dispatches of
/// generated functions (03 L-7), named as 03 A-4.
void lower_collectives(ir::Module& module, const PassOptions& options);
/// Memory spaces of tiles (01 L-144), legality of moves (L-143), layouts (L-38), alignment (L-146),
/// accumulator stores (L-148), atomic dtypes (L-149), mixed stores (L-150), core kind of each kernel.
void place(ir::Module& module);
/// The memory spaces of the tiles of one function alone.
void place_tiles(ir::Function& f);
/// Capacity per kernel and space (01 L-147). Fills the memory report.
struct MemoryUse {
  std::string kernel;
  ir::MemorySpace space;
  int64_t used = 0, limit = 0;
  struct Tile {
    std::string name;
    int64_t offset = 0, bytes = 0;
    int from = 0, to = 0;
    Span span;
  };
  std::vector<Tile> tiles;
};
std::vector<MemoryUse> check_capacity(ir::Module& module, const PassOptions& options);

struct LowerResult {
  ir::ModulePtr module;  ///< lowered copy; the input is not changed
  std::vector<MemoryUse> memory;
};
/// The pipeline (04 CMP-18): names in order are `pass_names()`. Throws Failure; kernel-level refusals are
/// collected and thrown as kPartialCodegenError after everything else was checked (04 CMP-11).
LowerResult lower(const ir::Module& module, const PassOptions& options);
/// The form that a device runs, for text (01 L-67, L-144): a copy of a lowered module whose kernels work on
/// tiles and whose mixed kernels are pairs. The simulator runs the undivided form; both compute the same.
ir::ModulePtr device_form(const ir::Module& lowered, const PassOptions& options);
std::vector<std::string> pass_names();
/// One named pass of the public factories (04 PKG-8) applied to a copy.
ir::ModulePtr apply_pass(const std::string& name, const ir::Module& module, const PassOptions& options);

}  // namespace pypto::passes
