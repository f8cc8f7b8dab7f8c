// SPDX-License-Identifier: Apache-2.0
#include "core/vm/ops/written.h"

#include <algorithm>
#include <vector>

namespace pypto::vm {
namespace {

/// f(coordinates) for every cell of a box.
template <class F>
void for_cells(const int64_t* extents, int rank, F f) {
  int64_t at[kMaxRank] = {};
  for (int a = 0; a < rank; ++a) {
    if (extents[a] == 0) return;
  }
  for (;;) {
    f(at);
    int a = rank - 1;
    for (; a >= 0; --a) {
      if (++at[a] < extents[a]) break;
      at[a] = 0;
    }
    if (a < 0) return;
  }
}

/// Elements from the start of `v` to a cell.
int64_t element_at(const View& v, const int64_t* at) {
  int64_t element = 0;
  for (int a = 0; a < v.rank; ++a) element += at[a] * v.stride[a];
  return element;
}

/// The cells of `v` that the trailing axes of `region` read, repeated axes once.
View cells_read(const View& v, const Extents& region) {
  View cells = v;
  const int lead = region.rank - v.rank;
  for (int a = 0; a < v.rank; ++a) {
    const int64_t needed = lead + a < 0 ? 1 : region[lead + a];
    cells.shape[a] = cells.valid[a] = v.shape[a] == 1 ? std::min<int64_t>(needed, 1) : needed;
  }
  cells.fully_valid = true;
  return cells;
}

/// The mark of the cell of `v` that result cell `at` (of rank `rank`) reads.
Mark mark_read(const View& v, const int64_t* at, int rank) {
  int64_t element = 0;
  bool outside = false;
  const int lead = rank - v.rank;
  for (int a = 0; a < v.rank; ++a) {
    const int64_t i = lead + a < 0 || v.shape[a] == 1 ? 0 : at[lead + a];
    outside = outside || i >= v.valid[a];
    element += i * v.stride[a];
  }
  const Mark m = cell_mark(v, element);
  return m == 0 && outside && v.pad == PadMode::kNull ? marks().origin(Origin::Kind::kPadding) : m;
}

}  // namespace

bool valid_throughout(const View& v, const Extents& region) {
  if (v.fully_valid) return true;
  const int lead = region.rank - v.rank;
  for (int a = 0; a < v.rank; ++a) {
    const int64_t needed = lead + a < 0 ? 1 : region[lead + a];
    if (v.valid[a] < (v.shape[a] == 1 ? std::min<int64_t>(needed, 1) : needed)) return false;
  }
  return true;
}

void inherit_unwritten(const View& out, std::initializer_list<const Input*> inputs) {
  const View* partial[4];
  int count = 0;
  const Extents region = valid_of(out);
  for (const Input* in : inputs) {
    if (in->is_scalar()) continue;
    const View& v = in->source();
    const WrittenMap& written = v.buffer->written;
    if (written.all && v.fully_valid) continue;
    if (dtype_bits(v.dtype) < 8 && nibble_packed(v)) continue;
    if (v.rank == out.rank && std::equal(v.valid, v.valid + v.rank, out.valid)) {
      if (specified(v)) continue;
    } else if (valid_throughout(v, region) && specified(cells_read(v, region))) {
      continue;
    }
    partial[count++] = &v;
  }
  if (!out.buffer->written.all) mark_written(out);
  if (count == 0 || !marks().on) return;
  for (int i = 0; i < count; ++i) {
    if (!never_written(*partial[i])) continue;
    mark_unspecified(out, mark_of_unwritten(*partial[i]->buffer));
    return;
  }
  for_cells(out.valid, out.rank, [&](const int64_t* at) {
    Mark m = 0;
    for (int i = 0; i < count && m == 0; ++i) m = mark_read(*partial[i], at, out.rank);
    if (m != 0) set_cell_mark(out, element_at(out, at), m);
  });
}

// ------------------------------------------------------------------ reductions

namespace {

const char* neutral(ir::OpId op) {
  switch (op) {
    case ir::OpId::k_row_max:
    case ir::OpId::k_col_max:
    case ir::OpId::k_row_argmax:
    case ir::OpId::k_col_argmax:
      return "pl.PadValue.min";
    case ir::OpId::k_row_min:
    case ir::OpId::k_col_min:
    case ir::OpId::k_row_argmin:
    case ir::OpId::k_col_argmin:
      return "pl.PadValue.max";
    case ir::OpId::k_row_prod:
    case ir::OpId::k_col_prod:
      return "";
    default:
      return "pl.PadValue.zero";
  }
}

void warn_mixed(OpCall& call, int param, const View& v, const Extents& at, Mark mark, const char* what) {
  Diagnostic d = unspecified_report("unspecified values take part",
                                    subject(call, param) + " of shape " + list_text(shape_of(v).span()) +
                                        ", valid " + list_text(valid_of(v).span()) + ": " + what +
                                        " mixes specified values with unspecified ones, cell " +
                                        list_text(at.span()) + " " + marks().why(mark));
  marks().explain(mark, d);
  const std::string fill = neutral(call.op);
  if (call.attrs == nullptr || fill.empty()) {
    d.hint = "write it first, or narrow the valid shape to what was written";
  } else {
    d.hint = "fill it first (pl.fillpad with " + fill +
             ", pl.full), or narrow the valid shape to what was written";
  }
  call.report(std::move(d));
}

}  // namespace

void inherit_reduced(OpCall& call, int axis_from_end, const View& out) {
  const View v = call.view(0);
  if (v.buffer->written.all || !marks().on || specified(v)) return;
  if (never_written(v)) {
    mark_unspecified(out, mark_of_unwritten(*v.buffer));
    return;
  }
  const int axis = v.rank - axis_from_end;
  struct Slice {
    Mark mark = 0;
    bool some = false;
  };
  Extents kept = valid_of(v);
  if (axis >= 0) kept[axis] = 1;
  std::vector<Slice> slices(static_cast<size_t>(kept.product()));
  const auto slice_of = [&](const int64_t* at) {
    int64_t k = 0;
    for (int a = 0; a < v.rank; ++a) k = k * kept[a] + (a == axis ? 0 : at[a]);
    return static_cast<size_t>(k);
  };
  Extents first;
  Mark found = 0;
  for (const bool report : {false, true}) {
    for_cells(v.valid, v.rank, [&](const int64_t* at) {
      const Mark m = cell_mark(v, element_at(v, at));
      Slice& s = slices[slice_of(at)];
      if (!report) {
        s.some = s.some || m == 0;
        if (m != 0 && s.mark == 0) s.mark = m;
      } else if (m != 0 && s.some && found == 0) {
        first = Extents(at, v.rank);
        found = m;
      }
    });
  }
  if (found != 0) warn_mixed(call, 0, v, first, found, "the reduction");
  const int lead = out.rank - v.rank;
  for_cells(kept.v, v.rank, [&](const int64_t* at) {
    const Mark m = slices[slice_of(at)].mark;
    if (m == 0) return;
    int64_t element = 0;
    for (int a = 0; a < v.rank; ++a) element += at[a] * out.stride[lead + a];
    set_cell_mark(out, element, m);
  });
}

void inherit_rows(const View& out, std::initializer_list<const View*> sources) {
  for (const View* v : sources) {
    if (v->buffer->written.all || !marks().on) continue;
    const View cells = readable_region(*v);
    if (specified(cells) || v->rank != out.rank) continue;
    // Every row that rests on an unspecified cell, as a whole.
    View row = cells, to = out;
    const int last = out.rank - 1;
    Extents rows = shape_of(cells);
    rows[last] = 1;
    for (int a = 0; a < last; ++a) row.shape[a] = row.valid[a] = to.shape[a] = to.valid[a] = 1;
    to.valid[last] = to.shape[last];
    row.fully_valid = to.fully_valid = true;
    for_cells(rows.v, rows.rank, [&](const int64_t* at) {
      row.offset = cells.offset + element_at(cells, at) * dtype_bytes(cells.dtype);
      to.offset = out.offset + element_at(out, at) * dtype_bytes(out.dtype);
      Extents first;
      if (const Mark m = first_unspecified(row, &first)) mark_unspecified(to, m);
    });
  }
}

// ------------------------------------------------------------------ products

void inherit_product(OpCall& call, int a_param, const View& a, int b_param, const View& b, const View& out) {
  if ((a.buffer->written.all && b.buffer->written.all) || !marks().on) return;
  const auto used = [](const View& v) {
    View cells = valid_region(v);
    return cells;
  };
  const View left = used(a), right = used(b);
  Extents at;
  const Mark in_a = first_unspecified(left, &at);
  Extents at_b;
  const Mark in_b = first_unspecified(right, &at_b);
  if (in_a == 0 && in_b == 0) return;
  if (never_written(a) && never_written(b)) {  // no specified data at all
    mark_unspecified(out, in_a);
    return;
  }
  if (in_a != 0) warn_mixed(call, a_param, call.view(a_param), at, in_a, "the product");
  if (in_b != 0) warn_mixed(call, b_param, call.view(b_param), at_b, in_b, "the product");
  if (a.rank != 2 || b.rank != 2 || out.rank != 2) {
    mark_unspecified(out, in_a != 0 ? in_a : in_b);
    return;
  }
  const auto mark_lines = [&](const View& factor, int axis) {
    View line = factor, cells = out;
    line.shape[axis] = line.valid[axis] = cells.shape[axis] = cells.valid[axis] = 1;
    cells.shape[1 - axis] = out.valid[1 - axis];
    const int64_t step = factor.stride[axis] * dtype_bytes(factor.dtype);
    const int64_t out_step = out.stride[axis] * dtype_bytes(out.dtype);
    for (int64_t i = 0; i < std::min(factor.shape[axis], out.valid[axis]); ++i) {
      Extents first;
      if (const Mark m = first_unspecified(line, &first)) mark_unspecified(cells, m);
      line.offset += step;
      cells.offset += out_step;
    }
  };
  if (in_a != 0) mark_lines(left, 0);
  if (in_b != 0) mark_lines(right, 1);
}

void require_specified_index(OpCall& call, int param) {
  const View& v = call.view(param);
  if (v.buffer->written.all) return;
  Extents at;
  const Mark m = first_unspecified(v, &at);
  if (m == 0) return;
  Diagnostic d = unspecified_report("an unspecified value decides what the program does",
                                    subject(call, param) + " of shape " + list_text(shape_of(v).span()) +
                                        ", valid " + list_text(valid_of(v).span()) +
                                        ": an unspecified value decides an index, cell " +
                                        list_text(at.span()) + " " + marks().why(m));
  marks().explain(m, d);
  throw Failure(std::move(d));
}

}  // namespace pypto::vm
