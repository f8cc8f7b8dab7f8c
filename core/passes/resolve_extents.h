// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ir/ir.h"

namespace pypto::passes {

/// Gives the types of tiles the valid extents that the code sets (02 O-811) where the front end calls them
/// unknown: those that a scalar names, and those of a name that was rebound. Only scalars that are assigned
/// once are named. What must hold: every operation on tiles has a statement of its own (flatten.h).
void resolve_extents(ir::Function& f);

}  // namespace pypto::passes
