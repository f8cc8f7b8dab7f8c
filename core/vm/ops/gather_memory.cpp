// SPDX-License-Identifier: Apache-2.0
// Gathers from and scatters to global memory by row or element (02 sections 19.2, 19.3). Only the cells that
// an index names are declared as accessed.
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/base/numeric.h"
#include "core/vm/ops/region.h"
#include "core/vm/ops/register.h"
#include "core/vm/ops/views.h"
#include "core/vm/ops/written.h"

namespace pypto::vm {

void register_memory_gather(ExecTable& table);

namespace {

using ir::AttrKey;
using ir::OpId;

/// The valid cells of an index operand in row-major order.
std::vector<int64_t> index_list(OpCall& call, int param) {
  const View& v = read_operand(call, param);
  require_specified_index(call, param);
  std::vector<int64_t> out;
  const Extents extent = valid_of(v);
  const int64_t count = extent.product();
  out.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, position = 0;
    for (int axis = v.rank - 1; axis >= 0; --axis) {
      position += rest % extent[axis] * v.stride[axis];
      rest /= extent[axis];
    }
    out.push_back(read_integer(v.dtype, v.data() + position * dtype_bytes(v.dtype)));
  }
  return out;
}

/// Row `row` of a rank-2 view, columns [first, first + count).
View row_window(const View& v, int64_t row, int64_t first, int64_t count) {
  return window_of(v, {row, first}, {1, count});
}

// ------------------------------------------------------------------ gather_row

ExecStatus exec_gather_row(OpCall& call) {
  const View& target = call.view(0);
  const View& source = call.view(1);
  const int rank_d = target.rank, rank_s = source.rank;
  const Extents target_offset = expand_front(Extents(call.list(2)), rank_d, 0);
  const Extents source_offset = expand_front(Extents(call.list(3)), rank_s, 0);
  const Extents shapes = param_list(call, 4, AttrKey::k_shape);
  const Extents window = call.has(6) ? Extents(call.list(6)) : shapes;
  const bool transposed = param_int(call, 5, AttrKey::k_transpose, 0) != 0;
  check_valid(call, 0, window, shapes);
  const Extents source_extent = expand_front(window, rank_s, 1);
  Extents landing = window;
  if (transposed && landing.rank >= 2) std::swap(landing[landing.rank - 1], landing[landing.rank - 2]);
  const Extents target_extent = expand_front(landing, rank_d, 1);
  if (window.product() > 0) {
    check_window(call, 1, source, source_offset, source_extent);
    check_window(call, 0, target, target_offset, target_extent);
    View from = window_of(source, source_offset, source_extent);
    touch(call, from, AccessKind::kRead);
    if (transposed) from = transpose_strides(from, -2, -1);
    const View to = window_of(target, target_offset, target_extent);
    touch(call, to, AccessKind::kWrite);
    copy_cells(to, from);
  }
  call.set_result(target);
  return ExecStatus::kDone;
}

// ------------------------------------------------------------------ paged_gather

ExecStatus exec_paged_gather(OpCall& call) {
  const View& source = call.view(0);
  const int64_t block_size = param_int(call, 3, AttrKey::k_block_size, 1);
  const int64_t size = param_int(call, 4, AttrKey::k_size, source.shape[1]);
  const int64_t max_indices = param_int(call, 5, AttrKey::k_max_indices, 0);
  const int64_t col_off = param_int(call, 7, AttrKey::k_col_off, 0);
  const bool transposed = param_int(call, 8, AttrKey::k_is_trans, 0) != 0;
  const std::vector<int64_t> indices = index_list(call, 1);
  const std::vector<int64_t> table = index_list(call, 2);
  const auto count = static_cast<int64_t>(indices.size());
  if (count > max_indices) {
    fail(ErrorClass::kOutOfBoundsError,
         subject(call, 1) + " has " + std::to_string(count) +
             " indices, more than max_indices = " + std::to_string(max_indices));
  }
  if (!lies_inside(col_off, size, source.shape[1])) fail_window(call, 0, source, 1, col_off, size);
  View out = call.alloc(call.result_dtype(), Extents{max_indices, size}.span(), count < max_indices);
  const auto run = static_cast<size_t>(size * dtype_bytes(source.dtype));
  const bool plain = source.stride[1] == 1 && source.dtype == out.dtype;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t r = indices[static_cast<size_t>(i)];
    const int64_t page = r / block_size;
    if (r < 0 || page >= static_cast<int64_t>(table.size())) {
      fail(ErrorClass::kOutOfBoundsError,
           subject(call, 1) + ": index " + std::to_string(r) + " at position " + std::to_string(i) +
               " addresses page " + std::to_string(r < 0 ? -1 : page) + ", the block table has " +
               std::to_string(table.size()) + " pages of " + std::to_string(block_size) + " rows");
    }
    const int64_t row = table[static_cast<size_t>(page)] * block_size + r % block_size;
    if (row < 0 || row >= source.shape[0]) fail_index(call, 0, source, 0, row);
    const View from = row_window(source, row, col_off, size);
    touch(call, from, AccessKind::kRead);
    if (plain) {
      std::memcpy(out.data() + i * static_cast<int64_t>(run), from.data(), run);
      if (!from.buffer->written.all) carry_marks(row_window(out, i, 0, size), from);
    } else {
      copy_cells(row_window(out, i, 0, size), from);
    }
  }
  if (transposed) out = packed_copy(call, transpose_strides(out, 0, 1), out.dtype);
  call.set_result(std::move(out));
  return ExecStatus::kDone;
}

