// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ir/ir.h"

namespace pypto::passes {

/// What can be said before a run about barriers and hand-written channels: hard barriers need a launch that
/// fills all cores of its kind at once (01 L-169); AIC and AIV functions set up the pipes they use, and both
/// ends of a pipe fit each other (01 L-173). Throws for the first violation. What must hold: core kinds are
/// known.
void check_launch_rules(const ir::Module& module);

}  // namespace pypto::passes
