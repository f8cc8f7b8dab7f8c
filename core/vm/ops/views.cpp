// SPDX-License-Identifier: Apache-2.0
// Windows, reshapes and other views (02 section 8).
#include "core/vm/ops/views.h"

#include <algorithm>

#include "core/ir/enums.h"
#include "core/vm/ops/region.h"
#include "core/vm/ops/register.h"

namespace pypto::vm {
namespace {

using ir::AttrKey;
using ir::OpId;

// ------------------------------------------------------------------ slice

/// Removes the listed axes; a tile keeps at least two (02 O-802).
void drop_axes(View& v, const Extents& axes, bool tile) {
  bool dropped[kMaxRank] = {};
  for (int i = 0; i < axes.rank; ++i) dropped[axes[i] < 0 ? axes[i] + v.rank : axes[i]] = true;
  int kept = 0;
  for (int i = 0; i < v.rank; ++i) kept += dropped[i] ? 0 : 1;
  const int floor = tile ? std::min<int>(2, v.rank) : 0;
  const int lead = std::max(0, floor - kept);
  int64_t shape[kMaxRank], stride[kMaxRank], valid[kMaxRank];
  int n = 0;
  for (; n < lead; ++n) shape[n] = valid[n] = 1;
  for (int i = 0; i < v.rank; ++i) {
    if (dropped[i]) continue;
    shape[n] = v.shape[i];
    valid[n] = v.valid[i];
    stride[n++] = v.stride[i];
  }
  for (int i = lead - 1; i >= 0; --i) stride[i] = i + 1 < n ? stride[i + 1] * shape[i + 1] : 1;
  v.rank = static_cast<int8_t>(n);
  for (int i = 0; i < n; ++i) {
    v.shape[i] = shape[i];
    v.valid[i] = valid[i];
    v.stride[i] = stride[i];
  }
  v.refresh_fully_valid();
}

ExecStatus exec_slice(OpCall& call) {
  const View& source = call.view(0);
  const int rank = source.rank;
  const bool tile = call.result_is_tile();
  Extents shape = param_list(call, 1, AttrKey::k_shape);
  PYPTO_CHECK(shape.rank <= rank, "slice window has more axes than its source");
  Extents wanted = call.has(3) ? Extents(call.list(3)) : shape;
  check_valid(call, 0, wanted, shape);
  const int lead = rank - shape.rank;
  shape = expand_front(shape, rank, 1);
  wanted = expand_front(wanted, rank, 1);
  const Extents offset = expand_front(Extents(call.list(2)), rank, 0);
  for (int i = 0; i < rank; ++i) {
    if (offset[i] < 0) fail_window(call, 0, source, i, offset[i], shape[i]);
  }
  if (call.in_control_plane()) {
    // Cut at the parent's edge without error; what reaches past it later is reported there (02 O-211.4).
    for (int i = 0; i < rank; ++i) {
      shape[i] = std::min(shape[i], std::max<int64_t>(source.shape[i] - offset[i], 0));
      wanted[i] = std::min(wanted[i], shape[i]);
    }
  } else if (tile) {
    check_window(call, 0, source, offset, shape,
                 "the whole window of a tile slice must lie inside its source");
  } else if (param_int(call, 6, AttrKey::k_clamp, 0) == 0) {
    check_window(call, 0, source, offset, wanted,
                 "Pass clamp=True to cut the window at the edge, or a valid_shape that fits");
  }
  Extents inside = offset;  // a window without cells may lie past the end: keep its address inside
  for (int i = 0; i < rank; ++i) inside[i] = std::min(offset[i], source.shape[i]);
  View out = window_of(source, inside, shape);
  out.snapshot = BufferRef();
  for (int i = 0; i < rank; ++i) {
    out.valid[i] = std::clamp<int64_t>(source.valid[i] - offset[i], 0, wanted[i]);
  }
  out.refresh_fully_valid();
  if (const auto* pad = call.attrs->find(AttrKey::k_pad_value);
      pad && std::holds_alternative<int64_t>(*pad)) {
    out.pad = static_cast<PadMode>(std::get<int64_t>(*pad));
  }
  Extents drop;
  for (int i = 0; i < lead; ++i) drop.push(i);
  const Extents listed = param_list(call, 4, AttrKey::k_drop_dims);
  for (int i = 0; i < listed.rank; ++i) drop.push(listed[i] < 0 ? listed[i] : listed[i] + lead);
  for (const int64_t axis : drop.span()) {
    // An index is never cut at the edge: without its axis nothing later could tell (03 D-34).
    const auto i = static_cast<int>(axis);
    if (offset[i] >= source.shape[i]) fail_index(call, 0, source, i, offset[i]);
  }
  if (drop.rank > 0) drop_axes(out, drop, tile);
  call.set_result(std::move(out));
  return ExecStatus::kDone;
}

// ------------------------------------------------------------------ reshape

/// Valid extents under another shape (02 O-806); false when they are no rectangle of it.
bool reshape_valid(const View& v, const Extents& shape, Extents* valid) {
  *valid = shape;
  if (v.fully_valid) return true;
  if (v.valid_elements() == 0) {
    for (int i = 0; i < shape.rank; ++i) (*valid)[i] = 0;
    return true;
  }
  // Unit axes come and go freely.
  Extents old_shape, old_valid;
  for (int i = 0; i < v.rank; ++i) {
    if (v.shape[i] == 1) continue;
    old_shape.push(v.shape[i]);
    old_valid.push(v.valid[i]);
  }
  Extents squeezed;
  for (int i = 0; i < shape.rank; ++i) {
    if (shape[i] != 1) squeezed.push(shape[i]);
  }
  if (std::ranges::equal(squeezed.span(), old_shape.span())) {
    for (int i = 0, j = 0; i < shape.rank; ++i) {
      if (shape[i] != 1) (*valid)[i] = old_valid[j++];
    }
    return true;
  }
  // A row-major prefix: full axes behind one partial axis, extent 1 before it.
  int partial = old_shape.rank - 1;
  while (partial >= 0 && old_valid[partial] == old_shape[partial]) --partial;
  for (int i = 0; i < partial; ++i) {
    if (old_valid[i] != 1) return false;
  }
  const int64_t count = old_valid.product();
  int64_t inner = 1;
  for (int axis = shape.rank - 1; axis >= 0; --axis) {
    if (count % inner != 0) return false;
    if (count / inner <= shape[axis]) {
      (*valid)[axis] = count / inner;
      for (int i = 0; i < axis; ++i) (*valid)[i] = 1;
      return true;
    }
    inner *= shape[axis];
  }
  return false;
}

/// Strides of `shape` over the cells of `v` in row-major order; false when they cannot be expressed.
bool reshape_strides(const View& v, const Extents& shape, int64_t* stride) {
  // Groups of axes with equal products are matched; inside a group the old axes must be one run.
  int old_axis = v.rank - 1, axis = shape.rank - 1;
  while (axis >= 0 || old_axis >= 0) {
    int64_t new_product = axis >= 0 ? shape[axis] : 1;
    int64_t old_product = old_axis >= 0 ? v.shape[old_axis] : 1;
    int new_first = axis, old_first = old_axis;
    while (new_product != old_product) {
      if (new_product < old_product) {
        if (--new_first < 0) return false;
        new_product *= shape[new_first];
      } else {
        if (--old_first < 0) return false;
        old_product *= v.shape[old_first];
      }
    }
    int64_t unit = 1;
    bool known = false;
    int64_t run = 0;
    for (int i = old_axis; i >= std::max(old_first, 0); --i) {
      if (v.shape[i] == 1) continue;
      if (!known) {
        unit = v.stride[i];
        known = true;
      } else if (v.stride[i] != run) {
        return false;
      }
      run = v.stride[i] * v.shape[i];
    }
    for (int i = axis; i >= std::max(new_first, 0); --i) {
      stride[i] = unit;
      unit *= shape[i];
    }
    axis = new_first - 1;
    old_axis = old_first - 1;
  }
  return true;
}

/// The same cells in row-major order under `shape`: a view when strides can say it, else a copy.
View reshaped(OpCall& call, const View& v, const Extents& shape) {
  if (shape.product() != v.elements()) {
    fault(call, 0,
          "of shape " + list_text(shape_of(v).span()) + " has " + std::to_string(v.elements()) +
              " elements, the new shape " + list_text(shape.span()) + " has " +
              std::to_string(shape.product()),
          "both shapes of reshape need the same number of elements");
  }
  Extents valid;
  if (!reshape_valid(v, shape, &valid)) {
    fault(call, 0,
          "of shape " + list_text(shape_of(v).span()) + " with valid shape " + list_text(valid_of(v).span()) +
              " cannot be reshaped to " + list_text(shape.span()) +
              ": the valid cells are no row-major prefix that is a rectangle of the new shape",
          "fill the padding with pl.fillpad first, or reshape the whole value before narrowing it");
  }
  View out = v;
  out.snapshot = BufferRef();
  int64_t stride[kMaxRank] = {};
  if (!nibble_packed(v) && v.elements() > 0 && reshape_strides(v, shape, stride)) {
    std::copy(stride, stride + shape.rank, out.stride);
  } else if (v.packed()) {
    out.set_packed(shape.rank, shape.v);
  } else if (call.in_control_plane()) {
    fault(call, 0,
          "of shape " + list_text(shape_of(v).span()) + " and strides " +
              list_text(std::span(v.stride, static_cast<size_t>(v.rank))) + " cannot be addressed as " +
              list_text(shape.span()),
          "reshape before slicing or transposing, or do it inside a kernel");
  } else {
    touch(call, v, AccessKind::kRead);
    out = packed_copy(call, v, v.dtype);
    out.set_packed(shape.rank, shape.v);
  }
  out.rank = static_cast<int8_t>(shape.rank);
  for (int i = 0; i < shape.rank; ++i) {
    out.shape[i] = shape[i];
    out.valid[i] = valid[i];
  }
  out.refresh_fully_valid();
  return out;
}

ExecStatus exec_reshape(OpCall& call) {
  call.set_result(reshaped(call, call.view(0), param_list(call, 1, AttrKey::k_shape)));
  return ExecStatus::kDone;
}

// ------------------------------------------------------------------ transpose

ExecStatus exec_transpose(OpCall& call) {
  const View& v = call.view(0);
  const auto axis1 = static_cast<int>(param_int(call, 1, AttrKey::k_axis1, -2));
  const auto axis2 = static_cast<int>(param_int(call, 2, AttrKey::k_axis2, -1));
  const View swapped = transpose_strides(v, axis1, axis2);
  if (call.in_control_plane()) {
    call.set_result(swapped);
    return ExecStatus::kDone;
  }
  touch(call, v, AccessKind::kRead);
  call.set_result(packed_copy(call, swapped, call.result_dtype()));
  return ExecStatus::kDone;
}

ExecStatus exec_transpose_view(OpCall& call) {
  call.set_result(transpose_strides(call.view(0), -2, -1));
  return ExecStatus::kDone;
}

// ------------------------------------------------------------------ reinterpret_view, set_validshape, view

ExecStatus exec_reinterpret_view(OpCall& call) {
  const View& v = call.view(0);
  const DType dtype = call.result_dtype();
  const int64_t from = dtype_bytes(v.dtype), to = dtype_bytes(dtype);
  const int last = v.rank - 1;
  View out = v;
  // The scaled axis must be contiguous and the other strides must be whole elements of the new size.
  bool expressible = (v.shape[last] == 1 || v.stride[last] == 1) && v.offset % to == 0;
  for (int i = 0; i < last; ++i)
    expressible = expressible && (v.shape[i] == 1 || v.stride[i] * from % to == 0);
  if (!expressible) out = packed_copy(call, v, v.dtype);
  out.snapshot = BufferRef();
  const bool given = param_list_given(call, 2, AttrKey::k_shape);
  if (out.valid[last] * from % to != 0 || out.shape[last] * from % to != 0) {
    fault(call, 0,
          "of shape " + list_text(shape_of(v).span()) + " and valid shape " + list_text(valid_of(v).span()) +
              ": the last axis of " + std::string(dtype_text(v.dtype)) + " does not divide into " +
              std::string(dtype_text(dtype)) + " elements");
  }
  for (int i = 0; i < last; ++i) out.stride[i] = out.stride[i] * from / to;
  out.shape[last] = out.shape[last] * from / to;
  out.valid[last] = out.valid[last] * from / to;
  out.stride[last] = 1;
  out.dtype = dtype;
  out.refresh_fully_valid();
  if (out.pad != PadMode::kZero) out.pad = PadMode::kNull;
  if (given) {
    if (!out.fully_valid) {
      fault(call, 0,
            "with valid shape " + list_text(valid_of(v).span()) + " of " + list_text(shape_of(v).span()) +
                " must be fully valid when shape= is given");
    }
    out = reshaped(call, out, param_list(call, 2, AttrKey::k_shape));
  }
  call.set_result(std::move(out));
  return ExecStatus::kDone;
}

ExecStatus exec_set_validshape(OpCall& call) {
  View out = call.view(0);
  out.snapshot = BufferRef();
  const Extents valid = {call.integer(1), call.integer(2)};
  const int lead = out.rank - 2;
  check_valid(call, 0, valid, Extents(out.shape + lead, 2));
  out.valid[lead] = valid[0];
  out.valid[lead + 1] = valid[1];
  out.refresh_fully_valid();
  call.set_result(std::move(out));
  return ExecStatus::kDone;
}

ExecStatus exec_view(OpCall& call) {
  const View& v = call.view(0);
  View out = v;
  out.snapshot = BufferRef();
  const int rank = v.rank;
  const bool is_dn = rank >= 2 && v.stride[rank - 2] == 1 && v.stride[rank - 1] != 1;
  bool to_dn = is_dn;
  if (const auto* layout = call.attrs->find(AttrKey::k_layout);
      layout && std::holds_alternative<int64_t>(*layout)) {
    to_dn = std::get<int64_t>(*layout) == static_cast<int64_t>(ir::TensorLayout::kDN);
  }
  const bool given = param_list_given(call, 1, AttrKey::k_shape);
  const bool change = to_dn != is_dn && rank >= 2;
  if (given) {
    // The bytes in order are a row-major array: of the shape itself (ND), or of the shape with its last two
    // axes exchanged (DN).
    Extents shape = param_list(call, 1, AttrKey::k_shape);
    const View bytes = is_dn ? transpose_strides(out, -2, -1) : out;
    if (to_dn && shape.rank >= 2) std::swap(shape[shape.rank - 1], shape[shape.rank - 2]);
    out = reshaped(call, bytes, shape);
    if (to_dn && shape.rank >= 2) out = transpose_strides(out, -2, -1);
  } else if (change) {
    out = transpose_strides(out, -2, -1);
  }
  if (call.has(2)) {
    const Extents valid(call.list(2));
    check_valid(call, 0, valid, shape_of(out));
    for (int i = 0; i < valid.rank; ++i) out.valid[i] = valid[i];
    out.refresh_fully_valid();
  }
  call.set_result(std::move(out));
  return ExecStatus::kDone;
}

}  // namespace

View transpose_strides(const View& v, int axis1, int axis2) {
  View out = v;
  out.snapshot = BufferRef();
  if (axis1 < 0) axis1 += v.rank;
  if (axis2 < 0) axis2 += v.rank;
  PYPTO_CHECK(axis1 >= 0 && axis2 >= 0 && axis1 < v.rank && axis2 < v.rank,
              "transposed axes outside the rank");
  std::swap(out.shape[axis1], out.shape[axis2]);
  std::swap(out.stride[axis1], out.stride[axis2]);
  std::swap(out.valid[axis1], out.valid[axis2]);
  return out;
}

void register_views(ExecTable& table) {
  table.set(OpId::k_slice, exec_slice);
  table.set(OpId::k_reshape, exec_reshape);
  table.set(OpId::k_transpose, exec_transpose);
  table.set(OpId::k_transpose_view, exec_transpose_view);
  table.set(OpId::k_reinterpret_view, exec_reinterpret_view);
  table.set(OpId::k_set_validshape, exec_set_validshape);
  table.set(OpId::k_view, exec_view);
}

}  // namespace pypto::vm
