// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/check/box.h"
#include "core/ir/enums.h"
#include "core/trace/params.h"

namespace pypto::trace {

/// In-order queues of a core (05 H-18).
enum class CorePipe : uint8_t { kS, kV, kMte1, kMte2, kMte3, kM, kFix };
inline constexpr int kPipes = 7;
const char* pipe_name(CorePipe p);

/// Time of one core: its scalar cursor and when each pipe is free (05 H-64), in ns.
struct CoreClock {
  double s = 0;
  double free[kPipes] = {};
  double posted = 0;     ///< when the last posted remote write is complete at its peer
  int64_t gm_line = -1;  ///< the 64-byte line of device memory that a scalar access touched last
  bool exists = false;
  double drained() const;
};

/// Something that an instruction must wait for.
struct Dependency {
  double finish = 0;
  int core = -1;  ///< index in its block; -1: no core, no cost of synchronising
  CorePipe pipe = CorePipe::kS;
};

/// A range of storage that an instruction touches.
struct Touch {
  uint64_t storage = 0;
  check::Box box;
  bool write = false;
};

/// The cores of one running block and what they did to storage (05 H-64). Core 0 is the cube core, 1 and 2
/// the vector cores.
class BlockClock {
 public:
  explicit BlockClock(const Params& p) : params_(p) {}

  CoreClock core[3];

  /// An instruction is issued: advances the scalar cursor and returns when it can start.
  double start(int core_index, CorePipe pipe, std::span<const Touch> touches,
               std::span<const Dependency> deps);
  /// And when it is done.
  void finish(int core_index, CorePipe pipe, std::span<const Touch> touches, double end);
  /// The scalar unit waits until nothing conflicts with this access.
  void wait_for(int core_index, const Touch& touch);
  void wait_until(int core_index, double time) { raise(core[core_index].s, time); }

  /// What lies in a buffer of the block.
  struct Copy {
    ir::MemorySpace space = ir::MemorySpace::kUnset;
    check::Box box;
    Dependency made;
  };
  struct Storage {
    ir::MemorySpace space = ir::MemorySpace::kVec;
    std::vector<Copy> copies;  ///< the same values in other memories
    struct Use {
      check::Box box;
      Dependency by;
      bool write = false;
    };
    std::vector<Use> uses;
  };
  Storage& storage(uint64_t key) { return storage_[key]; }
  /// Forgets what was known of the storage: its contents are new.
  Storage& fresh(uint64_t key, ir::MemorySpace space);

 private:
  static void raise(double& to, double at_least) {
    if (to < at_least) to = at_least;
  }
  double after(const Dependency& d, int core_index, CorePipe pipe) const;

  const Params& params_;
  std::unordered_map<uint64_t, Storage> storage_;
};

}  // namespace pypto::trace
