// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/ir/ir.h"

namespace pypto::passes {

/// One storage of the nominal program of a kernel (01 L-147): a tile, or a tensor-level value as one tile.
struct TileStorage {
  std::string name;
  Span span;
  ir::TypePtr type;
  ir::MemorySpace space = ir::MemorySpace::kVec;
  int64_t bytes = 0;
  int from = 0, to = 0;  ///< positions, inclusive
  bool tensor_level = false;
  bool tileable = false;    ///< its chain may be cut into pieces (01 L-147, exception 1)
  int64_t piece_bytes = 0;  ///< of the smallest piece then
};

struct KernelStorage {
  std::vector<TileStorage> tiles;
  /// Bytes at the bottom of a memory taken by cross-core channels (01 L-172).
  std::map<ir::MemorySpace, int64_t> reserved;
};

/// The storages of a kernel and their lifetimes on the structured code. `reuse`: a result takes the place of
/// an operand that dies in an element-wise operation, and values that meet in a variable share their place.
KernelStorage tile_lifetimes(const ir::Function& f, ir::Arch arch, bool reuse);

}  // namespace pypto::passes
