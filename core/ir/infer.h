// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "core/ir/ir.h"

namespace pypto::ir {

/// Where and for what an operation is being typed.
struct InferContext {
  Arch arch = Arch::kA2A3;
  /// Exactly one OpPlace bit: kPlaceKernel inside kernels and core-group regions, kPlaceOrch, kPlaceHost.
  OpPlace place = kPlaceKernel;
  FunctionType function_type = FunctionType::kOpaque;
  /// Inside a `for lane in pl.split_aiv(2, mode=split_mode)` body: what aiv_shard and aic_gather divide by.
  bool in_split_aiv = false;
  SplitMode split_mode = SplitMode::kNone;
  /// In a for or while loop (host rail: 03 C-55).
  bool in_loop = false;
  /// Receives compile-time warnings (class, text, span filled by the caller of infer_op when missing).
  std::function<void(Diagnostic)> warn;
};

/// An operation call after argument binding. `args` has one entry per parameter of the row's flat signature
/// (op_params(row, kFormFlat)); nullptr = not given (the default applies). How arguments appear:
///   scalar / tensor / tile / array values     any expression of that type
///   int, float, bool literals and folded constants   kInt (`untyped` for bare literals) / kFloat / kInt of
///   BOOL dtype                                     kDType, int_value = code enum member kInt, `text` =
///   "MemorySpace.Vec" etc., int_value = its value str                                       kString None
///   kNone list or tuple                             kTuple
struct OpCallSite {
  const OpRow* row = nullptr;
  OpForm form = kFormFlat;  ///< namespace the user called it in (exactly one bit)
  std::vector<ExprPtr> args;
  Span span;
};

/// How compile-time parameters appear in `attrs` afterwards: enums, dtypes, bools and codes (cmp_type,
/// cmp_mode, mask_pattern, pad_value, atomic, op, cmp) as integers; modes that have names (cast and allreduce
/// `mode`, coalesce, gather_oob, acc_phase, core_type) as strings; `drop_dims` as a list; `value` and
/// `init_value` as an integer for integer dtypes, else as a float. Parameters that may also be run-time
/// scalars (block_len, event_id) are an attribute when constant and an argument otherwise. A scalar_cast with
/// attribute `name` checks the range at run time and names the value so (01 L-18); one without keeps the low
/// bits.
///
/// Types an operation: checks kinds, dtypes, ranks, shapes, places and platform (chapter 02, 03 sections 6
/// and 7), resolves dispatch (tensor or tile form, scalar forms), normalises scalar operands (02 O-120 -
/// O-123), moves compile-time parameters into `attrs` (key = parameter name, defaults filled in where the
/// executor needs them) and returns the kOp expression. Its `args` keep the positions of the row's flat
/// signature. The returned row may differ from the one called (`pl.add` on scalars gives scalar_add,
/// `pl.cast` on a scalar scalar_cast, ...). Throws Failure of class kTypeError or kValueError without
/// location for operand errors, or another class with its final text where a rule names one; the front end
/// adds location and the wrapping of 01 L-179.
ExprPtr infer_op(InferContext& context, const OpCallSite& call);

/// Scalar arithmetic of Python operators (01 L-17, L-18): `op` is one of the scalar_* rows; folds constants.
ExprPtr infer_scalar(OpId op, ExprPtr lhs, ExprPtr rhs, const Span& span);

/// Promotion of two array dtypes (02 O-301); kNone when they do not promote.
DType promote(DType a, DType b);

/// Converts a scalar to another dtype as an argument or element does (01 L-18, L-47): untyped literals adapt;
/// integers of another width are converted with a range check; otherwise throws kTypeError / kParserTypeError
/// naming both.
ExprPtr convert_scalar(ExprPtr value, DType dtype, const std::string& what);

}  // namespace pypto::ir
