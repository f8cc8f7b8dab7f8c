// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/passes/passes.h"

namespace pypto::passes {

/// Cuts the matrix products of tiles as the tile chooser says (04 section 23, TIL-9): a product whose only
/// use is to be stored becomes loops over pieces, each multiplied and stored on its own. Values do not change
/// (02 O-307, O-1806).
void tile_products(ir::Module& module, const PassOptions& options);

}  // namespace pypto::passes
