// SPDX-License-Identifier: Apache-2.0

// Comparison and selection (02 section 13).
#include <algorithm>
#include <cstring>
#include <vector>

#include "core/ir/infer.h"
#include "core/vm/ops/elementwise.h"
#include "core/vm/ops/register.h"

namespace pypto::vm {
namespace {

using ir::OpId;

/// Bytes of a packed mask row of `columns` bits in storage (O-1302).
int64_t mask_row_bytes(int64_t columns) { return ((columns + 7) / 8 + 31) / 32 * 32; }

/// dtype in which two operands are compared: their promotion; an accumulator beside a 16-bit float is not
/// rounded.
DType comparison_dtype(const OpCall& call) {
  const DType lhs = call.is_scalar(0) ? call.scalar_dtype(0) : call.view(0).dtype;
  const DType rhs = call.is_scalar(1) ? call.scalar_dtype(1) : call.view(1).dtype;
  if (lhs == rhs) return lhs;
  const DType both = ir::promote(lhs, rhs);
  return both == DType::kNone ? lhs : both;
}

/// Compares row by row; f(flags, row pointer of array 0, n).
template <class F>
void compare_rows(CompareOp op, DType dtype, const Walk& walk, F f) {
  const bool left = walk.repeats(1);
  const bool right = walk.repeats(2);
  const Spread spread = left && right ? Spread::kNone
                        : left        ? Spread::kLhs
                        : right       ? Spread::kRhs
                                      : Spread::kNone;
  const CompareKernel kernel = compare_kernel(dtype, spread);
  PYPTO_CHECK(kernel != nullptr, "no comparison of " + std::string(dtype_text(dtype)));
  std::vector<uint8_t> flags(static_cast<size_t>(walk.row_length()));
  walk.rows([&](uint8_t* const* p, int64_t n) {
    if (left && right) {
      kernel(op, p[1], p[2], flags.data(), 1);
      std::fill(flags.begin() + 1, flags.end(), flags[0]);
    } else {
      kernel(op, p[1], p[2], flags.data(), static_cast<size_t>(n));
    }
    f(flags.data(), p[0], n);
  });
}

ExecStatus exec_compare(OpCall& call) {
  const DType compute = comparison_dtype(call);
  const auto op = static_cast<CompareOp>(param_int(call, 2, ir::AttrKey::k_cmp_type, 0));
  const Input lhs(call, 0, compute);
  const Input rhs(call, 1, compute);
  if (!lhs.is_scalar() && !rhs.is_scalar()) require_fit(call, lhs.view(), rhs.view());
  const Extents shape = broadcast(lhs.is_scalar() ? Extents() : shape_of(lhs.view()),
                                  rhs.is_scalar() ? Extents() : shape_of(rhs.view()));
  const View& first = lhs.is_scalar() ? rhs.view() : lhs.view();
  const DType dtype = call.result_dtype();
  if (!call.result_is_tile()) {
    // An ordinary 0/1 tensor, fully valid (O-1301).
    const View out = alloc_result(call, dtype, shape, shape);
    Walk walk = walk_result(out);
    lhs.add_to(walk, shape);
    rhs.add_to(walk, shape);
    walk.collapse();
    compare_rows(op, compute, walk, [&](const uint8_t* flags, uint8_t* row, int64_t n) {
      cast_row(DType::kUInt8, flags, dtype, row, static_cast<size_t>(n), CastMode::kRound);
    });
    call.set_result(out);
    return ExecStatus::kDone;
  }
  // A packed mask (O-1302): one row of bits per row of cells.
  const Extents valid = broadcast_valid(first, shape);
  Extents mask_shape = shape;
  Extents mask_valid = valid;
  const int last = shape.rank - 1;
  const int64_t columns = last >= 0 ? shape[last] : 1;
  if (last < 0) mask_shape = mask_valid = Extents{1};
  const int64_t row_bytes = mask_row_bytes(columns);
  mask_shape[mask_shape.rank - 1] = row_bytes;
  mask_valid[mask_valid.rank - 1] = ((last >= 0 ? valid[last] : 1) + 7) / 8;
  View out = call.alloc(DType::kUInt8, mask_shape.span(), true);
  for (int a = 0; a < out.rank; ++a) out.valid[a] = mask_valid[a];
  out.refresh_fully_valid();
  // Array 0 is walked over the cells' extents but steps along the mask's rows only.
  Walk walk(shape.rank, valid.v);
  int64_t strides[kMaxRank] = {};
  for (int a = 0; a < last; ++a) strides[a] = out.stride[a];
  walk.add(out.data(), strides, 1);
  lhs.add_to(walk, shape);
  rhs.add_to(walk, shape);
  compare_rows(op, compute, walk, [](const uint8_t* flags, uint8_t* row, int64_t n) {
    pack_bits(flags, row, static_cast<size_t>(n));
  });
  call.set_result(out);
  return ExecStatus::kDone;
}

/// A packed array of exactly `shape`, repeated where the operand is narrower.
View spread_to(OpCall& call, const Input& in, const Extents& shape) {
  if (!in.is_scalar() && in.view().packed() && in.view().elements() == shape.product()) return in.view();
  const View out = call.alloc(in.dtype(), shape.span(), false);
  apply_copy(in, out);
  return out;
}

/// Rows of `lhs` or `rhs` by the bits of `mask` over `valid`; all packed except the mask, whose rows may have
/// a pitch.
View select(OpCall& call, const View& mask, const View& lhs, const View& rhs, const Extents& shape,
            const Extents& valid) {
  const View out = alloc_result(call, lhs.dtype, shape, valid);
  const int last = shape.rank - 1;
  const int width = dtype_bytes(lhs.dtype);
  Walk walk(shape.rank, valid.v);
  int64_t strides[kMaxRank] = {};
  for (int a = 0; a <= last; ++a) strides[a] = out.stride[a] * width;
  walk.add(out.data(), strides, width);
  walk.add(lhs.data(), strides, width);
  walk.add(rhs.data(), strides, width);
  int64_t mask_strides[kMaxRank] = {};
  const int lead = shape.rank - mask.rank;
  const int64_t mask_width = dtype_bytes(mask.dtype);
  for (int a = 0; a + 1 < mask.rank; ++a) {
    if (lead + a >= 0) mask_strides[lead + a] = mask.shape[a] == 1 ? 0 : mask.stride[a] * mask_width;
  }
  walk.add(mask.data(), mask_strides, 1);
  walk.rows([&](uint8_t* const* p, int64_t n) {
    select_row(p[3], p[1], p[2], p[0], static_cast<size_t>(n), width);
  });
  return out;
}

/// The mask operand with contiguous rows.
View read_mask(OpCall& call, int param) {
  const View& mask = read_operand(call, param);
  const int last = mask.rank - 1;
  if (last >= 0 && mask.stride[last] != 1 && mask.shape[last] != 1)
    return packed_copy(call, mask, mask.dtype);
  return mask;
}

ExecStatus exec_sel(OpCall& call) {
  const DType dtype = call.result_dtype();
  const View mask = read_mask(call, 0);
  const Input lhs(call, 1, dtype);
  const Input rhs(call, 2, dtype);
  const Extents shape = broadcast(lhs.is_scalar() ? Extents() : shape_of(lhs.view()),
                                  rhs.is_scalar() ? Extents() : shape_of(rhs.view()));
  const View& first = lhs.is_scalar() ? rhs.view() : lhs.view();
  const View out = select(call, mask, spread_to(call, lhs, shape), spread_to(call, rhs, shape), shape,
                          broadcast_valid(first, shape));
  call.set_result(out);
  return ExecStatus::kDone;
}

ExecStatus exec_sels(OpCall& call) {
  const DType dtype = call.result_dtype();
  const View mask = read_mask(call, 0);
  const Input src(call, 1, dtype);
  const Input scalar(call, 3, dtype);
  const Extents shape = shape_of(src.view());
  const View out = select(call, mask, spread_to(call, src, shape), spread_to(call, scalar, shape), shape,
                          valid_of(src.view()));
  call.set_result(out);
  return ExecStatus::kDone;
}

}  // namespace

void register_compare(ExecTable& t) {
  t.set(OpId::k_cmp, &exec_compare);
  t.set(OpId::k_cmps, &exec_compare);
  t.set(OpId::k_sel, &exec_sel);
  t.set(OpId::k_sels, &exec_sels);
}

}  // namespace pypto::vm
