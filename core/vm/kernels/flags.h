// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/vm/kernels/kernels.h"

/// Vector code behind compare_kernel and arg_row.
namespace pypto::vm {

/// Compares as many elements as fill whole vectors and returns their number; 0 for dtypes without vectors.
size_t compare_vectors(CompareOp op, DType dtype, Spread spread, const void* lhs, const void* rhs,
                       uint8_t* out, size_t n);

/// arg_row of the common dtypes; -1 for others. n > 0.
int32_t arg_row_vectors(const void* row, size_t n, DType dtype, bool greatest);

}  // namespace pypto::vm
