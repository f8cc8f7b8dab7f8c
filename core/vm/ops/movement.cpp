// SPDX-License-Identifier: Apache-2.0
// load, store, move, assemble, extract, concat and the internal copies (02 section 7).
#include "core/vm/ops/movement.h"

#include <algorithm>

#include "core/ir/enums.h"
#include "core/vm/ops/region.h"
#include "core/vm/ops/register.h"
#include "core/vm/ops/written.h"

namespace pypto::vm {
namespace {

using ir::AttrKey;
using ir::OpId;

constexpr const char* kClampHint =
    "Pass clamp=True to cut the window at the edge, or a valid_shape that fits";

/// Copies a window of an MX scale tensor in its GM byte order to a logical tile (02 O-702). `columns`: the
/// layout of a right operand, [G, N].
void copy_mx(const View& dst, const View& src, const Extents& offset, const Extents& extent, bool columns) {
  const int64_t groups = columns ? src.shape[0] : src.shape[1];
  for (int64_t i = 0; i < extent[0]; ++i) {
    for (int64_t j = 0; j < extent[1]; ++j) {
      const int64_t row = offset[0] + i, col = offset[1] + j;
      const int64_t line = columns ? col : row, group = columns ? row : col;
      const int64_t at = ((line / 16) * (groups / 2) + group / 2) * 32 + (line % 16) * 2 + group % 2;
      dst.data()[i * dst.stride[0] + j * dst.stride[1]] = src.data()[at];
    }
  }
}

/// The window that a load reads, and the tile it becomes.
struct LoadWindow {
  Extents offset, read;   ///< in axes of the source
  Extents shapes, valid;  ///< of the tile
};

LoadWindow window_of_load(OpCall& call) {
  const View& source = call.view(0);
  LoadWindow w;
  w.shapes = Extents(call.list(2));
  const int rank = source.rank;
  const int lead = rank - w.shapes.rank;
  PYPTO_CHECK(lead >= 0, "load window has more axes than its source");
  w.offset = expand_front(Extents(call.list(1)), rank, 0);
  const Extents wanted = call.has(3) ? Extents(call.list(3)) : w.shapes;
  check_valid(call, 0, wanted, w.shapes);
  const Extents extent = expand_front(wanted, rank, 1);
  for (int i = 0; i < rank; ++i) {
    if (w.offset[i] < 0) fail_window(call, 0, source, i, w.offset[i], extent[i]);
  }
  if (param_int(call, 5, AttrKey::k_clamp, 0) == 0)
    check_window(call, 0, source, w.offset, extent, kClampHint);
  w.read = extent;
  for (int i = 0; i < rank; ++i) {
    const int64_t available = std::max<int64_t>(source.valid[i] - w.offset[i], 0);
    w.read[i] = std::min(extent[i], available);
    if (i >= lead) w.valid.push(w.read[i]);
  }
  for (int i = 0; i < lead; ++i) {
    if (w.read[i] == 0) w.valid[0] = w.read[lead] = 0;
  }
  return w;
}

ExecStatus exec_load(OpCall& call) {
  const View& source = call.view(0);
  const auto [offset, read, shapes, valid] = window_of_load(call);
  View out = alloc_result(call, call.result_dtype(), shapes, valid);
  out.pad = source.pad;
  if (valid.product() > 0) {
    const View window = window_of(source, offset, read);
    touch(call, window, AccessKind::kRead);
    const auto layout = static_cast<ir::TensorLayout>(call.attr_int(AttrKey::k_layout, 0));
    const bool mx_rows = layout == ir::TensorLayout::kMxAZZ, mx_columns = layout == ir::TensorLayout::kMxBNN;
    if (mx_rows || mx_columns) {
      copy_mx(out, source, offset, read, mx_columns);
    } else {
      copy_cells(out, window);
    }
  }
  fill_outside(out);
  call.set_result(std::move(out));
  return ExecStatus::kDone;
}

/// The valid region of a source as the rectangle that lands in a target of `rank` axes: trailing axes match,
/// surplus leading axes (all of extent 1) are dropped.
Extents landing_extents(const OpCall& call, int param, const View& source, int rank) {
  Extents out;
  for (int i = 0; i < source.rank - rank; ++i) {
    if (source.shape[i] != 1) {
      fault(call, param,
            "of shape " + list_text(shape_of(source).span()) + " has more axes than its target of rank " +
                std::to_string(rank) + ", and leading axis " + std::to_string(i) + " is not 1");
    }
  }
  for (int i = std::max(0, source.rank - rank); i < source.rank; ++i) out.push(source.valid[i]);
  for (int i = 0; i < source.rank - rank; ++i) {
    if (source.valid[i] == 0 && out.rank > 0) out[0] = 0;
  }
  return expand_front(out, rank, 1);
}

/// Writes (or adds) the valid region of `source` into `target` at `offset`; returns the target with its new
/// valid extents.
View write_window(OpCall& call, int target_param, int source_param, const View& target, const View& source,
                  const Extents& offset_list, bool atomic) {
  const int rank = target.rank;
  const Extents offset = expand_front(offset_list, rank, 0);
  const Extents extent = landing_extents(call, source_param, source, rank);
  View result = target;
  if (source.rank >= rank && offset_list.rank == rank) {
    const Extents valid = written_valid(call, target_param, target, offset, extent);
    for (int i = 0; i < rank; ++i) result.valid[i] = valid[i];
    result.refresh_fully_valid();
  }
  if (extent.product() == 0) return result;
  check_window(call, target_param, target, offset, extent);
  const View window = window_of(target, offset, extent);
  int64_t begin = 0, end = 0;
  byte_range(window, &begin, &end);
  if (begin < 0 || end > target.buffer->bytes) {
    // The target is itself a window that reaches past its base.
    for (int i = 0; i < rank; ++i) {
      if (!lies_inside(offset[i], extent[i], target.valid[i]))
        fail_window(call, target_param, valid_region(target), i, offset[i], extent[i]);
    }
  }
  touch(call, source, AccessKind::kRead);
  touch(call, window, atomic ? AccessKind::kAtomic : AccessKind::kWrite);
  const View cells = valid_region(source);
  if (!atomic) {
    copy_cells(window, cells);
  } else if (cells.dtype == window.dtype) {
    add_cells(window, cells);
  } else {
    const View narrowed = packed_copy(call, cells, window.dtype);
    add_cells(window, narrowed);
  }
  return result;
}

/// A partly valid tile under another shape: every run of valid cells goes where its row-major positions are.
View store_runs(OpCall& call, const View& tile, const View& target, const Extents& offset_list,
                const Extents& shapes, bool atomic) {
  const View packed = as_packed(call, tile, tile.dtype);
  const Extents offset = expand_front(offset_list, target.rank, 0);
  const Extents window = expand_front(shapes, target.rank, 1);
  const int last = tile.rank - 1, target_last = target.rank - 1;
  const int64_t width = tile.shape[last], rows = width > 0 ? tile.elements() / width : 0;
  for (int64_t row = 0; row < rows; ++row) {
    bool valid_row = true;
    int64_t rest = row;
    for (int i = last - 1; i >= 0; --i) {
      valid_row = valid_row && rest % tile.shape[i] < tile.valid[i];
      rest /= tile.shape[i];
    }
    if (!valid_row) continue;
    for (int64_t j = 0; j < tile.valid[last];) {
      Extents at = offset;
      int64_t position = row * width + j;
      const int64_t n = std::min(tile.valid[last] - j, window[target_last] - position % window[target_last]);
      for (int i = target_last; i >= 0; --i) {
        at[i] += position % window[i];
        position /= window[i];
      }
      View run = packed;
      run.offset += (row * width + j) * dtype_bytes(packed.dtype);
      run.set_packed(1, &n);
      write_window(call, 2, 0, target, run, at, atomic);
      j += n;
    }
  }
  return target;
}

/// `store` with an explicit window: the tile's cells fill it in row-major order (02 O-703).
View store_reshaped(OpCall& call, const View& tile, const View& target, const Extents& offset_list,
                    const Extents& shapes, bool atomic) {
  const int64_t count = shapes.product();
  View cells;
  if (count == tile.elements() && tile.fully_valid) {
    cells = as_packed(call, tile, tile.dtype);
  } else if (count == tile.elements()) {
    return store_runs(call, tile, target, offset_list, shapes, atomic);
  } else if (count == tile.valid_elements()) {
    cells = packed_copy(call, valid_region(tile), tile.dtype);
  } else {
    fault(call, 0,
          "with " + std::to_string(tile.valid_elements()) + " valid cells does not fill the window " +
              list_text(shapes.span()) + " of " + std::to_string(count) + " cells");
  }
  cells.set_packed(shapes.rank, shapes.v);
  return write_window(call, 2, 0, target, cells, offset_list, atomic);
}

ExecStatus exec_store(OpCall& call) {
  const View& tile = call.view(0);
  const View& target = call.view(2);
  const Extents offset(call.list(1));
  const bool atomic = call.attr_int(AttrKey::k_atomic, 0) != 0;
  const Extents shapes = param_list(call, 3, AttrKey::k_shape);
  View result;
  if (shapes.rank > 0 && !std::ranges::equal(shapes.span(), shape_of(tile).span())) {
    result = store_reshaped(call, tile, target, offset, shapes, atomic);
  } else {
    result = write_window(call, 2, 0, target, tile, offset, atomic);
  }
  call.set_result(std::move(result));
  return ExecStatus::kDone;
}

ExecStatus exec_move(OpCall& call) {
  const View& tile = call.view(0);
  // Scale bytes change their name, not their bits (02 O-705); an accumulator stays what it is (02 O-1802).
  const bool scale = call.result_dtype() == DType::kFp8E8M0;
  call.set_result(packed_copy(call, tile, scale ? DType::kFp8E8M0 : tile.dtype));
  return ExecStatus::kDone;
}

/// Tile form: a new tile equal to the target with the source's whole physical block at `offset` (02 O-707).
ExecStatus assemble_tile(OpCall& call) {
  const View& target = call.view(0);
  const View& source = call.view(1);
  const Extents offset = expand_front(Extents(call.list(2)), target.rank, 0);
  View out = packed_copy(call, target, call.result_dtype());
  View block = source;
  for (int i = 0; i < block.rank; ++i) block.valid[i] = block.shape[i];
  block.fully_valid = true;
  const Extents extent = landing_extents(call, 1, block, target.rank);
  check_window(call, 0, target, offset, extent, "the whole source tile must fit in the target");
  const Extents valid = written_valid(call, 0, target, offset, extent);
  copy_cells(window_of(out, offset, extent), block);
  for (int i = 0; i < out.rank; ++i) out.valid[i] = valid[i];
  out.refresh_fully_valid();
  call.set_result(std::move(out));
  return ExecStatus::kDone;
}

ExecStatus exec_assemble(OpCall& call) {
  if (call.result_is_tile()) return assemble_tile(call);
  const bool atomic = call.attr_int(AttrKey::k_atomic, 0) != 0;
  call.set_result(write_window(call, 0, 1, call.view(0), call.view(1), Extents(call.list(2)), atomic));
  return ExecStatus::kDone;
}

ExecStatus exec_extract(OpCall& call) {
  const View& source = call.view(0);
  const Extents shape = param_list(call, 3, AttrKey::k_shape);
  const Extents offset = expand_front({call.integer(1), call.integer(2)}, source.rank, 0);
  const Extents extent = expand_front(shape, source.rank, 1);
  check_window(call, 0, source, offset, extent, "the whole window of extract must lie inside its source");
  Extents valid;
  for (int i = source.rank - shape.rank; i < source.rank; ++i) {
    valid.push(std::clamp<int64_t>(source.valid[i] - offset[i], 0, extent[i]));
  }
  View out = call.alloc(call.result_dtype(), shape.span(), false);
  copy_cells(out, window_of(source, offset, extent));
  for (int i = 0; i < out.rank; ++i) out.valid[i] = valid[i];
  out.refresh_fully_valid();
  out.pad = source.pad;
  call.set_result(std::move(out));
  return ExecStatus::kDone;
}

ExecStatus exec_concat(OpCall& call) {
  const View& left = read_operand(call, 0);
  const View& right = read_operand(call, 1);
  const int row = left.rank - 2, col = left.rank - 1;
  if (left.valid[col] != left.shape[col]) {
    fault(call, 0,
          "must be valid in all its " + std::to_string(left.shape[col]) + " columns, valid are " +
              std::to_string(left.valid[col]),
          "narrow it first with slice, or fill it with pl.fillpad");
  }
  if (left.valid[row] != right.valid[row] || left.shape[row] != right.shape[row]) {
    fault(call, 1,
          "has " + std::to_string(right.valid[row]) + " valid rows of " + std::to_string(right.shape[row]) +
              ", the first operand has " + std::to_string(left.valid[row]) + " of " +
              std::to_string(left.shape[row]),
          "both operands of concat need equal physical and valid rows");
  }
  Extents shape = shape_of(left), valid = valid_of(left);
  shape[col] = left.shape[col] + right.shape[col];
  valid[col] = left.valid[col] + right.valid[col];
  View out = alloc_result(call, call.result_dtype(), shape, valid);
  Extents origin = expand_front({}, out.rank, 0);
  copy_cells(window_of(out, origin, valid_of(left)), valid_region(left));
  origin[col] = left.shape[col];
  copy_cells(window_of(out, origin, valid_of(right)), valid_region(right));
  call.set_result(std::move(out));
  return ExecStatus::kDone;
}

ExecStatus exec_copy(OpCall& call) {
  const View& v = read_operand(call, 0);
  call.set_result(packed_copy(call, v, v.dtype));
  return ExecStatus::kDone;
}

/// Parameters of a store or assemble.
struct StoreParams {
  int source = 0, offset = 1, target = 2;
};
StoreParams store_params(const OpCall& call) {
  return call.op == OpId::k_assemble ? StoreParams{1, 2, 0} : StoreParams{0, 1, 2};
}

}  // namespace

bool load_window(OpCall& call, View* window) {
  const View& source = call.view(0);
  if (!source.buffer || nibble_packed(source) || source.dtype != call.result_dtype() ||
      call.attr_int(AttrKey::k_layout, 0) > 1) {
    return false;
  }
  const auto [offset, read, shapes, valid] = window_of_load(call);
  const int lead = source.rank - shapes.rank;
  if (source.pad != PadMode::kNull || shapes.rank == 0 || valid.product() == 0 ||
      !std::ranges::equal(valid.span(), shapes.span())) {
    return false;
  }
  View w = window_of(source, offset, read);
  int64_t begin = 0, end = 0;
  byte_range(w, &begin, &end);
  if (begin < 0 || end > source.buffer->bytes) return false;
  for (int i = 0; i < shapes.rank; ++i) {
    w.shape[i] = w.valid[i] = shapes[i];
    w.stride[i] = w.stride[lead + i];
  }
  w.rank = static_cast<int8_t>(shapes.rank);
  w.snapshot = BufferRef();
  // Rows of other windows would be gathered by every reader.
  const int last = w.rank - 1;
  bool rows = w.shape[last] == 1 || w.stride[last] == 1;
  for (int i = 0; i + 1 < last; ++i)
    rows = rows && (w.shape[i] == 1 || w.stride[i] == w.stride[i + 1] * w.shape[i + 1]);
  if (!rows || !specified(w)) return false;
  touch(call, w, AccessKind::kRead);
  *window = std::move(w);
  return true;
}

bool store_window(const OpCall& call, const View& value, View* window) {
  const StoreParams p = store_params(call);
  const View& target = call.view(p.target);
  if (!target.buffer || !target.fully_valid || nibble_packed(target) || target.dtype != value.dtype ||
      value.rank == 0 || value.rank > target.rank) {
    return false;
  }
  const Extents offset = expand_front(Extents(call.list(p.offset)), target.rank, 0);
  const Extents extent = landing_extents(call, p.source, value, target.rank);
  if (extent.product() == 0) return false;
  check_window(call, p.target, target, offset, extent);
  View w = window_of(target, offset, extent);
  int64_t begin = 0, end = 0;
  byte_range(w, &begin, &end);
  if (begin < 0 || end > target.buffer->bytes) return false;
  const int lead = target.rank - value.rank;
  for (int i = 0; i < value.rank; ++i) {
    w.shape[i] = value.shape[i];
    w.valid[i] = value.valid[i];
    w.stride[i] = w.stride[lead + i];
  }
  w.rank = value.rank;
  w.fully_valid = value.fully_valid;
  w.snapshot = BufferRef();
  *window = std::move(w);
  return true;
}

void finish_store(OpCall& call, const View& window) {
  const View cells = valid_region(window);
  touch(call, cells, AccessKind::kWrite);
  if (cells.buffer->kind == BufferKind::kOnChip) mark_written(cells);  // else recorded with the access
  call.set_result(View(call.view(store_params(call).target)));
}

void register_movement(ExecTable& table) {
  table.set(OpId::k_load, exec_load);
  table.set(OpId::k_store, exec_store);
  table.set(OpId::k_move, exec_move);
  table.set(OpId::k_assemble, exec_assemble);
  table.set(OpId::k_extract, exec_extract);
  table.set(OpId::k_concat, exec_concat);
  table.set(OpId::k_copy_tile, exec_copy);
  table.set(OpId::k_snapshot, exec_copy);
}

}  // namespace pypto::vm
