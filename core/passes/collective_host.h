// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/passes/passes.h"

namespace pypto::passes {

/// Host rail: each collective statement of a host orchestrator becomes one dispatch per device of its domain
/// of a generated orchestration function, which runs a generated kernel (03 L-7); signals that were left out
/// are synthesised (03 C-42, A-5).
void lower_host_collectives(ir::Module& module, const PassOptions& options);

}  // namespace pypto::passes
