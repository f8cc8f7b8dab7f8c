// SPDX-License-Identifier: Apache-2.0

// Padding (02 section 17).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <variant>

#include "core/vm/ops/elementwise.h"
#include "core/vm/ops/register.h"
#include "core/vm/ops/written.h"

namespace pypto::vm {
namespace {

using ir::OpId;

/// The pad mode of a call: a PadValue member, or a number (0 or an infinity).
PadMode pad_mode(const OpCall& call) {
  const ir::AttrValue* value = call.attrs->find(ir::AttrKey::k_pad_value);
  if (value == nullptr) return PadMode::kZero;
  if (const auto* number = std::get_if<double>(value)) {
    if (*number == 0) return PadMode::kZero;
    return *number > 0 ? PadMode::kMax : PadMode::kMin;
  }
  const auto mode = static_cast<PadMode>(call.attr_int(ir::AttrKey::k_pad_value));
  return mode == PadMode::kNull ? PadMode::kZero : mode;
}

void pad_element(DType dtype, PadMode mode, void* element) {
  std::memset(element, 0, 8);
  if (mode == PadMode::kMax || mode == PadMode::kMin) write_extreme(dtype, element, mode == PadMode::kMax);
}

/// Writes `element` to the cells of `v` outside the box [0, valid): axis by axis, the part beyond the valid
/// extent.
void fill_beyond(const View& v, const Extents& valid, const void* element) {
  const int64_t width = dtype_bytes(v.dtype);
  View rest = v;
  for (int a = 0; a < v.rank; ++a) {
    // Cells whose first coordinate outside the box is on axis a: inside on earlier axes, beyond on a, all
    // later.
    View slab = rest;
    slab.offset += valid[a] * v.stride[a] * width;
    slab.shape[a] = v.shape[a] - valid[a];
    const int last = v.rank - 1;
    if (slab.elements() > 0) {
      Walk walk(slab.rank, slab.shape);
      int64_t strides[kMaxRank] = {};
      for (int b = 0; b < slab.rank; ++b) strides[b] = slab.stride[b] * width;
      walk.add(slab.data(), strides, width);
      if (v.stride[last] == 1 || v.shape[last] == 1) walk.collapse();
      const bool contiguous =
          walk.rank == 0 || walk.row_length() == 1 || walk.stride[0][walk.rank - 1] == width;
      const int64_t step = contiguous ? width : walk.stride[0][walk.rank - 1];
      walk.rows([&](uint8_t* const* p, int64_t n) {
        if (contiguous) {
          fill_row(p[0], element, static_cast<size_t>(n), static_cast<int>(width));
          return;
        }
        for (int64_t i = 0; i < n; ++i) std::memcpy(p[0] + i * step, element, static_cast<size_t>(width));
      });
    }
    rest.shape[a] = valid[a];
  }
}

/// Copy of the valid region in the corner of `shape`, pad elsewhere, fully valid.
View padded(OpCall& call, const Extents& shape) {
  const View& v = call.view(0);
  const Input in(call, 0, v.dtype);
  const PadMode mode = pad_mode(call);
  View out = call.alloc(v.dtype, shape.span(), false);
  alignas(8) uint8_t element[8];
  pad_element(v.dtype, mode, element);
  const Extents valid = valid_of(v);
  fill_beyond(out, valid, element);
  View box = out;
  for (int a = 0; a < out.rank; ++a) box.valid[a] = valid[a];
  // The source's own extents may be smaller than the result's; only its valid region is read.
  Walk walk(box.rank, box.valid);
  int64_t strides[kMaxRank] = {};
  const int64_t width = dtype_bytes(v.dtype);
  for (int a = 0; a < box.rank; ++a) strides[a] = box.stride[a] * width;
  walk.add(box.data(), strides, width);
  for (int a = 0; a < box.rank; ++a) strides[a] = in.view().stride[a] * width;
  walk.add(in.data(), strides, width);
  walk.collapse();
  walk.rows([&](uint8_t* const* p, int64_t n) { std::memcpy(p[0], p[1], static_cast<size_t>(n * width)); });
  if (!v.buffer->written.all) carry_marks(box, valid_region(v));
  out.pad = mode;
  return out;
}

ExecStatus exec_fillpad(OpCall& call) {
  call.set_result(padded(call, shape_of(call.view(0))));
  return ExecStatus::kDone;
}

ExecStatus exec_fillpad_expand(OpCall& call) {
  const Extents shape = param_list(call, 1, ir::AttrKey::k_shape);
  const View& v = call.view(0);
  for (int a = 0; a < v.rank; ++a) {
    if (v.shape[a] <= shape[a]) continue;
    fault(call, 0,
          "of shape " + list_text(shape_of(v).span()) + " does not fit the wanted shape " +
              list_text(shape.span()),
          "each extent of the result must be at least the operand's");
  }
  call.set_result(padded(call, shape));
  return ExecStatus::kDone;
}

ExecStatus exec_fillpad_inplace(OpCall& call) {
  View v = call.view(0);
  touch(call, v, AccessKind::kWrite);
  const PadMode mode = pad_mode(call);
  alignas(8) uint8_t element[8];
  pad_element(v.dtype, mode, element);
  fill_beyond(v, valid_of(v), element);
  if (!v.buffer->written.all) mark_filled(v);
  for (int a = 0; a < v.rank; ++a) v.valid[a] = v.shape[a];
  v.fully_valid = true;
  v.pad = mode;
  call.set_result(v);
  return ExecStatus::kDone;
}

}  // namespace

void register_fill(ExecTable& t) {
  t.set(OpId::k_fillpad, &exec_fillpad);
  t.set(OpId::k_fillpad_inplace, &exec_fillpad_inplace);
  t.set(OpId::k_fillpad_expand, &exec_fillpad_expand);
}

}  // namespace pypto::vm
