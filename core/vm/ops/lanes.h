// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/ir/enums.h"
#include "core/vm/view.h"

namespace pypto::vm {

/// This lane's part of a cube value (02 O-2108): UP_DOWN rows, LEFT_RIGHT columns (lane 0 the first
/// ceil(n/2)), NONE the whole value. A view of the same cells; valid extents follow the data.
View shard_lane(const View& value, ir::SplitMode mode, int lane, int64_t lane_stride = 0);

/// The same as a vector lane pops it: in a box of ceil(n/2), whichever lane it is (02 O-2104).
View boxed_lane(const View& value, ir::SplitMode mode, int lane, int64_t lane_stride = 0);

/// Joins the lanes' values for the cube (02 O-2108, O-2111); a fresh packed buffer. Under NONE the lanes must
/// hold equal values (01 L-126): throws Failure naming the first differing cell. `extent`: of the joined axis
/// when it is less than both boxes (02 O-2104, codes 3 and 4), 0 otherwise.
View join_lanes(const View& lane0, const View& lane1, ir::SplitMode mode, int64_t extent = 0);

}  // namespace pypto::vm
