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
  Clock release;       ///< null when the issuer knew of one other chain only, or so much was kept of it
  Component known;     ///< that chain
  const vm::Site* site = nullptr;

  /// What the issuer knew of a chain.
  uint32_t at(uint32_t c) const {
    if (c == chain) return epoch;
    if (release) return release->at(c);
    return c == known.chain ? known.epoch : 0;
  }
  Clock clock() const {
    if (release) return release;
    Clock made = Clock::make();
    made->chain = chain;
    made->epoch = epoch;
    if (known.chain != kNoChain) made->extras.raise(known);
    return made;
  }
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

/// Lists whose first element lies in the list itself and whose others are linked in one array: most cells
/// have one element, and there may be a million cells.
template <class T>
class ListPool {
  struct Node {
    T value;
    uint32_t next = 0;
  };

 public:
  struct List {
    T first;
    uint32_t head = 0, tail = 0;  ///< of the others: 1 + index of a node
    uint32_t size = 0;
    bool empty() const { return size == 0; }
  };
  template <class N, class L>
  struct Iterator {
    N* nodes;
    L* list;      ///< while at the first element
    uint32_t at;  ///< else: 1 + index of the node, 0 = end
    auto& operator*() const { return list ? list->first : (*nodes)[at - 1].value; }
    Iterator& operator++() {
      at = list ? list->head : (*nodes)[at - 1].next;
      list = nullptr;
      return *this;
    }
    bool operator!=(const Iterator& o) const { return at != o.at || list != o.list; }
  };
  template <class N, class L>
  struct Range {
    N* nodes;
    L* list;
    Iterator<N, L> begin() const { return {nodes, list->empty() ? nullptr : list, 0}; }
    Iterator<N, L> end() const { return {nodes, nullptr, 0}; }
  };

  Range<Chunks<Node>, List> range(List& l) { return {&nodes_, &l}; }
  Range<const Chunks<Node>, const List> range(const List& l) const { return {&nodes_, &l}; }
  const T& front(const List& l) const { return l.first; }
  const T& back(const List& l) const { return l.tail ? nodes_[l.tail - 1].value : l.first; }
  void push_back(List& l, T&& value) {
    if (l.size++ == 0) {
      l.first = std::move(value);
      return;
    }
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
  }
  void pop_front(List& l) {
    --l.size;
    const uint32_t n = l.head;
    if (!n) {
      l.first = T();
      return;
    }
    l.first = std::move(nodes_[n - 1].value);
    l.head = nodes_[n - 1].next;
    if (!l.head) l.tail = 0;
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
  Cell* find(int64_t offset) {
    if (at_.empty()) return nullptr;
    if (dense_) {
      const auto i = static_cast<size_t>(offset / 4);
      return i < at_.size() && at_[i] ? &cells_[at_[i] - 1] : nullptr;
    }
    const uint32_t found = at_[place(offset)];
    return found ? &cells_[found - 1] : nullptr;
  }
  /// Offsets of the cells in bytes [begin, end), ascending.
  std::vector<int64_t> within(int64_t begin, int64_t end) const {
    std::vector<int64_t> found;
    if (dense_) {
      for (int64_t at = begin & ~int64_t{3}; at < std::min(end, end_); at += 4) {
        if (find(at)) found.push_back(at);
      }
      return found;
    }
    for (const int64_t at : offsets_) {
      if (at + 4 > begin && at < end) found.push_back(at);
    }
    std::sort(found.begin(), found.end());
    return found;
  }
  const Cell* find(int64_t offset) const { return const_cast<Cells*>(this)->find(offset); }
  /// The cell at `offset` of a slice of `bytes`; `value` is what it holds if it is new.
  Cell& get(int64_t offset, int64_t bytes, int32_t value) {
    if (Cell* c = find(offset)) return *c;
    if (at_.empty()) {
      dense_ = bytes <= kDense;
      at_.resize(dense_ ? static_cast<size_t>(bytes / 4) : 64, 0);
    }
    Cell& made = cells_.push_back({});
    made.initial = value;
    if (!dense_) offsets_.push_back(offset);
    end_ = std::max(end_, dense_ ? bytes : offset + 4);
    const auto number = static_cast<uint32_t>(cells_.size());
    if (dense_) {
      const auto i = static_cast<size_t>(offset / 4);
      if (at_.size() <= i) at_.resize(i + 1, 0);
      at_[i] = number;
    } else if (4 * cells_.size() <= at_.size()) {
      at_[place(offset)] = number;
    } else {
      at_.assign(2 * at_.size(), 0);
      for (uint32_t k = 0; k < offsets_.size(); ++k) at_[place(offsets_[k])] = k + 1;
    }
    return made;
  }
  ListPool<Mod> mods;
  ListPool<WaitNote> waits;

 private:
  static constexpr int64_t kDense =
      65536;  ///< bytes: larger signals are mostly rows of which a rank uses one cell

  size_t index_of(int64_t offset) const { return std::min(static_cast<size_t>(offset / 4), at_.size() - 1); }
  /// Where looking for `offset` in the hash table begins.
  size_t first_place(int64_t offset) const {
    // A rank mostly uses a column of cells: those of sixteen pages one after the other lie together.
    const auto cell = static_cast<uint64_t>(offset) / 4, page = cell >> 10,
               group = page / 16 << 10 | (cell & 1023);
    return ((group * 0x9E3779B97F4A7C15ull >> 32 << 4) + page % 16) & (at_.size() - 1);
  }
  /// Where `offset` is in the hash table, or would be.
  size_t place(int64_t offset) const {
    const size_t mask = at_.size() - 1;
    size_t i = first_place(offset);
    while (at_[i] && offsets_[at_[i] - 1] != offset) i = (i + 1) & mask;
    return i;
  }

  bool dense_ = true;
  int64_t end_ = 0;
  std::vector<uint32_t> at_;      ///< 1 + index of the cell: by offset / 4, or a hash table
  std::vector<int64_t> offsets_;  ///< of the cells, for the hash table
  Chunks<Cell, 4096> cells_;
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
