// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/base/diagnostic.h"
#include "core/base/span.h"
#include "core/ir/attr.h"
#include "core/ir/enums.h"
#include "core/ir/op.h"
#include "core/ir/type.h"

/// The program representation: typed, structured, with the person's own variables. A variable is a storage
/// cell that statements assign (every assignment of one `Var` has one type, 01 L-83); blocks nest;
/// expressions are trees whose operands are evaluated left to right, innermost first (02 O-114).
namespace pypto::ir {

struct Function;
using FunctionPtr = std::shared_ptr<Function>;

// ------------------------------------------------------------------ variables

enum class VarKind : uint8_t {
  kParam,
  kLocal,
  kLoop,    ///< loop variable, block index, lane index
  kCarry,   ///< name bound by init_values
  kSymbol,  ///< dynamic dimension: INDEX scalar fixed at function entry from an argument's extent
  kTask,    ///< `as tid`
};

struct Var {
  std::string name;  ///< as the user wrote it; unique only together with its function and type
  TypePtr type;
  VarKind kind = VarKind::kLocal;
  Span span;    ///< first definition
  int id = -1;  ///< index in Function::vars
};
using VarPtr = std::shared_ptr<Var>;

// ------------------------------------------------------------------ expressions

enum class ExprKind : uint8_t {
  kInt,     ///< integer or BOOL constant: `int_value`, dtype in `type`; `untyped` for a bare literal
  kFloat,   ///< float constant: `float_value`
  kNone,    ///< invalid task handle
  kString,  ///< text argument
  kVar,     ///< `var`
  kOp,      ///< operation of the table: `op`, `args`, `attrs`
  kCall,   ///< call of `callee` (task, dispatch, sub-worker, group member): `args` in parameter order, `call`
  kTuple,  ///< list or tuple display: `args`; also the value of a multi-result construct
  kItem,   ///< element `int_value` of tuple-valued `args[0]`
  kDType,  ///< compile-time dtype as a call argument; never evaluated
};

/// Extra facts of a call (01 L-130 - L-138, 03 D-30).
struct CallInfo {
  FunctionPtr callee;
  bool submit = false;  ///< pl.submit / pl.spmd_submit: the value is (results..., handle)
  bool spmd = false;
  ExprPtr core_num;  ///< spmd_submit
  bool sync_start = false;
  bool has_deps = false;
  std::vector<ExprPtr> deps;  ///< TASK_ID scalars, TASK_ID arrays (whole), None
  ExprPtr device;             ///< dispatch: logical rank, or null
  ExprPtr predicate;          ///< BOOL comparison `read(T, idx) op const`, or null
  bool allow_early_resolve = false;
  std::vector<bool> no_dep;  ///< per argument
  std::vector<std::string> dumps;
  bool flat_result = false;  ///< `res = pl.submit(...)`: one flat tuple
};

struct Expr {
  ExprKind kind = ExprKind::kNone;
  TypePtr type;
  Span span;
  int64_t int_value = 0;
  double float_value = 0;
  bool untyped = false;  ///< bare literal whose dtype follows its use (01 L-12)
  std::string text;      ///< kString
  VarPtr var;
  OpId op = {};
  AttrMap attrs;
  /// kOp: one entry per parameter of the row (nullptr where absent or held in `attrs`). List parameters are
  /// kTuple.
  std::vector<ExprPtr> args;
  std::shared_ptr<const CallInfo> call;
};

ExprPtr int_const(int64_t value, DType dtype, Span span = {}, bool untyped = false);
ExprPtr bool_const(bool value, Span span = {});
ExprPtr float_const(double value, DType dtype, Span span = {}, bool untyped = false);
ExprPtr none_const(Span span = {});
ExprPtr string_const(std::string text, Span span = {});
ExprPtr var_ref(VarPtr var, Span span = {});
ExprPtr tuple_expr(std::vector<ExprPtr> items, Span span = {});
ExprPtr item_expr(ExprPtr tuple, int index, Span span = {});
ExprPtr op_expr(OpId op, std::vector<ExprPtr> args, AttrMap attrs, TypePtr type, Span span = {});

/// The constant value of an integer/BOOL constant expression, if it is one.
std::optional<int64_t> const_int(const ExprPtr& e);
std::optional<double> const_number(const ExprPtr& e);
/// Folds integer arithmetic on constants; returns an equal expression, simplified (x+0, x*1, (a+b)-a, ...).
ExprPtr simplify(const ExprPtr& e);
/// Whether `e` is an integer conversion that its place asked for and that checks the range at run time (01
/// L-18).
bool is_checked_conversion(const ExprPtr& e);
/// Structural equality of scalar expressions (same variables, same operations), for extents.
bool same_expr(const ExprPtr& a, const ExprPtr& b);

// ------------------------------------------------------------------ statements

enum class StmtKind : uint8_t {
  kAssign,  ///< targets = value. One target, or one per element of a tuple value
  kEval,    ///< expression statement
  kFor,
  kWhile,
  kIf,
  kScope,
  kReturn,  ///< `values`
  kBreak,
  kContinue,
  kYield,    ///< targets = pl.yield_(values): hands values over to the targets without copying (01 L-83)
  kComment,  ///< printed only: static facts worth showing
};

enum class ScopeKind : uint8_t {
  kIncore,     ///< pl.at(CORE_GROUP): one task
  kHierarchy,  ///< pl.at(other level): runs in order with its surroundings
  kCluster,
  kSpmd,  ///< `with pl.spmd(n)` or `for i in pl.spmd(n)` (then `loop_var` is set)
  kAuto,
  kManual,
  kSplitAiv,  ///< for lane in pl.split_aiv(2, mode)
};

struct Stmt;
using StmtPtr = std::shared_ptr<Stmt>;
using Block = std::vector<StmtPtr>;

/// One explicit carry: `var` starts as `init`; the loop's kYield statement hands over the next value to `var`
/// and defines `result` (both the same variable when the loop rebinds the name directly).
struct Carry {
  VarPtr var;
  ExprPtr init;
  VarPtr result;  ///< variable that holds the value after the loop (yield target), or null
};

struct ScopeInfo {
  ScopeKind kind = ScopeKind::kIncore;
  Level level = Level::kNone;
  Role role = Role::kNone;
  std::string name_hint;
  bool has_split = false;
  SplitMode split = SplitMode::kNone;
  int slot_num = 0;  ///< cross_core_slot, 0 = not given
  bool has_deps = false;
  std::vector<ExprPtr> deps;
  std::vector<VarPtr> no_dep_args;
  std::vector<VarPtr> dumps;
  bool allow_early_resolve = false;
  bool windowize = false;
  VarPtr task;       ///< `as tid`
  ExprPtr core_num;  ///< spmd
  bool sync_start = false;
  ExprPtr predicate;
  VarPtr loop_var;                    ///< spmd block index, split_aiv lane
  SplitMode mode = SplitMode::kNone;  ///< split_aiv
};

struct Stmt {
  StmtKind kind = StmtKind::kEval;
  Span span;
  std::vector<VarPtr> targets;  ///< kAssign, kYield
  TypePtr annotation;           ///< kAssign with an annotation that adds facts, else null
  ExprPtr value;                ///< kAssign, kEval; kIf, kWhile: condition
  std::vector<ExprPtr> values;  ///< kReturn, kYield
  // kFor
  ForKind for_kind = ForKind::kSequential;
  VarPtr loop_var;
  ExprPtr start, stop, step;
  int stage = 0;
  std::vector<std::pair<std::string, std::string>> loop_attrs;  ///< printed form of attrs={...}
  // kFor, kWhile
  bool explicit_carry = false;  ///< written with init_values
  std::vector<Carry> carries;
  Block body;       ///< kFor, kWhile, kScope; kIf: then arm
  Block else_body;  ///< kIf
  bool has_else = false;
  std::shared_ptr<ScopeInfo> scope;  ///< kScope
  std::string text;                  ///< kComment
};

// ------------------------------------------------------------------ functions

struct FunctionAttr {
  std::string key;
  std::string value;  ///< printed Python text
  int64_t int_value = 0;
};

struct Function {
  std::string name;
  FunctionType type = FunctionType::kOpaque;
  Level level = Level::kNone;
  Role role = Role::kNone;
  std::vector<VarPtr> params;
  std::vector<ParamDirection> directions;  ///< as declared
  /// As used (01 L-48, 03 T-3): filled by sema after the body is known. Orders tasks.
  std::vector<ParamDirection> effective_directions;
  std::vector<VarPtr> symbols;  ///< dynamic dimensions, bound at entry
  std::vector<TypePtr> return_types;
  /// For each return value: index of the parameter whose storage it is (01 L-50), or -1.
  std::vector<int> return_params;
  bool has_return_annotation = false;
  Block body;
  std::vector<VarPtr> vars;  ///< all variables; Var::id indexes it
  std::vector<FunctionAttr> attrs;
  bool auto_scope = true;
  bool strict_ssa = false;
  Span span;
  // SubWorker
  bool is_sub_worker = false;
  bool requires_runtime_binding = false;
  int host_callable = -1;  ///< index of the Python callable kept by the embedder
  // split_aiv / group / kernels
  bool uses_cube = false;  ///< filled by passes
  bool uses_vector = false;
  std::string external_source;
  bool opaque_kernel = false;  ///< an Opaque function whose body is a kernel (01 L-44)

