// SPDX-License-Identifier: Apache-2.0
#include "core/trace/servers.h"

#include <algorithm>
#include <iterator>

namespace pypto::trace {
namespace {

constexpr size_t kMaxIntervals = 4096;  ///< beyond it, the oldest gaps are given up

}  // namespace

double Server::serve(double earliest, double bytes) {
  if (bytes <= 0) return earliest;
  const double need = bytes / rate_;
  double begin = earliest;
  auto next = busy_.upper_bound(begin);
  if (next != busy_.begin()) begin = std::max(begin, std::prev(next)->second);
  while (next != busy_.end() && next->first < begin + need) {
    begin = std::max(begin, next->second);
    ++next;
  }
  const double end = begin + need;
  auto mine = busy_.emplace(begin, end).first;
  if (mine != busy_.begin()) {
    const auto before = std::prev(mine);
    if (before->second >= mine->first) {
      before->second = std::max(before->second, mine->second);
      busy_.erase(mine);
      mine = before;
    }
  }
  const auto after = std::next(mine);
  if (after != busy_.end() && after->first <= mine->second) {
    mine->second = std::max(mine->second, after->second);
    busy_.erase(after);
  }
  if (busy_.size() > kMaxIntervals) {
    const auto oldest = busy_.begin();
    const auto second = std::next(oldest);
    oldest->second = second->second;
    busy_.erase(second);
  }
  return end;
}

Residency::Residency(double bytes)
    : capacity_(std::max<size_t>(1, static_cast<size_t>(bytes / static_cast<double>(kChunk)))) {}

bool Residency::touch_chunk(uint64_t chunk) {
  const auto found = where_.find(chunk);
  if (found != where_.end()) {
    order_.splice(order_.begin(), order_, found->second);
    return true;
  }
  if (where_.size() == capacity_) {
    where_.erase(order_.back());
    order_.pop_back();
  }
  order_.push_front(chunk);
  where_.emplace(chunk, order_.begin());
  return false;
}

int64_t Residency::touch(int64_t object, const check::Box& box) {
  if (box.empty()) return 0;
  int64_t missed = 0;
  int64_t last = -1;
  bool last_missed = false;
  const auto run = [&](int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end;) {
      const int64_t chunk = at / kChunk;
      const int64_t stop = std::min(end, (chunk + 1) * kChunk);
      if (chunk != last) {
        last = chunk;
        last_missed = !touch_chunk(static_cast<uint64_t>(object) << 32 | static_cast<uint64_t>(chunk));
      }
      if (last_missed) missed += stop - at;
      at = stop;
    }
  };
  // All runs of the box, outermost dimension first.
  int64_t index[vm::kMaxRank] = {};
  while (true) {
    int64_t at = box.base;
    for (int d = 0; d < box.dims; ++d) at += index[d] * box.dim[d].stride;
    run(at, at + box.run);
    int d = box.dims - 1;
    while (d >= 0 && ++index[d] == box.dim[d].count) index[d--] = 0;
    if (d < 0) return missed;
  }
}

}  // namespace pypto::trace
