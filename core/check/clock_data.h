// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/counted.h"

namespace pypto::check {

/// Epochs by chain. A chain is a sequence of actors each of which starts after the one before has ended, so
/// one component serves many actors.
using Dense = std::vector<uint32_t>;
using DensePtr = Counted<Dense>;

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
  size_t size() const { return size_; }
  void clear() { size_ = 0; }
  bool operator==(const Extras& o) const {
    return std::equal(begin(), end(), o.begin(), o.end(), [](const Component& a, const Component& b) {
      return a.chain == b.chain && a.epoch == b.epoch;
    });
  }
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

  static constexpr size_t kRoom = 6;

 private:
  Component list_[kRoom];
  size_t size_ = 0;
};

inline uint32_t epoch_of(const Dense* d, uint32_t chain) { return d && chain < d->size() ? (*d)[chain] : 0; }

/// Immutable clock: shared epochs, a few components on top, and that of the actor that released it.
struct ClockData {
  DensePtr base;
  Extras extras;
  uint32_t chain = kNoChain;
  uint32_t epoch = 0;
  int64_t id = -1;  ///< in the log of the recorder

  uint32_t at(uint32_t c) const {
    if (c == chain) return epoch;
    const uint32_t below = epoch_of(base.get(), c);
    const uint32_t above = extras.at(c);
    return above > below ? above : below;
  }
};

/// What an actor knows: an immutable vector clock, shared by everything that was released at the same point.
/// Null is the clock of somebody who knows nothing.
using Clock = Counted<ClockData>;

}  // namespace pypto::check
