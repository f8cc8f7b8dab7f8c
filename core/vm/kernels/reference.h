// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/vm/kernels/kernels.h"

/// The obvious definition of every kernel, one element at a time, in long double where that is exact enough.
/// Slow; the tests compare the vector kernels with it.
namespace pypto::vm::reference {

/// One element of any arithmetic dtype as a long double (exact).
long double load(DType dtype, const void* element);

void binary(BinaryOp op, DType dtype, const void* lhs, const void* rhs, void* out);
void unary(UnaryOp op, DType dtype, const void* in, void* out);
void cast(DType from, const void* in, DType to, void* out, CastMode mode);
bool compare(CompareOp op, DType dtype, const void* lhs, const void* rhs);
/// O-307: 16 strided partial results and the fixed tree; integers in their own dtype.
void reduce(ReduceOp op, DType dtype, const void* row, size_t n, void* out);
/// O-1504.
int32_t arg(DType dtype, const void* row, size_t n, bool greatest);

}  // namespace pypto::vm::reference
