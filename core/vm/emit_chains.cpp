// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "core/base/poll.h"
#include "core/vm/emitter.h"
#include "core/vm/ops/elementwise.h"

namespace pypto::vm {
namespace {

/// Reductions take scratch as their second operand; it never influences the result (02 O-218).
bool has_scratch(ir::OpId op) { return ir::op_row(op).cost == ir::CostClass::kReduce; }

struct Parts {
  Reg lhs, rhs, scalar;
};

bool chainable(const OpInsn& o, Parts* parts) {
  if (o.attrs.find(ir::AttrKey::k_acc_dtype)) return false;  // a product's declared dtype is rounded to first
  if (o.results.size() != 1 || o.results[0].cls != RegClass::kView || o.operands.empty()) return false;
  if (o.operands[0].kind != Operand::Kind::kReg || o.operands[0].reg.cls != RegClass::kView) return false;
  *parts = {};
  parts->lhs = o.operands[0].reg;
  if (o.operands.size() > 1 && o.operands[1].kind != Operand::Kind::kAbsent && !has_scratch(o.op)) {
    if (o.operands[1].kind != Operand::Kind::kReg) return false;
    (o.operands[1].reg.cls == RegClass::kView ? parts->rhs : parts->scalar) = o.operands[1].reg;
  }
  return chain_supports(o.op, parts->lhs.dtype, parts->rhs.dtype, parts->scalar.dtype, o.results[0].dtype);
}

/// A store that the chain may do itself: the parameter that holds the value, and the one that is written.
struct StoreForm {
  size_t value = 0, target = 0;
};

/// Whether `o` writes an array into a window of another one as it is.
bool stores(const OpInsn& o, StoreForm* form) {
  if (o.attrs.get_int(ir::AttrKey::k_atomic, 0) != 0 || o.attrs.find(ir::AttrKey::k_acc_dtype)) return false;
  if (o.op == ir::OpId::k_store) {
    *form = {0, 2};
    if (o.attrs.find(ir::AttrKey::k_shape)) return false;
    if (o.operands.size() > 3 && o.operands[3].kind != Operand::Kind::kAbsent) return false;
  } else if (o.op == ir::OpId::k_assemble && (o.result_is_tile.empty() || !o.result_is_tile[0])) {
    *form = {1, 0};
  } else {
    return false;
  }
  if (o.operands.size() < 3 || o.results.size() > 1) return false;
  for (const size_t p : {form->value, form->target}) {
    if (o.operands[p].kind != Operand::Kind::kReg || o.operands[p].reg.cls != RegClass::kView) return false;
  }
  return o.results.empty() || o.results[0].cls == RegClass::kView;
}

bool loads(const OpInsn& o) {
  return o.op == ir::OpId::k_load && o.results.size() == 1 && o.results[0].cls == RegClass::kView &&
         o.operands[0].kind == Operand::Kind::kReg && o.operands[0].reg.cls == RegClass::kView;
}

/// Scalar code that cannot fault or warn, so that it may run a little earlier.
bool harmless(const Insn& in) {
  switch (in.op) {
    case Opcode::kConst:
    case Opcode::kMoveS:
    case Opcode::kDim:
    case Opcode::kValid:
      return true;
    case Opcode::kScalar: {
      const auto op = static_cast<ir::OpId>(in.sub);
      return op == ir::OpId::k_scalar_add || op == ir::OpId::k_scalar_sub || op == ir::OpId::k_scalar_mul;
    }
    default:
      return false;
  }
}

/// Fresh tiles depend on nothing but their extents, so that they may be made a little earlier: kernels create
/// the scratch of a reduction right before it.
bool creates(const OpInsn& o) {
  return o.op == ir::OpId::k_create_tile && o.results.size() == 1 && o.results[0].cls == RegClass::kView;
}

bool reads_view(const Insn& in) { return in.op == Opcode::kDim || in.op == Opcode::kValid; }

/// A run of instructions that may become one chain: steps, the loads that feed them, the stores of what they
/// make, harmless scalar code and fresh tiles in between, and releases.
class Run {
 public:
  Run(const FunctionCode& fn, const std::unordered_set<int32_t>& targets,
      const std::unordered_set<int32_t>& refused, bool folds, int32_t begin)
      : fn_(fn), refused_(refused), folds_(folds) {
    end_ = begin;
    for (int32_t pc = begin; pc < static_cast<int32_t>(fn.code.size()); ++pc) {
      if ((pc != begin && targets.count(pc)) || !take(pc)) break;
    }
  }
  int32_t end() const { return end_; }
  bool worth_it() const { return steps_ >= 2 || (steps_ == 1 && folded_ > 0); }
  /// Loads and stores whose value lives on after the run, so that it must exist as a whole.
  std::unordered_set<int32_t> living() const {
    std::unordered_set<int32_t> out;
    for (const auto& [reg, pcs] : pending_) out.insert(pcs.begin(), pcs.end());
    return out;
  }

