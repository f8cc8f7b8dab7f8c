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
using DensePtr = std::shared_ptr<Dense>;

inline constexpr uint32_t kNoChain = UINT32_MAX;

/// Immutable clock: shared epochs, and one component (of the actor that released it) on top.
class ClockData {
 public:
  std::shared_ptr<const Dense> base;
  uint32_t chain = kNoChain;
  uint32_t epoch = 0;
  mutable int64_t id = -1;  ///< in the log of the recorder

  uint32_t at(uint32_t c) const {
    if (c == chain) return epoch;
    return base && c < base->size() ? (*base)[c] : 0;
  }
};

inline uint32_t epoch_of(const Dense* d, uint32_t chain) { return d && chain < d->size() ? (*d)[chain] : 0; }

/// dst = max(dst, src) per component; dst grows as needed.
void merge_into(Dense& dst, const Dense& src);
/// Whether src has a component above dst's.
bool exceeds(const Dense& src, const Dense& dst);

/// Vector clock of a running actor: copy on write over a base it may share with released clocks.
class ActorClock {
 public:
  void start(DensePtr base, uint32_t chain, uint32_t epoch) {
    base_ = std::move(base);
    chain_ = chain;
    epoch_ = epoch;
    released_ = nullptr;
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
    return chain == chain_ ? epoch <= epoch_ : epoch_of(base_.get(), chain) >= epoch;
  }
  Clock release();
  void acquire(const Clock& clock);
  const DensePtr& base() const { return base_; }

 private:
  void own();

  DensePtr base_;
  uint32_t chain_ = kNoChain;
  uint32_t epoch_ = 0;
  Clock released_;  ///< valid while nothing happened since
};

}  // namespace pypto::check
