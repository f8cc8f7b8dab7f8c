// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/ir/infer/typer.h"

namespace pypto::ir::infer {

/// A mask pattern: every `stride`-th column is selected (02 O-1904).
struct MaskColumns {
  int64_t pattern;
  int64_t stride;
};

/// Moves the mask pattern argument into the attributes.
MaskColumns mask_columns(Typer& t, int i);

}  // namespace pypto::ir::infer
