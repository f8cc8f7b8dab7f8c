// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ir/ir.h"

namespace pypto::passes {

/// Tensors that a kernel function returns and that are none of its parameters become outputs allocated for
/// the task (01 L-186, L-111): an Out parameter of the kernel, written where it returns, and a tensor that
/// the control plane creates before each call.
void give_results_parameters(ir::Module& module);

}  // namespace pypto::passes
