// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
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
/// hash table, once there are more than a few: there may be as many as ranks in each of as many histories,
/// and every look would miss the caches on its way down a tree.
template <class T>
class BoxTable {
 public:
  /// Calls visit(box, element) for every element that overlaps `box`; removes it when visit says so.
  template <class Visit>
  void for_each(const Box& box, Visit visit) {
    const int64_t end = box.end();
    for (Class& c : near_) visit_class(c, box, end, visit);
    for (Class& c : far_) visit_class(c, box, end, visit);
  }
  /// The element of exactly this box, or null.
  T* find(const Box& box) {
    Class* c = class_of(box);
    if (!c || c->elements == 0) return nullptr;
    const uint32_t first = c->heads.empty() ? c->few : c->heads[place(*c, box.base >> c->bits)].node;
    for (uint32_t n = first; n; n = nodes_[n - 1].next) {
      if (nodes_[n - 1].value.box.is(box)) return &nodes_[n - 1].value;
    }
    return nullptr;
  }
  /// A new element for this box. Its contents may be those of one that was removed.
  T& add(const Box& box) {
    Class& c = made_class_of(box);
    if (c.heads.empty() ? c.elements == kFew : 4 * (c.buckets + 1) > 3 * c.heads.size()) grow(c);
    uint32_t n = free_;
    if (n) {
      free_ = nodes_[n - 1].next;
    } else {
      nodes_.push_back(Node());
      n = static_cast<uint32_t>(nodes_.size());
    }
    Node& node = nodes_[n - 1];
    node.value.box.set(box);
    uint32_t& first = c.heads.empty() ? c.few : head_of(c, box.base >> c.bits).node;
    node.next = first;
    first = n;
    ++c.elements;
    c.crosses = c.crosses || (box.end() - 1) >> c.bits != box.base >> c.bits;
    return node.value;
  }
  bool empty() const {
    const auto none = [](const Class& c) { return c.elements == 0; };
    return std::all_of(near_.begin(), near_.end(), none) && std::all_of(far_.begin(), far_.end(), none);
  }
  /// A look at `box` comes soon: its places move to the caches.
  void prefetch(const Box& box) const {
    for (const Class& c : near_) {
      if (c.elements == 0) continue;
      if (c.heads.empty()) {
        __builtin_prefetch(&nodes_[c.few - 1]);
      } else {
        __builtin_prefetch(&c.heads[first_place(c, box.base >> c.bits)]);
      }
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
    int8_t bits = -1;      ///< of the size of a bucket; -1: not in use
    bool crosses = false;  ///< an element may reach into the next bucket
    uint32_t few = 0;      ///< 1 + index of the first of all, while there are no heads
    uint32_t elements = 0;
    uint32_t buckets = 0;     ///< heads in use
    std::vector<Head> heads;  ///< a power of two, open addressing
  };
  static constexpr uint32_t kFew = 4;

  /// Elements of a class have more than half of the bytes of a bucket and at most all of them: equal pieces
  /// of a power of two lie in one bucket each.
  static int8_t bits_of(const Box& box) {
    return static_cast<int8_t>(std::bit_width(static_cast<uint64_t>(box.end() - box.base - 1)));
  }
  Class* class_of(const Box& box) {
    const int8_t bits = bits_of(box);
    for (Class& c : near_) {
      if (c.bits == bits) return &c;
    }
    for (Class& c : far_) {
      if (c.bits == bits) return &c;
    }
    return nullptr;
  }
  Class& made_class_of(const Box& box) {
    if (Class* c = class_of(box)) return *c;
    Class* made = nullptr;
    for (Class& c : near_) {
      if (!made && c.elements == 0) made = &c;
    }
    if (!made) made = &far_.emplace_back();
    *made = Class();
    made->bits = bits_of(box);
    return *made;
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
  static Head& head_of(Class& c, int64_t bucket) {
    Head& head = c.heads[place(c, bucket)];
    if (head.bucket < 0) {
      head.bucket = bucket;
      ++c.buckets;
    }
    return head;
  }
  void grow(Class& c) {
    std::vector<Head> old = std::move(c.heads);
    const auto used =
        static_cast<size_t>(std::count_if(old.begin(), old.end(), [](const Head& h) { return h.node != 0; }));
    size_t size = std::max<size_t>(old.size(), 8);
    if (2 * (used + 1) > size) size *= 2;
    c.heads.assign(size, Head());
    c.buckets = static_cast<uint32_t>(used);
    for (const Head& h : old) {
      if (h.node) c.heads[place(c, h.bucket)] = h;
    }
    for (uint32_t n = c.few; n;) {  // those that had no heads so far
      Node& node = nodes_[n - 1];
      const uint32_t next = node.next;
      Head& head = head_of(c, node.value.box.begin() >> c.bits);
      node.next = head.node;
      head.node = n;
      n = next;
    }
    c.few = 0;
  }
  template <class Visit>
  void visit_class(Class& c, const Box& box, int64_t end, Visit& visit) {
    if (c.elements == 0) return;
    if (c.heads.empty()) {
      look(c, c.few, box, end, visit);
      return;
    }
    const int64_t reach = c.crosses ? (int64_t{1} << c.bits) - 1 : 0;
    const int64_t first = std::max<int64_t>(box.base - reach, 0) >> c.bits;
    const int64_t last = (end - 1) >> c.bits;
    if (last - first >= static_cast<int64_t>(c.heads.size())) {
      for (Head& head : c.heads) {
        if (head.node) look(c, head.node, box, end, visit);
      }
      return;
    }
    for (int64_t bucket = first; bucket <= last; ++bucket) {
      Head& head = c.heads[place(c, bucket)];
      if (head.node) look(c, head.node, box, end, visit);
    }
  }
  template <class Visit>
  void look(Class& c, uint32_t& first, const Box& box, int64_t end, Visit& visit) {
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
        if (--c.elements == 0) c.crosses = false;
      } else {
        link = &node.next;
      }
    }
  }

  std::array<Class, 2> near_;  ///< most tables have elements of one or two sizes
  std::vector<Class> far_;     ///< of the other sizes
  Chunks<Node, 4096> nodes_;
  uint32_t free_ = 0;
};

}  // namespace pypto::check
