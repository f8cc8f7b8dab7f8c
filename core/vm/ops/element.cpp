// SPDX-License-Identifier: Apache-2.0
// read, write and dim (02 section 6).
#include "core/base/numeric.h"
#include "core/vm/ops/region.h"
#include "core/vm/ops/register.h"
#include "core/vm/ops/written.h"

namespace pypto::vm {
namespace {

using ir::AttrKey;
using ir::OpId;

/// Position of an element: `index` has one entry per axis, or addresses the trailing axes of a view with unit
/// axes in front. Returns the element's number from the start of the view.
int64_t element_position(const OpCall& call, const View& v, const Extents& index) {
  const int lead = v.rank - index.rank;
  PYPTO_CHECK(lead >= 0, "more indices than axes");
  int64_t at = 0;
  for (int i = 0; i < index.rank; ++i) {
    if (index[i] < 0 || index[i] >= v.shape[lead + i]) fail_index(call, 0, v, lead + i, index[i]);
    at += index[i] * v.stride[lead + i];
  }
  return at;
}

/// The single cell as a view, for access records.
View element_view(const View& v, int64_t position) {
  View cell = v;
  cell.offset += nibble_packed(v) ? position / 2 : position * dtype_bytes(v.dtype);
  for (int i = 0; i < v.rank; ++i) cell.shape[i] = cell.valid[i] = 1;
  cell.fully_valid = true;
  return cell;
}

Extents index_of(const OpCall& call) {
  if (call.is_scalar(1)) return {call.integer(1)};
  return Extents(call.list(1));
}

/// An unspecified cell makes an unspecified scalar (01 L-154).
void mark_read_cell(OpCall& call, const View& v, const View& cell) {
  if (nibble_packed(v)) return;
  const Mark mark = cell_mark(cell, 0);
  if (mark == 0) return;
  call.mark_scalar(mark, "cell " + list_text(index_of(call).span()) + " of '" + call.operand_name(0) +
                             "' of shape " + list_text(shape_of(v).span()) + ", valid " +
                             list_text(valid_of(v).span()) + ",");
}

ExecStatus exec_read(OpCall& call) {
  const View& v = call.view(0);
  const int64_t position = element_position(call, v, index_of(call));
  const View cell = element_view(v, position);
  touch(call, cell, AccessKind::kRead);
  if (!v.buffer->written.all) mark_read_cell(call, v, cell);
  uint8_t code = 0;
  const void* at = cell.data();
  if (nibble_packed(v)) {
    code = *cell.data() >> (position % 2 != 0 ? 4 : 0) & 0xf;
    at = &code;
  }
  if (!is_float(v.dtype)) {
    call.set_result(scalar_of(read_integer(v.dtype, at)));
    return ExecStatus::kDone;
  }
  double value = read_float(v.dtype, at);
  // The element of a product that is still in its accumulator is read in the declared dtype (02 O-1802).
  const DType declared = call.result_dtype();
  if (declared != v.dtype && is_float(declared)) {
    uint8_t bytes[8] = {};
    write_float(declared, bytes, value);
    value = read_float(declared, bytes);
  }
  call.set_result(scalar_of(value));
  return ExecStatus::kDone;
}

ExecStatus exec_write(OpCall& call) {
  const View& v = call.view(0);
  const int64_t position = element_position(call, v, index_of(call));
  const View cell = element_view(v, position);
  touch(call, cell, AccessKind::kWrite);
  const Scalar value = call.scalar(2);
  const bool float_value = is_float(call.scalar_dtype(2));
  uint8_t bytes[8] = {};
  if (is_float(v.dtype)) {
    write_float(v.dtype, bytes, float_value ? value.f : static_cast<double>(value.i));
  } else {
    write_integer(v.dtype, bytes, float_value ? float_to_integer(value.f, v.dtype) : value.i);
  }
  if (nibble_packed(v)) {
    uint8_t& byte = *cell.data();
    const bool high = position % 2 != 0;
    byte = static_cast<uint8_t>(high ? (byte & 0x0f) | bytes[0] << 4 : (byte & 0xf0) | (bytes[0] & 0xf));
  } else {
    std::memcpy(cell.data(), bytes, static_cast<size_t>(dtype_bytes(v.dtype)));
  }
  mark_written(cell);
  if (const Mark mark = call.scalar_mark(2)) mark_unspecified(cell, mark);
  call.set_result(v);
  return ExecStatus::kDone;
}

ExecStatus exec_dim(OpCall& call) {
  const View& v = call.view(0);
  int64_t axis = param_int(call, 1, AttrKey::k_axis, 0);
  if (axis < 0) axis += v.rank;
  if (axis < 0 || axis >= v.rank) {
    fail(ErrorClass::kOutOfBoundsError, subject(call, 0) + " has rank " + std::to_string(v.rank) +
                                            ", there is no axis " + std::to_string(axis));
  }
  call.set_result(scalar_of(v.shape[axis]));
  return ExecStatus::kDone;
}

}  // namespace

void register_element(ExecTable& table) {
  table.set(OpId::k_read, exec_read);
  table.set(OpId::k_write, exec_write);
  table.set(OpId::k_dim, exec_dim);
}

}  // namespace pypto::vm
