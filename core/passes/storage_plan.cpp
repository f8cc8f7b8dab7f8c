// SPDX-License-Identifier: Apache-2.0
#include "core/passes/storage_plan.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "core/base/poll.h"

namespace pypto::passes {
namespace {

/// Buffers placed so far, found by the positions at which they are alive.
class Placed {
 public:
  explicit Placed(const std::vector<BufferSpan>& buffers) : buffers_(buffers) {
    for (const auto& b : buffers) starts_.push_back(b.from);
    std::sort(starts_.begin(), starts_.end());
    starts_.erase(std::unique(starts_.begin(), starts_.end()), starts_.end());
    started_.resize(starts_.size());
    covered_.resize(2 * starts_.size());
  }

  void add(size_t i) {
    const BufferSpan& b = buffers_[i];
    started_[index(b.from)].push_back(i);
    // The starts from b.from to b.to as few nodes of a segment tree.
    size_t l = index(b.from) + starts_.size();
    size_t r = static_cast<size_t>(std::upper_bound(starts_.begin(), starts_.end(), b.to) - starts_.begin()) +
               starts_.size();
    for (; l < r; l /= 2, r /= 2) {
      if (l % 2 == 1) covered_[l++].push_back(i);
      if (r % 2 == 1) covered_[--r].push_back(i);
    }
  }

  /// Calls visit(j) once for each placed buffer that is alive together with `b`.
  template <class Visit>
  void each_with(const BufferSpan& b, Visit&& visit) const {
    const size_t at = index(b.from);
    for (size_t n = at + starts_.size(); n > 0; n /= 2) {
      for (const size_t j : covered_[n]) visit(j);
    }
    for (size_t k = at + 1; k < starts_.size() && starts_[k] <= b.to; ++k) {
      for (const size_t j : started_[k]) visit(j);
    }
  }

 private:
  size_t index(int64_t start) const {
    return static_cast<size_t>(std::lower_bound(starts_.begin(), starts_.end(), start) - starts_.begin());
  }

  const std::vector<BufferSpan>& buffers_;
  std::vector<int64_t> starts_;
  std::vector<std::vector<size_t>> started_, covered_;
};

/// Lowest free address for each buffer in the given order.
int64_t first_fit(std::vector<BufferSpan>& buffers, const std::vector<size_t>& order, int64_t base,
                  int64_t alignment) {
  int64_t high = base;
  Placed placed(buffers);
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (const size_t i : order) {
    poll();
    BufferSpan& b = buffers[i];
    taken.clear();
    placed.each_with(
        b, [&](size_t j) { taken.emplace_back(buffers[j].offset, buffers[j].offset + buffers[j].bytes); });
    std::sort(taken.begin(), taken.end());
    int64_t at = base;
    for (const auto& [from, to] : taken) {
      if (at + b.bytes <= from) break;
      at = std::max(at, (to + alignment - 1) / alignment * alignment);
    }
    b.offset = at;
    high = std::max(high, at + b.bytes);
    placed.add(i);
  }
  return high;
}

/// No placement can be lower than the most bytes alive at one position.
int64_t lower_bound(const std::vector<BufferSpan>& buffers, int64_t base, int64_t alignment) {
  std::vector<const BufferSpan*> by_start, by_end;
  for (const auto& b : buffers) {
    by_start.push_back(&b);
    by_end.push_back(&b);
  }
  std::sort(by_start.begin(), by_start.end(), [](const auto* a, const auto* b) { return a->from < b->from; });
  std::sort(by_end.begin(), by_end.end(), [](const auto* a, const auto* b) { return a->to < b->to; });
  const auto padded = [&](const BufferSpan& b) { return (b.bytes + alignment - 1) / alignment * alignment; };
  int64_t most = 0, sum = 0;
  std::multiset<int64_t> padding;
  size_t ended = 0;
  for (size_t i = 0; i < by_start.size(); ++i) {
    const BufferSpan& b = *by_start[i];
    for (; ended < by_end.size() && by_end[ended]->to < b.from; ++ended) {
      sum -= padded(*by_end[ended]);
      padding.erase(padding.find(padded(*by_end[ended]) - by_end[ended]->bytes));
    }
    sum += padded(b);
    padding.insert(padded(b) - b.bytes);
    if (i + 1 < by_start.size() && by_start[i + 1]->from == b.from) continue;
    most = std::max(most, sum - *padding.rbegin());  // the topmost buffer needs no padding
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
  const size_t rounds = std::min<size_t>(2000, 400000 / buffers.size());  // a second at most
  for (size_t round = 0; best_high > std::max(bound, limit) && round < rounds; ++round) {
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
