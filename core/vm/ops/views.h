// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/vm/view.h"

namespace pypto::vm {

/// The same cells with two axes exchanged; no data moves (02 O-808, O-809). Negative axes count from the end.
View transpose_strides(const View& v, int axis1, int axis2);

}  // namespace pypto::vm
