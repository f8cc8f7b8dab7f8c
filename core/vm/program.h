// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/span.h"
#include "core/ir/ir.h"
#include "core/vm/direct.h"
#include "core/vm/kernels/chain.h"

/// The executable form of a program: flat register code per function. Saved, loaded and run without Python.
namespace pypto::vm {

/// Register classes. A function has `counts` registers of each class.
enum class RegClass : uint8_t { kScalar, kView, kArray, kNone };

struct Reg {
  RegClass cls = RegClass::kNone;
  int32_t index = -1;
  DType dtype = DType::kNone;  ///< scalars, arrays: static dtype
};

enum class Opcode : uint8_t {
  kNop,
  kConst,   ///< S[dst] = pool scalar [a]
  kMoveS,   ///< S[dst] = S[a]
  kMoveV,   ///< V[dst] = V[a] (hands over the same storage)
  kMoveA,   ///< A[dst] = copy of A[a]
  kShareA,  ///< A[dst] refers to A[a] (by reference)
  kScalar,  ///< S[dst] = scalar operation `sub` (an OpId of a scalar_* row, min, max) of S[a], S[b]; dtype of
            ///< operands
  kCast,    ///< S[dst] = cast S[a] from dtype to dtype2
  kRangeCheck,   ///< fault unless S[a] fits dtype (argument conversion, 01 L-18); `site` names it
  kJump,         ///< pc = a
  kBranchFalse,  ///< if !S[a]: pc = b
  kForTest,      ///< if loop S[a] vs stop S[b] with step S[c] is finished: pc = dst
  kForCheck,     ///< fault if step S[a] == 0
  kOp,           ///< calls.ops[a]
  kCall,   ///< calls[a]: local call of a kernel-local function, or machine call (task, dispatch, sub-worker)
  kDim,    ///< S[dst] = V[a].shape[b]
  kValid,  ///< S[dst] = V[a].valid[b]
  kArrayNew,    ///< A[dst] = array of extent a, zeros / invalid handles
  kArrayGet,    ///< S[dst] = A[a][S[b]]
  kArraySet,    ///< A[dst][S[a]] = S[b]
  kCreate,      ///< V[dst] = create_tensor: creates[a]
  kLanes,       ///< split_aiv: lanes[a]
  kReturn,      ///< leave the function; results are in `FunctionCode::results`
  kScopeBegin,  ///< a: scope kind (ir::ScopeKind kAuto, kManual, kHierarchy); control plane
  kScopeEnd,
  kRelease,  ///< V[a] is dead: drop the reference
  kChain,    ///< chains[a]: fused strip chain
};

/// One instruction; fixed size.
struct Insn {
  Opcode op = Opcode::kNop;
  DType dtype = DType::kNone;
  DType dtype2 = DType::kNone;
  uint8_t flags = 0;
  uint16_t sub = 0;
  int32_t dst = -1, a = -1, b = -1, c = -1;
  int32_t site = -1;  ///< index of FunctionCode::sites
};

/// Where an instruction comes from, for faults and reports.
struct Site {
  Span span;
  std::string what;  ///< variable or operation name as the user wrote it
};

/// Operand of a kOp instruction.
struct Operand {
  enum class Kind : uint8_t { kAbsent, kReg, kList } kind = Kind::kAbsent;
  Reg reg;
  std::vector<Reg> list;  ///< scalar registers
  std::string name;       ///< as the user wrote it
};

struct OpInsn {
  ir::OpId op = {};
  ir::AttrMap attrs;
  std::vector<Operand> operands;  ///< by parameter of the row's flat signature
  std::vector<Reg> results;
  std::vector<uint8_t> result_is_tile;
  std::vector<ir::MemorySpace> result_space;
  DirectOp direct;
};

/// A call of another function of the program.
struct CallInsn {
  int32_t callee = -1;          ///< index of Program::functions
  std::vector<Reg> args;        ///< by parameter
  std::vector<uint8_t> no_dep;  ///< per argument
  /// Result k is returned by the callee: register to receive it, or the argument whose storage it is.
  std::vector<Reg> results;
  Reg task;             ///< receives the task handle, or kNone
  bool local = false;   ///< executed in place by the same fiber (helper function, group member)
  bool member = false;  ///< group member: spawned, joined at the end of the group
  bool has_deps = false;
  std::vector<Reg> deps;  ///< scalars (handles) and arrays (whole)
  Reg core_num;           ///< spmd width, or kNone (1 block)
  bool sync_start = false;
  Reg device;  ///< dispatch rank, or kNone
  bool has_predicate = false;
  Reg predicate_tensor;
  std::vector<Reg> predicate_index;
  ir::OpId predicate_op = {};  ///< scalar_eq ... scalar_ge; tensor element on the left
  int64_t predicate_value = 0;
  bool allow_early_resolve = false;
  std::vector<uint8_t> dump;  ///< per argument
  int32_t group_site = -1;    ///< host: identity of the innermost rank loop this dispatch is in (03 M-32)
};

struct CreateInsn {
  DType dtype = DType::kNone;
  std::vector<Reg> shape;
  bool manual_dep = false;
  bool has_init = false;
  double init = 0;
  bool on_chip = false;  ///< L storage of a block
  std::string name;
};

/// for lane in pl.split_aiv(2): the body [begin, end) runs once per lane; registers written in it that are
/// listed in `joins` (results of aic_gather) are joined into the parent's registers.
struct LanesInsn {
  int32_t begin = -1, end = -1;  ///< pc range of the body
  int32_t lane_reg = -1;         ///< scalar register of the lane variable
  ir::SplitMode mode = ir::SplitMode::kNone;
  struct Join {
    int32_t lane_view = -1;  ///< register inside the lane
    int32_t parent_view = -1;
    int32_t site = -1;
  };
  std::vector<Join> joins;
};

/// A `load` or `store` that a chain does on its way.
struct FoldedOp {
  int32_t value = -1;  ///< loads: input of the chain; stores: index of Chain::outputs
  int32_t op = -1;     ///< index of FunctionCode::ops
  int32_t site = -1;
};

/// Several element-wise operations run strip by strip (see kernels/chain.h).
struct ChainInsn {
  Chain chain;
  std::vector<Reg> inputs;   ///< view registers, by input value
  std::vector<Reg> scalars;  ///< scalar registers, by Chain::scalars
  std::vector<Reg> outputs;  ///< view registers, by Chain::outputs
  std::vector<int32_t> step_sites;
  /// Run before the chain: where possible the chain reads global memory itself.
  std::vector<FoldedOp> loads;
  /// Their value is dead after them: where possible the chain writes their target itself, else they run after
  /// it.
  std::vector<FoldedOp> stores;
};

/// A parameter of a function at run time.
struct ParamInfo {
  std::string name;
  Reg reg;
  ir::TypePtr type;
  ir::ParamDirection declared = ir::ParamDirection::kIn;
  ir::ParamDirection effective = ir::ParamDirection::kIn;
  bool remote_target =
      false;  ///< window written at a peer or used as a signal: region counts as the whole window (03 M-11)
  Span span;
};

/// Binds a dynamic dimension at entry: S[reg] = extent `axis` of parameter `param`; `valid`: its valid
/// extent.
struct SymbolBinding {
  int32_t reg = -1;
  int32_t param = -1;
  int32_t axis = -1;
  bool valid = false;
  int64_t divide = 1;  ///< the extent is the symbol times this
  std::string name;
  /// The other places that mention the symbol, checked at entry (01 L-30): error when `used_as_value`.
  std::vector<std::pair<int32_t, int32_t>> others;
  bool used_as_value = false;
};

enum class CoreKind : uint8_t { kScalarOnly, kCube, kVector, kMixed };

struct FunctionCode {
  std::string name;
  ir::FunctionType type = ir::FunctionType::kOpaque;
  ir::Level level = ir::Level::kNone;
  ir::Role role = ir::Role::kNone;
  CoreKind core = CoreKind::kVector;
  std::vector<ParamInfo> params;
  std::vector<SymbolBinding> symbols;
  int32_t scalar_count = 0, view_count = 0, array_count = 0;
  std::vector<Insn> code;
  std::vector<int64_t> pool;  ///< scalar constants; floats as the bits of a double
  std::vector<OpInsn> ops;
  std::vector<CallInsn> calls;
  std::vector<CreateInsn> creates;
  std::vector<LanesInsn> lanes;
  std::vector<ChainInsn> chains;
  std::vector<Site> sites;
  std::vector<Reg> results;        ///< registers that hold the results at kReturn
  std::vector<int> result_params;  ///< parameter whose storage result k is, or -1
  bool auto_scope = true;
  bool dual_aiv = false;
  int32_t host_callable = -1;
  bool requires_binding = false;
  Span span;
};

struct Program {
  std::string name;
  ir::Arch arch = ir::Arch::kA2A3;
  std::vector<FunctionCode> functions;
  int32_t entry = -1;            ///< -1 for a multi-entry program
  std::vector<int32_t> entries;  ///< Orchestration functions of a multi-entry program
  std::vector<ir::BakedScalar> baked;
  std::vector<Diagnostic> findings;  ///< compile-time class X / A findings re-judged by `strict` (03 M-37)

  int32_t find(std::string_view name) const {
    for (size_t i = 0; i < functions.size(); ++i) {
      if (functions[i].name == name) return static_cast<int32_t>(i);
    }
    return -1;
  }
  bool distributed() const {
    return entry >= 0 && functions[static_cast<size_t>(entry)].level >= ir::Level::kHost;
  }
};
using ProgramPtr = std::shared_ptr<const Program>;

}  // namespace pypto::vm
