// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/base/diagnostic.h"
#include "core/ir/op.h"
#include "core/vm/view.h"

namespace pypto::vm {

/// What an executed operation tells the interpreter.
enum class ExecStatus : uint8_t {
  kDone,
  kBlocked,  ///< nothing was done; execute the same instruction again when the fiber is resumed
  kYield,    ///< done, but end this fiber's round now
};

/// How an operation touches memory that others can see; fed to bounds, dependency and race checks.
enum class AccessKind : uint8_t { kRead, kWrite, kAtomic };

/// One execution of one operation: operands by parameter position of its row, attributes, results, services.
/// Implementations throw Failure for faults (class kOutOfBoundsError, kProgramFault, ...): the interpreter
/// adds rank, core, kernel, block and source line.
class OpCall {
 public:
  virtual ~OpCall() = default;

  ir::OpId op = {};
  const ir::AttrMap* attrs = nullptr;

  // Operands. Index = position in the row's parameter list (attributes hold their place).
  virtual bool has(int param) const = 0;
  /// Tensor or tile operand (kinds are static, so no check is needed).
  virtual const View& view(int param) const = 0;
  virtual bool is_scalar(int param) const = 0;
  virtual Scalar scalar(int param) const = 0;
  virtual DType scalar_dtype(int param) const = 0;
  int64_t integer(int param) const { return scalar(param).i; }
  /// List operand (shape, offsets, ...) evaluated to integers.
  virtual std::span<const int64_t> list(int param) const = 0;

  // Results; most operations have one (k = 0).
  virtual DType result_dtype(int k = 0) const = 0;
  /// Whether result k is a Tile (else a Tensor) and its memory space.
  virtual bool result_is_tile(int k = 0) const = 0;
  virtual void set_result(View value, int k = 0) = 0;
  virtual void set_result(Scalar value, int k = 0) = 0;

  /// Whether the operation runs in the control plane (orchestration) instead of a kernel (02 O-211.4).
  virtual bool in_control_plane() const { return false; }

  // Services.
  /// A fresh packed on-chip buffer with the given extents, fully valid. `zero`: contents must be zero
  /// (unwritten); otherwise the caller writes every cell of it (or calls mark_unwritten).
  virtual View alloc(DType dtype, std::span<const int64_t> shape, bool zero) = 0;
  /// Declares an access to memory that is not private to the block; a no-op for on-chip views. The region is
  /// the valid region of `v`.
  virtual void access(const View& v, AccessKind kind) = 0;
  /// Collected warning of the run (04 LOG-5), once per site: `id` such as "W-NUMERIC".
  virtual void warn(const char* id, std::string text) = 0;
  /// The same for a report with notes and a hint.
  virtual void report(Diagnostic d) { warn(d.id.c_str(), std::move(d.message)); }
  /// What the scalar operand rests on if its value is unspecified (marks.h), else 0.
  virtual uint8_t scalar_mark(int /*param*/) const { return 0; }
  /// Scalar result 0 was read from an unspecified cell; `text` describes the cell.
  virtual void mark_scalar(uint8_t /*mark*/, std::string /*text*/) {}
  /// Name of an operand as the user wrote it, for messages.
  virtual std::string operand_name(int param) const = 0;

  // Attribute helpers.
  int64_t attr_int(ir::AttrKey key, int64_t fallback = 0) const { return attrs->get_int(key, fallback); }
  double attr_float(ir::AttrKey key, double fallback = 0) const { return attrs->get_float(key, fallback); }
  bool has_attr(ir::AttrKey key) const { return attrs->find(key) != nullptr; }
};

/// The implementation of an operation.
using ExecFn = ExecStatus (*)(OpCall&);

/// The executor of an operation, or nullptr (operations that the emitter or the machine handles themselves).
ExecFn exec_function(ir::OpId op);

}  // namespace pypto::vm
