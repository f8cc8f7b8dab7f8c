// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/ir/ir.h"

namespace pypto::passes {

/// Positions of the operands that a matrix product reads from Left, Right and Bias; empty for other
/// operations.
std::vector<int> matrix_operands(ir::OpId op);
/// Products that run on the cube core.
bool is_product(ir::OpId op);

/// Finds out which cores a kernel needs (01 L-170, 03 O-25): fills uses_cube and uses_vector, and makes an
/// InCore function that needs one kind only an AIC or AIV function (01 L-67). What must hold: tiles have
/// memory spaces.
void set_core_kind(ir::Function& f);

}  // namespace pypto::passes
