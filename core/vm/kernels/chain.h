// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/ir/op.h"
#include "core/vm/kernels/kernels.h"
#include "core/vm/view.h"

/// Strip chains: several element-wise operations run strip by strip, so that what passes between them stays
/// in the first-level cache. Every operation still rounds on its own: a chain gives the bits, valid regions
/// and pad modes that its operations give one by one (02 O-311).
namespace pypto::vm {

/// Most inputs, scalars and outputs of one chain.
inline constexpr int kMaxChainOperands = 16;

/// One operation of a chain. Values are numbered: inputs first, then the results of the steps in order.
struct ChainStep {
  ir::OpId op = {};
  DType dtype = DType::kNone;        ///< of the result
  int32_t lhs = -1;                  ///< value: parameter 0 of the row
  int32_t rhs = -1;                  ///< value: parameter 1, or -1
  int32_t scalar = -1;               ///< index of Chain::scalars that is parameter 1, or -1
  CastMode mode = CastMode::kRound;  ///< `cast` only
  bool is_tile = true;

  bool operator==(const ChainStep&) const = default;
};

struct Chain {
  int32_t inputs = 0;
  std::vector<DType> scalars;  ///< dtypes of the scalar operands
  std::vector<ChainStep> steps;
  std::vector<int32_t> outputs;  ///< values that live on after the chain; results of steps
  /// Chains with the same number other than 0 are equal; saves comparing them.
  uint64_t id = 0;
};
/// A number no other chain of the process has.
uint64_t new_chain_id();

/// Services that a running chain needs; the same as those of OpCall.
class ChainHost {
 public:
  virtual ~ChainHost() = default;
  virtual View alloc(DType dtype, std::span<const int64_t> shape, bool zero) = 0;
  virtual void access(const View& v) = 0;  ///< read of memory that others can see
  virtual void warn(const char* id, std::string text) = 0;
  virtual void report(Diagnostic d) { warn(d.id.c_str(), std::move(d.message)); }
  /// What scalar `i` rests on if its value is unspecified (marks.h), else 0.
  virtual uint8_t scalar_mark(size_t /*i*/) const { return 0; }
  /// Accesses and warnings from here on are those of a step (by Chain::steps).
  virtual void at_step(size_t /*step*/) {}
  /// Whether reads of this input were declared already.
  virtual bool declared(size_t /*input*/) { return false; }
  /// Where output `o` (by Chain::outputs) should be written, a window of the value's rank and shape; false:
  /// into fresh storage. `value` has dtype, shape and valid extents but no storage yet.
  virtual bool place(size_t /*o*/, const View& /*value*/, View* /*target*/) { return false; }
  /// Output `o` will be written to `target`, a window that place() offered.
  virtual void placed(size_t /*o*/, const View& /*target*/) {}
};

/// Whether an operation may be a step. Accepted are the operations without scratch-dependent results or
/// numeric warnings: add(s) sub(s) mul(s) div(s) maximum(s) minimum(s) and the bitwise operations with an
/// array or scalar right operand; neg abs exp log sqrt rsqrt recip sin cos relu not_; lrelu prelu; cast;
/// row_sum row_max row_min row_prod; row_expand* and col_expand* (row_expand_add without lane block). `lhs`
/// and `rhs` are the dtypes of the array operands (kNone when there is none), `scalar` that of a scalar right
/// operand. Integer division is not accepted (it warns).
bool chain_supports(ir::OpId op, DType lhs, DType rhs, DType scalar, DType result);

/// Runs the chain. `results` receives one view per output; where it already holds a view of the output's
/// shape and dtype (a `store` folded into the chain), the valid region is written there instead and the view
/// is kept as it is (the caller declares that write). Inputs of any shape are accepted, on chip or not (a
/// folded `load` is a window of global memory): the chain is cut where the matrix or its valid region
/// changes, and steps that fit no strips run as operations. Throws Failure as those do.
void run_chain(const Chain& chain, std::span<const View* const> inputs, std::span<const Scalar> scalars,
               ChainHost& host, std::span<View> results);

/// Whether the chain would run in strips for these inputs (for tests and the disassembler).
bool chain_runs_in_strips(const Chain& chain, std::span<const View* const> inputs);

}  // namespace pypto::vm
