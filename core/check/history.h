// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/check/box_table.h"
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

/// Accesses of one object that may still race with something to come. Reads of the same bytes lie together:
/// many ranks may read what nobody writes, and of each other reads only want to know whether they are newer.
class History {
 public:
  /// Calls visit(box, entry) for every access that overlaps `box`; removes it when visit says so.
  template <class Visit>
  void visit(const Box& box, Visit visit) {
    visit_writes(box, visit);
    reads_.for_each(box, [&](const Box& where, Reads& r) {
      remove(r, [&](size_t i) { return visit(where, r.entry(i)); });
      return r.size == 0;
    });
  }
  /// The same without plain reads.
  template <class Visit>
  void visit_writes(const Box& box, Visit visit) {
    writes_.for_each(box, [&](const Box& where, Write& w) { return visit(where, w.entry); });
  }
  /// Removes the reads inside `box` that `known(chain, epoch)` and `may_go(entry)` accept.
  template <class Known, class MayGo>
  void prune_reads(const Box& box, Known known, MayGo may_go) {
    reads_.for_each(box, [&](const Box& where, Reads& r) {
      if (!covers(box, where)) return false;
      remove(r, [&](size_t i) {
        const Entry::Stamp stamp = r.stamp(i);
        return known(stamp.chain, stamp.epoch) && may_go(r.entry(i));
      });
      return r.size == 0;
    });
  }
  void add(const Box& box, const Entry& entry) {
    if (entry.kind != vm::AccessKind::kRead) {
      writes_.add(box).entry = entry;
      return;
    }
    Reads* r = reads_.find(box);
    if (!r) {
      r = &reads_.add(box);
      r->size = 0;
    }
    r->add(entry);
  }
  bool empty() const { return writes_.empty() && reads_.empty(); }
  /// A visit of `box` comes soon.
  void prefetch(const Box& box) const {
    writes_.prefetch(box);
    reads_.prefetch(box);
  }
  void clear() {
    writes_.clear();
    reads_.clear();
  }

 private:
  struct Write {
    StoredBox box;
    Entry entry;
  };
  /// Mostly one, which lies in the element itself; when there are more, all are in the lists.
  struct Reads {
    uint32_t size = 0;
    StoredBox box;
    Entry only;
    struct More {
      std::vector<Entry::Stamp> stamps;  ///< of the entries, for fast looks
      std::vector<Entry> entries;        ///< in order of addition
    };
    std::unique_ptr<More> more;

    const Entry& entry(size_t i) const { return size == 1 ? only : more->entries[i]; }
    Entry::Stamp stamp(size_t i) const {
      return size == 1 ? Entry::Stamp{only.chain, only.epoch} : more->stamps[i];
    }
    void add(const Entry& e) {
      if (size == 0) {
        only = e;
      } else {
        if (size == 1) {
          if (!more) more = std::make_unique<More>();
          more->stamps.assign(1, {only.chain, only.epoch});
          more->entries.assign(1, only);
        }
        more->stamps.push_back({e.chain, e.epoch});
        more->entries.push_back(e);
      }
      ++size;
    }
  };

  template <class Goes>
  static void remove(Reads& r, Goes goes) {
    if (r.size == 1) {
      if (goes(0)) r.size = 0;
      return;
    }
    if (r.size == 0) return;
    std::vector<Entry>& entries = r.more->entries;
    std::vector<Entry::Stamp>& stamps = r.more->stamps;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < r.size; ++i) {
      if (goes(i)) continue;
      if (kept != i) {
        entries[kept] = entries[i];
        stamps[kept] = stamps[i];
      }
      ++kept;
    }
    if (kept == 1) r.only = entries[0];
    entries.resize(kept);
    stamps.resize(kept);
    r.size = kept;
  }

  BoxTable<Write> writes_;
  BoxTable<Reads> reads_;
};

/// The access that a report names, of those that race with one: by first byte, then age.
struct Earliest {
  bool found = false;
  Box box;
  Entry entry;

  bool offer(const Box& b, const Entry& e) {
    if (found && (box.base < b.base || (box.base == b.base && entry.sequence < e.sequence))) return false;
    found = true;
    box = b;
    entry = e;
    return true;
  }
};

}  // namespace pypto::check
