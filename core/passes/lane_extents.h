// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ir/ir.h"

namespace pypto::passes {

/// The axis that a division cuts of a value of rank 2.
inline size_t split_axis(ir::SplitMode mode) { return mode == ir::SplitMode::kUpDown ? 0 : 1; }
/// The box of a lane's part of `extent` cells.
inline int64_t lane_half(int64_t extent) { return (extent + 1) / 2; }

/// How many cells of an axis are valid in the part of lane `lane` (01 L-127, 02 O-2105): `valid` cells are
/// cut at `stride`, where lane 1 begins. A bound that cannot bind is left out (04 TXT-5).
ir::Dim lane_valid(const ir::Dim& valid, int64_t stride, const ir::ExprPtr& lane);

/// Where to cut an axis of `extent` cells of which `valid` hold data and nothing else pins the cut (01
/// L-129): the middle of the box, or of the valid part when the halves of the box would differ by more than
/// one cell and both hold some.
int64_t lane_stride(int64_t extent, int64_t valid);

/// The code of a divided transfer (02 O-2104): the odd one when the parts are not the halves of the box.
int64_t split_code(ir::SplitMode mode, int64_t extent, int64_t stride);

}  // namespace pypto::passes
