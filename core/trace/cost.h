// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "core/base/dtype.h"
#include "core/ir/op.h"
#include "core/trace/params.h"
#include "core/vm/view.h"

/// Durations of single instructions, in ns (05 H-65 - H-70). Nothing here knows what else runs.
namespace pypto::trace {

/// Valid extent of a vector instruction (05 H-65).
struct Extent {
  int64_t rows = 0, columns = 0;  ///< vr x vc
  int64_t bytes = 4;              ///< of the widest operand element
  bool contiguous = true;         ///< vc is the physical width of every operand
  int64_t blocks() const;         ///< n
  int64_t repeats() const;        ///< R
  bool tail() const;
  bool empty() const { return rows <= 0 || columns <= 0; }
};
/// The extent of an operation over these operands; leading axes count as rows. The first decides the extent.
Extent extent_of(std::span<const vm::View* const> operands);

/// A vector operation. `extent` is that of its full-size operand: of a reduction the input, of an expansion
/// the result; `dtype` is the element type of the first operand, `to` that of the result.
double vector_time(const Params& p, ir::OpId op, const Extent& extent, DType dtype, DType to,
                   bool high_precision = false);

/// The operation that a right operand which is a scalar makes of `op`: adds of add.
ir::OpId scalar_form(ir::OpId op);

/// One table row with the extent.
double linear_time(const Params& p, VectorRow row, const Extent& extent);
double mrgsort_time(const Params& p, int64_t merges, int64_t pairs);

/// Paths of H-68.
enum class Path : uint8_t {
  kGmVec,
  kGmMat,
  kVecGm,
  kMatGm,
  kMatLeft,
  kMatRight,
  kMatBias,
  kVecMat,
  kL1Fill,
};
struct PathCost {
  double alpha = 0;  ///< ns
  double rate = 1;   ///< bytes per ns
};
PathCost path_cost(const Params& p, Path path);

/// The bytes that a transfer moves on the GM side.
struct Transfer {
  int64_t bytes = 0;
  int64_t row = 0;       ///< of one contiguous run
  bool adjacent = true;  ///< runs follow each other without gaps
};
Transfer transfer_of(const vm::View& gm);
/// q of H-68.
double row_factor(const Params& p, const Transfer& t);
double transfer_time(const Params& p, Path path, const Transfer& t);

/// Drain of an m x n accumulator to elements of `bytes` bytes (H-69).
double fixpipe_time(const Params& p, int64_t m, int64_t n, int64_t bytes);
/// One matrix instruction; `bits` of an element of the left operand (H-70).
double matmul_time(const Params& p, int64_t m, int64_t k, int64_t n, int bits);

/// A remote read and the local store of one piece of a `get`, one after the other (H-60, H-73).
double get_piece_time(const Params& p, int64_t bytes);
/// An asynchronous transfer by the DMA engine.
double sdma_time(const Params& p, int64_t bytes);

}  // namespace pypto::trace
