// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

/// Host threads inside one large operation. What the parts compute never depends on how many there are.
namespace pypto::vm {

/// Sets how many threads a large operation of the calling thread may use; 0 = as many as the process has
/// processors. The default is 1.
void set_operation_threads(int threads);
int operation_threads();

/// part(0) ... part(parts - 1), at the same time; the calling thread takes the first. Returns when all are
/// done and throws what one of them threw. Threads are started for the call, so that a process may fork at
/// any other time; worth it from about a millisecond of work on.
void run_parts(int parts, const std::function<void(int)>& part);

}  // namespace pypto::vm
