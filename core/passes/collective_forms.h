// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/passes/build.h"

namespace pypto::passes {

/// How one rail runs the collectives: which cell belongs to a rank, and how long the pieces are (03 L-5,
/// L-7).
struct Rail {
  /// Cell of rank `q`: offsets into the signal.
  std::function<std::vector<ir::ExprPtr>(const ir::ExprPtr&)> cell;
  int64_t piece_elements = 0;  ///< pieces of the mesh and of reduce_scatter; 0 = 16384 bytes
  ir::ExprPtr block;           ///< block index and number of blocks of the mesh, null for one block
  int64_t blocks = 1;
};

/// The operands of a collective as the kernel names them.
struct CollectiveCall {
  ir::OpId op = {};
  ir::ExprPtr target;  ///< null for the barrier
  ir::ExprPtr signal;
  ir::ExprPtr input;  ///< local_data / input
  ir::ExprPtr send_counts, recv_counts;
  ir::ReduceOp reduce = ir::ReduceOp::kSum;
  bool ring = false;
  int64_t root = 0;
};

/// Writes the primitives of a collective (03 L-4 to L-6).
void write_collective(CodeBuilder& b, const CollectiveCall& call, const Rail& rail);

bool is_collective(ir::OpId op);
/// The name users know it by ("allreduce").
std::string collective_name(ir::OpId op);
/// Operands and attributes of a collective operation.
CollectiveCall collective_call(const ir::Expr& e);
/// The operand whose storage the result is.
const ir::ExprPtr& collective_result(const ir::Expr& e);

}  // namespace pypto::passes
