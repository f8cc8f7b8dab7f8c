// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>

#include "core/vm/marks.h"
#include "core/vm/ops/elementwise.h"

/// Unspecified values on their way through operations (01 L-154, 02 O-209): storage that nothing wrote, and
/// padding that an operation reads. Values never depend on any of this.
namespace pypto::vm {

// ---- records of a buffer

/// Nothing of the buffer is specified, from here on.
void mark_unwritten(Buffer& buffer, Mark mark);
/// Everything is.
void specify_all(Buffer& buffer);
/// Replaces marks by "unknown": their origins end with the run.
void forget_origins(Buffer& buffer);
/// Mark of the byte at `at`.
Mark mark_at(const Buffer& buffer, int64_t at);
/// The mark of storage that nothing wrote.
inline Mark mark_of_unwritten(const Buffer& buffer) {
  return buffer.written.origin != 0 ? buffer.written.origin : kUnknownMark;
}

// ---- records of a region, which is the valid region of a view

/// Whether every cell is specified.
bool specified(const View& v);
/// No cell is, from here on.
void mark_unspecified(const View& v, Mark mark);
/// The padding of a fresh result is unspecified; `like`: whose padding it continues.
void leave_padding(const View& out, const View* like = nullptr);
/// The cells of `v` outside its valid region are specified now; the others are as they were.
void mark_filled(const View& v);
/// Coordinates of the first unspecified cell in row-major order, and its mark; 0: there is none.
Mark first_unspecified(const View& v, Extents* at);
/// A cell of `v` by its distance from the start in elements.
void set_cell_mark(const View& v, int64_t element, Mark mark);
inline Mark cell_mark(const View& v, int64_t element) {
  return mark_at(*v.buffer, v.offset + element * dtype_bytes(v.dtype));
}

// ---- operations

/// Records which cells of `out`, the element-wise result of `inputs`, rest on unspecified cells. Nothing is
/// recorded in the usual case, which costs two tests per operand.
void inherit_unwritten(const View& out, std::initializer_list<const Input*> inputs);

/// The same for the reduction of operand 0 over `axis`; warns where specified and unspecified cells meet
/// (03 M-37). `out` has the operand's axes, or more unit axes in front.
void inherit_reduced(OpCall& call, int axis_from_end, const View& out);

/// The same for rows that an operation permutes or merges as a whole.
void inherit_rows(const View& out, std::initializer_list<const View*> sources);

/// The same for a product of `a` and `b`, whose last two axes are matrices, into a result or accumulator.
void inherit_product(OpCall& call, int a_param, const View& a, int b_param, const View& b, const View& out);

/// Faults when an index that the operation uses is unspecified (03 M-37).
void require_specified_index(OpCall& call, int param);

/// Whether operand `v`, broadcast to the trailing axes of `region`, is valid in all of it.
bool valid_throughout(const View& v, const Extents& region);

}  // namespace pypto::vm
