// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

namespace pypto::check {
namespace cells_detail {

inline bool holds(ir::WaitCmp cmp, int64_t value, int32_t expected) {
  return cmp == ir::WaitCmp::kEq ? value == expected : value >= expected;
}
inline int64_t apply(const Mod& m, int64_t value) {
  return m.kind == Mod::Kind::kAdd ? value + m.value : m.value;
}

/// Whether `later` is ordered after `earlier` (both modifications of one cell; `later` was committed later).
inline bool ordered(const Mod& earlier, const Mod& later) {
  return earlier.chain == later.chain || later.at(earlier.chain) >= earlier.epoch;
}

}  // namespace cells_detail

template <class Before, class After>
void judge_wait(const Cells& cells, const Cell& cell, ir::WaitCmp cmp, int32_t expected, Before before,
                After after, Observed& out) {
  using cells_detail::apply;
  using cells_detail::holds;
  out.clear();
  // What is ordered before the wait comes first in every order worth looking at; what is unordered may
  // follow.
  int64_t value = cell.initial;
  std::vector<const Mod*>& open = out.open;
  bool adds_only = true;
  for (const Mod& m : cells.mods.range(cell.mods)) {
    if (before(m)) {
      value = apply(m, value);
    } else if (!after(m)) {
      open.push_back(&m);
      adds_only = adds_only && m.kind == Mod::Kind::kAdd;
    }
  }
  out.base = value;
  if (open.empty() || holds(cmp, value, expected)) return;
  out.fresh = true;
  const bool counting = adds_only && cmp == ir::WaitCmp::kGe;
  if (open.size() == 1) {
    out.sure.push_back(open.front());
    if (counting) out.without.push_back(value);
    return;
  }
  int64_t positive = value;
  for (const Mod* m : open) positive += std::max(m->value, 0);
  // A modification is surely observed when the condition cannot become true without it and what comes after
  // it.
  for (size_t i = 0; i < open.size(); ++i) {
    const Mod& n = *open[i];
    bool needed;
    int64_t without = 0;
    if (counting) {
      without = positive - std::max(n.value, 0);
      for (size_t j = i + 1; j < open.size(); ++j) {
        if (cells_detail::ordered(n, *open[j])) without -= std::max(open[j]->value, 0);
      }
      needed = without < expected;
    } else {
      int64_t v = value;
      needed = true;
      for (size_t j = 0; j < open.size() && needed; ++j) {
        if (j == i || (j > i && cells_detail::ordered(n, *open[j]))) continue;
        v = apply(*open[j], v);
        needed = !holds(cmp, v, expected);
      }
    }
    if (needed) {
      out.sure.push_back(&n);
      if (counting) out.without.push_back(without);
    }
  }
  // The prefix that this run's order of commits gave.
  int64_t v = value;
  for (const Mod* m : open) {
    v = apply(*m, v);
    if (std::find(out.sure.begin(), out.sure.end(), m) == out.sure.end()) out.may.push_back(m);
    if (holds(cmp, v, expected)) break;
  }
}

}  // namespace pypto::check
