// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "core/check/checker.h"

namespace pypto::check {

/// Epochs by chain. A chain is a sequence of actors each of which starts after the one before has ended, so
/// one component serves many actors.
using Dense = std::vector<uint32_t>;
using DensePtr = std::shared_ptr<const Dense>;

inline constexpr uint32_t kNoChain = UINT32_MAX;

struct Component {
  uint32_t chain = kNoChain;
  uint32_t epoch = 0;
};

/// A few components on top of epochs that are shared: ranks that started from the same state differ in a few
/// components only, and learn of each other's without looking at what they have in common.
class Extras {
 public:
  const Component* begin() const { return list_; }
  const Component* end() const { return list_ + size_; }
  void clear() { size_ = 0; }
  uint32_t at(uint32_t chain) const {
    for (const Component& c : *this) {
      if (c.chain == chain) return c.epoch;
    }
    return 0;
  }
  /// Raises a component; false when there is no room for a new one.
  bool raise(Component c) {
    for (size_t i = 0; i < size_; ++i) {
      if (list_[i].chain != c.chain) continue;
      if (list_[i].epoch < c.epoch) list_[i].epoch = c.epoch;
      return true;
    }
    if (size_ == kRoom) return false;
    list_[size_++] = c;
    return true;
  }

 private:
  static constexpr size_t kRoom = 6;
  Component list_[kRoom];
  size_t size_ = 0;
};

inline uint32_t epoch_of(const Dense* d, uint32_t chain) { return d && chain < d->size() ? (*d)[chain] : 0; }

/// Immutable clock: shared epochs, a few components on top, and that of the actor that released it.
class ClockData {
 public:
  DensePtr base;
  Extras extras;
  uint32_t chain = kNoChain;
  uint32_t epoch = 0;
  mutable int64_t id = -1;  ///< in the log of the recorder

  uint32_t at(uint32_t c) const {
    if (c == chain) return epoch;
    const uint32_t below = epoch_of(base.get(), c);
    const uint32_t above = extras.at(c);
    return above > below ? above : below;
  }
};

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
  void acquire_base(const DensePtr& base);
  void acquire_component(Component c);

  DensePtr base_;
  DensePtr below_;  ///< another clock's epochs, or what base_ was copied from: known to be below base_
  Extras extras_;
  uint32_t chain_ = kNoChain;
  uint32_t epoch_ = 0;
  Clock released_;  ///< valid while nothing happened since
};

}  // namespace pypto::check
