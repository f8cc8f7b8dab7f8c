// SPDX-License-Identifier: Apache-2.0
#include "core/vm/ops/region.h"

#include <algorithm>
#include <limits>

#include "core/vm/ops/written.h"

namespace pypto::vm {

void Extents::push(int64_t e) {
  PYPTO_CHECK(rank < kMaxRank, "more than " + std::to_string(kMaxRank) + " dimensions");
  v[rank++] = e;
}

Extents expand_front(const Extents& e, int rank, int64_t fill) {
  Extents out;
  for (int i = e.rank; i < rank; ++i) out.push(fill);
  for (int i = 0; i < e.rank; ++i) out.push(e[i]);
  return out;
}

std::string list_text(std::span<const int64_t> list) {
  std::string out = "[";
  for (size_t i = 0; i < list.size(); ++i) out += (i ? ", " : "") + std::to_string(list[i]);
  return out + "]";
}

// ------------------------------------------------------------------ rectangles

View window_of(const View& v, const Extents& offset, const Extents& extent) {
  View w = v;
  int64_t at = 0;
  for (int i = 0; i < v.rank; ++i) {
    at += offset[i] * v.stride[i];
    w.shape[i] = w.valid[i] = extent[i];
  }
  w.fully_valid = true;
  if (nibble_packed(v)) {
    if (at % 2 != 0) {
      fail(ErrorClass::kProgramFault,
           "the last-axis offset of a packed " + std::string(dtype_text(v.dtype)) +
               " tensor must be even, got offsets " + list_text(offset.span()),
           {}, "start windows of 4-bit tensors at an even element");
    }
    w.offset += at / 2;
  } else {
    w.offset += at * dtype_bytes(v.dtype);
  }
  return w;
}

View valid_region(const View& v) {
  View w = v;
  for (int i = 0; i < v.rank; ++i) w.shape[i] = v.valid[i];
  w.fully_valid = true;
  return w;
}

void byte_range(const View& v, int64_t* begin, int64_t* end) {
  int64_t low = 0, high = 0;
  for (int i = 0; i < v.rank; ++i) {
    if (v.shape[i] == 0) {
      *begin = *end = v.offset;
      return;
    }
    (v.stride[i] < 0 ? low : high) += (v.shape[i] - 1) * v.stride[i];
  }
  if (nibble_packed(v)) {
    *begin = v.offset + low / 2;
    *end = v.offset + high / 2 + 1;
  } else {
    *begin = v.offset + low * dtype_bytes(v.dtype);
    *end = v.offset + (high + 1) * dtype_bytes(v.dtype);
  }
}

View readable_region(const View& v) {
  View w = v;
  for (int i = 0; i < v.rank; ++i) w.valid[i] = v.shape[i];
  w.fully_valid = true;
  if (v.fully_valid) return w;
  int64_t begin = 0, end = 0;
  byte_range(v, &begin, &end);
  if (begin < 0 || end > v.buffer->bytes || v.buffer->kind != BufferKind::kOnChip) return valid_region(v);
  return w;
}

// ------------------------------------------------------------------ results

View alloc_result(OpCall& call, DType dtype, const Extents& shape, const Extents& valid) {
  bool full = true;
  for (int i = 0; i < shape.rank; ++i) full = full && shape[i] == valid[i];
  View out = call.alloc(dtype, shape.span(), !full);
  for (int i = 0; i < shape.rank; ++i) out.valid[i] = valid[i];
  out.fully_valid = full;
  if (!full) leave_padding(out);
  return out;
}

View packed_copy(OpCall& call, const View& v, DType dtype) {
  const View source = readable_region(v);
  const Extents shape = shape_of(v);
  View out = call.alloc(dtype, shape.span(), source.elements() != v.elements());
  copy_cells(out, source);
  for (int i = 0; i < v.rank; ++i) out.valid[i] = v.valid[i];
  out.fully_valid = v.fully_valid;
  out.pad = v.pad;
  return out;
}

View as_packed(OpCall& call, const View& v, DType dtype) {
  if (v.dtype == dtype && v.packed() && !nibble_packed(v)) return v;
  return packed_copy(call, v, dtype);
}

const View& read_operand(OpCall& call, int param) {
  const View& v = call.view(param);
  touch(call, v, AccessKind::kRead);
  return v;
}

// ------------------------------------------------------------------ parameters

int64_t param_int(const OpCall& call, int param, ir::AttrKey key, int64_t fallback) {
  if (call.has_attr(key)) return call.attr_int(key, fallback);
  if (call.has(param) && call.is_scalar(param)) return call.integer(param);
  return fallback;
}

Extents param_list(const OpCall& call, int param, ir::AttrKey key) {
  if (const auto* value = call.attrs->find(key)) {
    if (const auto* list = std::get_if<std::vector<int64_t>>(value)) return Extents(std::span(*list));
  }
  if (call.has(param)) return Extents(call.list(param));
  return {};
}

bool param_list_given(const OpCall& call, int param, ir::AttrKey key) {
  const auto* value = call.attrs->find(key);
  return (value && std::holds_alternative<std::vector<int64_t>>(*value)) || call.has(param);
}

// ------------------------------------------------------------------ faults

std::string subject(const OpCall& call, int param) {
  std::string name = call.operand_name(param);
  const auto& params = ir::op_params(ir::op_row(call.op), ir::kFormFlat);
  if (name.empty() && param < static_cast<int>(params.size())) name = params[static_cast<size_t>(param)].name;
  return std::string(ir::op_row(call.op).name) + ": '" + name + "'";
}

void fault(const OpCall& call, int param, const std::string& what, const std::string& hint) {
  fail(ErrorClass::kProgramFault, subject(call, param) + " " + what, {}, hint);
}

void fail_window(const OpCall& call, int param, const View& v, int axis, int64_t offset, int64_t extent,
                 const std::string& hint) {
  fail(ErrorClass::kOutOfBoundsError,
       subject(call, param) + " of shape " + list_text(shape_of(v).span()) +
           " is accessed out of bounds in dimension " + std::to_string(axis) + ": offset " +
           std::to_string(offset) + " with size " + std::to_string(extent) + " gives the range [" +
           std::to_string(offset) + ", " +
           (offset < 0 ? std::to_string(offset + extent)
                       : std::to_string(static_cast<uint64_t>(offset) + static_cast<uint64_t>(extent))) +
           "), the extent is " + std::to_string(v.shape[axis]),
       {}, hint.empty() ? "keep offset and size inside the extent" : hint);
}

void fail_index(const OpCall& call, int param, const View& v, int axis, int64_t index) {
  fail(ErrorClass::kOutOfBoundsError,
       subject(call, param) + " of shape " + list_text(shape_of(v).span()) + ": index " +
           std::to_string(index) + " is out of range for dimension " + std::to_string(axis) + " of extent " +
           std::to_string(v.shape[axis]),
       {}, "indices run from 0 to " + std::to_string(v.shape[axis] - 1));
}

void check_window(const OpCall& call, int param, const View& v, const Extents& offset, const Extents& extent,
                  const std::string& hint) {
  for (int i = 0; i < v.rank; ++i) {
    if (extent[i] == 0) return;
  }
  for (int i = 0; i < v.rank; ++i) {
    if (!lies_inside(offset[i], extent[i], v.shape[i])) {
      fail_window(call, param, v, i, offset[i], extent[i], hint);
    }
  }
}

void check_valid(const OpCall& call, int param, const Extents& valid, const Extents& window) {
  for (int i = 0; i < window.rank; ++i) {
    if (valid[i] >= 0 && valid[i] <= window[i]) continue;
    fail(ErrorClass::kOutOfBoundsError,
         subject(call, param) + ": valid extent " + std::to_string(valid[i]) + " of dimension " +
             std::to_string(i) + " is outside 0 to " + std::to_string(window[i]) + " (window " +
             list_text(window.span()) + ", valid_shape " + list_text(valid.span()) + ")",
         {}, "limit it with pl.min(n, " + std::to_string(window[i]) + ")");
  }
}

Extents written_valid(const OpCall& call, int param, const View& target, const Extents& offset,
                      const Extents& source_valid) {
  const Extents old = valid_of(target);
  if (target.fully_valid) return old;
  const int rank = target.rank;
  if (offset.rank != rank || source_valid.rank != rank) return old;
  bool written_empty = false, target_empty = false, at_origin = true, inside = true, covers = true;
  int grown = 0, grown_axis = -1;
  Extents candidate;
  for (int i = 0; i < rank; ++i) {
    // An end past every number is past the target as well: check_window reports it.
    const int64_t end = offset[i] > std::numeric_limits<int64_t>::max() - source_valid[i]
                            ? std::numeric_limits<int64_t>::max()
                            : offset[i] + source_valid[i];
    written_empty = written_empty || source_valid[i] == 0;
    target_empty = target_empty || old[i] == 0;
    at_origin = at_origin && offset[i] == 0;
    inside = inside && end <= old[i];
    covers = covers && source_valid[i] >= old[i];
    if (end > old[i]) {
      ++grown;
      grown_axis = i;
    }
    candidate.push(std::min(target.shape[i], std::max(old[i], end)));
  }
  if (written_empty || (inside && !target_empty)) return old;
  if (at_origin && (target_empty || covers)) return source_valid;
  bool abuts = !target_empty && grown == 1 && offset[grown_axis] <= old[grown_axis];
  for (int i = 0; i < rank && abuts; ++i) {
    if (i != grown_axis) abuts = offset[i] == 0 && source_valid[i] == old[i];
  }
  if (abuts) return candidate;
  const bool gap =
      target_empty || grown != 1 ? target_empty || !at_origin : offset[grown_axis] > old[grown_axis];
  const int axis = std::max(grown_axis, 0);
  fault(call, param,
        "has valid extents " + list_text(old.span()) + " of shape " + list_text(shape_of(target).span()) +
            "; writing " + list_text(source_valid.span()) + " cells at offsets " + list_text(offset.span()) +
            " leaves no rectangle (" + (gap ? "gap" : "L-shape") + " on axis " + std::to_string(axis) +
            ": the written range ends at " + std::to_string(offset[axis] + source_valid[axis]) +
            ", the valid extent is " + std::to_string(old[axis]) + ")",
        "write the pieces so that each extends the valid region along one axis, or use a fully valid target");
}

}  // namespace pypto::vm
