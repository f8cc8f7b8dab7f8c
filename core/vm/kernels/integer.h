// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/vm/kernels/kernels.h"

namespace pypto::vm {

/// Kernels without vector form: integer division, remainders, shifts, 8- and 64-bit products, fmod. The same
/// machine code on every instruction set. nullptr when the operation is not defined for the dtype.
BinaryKernel scalar_kernel(BinaryOp op, DType dtype, Spread spread);

}  // namespace pypto::vm
