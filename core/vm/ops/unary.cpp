// SPDX-License-Identifier: Apache-2.0

// Executors of chapter 02 section 10 (unary arithmetic), `not_` of section 12 and `relu` of section 14.
#include <utility>

#include "core/vm/ops/elementwise.h"
#include "core/vm/ops/register.h"

namespace pypto::vm {
namespace {

using ir::OpId;

template <UnaryOp kOp>
ExecStatus exec_unary(OpCall& call) {
  const DType dtype = call.result_dtype();
  if (const View& v = call.view(0); plain_tile(v, dtype)) {
    if (const UnaryKernel kernel = unary_kernel(kOp, dtype)) {
      View out = plain_result(call, dtype, v);
      kernel(v.data(), out.data(), static_cast<size_t>(v.elements()));
      call.set_result(std::move(out));
      return ExecStatus::kDone;
    }
  }
  const Input in(call, 0, compute_dtype(dtype, {call.view(0).dtype}));
  const View out = elementwise_result(call, dtype, shape_of(in.view()), in.view());
  apply_unary(call, kOp, in, out);
  call.set_result(out);
  return ExecStatus::kDone;
}

/// Integer 1 / x (O-306 for 0), else as the other unary operations.
ExecStatus exec_recip(OpCall& call) {
  const DType dtype = call.result_dtype();
  if (is_float(dtype)) return exec_unary<UnaryOp::kRecip>(call);
  const Input in(call, 0, dtype);
  const View out = elementwise_result(call, dtype, shape_of(in.view()), in.view());
  Walk walk = walk_result(out);
  in.add_to(walk, shape_of(out));
  walk.collapse();
  bool zero = false;
  const auto width = static_cast<size_t>(dtype_bytes(dtype));
  walk.rows([&](uint8_t* const* p, int64_t n) {
    for (int64_t i = 0; i < n && !zero; ++i)
      zero = read_integer(dtype, p[1] + static_cast<size_t>(i) * width) == 0;
  });
  if (zero) {
    call.warn("W-NUMERIC",
              "recip: '" + call.operand_name(0) +
                  "' holds the integer 0, whose reciprocal is unspecified; cast to a float dtype first");
  }
  apply_unary(call, UnaryOp::kRecip, in, out);
  call.set_result(out);
  return ExecStatus::kDone;
}

}  // namespace

void register_unary(ExecTable& t) {
  t.set(OpId::k_neg, &exec_unary<UnaryOp::kNeg>);
  t.set(OpId::k_abs, &exec_unary<UnaryOp::kAbs>);
#define PYPTO_FLOAT_UNARY(id, Name, body, definition) t.set(OpId::k_##id, &exec_unary<UnaryOp::k##Name>);
#include "core/ir/float_unary.def"
#undef PYPTO_FLOAT_UNARY
  t.set(OpId::k_log, &exec_unary<UnaryOp::kLog>);
  t.set(OpId::k_rsqrt, &exec_unary<UnaryOp::kRsqrt>);
  t.set(OpId::k_tile_rsqrt, &exec_unary<UnaryOp::kRsqrt>);
  t.set(OpId::k_recip, &exec_recip);
  t.set(OpId::k_sin, &exec_unary<UnaryOp::kSin>);
  t.set(OpId::k_cos, &exec_unary<UnaryOp::kCos>);
  t.set(OpId::k_relu, &exec_unary<UnaryOp::kRelu>);
  t.set(OpId::k_not_, &exec_unary<UnaryOp::kNot>);
}

}  // namespace pypto::vm
