// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "core/vm/exec.h"

/// Rectangles of views: windows, copies, bounds and valid extents (02 sections 2.3 and 7). Shared by the
/// executors that move data.
namespace pypto::vm {

/// Up to kMaxRank extents, offsets or coordinates, copied out of an operand list.
struct Extents {
  int rank = 0;
  int64_t v[kMaxRank] = {};

  Extents() = default;
  Extents(std::initializer_list<int64_t> list) {
    for (const int64_t e : list) push(e);
  }
  explicit Extents(std::span<const int64_t> list) {
    for (const int64_t e : list) push(e);
  }
  Extents(const int64_t* first, int count) : Extents(std::span(first, static_cast<size_t>(count))) {}
  void push(int64_t e);
  int64_t& operator[](int i) { return v[i]; }
  int64_t operator[](int i) const { return v[i]; }
  std::span<const int64_t> span() const { return {v, static_cast<size_t>(rank)}; }
  int64_t product() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= v[i];
    return n;
  }
};
inline Extents shape_of(const View& v) { return Extents(v.shape, v.rank); }
inline Extents valid_of(const View& v) { return Extents(v.valid, v.rank); }
/// `e` with leading `fill` entries up to `rank`.
Extents expand_front(const Extents& e, int rank, int64_t fill);
/// "[16, 64]".
std::string list_text(std::span<const int64_t> list);

/// Sub-byte elements packed two per byte: such views live in memory that the host or other tasks see.
inline bool nibble_packed(const View& v) {
  return dtype_bits(v.dtype) == 4 && v.buffer && v.buffer->kind != BufferKind::kOnChip;
}

/// The rectangle of `v` at `offset` with the given extents, fully valid; both lists have v's rank. No checks,
/// except that packed sub-byte views need an even position (02 O-804).
View window_of(const View& v, const Extents& offset, const Extents& extent);
/// `v` restricted to its valid region.
View valid_region(const View& v);
/// `v` with every physical cell valid, or restricted to the valid region where the physical window reaches
/// past its storage (a clamped window, 02 O-211).
View readable_region(const View& v);
/// First and past-the-end byte, relative to the buffer, of the cells of `v`.
void byte_range(const View& v, int64_t* begin, int64_t* end);

/// dst[i] = src[i] over src's shape, converting between dtypes as 02 O-304 and O-703 say. Shapes are equal
/// but for unit axes in front. Source and destination may overlap.
void copy_cells(const View& dst, const View& src);
/// dst[i] += src[i]; dtypes equal; 16-bit floats round once per cell (02 O-704).
void add_cells(const View& dst, const View& src);
/// Fills the cells outside the valid region with the value of `v.pad` (01 L-156).
void fill_outside(const View& v);

/// Allocates a result and says that all of it is written; `zero` when the caller leaves cells outside the
/// valid region.
View alloc_result(OpCall& call, DType dtype, const Extents& shape, const Extents& valid);
/// A fresh packed copy of the physical shape with the same valid extents and pad mode, as elements of
/// `dtype`.
View packed_copy(OpCall& call, const View& v, DType dtype);
/// `v` itself when it is packed with that dtype, else a copy.
View as_packed(OpCall& call, const View& v, DType dtype);

/// Whether no cell of the buffer was ever written (02 O-209).
inline bool never_written(const View& v) {
  const WrittenMap& w = v.buffer->written;
  return !w.all && w.map == nullptr && w.rows == 0;
}
/// Records that the valid region of `v` was written.
void mark_written(const View& v);
/// Hands on to the cells of `dst` which cells of `src` are unspecified; shapes as in copy_cells. `added`: a
/// cell of `dst` that is unspecified stays so.
void carry_marks(const View& dst, const View& src, bool added = false);

/// OpCall::access for memory that others can see.
inline void touch(OpCall& call, const View& v, AccessKind kind) {
  if (v.buffer && v.buffer->kind != BufferKind::kOnChip) call.access(v, kind);
}
/// Reads the valid region of an operand: declares the access and returns the operand.
const View& read_operand(OpCall& call, int param);

/// A compile-time parameter: the attribute of its name, or a scalar operand, or `fallback`.
int64_t param_int(const OpCall& call, int param, ir::AttrKey key, int64_t fallback);
/// A list parameter: integer-list attribute or operand; empty when absent.
Extents param_list(const OpCall& call, int param, ir::AttrKey key);
bool param_list_given(const OpCall& call, int param, ir::AttrKey key);

/// "store: 'out'": operation and operand as the user wrote it.
std::string subject(const OpCall& call, int param);
/// Fault of a program found while running.
[[noreturn]] void fault(const OpCall& call, int param, const std::string& what, const std::string& hint = {});
/// Throws kOutOfBoundsError naming operand, dimension, offset, extent and shape (02 O-404, 01 L-155).
[[noreturn]] void fail_window(const OpCall& call, int param, const View& v, int axis, int64_t offset,
                              int64_t extent, const std::string& hint = {});
[[noreturn]] void fail_index(const OpCall& call, int param, const View& v, int axis, int64_t index);
/// Whether [offset, offset + extent) lies in [0, limit), for any numbers a program may compute.
inline bool lies_inside(int64_t offset, int64_t extent, int64_t limit) {
  return offset >= 0 && extent <= limit && offset <= limit - extent;
}
/// Checks a window of extents `extent` at `offset` against v's shape; a window without cells is always
/// inside.
void check_window(const OpCall& call, int param, const View& v, const Extents& offset, const Extents& extent,
                  const std::string& hint = {});
/// Checks requested valid extents against a window.
void check_valid(const OpCall& call, int param, const Extents& valid, const Extents& window);

/// Valid extents of `target` after a write of `source_valid` at `offset` (02 O-212); throws when they are no
/// rectangle.
Extents written_valid(const OpCall& call, int param, const View& target, const Extents& offset,
                      const Extents& source_valid);

}  // namespace pypto::vm
