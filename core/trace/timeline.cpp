// SPDX-License-Identifier: Apache-2.0
#include "core/trace/timeline.h"

namespace pypto::trace {

const char* event_name(EventKind kind) {
  static constexpr const char* kNames[] = {
#define PYPTO_EVENT(id, name, doc) name,
#include "core/trace/events.def"
#undef PYPTO_EVENT
  };
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace pypto::trace
