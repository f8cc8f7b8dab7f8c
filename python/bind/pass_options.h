// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "core/passes/passes.h"

namespace pypto::bind {

/// Options of the pipeline from their Python spellings ("PYPTO", "DSA_RP", "PTOAS").
passes::PassOptions pass_options(const std::string& planner, bool double_buffer_c, bool analyze,
                                 int world_size);

}  // namespace pypto::bind
