// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/vm/exec.h"

/// Loads and stores that need no copy of their own: a chain reads and writes the window itself.
namespace pypto::vm {

/// The cells that a `load` call would copy, as a window of its source; declares the read. False, with nothing
/// done, where the loaded tile differs from the window (partly valid, padded, in another order or not yet
/// written). Faults as the load does.
bool load_window(OpCall& call, View* window);

/// Where a `store` or `assemble` call would write `value`, of which only dtype, shape and valid extents are
/// known yet. The window has the rank and shape of the value. False where the cells are not simply copied.
/// Faults as the operation does; declares nothing.
bool store_window(const OpCall& call, const View& value, View* window);

/// Declares the write to a window of store_window and sets the result of the call.
void finish_store(OpCall& call, const View& window);

}  // namespace pypto::vm