 private:
  bool take(int32_t pc) {
    poll();
    const Insn& in = fn_.code[static_cast<size_t>(pc)];
    const bool first = steps_ + folded_ == 0;
    if (in.op == Opcode::kRelease && !first) {
      pending_.erase(in.a);
      made_.erase(in.a);
      released_.insert(in.a);
      end_ = pc + 1;
      return true;
    }
    if (in.op == Opcode::kOp) {
      const OpInsn& o = fn_.ops[static_cast<size_t>(in.a)];
      StoreForm form;
      Parts parts;
      const bool taken = folds_ && loads(o)           ? !refused_.count(pc) && load(o, pc)
                         : folds_ && stores(o, &form) ? !refused_.count(pc) && store(o, form, pc)
                         : chainable(o, &parts)       ? step(o, parts)
                         : folds_ && creates(o)       ? !first && free(o.results[0].index)
                                                      : false;
      if (taken) end_ = pc + 1;
      return taken;
    }
    if (!folds_ || first || !harmless(in) || scalars_read_.count(in.dst)) return false;
    return !reads_view(in) || (!made_.count(in.a) && !given_.count(in.a) && !stored_.count(in.a));
  }

  bool load(const OpInsn& o, int32_t pc) {
    const int32_t from = o.operands[0].reg.index, to = o.results[0].index;
    // The load runs ahead of the chain, which reads its register then.
    if (stores_ > 0 || used_.count(from) || used_.count(to) || given_.count(to)) return false;
    if (given_.size() + 1 >= kMaxChainOperands) return false;
    read_scalars(o);
    given_.insert(to);
    loaded_.insert(to);
    pending_[to].push_back(pc);
    ++folded_;
    return true;
  }

  bool step(const OpInsn& o, const Parts& parts) {
    const int32_t to = o.results[0].index;
    auto given = given_;
    auto chain_scalars = chain_scalars_;
    for (const Reg& r : {parts.lhs, parts.rhs}) {
      if (r.cls != RegClass::kView || made_.count(r.index)) continue;
      if (used_.count(r.index)) return false;  // released before
      // What a store of the run changed must be read after it.
      if (stores_ > 0 && !loaded_.count(r.index)) return false;
      given.insert(r.index);
    }
    if (parts.scalar.cls == RegClass::kScalar) chain_scalars.insert(parts.scalar.index);
    if (given.size() >= kMaxChainOperands || chain_scalars.size() >= kMaxChainOperands ||
        static_cast<size_t>(steps_) + 1 >= kMaxChainOperands || stored_.count(to)) {
      return false;
    }
    given_ = std::move(given);
    chain_scalars_ = std::move(chain_scalars);
    scalars_read_.insert(chain_scalars_.begin(), chain_scalars_.end());
    pending_.erase(to);  // the older value ends here
    made_.insert(to);
    used_.insert(to);
    ++steps_;
    return true;
  }

  bool store(const OpInsn& o, const StoreForm& form, int32_t pc) {
    const int32_t value = o.operands[form.value].reg.index, target = o.operands[form.target].reg.index;
    const int32_t to = o.results.empty() ? target : o.results[0].index;
    if (!made_.count(value) || made_.count(target) || loaded_.count(target)) return false;
    if (stored_.count(target) && target != to) return false;  // its register is set by then only
    if (to != target && (made_.count(to) || given_.count(to) || stored_.count(to))) return false;
    read_scalars(o);
    stored_.insert(to);
    pending_[value].push_back(pc);
    ++stores_;
    ++folded_;
    return true;
  }

  /// Whether nothing of the run has to do with a register so far.
  bool free(int32_t reg) const {
    return !given_.count(reg) && !used_.count(reg) && !stored_.count(reg) && !released_.count(reg);
  }

