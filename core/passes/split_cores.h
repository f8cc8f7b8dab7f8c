// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ir/ir.h"

namespace pypto::passes {

/// Divides every mixed kernel of tiles into the pair of functions that the two kinds of core run, `k_aic` and
/// `k_aiv`, under a Group `k` (01 L-67, L-170 - L-172): each has the whole control flow and scalar code, the
/// tile work of its core, and pushes or pops the tiles that pass. Kernels that cannot be written so stay as
/// they are; what a program computes does not change. What must hold: tiles have memory spaces.
void split_cores(ir::Module& module);

}  // namespace pypto::passes
