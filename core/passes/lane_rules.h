// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ir/ir.h"

namespace pypto::passes {

/// What may stand inside and outside the `pl.split_aiv` bodies of a kernel, and how values cross their edge
/// (01 L-124, L-125, L-127). Throws for the first violation. What must hold: tiles have memory spaces.
void check_lane_rules(const ir::Function& f);

}  // namespace pypto::passes
