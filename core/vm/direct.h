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

/// Runs direct operations and remembers how. While nothing but these and scalar code runs, and results
/// overwrite the storage that their registers hold already, an operation that ran before finds everything as
/// it was.
class DirectRunner {
 public:
  explicit DirectRunner(Frame& frame) : frame_(frame) {}

  /// Runs operation `index` of the function if its operands are plain tiles; false: nothing was done.
  bool run(const DirectOp& op, int32_t index) {
    Ran& r = ran_[static_cast<size_t>(index) % kSlots];
    if (r.index == index && r.version == version_) {
      r.run(op, frame_);
      return true;
    }
    return first(op, index, r);
  }

 private:
  struct Ran {
    int32_t index = -1;
    uint32_t version = 0;
    const void* lhs = nullptr;
    const void* rhs = nullptr;
    void* out = nullptr;
    size_t count = 0;

    void run(const DirectOp& op, const Frame& frame) const;
  };
  static constexpr size_t kSlots = 8;

  bool first(const DirectOp& op, int32_t index, Ran& r);
  bool matmul(const DirectOp& op);

  Frame& frame_;
  uint32_t version_ = 1;  ///< of the registers: changes when one gets other storage
  Ran ran_[kSlots];
};

}  // namespace pypto::vm
