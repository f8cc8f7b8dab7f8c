// SPDX-License-Identifier: Apache-2.0
#include "core/machine/slice.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>

#include "core/vm/ops/written.h"

namespace pypto::machine {

/// Memory of large slices that are gone. Taking it from the system again costs a fault for each page, more
/// than the copies that a collective of a few MiB consists of.
struct Slice::Pool {
  static constexpr int64_t kKept = int64_t{256} << 20;  ///< bytes, per thread

  std::unordered_map<int64_t, std::vector<Memory>> free;  ///< by size
  int64_t kept = 0;
  bool alive = true;

  ~Pool() {
    alive = false;
    for (auto& [bytes, list] : free) {
      for (const Memory& m : list) munmap(m.begin, static_cast<size_t>(bytes));
    }
  }
  Memory take(int64_t bytes) {
    const auto found = free.find(bytes);
    if (found != free.end() && !found->second.empty()) {
      Memory m = std::move(found->second.back());
      found->second.pop_back();
      kept -= bytes;
      return m;
    }
    // Committed by the system when it is touched; calloc would clear, and so touch, memory that it has handed
    // out before.
    Memory m;
    m.begin = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m.begin == MAP_FAILED) throw std::bad_alloc();
    return m;
  }
  void give(int64_t bytes, Memory m) {
    if (!alive || kept + bytes > kKept) {
      munmap(m.begin, static_cast<size_t>(bytes));
      return;
    }
    kept += bytes;
    free[bytes].push_back(std::move(m));
  }
};

Slice::Pool& Slice::pool() {
  thread_local Pool p;
  return p;
}

void Slice::release_slice(vm::Buffer* b) {
  auto* slice = static_cast<Slice*>(b);
  if (slice->pages_.empty()) {
    std::free(b->owner);
  } else {
    Memory m{b->owner, std::move(slice->pages_)};
    for (size_t i = 0; i < slice->used_.size(); ++i) m.used[i] |= slice->used_[i];
    pool().give(b->bytes, std::move(m));
  }
  vm::specify_all(*b);
  delete slice;
}

vm::BufferRef Slice::make(int64_t bytes) {
  auto made = std::make_unique<Slice>();
  if (bytes > kSmall) {
    Memory m = pool().take(bytes);
    made->owner = m.begin;
    made->used_ = std::move(m.used);
    made->pages_.resize(static_cast<size_t>((bytes + 64 * kPage - 1) / (64 * kPage)), 0);
  } else {
    made->owner = std::calloc(1, static_cast<size_t>(bytes + kAlignment));
    if (!made->owner) throw std::bad_alloc();
  }
  const auto first = reinterpret_cast<uintptr_t>(made->owner);
  made->data = reinterpret_cast<uint8_t*>((first + kAlignment - 1) & ~static_cast<uintptr_t>(kAlignment - 1));
  made->bytes = bytes;
  made->kind = vm::BufferKind::kWindow;
  made->release = &release_slice;
  return vm::BufferRef(made.release());
}

size_t Slice::place(uint32_t cell) const {
  const size_t mask = table_.size() - 1;
  size_t i = first_place(cell);
  while (table_[i].cell && table_[i].cell != cell) i = (i + 1) & mask;
  return i;
}

int32_t Slice::in_table(int64_t offset) const {
  return table_[place(static_cast<uint32_t>(offset / 4) + 1)].value;
}

void Slice::set_in_table(int64_t offset, int32_t value) {
  const auto cell = static_cast<uint32_t>(offset / 4) + 1;
  if (table_.empty()) {
    if (value == 0) return;
    table_.resize(16);
  }
  size_t i = place(cell);
  if (table_[i].cell) {
    table_[i].value = value;
    return;
  }
  if (value == 0) return;
  if (4 * (cells_ + 1) > table_.size()) {  // neighbours come in full groups, which make long ways round
    std::vector<Entry> old = std::move(table_);
    // Cells that are zero again need no entry.
    const auto used = static_cast<size_t>(
        std::count_if(old.begin(), old.end(), [](const Entry& e) { return e.value != 0; }));
    table_.assign(8 * (used + 1) > old.size() ? 2 * old.size() : old.size(), Entry());
    for (const Entry& e : old) {
      if (e.value != 0) table_[place(e.cell)] = e;
    }
    cells_ = used;
    i = place(cell);
  }
  table_[i] = {cell, value};
  ++cells_;
}

void Slice::make_pages_plain(int64_t begin, int64_t end) {
  const auto first = static_cast<uint64_t>(std::max<int64_t>(begin, 0) / kPage);
  const auto last = static_cast<uint64_t>((std::min(end, bytes) - 1) / kPage);
  bool fresh = false;
  for (uint64_t word = first / 64; word <= last / 64; ++word) {
    uint64_t wanted = ~uint64_t{0};
    if (word == first / 64) wanted &= ~uint64_t{0} << (first % 64);
    if (word == last / 64) wanted &= ~uint64_t{0} >> (63 - last % 64);
    fresh = fresh || (wanted & ~pages_[word]) != 0;
    pages_[word] |= wanted;
    if (used_.empty()) continue;
    for (uint64_t left = used_[word] & wanted; left; left &= left - 1) {
      const auto at = static_cast<int64_t>(word * 64 + static_cast<uint64_t>(std::countr_zero(left))) * kPage;
      std::memset(data + at, 0, static_cast<size_t>(std::min(kPage, bytes - at)));
    }
    used_[word] &= ~wanted;
  }
  if (!fresh || cells_ == 0) return;
  // The cells of these pages move from the table to the memory.
  std::vector<Entry> old = std::move(table_);
  table_.assign(old.size(), Entry());
  cells_ = 0;
  for (const Entry& e : old) {
    if (e.value == 0) continue;
    const int64_t offset = (int64_t{e.cell} - 1) * 4;
    if (plain(offset)) {
      std::memcpy(data + offset, &e.value, sizeof(e.value));
    } else {
      table_[place(e.cell)] = e;
      ++cells_;
    }
  }
}

void Slice::clear() {
  if (pages_.empty()) {
    std::memset(data, 0, static_cast<size_t>(bytes));
    return;
  }
  table_ = {};
  cells_ = 0;
  for (int64_t at = 0; at < bytes; at += kPage) {
    if (plain(at)) std::memset(data + at, 0, static_cast<size_t>(std::min(kPage, bytes - at)));
  }
  std::fill(pages_.begin(), pages_.end(), 0);
}

}  // namespace pypto::machine
