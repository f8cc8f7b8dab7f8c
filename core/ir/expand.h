// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ir/op.h"

namespace pypto::ir {

/// What an operation spreads over its first operand (02 section 16).
enum class Expansion : uint8_t {
  kNone,
  kColumn,  ///< row_expand*: one element per row
  kRow,     ///< col_expand*: one element per column
};

/// The expansion of an operation, as its row of the table names it.
Expansion expansion(OpId op);

}  // namespace pypto::ir