  void read_scalars(const OpInsn& o) {
    for (const Operand& x : o.operands) {
      if (x.kind == Operand::Kind::kReg && x.reg.cls == RegClass::kScalar) scalars_read_.insert(x.reg.index);
      for (const Reg& r : x.list) scalars_read_.insert(r.index);
    }
  }

  const FunctionCode& fn_;
  const std::unordered_set<int32_t>& refused_;
  const bool folds_;
  int32_t end_ = 0;
  int steps_ = 0, stores_ = 0, folded_ = 0;
  std::unordered_set<int32_t> given_;   ///< registers that the chain reads as inputs
  std::unordered_set<int32_t> loaded_;  ///< those that a load of the run sets
  std::unordered_set<int32_t> made_;    ///< registers that hold results of steps
  std::unordered_set<int32_t> used_;    ///< registers that ever did
  std::unordered_set<int32_t> stored_;  ///< results of stores
  std::unordered_set<int32_t> released_;
  std::unordered_set<int32_t> chain_scalars_, scalars_read_;
  std::unordered_map<int32_t, std::vector<int32_t>> pending_;  ///< folded operations whose value still lives
};

class Grouper {
 public:
  explicit Grouper(FunctionCode& fn)
      : fn_(fn), folds_(fn.level < ir::Level::kChip && fn.type != ir::FunctionType::kOrchestration) {}

  void run() {
    find_targets();
    const auto n = static_cast<int32_t>(fn_.code.size());
    new_pc_.assign(static_cast<size_t>(n) + 1, 0);
    for (int32_t pc = 0; pc < n;) {
      const int32_t end = extend(pc);
      if (end > pc) {
        const auto at = static_cast<int32_t>(out_.size());
        for (int32_t k = pc; k < end; ++k) new_pc_[static_cast<size_t>(k)] = at;
        group(pc, end);
        pc = end;
      } else {
        new_pc_[static_cast<size_t>(pc)] = static_cast<int32_t>(out_.size());
        out_.push_back(fn_.code[static_cast<size_t>(pc)]);
        ++pc;
      }
    }
    new_pc_[static_cast<size_t>(n)] = static_cast<int32_t>(out_.size());
    for (Insn& in : out_) {
      if (in.op == Opcode::kJump) in.a = moved(in.a);
      if (in.op == Opcode::kBranchFalse) in.b = moved(in.b);
      if (in.op == Opcode::kForTest) in.dst = moved(in.dst);
    }
    for (LanesInsn& l : fn_.lanes) {
      l.begin = moved(l.begin);
      l.end = moved(l.end);
    }
    fn_.code = std::move(out_);
  }

 private:
  int32_t moved(int32_t pc) const { return new_pc_[static_cast<size_t>(pc)]; }

  void find_targets() {
    for (const Insn& in : fn_.code) {
      if (in.op == Opcode::kJump) targets_.insert(in.a);
      if (in.op == Opcode::kBranchFalse) targets_.insert(in.b);
      if (in.op == Opcode::kForTest) targets_.insert(in.dst);
    }
    for (const LanesInsn& l : fn_.lanes) {
      targets_.insert(l.begin);
      targets_.insert(l.end);
    }
  }

  /// End of the run that starts at pc (with the releases that follow it), or pc if there is none worth
  /// grouping.
  int32_t extend(int32_t pc) {
    for (;;) {
      const Run run(fn_, targets_, refused_, folds_, pc);
      if (!run.worth_it()) return pc;
      const auto living = run.living();
      if (living.empty()) return run.end();
      refused_.insert(living.begin(), living.end());
    }
  }

