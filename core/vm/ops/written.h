// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>

#include "core/vm/ops/elementwise.h"

/// Unspecified values on their way through operations (01 L-154, 02 O-209): storage that nothing wrote, and
/// padding that an operation reads. Values never depend on any of this.
namespace pypto::vm {

/// Records which cells of `out`, the element-wise result of `inputs`, rest on unspecified cells. Nothing is
/// recorded in the usual case, which costs two tests per operand.
void inherit_unwritten(const View& out, std::initializer_list<const Input*> inputs);

/// Warns when the valid region of operand 0 mixes unspecified and specified cells (03 M-37).
void warn_mixed(OpCall& call);

/// Whether operand `v`, broadcast to the trailing axes of `region`, is valid in all of it.
bool valid_throughout(const View& v, const Extents& region);

}  // namespace pypto::vm
