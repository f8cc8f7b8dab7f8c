// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/machine/actor.h"
#include "core/machine/core_timer.h"
#include "core/machine/simulation.h"
#include "core/passes/l0_tile.h"

namespace pypto::machine {

using ir::MemorySpace;
using ir::OpId;
using trace::CorePipe;
using trace::Path;
using trace::Touch;
using vm::View;

void CoreTimer::product(const vm::OpCall&, const vm::OpInsn& insn, std::span<const View> results) {
  if (results.empty() || results[0].empty() || results[0].rank < 2) return;
  // One computation of both lanes of a split body.
  if (actor_.side == Actor::Side::kLane1 && actor_.fiber->top().end_pc >= 0) {
    define(results[0], MemorySpace::kAcc);
    return;
  }
  const View& out = results[0];
  const bool mx =
      insn.op == OpId::k_matmul_mx || insn.op == OpId::k_matmul_mx_acc || insn.op == OpId::k_matmul_mx_bias;
  const ir::OpRow& row = ir::op_row(insn.op);
  const int first = row.inplace_param == 0 ? 1 : 0;  // after the accumulator
  const int rhs_param = first + (mx ? 2 : 1);
  const View* lhs = nullptr;
  const View* rhs = nullptr;
  std::vector<Touch> touches;
  std::vector<Dependency> deps;
  const int core = cube_core();
  for (const auto& [param, v] : operands_) {
    if (param == first) lhs = &v;
    if (param == rhs_param) rhs = &v;
  }
  if (!lhs || !rhs || lhs->empty() || rhs->empty()) return;
  const int64_t m = out.valid[out.rank - 2];
  const int64_t n = out.valid[out.rank - 1];
  int64_t batch = 1;
  for (int i = 0; i < out.rank - 2; ++i) batch *= out.valid[i];
  const int64_t lhs_elements =
      lhs->rank >= 2 ? lhs->valid[lhs->rank - 1] * lhs->valid[lhs->rank - 2] : lhs->valid_elements();
  const int64_t k = m > 0 ? lhs_elements / m : 0;
  const int bits = dtype_bits(lhs->dtype);
  const int64_t element = dtype_bytes(lhs->dtype);
  const auto is_in = [&](const View& v, MemorySpace s) { return on_chip(v) && space_of(v) == s; };
  for (const auto& [param, v] : operands_) {
    if (param == first || param == rhs_param || v.empty()) continue;
    if (first == 1 && param == 0) {
      if (is_in(v, MemorySpace::kVec)) clock().storage(touch_of(v, true).storage).space = MemorySpace::kAcc;
      continue;  // the accumulator is the result
    }
    const bool scale = mx && (param == first + 1 || param == rhs_param + 1);
    const Dependency d =
        in(v, scale ? (param == first + 1 ? MemorySpace::kLeftScale : MemorySpace::kRightScale)
                    : MemorySpace::kBias);
    if (d.core >= 0) {
      deps.push_back(d);
    } else if (on_chip(v)) {
      touches.push_back(touch_of(v, false));
    }
  }
  define(out, MemorySpace::kAcc);
  touches.push_back(touch_of(out, true));
  const auto operand = [&](const View& v, MemorySpace space) {
    const Dependency d = in(v, space);
    if (d.core >= 0) {
      deps.push_back(d);
    } else if (on_chip(v)) {
      touches.push_back(touch_of(v, false));
    }
  };
  constexpr int64_t kHalf = 64 * 1024;
  const int64_t acc = p_.arch() == ir::Arch::kA5 ? 4 * kHalf : 2 * kHalf;
  const bool fits = (m * k * element <= kHalf && n * k * element <= kHalf && m * n * 4 <= acc) ||
                    is_in(*lhs, MemorySpace::kLeft) || is_in(*rhs, MemorySpace::kRight);
  if (fits) {
    operand(*lhs, MemorySpace::kLeft);
    operand(*rhs, MemorySpace::kRight);
    run(core, CorePipe::kM, static_cast<double>(batch) * trace::matmul_time(p_, m, k, n, bits), touches, deps,
        row.name);
    return;
  }
  // Cut as the tile chooser says (04 section 23): pieces come from Mat as they are needed.
  operand(*lhs, MemorySpace::kMat);
  operand(*rhs, MemorySpace::kMat);
  passes::L0TileConfig config = passes::l0_config(p_.arch(), !is_float(out.dtype));
  config.M = m;
  config.N = n;
  config.K = k;
  config.bytes_a = config.bytes_b = element;
  passes::L0TileResult tile;
  try {
    tile = passes::choose_l0_tile(config);
  } catch (const Failure&) {
    tile.m = std::min<int64_t>(m, 128);
    tile.n = std::min<int64_t>(n, 128);
    tile.k = std::min<int64_t>(k, 128);
  }
  const auto pieces = [](int64_t whole, int64_t part) {
    return (whole + part - 1) / std::max<int64_t>(part, 1);
  };
  const int64_t rows = pieces(m, tile.m), columns = pieces(n, tile.n), depth = pieces(k, tile.k);
  const double left = trace::transfer_time(p_, Path::kMatLeft, packed(tile.m * tile.k * element));
  const double right = trace::transfer_time(p_, Path::kMatRight, packed(tile.k * tile.n * element));
  const double one = trace::matmul_time(p_, tile.m, tile.k, tile.n, bits);
  const int64_t count = batch * rows * columns * depth;
  constexpr int64_t kOneByOne = 256;
  const int64_t steps = std::min(count, kOneByOne);
  const double share = static_cast<double>(count) / static_cast<double>(steps);
  for (int64_t i = 0; i < steps; ++i) {
    Dependency d;
    d.core = core;
    d.pipe = CorePipe::kMte1;
    d.finish = run(core, CorePipe::kMte1, (left + right) * share, {}, deps, "move",
                   static_cast<int64_t>(share) * (tile.m + tile.n) * tile.k * element);
    run(core, CorePipe::kM, one * share,
        i + 1 == steps ? std::span<const Touch>(touches) : std::span<const Touch>(),
        std::span<const Dependency>(&d, 1), row.name);
  }
}

}  // namespace pypto::machine
