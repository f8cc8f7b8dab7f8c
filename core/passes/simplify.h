// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ir/ir.h"

namespace pypto::passes {

/// Scalars that only ever stand for a dynamic dimension become that dimension.
void name_symbols(ir::Function& f);

}  // namespace pypto::passes
