// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/check/checker.h"

namespace pypto::check {

/// dst = max(dst, src) per component; dst grows as needed.
void merge_into(Dense& dst, const Dense& src);
/// Whether src has a component above dst's.
bool exceeds(const Dense& src, const Dense& dst);

/// Vector clock of a running actor: copy on write over a base it may share with released clocks.
class ActorClock {
 public:
  void start(uint32_t chain, uint32_t epoch) {
    *this = ActorClock();
    chain_ = chain;
    epoch_ = epoch;
  }
  /// An actor that knows what `known` knows.
  void start(const ActorClock& known, uint32_t chain, uint32_t epoch) {
    start(chain, epoch);
    base_ = known.base_;
    below_ = known.below_;
    extras_ = known.extras_;
  }
  uint32_t chain() const { return chain_; }
  /// Epoch of what the actor does now. What comes after a release has a later one.
  uint32_t stamp() {
    if (released_) {
      released_ = nullptr;
      ++epoch_;
    }
    return epoch_;
  }
  uint32_t epoch() const { return epoch_; }
  bool knows(uint32_t chain, uint32_t epoch) const {
    if (chain == chain_) return epoch <= epoch_;
    return epoch_of(base_.get(), chain) >= epoch || extras_.at(chain) >= epoch;
  }
  Clock release();
  void acquire(const Clock& clock);

 private:
  Dense& own();
  bool take_over(const DensePtr& base);
  void acquire_base(const DensePtr& base, uint32_t from);
  void acquire_component(Component c, uint32_t from);

  DensePtr base_;
  DensePtr below_;  ///< another clock's epochs, or what base_ was copied from: known to be below base_
  uint32_t from_ = kNoChain;  ///< the latest clock from this chain knew all of base_; kNoChain: none may have
  bool within_ = false;       ///< and all of extras_
  Extras extras_;
  uint32_t chain_ = kNoChain;
  uint32_t epoch_ = 0;
  Clock released_;  ///< valid while nothing happened since
};

}  // namespace pypto::check
