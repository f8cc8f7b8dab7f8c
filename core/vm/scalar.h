// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ir/op.h"
#include "core/vm/view.h"

namespace pypto::vm {

/// `value` rounded to a float dtype, nearest even.
double round_float(double value, DType dtype);

/// Scalar operation of the language (01 L-17): `op` is a scalar_* row, `min` or `max`; both operands have
/// `dtype`. Throws Failure for division by zero and bad shift counts.
Scalar scalar_op(ir::OpId op, DType dtype, Scalar a, Scalar b);

/// Scalar conversion (01 L-22). Sets *out_of_range when a float does not fit the integer dtype.
Scalar cast_scalar(Scalar value, DType from, DType to, bool* out_of_range);

/// One element of memory as a scalar, and back.
Scalar load_element(const uint8_t* p, DType dtype);
void store_element(uint8_t* p, DType dtype, Scalar value);

/// Fills `count` packed elements with a value.
void fill_elements(uint8_t* p, DType dtype, double value, int64_t count);

/// Whether an integer value fits an integer dtype.
bool fits(int64_t value, DType dtype);

}  // namespace pypto::vm
