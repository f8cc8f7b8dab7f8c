// SPDX-License-Identifier: Apache-2.0
#include "core/vm/kernels/chain_plan.h"

#include <algorithm>

#include "core/ir/expand.h"
#include "core/vm/ops/elementwise.h"
#include "core/vm/ops/written.h"

namespace pypto::vm {

using ir::OpId;

ChainOp chain_op(OpId op) {
  auto binary = [](BinaryOp b) { return ChainOp{ChainKind::kBinary, b, UnaryOp::kNeg, ReduceOp::kSum}; };
  auto unary = [](UnaryOp u) { return ChainOp{ChainKind::kUnary, BinaryOp::kAdd, u, ReduceOp::kSum}; };
  auto reduce = [](ReduceOp r) { return ChainOp{ChainKind::kReduce, BinaryOp::kAdd, UnaryOp::kNeg, r}; };
  switch (op) {
    case OpId::k_add:
    case OpId::k_adds:
    case OpId::k_row_expand_add:
    case OpId::k_col_expand_add:
      return binary(BinaryOp::kAdd);
    case OpId::k_sub:
    case OpId::k_subs:
    case OpId::k_row_expand_sub:
    case OpId::k_col_expand_sub:
      return binary(BinaryOp::kSub);
    case OpId::k_mul:
    case OpId::k_muls:
    case OpId::k_row_expand_mul:
    case OpId::k_col_expand_mul:
      return binary(BinaryOp::kMul);
    case OpId::k_div:
    case OpId::k_divs:
    case OpId::k_row_expand_div:
    case OpId::k_col_expand_div:
      return binary(BinaryOp::kDiv);
    case OpId::k_maximum:
    case OpId::k_maximums:
    case OpId::k_row_expand_max:
    case OpId::k_col_expand_max:
      return binary(BinaryOp::kMax);
    case OpId::k_minimum:
    case OpId::k_minimums:
    case OpId::k_row_expand_min:
    case OpId::k_col_expand_min:
      return binary(BinaryOp::kMin);
    case OpId::k_row_expand_expdif:
    case OpId::k_col_expand_expdif:
      return binary(BinaryOp::kExpDif);
    case OpId::k_and_:
    case OpId::k_ands:
      return binary(BinaryOp::kAnd);
    case OpId::k_or_:
    case OpId::k_ors:
      return binary(BinaryOp::kOr);
    case OpId::k_xor:
    case OpId::k_xors:
      return binary(BinaryOp::kXor);
    case OpId::k_lrelu:
    case OpId::k_prelu:
      return binary(BinaryOp::kLeaky);
    case OpId::k_neg:
      return unary(UnaryOp::kNeg);
    case OpId::k_abs:
      return unary(UnaryOp::kAbs);
#define PYPTO_FLOAT_UNARY(id, Name, body, definition) \
  case OpId::k_##id:                                  \
    return unary(UnaryOp::k##Name);
#include "core/ir/float_unary.def"
#undef PYPTO_FLOAT_UNARY
    case OpId::k_log:
      return unary(UnaryOp::kLog);
    case OpId::k_rsqrt:
    case OpId::k_tile_rsqrt:
      return unary(UnaryOp::kRsqrt);
    case OpId::k_recip:
      return unary(UnaryOp::kRecip);
    case OpId::k_sin:
      return unary(UnaryOp::kSin);
    case OpId::k_cos:
      return unary(UnaryOp::kCos);
    case OpId::k_relu:
      return unary(UnaryOp::kRelu);
    case OpId::k_not_:
      return unary(UnaryOp::kNot);
    case OpId::k_row_sum:
      return reduce(ReduceOp::kSum);
    case OpId::k_row_max:
      return reduce(ReduceOp::kMax);
    case OpId::k_row_min:
      return reduce(ReduceOp::kMin);
    case OpId::k_row_prod:
      return reduce(ReduceOp::kProd);
    case OpId::k_cast: {
      ChainOp c;
      c.kind = ChainKind::kCast;
      return c;
    }
    case OpId::k_row_expand:
    case OpId::k_col_expand: {
      ChainOp c;
      c.kind = ChainKind::kSpread;
      return c;
    }
    default:
      return ChainOp();
  }
}

namespace {

/// Operations whose result takes shape and valid region of parameter 0 alone.
bool shaped_by_lhs(OpId op) { return ir::expansion(op) != ir::Expansion::kNone; }

bool numeric(DType d) {
  switch (d) {
    case DType::kFp32:
    case DType::kFp16:
    case DType::kBf16:
    case DType::kInt8:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUInt8:
    case DType::kUInt16:
    case DType::kUInt32:
    case DType::kUInt64:
      return true;
    default:
      return false;
  }
}

bool equal(const int64_t* a, const int64_t* b, int n) { return std::equal(a, a + n, b); }

Extents extents(const ChainShape& s) { return Extents(s.shape, s.rank); }

ChainShape shape_of_step(const ChainStep& step, const ChainPlan& plan) {
  const ChainShape& lhs = plan.shapes[static_cast<size_t>(step.lhs)];
  ChainShape out = lhs;
  const ChainKind kind = chain_op(step.op).kind;
  if (kind == ChainKind::kReduce) {
    if (out.rank > 0) out.shape[out.rank - 1] = out.valid[out.rank - 1] = 1;
    return out;
  }
  if (step.rhs < 0 || shaped_by_lhs(step.op)) return out;
  const ChainShape& rhs = plan.shapes[static_cast<size_t>(step.rhs)];
  const Extents shape = broadcast(extents(lhs), extents(rhs));
  View first;
  first.rank = static_cast<int8_t>(lhs.rank);
  std::copy_n(lhs.shape, kMaxRank, first.shape);
  std::copy_n(lhs.valid, kMaxRank, first.valid);
  const Extents valid = broadcast_valid(first, shape);
  out.rank = shape.rank;
  std::copy_n(shape.v, kMaxRank, out.shape);
  std::copy_n(valid.v, kMaxRank, out.valid);
  return out;
}

int64_t product(const int64_t* v, int n) {
  int64_t p = 1;
  for (int i = 0; i < n; ++i) p *= v[i];
  return p;
}

ChainPart part_of(const ChainShape& s, const ChainShape& main) {
  const int64_t columns = main.shape[main.rank - 1];
  if (s.rank == main.rank && equal(s.shape, main.shape, s.rank)) return ChainPart::kFull;
  if (s.rank == main.rank && s.shape[s.rank - 1] == 1 && equal(s.shape, main.shape, s.rank - 1))
    return ChainPart::kColumn;
  const int64_t elements = product(s.shape, s.rank);
  if (elements == 1) return ChainPart::kOne;
  if (s.rank <= main.rank && elements == columns && s.shape[s.rank - 1] == columns) return ChainPart::kRow;
  return ChainPart::kNone;
}

/// Whether an input is valid wherever the region reads it; otherwise padding would enter the results
/// unnoticed.
bool covers(const ChainInput& v, const ChainShape& region) {
  const int lead = region.rank - v.rank;
  for (int a = 0; a < v.rank; ++a) {
    if (v.valid[a] < (v.shape[a] == 1 ? 1 : region.valid[lead + a])) return false;
  }
  return true;
}

bool packed(const ChainInput& v) {
  int64_t stride = 1;
  for (int a = v.rank - 1; a >= 0; --a) {
    if (v.shape[a] != 1 && v.stride[a] != stride) return false;
    stride *= v.shape[a];
  }
  return true;
}

/// Distance of rows is one number for all of them, and elements of a row are neighbours.
bool has_row_pitch(const ChainInput& v, ChainPart part) {
  if (dtype_bits(v.dtype) < 8) return false;  // two to a byte in global memory
  const int last = v.rank - 1;
  if (last < 0) return true;
  if (part != ChainPart::kColumn && v.shape[last] != 1 && v.stride[last] != 1) return false;
  for (int a = 0; a + 2 < v.rank; ++a) {
    if (v.shape[a] == 1) continue;
    if (v.stride[a] != v.stride[a + 1] * v.shape[a + 1]) return false;
  }
  return true;
}

}  // namespace

bool chain_supports(OpId op, DType lhs, DType rhs, DType scalar, DType result) {
  const ChainOp c = chain_op(op);
  if (c.kind == ChainKind::kNo || !numeric(lhs) || !numeric(result)) return false;
  if (rhs != DType::kNone && !numeric(rhs)) return false;
  if (scalar != DType::kNone && !numeric(scalar) && scalar != DType::kIndex) return false;
  // Conversions of a float scalar to an integer may warn.
  if (is_float(scalar) && !is_float(result)) return false;
  switch (c.kind) {
    case ChainKind::kBinary:
      if (rhs == DType::kNone && scalar == DType::kNone) return false;
      return binary_kernel(c.binary, result, Spread::kNone) != nullptr &&
             (is_float(result) || c.binary != BinaryOp::kDiv);
    case ChainKind::kUnary:
      return unary_kernel(c.unary, result) != nullptr && (is_float(result) || c.unary != UnaryOp::kRecip);
    case ChainKind::kReduce:
      return reduce_kernel(c.reduce, result) != nullptr;
    default:
      return true;
  }
}

namespace {

/// Whether all of the valid region is specified, or nothing of the storage.
bool plain_record(const View& v) { return v.buffer->written.all || never_written(v) || specified(v); }

}  // namespace

ChainInput describe_input(const View& v) {
  ChainInput in;
  in.dtype = v.dtype;
  in.rank = v.rank;
  in.whole = v.fully_valid || readable_region(v).elements() == v.elements();
  in.plain = plain_record(v);
  std::copy_n(v.shape, v.rank, in.shape);
  std::copy_n(v.stride, v.rank, in.stride);
  std::copy_n(v.valid, v.rank, in.valid);
  return in;
}

bool described_by(const ChainInput& in, const View& v) {
  if (in.dtype != v.dtype || in.rank != v.rank) return false;
  for (int a = 0; a < v.rank; ++a) {
    if (in.shape[a] != v.shape[a] || in.stride[a] != v.stride[a] || in.valid[a] != v.valid[a]) return false;
  }
  return in.whole == (v.fully_valid || readable_region(v).elements() == v.elements()) &&
         in.plain == plain_record(v);
}

ChainInput describe_value(const ChainShape& s, DType dtype) {
  ChainInput in;
  in.dtype = dtype;
  in.rank = s.rank;
  std::copy_n(s.shape, s.rank, in.shape);
  std::copy_n(s.valid, s.rank, in.valid);
  int64_t stride = 1;
  for (int a = s.rank - 1; a >= 0; --a) {
    in.stride[a] = stride;
    stride *= s.shape[a];
  }
  return in;
}

ChainPlan plan_chain(const Chain& chain, std::span<const ChainInput> inputs) {
  ChainPlan plan;
  const size_t values = inputs.size() + chain.steps.size();
  plan.shapes.resize(values);
  plan.parts.assign(values, ChainPart::kNone);
  plan.before.assign(chain.steps.size(), 0);
  plan.dtypes.resize(values);
  for (size_t i = 0; i < inputs.size(); ++i) {
    ChainShape& s = plan.shapes[i];
    s.rank = inputs[i].rank;
    std::copy_n(inputs[i].shape, kMaxRank, s.shape);
    std::copy_n(inputs[i].valid, kMaxRank, s.valid);
    plan.dtypes[i] = inputs[i].dtype;
  }
  for (size_t k = 0; k < chain.steps.size(); ++k) {
    const ChainStep& step = chain.steps[k];
    if (step.rhs >= 0 && chain_op(step.op).kind != ChainKind::kReduce &&
        !operands_fit(step.op, extents(plan.shapes[static_cast<size_t>(step.lhs)]),
                      extents(plan.shapes[static_cast<size_t>(step.rhs)]))) {
      return plan;  // one at a time, so that the fault names its operation
    }
    plan.shapes[inputs.size() + k] = shape_of_step(chain.steps[k], plan);
    plan.dtypes[inputs.size() + k] = chain.steps[k].dtype;
  }
  // The main matrix is the largest value that a step makes, or that a step reads to reduce.
  size_t main = 0;
  int64_t most = -1;
  for (size_t v = 0; v < values; ++v) {
    const int64_t n = product(plan.shapes[v].shape, plan.shapes[v].rank);
    if (n > most || (n == most && plan.shapes[v].rank > plan.shapes[main].rank)) {
      most = n;
      main = v;
    }
  }
  const ChainShape& m = plan.shapes[main];
  if (m.rank == 0) return plan;
  for (size_t v = 0; v < values; ++v) {
    plan.parts[v] = part_of(plan.shapes[v], m);
    if (plan.parts[v] == ChainPart::kNone) return plan;
  }
  // Valid region: that of the full results; every one must agree, as strips cover one rectangle.
  const ChainShape* region = nullptr;
  bool reduces = false, narrow = false;
  for (size_t k = 0; k < chain.steps.size(); ++k) {
    const ChainStep& step = chain.steps[k];
    const auto v = inputs.size() + k;
    const ChainPart part = plan.parts[v];
    const ChainKind kind = chain_op(step.op).kind;
    if (chain_op(step.op).binary == BinaryOp::kExpDif && step.rhs >= 0 &&
        compute_dtype(step.dtype, {plan.dtypes[static_cast<size_t>(step.lhs)],
                                   plan.dtypes[static_cast<size_t>(step.rhs)]}) != step.dtype) {
      return plan;  // the difference is rounded to the result's dtype first (O-1003)
    }
    if (part == ChainPart::kRow || part == ChainPart::kOne) {
      // Needs no row of the matrix: done once before the loop, if its operands allow.
      for (const int32_t operand : {step.lhs, step.rhs}) {
        if (operand < 0) continue;
        const ChainPart p = plan.parts[static_cast<size_t>(operand)];
        if (p != ChainPart::kRow && p != ChainPart::kOne) return plan;
      }
      plan.before[k] = 1;
      continue;
    }
    const ChainShape* full = nullptr;
    if (kind == ChainKind::kReduce) {
      reduces = true;
      if (plan.parts[static_cast<size_t>(step.lhs)] != ChainPart::kFull || part != ChainPart::kColumn)
        return plan;
      full = &plan.shapes[static_cast<size_t>(step.lhs)];
    } else if (part == ChainPart::kFull) {
      full = &plan.shapes[v];
    }
    if (full != nullptr) {
      if (region != nullptr && !equal(region->valid, full->valid, full->rank)) return plan;
      region = full;
    }
  }
  if (region == nullptr) return plan;
  for (size_t v = 0; v < values; ++v) {
    const ChainShape& s = plan.shapes[v];
    const bool step = v >= inputs.size();
    if (plan.parts[v] == ChainPart::kColumn) {
      narrow = true;
      if (step && !equal(s.valid, region->valid, s.rank - 1)) return plan;
      if (step && s.valid[s.rank - 1] != 1) return plan;
    }
    if (plan.parts[v] == ChainPart::kRow) narrow = true;
    if (step) continue;
    const ChainInput& in = inputs[v];
    if (!has_row_pitch(in, plan.parts[v]) || !in.plain || !covers(in, *region)) return plan;
    // Cells beyond the valid region of a window may not exist.
    if (!in.whole && !(plan.parts[v] == ChainPart::kFull && equal(s.valid, region->valid, s.rank)))
      return plan;
  }
  const bool full_region = equal(region->valid, region->shape, region->rank);
  if (region->rank > 2 && !full_region) return plan;
  plan.columns = region->valid[region->rank - 1];
  plan.rows = product(region->valid, region->rank - 1);
  if (plan.rows == 0 || plan.columns == 0) return plan;
  plan.flat = full_region && !reduces && !narrow;
  for (size_t v = 0; v < inputs.size() && plan.flat; ++v) {
    plan.flat = plan.parts[v] != ChainPart::kFull || packed(inputs[v]);
  }
  if (plan.flat) {
    plan.columns *= plan.rows;
    plan.rows = 1;
  }
  plan.strips = true;
  return plan;
}

}  // namespace pypto::vm
