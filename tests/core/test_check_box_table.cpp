// SPDX-License-Identifier: Apache-2.0
// The table of boxes against a list that is searched from end to end.
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "core/check/box_table.h"

namespace pypto::check {
namespace {

struct Element {
  StoredBox box;
  int number = 0;
};

/// Some bytes at a multiple of their number or across two such places, or rows of a matrix.
Box random_box(std::mt19937& rng, int sizes) {
  const auto pick = [&](int64_t n) { return static_cast<int64_t>(rng() % static_cast<uint64_t>(n)); };
  if (pick(16) == 0) {
    Box b;
    b.base = 4 * pick(200);
    b.run = 4 * (1 + pick(4));
    b.dims = 1;
    b.dim[0] = {64, 2 + pick(5)};
    return b;
  }
  static constexpr int64_t kSizes[] = {4, 1024, 64, 12, 1};
  const int64_t size = kSizes[pick(sizes)];
  const int64_t at = size * pick(2048 / size) + (pick(4) == 0 ? size / 2 : 0);
  return box_of_range(at, at + size);
}

TEST(CheckBoxTable, FindsWhatOverlapsOfAnySize) {
  for (int seed = 0; seed < 60; ++seed) {
    std::mt19937 rng(static_cast<uint32_t>(seed));
    const int sizes = 1 + seed % 5;            // elements of one size up to five
    const int dense = seed % 3 == 0 ? 3 : 40;  // few elements, or so many that there is a hash table
    BoxTable<Element> table;
    std::vector<std::pair<Box, int>> list;
    int next = 0;
    for (int step = 0; step < 600; ++step) {
      const Box box = random_box(rng, sizes);
      const bool removes = static_cast<int>(list.size()) > dense || rng() % 4 == 0;
      if (!removes && !table.find(box)) {
        table.add(box).number = next;
        list.emplace_back(box, next++);
      }
      std::multiset<int> want, got;
      std::erase_if(list, [&](const auto& e) {
        if (!overlap(e.first, box)) return false;
        want.insert(e.second);
        return removes && e.second % 3 != 0;
      });
      table.for_each(box, [&](const Box& where, Element& e) {
        EXPECT_TRUE(overlap(where, box));
        got.insert(e.number);
        return removes && e.number % 3 != 0;
      });
      ASSERT_EQ(got, want) << "seed " << seed << ", step " << step;
      EXPECT_EQ(table.empty(), list.empty());
      for (const auto& [other, number] : list) {
        const Element* found = table.find(other);
        ASSERT_TRUE(found != nullptr) << "seed " << seed << ", step " << step;
      }
    }
  }
}

}  // namespace
}  // namespace pypto::check
