// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "core/vm/kernels/chain.h"

/// What run_chain decides before the loop over strips. Internal to the chain executor.
namespace pypto::vm {

/// How a value lies relative to the main matrix of the chain ([rows, columns] after merging leading axes).
enum class ChainPart : uint8_t {
  kNone,
  kFull,    ///< [rows, columns]
  kRow,     ///< [1, columns], the same for every row
  kColumn,  ///< [rows, 1]
  kOne,     ///< one element
};

/// Shape and valid extents that the operations would give a value.
struct ChainShape {
  int rank = 0;
  int64_t shape[kMaxRank] = {};
  int64_t valid[kMaxRank] = {};
};

struct ChainPlan {
  bool strips = false;
  int64_t rows = 0, columns = 0;   ///< valid region of the main matrix
  bool flat = false;               ///< everything contiguous: one row of rows * columns
  std::vector<ChainShape> shapes;  ///< per value
  std::vector<ChainPart> parts;    ///< per value
  std::vector<uint8_t> before;     ///< per step: run as an operation before the loop (values without rows)
  std::vector<DType> dtypes;       ///< per value
};

/// All that a plan depends on in an input.
struct ChainInput {
  DType dtype = DType::kNone;
  int32_t rank = 0;
  bool whole =
      true;  ///< every physical cell may be read (02 O-211: a clamped window may overhang its storage)
  bool plain = true;  ///< specified everywhere or nowhere: no record of single cells to hand on (01 L-154)
  int64_t shape[kMaxRank] = {};
  int64_t stride[kMaxRank] = {};
  int64_t valid[kMaxRank] = {};

  bool operator==(const ChainInput&) const = default;
};
ChainInput describe_input(const View& v);
/// Whether describe_input(v) is `in`.
bool described_by(const ChainInput& in, const View& v);
/// A fresh packed value.
ChainInput describe_value(const ChainShape& s, DType dtype);

ChainPlan plan_chain(const Chain& chain, std::span<const ChainInput> inputs);

/// What kind of step an operation is.
enum class ChainKind : uint8_t { kBinary, kUnary, kCast, kReduce, kSpread, kNo };
struct ChainOp {
  ChainKind kind = ChainKind::kNo;
  BinaryOp binary = BinaryOp::kAdd;
  UnaryOp unary = UnaryOp::kNeg;
  ReduceOp reduce = ReduceOp::kSum;
};
ChainOp chain_op(ir::OpId op);

}  // namespace pypto::vm
