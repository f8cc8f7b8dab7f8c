// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/vm/ops/register.h"

namespace pypto::vm {

/// Warns when an accumulator that no one wrote is accumulated into (02 O-1805, 03 M-37).
void warn_unwritten(OpCall& call, const View& acc);

void register_matmul_mx(ExecTable&);  // matmul_mx.cpp

}  // namespace pypto::vm
