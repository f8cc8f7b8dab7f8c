// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ir/ir.h"

namespace pypto::passes {

/// What may stand inside and outside the `pl.split_aiv` bodies of a kernel, and how values cross their edge
/// (01 L-124, L-125, L-127). Throws for the first violation. What must hold: tiles have memory spaces.
void check_lane_rules(const ir::Function& f);

/// 03 O-25, X-57: a notify of a kernel of both cores that stands in no `pl.split_aiv` region. What must hold:
/// the kernel's cores are known, collectives are lowered.
void warn_lone_notifies(ir::Module& module, const ir::Function& f);

}  // namespace pypto::passes
