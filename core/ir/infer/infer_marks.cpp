// SPDX-License-Identifier: Apache-2.0
#include "core/ir/infer/typer.h"

namespace pypto::ir::infer {

/// Made by the lowering of collectives; written `pl.internal.comm_mark` in the text of a lowered program
/// only.
ExprPtr type_comm_mark(Typer& t) {
  t.string_attr(1, AttrKey::k_name, "");
  t.string_attr(2, AttrKey::k_mode, "");
  t.int_attr(3, AttrKey::k_op, 0);
  t.int_attr(4, AttrKey::k_root, 0);
  return t.nothing();
}

}  // namespace pypto::ir::infer
