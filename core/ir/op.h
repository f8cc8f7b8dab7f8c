// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/ir/attr.h"

namespace pypto::ir {

/// One enumerator per row of ops.def.
enum class OpId : uint16_t {
#define PYPTO_OP(id, ...) k_##id,
#include "core/ir/ops.def"
#undef PYPTO_OP
  kCount,
};

/// Namespaces in which a row's name can be called (bit set). `kFlat` = pl.NAME, and so on.
enum OpForm : uint32_t {
  kFormFlat = 1u << 0,       ///< pl.NAME
  kFormTensor = 1u << 1,     ///< pl.tensor.NAME
  kFormTile = 1u << 2,       ///< pl.tile.NAME
  kFormSystem = 1u << 3,     ///< pl.system.NAME
  kFormArray = 1u << 4,      ///< pl.array.NAME
  kFormPrefetch = 1u << 5,   ///< pl.prefetch.NAME
  kFormPld = 1u << 6,        ///< pld.NAME
  kFormPldTensor = 1u << 7,  ///< pld.tensor.NAME
  kFormPldTile = 1u << 8,    ///< pld.tile.NAME
  kFormPldSystem = 1u << 9,  ///< pld.system.NAME
  kFormInternal = 1u << 10,  ///< no source spelling: Python operators, printed primitives
};

/// Where a row may be used (bit set, 02 O-204, 03 section 6.1).
enum OpPlace : uint8_t {
  kPlaceKernel = 1,  ///< K
  kPlaceOrch = 2,    ///< O: device orchestration
  kPlaceHost = 4,    ///< H: host orchestrator
  kPlaceAny = 7,
};

/// Alias class (02 section 2.4).
enum class AliasClass : uint8_t {
  kValue,    ///< fresh result
  kView,     ///< result shares the cells of operand 0
  kInPlace,  ///< operand `inplace_param` is updated; the result is that operand
  kNone,     ///< no result or scalar result
};

/// Effects of a row on operands' memory, per parameter: '-' none, 'r' reads, 'w' writes, 'x' reads and
/// writes, 'a' atomic add, 'R'/'W'/'A' the same at a peer, 'n' raises a signal at a peer, 's' awaits a
/// signal. The string has one letter per parameter of the row's first signature; missing letters mean '-'.
using EffectString = const char*;

/// Cost class for the timing model and for the emitter's grouping into strips.
enum class CostClass : uint8_t {
  kScalar,
  kElementwise,
  kReduce,
  kExpand,
  kMove,
  kMatmul,
  kGather,
  kSort,
  kSync,
  kComm,
  kFree
};

/// The derived record of one row of ops.def.
struct OpRow {
  OpId id;
  const char* name;  ///< spelling below its namespaces
  uint32_t forms;
  uint8_t places;
  AliasClass alias;
  int inplace_param;  ///< parameter updated by an in-place operation, else -1
  EffectString effects;
  CostClass cost;
  /// Signatures as Python parameter lists ("lhs, rhs, cmp_type=0"). `sig` is the flat one, also used for
  /// every namespace that has no other; `sig_tensor` / `sig_tile` override it when not empty. All three have
  /// the same number and order of parameters (names and defaults may differ), except that a form may leave
  /// out trailing or keyword parameters.
  const char* sig;
  const char* sig_tensor;
  const char* sig_tile;
  const char* doc;
};

const OpRow& op_row(OpId id);
/// Number of rows.
inline constexpr int kOpCount = static_cast<int>(OpId::kCount);

/// Finds the row for NAME in a namespace (exactly one OpForm bit); nullptr if there is none. Aliases such as
/// `create_tile` / `create` are separate names of the alias table in op.cpp.
const OpRow* find_op(OpForm form, std::string_view name);
/// All names callable in a namespace, sorted (for "did you mean" and for the stubs).
std::vector<std::string> op_names(OpForm form);

/// A parameter of a signature.
struct OpParam {
  std::string name;
  bool has_default = false;
  std::string default_text;  ///< Python literal text, "None" included
  bool keyword_only = false;
};
/// Parsed signature of a row for a form; parsed once and cached.
const std::vector<OpParam>& op_params(const OpRow& row, OpForm form);
/// Position of a parameter by name in the row's flat signature (or any of its forms), -1 if absent.
int op_param_index(const OpRow& row, std::string_view name);

}  // namespace pypto::ir
