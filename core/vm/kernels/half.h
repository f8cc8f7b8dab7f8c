// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/vm/kernels/kernels.h"

namespace pypto::vm {

/// FP16 row kernels with the FP16 instructions of AVX-512, where this machine and this build have them; else
/// nullptr. The sum, difference, product and quotient of two FP16 numbers rounded once are what FP32 rounded
/// to FP16 gives, as FP32 has more than twice the digits and two. Only for callers whose instruction set is
/// AVX-512.
BinaryKernel half_kernel(BinaryOp op, Spread spread);
/// `from` elements to FP16: integers of 8 and 16 bits.
UnaryKernel half_from_integer(DType from);
/// FP32 to FP16.
NarrowKernel half_from_float();

}  // namespace pypto::vm
