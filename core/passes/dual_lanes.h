// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ir/ir.h"

namespace pypto::passes {

/// A vector kernel that both lanes run (`dual_aiv_dispatch`, 01 L-56, L-174) and that is dispatched by itself
/// becomes the only member, `k_aiv`, of a Group `k`: a group occupies a cluster, and its members know their
/// lanes. What must hold: attributes of kernels are final.
void dual_lanes(ir::Module& module);

}  // namespace pypto::passes
