// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ir/ir.h"

namespace pypto::passes {

/// A hand-written vector function with `attrs={"split": ...}` runs on both lanes, and its stores are those of
/// the lane's part (02 O-2105): writes the lane's offset into each store, and asks for both lanes.
void shift_lane_stores(ir::Function& f, ir::Arch arch);

}  // namespace pypto::passes