  void group(int32_t begin, int32_t end) {
    ChainInsn c;
    std::unordered_map<int32_t, int32_t> value;  // register -> current value
    std::unordered_map<int32_t, int32_t> scalar;
    std::vector<Insn> releases;  // of registers that the run only reads
    // Inputs are numbered first, so a first walk finds them.
    std::unordered_set<int32_t> made;
    auto input = [&](const Reg& r) {
      if (r.cls == RegClass::kView && !made.count(r.index) && !value.count(r.index)) {
        value[r.index] = static_cast<int32_t>(c.inputs.size());
        c.inputs.push_back(r);
      }
    };
    StoreForm form;
    for (int32_t pc = begin; pc < end; ++pc) {
      const Insn& in = fn_.code[static_cast<size_t>(pc)];
      if (in.op == Opcode::kRelease) {
        made.insert(in.a);  // what comes after the release is another value
        continue;
      }
      if (in.op != Opcode::kOp) {
        out_.push_back(in);  // scalar code: before the chain
        continue;
      }
      Parts parts;
      const OpInsn& o = fn_.ops[static_cast<size_t>(in.a)];
      if (loads(o)) {
        made.erase(o.results[0].index);
        c.loads.push_back({static_cast<int32_t>(c.inputs.size()), in.a, in.site});
        input(o.results[0]);
        continue;
      }
      if (creates(o)) {
        out_.push_back(in);
        continue;
      }
      if (stores(o, &form)) continue;
      chainable(o, &parts);
      input(parts.lhs);
      input(parts.rhs);
      made.insert(o.results[0].index);
    }
    c.chain.inputs = static_cast<int32_t>(c.inputs.size());
    std::unordered_map<int32_t, Reg> live;  // registers that hold a result of the run
    std::map<int32_t, Reg> outputs;         // by value
    std::vector<std::pair<int32_t, FoldedOp>> stored;
    for (int32_t pc = begin; pc < end; ++pc) {
      const Insn& in = fn_.code[static_cast<size_t>(pc)];
      if (in.op == Opcode::kRelease) {
        if (!live.erase(in.a)) releases.push_back(in);
        continue;
      }
      if (in.op != Opcode::kOp) continue;
      Parts parts;
      const OpInsn& o = fn_.ops[static_cast<size_t>(in.a)];
      if (loads(o) || creates(o)) continue;
      if (stores(o, &form)) {
        const Reg& r = o.operands[form.value].reg;
        outputs[value.at(r.index)] = r;
        stored.emplace_back(value.at(r.index), FoldedOp{-1, in.a, in.site});
        continue;
      }
      chainable(o, &parts);
      ChainStep step;
      step.op = o.op;
      step.dtype = o.results[0].dtype;
      step.is_tile = !o.result_is_tile.empty() && o.result_is_tile[0];
      step.lhs = value.at(parts.lhs.index);
      if (parts.rhs.cls == RegClass::kView) step.rhs = value.at(parts.rhs.index);
      if (parts.scalar.cls == RegClass::kScalar) {
        const auto [it, fresh] =
            scalar.try_emplace(parts.scalar.index, static_cast<int32_t>(c.scalars.size()));
        if (fresh) {
          c.scalars.push_back(parts.scalar);
          c.chain.scalars.push_back(parts.scalar.dtype);
        }
        step.scalar = it->second;
      }
      if (o.op == ir::OpId::k_cast) step.mode = cast_mode(o.attrs);
      value[o.results[0].index] = c.chain.inputs + static_cast<int32_t>(c.chain.steps.size());
      live[o.results[0].index] = o.results[0];
      c.chain.steps.push_back(step);
      c.step_sites.push_back(in.site);
    }
    for (const auto& [reg, r] : live) outputs[value.at(reg)] = r;
    for (const auto& [v, r] : outputs) {
      for (auto& [of, store] : stored) {
        if (of == v) store.value = static_cast<int32_t>(c.outputs.size());
      }
      c.chain.outputs.push_back(v);
      c.outputs.push_back(r);
    }
    for (const auto& [v, store] : stored) c.stores.push_back(store);
    Insn in;
    in.op = Opcode::kChain;
    in.a = static_cast<int32_t>(fn_.chains.size());
    in.site = fn_.code[static_cast<size_t>(begin)].site;
    c.chain.id = new_chain_id();
    fn_.chains.push_back(std::move(c));
    out_.push_back(in);
    for (const Insn& r : releases) {
      if (!live.count(r.a)) out_.push_back(r);  // else the register holds a result of the run by now
    }
  }

  FunctionCode& fn_;
  const bool folds_;
  std::vector<Insn> out_;
  std::vector<int32_t> new_pc_;
  std::unordered_set<int32_t> targets_;
  std::unordered_set<int32_t> refused_;
};

}  // namespace

void group_chains(FunctionCode& fn) { Grouper(fn).run(); }

}  // namespace pypto::vm
