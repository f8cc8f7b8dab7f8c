// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unordered_map>

#include "core/ir/ir.h"

namespace pypto::passes {

/// What each variable is bound to by the one plain assignment that defines it; null where several statements
/// do, or one of another kind.
using Definitions = std::unordered_map<const ir::Var*, ir::ExprPtr>;

enum class Regions : uint8_t { kEntered, kLeftOut };
/// The definitions in a block. kLeftOut: what regions that become functions of their own define is not seen.
Definitions definitions(const ir::Block& block, Regions regions = Regions::kEntered);

/// `e`, or what it names, through any number of names.
ir::ExprPtr resolved(ir::ExprPtr e, const Definitions& definitions);

}  // namespace pypto::passes
