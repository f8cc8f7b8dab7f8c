// SPDX-License-Identifier: Apache-2.0

// Executors of chapter 02 sections 9 (binary arithmetic), 12 (bitwise, shifts) and 14 (partial and
// three-input forms).
#include <algorithm>
#include <utility>

#include "core/vm/ops/elementwise.h"
#include "core/vm/ops/register.h"

namespace pypto::vm {
namespace {

using ir::OpId;

/// dtype of an array operand, or kNone for a scalar.
DType array_dtype(const OpCall& call, int param) {
  return call.is_scalar(param) ? DType::kNone : call.view(param).dtype;
}

/// Computing dtype of a call whose operands are `params`.
template <size_t kCount>
DType compute_for(const OpCall& call, const int (&params)[kCount]) {
  const DType result = call.result_dtype();
  DType compute = result;
  for (const int p : params) {
    const DType d = array_dtype(call, p);
    if (d != DType::kNone && compute_dtype(result, {d}) != result) compute = DType::kFp32;
  }
  return compute;
}

Extents shape_in(const Input& x) { return x.is_scalar() ? Extents() : shape_of(x.view()); }

const View& first_array(const Input& lhs, const Input& rhs) {
  return lhs.is_scalar() ? rhs.view() : lhs.view();
}

/// Operations without unspecified cases that must be looked for (O-306, O-1203).
constexpr bool never_warns(BinaryOp op) {
  return op != BinaryOp::kDiv && op != BinaryOp::kFmod && op != BinaryOp::kRem && op != BinaryOp::kShl &&
         op != BinaryOp::kShr;
}

/// A plain tile with another one of its shape or with a scalar. False when it is not that.
template <BinaryOp kOp>
bool binary_of_plain(OpCall& call) {
  const DType dtype = call.result_dtype();
  if (call.is_scalar(0) || !(is_float(dtype) || never_warns(kOp))) return false;
  const View& lhs = call.view(0);
  if (!plain_tile(lhs, dtype)) return false;
  alignas(8) uint8_t element[8];
  const void* rhs = element;
  const bool scalar = call.is_scalar(1);
  if (!scalar) {
    const View& v = call.view(1);
    if (!plain_tile(v, dtype) || v.rank != lhs.rank || !std::equal(v.shape, v.shape + v.rank, lhs.shape))
      return false;
    rhs = v.data();
  }
  const BinaryKernel kernel = binary_kernel(kOp, dtype, scalar ? Spread::kRhs : Spread::kNone);
  if (kernel == nullptr) return false;
  if (scalar) scalar_element(call, 1, dtype, element);
  View out = plain_result(call, dtype, lhs);
  kernel(lhs.data(), rhs, out.data(), static_cast<size_t>(lhs.elements()));
  call.set_result(std::move(out));
  return true;
}

template <BinaryOp kOp>
ExecStatus exec_binary(OpCall& call) {
  if (binary_of_plain<kOp>(call)) return ExecStatus::kDone;
  const DType compute = compute_for(call, {0, 1});
  const Input lhs(call, 0, compute);
  const Input rhs(call, 1, compute);
  if (!lhs.is_scalar() && !rhs.is_scalar()) require_fit(call, lhs.view(), rhs.view());
  const View out = elementwise_result(call, call.result_dtype(), broadcast(shape_in(lhs), shape_in(rhs)),
                                      first_array(lhs, rhs));
  apply_binary(call, kOp, lhs, rhs, out);
  call.set_result(out);
  return ExecStatus::kDone;
}

/// lhs OP rhs OP rhs2, one rounding per step (O-1403).
template <BinaryOp kOp>
ExecStatus exec_three(OpCall& call) {
  const DType compute = compute_for(call, {0, 1, 2});
  const Input lhs(call, 0, compute);
  const Input rhs(call, 1, compute);
  const Input third(call, 2, compute);
  const DType dtype = call.result_dtype();
  const View step =
      elementwise_result(call, dtype, broadcast(shape_in(lhs), shape_in(rhs)), first_array(lhs, rhs));
  apply_binary(call, kOp, lhs, rhs, step);
  const Input stepped(call, step, compute);
  const View out =
      elementwise_result(call, dtype, broadcast(shape_of(step), shape_in(third)), first_array(lhs, rhs));
  apply_binary(call, kOp, stepped, third, out);
  call.set_result(out);
  return ExecStatus::kDone;
}

/// The part of `v` that lies in `region` of a broadcast shape.
View restricted(const View& v, const Extents& region) {
  View w = v;
  for (int a = 0; a < w.rank; ++a) w.valid[a] = std::min(v.shape[a], region[a]);
  w.refresh_fully_valid();
  return w;
}

/// Operands whose valid regions differ (O-1402): both valid: combined; one valid: that one; none: 0.
template <BinaryOp kOp>
ExecStatus exec_part(OpCall& call) {
  const DType compute = compute_for(call, {0, 1});
  const Input lhs(call, 0, compute);
  const Input rhs(call, 1, compute);
  require_fit(call, lhs.view(), rhs.view());
  const Extents shape = broadcast(shape_in(lhs), shape_in(rhs));
  const Extents lhs_valid = broadcast_valid(lhs.view(), shape);
  const Extents rhs_valid = broadcast_valid(rhs.view(), shape);
  Extents common = shape;
  for (int a = 0; a < shape.rank; ++a) common[a] = std::min(lhs_valid[a], rhs_valid[a]);
  const View all = call.alloc(compute, shape.span(), true);
  apply_copy(rhs, restricted(all, rhs_valid));
  apply_copy(lhs, restricted(all, lhs_valid));
  apply_binary(call, kOp, lhs, rhs, restricted(all, common));
  View out = all;
  if (const DType dtype = call.result_dtype(); !same_dtype(dtype, compute)) {
    out = call.alloc(dtype, shape.span(), false);
    cast_row(compute, all.data(), dtype, out.data(), static_cast<size_t>(all.elements()), CastMode::kRound);
  }
  out.dtype = call.result_dtype();
  out = restricted(out, lhs_valid);
  call.set_result(out);
  return ExecStatus::kDone;
}

}  // namespace

void register_binary(ExecTable& t) {
  for (const OpId id : {OpId::k_add, OpId::k_adds}) t.set(id, &exec_binary<BinaryOp::kAdd>);
  for (const OpId id : {OpId::k_sub, OpId::k_subs}) t.set(id, &exec_binary<BinaryOp::kSub>);
  for (const OpId id : {OpId::k_mul, OpId::k_muls}) t.set(id, &exec_binary<BinaryOp::kMul>);
  for (const OpId id : {OpId::k_div, OpId::k_divs}) t.set(id, &exec_binary<BinaryOp::kDiv>);
  for (const OpId id : {OpId::k_maximum, OpId::k_maximums}) t.set(id, &exec_binary<BinaryOp::kMax>);
  for (const OpId id : {OpId::k_minimum, OpId::k_minimums}) t.set(id, &exec_binary<BinaryOp::kMin>);
  for (const OpId id : {OpId::k_fmod, OpId::k_fmods}) t.set(id, &exec_binary<BinaryOp::kFmod>);
  for (const OpId id : {OpId::k_rem, OpId::k_rems}) t.set(id, &exec_binary<BinaryOp::kRem>);
  for (const OpId id : {OpId::k_and_, OpId::k_ands}) t.set(id, &exec_binary<BinaryOp::kAnd>);
  for (const OpId id : {OpId::k_or_, OpId::k_ors}) t.set(id, &exec_binary<BinaryOp::kOr>);
  for (const OpId id : {OpId::k_xor, OpId::k_xors}) t.set(id, &exec_binary<BinaryOp::kXor>);
  for (const OpId id : {OpId::k_shl, OpId::k_shls}) t.set(id, &exec_binary<BinaryOp::kShl>);
  for (const OpId id : {OpId::k_shr, OpId::k_shrs}) t.set(id, &exec_binary<BinaryOp::kShr>);
  for (const OpId id : {OpId::k_lrelu, OpId::k_prelu}) t.set(id, &exec_binary<BinaryOp::kLeaky>);
  for (const OpId id : {OpId::k_addc, OpId::k_addsc}) t.set(id, &exec_three<BinaryOp::kAdd>);
  for (const OpId id : {OpId::k_subc, OpId::k_subsc}) t.set(id, &exec_three<BinaryOp::kSub>);
  t.set(OpId::k_part_add, &exec_part<BinaryOp::kAdd>);
  t.set(OpId::k_part_mul, &exec_part<BinaryOp::kMul>);
  t.set(OpId::k_part_max, &exec_part<BinaryOp::kMax>);
  t.set(OpId::k_part_min, &exec_part<BinaryOp::kMin>);
}

}  // namespace pypto::vm
