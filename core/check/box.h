// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/vm/view.h"

namespace pypto::check {

/// The bytes that a view touches in its buffer: nested equidistant copies of one contiguous run. Dimensions
/// are sorted by descending stride, and one step of a dimension is never smaller than what lies inside it, so
/// the run of index (i, j, ...) starts at base + i * dim[0].stride + j * dim[1].stride + ...
struct Box {
  int64_t base = 0;  ///< byte offset of the first run
  int64_t run = 0;   ///< bytes of one run; 0 = empty box
  int32_t dims = 0;
  struct Dim {
    int64_t stride = 0;  ///< bytes
    int64_t count = 0;   ///< >= 2
    bool operator==(const Dim&) const = default;
  } dim[vm::kMaxRank];

  bool empty() const { return run == 0; }
  int64_t begin() const { return base; }
  /// One past the last byte.
  int64_t end() const;
  /// Number of bytes touched.
  int64_t bytes() const;
  bool operator==(const Box& o) const;
};

/// The valid region of `v` as bytes of its buffer.
Box box_of(const vm::View& v);
/// Bytes [begin, end).
Box box_of_range(int64_t begin, int64_t end);

/// Whether the two boxes share a byte. Exact.
bool overlap(const Box& a, const Box& b);
/// Whether every byte of `inner` is in `outer`; may say no where the boxes have different structure.
bool covers(const Box& outer, const Box& inner);
/// A byte range that both boxes touch: the first common run found. Meaningful only if they overlap.
struct Range {
  int64_t begin = 0, end = 0;
};
Range common_range(const Box& a, const Box& b);

}  // namespace pypto::check
