// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/ir/ir.h"

namespace pypto::passes {

/// What a block does to the storages it was given.
struct Access {
  bool read = false;
  bool write = false;
};

/// Accesses of a block to the storage of each root variable, whatever the names through which they happen:
/// views, results of in-place operations, carried names and results of calls lead back to the roots (01
/// L-185, 03 T-3).
std::unordered_map<const ir::Var*, Access> accesses(const ir::Block& block,
                                                    const std::vector<ir::VarPtr>& roots);

/// Directions of a function's parameters as its body uses them; never narrower than what is declared for
/// `Out` and `InOut` (01 L-48, L-111, 03 T-3).
std::vector<ir::ParamDirection> used_directions(const ir::Function& f);

}  // namespace pypto::passes
