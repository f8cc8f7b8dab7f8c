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

namespace {

/// Those of `extras` that `base` does not have.
Extras extras_above(const Extras& extras, const Dense& base) {
  Extras kept;
  for (const Component& c : extras) {
    if (c.epoch > epoch_of(&base, c.chain)) kept.raise(c);
  }
  return kept;
}

constexpr size_t kBlock = 64;  ///< components looked at together

/// Appends the components of `a` that are above those of `b`; false when there are more than `most`.
bool few_above(const Dense& a, const Dense& b, size_t most, std::vector<Component>* found) {
  for (size_t from = 0; from < a.size(); from += kBlock) {
    const size_t to = std::min(from + kBlock, a.size());
    const size_t common = std::min(to, std::max(b.size(), from));
    uint32_t above = 0;
    for (size_t i = from; i < common; ++i) above |= static_cast<uint32_t>(a[i] > b[i]);
    for (size_t i = common; i < to; ++i) above |= static_cast<uint32_t>(a[i] != 0);
    if (!above) continue;
    for (size_t i = from; i < to; ++i) {
      if (a[i] <= (i < b.size() ? b[i] : 0)) continue;
      if (found->size() == most) return false;
      found->push_back({static_cast<uint32_t>(i), a[i]});
    }
  }
  return true;
}

}  // namespace

bool exceeds(const Dense& src, const Dense& dst) {
  const size_t common = std::min(src.size(), dst.size());
  for (size_t from = 0; from < common; from += kBlock) {
    const size_t to = std::min(from + kBlock, common);
    uint32_t above = 0;
    for (size_t i = from; i < to; ++i) above |= static_cast<uint32_t>(src[i] > dst[i]);
    if (above) return true;
  }
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
  if (!within_) from_ = kNoChain;
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

/// Shares the other's epochs instead of copying its own when those are above in few components only: ranks
/// that hand something round in a ring know the same but for the last few steps.
bool ActorClock::take_over(const DensePtr& base) {
  thread_local std::vector<Component> above;
  above.clear();
  if (!few_above(*base_, *base, Extras::kRoom, &above)) return false;
  Extras extras = extras_above(extras_, *base);
  for (const Component& c : above) {
    if (c.chain != chain_ && !extras.raise(c)) return false;
  }
  extras_ = extras;
  below_ = base_;
  base_ = base;
  return true;
}

void ActorClock::acquire_base(const DensePtr& base, uint32_t from) {
  if (!base || base == below_) return;
  if (base == base_) {
    if (from_ == kNoChain) from_ = from;
    return;
  }
  if (!base_) {
    stamp();  // what was released before did not know this
    base_ = base;
    from_ = from;
    return;
  }
  if (from != kNoChain && from == from_) {
    // All of base_ was known to this chain before: what its new base lacks of it is in the clock's extras.
    stamp();
    below_ = base_;
    base_ = base;
    extras_ = extras_above(extras_, *base_);
    return;
  }
  if (exceeds(*base, *base_)) {
    stamp();
    if (base_.use_count() > 1 && take_over(base)) {
      from_ = from;
      return;
    }
    merge_into(own(), *base);
    from_ = kNoChain;
  }
  below_ = base;
}

void ActorClock::acquire_component(Component c, uint32_t from) {
  if (c.chain == kNoChain || c.chain == chain_ || knows(c.chain, c.epoch)) return;
  stamp();
  if (base_.use_count() != 1 && extras_.raise(c)) return;
  Dense& mine = own();
  if (mine.size() <= c.chain) mine.resize(c.chain + 1, 0);
  mine[c.chain] = std::max(mine[c.chain], c.epoch);
  if (from != from_) from_ = kNoChain;
}

void ActorClock::acquire(const Clock& clock) {
  if (!clock) return;
  // Whoever knows a component knows all that was known when it was released.
  if (clock->chain != kNoChain && knows(clock->chain, clock->epoch)) return;
  within_ = within_ && from_ == clock->chain;
  acquire_base(clock->base, clock->chain);
  for (const Component& c : clock->extras) acquire_component(c, clock->chain);
  acquire_component({clock->chain, clock->epoch}, clock->chain);
  within_ = from_ != kNoChain && from_ == clock->chain &&
            std::all_of(extras_.begin(), extras_.end(),
                        [&](const Component& c) { return clock->at(c.chain) >= c.epoch; });
}

}  // namespace pypto::check
