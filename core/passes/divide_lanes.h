// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "core/ir/ir.h"

namespace pypto::passes {

/// Divides the vector work of a mixed kernel between the two vector lanes, along rows or columns (01 L-129):
/// every tile of the vector core becomes a lane's part of it, what crosses is named by aiv_shard and
/// aic_gather (02 O-2109), transfers with global memory move to where the part lies. Returns the new body,
/// nothing when some of the work cannot be divided so. What must hold: every operation on tiles has a
/// statement of its own (flatten.h), tiles have memory spaces.
std::optional<ir::Block> divide_lanes(ir::Function& f, ir::Arch arch, ir::SplitMode mode);

}  // namespace pypto::passes
