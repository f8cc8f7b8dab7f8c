// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>

#include "core/ir/infer/typer.h"

namespace pypto::ir::infer {

/// NumPy broadcast of the shapes of the given operands: right-aligned, extents equal or constant 1 (02
/// O-901).
Shape broadcast(const Typer& t, std::initializer_list<int> operands);
/// Valid extents of the first operand spread over the broadcast shape (02 O-210).
Shape broadcast_valid(const Typer& t, int first, const Shape& shape);

}  // namespace pypto::ir::infer
