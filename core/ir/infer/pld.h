// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ir/infer/typer.h"

namespace pypto::ir::infer {

/// Rank operand of a remote operation: any integer dtype; constants inside the domain (03 O-1).
void peer_operand(Typer& t, int i);
/// Block-scaled layouts do not travel (03 X-28).
void reject_block_scaled(const Typer& t, int i);

}  // namespace pypto::ir::infer
