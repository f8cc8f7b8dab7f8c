// SPDX-License-Identifier: Apache-2.0
#include "core/machine/regions.h"

#include <algorithm>

namespace pypto::machine {

void RegionTable::erase(Half& half, RegionList::iterator it) {
  RegionEntry& e = it->second;
  if (e.owner) {
    e.owner->regions[static_cast<size_t>(e.slot)].buffer = nullptr;
  } else {
    --retired_;
  }
  half.list.erase(it);
}

void RegionTable::query(const vm::Buffer* buffer, const check::Box& box, bool write, int64_t scope,
                        bool supersede, std::vector<Conflict>* out) {
  const auto found = buffers_.find(buffer);
  if (found == buffers_.end() || box.empty()) return;
  const int64_t end = box.end();
  for (int k = write ? 0 : 1; k < 2; ++k) {
    Half& half = found->second.half[k];
    for (auto it = half.list.lower_bound(box.base - half.longest);
         it != half.list.end() && it->first < end;) {
      const auto here = it++;
      RegionEntry& e = here->second;
      if ((scope != 0 && e.scope == scope) || !check::overlap(box, e.box)) continue;
      out->push_back({e.owner, e.clock, e.arg, e.write, e.time});
      if (supersede && write && check::covers(box, e.box)) erase(half, here);
    }
  }
  if (found->second.empty()) buffers_.erase(found);
}

void RegionTable::add(const vm::BufferRef& buffer, RegionOwner& owner, const check::Box& box, bool write,
                      int64_t scope, int32_t arg) {
  if (box.empty()) return;
  PerBuffer& per = buffers_[buffer.get()];
  per.keep = buffer;
  Half& half = per.half[write ? 1 : 0];
  half.longest = std::max(half.longest, box.end() - box.base);
  RegionEntry e;
  e.box = box;
  e.write = write;
  e.scope = scope;
  e.owner = &owner;
  e.slot = static_cast<int32_t>(owner.regions.size());
  e.arg = arg;
  owner.regions.push_back({buffer.get(), write, half.list.emplace(box.base, std::move(e))});
}

void RegionTable::retire(RegionOwner& owner, const check::Clock& clock, double time) {
  for (RegionOwner::Ref& ref : owner.regions) {
    if (!ref.buffer) continue;
    RegionEntry& e = ref.it->second;
    if (clock || time > 0) {
      e.owner = nullptr;
      e.clock = clock;
      e.time = time;
      ++retired_;
      continue;
    }
    const auto found = buffers_.find(ref.buffer);
    found->second.half[ref.write ? 1 : 0].list.erase(ref.it);
    if (found->second.empty()) buffers_.erase(found);
  }
  owner.regions.clear();
}

void RegionTable::fold_retired(check::Checker& checker) {
  for (auto per = buffers_.begin(); per != buffers_.end();) {
    const bool unreachable = per->second.keep->refs == 1;
    for (int k = 0; k < 2; ++k) {
      Half& half = per->second.half[k];
      std::vector<check::Clock> clocks;
      bool some = false;
      RegionEntry all;
      int64_t begin = INT64_MAX;
      int64_t end = INT64_MIN;
      for (auto it = half.list.begin(); it != half.list.end();) {
        const auto here = it++;
        if (here->second.owner) continue;
        begin = std::min(begin, here->second.box.base);
        end = std::max(end, here->second.box.end());
        some = true;
        all.time = std::max(all.time, here->second.time);
        if (here->second.clock) clocks.push_back(here->second.clock);
        erase(half, here);
      }
      if (!some || unreachable) continue;
      all.box = check::box_of_range(begin, end);
      all.write = k == 1;
      if (!clocks.empty()) all.clock = checker.join(clocks);
      half.longest = std::max(half.longest, end - begin);
      half.list.emplace(begin, std::move(all));
      ++retired_;
    }
    per = per->second.empty() ? buffers_.erase(per) : std::next(per);
  }
}

}  // namespace pypto::machine
