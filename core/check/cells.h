// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "core/check/clock.h"
#include "core/ir/enums.h"

namespace pypto::check {

/// A modification of a signal cell (03 M-30).
struct Mod {
  enum class Kind : uint8_t { kAdd, kSet, kWrite } kind = Kind::kAdd;
  uint32_t chain = 0, epoch = 0;
  uint32_t meta = 0;
  int32_t value = 0;
  int32_t before = 0, after = 0;
  int32_t round = 0;
  int64_t sequence = 0;
  Clock release;
  const vm::Site* site = nullptr;
};

/// A satisfied wait, kept while notifies that arrive later may change what it surely observed.
struct WaitNote {
  uint32_t chain = 0, epoch = 0;
  ir::WaitCmp cmp = ir::WaitCmp::kGe;
  int32_t expected = 0;
  int64_t sequence = 0;
  int32_t record = -1;  ///< index in the analysis' wait records
};

/// One cell: its modifications in commit order, and the waits on it.
struct Cell {
  int32_t initial = 0;  ///< value before mods.front()
  std::vector<Mod> mods;
  std::vector<WaitNote> waits;
};

/// What a wait observes.
struct Observed {
  std::vector<const Mod*> sure;  ///< not ordered before the wait, observed in every order
  std::vector<const Mod*> may;   ///< observed in this run, but not in every order
  bool fresh = false;            ///< the condition needs a modification that is not ordered before the wait
};

/// `before(mod)`: the modification happens before the wait; `after(mod)`: it is ordered after the wait.
template <class Before, class After>
Observed judge_wait(const Cell& cell, ir::WaitCmp cmp, int32_t expected, Before before, After after);

}  // namespace pypto::check

#include "core/check/cells-inl.h"
