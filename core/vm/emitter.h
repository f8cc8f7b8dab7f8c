// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/vm/emit.h"

namespace pypto::vm {

/// Facts of a function's body that emission needs before it starts; recomputed, never stored in the IR.
struct UseInfo {
  /// Functions in which some tile is changed in place: plain tile assignments must copy (01 L-185).
  bool tile_in_place = false;
  /// Storages written in the function, and whether something unknown is written.
  std::set<const ir::Storage*> written;
  bool unknown_written = false;
  bool waits = false;  ///< waits, barriers or remote reads: a peer's writes may become visible in between
  /// For every variable: the block in which all its references lie, and the last statement of it that has
  /// one.
  struct Range {
    const ir::Block* block = nullptr;
    const ir::Stmt* last = nullptr;
  };
  std::unordered_map<const ir::Var*, Range> ranges;
  /// Variables used as a value of compute (not only as a place).
  std::set<const ir::Var*> value_uses;
};
UseInfo analyse_uses(const ir::Function& fn);

/// Groups runs of element-wise operations that nothing jumps into as kChain instructions. Values that are
/// released inside a run never reach memory. Results, valid regions and faults are those of the single
/// operations.
void group_chains(FunctionCode& fn);

/// Emits one function.
class FunctionEmitter {
 public:
  FunctionEmitter(const ir::Module& module, const ir::Function& fn,
                  const std::map<const ir::Function*, int>& index, const EmitOptions& options);
  FunctionCode emit();

 private:
  using Regs = std::vector<Reg>;

  // Registers.
  Reg new_reg(RegClass cls, DType dtype);
  Reg temp(RegClass cls, DType dtype);
  void recycle_temps(size_t mark);
  Regs regs_of_type(const ir::Type& type, bool temporary);
  const Regs& var_regs(const ir::VarPtr& var);
  static RegClass class_of(const ir::Type& type);
  static void flatten(const ir::Type& type, std::vector<const ir::Type*>* out);

  // Code.
  int32_t here() const { return static_cast<int32_t>(out_.code.size()); }
  Insn& add(Opcode op, const Span& span, std::string what = {});
  int32_t site(const Span& span, std::string what);
  void patch_jumps(const std::vector<int32_t>& at, int32_t target);
  void move(const Reg& dst, const Reg& src, const Span& span);
  Reg constant(int64_t value, DType dtype, const Span& span);
  Reg float_constant(double value, DType dtype, const Span& span);

  // Expressions. `want`, if given, is where the value should be put when that costs nothing.
  Reg expr(const ir::ExprPtr& e, const Reg* want = nullptr);
  Regs exprs(const ir::ExprPtr& e, const Regs* want = nullptr);
  Reg scalar_op(const ir::Expr& e, const Reg* want);
  Regs operation(const ir::Expr& e, const Regs* want);
  Operand operand(const ir::ExprPtr& e, bool as_value);
  Regs call(const ir::Expr& e, const Regs* want);
  bool used_as_value(const ir::OpRow& row, int param) const;

  // Statements.
  void block(const ir::Block& b);
  void statement(const ir::Stmt& s);
  void assign(const ir::Stmt& s);
  void yield(const ir::Stmt& s);
  void for_loop(const ir::Stmt& s);
  void while_loop(const ir::Stmt& s);
  void branch(const ir::Stmt& s);
  void scope(const ir::Stmt& s);
  void split_aiv(const ir::Stmt& s);
  void give_back(const ir::Stmt& s);
  void begin_carries(const ir::Stmt& s);
  void release_dead(const ir::Block& b, const ir::Stmt& s);
  bool needs_snapshot(const ir::Var& var, const ir::ExprPtr& value) const;
  /// An address whose base has a value of its own (01 L-87): that part of it.
  bool cut_from_snapshot(const ir::ExprPtr& e) const;
  Reg value_of_address(const ir::ExprPtr& e);
  bool kernel() const;

  struct Loop {
    std::vector<int32_t> breaks, continues;
    const ir::Stmt* stmt = nullptr;
  };

  const ir::Module& module_;
  const ir::Function& fn_;
  const std::map<const ir::Function*, int>& index_;
  const EmitOptions& options_;
  UseInfo uses_;
  FunctionCode out_;
  std::unordered_map<const ir::Var*, Regs> var_regs_;
  std::unordered_map<const ir::Var*, Reg> snapshots_;
  bool base_as_value_ = false;  ///< the address being emitted is cut from its base's value
  std::vector<Reg> temps_;      // temporaries of the current statement, in order of creation
  std::vector<Reg> free_[3];    // recycled temporaries by class
  std::map<std::pair<int64_t, int>, Reg> constants_;
  std::vector<Loop> loops_;
  std::unordered_map<const ir::Stmt*, std::vector<const ir::Var*>>
      dying_;  // variables whose last use a statement has
  std::vector<int32_t> returns_;
  std::set<const ir::Var*> gathered_;  // results of aic_gather
  int32_t loop_site_ = -1;
  std::map<std::pair<std::string, int>, int32_t> site_index_;
};

}  // namespace pypto::vm
