// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

/// FP32 steps that hand a value on in registers: a chain's neighbours are run without storing what passes
/// between them. Each step rounds on its own, with the same instructions as the row kernels, so the bits are
/// the same.
namespace pypto::vm {

/// `acc` is the value in registers, `x` the operand.
enum class FuseOp : uint8_t {
  kAdd,
  kAddRight,  ///< acc + x, x + acc (they differ in which NaN is handed on)
  kSub,
  kSubRight,  ///< acc - x, x - acc
  kMul,
  kMulRight,
  kDiv,
  kDivRight,
  kMax,
  kMaxRight,
  kMin,
  kMinRight,
  kSquare,  ///< acc * acc
  kDouble,  ///< acc + acc
  kNeg,
  kAbs,
  kExp,
  kLog,
  kSqrt,
  kRsqrt,
  kRecip,
  kRelu,
  kStore,  ///< x = acc
};

struct FuseStep {
  FuseOp op = FuseOp::kAdd;
  bool one = false;       ///< the operand is a single element
  float* data = nullptr;  ///< operand, or where kStore writes
};

/// out[i] = steps applied to first[i] (or to *first when `first_one`), for i < n. A value that a step stores
/// may be an operand of a later step; `out` must not be an operand.
void run_fused(const float* first, bool first_one, std::span<const FuseStep> steps, float* out, size_t n);

}  // namespace pypto::vm
