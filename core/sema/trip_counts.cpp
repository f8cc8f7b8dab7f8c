// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/sema/builder.h"

/// Loops that provably run at least once (01 L-85).
namespace pypto::sema {

/// Least value an integer expression can have, where that is known (01 L-85: rank, block and core counts are
/// >= 1).
std::optional<int64_t> FunctionBuilder::lower_bound(const ExprPtr& e) const {
  if (!e) return std::nullopt;
  if (const auto c = ir::const_int(e)) return c;
  if (e->kind == ir::ExprKind::kVar) {
    for (const Frame* f = frame_; f; f = f->parent) {
      for (const auto& [name, b] : f->flow.names) {
        if (b->kind == Binding::Kind::kVar && b->var == e->var) return b->lower;
      }
    }
    return std::nullopt;
  }
  if (e->kind != ir::ExprKind::kOp) return std::nullopt;
  const auto arg = [&](size_t i) { return i < e->args.size() ? lower_bound(e->args[i]) : std::nullopt; };
  switch (e->op) {
    case ir::OpId::k_world_size:
    case ir::OpId::k_nranks:
    case ir::OpId::k_get_block_num:
    case ir::OpId::k_available_cluster_count:
    case ir::OpId::k_available_aiv_count:
      return 1;
    case ir::OpId::k_rank:
    case ir::OpId::k_get_block_idx:
    case ir::OpId::k_get_subblock_idx:
    case ir::OpId::k_dim:
      return 0;
    case ir::OpId::k_scalar_cast:
    case ir::OpId::k_cast:
      return is_int(e->type->dtype) ? arg(0) : std::nullopt;
    case ir::OpId::k_scalar_add: {
      const auto a = arg(0), b = arg(1);
      if (a && b) return *a + *b;
      return std::nullopt;
    }
    case ir::OpId::k_scalar_sub: {
      const auto a = arg(0);
      const auto b = ir::const_int(e->args[1]);
      if (a && b) return *a - *b;
      return std::nullopt;
    }
    case ir::OpId::k_scalar_mul: {
      const auto a = arg(0), b = arg(1);
      if (a && b && *a >= 0 && *b >= 0) return *a * *b;
      return std::nullopt;
    }
    case ir::OpId::k_scalar_floordiv: {
      const auto a = arg(0);
      const auto b = ir::const_int(e->args[1]);
      if (a && b && *a >= 0 && *b > 0) return *a / *b;
      return std::nullopt;
    }
    case ir::OpId::k_max: {
      const auto a = arg(0), b = arg(1);
      if (a && b) return std::max(*a, *b);
      return a ? a : b;
    }
    case ir::OpId::k_min: {
      const auto a = arg(0), b = arg(1);
      if (a && b) return std::min(*a, *b);
      return std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

bool FunctionBuilder::at_least_once(const ExprPtr& start, const ExprPtr& stop, const ExprPtr& step) const {
  const auto a = ir::const_int(start);
  const auto s = ir::const_int(step);
  if (!s || *s == 0) return false;
  const auto b = ir::const_int(stop);
  if (a && b) return *s > 0 ? *a < *b : *a > *b;
  if (*s > 0) {
    if (a) {
      const auto low = lower_bound(stop);
      return low && *low > *a;
    }
    // start .. start + n
    const auto n = ir::const_int(ir::simplify(ir::infer_scalar(ir::OpId::k_scalar_sub, stop, start, {})));
    return n && *n > 0;
  }
  return false;
}

}  // namespace pypto::sema
