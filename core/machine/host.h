// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/machine/state.h"

namespace pypto::machine {

/// What a host orchestrator does, found out before anything runs. A host body computes scalars only and reads
/// no data (03 D-22), so running it once without its dispatches gives every dispatch with its arguments, in
/// host order.
struct HostPlan {
  std::vector<std::unique_ptr<HostStep>> steps;
  std::vector<WindowBuffer> windows;
  std::vector<Domain> domains;
  std::vector<Group> groups;
};

/// Runs `entry` (a function of level HOST or above) symbolically. Windows become views whose buffer names the
/// window buffer; they are bound to slices when a dispatch starts. Throws Failure for faults of the host body
/// (X-6, X-13, ...).
HostPlan plan_host(Simulation& sim, int entry, const std::vector<ArgValue>& args);

/// The window buffer that a view of the plan stands for, or -1.
int planned_window(const vm::View& v);

/// Device-resident or stacked storage of a host argument: rows live apart, on several ranks.
struct ResidentRows {
  std::vector<uint8_t*> rows;
  std::vector<int> ranks;  ///< of each row; one entry for an unstacked tensor
  int64_t row_bytes = 0;
  bool stacked = false;
  std::vector<vm::BufferRef> buffers;  ///< of rows of a stacked tensor, made when a dispatch uses them
};
/// Rows behind a view, or null for ordinary host memory.
ResidentRows* resident_rows(const vm::View& v);
/// `v` with the storage of the one row it lies in; `v` itself unless it is part of a stacked tensor.
vm::View row_view(Simulation& sim, const vm::View& v);
/// A view over a host argument; registers the object.
vm::View host_view(Simulation& sim, const HostArg& arg, const std::string& name);

}  // namespace pypto::machine
