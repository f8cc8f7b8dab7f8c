// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/ir/ir.h"

namespace pypto::ir {

/// Checks what every pass may rely on; one diagnostic (kInternalError, with the function and the statement)
/// per violation:
///
///   variables    every variable mentioned is in Function::vars at its id; parameters and symbols are, too; a
///   variable
///                that is read is a parameter, a symbol, or assigned somewhere in the function
///   expressions  have a type; an operation has no more operands than its row has parameters; an element is
///   taken of a
///                tuple and exists
///   calls        the callee belongs to the module; there are no more arguments than parameters
///   assignments  one target, or one per element of a tuple value
///   jumps        break and continue are inside a loop
///   loops        have a variable and a bound; an explicit carry has its variable and initial value
///   scopes       carry their facts; after lowering no core-group region, spmd or cluster scope is left
std::vector<Diagnostic> verify(const Module& m);

}  // namespace pypto::ir
