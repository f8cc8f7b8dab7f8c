// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ir/ir.h"

namespace pypto::passes {

/// Whether the two vector lanes stay apart in global memory when each stores and loads its part of every tile
/// (01 L-129): all windows into a tensor that the kernel writes have one size along the divided axis, and any
/// two of them are the same or do not meet, so that what one lane writes the other neither reads nor writes.
bool lanes_stay_apart(const ir::Function& f, ir::SplitMode mode);

}  // namespace pypto::passes
