// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/vm/exec.h"

namespace pypto::vm {

/// One entry per OpId.
struct ExecTable {
  ExecFn fn[ir::kOpCount] = {};
  void set(ir::OpId id, ExecFn f) { fn[static_cast<int>(id)] = f; }
};

// Each is defined in the file of its name below core/vm/ops/.
void register_create(ExecTable&);  // full arange tri random create_tile create_l1
void register_binary(ExecTable&);  // add .. minimums, fmod, rem, bitwise, shifts, part_*, addc ...
void register_unary(ExecTable&);   // neg abs exp log sqrt rsqrt recip sin cos relu lrelu prelu not_
void register_cast(ExecTable&);
void register_compare(ExecTable&);  // cmp cmps sel sels
void register_reduce(ExecTable&);
void register_expand(ExecTable&);    // row_expand* col_expand* expands expand_clone
void register_fill(ExecTable&);      // fillpad*
void register_element(ExecTable&);   // read write dim
void register_movement(ExecTable&);  // load store move assemble extract concat copy_tile snapshot
void register_views(
    ExecTable&);  // slice reshape transpose transpose_view reinterpret_view set_validshape view
void register_matmul(ExecTable&);
void register_gather(ExecTable&);  // gather* scatter* paged_gather mgather mscatter
void register_sort(ExecTable&);

}  // namespace pypto::vm
