// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/vm/kernels/kernels.h"
#include "core/vm/kernels/walk.h"
#include "core/vm/ops/region.h"

/// What element-wise executors share: operands in the dtype an operation computes in, broadcasting (02 O-901,
/// O-902), result shapes and valid regions (O-210), and the loops over rows.
namespace pypto::vm {

/// An array or scalar operand as elements of the computing dtype, readable with one stride per axis.
class Input {
 public:
  /// Operand `param` of a call; declares the read access.
  Input(OpCall& call, int param, DType compute);
  /// A value that was read already; it must outlive this object.
  Input(OpCall& call, const View& value, DType compute);
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  bool is_scalar() const { return scalar_; }
  const View& view() const { return view_; }
  const void* data() const { return scalar_ ? static_cast<const void*>(value_) : view_.data(); }
  DType dtype() const { return dtype_; }
  /// Adds this operand to a walk over `shape` (right-aligned, axes of extent 1 repeat). A fault when run-time
  /// extents do not fit it.
  void add_to(Walk& walk, const Extents& shape) const;
  /// The array operand as it was given, before any conversion.
  const View& source() const { return *source_; }

 private:
  void take(OpCall& call, const View& value);
  [[noreturn]] void misfit(const Extents& shape) const;

  const OpCall* call_ = nullptr;  ///< set with `param_` for operands of the call itself
  int param_ = -1;
  bool scalar_ = false;
  DType dtype_;
  View view_;
  const View* source_ = nullptr;
  alignas(8) uint8_t value_[8] = {};
};

/// Converts a run-time scalar to an element of `dtype` by 02 O-304; warns where a float does not fit an
/// integer.
void scalar_element(OpCall& call, int param, DType dtype, void* element);

/// Rounding of a `cast`, which is stored by name or by code.
CastMode cast_mode(const ir::AttrMap& attrs);

/// NumPy broadcast of two shapes, right-aligned.
Extents broadcast(const Extents& a, const Extents& b);
/// Whether operands of these shapes may meet in `op`: extents that only the run knows are judged here,
/// constant ones by the typer (02 O-901, O-902, O-1201, O-1601).
bool operands_fit(ir::OpId op, const Extents& lhs, const Extents& rhs);
/// The fault of a call whose operands do not fit.
void require_fit(const OpCall& call, const View& lhs, const View& rhs);
/// Valid extents of an operand seen in a broadcast shape: a repeated axis is valid throughout unless it is
/// empty.
Extents broadcast_valid(const View& v, const Extents& shape);

/// The dtype in which an operation with this result and these array operands computes: the result's, except
/// that operands wider than a 16-bit float result (accumulators, 02 O-1802) are not rounded before the
/// operation.
DType compute_dtype(DType result, std::initializer_list<DType> operands);

/// Result of `dtype` for an element-wise operation on `shape` whose first array operand is `first`.
View elementwise_result(OpCall& call, DType dtype, const Extents& shape, const View& first);

/// Whether `v` is one run of specified elements of `dtype` on chip, which needs no walk.
bool plain_tile(const View& v, DType dtype);
/// A result of the shape of a plain tile, whose every cell the caller writes.
View plain_result(OpCall& call, DType dtype, const View& like);

/// out = op(lhs, rhs) over the valid region of `out`; the operands hold the computing dtype, which may be
/// wider than out's (rounded once). Warns about unspecified integer cases (02 O-306, O-1203).
void apply_binary(OpCall& call, BinaryOp op, const Input& lhs, const Input& rhs, const View& out);
/// out = op(in) over the valid region of `out`.
void apply_unary(OpCall& call, UnaryOp op, const Input& in, const View& out);
/// out = in over the valid region of `out`, with broadcasting; dtypes equal.
void apply_copy(const Input& in, const View& out);

/// Walk over the valid region of `out` with out as array 0.
Walk walk_result(const View& out);

}  // namespace pypto::vm