// ------------------------------------------------------------------ mgather, mscatter

enum class OutOfRange : uint8_t { kUndefined, kClamp, kWrap, kZero };

/// A string or integer parameter as the number of one of `names`.
int mode_of(const OpCall& call, AttrKey key, std::initializer_list<const char*> names) {
  const auto* value = call.attrs->find(key);
  const auto* text = value ? std::get_if<std::string>(value) : nullptr;
  if (!text) return static_cast<int>(call.attr_int(key, 0));
  int i = 0;
  for (const char* name : names) {
    if (*text == name) return i;
    ++i;
  }
  return 0;
}

/// The index after the out-of-range rule (02 O-1914); -1: the cell is zero.
int64_t resolve(const OpCall& call, int64_t raw, int64_t bound, OutOfRange mode, int64_t position,
                const char* unit) {
  const auto index = static_cast<int64_t>(static_cast<uint32_t>(raw));
  if (index < bound) return index;
  switch (mode) {
    case OutOfRange::kClamp:
      return bound - 1;
    case OutOfRange::kWrap:
      return bound > 0 ? index % bound : -1;
    case OutOfRange::kZero:
      return -1;
    default:
      break;
  }
  fail(ErrorClass::kOutOfBoundsError,
       subject(call, 0) + ": index " + std::to_string(index) + " at position " + std::to_string(position) +
           " of the index operand is out of range, the memory has " + std::to_string(bound) + " " + unit,
       {}, "pass gather_oob=\"clamp\", \"wrap\" or \"zero\" if such indices are meant");
}

/// Cell number `flat` of a view (row-major over its shape), as a one-cell view.
View cell_view(const View& v, int64_t flat) {
  View cell = v;
  int64_t position = 0;
  for (int i = v.rank - 1; i >= 0; --i) {
    position += flat % v.shape[i] * v.stride[i];
    flat /= v.shape[i];
    cell.shape[i] = cell.valid[i] = 1;
  }
  cell.offset += position * dtype_bytes(v.dtype);
  cell.fully_valid = true;
  return cell;
}

