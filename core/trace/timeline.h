// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/span.h"

namespace pypto::trace {

enum class EventKind : uint8_t {
#define PYPTO_EVENT(id, name, doc) k##id,
#include "core/trace/events.def"
#undef PYPTO_EVENT
  kCount,
};
const char* event_name(EventKind kind);

/// One event of the timeline of a run, on the virtual clock.
struct Event {
  EventKind kind = EventKind::kTask;
  int8_t pipe = -1;   ///< of a core; -1: the core itself
  int32_t rank = -1;  ///< -1: the host
  int32_t core = -1;  ///< cube cores first, then vector cores; -1: the communication of the rank
  int32_t peer = -1;  ///< rank at the other end, or -1
  double begin_ns = 0, end_ns = 0;
  int64_t bytes = 0;
  int64_t id = 0;  ///< of a task; of both ends of a flow
  std::string name;
  std::string kernel;
  Span span;
};

}  // namespace pypto::trace
