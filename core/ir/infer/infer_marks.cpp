// SPDX-License-Identifier: Apache-2.0
#include "core/ir/infer/typer.h"

namespace pypto::ir::infer {

/// Written by the lowering of collectives only; no source spelling.
ExprPtr type_comm_mark(Typer& t) { return t.nothing(); }

}  // namespace pypto::ir::infer
