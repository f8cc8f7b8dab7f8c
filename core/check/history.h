// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "core/check/box.h"
#include "core/ir/op.h"
#include "core/vm/exec.h"
#include "core/vm/program.h"

namespace pypto::check {

/// One remembered access of an object.
struct Entry {
  uint32_t chain = 0, epoch = 0;
  uint32_t meta = 0;  ///< who
  int32_t round = 0;
  int64_t sequence = 0;  ///< order of all events of the run
  const vm::Site* site = nullptr;
  int32_t last_wait = -1;  ///< of the actor before the access
  uint32_t waits = 0;      ///< how many it had executed
  ir::OpId op = {};
  vm::AccessKind kind = vm::AccessKind::kRead;
  DType dtype = DType::kNone;
  bool remote = false;
  bool silent = false;       ///< a write that changed no byte (03 M-24)
  bool fetch = false;        ///< a remote_load or get of the user's
  bool after_write = false;  ///< a read: an earlier write of these bytes is ordered before it
  int64_t bytes = 0;
  /// A write: the writes of these bytes that it replaced, latest first; chain UINT32_MAX = none.
  struct Stamp {
    uint32_t chain = UINT32_MAX, epoch = 0;
  } prior[2];
};

/// Accesses of one object that may still race with something to come.
class History {
 public:
  struct Node {
    Box box;
    Entry entry;
  };
  using List = std::multimap<int64_t, Node>;  ///< by first byte

  /// Calls visit(node) for every node that overlaps `box`; removes it when visit says so.
  template <class Visit>
  void visit(const Box& box, Visit visit) {
    const int64_t end = box.end();
    for (auto it = list_.lower_bound(box.base - longest_); it != list_.end() && it->first < end;) {
      const auto here = it++;
      if (here->second.box.end() <= box.base || !overlap(box, here->second.box)) continue;
      if (visit(here->second)) list_.erase(here);
    }
  }
  Node& add(const Box& box, const Entry& entry) {
    const int64_t extent = box.end() - box.base;
    if (extent > longest_) longest_ = extent;
    return list_.emplace(box.base, Node{box, entry})->second;
  }
  size_t size() const { return list_.size(); }
  void clear() {
    list_.clear();
    longest_ = 0;
  }

 private:
  List list_;
  int64_t longest_ = 0;  ///< bytes between first and last byte of the longest box
};

}  // namespace pypto::check
