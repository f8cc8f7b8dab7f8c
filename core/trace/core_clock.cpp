// SPDX-License-Identifier: Apache-2.0
#include "core/trace/core_clock.h"

#include <algorithm>

namespace pypto::trace {
namespace {

constexpr size_t kMaxUses = 48;  ///< of one buffer; beyond it, the two oldest count as one

}  // namespace

const char* pipe_name(CorePipe p) {
  static constexpr const char* kNames[] = {"S", "V", "MTE1", "MTE2", "MTE3", "M", "FIX"};
  return kNames[static_cast<size_t>(p)];
}

double CoreClock::drained() const {
  double latest = s;
  for (const double f : free) latest = std::max(latest, f);
  return latest;
}

double BlockClock::after(const Dependency& d, int core_index, CorePipe pipe) const {
  if (d.core < 0) return d.finish;
  if (d.core != core_index) return d.finish + params_.ns(Param::k_xcore_signal);
  if (d.pipe != pipe) return d.finish + params_.ns(Param::k_sync_flag);
  return d.finish + (pipe == CorePipe::kV ? params_.ns(Param::k_sync_vbar) : 0);
}

double BlockClock::start(int core_index, CorePipe pipe, std::span<const Touch> touches,
                         std::span<const Dependency> deps) {
  CoreClock& c = core[core_index];
  c.s += params_.ns(Param::k_scalar_issue);
  double ready = c.s;
  for (const Dependency& d : deps) raise(ready, after(d, core_index, pipe));
  for (const Touch& t : touches) {
    const auto found = storage_.find(t.storage);
    if (found == storage_.end()) continue;
    for (const Storage::Use& u : found->second.uses) {
      if (!t.write && !u.write) continue;
      const double time = after(u.by, core_index, pipe);
      if (time > ready && check::overlap(t.box, u.box)) ready = time;
    }
  }
  return std::max(ready, c.free[static_cast<size_t>(pipe)]);
}

void BlockClock::finish(int core_index, CorePipe pipe, std::span<const Touch> touches, double end) {
  raise(core[core_index].free[static_cast<size_t>(pipe)], end);
  for (const Touch& t : touches) {
    Storage& s = storage_[t.storage];
    if (t.write) {
      std::erase_if(s.copies, [&](const Copy& c) { return check::overlap(c.box, t.box); });
      // Whoever conflicts with what is overwritten conflicts with this write, which is later.
      std::erase_if(s.uses, [&](const Storage::Use& u) {
        return u.by.core == core_index && u.by.finish <= end && check::covers(t.box, u.box);
      });
    } else {
      std::erase_if(s.uses, [&](const Storage::Use& u) {
        return !u.write && u.by.core == core_index && u.by.pipe == pipe && u.by.finish <= end &&
               check::covers(t.box, u.box);
      });
    }
    s.uses.push_back({t.box, {end, core_index, pipe}, t.write});
    if (s.uses.size() > kMaxUses) {
      Storage::Use& first = s.uses[0];
      const Storage::Use& second = s.uses[1];
      first.box = check::box_of_range(std::min(first.box.begin(), second.box.begin()),
                                      std::max(first.box.end(), second.box.end()));
      first.write = first.write || second.write;
      if (second.by.finish > first.by.finish) first.by = second.by;
      s.uses.erase(s.uses.begin() + 1);
    }
  }
}

void BlockClock::wait_for(int core_index, const Touch& touch) {
  const auto found = storage_.find(touch.storage);
  if (found == storage_.end()) return;
  for (const Storage::Use& u : found->second.uses) {
    if (!touch.write && !u.write) continue;
    const double time = after(u.by, core_index, CorePipe::kS);
    if (time > core[core_index].s && check::overlap(touch.box, u.box)) core[core_index].s = time;
  }
}

BlockClock::Storage& BlockClock::fresh(uint64_t key, ir::MemorySpace space) {
  Storage& s = storage_[key];
  s.space = space;
  s.copies.clear();
  s.uses.clear();
  return s;
}

}  // namespace pypto::trace
