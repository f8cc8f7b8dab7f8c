// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/ir/ir.h"

namespace pypto::passes {

/// The core that holds a tile.
enum class TileSide : uint8_t { kCube, kVector };
TileSide tile_side(const ir::Type& t);

/// The body of a kernel in which every operation on tiles has a statement of its own, and the bodies of
/// split_aiv loops stand in the code around them: what they hold says itself on which core it runs. A name
/// stands for tiles of one core only; nothing is returned where that cannot be.
std::optional<ir::Block> one_operation_each(ir::Function& f, ir::Arch arch);

}  // namespace pypto::passes
