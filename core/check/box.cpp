// SPDX-License-Identifier: Apache-2.0
#include "core/check/box.h"

#include <algorithm>

#include "core/base/dtype.h"

namespace pypto::check {
namespace {

/// A suffix of a box's dimensions at some offset.
struct Part {
  const Box* box;
  int level;     ///< first dimension that is still open
  int64_t base;  ///< byte offset of this part

  bool is_run() const { return level == box->dims; }
  int64_t span() const {
    int64_t n = box->run;
    for (int i = level; i < box->dims; ++i) n += box->dim[i].stride * (box->dim[i].count - 1);
    return n;
  }
  int64_t inner_span() const { return span() - box->dim[level].stride * (box->dim[level].count - 1); }
  Part child(int64_t index) const { return {box, level + 1, base + index * box->dim[level].stride}; }
};

int64_t floor_div(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0); }

/// Depth is bounded by the number of dimensions of both boxes, so the recursion is too.
bool overlap_parts(const Part& a, const Part& b, Range* range) {
  const int64_t a_end = a.base + a.span();
  const int64_t b_end = b.base + b.span();
  if (a_end <= b.base || b_end <= a.base) return false;
  if (a.is_run() && b.is_run()) {
    if (range) *range = {std::max(a.base, b.base), std::min(a_end, b_end)};
    return true;
  }
  if (!a.is_run() && !b.is_run() && a.box->dim[a.level].stride == b.box->dim[b.level].stride) {
    // Equal pitch: only the difference of the two indices matters, and at most a few differences can meet.
    const int64_t stride = a.box->dim[a.level].stride;
    const int64_t na = a.box->dim[a.level].count;
    const int64_t nb = b.box->dim[b.level].count;
    const int64_t delta = b.base - a.base;
    // A run of `a` at index i meets one of `b` at index i - k when |delta - k * stride| is inside the spans.
    const int64_t lo = floor_div(delta - a.inner_span(), stride) + 1;
    const int64_t hi = floor_div(delta + b.inner_span() - 1, stride);
    for (int64_t k = std::max(lo, -(nb - 1)); k <= std::min(hi, na - 1); ++k) {
      const int64_t i = std::max<int64_t>(k, 0);
      if (overlap_parts(a.child(i), b.child(i - k), range)) return true;
    }
    return false;
  }
  // Different structure: open the part with the larger pitch where it meets the other.
  const bool open_a = b.is_run() || (!a.is_run() && a.box->dim[a.level].stride > b.box->dim[b.level].stride);
  const Part& wide = open_a ? a : b;
  const Part& other = open_a ? b : a;
  const int64_t stride = wide.box->dim[wide.level].stride;
  const int64_t count = wide.box->dim[wide.level].count;
  const int64_t other_end = other.base + other.span();
  const int64_t first =
      std::max<int64_t>(0, floor_div(other.base - wide.base - wide.inner_span(), stride) + 1);
  const int64_t last = std::min<int64_t>(count - 1, floor_div(other_end - 1 - wide.base, stride));
  for (int64_t i = first; i <= last; ++i) {
    if (overlap_parts(wide.child(i), other, range)) return true;
  }
  return false;
}

}  // namespace

int64_t Box::end() const {
  int64_t n = base + run;
  for (int i = 0; i < dims; ++i) n += dim[i].stride * (dim[i].count - 1);
  return n;
}

int64_t Box::bytes() const {
  int64_t n = run;
  for (int i = 0; i < dims; ++i) n *= dim[i].count;
  return n;
}

bool Box::operator==(const Box& o) const {
  return base == o.base && run == o.run && dims == o.dims && std::equal(dim, dim + dims, o.dim);
}

Box box_of_range(int64_t begin, int64_t end) {
  Box b;
  b.base = begin;
  b.run = std::max<int64_t>(0, end - begin);
  return b;
}

Box box_of(const vm::View& v) {
  Box b;
  b.base = v.offset;
  const int bits = dtype_bits(v.dtype);
  struct Axis {
    int64_t stride, count;
  } axis[vm::kMaxRank];
  int n = 0;
  for (int i = 0; i < v.rank; ++i) {
    if (v.valid[i] <= 0) return b;
    if (v.valid[i] > 1) axis[n++] = {v.stride[i], v.valid[i]};
  }
  // Strides of views may be in any order (transposed views), but none is negative.
  for (int i = 1; i < n; ++i) {
    for (int k = i; k > 0 && axis[k].stride > axis[k - 1].stride; --k) std::swap(axis[k], axis[k - 1]);
  }
  // Sub-byte elements in global memory are packed and contiguous on the last axis (view.h).
  int64_t run_elements = 1;
  while (n > 0 && (axis[n - 1].stride == run_elements || axis[n - 1].stride == 0)) {
    if (axis[n - 1].stride != 0) run_elements *= axis[n - 1].count;
    --n;
  }
  b.run = (run_elements * bits + 7) / 8;
  for (int i = 0; i < n; ++i) {
    const int64_t stride = axis[i].stride * bits / 8;
    if (b.dims > 0 && b.dim[b.dims - 1].stride == stride * axis[i].count) {
      // Equidistant with the dimension outside it: one longer dimension.
      b.dim[b.dims - 1] = {stride, b.dim[b.dims - 1].count * axis[i].count};
    } else {
      b.dim[b.dims++] = {stride, axis[i].count};
    }
  }
  return b;
}

bool overlap(const Box& a, const Box& b) {
  if (a.empty() || b.empty()) return false;
  return overlap_parts({&a, 0, a.base}, {&b, 0, b.base}, nullptr);
}

bool covers(const Box& outer, const Box& inner) {
  if (inner.empty()) return true;
  if (outer.dims == 0) return outer.base <= inner.base && inner.end() <= outer.end();
  if (outer == inner) return true;
  if (outer.dims != inner.dims) return false;
  // Same pitch everywhere: compare index ranges, dimension by dimension.
  int64_t delta = inner.base - outer.base;
  if (delta < 0) return false;
  for (int i = 0; i < outer.dims; ++i) {
    if (outer.dim[i].stride != inner.dim[i].stride) return false;
    const int64_t first = delta / outer.dim[i].stride;
    if (first + inner.dim[i].count > outer.dim[i].count) return false;
    delta -= first * outer.dim[i].stride;
  }
  return delta + inner.run <= outer.run;
}

Range common_range(const Box& a, const Box& b) {
  Range r;
  overlap_parts({&a, 0, a.base}, {&b, 0, b.base}, &r);
  return r;
}

}  // namespace pypto::check
