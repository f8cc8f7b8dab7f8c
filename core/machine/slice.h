// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "core/vm/view.h"

namespace pypto::machine {

/// One rank's slice of a window buffer: memory that is zero until somebody writes it.
///
/// Signals may be much larger than what a rank uses of them: of the [2 (P - 1), P] cells of a ring each rank
/// uses one column, so that every cell would take a page of its own. In a large slice, cells that only
/// signals touch therefore live in a hash table; the memory of a page holds its bytes from the first access
/// by data operations on. A page is either plain (the memory is right, no cell of it is in the table) or not
/// (its bytes are zero but for the cells in the table). The memory of a large slice is used again by later
/// ones: a page that holds what an earlier slice left there is cleared when it becomes plain.
class Slice final : public vm::Buffer {
 public:
  static vm::BufferRef make(int64_t bytes);
  /// The slice behind a buffer of kind kWindow that the machine made.
  static Slice& of(const vm::Buffer* b) { return *static_cast<Slice*>(const_cast<vm::Buffer*>(b)); }

  /// The signal cell at a multiple of 4 bytes.
  int32_t load(int64_t offset) const {
    if (plain(offset)) return in_memory(offset);
    return cells_ == 0 ? 0 : in_table(offset);
  }
  void store(int64_t offset, int32_t value) {
    if (plain(offset)) {
      std::memcpy(data + offset, &value, sizeof(value));
    } else {
      set_in_table(offset, value);
    }
  }
  /// A cell will soon be needed.
  void prefetch(int64_t offset) const {
    if (plain(offset)) {
      __builtin_prefetch(data + offset, 1);
    } else if (!table_.empty()) {
      __builtin_prefetch(&table_[first_place(static_cast<uint32_t>(offset / 4) + 1)], 1);
    }
  }
  /// Data operations touch bytes [begin, end): from here on they are in the memory.
  void make_plain(int64_t begin, int64_t end) {
    if (!pages_.empty() && begin < end) make_pages_plain(begin, end);
  }
  /// All bytes are zero again.
  void clear();

 private:
  static constexpr int64_t kAlignment = 64;
  static constexpr int64_t kPage = 4096;
  static constexpr int64_t kSmall = 65536;  ///< slices up to this size are plain

  struct Entry {
    uint32_t cell = 0;  ///< 1 + number of the cell in the slice, 0 = free
    int32_t value = 0;
  };

  struct Memory {
    void* begin = nullptr;
    std::vector<uint64_t> used;  ///< one bit for each page: not zero
  };
  struct Pool;
  static Pool& pool();
  static void release_slice(vm::Buffer* b);
  bool plain(int64_t offset) const {
    if (pages_.empty()) return true;
    const auto page = static_cast<uint64_t>(offset / kPage);
    return (pages_[page / 64] >> (page % 64) & 1) != 0;
  }
  int32_t in_memory(int64_t offset) const {
    int32_t value = 0;
    std::memcpy(&value, data + offset, sizeof(value));
    return value;
  }
  size_t first_place(uint32_t cell) const {
    // A rank mostly uses a column of cells: those of eight pages one after the other lie together.
    const uint64_t page = (cell - 1) / (kPage / 4), group = page / 8 << 10 | (cell - 1) % (kPage / 4);
    return ((group * 0x9E3779B97F4A7C15ull >> 32 << 3) + page % 8) & (table_.size() - 1);
  }
  size_t place(uint32_t cell) const;
  int32_t in_table(int64_t offset) const;
  void set_in_table(int64_t offset, int32_t value);
  void make_pages_plain(int64_t begin, int64_t end);

  std::vector<uint64_t> pages_;  ///< one bit for each page: plain; empty: all are
  std::vector<uint64_t> used_;   ///< one bit for each page that is not plain: an earlier slice wrote it
  std::vector<Entry> table_;     ///< a power of two, open addressing
  size_t cells_ = 0;             ///< in the table
};

}  // namespace pypto::machine
