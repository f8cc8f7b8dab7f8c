// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "core/ir/ir.h"

namespace pypto::passes {

/// The communication of a kernel in a normal form made for comparing (03 L-2, L-3): signals, remote and local
/// accesses, loops and conditions around them. `kernel` empty: all kernels that communicate, each under a
/// line with its name. `fold`: credit barriers and clears print as one line. A program that is not lowered is
/// lowered first, as far as collectives go. Throws Failure (kValueError) for an unknown kernel.
std::string comm_skeleton(const ir::Module& module, const std::optional<std::string>& kernel, bool fold);

}  // namespace pypto::passes
