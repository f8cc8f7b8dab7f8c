// SPDX-License-Identifier: Apache-2.0
#include "core/passes/tile_products.h"

namespace pypto::passes {

void tile_products(ir::Module&, const PassOptions&) {}

}  // namespace pypto::passes
