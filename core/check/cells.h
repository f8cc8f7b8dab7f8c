// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/base/chunks.h"
#include "core/check/clock.h"
#include "core/ir/enums.h"

namespace pypto::check {

/// A modification of a signal cell (03 M-30).
struct Mod {
  enum class Kind : uint8_t { kAdd, kSet, kWrite } kind = Kind::kAdd;
  uint32_t chain = 0, epoch = 0;
  uint32_t meta = 0;
  int32_t value = 0;
  int32_t before = 0, after = 0;
  int32_t round = 0;
  int64_t sequence = 0;
  int64_t number = 0;  ///< among notifies
  Clock release;
  const vm::Site* site = nullptr;
};

/// A satisfied wait, kept while notifies that arrive later may change what it surely observed.
struct WaitNote {
  uint32_t chain = 0, epoch = 0;
  ir::WaitCmp cmp = ir::WaitCmp::kGe;
  int32_t expected = 0;
  int64_t sequence = 0;
  int64_t number = 0;  ///< among waits
  /// Per sure observation: the most that the rest could bring the cell to (counting waits).
  struct Margin {
    uint32_t chain = 0, epoch = 0;
    int64_t notify = -1;
    int64_t without = 0;
  };
  FewList<Margin> margins;
  int32_t record = -1;  ///< index in the analysis' wait records
};

/// Singly linked lists in one array: most cells have one or two elements, and there may be a million cells.
template <class T>
class ListPool {
  struct Node {
    T value;
    uint32_t next = 0;
  };

 public:
  struct List {
    uint32_t head = 0, tail = 0, size = 0;  ///< 1 + index of a node
    bool empty() const { return size == 0; }
  };
  template <class N>
  struct Iterator {
    N* nodes;
    uint32_t at;
    auto& operator*() const { return (*nodes)[at - 1].value; }
    Iterator& operator++() {
      at = (*nodes)[at - 1].next;
      return *this;
    }
    bool operator!=(const Iterator& o) const { return at != o.at; }
  };
  template <class N>
  struct Range {
    N* nodes;
    uint32_t head;
    Iterator<N> begin() const { return {nodes, head}; }
    Iterator<N> end() const { return {nodes, 0}; }
  };

  Range<Chunks<Node>> range(const List& l) { return {&nodes_, l.head}; }
  Range<const Chunks<Node>> range(const List& l) const { return {&nodes_, l.head}; }
  const T& front(const List& l) const { return nodes_[l.head - 1].value; }
  const T& back(const List& l) const { return nodes_[l.tail - 1].value; }
  void push_back(List& l, T value) {
    uint32_t n = free_;
    if (n) {
      free_ = nodes_[n - 1].next;
      nodes_[n - 1] = Node{std::move(value), 0};
    } else {
      nodes_.push_back(Node{std::move(value), 0});
      n = static_cast<uint32_t>(nodes_.size());
    }
    (l.tail ? nodes_[l.tail - 1].next : l.head) = n;
    l.tail = n;
    ++l.size;
  }
  void pop_front(List& l) {
    const uint32_t n = l.head;
    l.head = nodes_[n - 1].next;
    if (!l.head) l.tail = 0;
    --l.size;
    nodes_[n - 1] = Node{T(), free_};
    free_ = n;
  }

 private:
  Chunks<Node> nodes_;
  uint32_t free_ = 0;
};

/// One cell: its modifications in commit order, and the waits on it.
struct Cell {
  int32_t initial = 0;  ///< value before the first modification that is kept
  ListPool<Mod>::List mods;
  ListPool<WaitNote>::List waits;
};

/// The signal cells of one slice that were ever notified or awaited.
class Cells {
 public:
  bool empty() const { return cells_.empty(); }
  /// Past the last byte that may hold a cell.
  int64_t end() const { return static_cast<int64_t>(at_.size()) * 4; }
  Cell* find(int64_t offset) {
    const auto i = static_cast<size_t>(offset / 4);
    return i < at_.size() && at_[i] ? &cells_[at_[i] - 1] : nullptr;
  }
  const Cell* find(int64_t offset) const { return const_cast<Cells*>(this)->find(offset); }
  /// The cell at `offset` of a slice of `bytes`; `value` is what it holds if it is new.
  Cell& get(int64_t offset, int64_t bytes, int32_t value) {
    if (Cell* c = find(offset)) return *c;
    const auto i = static_cast<size_t>(offset / 4);
    if (at_.size() <= i) at_.resize(std::max(i + 1, static_cast<size_t>(bytes / 4)), 0);
    cells_.emplace_back();
    cells_.back().initial = value;
    at_[i] = static_cast<uint32_t>(cells_.size());
    return cells_.back();
  }
  ListPool<Mod> mods;
  ListPool<WaitNote> waits;

 private:
  std::vector<uint32_t> at_;  ///< by offset / 4: 1 + index of the cell
  std::vector<Cell> cells_;
};

/// What a wait observes.
struct Observed {
  std::vector<const Mod*> open;  ///< not ordered with the wait
  std::vector<const Mod*> sure;  ///< not ordered before the wait, observed in every order
  std::vector<const Mod*> may;   ///< observed in this run, but not in every order
  std::vector<int64_t>
      without;         ///< per sure observation of a counting wait: what the others can bring the cell to
  int64_t base = 0;    ///< the cell by what is ordered before the wait
  bool fresh = false;  ///< the condition needs a modification that is not ordered before the wait

  void clear() {
    open.clear();
    sure.clear();
    may.clear();
    without.clear();
    fresh = false;
  }
};

/// `before(mod)`: the modification happens before the wait; `after(mod)`: it is ordered after the wait.
template <class Before, class After>
void judge_wait(const Cells& cells, const Cell& cell, ir::WaitCmp cmp, int32_t expected, Before before,
                After after, Observed& out);

}  // namespace pypto::check

#include "core/check/cells-inl.h"
