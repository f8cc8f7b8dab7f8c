// SPDX-License-Identifier: Apache-2.0
#include "core/passes/lane_extents.h"

#include "core/ir/infer.h"

namespace pypto::passes {

using ir::Dim;
using ir::ExprPtr;
using ir::OpId;

Dim lane_valid(const Dim& valid, int64_t stride, const ExprPtr& lane) {
  if (!valid.is_const() && !valid.expr) return {};
  const auto index = [](int64_t v) { return ir::int_const(v, DType::kIndex, {}, true); };
  const ExprPtr whole = valid.is_const() ? index(valid.value) : valid.expr;
  ExprPtr e = ir::infer_scalar(OpId::k_scalar_sub, whole,
                               ir::infer_scalar(OpId::k_scalar_mul, lane, index(stride), {}), {});
  if (!valid.is_const() || valid.value > stride) e = ir::infer_scalar(OpId::k_min, e, index(stride), {});
  if (!valid.is_const() || valid.value < stride) e = ir::infer_scalar(OpId::k_max, e, index(0), {});
  return Dim(e);
}

int64_t lane_stride(int64_t extent, int64_t valid) {
  const int64_t half = lane_half(extent);
  const int64_t second = valid - half;
  return second > 0 && half - second > 1 ? (valid + 1) / 2 : half;
}

int64_t split_code(ir::SplitMode mode, int64_t extent, int64_t stride) {
  if (mode == ir::SplitMode::kNone) return 0;
  const bool odd = extent % 2 != 0 || stride != lane_half(extent);
  return (mode == ir::SplitMode::kUpDown ? 1 : 2) + (odd ? 2 : 0);
}

}  // namespace pypto::passes
