// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ir/ir.h"

namespace pypto::passes {

/// The body of a kernel in which every operation on tiles has a statement of its own, and the bodies of
/// split_aiv loops stand in the code around them: what they hold says itself on which core it runs.
ir::Block one_operation_each(ir::Function& f, ir::Arch arch);

}  // namespace pypto::passes
