// SPDX-License-Identifier: Apache-2.0
#include "core/passes/tile_bytes.h"

#include <algorithm>

#include "core/ir/member_text.h"

namespace pypto::passes {

using ir::Arch;
using ir::MemorySpace;
using ir::TileLayout;

int64_t space_limit(MemorySpace space, Arch arch) {
  const bool a5 = arch == Arch::kA5;
  switch (space) {
    case MemorySpace::kVec:
      return a5 ? 245760 : 188416;
    case MemorySpace::kMat:
      return 524288;
    case MemorySpace::kLeft:
    case MemorySpace::kRight:
      return 65536;
    case MemorySpace::kAcc:
      return a5 ? 262144 : 131072;
    case MemorySpace::kBias:
      return a5 ? 4096 : 1024;
    case MemorySpace::kLeftScale:
    case MemorySpace::kRightScale:
      return a5 ? 4096 : 0;
    default:
      return 0;
  }
}

int64_t space_alignment(MemorySpace space) {
  switch (space) {
    case MemorySpace::kLeft:
    case MemorySpace::kRight:
    case MemorySpace::kBias:
      return 64;
    case MemorySpace::kLeftScale:
    case MemorySpace::kRightScale:
      return 32;
    default:
      return 128;
  }
}

const char* space_name(MemorySpace space) {
  return space == MemorySpace::kUnset ? "DDR" : ir::space_member(space);
}

int64_t tile_bytes(const ir::Type& t, MemorySpace space, Arch arch) {
  int64_t rows = 1, cols = 1;
  for (size_t i = 0; i < t.shape.size(); ++i) {
    if (!t.shape[i].is_const()) return -1;
    if (i + 1 == t.shape.size()) {
      cols = t.shape[i].value;
    } else {
      rows *= t.shape[i].value;
    }
  }
  const auto up = [](int64_t x, int64_t a) { return (x + a - 1) / a * a; };
  const int64_t bits = dtype_bits(t.dtype) == 1 ? 8 : dtype_bits(t.dtype);
  const auto bytes = [&](int64_t n) { return (n * bits + 7) / 8; };
  switch (space) {
    case MemorySpace::kAcc: {
      const bool wide = arch == Arch::kA2A3 && t.dtype == DType::kInt32;
      return up(rows, wide ? 32 : 16) * up(cols, 16) * 4;
    }
    case MemorySpace::kRight:
      return up(bytes(rows), 32) * up(cols, 16);
    case MemorySpace::kMat:
    case MemorySpace::kLeft:
      if (!(t.tile_view && t.tile_view->slayout == TileLayout::kNoneBox))
        return up(rows, 16) * up(bytes(cols), 32);
      break;
    case MemorySpace::kBias:
      return rows * up(bytes(cols), 64);
    default:
      if (t.tile_view && t.tile_view->slayout && *t.tile_view->slayout != TileLayout::kNoneBox) {
        return up(rows, 16) * up(bytes(cols), 32);
      }
  }
  // A column is stored contiguously when the tile is one column, or asked to be column-major.
  const bool column = t.tile_view && t.tile_view->blayout ? *t.tile_view->blayout == TileLayout::kColMajor
                                                          : cols == 1 && rows > 1;
  return column ? cols * up(bytes(rows), 32) : rows * up(bytes(cols), 32);
}

}  // namespace pypto::passes
