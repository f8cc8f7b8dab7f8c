// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/chunks.h"
#include "core/check/box.h"

namespace pypto::check {

/// A box as a table keeps it: mostly one run of bytes, so the dimensions of the others lie apart. There may
/// be millions.
class StoredBox {
 public:
  void set(const Box& b) {
    base_ = b.base;
    run_ = b.run;
    if (b.dims == 0) {
      whole_ = nullptr;
    } else if (whole_) {
      *whole_ = b;
    } else {
      whole_ = std::make_unique<Box>(b);
    }
  }
  int64_t begin() const { return base_; }
  int64_t end() const { return whole_ ? whole_->end() : base_ + run_; }
  bool is_run() const { return !whole_; }
  bool is(const Box& b) const {
    return whole_ ? *whole_ == b : b.dims == 0 && b.base == base_ && b.run == run_;
  }
  /// The box; `room` is where it may be put.
  const Box& get(Box& room) const {
    if (whole_) return *whole_;
    room.base = base_;
    room.run = run_;
    room.dims = 0;
    return room;
  }

 private:
  int64_t base_ = 0, run_ = 0;
  std::unique_ptr<Box> whole_;  ///< of a box with dimensions
};

/// Elements with a `box` (StoredBox), found by the bytes they touch. They lie in classes by the size of their
/// extent, so that a large one does not make looking for small ones slow, and in each class by position in a
/// hash table: there may be as many as ranks in each of as many histories, and every look would miss the
/// caches on its way down a tree.
template <class T>
class BoxTable {
 public:
  /// Calls visit(box, element) for every element that overlaps `box`; removes it when visit says so.
  template <class Visit>
  void for_each(const Box& box, Visit visit) {
    const int64_t end = box.end();
    for (uint64_t left = used_; left; left &= left - 1) {
      const auto k = static_cast<size_t>(std::countr_zero(left));
      Class& c = classes_[k];
      const int64_t reach = c.crosses ? (int64_t{1} << k) - 1 : 0;
      const int64_t first = std::max<int64_t>(box.base - reach, 0) >> k;
      const int64_t last = (end - 1) >> k;
      if (last - first >= static_cast<int64_t>(c.heads.size())) {
        for (Head& head : c.heads) {
          if (head.node) look(k, head.node, box, end, visit);
        }
        continue;
      }
      for (int64_t bucket = first; bucket <= last; ++bucket) {
        Head& head = c.heads[place(c, bucket)];
        if (head.node) look(k, head.node, box, end, visit);
      }
    }
  }
  /// The element of exactly this box, or null.
  T* find(const Box& box) {
    const size_t k = class_of(box);
    if ((used_ >> k & 1) == 0) return nullptr;
    for (uint32_t n = classes_[k].heads[place(classes_[k], box.base >> k)].node; n; n = nodes_[n - 1].next) {
      if (nodes_[n - 1].value.box.is(box)) return &nodes_[n - 1].value;
    }
    return nullptr;
  }
  /// A new element for this box. Its contents may be those of one that was removed.
  T& add(const Box& box) {
    const size_t k = class_of(box);
    if (classes_.size() <= k) classes_.resize(k + 1);
    Class& c = classes_[k];
    if (4 * (c.buckets + 1) > 3 * c.heads.size()) grow(c);
    const int64_t bucket = box.base >> k;
    Head& head = c.heads[place(c, bucket)];
    if (head.bucket < 0) {
      head.bucket = bucket;
      ++c.buckets;
    }
    uint32_t n = free_;
    if (n) {
      free_ = nodes_[n - 1].next;
    } else {
      nodes_.push_back(Node());
      n = static_cast<uint32_t>(nodes_.size());
    }
    Node& node = nodes_[n - 1];
    node.next = head.node;
    head.node = n;
    ++c.elements;
    c.crosses = c.crosses || (box.end() - 1) >> k != bucket;
    used_ |= uint64_t{1} << k;
    node.value.box.set(box);
    return node.value;
  }
  bool empty() const { return used_ == 0; }
  /// A look at `box` comes soon: its places move to the caches.
  void prefetch(const Box& box) const {
    for (uint64_t left = used_; left; left &= left - 1) {
      const int k = std::countr_zero(left);
      const Class& c = classes_[static_cast<size_t>(k)];
      __builtin_prefetch(&c.heads[first_place(c, box.base >> k)]);
    }
  }
  void clear() { *this = BoxTable(); }

 private:
  struct Node {
    uint32_t next = 0;  ///< 1 + index of the next of its bucket, or of the next free one
    T value;
  };
  struct Head {
    int64_t bucket = -1;
    uint32_t node = 0;  ///< 1 + index of the first; 0: the bucket is empty
  };
  struct Class {
    std::vector<Head> heads;  ///< a power of two, open addressing
    size_t buckets = 0;       ///< heads in use
    size_t elements = 0;
    bool crosses = false;  ///< an element may reach into the next bucket
  };

  /// Elements of class k have more than half of 2^k bytes and at most all of them, the size of a bucket:
  /// equal pieces of a power of two lie in one bucket each.
  static size_t class_of(const Box& box) {
    return static_cast<size_t>(std::bit_width(static_cast<uint64_t>(box.end() - box.base - 1)));
  }
  static size_t first_place(const Class& c, int64_t bucket) {
    // Neighbours lie together.
    const auto group = static_cast<uint64_t>(bucket) >> 2;
    return ((group * 0x9E3779B97F4A7C15ull >> 32 << 2) + (static_cast<uint64_t>(bucket) & 3)) &
           (c.heads.size() - 1);
  }
  static size_t place(const Class& c, int64_t bucket) {
    const size_t mask = c.heads.size() - 1;
    size_t i = first_place(c, bucket);
    while (c.heads[i].bucket >= 0 && c.heads[i].bucket != bucket) i = (i + 1) & mask;
    return i;
  }
  static void grow(Class& c) {
    std::vector<Head> old = std::move(c.heads);
    const auto used =
        static_cast<size_t>(std::count_if(old.begin(), old.end(), [](const Head& h) { return h.node != 0; }));
    size_t size = std::max<size_t>(old.size(), 8);
    if (2 * (used + 1) > size) size *= 2;
    c.heads.assign(size, Head());
    c.buckets = used;
    for (const Head& h : old) {
      if (h.node) c.heads[place(c, h.bucket)] = h;
    }
  }
  template <class Visit>
  void look(size_t k, uint32_t& first, const Box& box, int64_t end, Visit& visit) {
    Box room;
    for (uint32_t* link = &first; *link;) {
      Node& node = nodes_[*link - 1];
      const StoredBox& mine = node.value.box;
      if (mine.begin() < end && mine.end() > box.base &&
          ((mine.is_run() && box.dims == 0) || overlap(box, mine.get(room))) &&
          visit(mine.get(room), node.value)) {
        const uint32_t n = *link;
        *link = node.next;
        node.next = free_;
        free_ = n;
        if (--classes_[k].elements == 0) {
          used_ &= ~(uint64_t{1} << k);
          classes_[k].crosses = false;
        }
      } else {
        link = &node.next;
      }
    }
  }

  std::vector<Class> classes_;
  uint64_t used_ = 0;  ///< bit k: class k has elements; a look at each would miss the caches
  Chunks<Node, 4096> nodes_;
  uint32_t free_ = 0;
};

}  // namespace pypto::check
