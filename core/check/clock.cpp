// SPDX-License-Identifier: Apache-2.0
#include "core/check/clock.h"

#include <algorithm>

namespace pypto::check {

void merge_into(Dense& dst, const Dense& src) {
  if (dst.size() < src.size()) dst.resize(src.size(), 0);
  uint32_t* d = dst.data();
  const uint32_t* s = src.data();
  const size_t n = src.size();
  for (size_t i = 0; i < n; ++i) d[i] = std::max(d[i], s[i]);
}

bool exceeds(const Dense& src, const Dense& dst) {
  const size_t common = std::min(src.size(), dst.size());
  uint32_t above = 0;
  for (size_t i = 0; i < common; ++i) above |= static_cast<uint32_t>(src[i] > dst[i]);
  if (above) return true;
  return std::any_of(src.begin() + static_cast<std::ptrdiff_t>(common), src.end(),
                     [](uint32_t e) { return e != 0; });
}

Dense& ActorClock::own() {
  if (!base_) {
    base_ = DensePtr::make();
  } else if (base_.use_count() > 1) {
    below_ = base_;
    base_ = DensePtr::make(*below_);
  }
  Dense& mine = *base_;
  for (const Component& c : extras_) {
    if (mine.size() <= c.chain) mine.resize(c.chain + 1, 0);
    mine[c.chain] = std::max(mine[c.chain], c.epoch);
  }
  extras_.clear();
  return mine;
}

Clock ActorClock::release() {
  if (released_) return released_;
  released_ = Clock::make();
  ClockData* data = released_.get();
  data->base = base_;
  data->extras = extras_;
  data->chain = chain_;
  data->epoch = epoch_;
  return released_;
}

void ActorClock::acquire_base(const DensePtr& base) {
  if (!base || base == base_ || base == below_) return;
  if (!base_) {
    stamp();  // what was released before did not know this
    base_ = base;
    return;
  }
  if (exceeds(*base, *base_)) {
    stamp();
    if (base_.use_count() > 1 && !exceeds(*base_, *base)) {
      below_ = base_;
      base_ = base;
      return;
    }
    merge_into(own(), *base);
  }
  below_ = base;
}

void ActorClock::acquire_component(Component c) {
  if (c.chain == kNoChain || c.chain == chain_ || knows(c.chain, c.epoch)) return;
  stamp();
  if (base_.use_count() != 1 && extras_.raise(c)) return;
  Dense& mine = own();
  if (mine.size() <= c.chain) mine.resize(c.chain + 1, 0);
  mine[c.chain] = std::max(mine[c.chain], c.epoch);
}

void ActorClock::acquire(const Clock& clock) {
  if (!clock) return;
  acquire_base(clock->base);
  for (const Component& c : clock->extras) acquire_component(c);
  acquire_component({clock->chain, clock->epoch});
}

}  // namespace pypto::check
