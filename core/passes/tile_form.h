// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ir/ir.h"

namespace pypto::passes {

/// Writes the tensor-level values of a placed kernel as tiles: loads where global memory is read as a value,
/// stores where it is written, the same operations on tiles between them (01 L-144). Returns false, and
/// leaves the function as it is, when a value has no counterpart of constant shape on tiles. Values do not
/// change.
bool to_tile_form(ir::Function& f, ir::Arch arch);

}  // namespace pypto::passes
