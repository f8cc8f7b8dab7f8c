// SPDX-License-Identifier: Apache-2.0

// Broadcast and expand (02 section 16).
#include <algorithm>

#include "core/vm/ops/elementwise.h"
#include "core/vm/ops/register.h"

namespace pypto::vm {
namespace {

using ir::OpId;

DType expand_compute(const OpCall& call) {
  const DType result = call.result_dtype();
  return compute_dtype(result, {call.view(0).dtype, call.view(1).dtype});
}

template <BinaryOp kOp>
ExecStatus exec_expand(OpCall& call) {
  const DType compute = expand_compute(call);
  const Input main(call, 0, compute);
  const Input vector(call, 1, compute);
  require_fit(call, main.view(), vector.view());
  const View out = elementwise_result(call, call.result_dtype(), shape_of(main.view()), main.view());
  apply_binary(call, kOp, main, vector, out);
  call.set_result(out);
  return ExecStatus::kDone;
}

/// exp(a - v) with the difference rounded to the result dtype before exp (O-1003), whatever the operands
/// hold.
ExecStatus exec_expdif(OpCall& call) {
  const DType dtype = call.result_dtype();
  const DType compute = expand_compute(call);
  if (same_dtype(dtype, compute)) return exec_expand<BinaryOp::kExpDif>(call);
  const Input main(call, 0, compute);
  const Input vector(call, 1, compute);
  require_fit(call, main.view(), vector.view());
  const View difference = elementwise_result(call, dtype, shape_of(main.view()), main.view());
  apply_binary(call, BinaryOp::kSub, main, vector, difference);
  const Input in(call, difference, dtype);
  const View out = elementwise_result(call, dtype, shape_of(main.view()), main.view());
  apply_unary(call, UnaryOp::kExp, in, out);
  call.set_result(out);
  return ExecStatus::kDone;
}

/// row_expand_add also accepts a lane block [M, 32 / size]: element j modulo its width is added to column j
/// (O-1602).
ExecStatus exec_row_expand_add(OpCall& call) {
  const View& target = call.view(0);
  const View& block = call.view(1);
  const int last = target.rank - 1;
  const int64_t lanes = block.rank > 0 ? block.shape[block.rank - 1] : 1;
  if (last < 0 || lanes == 1 || !call.result_is_tile()) return exec_expand<BinaryOp::kAdd>(call);
  const DType compute = expand_compute(call);
  const Input main(call, 0, compute);
  const Input vector(call, 1, compute);
  const View out = elementwise_result(call, call.result_dtype(), shape_of(main.view()), main.view());
  // Column groups of the block's width, each an ordinary sum.
  for (int64_t j = 0; j < out.valid[last]; j += lanes) {
    const int64_t count = std::min(lanes, out.valid[last] - j);
    auto columns = [&](const View& v, int64_t from) {
      View w = v;
      w.offset += from * dtype_bytes(v.dtype);
      w.shape[v.rank - 1] = w.valid[v.rank - 1] = count;
      w.refresh_fully_valid();
      return w;
    };
    const View part_main = columns(main.view(), j);
    const View part_vector = columns(vector.view(), 0);
    const Input a(call, part_main, compute);
    const Input b(call, part_vector, compute);
    apply_binary(call, BinaryOp::kAdd, a, b, columns(out, j));
  }
  call.set_result(out);
  return ExecStatus::kDone;
}

/// row_expand, col_expand: shape and valid region of the target, cells of the vector (O-1603).
ExecStatus exec_spread(OpCall& call) {
  const DType dtype = call.result_dtype();
  const View& target = call.view(0);
  const Input vector(call, 1, dtype);
  require_fit(call, target, vector.view());
  const View out = elementwise_result(call, dtype, shape_of(target), target);
  apply_copy(vector, out);
  call.set_result(out);
  return ExecStatus::kDone;
}

/// expands: target's shape filled with a scalar, fully valid (O-1604).
ExecStatus exec_expands(OpCall& call) {
  const DType dtype = call.result_dtype();
  const Extents shape = shape_of(call.view(0));
  const View out = alloc_result(call, dtype, shape, shape);
  alignas(8) uint8_t element[8];
  scalar_element(call, 1, dtype, element);
  fill_row(out.data(), element, static_cast<size_t>(out.elements()), dtype_bytes(dtype));
  call.set_result(out);
  return ExecStatus::kDone;
}

/// expand_clone: writes the broadcast source into the target in place (O-1605).
ExecStatus exec_expand_clone(OpCall& call) {
  const View target = call.view(1);
  const Input src(call, 0, target.dtype);
  touch(call, target, AccessKind::kWrite);
  const int last = target.rank - 1;
  View all = target;
  for (int a = 0; a < all.rank; ++a) all.valid[a] = all.shape[a];
  all.fully_valid = true;
  if (last >= 0 && target.stride[last] != 1 && target.shape[last] != 1) {
    // Rows of the target are not contiguous: through a packed value.
    const View packed = call.alloc(target.dtype, shape_of(target).span(), false);
    apply_copy(src, packed);
    copy_cells(all, packed);
  } else {
    apply_copy(src, all);
  }
  call.set_result(target);
  return ExecStatus::kDone;
}

}  // namespace

void register_expand(ExecTable& t) {
  t.set(OpId::k_row_expand, &exec_spread);
  t.set(OpId::k_col_expand, &exec_spread);
  t.set(OpId::k_row_expand_mul, &exec_expand<BinaryOp::kMul>);
  t.set(OpId::k_row_expand_div, &exec_expand<BinaryOp::kDiv>);
  t.set(OpId::k_row_expand_sub, &exec_expand<BinaryOp::kSub>);
  t.set(OpId::k_row_expand_max, &exec_expand<BinaryOp::kMax>);
  t.set(OpId::k_row_expand_min, &exec_expand<BinaryOp::kMin>);
  t.set(OpId::k_row_expand_expdif, &exec_expdif);
  t.set(OpId::k_row_expand_add, &exec_row_expand_add);
  t.set(OpId::k_col_expand_mul, &exec_expand<BinaryOp::kMul>);
  t.set(OpId::k_col_expand_div, &exec_expand<BinaryOp::kDiv>);
  t.set(OpId::k_col_expand_sub, &exec_expand<BinaryOp::kSub>);
  t.set(OpId::k_col_expand_add, &exec_expand<BinaryOp::kAdd>);
  t.set(OpId::k_col_expand_max, &exec_expand<BinaryOp::kMax>);
  t.set(OpId::k_col_expand_min, &exec_expand<BinaryOp::kMin>);
  t.set(OpId::k_col_expand_expdif, &exec_expdif);
  t.set(OpId::k_expands, &exec_expands);
  t.set(OpId::k_expand_clone, &exec_expand_clone);
}

}  // namespace pypto::vm
