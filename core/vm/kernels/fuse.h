// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/vm/kernels/kernels.h"

/// Float steps that hand a value on in registers: a chain's neighbours are run without storing what passes
/// between them. Each step rounds on its own, with the same instructions as the row kernels, so the bits are
/// the same; 16-bit operands are widened when they are read.
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
  kPass,   ///< acc (a conversion: only the rounding counts)
  kStore,  ///< x = acc
  kLoad,   ///< acc = x
};

/// How elements are stored, and to what a step rounds its value.
enum class FuseType : uint8_t { kFp32, kFp16, kBf16 };

struct FuseStep {
  FuseOp op = FuseOp::kAdd;
  bool one = false;                   ///< the operand is a single element
  FuseType type = FuseType::kFp32;    ///< of the operand or of what kStore writes
  FuseType result = FuseType::kFp32;  ///< what the value is rounded to after the step
  uint8_t* data = nullptr;            ///< operand, or where kStore writes; of the first row
  int64_t pitch = 0;                  ///< bytes from row to row
};

/// An array of the size of a run that is read soon after it: fetched meanwhile.
struct FuseAhead {
  const uint8_t* data = nullptr;
  size_t width = 4;  ///< bytes of an element
};

/// An array that a run of steps starts from or ends in.
struct FuseArray {
  uint8_t* data = nullptr;  ///< of the first row
  FuseType type = FuseType::kFp32;
  bool one = false;    ///< a single element
  int64_t pitch = 0;   ///< bytes from row to row
  FuseAhead ahead[2];  ///< the first without data ends the list
};

/// Rows that a run covers.
struct FuseRows {
  size_t count = 1;
  size_t length = 0;  ///< elements of a row
};

/// out[i] = steps applied to first[i] (or to *first) for every element of every row. A value that a step
/// stores may be an operand of a later step; `out` may be an operand of the same type (each block is read
/// before it is written).
void run_fused(const FuseArray& first, std::span<const FuseStep> steps, const FuseArray& out, FuseRows rows);

/// *out = the reduction of what run_fused would write, row by row, in the order of O-307. Rows are not empty.
void run_fused_reduce(const FuseArray& first, std::span<const FuseStep> steps, ReduceOp op,
                      const FuseArray& out, FuseRows rows);

}  // namespace pypto::vm
