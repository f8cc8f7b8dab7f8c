// SPDX-License-Identifier: Apache-2.0
// Gathers and scatters on chip and by tensor (02 sections 19.1 and 19.3).
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/numeric.h"
#include "core/vm/ops/region.h"
#include "core/vm/ops/register.h"
#include "core/vm/ops/written.h"

namespace pypto::vm {

void register_memory_gather(ExecTable& table);  // gather_memory.cpp

namespace {

using ir::AttrKey;
using ir::OpId;

void copy_element(uint8_t* dst, const uint8_t* src, int64_t size) {
  switch (size) {
    case 1:
      *dst = *src;
      break;
    case 2:
      std::memcpy(dst, src, 2);
      break;
    case 4:
      std::memcpy(dst, src, 4);
      break;
    default:
      std::memcpy(dst, src, static_cast<size_t>(size));
      break;
  }
}

/// Calls body(coordinates, offset in elements) for every cell of an odometer over `extent`.
template <class Body>
void for_cells(const Extents& extent, const int64_t* stride, Body&& body) {
  if (extent.product() == 0) return;
  Extents at = expand_front({}, extent.rank, 0);
  int64_t position = 0;
  while (true) {
    body(at, position);
    int axis = extent.rank - 1;
    while (axis >= 0) {
      position += stride[axis];
      if (++at[axis] < extent[axis]) break;
      position -= stride[axis] * extent[axis];
      at[axis--] = 0;
    }
    if (axis < 0) return;
  }
}

bool inside(const Extents& at, const View& v) {
  for (int i = 0; i < v.rank; ++i) {
    if (at[i] >= v.valid[i]) return false;
  }
  return true;
}

int64_t index_at(const View& index, int64_t position) {
  return read_integer(index.dtype, index.data() + position * dtype_bytes(index.dtype));
}

void warn_index(OpCall& call, int param, const Extents& at, int64_t index, int64_t bound) {
  call.warn("W-GATHER-INDEX", subject(call, param) + " holds index " + std::to_string(index) + " at cell " +
                                  list_text(at.span()) + ", outside [0, " + std::to_string(bound) +
                                  "); the gathered cell is 0");
}

[[noreturn]] void fail_scatter(const OpCall& call, int param, const Extents& at, int64_t index, int64_t bound,
                               const char* what) {
  fail(ErrorClass::kOutOfBoundsError, subject(call, param) + ": destination index " + std::to_string(index) +
                                          " at cell " + list_text(at.span()) + " is out of range, the " +
                                          what + " has " + std::to_string(bound));
}

/// Extents that only the run knows and that do not fit each other (constant ones: the typer).
[[noreturn]] void misfit(const OpCall& call, int param, const View& v, int other, const View& beside,
                         const std::string& hint) {
  fault(call, param,
        "of shape " + list_text(shape_of(v).span()) + " does not fit '" + call.operand_name(other) +
            "' of shape " + list_text(shape_of(beside).span()),
        hint);
}

// ------------------------------------------------------------------ index forms

/// out[p] = input[p with coordinate `dim` replaced by index[p]] (02 O-1902).
ExecStatus gather_index(OpCall& call) {
  const View& input = read_operand(call, 0);
  const View& index = read_operand(call, 2);
  int64_t dim = param_int(call, 1, AttrKey::k_dim, -1);
  if (dim < 0) dim += input.rank;
  for (int a = 0; a < index.rank; ++a) {
    if (a != dim && index.shape[a] > input.shape[a])
      misfit(call, 2, index, 0, input, "it may not be longer than the input on the other axes");
  }
  const View cells = readable_region(index);
  const View source = readable_region(input);
  const Extents shape = shape_of(index);
  const bool narrowed = cells.elements() != index.elements();
  View out = call.alloc(call.result_dtype(), shape.span(), true);
  require_specified_index(call, 2);
  const View data = source.dtype == out.dtype ? source : packed_copy(call, source, out.dtype);
  const int64_t size = dtype_bytes(out.dtype), bound = input.shape[dim];
  uint8_t* to = out.data();
  int64_t packed = 0;
  Extents loop = shape_of(cells);
  if (narrowed) loop = valid_of(index);
  bool warned = false;
  for_cells(loop, cells.stride, [&](const Extents& at, int64_t position) {
    const int64_t i = index_at(cells, position);
    int64_t target = packed++;
    if (narrowed) {
      target = 0;
      for (int a = 0; a < out.rank; ++a) target += at[a] * out.stride[a];
    }
    if (i < 0 || i >= bound) {
      if (!warned && inside(at, index)) warn_index(call, 2, at, i, bound);
      warned = warned || inside(at, index);
      return;
    }
    int64_t from = 0;
    for (int a = 0; a < data.rank; ++a) {
      const int64_t coordinate = a == dim ? i : at[a];
      if (coordinate >= data.shape[a]) return;  // a clamped window: no such cell
      from += coordinate * data.stride[a];
    }
    copy_element(to + target * size, data.data() + from * size, size);
    if (!data.buffer->written.all) set_cell_mark(out, target, cell_mark(data, from));
  });
  call.set_result(std::move(out));
  return ExecStatus::kDone;
}

/// out[i, j] = src.flat[indices[i, j]] over the physical shape (02 O-1903).
ExecStatus exec_tile_gather(OpCall& call) {
  const DType dtype = call.result_dtype();
  const View source = as_packed(call, call.view(0), dtype);
  const View& index = call.view(1);
  View out = call.alloc(dtype, shape_of(index).span(), true);
  require_specified_index(call, 1);
  const int64_t size = dtype_bytes(dtype), bound = source.elements();
  int64_t target = 0;
  bool warned = false;
  for_cells(shape_of(index), index.stride, [&](const Extents& at, int64_t position) {
    const int64_t i = index_at(index, position);
    const int64_t cell = target++;
    uint8_t* to = out.data() + cell * size;
    if (i < 0 || i >= bound) {
      if (!warned && inside(at, index)) warn_index(call, 1, at, i, bound);
      warned = warned || inside(at, index);
      return;
    }
    copy_element(to, source.data() + i * size, size);
    if (!source.buffer->written.all) set_cell_mark(out, cell, cell_mark(source, i));
  });
  call.set_result(std::move(out));
  return ExecStatus::kDone;
}

// ------------------------------------------------------------------ masks

struct Mask {
  int64_t first = 0;
  int64_t step = 1;
};

Mask mask_of(const OpCall& call, int param) {
  switch (param_int(call, param, AttrKey::k_mask_pattern, 7)) {
    case 1:
      return {0, 2};
    case 2:
      return {1, 2};
    case 3:
      return {0, 4};
    case 4:
      return {1, 4};
    case 5:
      return {2, 4};
    case 6:
      return {3, 4};
    default:
      return {0, 1};
  }
}

/// The selected columns of the last axis (02 O-1904).
ExecStatus gather_mask(OpCall& call, int mask_param) {
  const View& source = read_operand(call, 0);
  const Mask mask = mask_of(call, mask_param);
  const DType dtype = call.result_dtype();
  if (source.shape[source.rank - 1] % mask.step != 0) {
    fault(call, 0,
          "has " + std::to_string(source.shape[source.rank - 1]) + " columns, the mask needs a multiple of " +
              std::to_string(mask.step));
  }
  View selected = readable_region(source);
  const bool narrowed = selected.elements() != source.elements();
  if (narrowed) {
    selected = packed_copy(call, source, source.dtype);
    for (int i = 0; i < selected.rank; ++i) selected.valid[i] = selected.shape[i];
    selected.fully_valid = true;
  }
  if (dtype_bytes(dtype) != dtype_bytes(selected.dtype)) {
    // A product still in its accumulator: round to the declared dtype first.
    selected = packed_copy(call, selected, dtype);
  }
  const int last = selected.rank - 1;
  selected.offset += mask.first * selected.stride[last] * dtype_bytes(selected.dtype);
  selected.stride[last] *= mask.step;
  selected.shape[last] = selected.valid[last] = source.shape[last] / mask.step;
  selected.dtype = dtype;
  View out = call.alloc(dtype, shape_of(selected).span(), false);
  copy_cells(out, selected);
  call.set_result(std::move(out));
  return ExecStatus::kDone;
}

/// Column k of `source` goes to the k-th selected column of `target`.
void scatter_columns(const View& target, const View& source, const Mask& mask) {
  View selected = target;
  const int last = selected.rank - 1;
  selected.offset += mask.first * selected.stride[last] * dtype_bytes(selected.dtype);
  selected.stride[last] *= mask.step;
  for (int i = 0; i < selected.rank; ++i) selected.shape[i] = selected.valid[i] = source.valid[i];
  copy_cells(selected, valid_region(source));
}

ExecStatus tensor_scatter_mask(OpCall& call, int source_param, int target_param, int mask_param) {
  const View& source = read_operand(call, source_param);
  const View& target = read_operand(call, target_param);
  const Mask mask = mask_of(call, mask_param);
  for (int a = 0; a < source.rank; ++a) {
    if (target.shape[a] != source.shape[a] * (a + 1 == source.rank ? mask.step : 1)) {
      misfit(call, target_param, target, source_param, source,
             "it needs the same rows and " + std::to_string(mask.step) + " times the columns");
    }
  }
  View out = packed_copy(call, target, call.result_dtype());
  scatter_columns(out, source, mask);
  call.set_result(std::move(out));
  return ExecStatus::kDone;
}

ExecStatus exec_scatter_mask(OpCall& call) {
  const View& target = call.view(0);
  scatter_columns(target, call.view(1), mask_of(call, 2));
  call.set_result(target);
  return ExecStatus::kDone;
}

// ------------------------------------------------------------------ compare form

int compare_code(const OpCall& call) {
  const auto* value = call.attrs->find(AttrKey::k_cmp_mode);
  if (const auto* text = value ? std::get_if<std::string>(value) : nullptr) {
    static constexpr const char* kNames[] = {"eq", "ne", "lt", "le", "gt", "ge"};
    for (int i = 0; i < 6; ++i) {
      if (*text == kNames[i]) return i;
    }
  }
  return static_cast<int>(call.attr_int(AttrKey::k_cmp_mode, 0));
}

template <class T>
bool compare(int code, T a, T b) {
  switch (code) {
    case 0:
      return a == b;
    case 1:
      return a != b;
    case 2:
      return a < b;
    case 3:
      return a <= b;
    case 4:
      return a > b;
    default:
      return a >= b;
  }
}

/// Positions of the matches of each row, and their counts (02 O-1906).
ExecStatus gather_compare(OpCall& call, int value_param, int offset_param) {
  const View& source = read_operand(call, 0);
  const int code = compare_code(call);
  const auto& params = ir::op_params(ir::op_row(call.op), ir::kFormFlat);
  int out_cols_param = 0;
  for (size_t i = 0; i < params.size(); ++i) {
    if (params[i].name == "out_cols") out_cols_param = static_cast<int>(i);
  }
  const int64_t out_cols = param_int(call, out_cols_param, AttrKey::k_out_cols, source.shape[1]);
  const int64_t offset = param_int(call, offset_param, AttrKey::k_offset, 0);
  const bool floats = is_float(source.dtype);
  const Scalar given = call.scalar(value_param);
  const bool float_value = is_float(call.scalar_dtype(value_param));
  // The value in the source's dtype, as the comparison sees it.
  uint8_t element[8] = {};
  if (floats) {
    write_float(source.dtype, element, float_value ? given.f : static_cast<double>(given.i));
  } else {
    write_integer(source.dtype, element, float_value ? static_cast<int64_t>(given.f) : given.i);
  }
  const double float_key = floats ? read_float(source.dtype, element) : 0;
  const int64_t int_key = floats ? 0 : read_integer(source.dtype, element);

  const int64_t rows = source.shape[0], size = dtype_bytes(source.dtype);
  const DType count_dtype = call.result_dtype(1) == DType::kNone ? DType::kInt32 : call.result_dtype(1);
  View positions = call.alloc(DType::kInt32, Extents{rows, out_cols}.span(), true);
  View counts = call.alloc(count_dtype, Extents{1, rows}.span(), true);
  for (int64_t i = 0; i < source.valid[0]; ++i) {
    int64_t count = 0;
    for (int64_t j = 0; j < source.valid[1]; ++j) {
      const uint8_t* at = source.data() + (i * source.stride[0] + j * source.stride[1]) * size;
      const bool hit = floats ? compare(code, read_float(source.dtype, at), float_key)
                              : compare(code, read_integer(source.dtype, at), int_key);
      if (!hit) continue;
      if (count < out_cols) positions.as<int32_t>()[i * out_cols + count] = static_cast<int32_t>(j + offset);
      ++count;
    }
    write_integer(count_dtype, counts.data() + i * dtype_bytes(count_dtype), count);
  }
  call.set_result(std::move(positions), 0);
  call.set_result(std::move(counts), 1);
  return ExecStatus::kDone;
}

ExecStatus exec_gather(OpCall& call) {
  if (call.has_attr(AttrKey::k_mask_pattern) || call.has(3)) return gather_mask(call, 3);
  if (call.has(5)) return gather_compare(call, 5, 8);
  return gather_index(call);
}
ExecStatus exec_gather_mask(OpCall& call) { return gather_mask(call, 1); }
ExecStatus exec_gather_compare(OpCall& call) { return gather_compare(call, 1, 4); }
ExecStatus exec_tensor_gather_compare(OpCall& call) { return gather_compare(call, 1, 3); }

// ------------------------------------------------------------------ scatter

/// out[b, index[b, k]] = src[b, k] for k ascending (02 O-1920).
void scatter_rows(OpCall& call, const View& out, const View& index, const View& source, int index_param) {
  require_specified_index(call, index_param);
  const int64_t size = dtype_bytes(out.dtype), bound = out.shape[1];
  for_cells(valid_of(index), index.stride, [&](const Extents& at, int64_t position) {
    const int64_t i = index_at(index, position);
    if (i < 0 || i >= bound) fail_scatter(call, index_param, at, i, bound, "row");
    const int64_t to = at[0] * out.stride[0] + i * out.stride[1];
    const int64_t from = at[0] * source.stride[0] + at[1] * source.stride[1];
    copy_element(out.data() + to * size, source.data() + from * size, size);
    set_cell_mark(out, to, cell_mark(source, from));
  });
}

ExecStatus exec_scatter(OpCall& call) {
  if (call.has_attr(AttrKey::k_mask_pattern) || call.has(4)) return tensor_scatter_mask(call, 0, 5, 4);
  const View& input = read_operand(call, 0);
  const View& index = read_operand(call, 2);
  const View& values = read_operand(call, 3);
  for (int a = 0; a < index.rank; ++a) {
    if (values.shape[a] != index.shape[a])
      misfit(call, 3, values, 2, index, "index and source need one shape");
    if (index.shape[a] > input.shape[a])
      misfit(call, 2, index, 0, input, "it may not be larger than the input");
  }
  View out = packed_copy(call, input, call.result_dtype());
  const View source = as_packed(call, values, out.dtype);
  scatter_rows(call, out, index, source, 2);
  call.set_result(std::move(out));
  return ExecStatus::kDone;
}

ExecStatus exec_tensor_scatter_mask(OpCall& call) { return tensor_scatter_mask(call, 0, 1, 2); }

/// Cell number `flat` of a view in row-major order of its physical shape, in elements from its start.
int64_t flat_position(const View& v, int64_t flat) {
  int64_t position = 0;
  for (int i = v.rank - 1; i >= 0; --i) {
    position += flat % v.shape[i] * v.stride[i];
    flat /= v.shape[i];
  }
  return position;
}

/// dst.flat[indexes[i, j]] = src[i, j] in place (02 O-1922).
ExecStatus exec_tile_scatter(OpCall& call) {
  const View& target = call.view(0);
  const View source =
      call.view(1).dtype == target.dtype ? call.view(1) : packed_copy(call, call.view(1), target.dtype);
  const View& index = call.view(2);
  require_specified_index(call, 2);
  const int64_t size = dtype_bytes(target.dtype), bound = target.elements();
  for_cells(valid_of(index), index.stride, [&](const Extents& at, int64_t position) {
    const int64_t i = index_at(index, position);
    if (i < 0 || i >= bound) fail_scatter(call, 2, at, i, bound, "tile");
    int64_t from = 0;
    for (int a = 0; a < source.rank; ++a) from += at[a] * source.stride[a];
    copy_element(target.data() + flat_position(target, i) * size, source.data() + from * size, size);
    set_cell_mark(target, flat_position(target, i), cell_mark(source, from));
  });
  call.set_result(target);
  return ExecStatus::kDone;
}

/// Rows replaced by index (02 O-1923). 4-D values count rows over their first two axes.
ExecStatus exec_scatter_update(OpCall& call) {
  const View& input = read_operand(call, 0);
  const View& index = read_operand(call, 2);
  const View& source = read_operand(call, 3);
  const bool in_place = call.result_is_tile();
  if (source.elements() != index.elements() * source.shape[source.rank - 1]) {
    misfit(call, 3, source, 2, index, "it needs one row for every index");
  }
  if (source.shape[source.rank - 1] != input.shape[input.rank - 1]) {
    misfit(call, 3, source, 0, input, "both need the same columns");
  }
  require_specified_index(call, 2);
  View out = in_place ? input : packed_copy(call, input, call.result_dtype());
  const View data = source.dtype == out.dtype ? source : packed_copy(call, source, out.dtype);
  const int row_axes = out.rank == 4 ? 2 : out.rank - 1;
  int64_t rows = 1, width = 1;
  for (int i = 0; i < out.rank; ++i) (i < row_axes ? rows : width) *= out.shape[i];
  const auto row_of = [&](const View& v, int axes, int64_t row) {
    View r = v;
    int64_t position = 0;
    for (int i = axes - 1; i >= 0; --i) {
      position += row % v.shape[i] * v.stride[i];
      row /= v.shape[i];
    }
    r.offset += position * dtype_bytes(v.dtype);
    for (int i = 0; i < axes; ++i) r.shape[i] = r.valid[i] = 1;
    for (int i = axes; i < v.rank; ++i) r.shape[i] = v.valid[i];
    return r;
  };
  const int source_axes = data.rank == 4 ? 2 : data.rank - 1;
  for_cells(shape_of(index), index.stride, [&](const Extents& at, int64_t position) {
    if (!inside(at, index)) return;
    int64_t k = 0;
    for (int i = 0; i < index.rank; ++i) k = k * index.shape[i] + at[i];
    const int64_t row = index_at(index, position);
    if (row < 0 || row >= rows) fail_scatter(call, 2, at, row, rows, "target in rows");
    copy_cells(row_of(out, row_axes, row), row_of(data, source_axes, k));
  });
  call.set_result(std::move(out));
  return ExecStatus::kDone;
}

// ------------------------------------------------------------------ gatherb

/// Blocks of 32 bytes at byte offsets (02 O-1907).
ExecStatus exec_gatherb(OpCall& call) {
  const View& source = call.view(0);
  const View& offset = call.view(1);
  constexpr int64_t kBlock = 32;
  const DType dtype = call.result_dtype();
  const int64_t per_block = kBlock / dtype_bytes(dtype);
  View out = alloc_result(call, dtype, {offset.shape[0], offset.shape[1] * per_block},
                          {offset.valid[0], offset.valid[1] * per_block});
  int64_t begin = 0, end = 0;
  byte_range(source, &begin, &end);
  require_specified_index(call, 1);
  for_cells(valid_of(offset), offset.stride, [&](const Extents& at, int64_t position) {
    const int64_t from = index_at(offset, position);
    if (from % kBlock != 0 || from < 0 || from + kBlock > end - begin) {
      fail(ErrorClass::kOutOfBoundsError,
           subject(call, 1) + ": byte offset " + std::to_string(from) + " at cell " + list_text(at.span()) +
               (from % kBlock != 0 ? " is not a multiple of 32" : " reaches outside the source of ") +
               (from % kBlock != 0 ? "" : std::to_string(end - begin) + " bytes"));
    }
    std::memcpy(out.data() + (at[0] * out.stride[0] + at[1] * per_block) * dtype_bytes(dtype),
                source.data() + from, kBlock);
    if (source.buffer->written.all) return;
    for (int64_t k = 0; k < per_block; ++k)
      set_cell_mark(out, at[0] * out.stride[0] + at[1] * per_block + k,
                    mark_at(*source.buffer, source.offset + from + k * dtype_bytes(dtype)));
  });
  call.set_result(std::move(out));
  return ExecStatus::kDone;
}

}  // namespace

void register_gather(ExecTable& table) {
  table.set(OpId::k_gather, exec_gather);
  table.set(OpId::k_tile_gather, exec_tile_gather);
  table.set(OpId::k_gather_mask, exec_gather_mask);
  table.set(OpId::k_gather_compare, exec_gather_compare);
  table.set(OpId::k_tensor_gather_compare, exec_tensor_gather_compare);
  table.set(OpId::k_gatherb, exec_gatherb);
  table.set(OpId::k_scatter, exec_scatter);
  table.set(OpId::k_tile_scatter, exec_tile_scatter);
  table.set(OpId::k_scatter_mask, exec_scatter_mask);
  table.set(OpId::k_tensor_scatter_mask, exec_tensor_scatter_mask);
  table.set(OpId::k_scatter_update, exec_scatter_update);
  register_memory_gather(table);
}

}  // namespace pypto::vm
