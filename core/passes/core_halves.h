// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/ir/clone.h"
#include "core/passes/core_sides.h"

namespace pypto::passes {

/// One core's function while it is written.
struct Half {
  ir::FunctionPtr fn = std::make_shared<ir::Function>();
  ir::Cloner cloner{fn.get()};
  std::vector<ir::Block*> blocks;
  bool receives = false;
  int64_t slot_bytes = 0;

  void append(ir::StmtPtr s) { blocks.back()->push_back(std::move(s)); }
};
using Halves = std::array<Half, 2>;  ///< by Side

/// Empty functions for both cores with the parameters of `f`.
void begin_halves(const ir::Function& f, Halves& halves);
/// What one core writes in global memory the other may not touch: nothing would order them. Throws NotSplit.
void check_shared_memory(const ir::Function& f, const Halves& halves);
/// Reserves, names and initialises the pipe between the halves, at their beginning (02 O-2101, O-2102).
void add_pipe(const ir::Function& f, Halves& halves, ir::Arch arch, int64_t slots);
/// Parameters that a half does not mention are not its own; those that it only reads are inputs. Returns
/// which of the parameters of `f` are kept.
std::vector<size_t> keep_own_params(const ir::Function& f, ir::Function& half);

}  // namespace pypto::passes
