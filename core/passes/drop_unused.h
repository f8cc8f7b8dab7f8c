// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ir/ir.h"

namespace pypto::passes {

/// Removes from a kernel what has no effect: values that nothing needs, and the branches and loops that are
/// empty then. Stores, transfers, signals and the other operations with effects stay, and what they need.
void drop_unused_code(ir::Function& f);

}  // namespace pypto::passes
