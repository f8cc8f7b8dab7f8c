// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "core/ir/enums.h"
#include "core/vm/program.h"

namespace pypto::machine {

/// Clusters of a device (05 H-9); each has one cube core and two vector cores.
inline int cluster_count(ir::Arch arch) { return arch == ir::Arch::kA5 ? 36 : 24; }

/// Cores that a running block holds; -1 = none.
struct CoreSet {
  int aic = -1;
  int aiv0 = -1, aiv1 = -1;
  /// "AIV 3", "AIC 0", or "cluster 2" for a mixed block; of one lane if `lane` >= 0.
  std::string name(int lane = -1) const {
    if (aic >= 0 && aiv0 >= 0) {
      if (lane == 0) return "AIV " + std::to_string(aiv0);
      if (lane == 1) return "AIV " + std::to_string(aiv1);
      return "cluster " + std::to_string(aic);
    }
    return aic >= 0 ? "AIC " + std::to_string(aic) : "AIV " + std::to_string(aiv0);
  }
};

/// Free cores of one device. Vector core 2c + k belongs to cluster c. The choice is a function of the free
/// set alone.
class Cores {
 public:
  explicit Cores(int clusters)
      : clusters_(clusters), aic_(mask(clusters)), aiv_{mask(clusters), mask(clusters)} {}

  static bool needs_cluster(vm::CoreKind kind) { return kind == vm::CoreKind::kMixed; }
  /// Blocks of `kind` that fit on the whole device at once.
  int capacity(vm::CoreKind kind) const {
    return kind == vm::CoreKind::kCube || kind == vm::CoreKind::kMixed ? clusters_ : 2 * clusters_;
  }
  /// Blocks of `kind` that could start now.
  int available(vm::CoreKind kind) const {
    switch (kind) {
      case vm::CoreKind::kCube:
        return std::popcount(aic_);
      case vm::CoreKind::kMixed:
        return std::popcount(aic_ & aiv_[0] & aiv_[1]);
      default:
        return std::popcount(aiv_[0]) + std::popcount(aiv_[1]);
    }
  }
  bool take(vm::CoreKind kind, CoreSet* out) {
    if (available(kind) == 0) return false;
    *out = CoreSet();
    switch (kind) {
      case vm::CoreKind::kCube:
        // Prefer a cluster that no mixed block could use anyway.
        out->aic = lowest(aic_ & ~(aiv_[0] & aiv_[1]), aic_);
        aic_ &= ~bit(out->aic);
        break;
      case vm::CoreKind::kMixed:
        out->aic = lowest(aic_ & aiv_[0] & aiv_[1], 0);
        out->aiv0 = 2 * out->aic;
        out->aiv1 = 2 * out->aic + 1;
        aic_ &= ~bit(out->aic);
        aiv_[0] &= ~bit(out->aic);
        aiv_[1] &= ~bit(out->aic);
        break;
      default: {
        const uint64_t any = aiv_[0] | aiv_[1];
        const int c = lowest(any & ~(aic_ & aiv_[0] & aiv_[1]), any);
        const int half = (aiv_[0] & bit(c)) ? 0 : 1;
        aiv_[half] &= ~bit(c);
        out->aiv0 = 2 * c + half;
        break;
      }
    }
    return true;
  }
  void give(const CoreSet& set) {
    if (set.aic >= 0) aic_ |= bit(set.aic);
    for (const int v : {set.aiv0, set.aiv1}) {
      if (v >= 0) aiv_[v % 2] |= bit(v / 2);
    }
  }

 private:
  static uint64_t bit(int i) { return uint64_t{1} << i; }
  static uint64_t mask(int n) { return (uint64_t{1} << n) - 1; }
  static int lowest(uint64_t preferred, uint64_t otherwise) {
    return std::countr_zero(preferred ? preferred : otherwise);
  }

  int clusters_;
  uint64_t aic_;
  uint64_t aiv_[2];  ///< by sub-block
};

}  // namespace pypto::machine
