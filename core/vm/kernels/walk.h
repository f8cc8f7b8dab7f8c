// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/vm/view.h"

namespace pypto::vm {

/// Walks equal boxes of up to four arrays row by row, so that kernels see contiguous rows only. Fill
/// `extent`, add the arrays, call `collapse`, then `rows`.
struct Walk {
  static constexpr int kMost = 4;

  int rank = 0;
  int64_t extent[kMaxRank] = {};
  int count = 0;
  uint8_t* base[kMost] = {};
  int64_t stride[kMost][kMaxRank] = {};  ///< bytes; 0 where the array repeats
  int64_t width[kMost] = {};             ///< bytes of an element

  Walk(int rank_in, const int64_t* extents);
  /// `strides` in bytes, one per axis. The last axis must be contiguous, of extent 1, or repeated.
  void add(const void* data, const int64_t* strides, int64_t element_bytes);
  /// Drops axes of extent 1 and merges neighbours that every array walks as one.
  void collapse();

  bool empty() const { return cells_ == 0; }
  int64_t row_length() const { return rank == 0 ? 1 : extent[rank - 1]; }
  /// Whether array `i` is one repeated element along the rows.
  bool repeats(int i) const { return rank > 0 && extent[rank - 1] > 1 && stride[i][rank - 1] == 0; }

  /// f(pointers, n): one call per row, in row-major order.
  template <class F>
  void rows(F f) const {
    if (empty()) return;
    uint8_t* p[kMost] = {base[0], base[1], base[2], base[3]};
    const int64_t n = row_length();
    const int outer = rank - 1;
    if (outer <= 0) {
      f(p, n);
      return;
    }
    int64_t at[kMaxRank] = {};
    for (;;) {
      f(p, n);
      int axis = outer - 1;
      for (; axis >= 0; --axis) {
        for (int i = 0; i < count; ++i) p[i] += stride[i][axis];
        if (++at[axis] < extent[axis]) break;
        for (int i = 0; i < count; ++i) p[i] -= stride[i][axis] * extent[axis];
        at[axis] = 0;
      }
      if (axis < 0) return;
    }
  }

 private:
  int64_t cells_ = 1;
};

}  // namespace pypto::vm
