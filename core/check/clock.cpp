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

void ActorClock::own() {
  if (!base_) {
    base_ = std::make_shared<Dense>();
  } else if (base_.use_count() > 1) {
    base_ = std::make_shared<Dense>(*base_);
  }
}

Clock ActorClock::release() {
  if (released_) return released_;
  auto data = std::make_shared<ClockData>();
  data->base = base_;
  data->chain = chain_;
  data->epoch = epoch_;
  released_ = std::move(data);
  return released_;
}

void ActorClock::acquire(const Clock& clock) {
  if (!clock) return;
  const bool new_base = clock->base && clock->base != base_ && (!base_ || exceeds(*clock->base, *base_));
  const bool new_component = clock->chain != kNoChain && clock->chain != chain_ &&
                             epoch_of(base_.get(), clock->chain) < clock->epoch;
  if (!new_base && !new_component) return;
  stamp();  // what was released before did not know this
  own();
  if (new_base) merge_into(*base_, *clock->base);
  if (new_component) {
    if (base_->size() <= clock->chain) base_->resize(clock->chain + 1, 0);
    (*base_)[clock->chain] = std::max((*base_)[clock->chain], clock->epoch);
  }
}

}  // namespace pypto::check
