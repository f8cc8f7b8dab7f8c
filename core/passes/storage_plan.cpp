// SPDX-License-Identifier: Apache-2.0
#include "core/passes/storage_plan.h"

#include <algorithm>
#include <numeric>

namespace pypto::passes {
namespace {

bool together(const BufferSpan& a, const BufferSpan& b) { return a.from <= b.to && b.from <= a.to; }

/// Lowest free address for each buffer in the given order.
int64_t first_fit(std::vector<BufferSpan>& buffers, const std::vector<size_t>& order, int64_t base,
                  int64_t alignment) {
  int64_t high = base;
  std::vector<size_t> placed;
  for (const size_t i : order) {
    BufferSpan& b = buffers[i];
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (const size_t j : placed) {
      if (together(b, buffers[j]))
        taken.emplace_back(buffers[j].offset, buffers[j].offset + buffers[j].bytes);
    }
    std::sort(taken.begin(), taken.end());
    int64_t at = base;
    for (const auto& [from, to] : taken) {
      if (at + b.bytes <= from) break;
      at = std::max(at, (to + alignment - 1) / alignment * alignment);
    }
    b.offset = at;
    high = std::max(high, at + b.bytes);
    placed.push_back(i);
  }
  return high;
}

/// No placement can be lower than the most bytes alive at one position.
int64_t lower_bound(const std::vector<BufferSpan>& buffers, int64_t base, int64_t alignment) {
  int64_t most = 0;
  for (const auto& at : buffers) {
    int64_t sum = 0, last = 0;
    for (const auto& b : buffers) {
      if (b.from > at.from || b.to < at.from) continue;
      const int64_t padded = (b.bytes + alignment - 1) / alignment * alignment;
      sum += padded;
      last = std::max(last, padded - b.bytes);  // the topmost buffer needs no padding
    }
    most = std::max(most, sum - last);
  }
  return base + most;
}

}  // namespace

int64_t place_buffers(std::vector<BufferSpan>& buffers, int64_t base, int64_t alignment, int64_t limit) {
  if (buffers.empty()) return base;
  const int64_t bound = lower_bound(buffers, base, alignment);
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<BufferSpan> best;
  int64_t best_high = -1;
  const auto attempt = [&](const std::vector<size_t>& candidate) {
    const int64_t high = first_fit(buffers, candidate, base, alignment);
    if (best_high < 0 || high < best_high) {
      best_high = high;
      best = buffers;
      return true;
    }
    return false;
  };
  const auto by = [&](auto key) {
    std::vector<size_t> sorted = order;
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](size_t a, size_t b) { return key(buffers[a]) < key(buffers[b]); });
    attempt(sorted);
    return sorted;
  };
  std::vector<size_t> current = by([](const BufferSpan& b) { return -b.bytes; });
  if (best_high > bound) by([](const BufferSpan& b) { return std::make_pair(int64_t{b.from}, -b.bytes); });
  if (best_high > bound) by([](const BufferSpan& b) { return -(int64_t{b.to} - b.from + 1) * b.bytes; });
  if (best_high > bound)
    by([](const BufferSpan& b) { return std::make_pair(int64_t{b.from} - b.to, -b.bytes); });
  if (best_high > bound) by([](const BufferSpan& b) { return std::make_pair(-int64_t{b.to}, -b.bytes); });
  // A kernel that is about to be refused deserves a longer look: move one buffer to the front at a time, in a
  // fixed pseudo-random order.
  uint64_t state = 88172645463325252ull;
  for (int round = 0; best_high > std::max(bound, limit) && round < 2000; ++round) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::vector<size_t> next = current;
    const size_t i = static_cast<size_t>(state % next.size());
    const size_t j = static_cast<size_t>((state >> 32) % next.size());
    const size_t moved = next[i];
    next.erase(next.begin() + static_cast<std::ptrdiff_t>(i));
    next.insert(next.begin() + static_cast<std::ptrdiff_t>(std::min(j, next.size())), moved);
    if (attempt(next)) current = next;
  }
  buffers = std::move(best);
  return best_high;
}

}  // namespace pypto::passes
