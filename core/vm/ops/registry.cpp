// SPDX-License-Identifier: Apache-2.0
#include "core/vm/ops/register.h"

namespace pypto::vm {

ExecFn exec_function(ir::OpId op) {
  static const ExecTable table = [] {
    ExecTable t;
    register_create(t);
    register_binary(t);
    register_unary(t);
    register_cast(t);
    register_compare(t);
    register_reduce(t);
    register_expand(t);
    register_fill(t);
    register_element(t);
    register_movement(t);
    register_views(t);
    register_matmul(t);
    register_gather(t);
    register_sort(t);
    return t;
  }();
  return table.fn[static_cast<int>(op)];
}

}  // namespace pypto::vm
