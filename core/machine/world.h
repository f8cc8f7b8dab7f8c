// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/machine/run.h"
#include "core/vm/view.h"

namespace pypto::machine {

/// Windows of a prepared worker (04 DST-28 - DST-30).
class RetainedWorld final : public World {
 public:
  RetainedWorld(std::vector<int> device_ids, bool persistent, bool reset)
      : device_ids(std::move(device_ids)), persistent(persistent), reset(reset) {}
  int64_t window_groups() const override { return groups_created; }

  /// Windows of one program, by domain name; slices by domain rank.
  struct Retained {
    struct Window {
      std::string name;
      int64_t requested = 0;
      std::vector<vm::BufferRef> slices;
    };
    std::map<std::string, std::vector<Window>> domains;
  };

  std::vector<int> device_ids;
  bool persistent = false;
  bool reset = true;
  int64_t groups_created = 0;
  std::map<const vm::Program*, Retained> programs;
};

}  // namespace pypto::machine
