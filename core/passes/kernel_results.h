// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ir/ir.h"

namespace pypto::passes {

/// Tensors that a kernel function returns and that are none of its parameters become outputs allocated for
/// the task (01 L-186, L-111): an Out parameter of the kernel, and a tensor that the control plane creates
/// before each call. A tensor created in the kernel is the parameter; any other value is copied to it where
/// the kernel returns.
void give_results_parameters(ir::Module& module);

}  // namespace pypto::passes
