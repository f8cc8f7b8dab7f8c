// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ir/ir.h"

namespace pypto::passes {

/// Holds the collectives of kernels against the domains that the host's dispatches give their windows: one
/// domain per collective (03 D-54, X-31), and constant extents that cover it (03 C-9, X-30).
void check_kernel_collectives(const ir::Module& module, int world_size);

}  // namespace pypto::passes
