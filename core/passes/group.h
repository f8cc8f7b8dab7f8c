// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "core/ir/ir.h"

namespace pypto::passes {

/// A function of a group, and which parameters of the group it is called with.
struct GroupMember {
  ir::FunctionPtr fn;
  std::vector<size_t> params;
};

/// The Group function that takes the place of `f` (01 L-67): its name, parameters and results; its body calls
/// the members in order. What must hold: everything that `f` returns is one of its parameters.
ir::FunctionPtr make_group(const ir::Function& f, const std::vector<GroupMember>& members);

/// Whether everything that `f` returns is one of its parameters.
bool returns_parameters(const ir::Function& f);

}  // namespace pypto::passes
