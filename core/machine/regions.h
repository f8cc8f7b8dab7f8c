// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "core/check/box.h"
#include "core/check/checker.h"
#include "core/vm/view.h"

namespace pypto::machine {

struct RegionOwner;

/// One use of a region of storage.
struct RegionEntry {
  check::Box box;
  bool write = false;
  int64_t scope = 0;             ///< manual scope instance of the owner, 0 = none
  RegionOwner* owner = nullptr;  ///< null once retired with a clock
  int32_t slot = -1;             ///< index in owner->regions
  check::Clock clock;            ///< of a retired owner
  double time = 0;               ///< likewise, on the virtual clock
  int32_t arg = -1;
};
using RegionList = std::multimap<int64_t, RegionEntry>;  ///< by first byte

/// Something whose accesses are ordered by overlap: a task (01 L-159) or a step of the host program (03
/// D-38).
struct RegionOwner {
  struct Ref {
    const vm::Buffer* buffer = nullptr;  ///< null: the entry was superseded
    bool write = false;
    RegionList::iterator it;
  };
  std::vector<Ref> regions;
  bool completed = false;
  uint64_t mark = 0;  ///< of the query that found it last, so that it is found once
};

/// Regions of storage with the owners that use them.
class RegionTable {
 public:
  struct Conflict {
    RegionOwner* owner = nullptr;  ///< null: it has completed
    check::Clock clock;
    int32_t arg = -1;
    bool write = false;
    double time = 0;  ///< of its completion on the virtual clock, if it was retired
  };

  /// Entries that conflict with an access of `box`: those that overlap it and write, or all that overlap if
  /// `write`. Entries of manual scope `scope` (not 0) are left out. With `supersede`, entries that `box`
  /// covers are dropped: whoever meets them later meets the new access too.
  void query(const vm::Buffer* buffer, const check::Box& box, bool write, int64_t scope, bool supersede,
             std::vector<Conflict>* out);
  void add(const vm::BufferRef& buffer, RegionOwner& owner, const check::Box& box, bool write, int64_t scope,
           int32_t arg);
  /// The owner has completed: drops its entries, or keeps them with `clock` if that is not null, and with
  /// `time` if it is positive.
  void retire(RegionOwner& owner, const check::Clock& clock, double time = 0);
  size_t retired() const { return retired_; }
  /// Merges retired entries of each buffer into one that covers them all, and forgets storage that nobody can
  /// reach. Keeps the table in proportion to what is in flight; adds order that no program can rely on, never
  /// removes any.
  void fold_retired(check::Checker& checker);

 private:
  struct Half {
    RegionList list;
    int64_t longest = 0;  ///< bytes between first and last byte of the longest box
  };
  struct PerBuffer {
    vm::BufferRef keep;  ///< the key stays valid while entries exist
    Half half[2];        ///< reads, writes
    bool empty() const { return half[0].list.empty() && half[1].list.empty(); }
  };
  void erase(Half& half, RegionList::iterator it);

  std::unordered_map<const vm::Buffer*, PerBuffer> buffers_;
  size_t retired_ = 0;
};

}  // namespace pypto::machine