ExecStatus exec_mgather(OpCall& call) {
  const View& memory = call.view(0);
  const View& index = call.view(1);
  const bool rows = mode_of(call, AttrKey::k_coalesce, {"row", "elem"}) == 0;
  const auto oob =
      static_cast<OutOfRange>(mode_of(call, AttrKey::k_gather_oob, {"undefined", "clamp", "wrap", "zero"}));
  const DType dtype = call.result_dtype();
  const std::vector<int64_t> indices = index_list(call, 1);
  Extents shape, valid;
  if (rows) {
    shape = {index.elements(), memory.shape[memory.rank - 1]};
    valid = {index.valid_elements(), memory.shape[memory.rank - 1]};
  } else {
    shape = shape_of(index);
    valid = valid_of(index);
  }
  if (call.has(6)) {
    const Extents wanted(call.list(6));
    check_valid(call, 1, wanted, shape);
    for (int i = 0; i < valid.rank && i < wanted.rank; ++i) valid[i] = std::min(valid[i], wanted[i]);
  }
  View out = call.alloc(dtype, shape.span(), true);
  const int64_t size = dtype_bytes(dtype);
  if (rows) {
    const int64_t bound = memory.shape[memory.rank - 2];
    View table = memory;
    if (memory.rank > 2) {  // unit axes in front
      for (int i = 0; i < 2; ++i) {
        table.shape[i] = memory.shape[memory.rank - 2 + i];
        table.valid[i] = memory.valid[memory.rank - 2 + i];
        table.stride[i] = memory.stride[memory.rank - 2 + i];
      }
      table.rank = 2;
    }
    for (int64_t i = 0; i < valid[0] && i < static_cast<int64_t>(indices.size()); ++i) {
      const int64_t row = resolve(call, indices[static_cast<size_t>(i)], bound, oob, i, "rows");
      if (row < 0) continue;
      const View from = row_window(table, row, 0, valid[1]);
      touch(call, from, AccessKind::kRead);
      copy_cells(row_window(out, i, 0, valid[1]), from);
    }
  } else {
    const int64_t bound = memory.elements();
    const Extents order = valid_of(index);
    for (size_t i = 0; i < indices.size(); ++i) {
      int64_t rest = static_cast<int64_t>(i), position = 0;
      bool wanted = true;
      for (int axis = index.rank - 1; axis >= 0; --axis) {
        const int64_t at = rest % order[axis];
        position += at * out.stride[axis];
        wanted = wanted && at < valid[axis];
        rest /= order[axis];
      }
      if (!wanted) continue;
      const int64_t flat = resolve(call, indices[i], bound, oob, static_cast<int64_t>(i), "elements");
      if (flat < 0) continue;
      const View cell = cell_view(memory, flat);
      touch(call, cell, AccessKind::kRead);
      std::memcpy(out.data() + position * size, cell.data(), static_cast<size_t>(size));
      if (!cell.buffer->written.all) set_cell_mark(out, position, cell_mark(cell, 0));
    }
  }
  for (int i = 0; i < out.rank; ++i) out.valid[i] = valid[i];
  out.refresh_fully_valid();
  call.set_result(std::move(out));
  return ExecStatus::kDone;
}

ExecStatus exec_mscatter(OpCall& call) {
  const View& target = call.view(2);
  const View source = as_packed(call, call.view(0), target.dtype);
  const View& index = call.view(1);
  const int64_t bound = target.elements(), size = dtype_bytes(target.dtype);
  const std::vector<int64_t> indices = index_list(call, 1);
  const Extents order = valid_of(index);
  for (size_t i = 0; i < indices.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), position = 0;
    bool valid = true;
    for (int axis = index.rank - 1; axis >= 0; --axis) {
      const int64_t at = rest % order[axis];
      position += at * source.stride[axis];
      valid = valid && at < source.valid[axis];
      rest /= order[axis];
    }
    if (!valid) continue;
    if (indices[i] < 0 || indices[i] >= bound) {
      fail(ErrorClass::kOutOfBoundsError,
           subject(call, 2) + " of shape " + list_text(shape_of(target).span()) + ": destination index " +
               std::to_string(indices[i]) + " at position " + std::to_string(i) +
               " is out of range, the tensor has " + std::to_string(bound) + " elements");
    }
    const View cell = cell_view(target, indices[i]);
    touch(call, cell, AccessKind::kWrite);
    std::memcpy(cell.data(), source.data() + position * size, static_cast<size_t>(size));
    View value = source;
    value.offset += position * size;
    value.rank = 0;
    if (!source.buffer->written.all || !target.buffer->written.all) carry_marks(cell, value);
  }
  call.set_result(target);
  return ExecStatus::kDone;
}

}  // namespace

void register_memory_gather(ExecTable& table) {
  table.set(OpId::k_gather_row, exec_gather_row);
  table.set(OpId::k_paged_gather, exec_paged_gather);
  table.set(OpId::k_mgather, exec_mgather);
  table.set(OpId::k_mscatter, exec_mscatter);
}

}  // namespace pypto::vm
