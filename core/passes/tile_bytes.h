// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/ir/ir.h"

namespace pypto::passes {

/// Usable bytes of a memory on one core (05 H-13), 0 where it does not exist.
int64_t space_limit(ir::MemorySpace space, ir::Arch arch);
/// Alignment of buffers in a memory (05 H-13).
int64_t space_alignment(ir::MemorySpace space);
const char* space_name(ir::MemorySpace space);

/// Bytes that a tile of this type occupies in a memory, padding included (01 L-146, 05 H-25, H-26); -1 when
/// an extent is not constant. A tensor-level value counts as the tile of its whole shape.
int64_t tile_bytes(const ir::Type& t, ir::MemorySpace space, ir::Arch arch);

}  // namespace pypto::passes
