// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace pypto::ir {

// Values are those of the public enums (01 L-44, L-45, L-142; 03 section 2.2).
enum class FunctionType : uint8_t {
  kOpaque,
  kOrchestration,
  kInCore,
  kAIC,
  kAIV,
  kGroup,
  kSpmd,
  kInline,
  kGraph
};
enum class Level : int8_t {
  kNone = -1,
  kAIV = 0,
  kAIC,
  kCoreGroup,
  kChipDie,
  kChip,
  kHost,
  kCluster0,
  kCluster1,
  kCluster2,
  kGlobal
};
enum class Role : int8_t { kNone = -1, kOrchestrator = 0, kSubWorker = 1 };
enum class SplitMode : uint8_t { kNone, kUpDown, kLeftRight };
enum class MemorySpace : int8_t {
  kUnset = -1,
  kDDR = 0,
  kVec,
  kMat,
  kLeft,
  kRight,
  kAcc,
  kBias,
  kScalarLocal,
  kLeftScale,
  kRightScale
};
enum class ParamDirection : uint8_t { kIn, kOut, kInOut };
enum class TensorLayout : uint8_t { kND, kDN, kNZ, kMxAZZ, kMxBNN };
enum class TileLayout : uint8_t { kNoneBox, kRowMajor, kColMajor };
enum class PadValue : uint8_t { kNull, kZero, kMax, kMin };
enum class CompactMode : uint8_t { kNull, kNormal };
enum class AtomicType : uint8_t { kNone, kAdd };
enum class PipeType : uint8_t { kMTE1, kMTE2, kMTE3, kM, kV, kS, kFix, kAll };
enum class NotifyOp : uint8_t { kAtomicAdd, kSet };
enum class WaitCmp : uint8_t { kEq, kGe };
enum class ReduceOp : uint8_t { kSum, kMax, kMin, kProd };
enum class ForKind : uint8_t { kSequential, kParallel, kUnroll, kPipeline };
enum class ScopeMode : uint8_t { kAuto, kManual };

/// Architecture a program is compiled for.
enum class Arch : uint8_t { kA2A3, kA5 };

}  // namespace pypto::ir