  bool is_kernel() const {
    return opaque_kernel || type == FunctionType::kInCore || type == FunctionType::kAIC ||
           type == FunctionType::kAIV;
  }
  bool is_host() const { return level >= Level::kHost; }
  VarPtr add_var(std::string name, TypePtr type, VarKind kind, Span span);
  const FunctionAttr* attr(std::string_view key) const;
};

/// A compiled-in scalar of a JIT entry: the parameter stays in the signature (04 JIT-20).
struct BakedScalar {
  int param = -1;
  int64_t int_value = 0;
  double float_value = 0;
};

/// A program.
struct Module {
  std::string name;
  Arch arch = Arch::kA2A3;
  std::vector<FunctionPtr> functions;
  std::vector<Diagnostic> warnings;  ///< collected while building and compiling
  /// Kernels that cannot be generated, found while reading (01 L-54); raised when compiling (04 CMP-11).
  std::vector<Diagnostic> codegen_errors;
  std::vector<BakedScalar> baked;  ///< of the entry
  bool lowered = false;

  FunctionPtr find(std::string_view name) const;
  /// The entry (04 PRG-2): host orchestrator if any, else the only Orchestration function, else the only
  /// function. nullptr when ambiguous (multi-entry) or empty.
  FunctionPtr entry() const;
};
using ModulePtr = std::shared_ptr<Module>;

}  // namespace pypto::ir
