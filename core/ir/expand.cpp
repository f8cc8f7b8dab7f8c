// SPDX-License-Identifier: Apache-2.0
#include "core/ir/expand.h"

#include <array>
#include <string_view>

namespace pypto::ir {

Expansion expansion(OpId op) {
  static const auto table = [] {
    std::array<Expansion, kOpCount> out{};
    for (int i = 0; i < kOpCount; ++i) {
      const OpRow& row = op_row(static_cast<OpId>(i));
      if (row.cost != CostClass::kExpand) continue;
      const std::string_view name = row.name;
      out[static_cast<size_t>(i)] = name.starts_with("row_expand")   ? Expansion::kColumn
                                    : name.starts_with("col_expand") ? Expansion::kRow
                                                                     : Expansion::kNone;
    }
    return out;
  }();
  return table[static_cast<size_t>(op)];
}

}  // namespace pypto::ir
