// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "core/vm/kernels/kernels.h"

/// Element-wise operations whose kernel is known before the program runs. On packed tiles that are valid
/// throughout they need no walk, no conversion and, in a loop, no fresh storage.
namespace pypto::vm {

struct FunctionCode;
struct Frame;

/// How a kOp instruction runs on plain tiles. Not part of the saved program.
struct DirectOp {
  enum class Kind : uint8_t {
    kNone,    ///< as an operation call only
    kBinary,  ///< two tiles of one shape
    kScalar,  ///< a tile and a scalar
    kUnary,
    kNarrow,  ///< a cast from FP32
    kMatmul,  ///< a fresh product of two matrices
  };
  Kind kind = Kind::kNone;
  DType from = DType::kNone, to = DType::kNone;  ///< of the operands and of the result
  CastMode mode = CastMode::kRound;
  int8_t width = 0;                      ///< bytes of an element of the result
  int32_t lhs = -1, rhs = -1, out = -1;  ///< registers
  union {
    BinaryKernel binary;
    UnaryKernel unary;
    NarrowKernel narrow;
  };
  DirectOp() : binary(nullptr) {}
};

/// Fills OpInsn::direct of a function's operations, for the instruction set in use.
void find_direct(FunctionCode& fn);

/// Runs the operation if its operands are plain tiles; false: nothing was done.
bool run_direct(const DirectOp& op, Frame& frame);

}  // namespace pypto::vm
